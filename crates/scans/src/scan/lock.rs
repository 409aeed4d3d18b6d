//! The lock of an inventory that is being written: the file `lock` in its directory, held until the
//! process ends. It keeps two scans or merges from writing to one directory.
//!
//! The lock is taken with flock(2). On NFS, Linux makes it a lock of the server, which all clients
//! see; with the mount options `nolock` and `local_lock=flock` only this machine sees it. On a
//! filesystem without locks, a warning is reported.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fathom_walk::Errno;
use rustix::fs::{FlockOperation, flock};

use fathom_inventory::store::{Error, Op, is_at};

/// The name of the lock in the directory of the inventory.
pub(super) const NAME: &str = "lock";
/// Most attempts. An attempt is repeated only if the holder ends between two system calls.
const TRIES: usize = 16;
/// The cause of the error if another process holds the lock.
pub(crate) const BUSY: &str = "another scan or merge is writing to it";

/// A held lock.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The kernel releases the lock when this file is closed, however the process ends.
    _file: File,
}

impl Lock {
    /// Takes the lock of `directory`. `warn` is called with a warning if its filesystem has no
    /// locks.
    ///
    /// # Errors
    /// If another process holds the lock, or the file cannot be created.
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
                    let what = "its file system has no locks: make sure that no other run writes to it";
                    warn(format!("warning: '{}': {what}", directory.display()).as_bytes());
                    return Ok(Self { _file: file });
                }
                Err(errno) => return Err(failed(errno.into())),
            }
            // Between the two calls the holder may have removed the file, or renamed the directory.
            if is_at(&file, &path).map_err(failed)? {
                return Ok(Self { _file: file });
            }
        }
        Err(Error::new(Op::Lock, directory, BUSY))
    }

    /// Returns whether another process holds the lock of `directory`, as far as that can be
    /// determined.
    pub(crate) fn is_held(directory: &Path) -> bool {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().write(true).custom_flags(nofollow).open(directory.join(NAME));
        let locked = file.map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive));
        matches!(locked, Ok(Err(Errno::WOULDBLOCK)))
    }

    /// Removes the lock file from `directory`, and releases the lock.
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
