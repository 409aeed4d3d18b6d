//! A file that is written under a temporary name in the target directory, and gets its final name
//! once its contents are durable. A regular file of that name is replaced in one step; anything
//! else is refused. If something fails before, the temporary file is removed and the earlier file
//! is as it was.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::{Error, Op};
use super::files::{PRIVATE, create_part_with, sync_directory_of};
use super::manifest::Manifest;

/// The permission bits of readers.
const READERS: u32 = 0o444;

/// An output file under its temporary name, locked until it has its final one.
///
/// ```
/// use fathom_inventory::store::Draft;
///
/// let temp = tempfile::tempdir()?;
/// let path = temp.path().join("page.html");
/// std::fs::write(&path, "earlier")?;
/// let mut draft = Draft::create(&path)?;
/// draft.write(b"new")?;
/// assert_eq!(std::fs::read(&path)?, b"earlier");
/// draft.publish()?;
/// assert_eq!(std::fs::read(&path)?, b"new");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Draft {
    file: File,
    path: PathBuf,
    /// The temporary name; `None` once the file has its final one.
    part: Option<PathBuf>,
    mode: u32,
}

impl Draft {
    /// Creates the temporary file for `path`, which is `path` with `.part` appended, or takes one
    /// over that a killed run has left. Only the owner may read the file, or those who may read the
    /// one that it replaces.
    ///
    /// # Errors
    /// If another run is writing to it, if `path` is there and is no regular file, or if it would
    /// be in the directory of an inventory.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let replaced = path.symlink_metadata().ok().filter(fs::Metadata::is_file);
        let readers = replaced.map_or(0, |replaced| replaced.mode() & READERS);
        Self::create_with(path, PRIVATE | readers)
    }

    /// As [`Draft::create`], with the permission bits `mode`, whatever the umask is.
    ///
    /// # Errors
    /// As [`Draft::create`].
    pub fn create_with(path: &Path, mode: u32) -> Result<Self, Error> {
        check(path).map_err(|error| Error::new(Op::Create, path, error))?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let file = create_part_with(&part, mode).map_err(|error| Error::new(Op::Create, &part, error))?;
        Ok(Self { file, path: path.to_owned(), part: Some(part), mode })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// As write(2); [`Draft::cannot_write`] adds the operation and the path.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Returns the error of a write that failed.
    #[must_use]
    pub fn cannot_write(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(Op::Write, self.part.as_deref().unwrap_or(&self.path), error)
    }

    /// Syncs the file and renames it to its final name.
    ///
    /// # Errors
    /// As fchmod(2), fsync(2) and rename(2).
    pub fn publish(mut self) -> Result<(), Error> {
        let synced = self.set_mode().and_then(|()| self.file.sync_all());
        synced.map_err(|error| self.cannot_write(error))?;
        let Some(part) = &self.part else { return Ok(()) };
        fs::rename(part, &self.path).map_err(|error| Error::new(Op::Rename, part, error))?;
        // Another process may use the temporary name from now on.
        self.part = None;
        sync_directory_of(&self.path).map_err(|error| Error::new(Op::Write, &self.path, error))
    }

    fn set_mode(&self) -> io::Result<()> {
        match self.mode {
            PRIVATE => Ok(()),
            mode => self.file.set_permissions(Permissions::from_mode(mode)),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Best effort: the caller reports the error that left the file incomplete.
            let _ = fs::remove_file(part);
        }
    }
}

/// Checks that the final name is free or names a regular file, and no file of an inventory. A
/// device or a pipe would become a regular file.
fn check(path: &Path) -> io::Result<()> {
    // Web applications have files of that name, too.
    if path.parent().is_some_and(|directory| Manifest::read(directory).is_ok()) {
        return Err(io::Error::other("this directory is an inventory"));
    }
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(io::Error::other("it exists and is not a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
