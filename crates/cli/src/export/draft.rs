//! A file that is written under another name in the directory where it belongs, and gets its own once the disk has all of it. Whatever
//! ends the work before takes the file away.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fathom_inventory::store::{create_private, rename_new, sync_directory_of};
use fathom_text::quote::{Charset, quoteaf};

use crate::output::reason;

/// A file while it is written.
pub(super) struct Draft {
    file: File,
    path: PathBuf,
    part: PathBuf,
}

/// What could not be done with a file.
pub(super) struct Refused {
    deed: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl Refused {
    fn new(deed: &'static str, path: &Path, error: io::Error) -> Self {
        Self { deed, path: path.to_owned(), error }
    }

    /// Without the program's name.
    pub(super) fn message(&self, charset: Charset) -> Vec<u8> {
        let path = quoteaf(self.path.as_os_str().as_encoded_bytes(), charset);
        [b"cannot ", self.deed.as_bytes(), b" ", &path, b": ", &reason(&self.error)].concat()
    }
}

impl Draft {
    /// Begins what is to be `path`, which must not be there, nor what it is called until then: `path` with `.part` behind it.
    pub(super) fn create(path: &Path) -> Result<Self, Refused> {
        free(path).map_err(|error| Refused::new("create", path, error))?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let file = create_private(&part).map_err(|error| Refused::new("create", &part, error))?;
        Ok(Self { file, path: path.to_owned(), part })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// What there is to say of an error of [`Draft::write`].
    pub(super) fn cannot_be_written(&self, error: io::Error) -> Refused {
        Refused::new("write", &self.part, error)
    }

    /// Gives the file its name.
    pub(super) fn publish(self) -> Result<(), Refused> {
        self.file.sync_all().map_err(|error| self.cannot_be_written(error))?;
        rename_new(&self.part, &self.path).map_err(|error| Refused::new("rename", &self.part, error))?;
        sync_directory_of(&self.path).map_err(|error| Refused::new("write", &self.path, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it has its name there is nothing left by this one.
        let _ = fs::remove_file(&self.part);
    }
}

fn free(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(io::Error::from_raw_os_error(rustix::io::Errno::EXIST.raw_os_error())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
