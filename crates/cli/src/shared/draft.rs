//! An output file that is written under a temporary name in the target directory, and renamed once
//! its contents are durable. If anything fails before, the temporary file is removed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fathom_inventory::store::{create_part, rename_new, sync_directory_of};
use fathom_text::quote::{Charset, quoteaf};

use crate::shared::output::reason;

/// The fate of an existing file of the final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Refuse,
    Replace,
}

/// An output file under its temporary name.
pub(crate) struct Draft {
    file: File,
    path: PathBuf,
    /// The temporary name; `None` once the file has its final one.
    part: Option<PathBuf>,
    existing: Existing,
}

/// A failed operation on a file.
pub(crate) struct FileError {
    operation: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl FileError {
    fn new(operation: &'static str, path: &Path, error: io::Error) -> Self {
        Self { operation, path: path.to_owned(), error }
    }

    /// Returns the message, without the program name.
    pub(crate) fn message(&self, charset: Charset) -> Vec<u8> {
        let path = quoteaf(self.path.as_os_str().as_encoded_bytes(), charset);
        [b"cannot ", self.operation.as_bytes(), b" ", &path, b": ", &reason(&self.error)].concat()
    }
}

impl Draft {
    /// Creates the temporary file for `path`, which is `path` with `.part` appended, or takes one
    /// over that a killed run has left. Fails if another run is writing to it, or if `path` exists
    /// and is not to be replaced, or is anything but a regular file.
    pub(crate) fn create(path: &Path, existing: Existing) -> Result<Self, FileError> {
        check(path, existing).map_err(|error| FileError::new("create", path, error))?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let file = create_part(&part).map_err(|error| FileError::new("create", &part, error))?;
        Ok(Self { file, path: path.to_owned(), part: Some(part), existing })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Wraps an error of [`Draft::write`].
    pub(crate) fn cannot_be_written(&self, error: io::Error) -> FileError {
        FileError::new("write", self.part.as_deref().unwrap_or(&self.path), error)
    }

    /// Syncs the file and renames it to its final name.
    pub(crate) fn publish(mut self) -> Result<(), FileError> {
        self.file.sync_all().map_err(|error| self.cannot_be_written(error))?;
        let Some(part) = &self.part else { return Ok(()) };
        let renamed = match self.existing {
            Existing::Refuse => rename_new(part, &self.path),
            Existing::Replace => fs::rename(part, &self.path),
        };
        renamed.map_err(|error| FileError::new("rename", part, error))?;
        // Another process may use the temporary name from now on.
        self.part = None;
        sync_directory_of(&self.path).map_err(|error| FileError::new("write", &self.path, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Checks that the final name is free, or that of a file that may be replaced. A device or a pipe
/// would become a regular file.
fn check(path: &Path, existing: Existing) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if existing == Existing::Replace && meta.is_file() => Ok(()),
        Ok(_) => Err(rustix::io::Errno::EXIST.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
