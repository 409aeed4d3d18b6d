//! The lock of an inventory that is being written: the file `lock` in its directory, held until the
//! process ends, so that no two scans or merges write to one directory.
//!
//! It is flock(2)'s. On NFS Linux makes that a lock of the server's, seen by all clients; with the
//! mount options `nolock` and `local_lock=flock` it is seen on this machine only. Where a
//! filesystem has no locks, a warning says so.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fathom_walk::Errno;
use rustix::fs::{FlockOperation, flock};

use crate::store::{Error, Op};

/// Its name in the directory of the inventory.
pub(super) const NAME: &str = "lock";
/// Each try fails only where a holder ends between two calls.
const TRIES: usize = 16;
/// The cause of an error where another process holds the lock.
pub(crate) const BUSY: &str = "another scan or merge is writing to it";

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The kernel lets go of the lock when this is closed, however the process ends.
    _file: File,
}

impl Lock {
    /// Takes the lock of `directory`. `warn` gets a warning where its filesystem has no locks.
    ///
    /// # Errors
    /// If another process holds it, or if the file cannot be made.
    pub(crate) fn take(directory: &Path, warn: &mut dyn FnMut(&[u8])) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let failed = |error: io::Error| Error::new(Op::Lock, directory, error);
        for _ in 0..TRIES {
            let file = open(&path).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => continue,
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    let what = "its filesystem has no locks: see to it that no other run writes to it";
                    warn(format!("warning: '{}': {what}", directory.display()).as_bytes());
                    return Ok(Self { _file: file });
                }
                Err(errno) => return Err(failed(errno.into())),
            }
            // Between both calls its holder may have removed the file, or given the directory its
            // name.
            if is_at(&file, &path).map_err(failed)? {
                return Ok(Self { _file: file });
            }
        }
        Err(Error::new(Op::Lock, directory, BUSY))
    }

    /// Whether another process holds the lock of `directory`, as far as that can be told.
    pub(crate) fn is_held(directory: &Path) -> bool {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().write(true).custom_flags(nofollow).open(directory.join(NAME));
        let locked = file.map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive));
        matches!(locked, Ok(Err(Errno::WOULDBLOCK)))
    }

    /// Takes the lock's file out of `directory`, and lets go of it.
    pub(crate) fn remove(self, directory: &Path) -> Result<(), Error> {
        let path: PathBuf = directory.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::new(Op::Write, &path, error)),
            _ => Ok(()),
        }
    }
}

/// Opens the file for writing, which an exclusive lock needs on NFS.
fn open(path: &Path) -> io::Result<File> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow).open(path)
}

/// Whether `file` is the one at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) => {
            let held = file.metadata()?;
            Ok((held.dev(), held.ino()) == (found.dev(), found.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
