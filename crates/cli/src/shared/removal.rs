//! Removals of all commands: the log of removed entries, the user's trash, messages.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_remove::{RemovalFailure, RemovedEntry, TrashOptions};
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::strerror;

use crate::shared::json::JsonObject;

/// An open log: JSON Lines, appended by one write for each batch, so that the log has all that was
/// removed even if the process is killed.
#[derive(Debug)]
pub(crate) struct RemovalLog {
    file: File,
    /// The action in each object.
    action: &'static str,
    buffer: Vec<u8>,
}

impl RemovalLog {
    /// Opens the log at `path` for appending.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(path: &Path, action: &'static str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, action, buffer: Vec::new() })
    }

    /// Appends an object for each entry.
    ///
    /// # Errors
    /// As write(2).
    pub(crate) fn append(&mut self, entries: &[RemovedEntry]) -> io::Result<()> {
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.buffer.clear();
        for entry in entries {
            let mut object = JsonObject::new(&mut self.buffer);
            object.text("time", time.as_bytes());
            object.text("action", self.action.as_bytes());
            object.text("path", &entry.path);
            object.text("type", entry.file_type.name().as_bytes());
            object.number("dev", entry.dev);
            object.number("ino", entry.ino);
            match entry.allocated {
                Some(bytes) => object.number("bytes", bytes),
                None => object.null("bytes"),
            }
            object.end();
        }
        self.file.write_all(&self.buffer)
    }
}

/// Returns the user's trash and the time. Relative paths in the environment are ignored, as the XDG
/// Base Directory Specification requires.
pub(crate) fn trash_options() -> TrashOptions {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let deletion_date = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    TrashOptions { home: data.map(|data| data.join("Trash")), deletion_date }
}

/// Returns the message about a failure, without the program name.
pub(crate) fn failure_message(failure: &RemovalFailure, charset: Charset) -> Vec<u8> {
    let RemovalFailure { path, operation, cause } = failure;
    let words = match (cause.errno(), cause.words()) {
        (Some(errno), _) => strerror(errno),
        (None, words) => words.unwrap_or_default().as_bytes().to_vec(),
    };
    [format!("cannot {operation} ").as_bytes(), &quoteaf(path, charset), b": ", &words].concat()
}
