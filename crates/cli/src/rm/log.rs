//! The log of removed entries: JSON Lines, appended by one write for each batch, so that the log
//! has all that was removed even if the process is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use fathom_remove::RemovedEntry;

use crate::shared::json::JsonObject;

/// An open log.
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
