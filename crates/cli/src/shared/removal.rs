//! Removals of all commands: the log of removed entries, the user's trash, messages.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_remove::{FileHolder, RemovalFailure, RemovedEntry, TrashOptions};
use fathom_text::quote::{Charset, escape_controls, quoteaf};
use fathom_text::strerror;

use crate::shared::json::JsonObject;

/// An open log: JSON Lines, appended by one write for each batch of removed entries. If the process
/// is killed, the last batch of each thread may be missing.
#[derive(Debug)]
pub(crate) struct RemovalLog {
    file: File,
    /// The action in each object.
    action: &'static str,
    buffer: Vec<u8>,
    /// Whether the last write has failed, perhaps within a line.
    is_torn: bool,
}

impl RemovalLog {
    /// Opens the log at `path` for appending.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(path: &Path, action: &'static str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, action, buffer: Vec::new(), is_torn: false })
    }

    /// Appends an object for each entry.
    ///
    /// # Errors
    /// As write(2).
    pub(crate) fn append(&mut self, entries: &[RemovedEntry]) -> io::Result<()> {
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.buffer.clear();
        if self.is_torn {
            self.buffer.push(b'\n');
        }
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
        let written = self.file.write_all(&self.buffer);
        self.is_torn = written.is_err();
        written
    }
}

/// Returns the directory that a variable of the XDG Base Directory Specification names, or else the
/// one below the home directory. Relative paths in the environment are ignored, as it requires.
pub(crate) fn xdg_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))
}

/// Returns the user's trash and the time.
pub(crate) fn trash_options() -> TrashOptions {
    let data = xdg_directory("XDG_DATA_HOME", ".local/share");
    let deletion_date = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    TrashOptions { home: data.map(|data| data.join("Trash")), deletion_date }
}

/// Returns the name and the number of a process, as in "tail (pid 4711)".
pub(crate) fn program(holder: FileHolder) -> String {
    // Any process may give itself any name.
    let shown = |name: Vec<u8>| {
        String::from_utf8_lossy(&escape_controls(&name)).replace(|letter: char| letter.is_control(), " ")
    };
    let name = holder.program().map_or_else(|| "a process that has ended".to_owned(), shown);
    format!("{name} (pid {})", holder.pid)
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

#[cfg(test)]
mod tests {
    use fathom_walk::FileType;

    use super::*;

    #[test]
    fn a_line_after_a_failed_write_begins_on_a_line_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        let mut log = RemovalLog::open(&path, "remove").unwrap();
        let entry = |name: &[u8]| {
            let path = name.to_vec();
            [RemovedEntry { path, file_type: FileType::Regular, dev: 1, ino: 2, allocated: None }]
        };
        log.append(&entry(b"a")).unwrap();
        // A disk that is full in the middle of a line.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let whole = std::mem::replace(&mut log.file, full);
        log.append(&entry(b"b")).unwrap_err();
        (&whole).write_all(b"{\"time\":").unwrap();
        log.file = whole;
        log.append(&entry(b"c")).unwrap();
        log.append(&entry(b"d")).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let paths = text.lines().map(|line| line.split("\"path\":\"").nth(1).map(|rest| &rest[..1]));
        assert_eq!(paths.collect::<Vec<_>>(), [Some("a"), None, Some("c"), Some("d")]);
    }
}
