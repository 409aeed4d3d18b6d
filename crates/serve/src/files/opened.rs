//! A file that is open, and what it was like then.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fathom_io::beneath::stat;
use fathom_io::sys::stat_open_as_known;
use fathom_io::{Errno, FileType, Meta, Stamp};

use super::on;
use super::pool::Pool;
use crate::etag::SETTLING;

/// A file that was opened, and what it was like then. Clones share the descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// None if all was read and it is closed again.
    file: Option<Arc<Held>>,
    pub(crate) meta: Meta,
    /// The clock before.
    at: SystemTime,
}

impl Opened {
    /// `file`, as it is now. Where closing it may wait, `closer` does that.
    pub(crate) fn new(file: OwnedFd, closer: Option<Pool>) -> Result<Self, Errno> {
        let at = SystemTime::now();
        let meta = stat(file.as_fd())?;
        let closer = closer.map(|pool| (pool, meta.dev));
        Ok(Self { file: Some(Arc::new(Held { file: Some(file), closer })), meta, at })
    }

    /// The same without the descriptor, for a file of which all has been read.
    pub(crate) fn closed(self) -> Self {
        Self { file: None, ..self }
    }

    /// # Errors
    /// `BADF` if it was [`closed`](Self::closed): then all of it was read, and nobody needs it.
    pub(crate) fn held(&self) -> Result<&Arc<Held>, Errno> {
        self.file.as_ref().ok_or(Errno::BADF)
    }

    /// # Errors
    /// As [`held`](Self::held).
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.held()?.as_fd())
    }

    /// What kind of file it is.
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_mode(self.meta.mode)
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.meta.size).unwrap_or(0)
    }

    /// What tells it from another one.
    pub(crate) fn version(&self) -> Version {
        Version::of(&self.meta)
    }

    /// Whether it had been as it is for `time` when it was `seen`.
    pub(crate) fn is_settled(&self, seen: SystemTime, time: Duration) -> bool {
        let Stamp { sec, .. } = self.meta.modified.max(self.meta.changed);
        let since = seen.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        since.cast_signed().saturating_sub(sec) > time.as_secs().cast_signed()
    }

    /// Compares the open file with what it was when it was opened, as far as the kernel knows
    /// without asking a server.
    ///
    /// Size and modification time decide whether its bytes may be others. The change time does not:
    /// chmod(2), link(2), rename(2) and setxattr(2) set it as well. The kernel's change counter
    /// (`STATX_CHANGE_COOKIE`) would not tell these from a write either, and statx(2) does not give
    /// it to programs (as of Linux 6.18).
    pub(crate) fn change(&self) -> Result<Change, Errno> {
        let now = stat_open_as_known(self.fd()?)?;
        Ok(match now {
            _ if Version::of(&now) == self.version() => Change::None,
            _ if (now.size, now.modified) == (self.meta.size, self.meta.modified) => Change::Inode,
            _ if now.size > self.meta.size => Change::Grown,
            _ => Change::Bytes,
        })
    }

    /// Whether nothing has been written to it since it was opened.
    pub(crate) fn is_unwritten(&self) -> Result<bool, Errno> {
        Ok(matches!(self.change()?, Change::None | Change::Inode))
    }

    /// Whether the first bytes that were read of it are of the content that it was opened with.
    pub(crate) fn is_still(&self) -> Result<bool, Errno> {
        Ok(match self.change()? {
            Change::None | Change::Inode => true,
            Change::Grown => self.may_have_grown(),
            Change::Bytes => false,
        })
    }

    /// Whether more bytes than when it was opened may be those and others. Nobody can tell before some of them were read: it is thought of
    /// a file that was being written to then, and not of one that had been left alone.
    pub(crate) fn may_have_grown(&self) -> bool {
        !self.is_settled(self.at, SETTLING)
    }
}

/// An open file that is closed where that may wait: FUSE and NFS tell their server.
#[derive(Debug)]
pub(crate) struct Held {
    /// There until it is dropped.
    file: Option<OwnedFd>,
    /// With the device.
    closer: Option<(Pool, u64)>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some((pool, dev)), Some(file)) = (self.closer.take(), self.file.take()) {
            pool.spawn(on(dev), move || drop(file));
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("it is there until it is dropped").as_fd()
    }
}

/// What has become of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// Its inode, and not its bytes: mode, owner, names, attributes, access time.
    Inode,
    /// It has become longer, as logs do; what it had may be as it was.
    Grown,
    /// Somebody wrote to it, or made it shorter.
    Bytes,
}

/// What tells one content of a file from the next, and one file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    dev: u64,
    ino: u64,
    size: i64,
    modified: Stamp,
    changed: Stamp,
}

impl Version {
    /// Of the file that `meta` is about. Inode change time is part of it: a program can set back the modification time, not that.
    pub(crate) fn of(meta: &Meta) -> Self {
        let Meta { dev, ino, size, modified, changed, .. } = *meta;
        Self { dev, ino, size, modified, changed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a file that had been left alone for `before` seconds when it was opened is still the same after it got `bytes`.
    fn rewritten(before: u64, bytes: &[u8]) -> bool {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, b"first").unwrap();
        let mut opened = Opened::new(std::fs::File::open(&file).unwrap().into(), None).unwrap();
        let then = opened.meta.modified.sec - before.cast_signed();
        (opened.meta.modified.sec, opened.meta.changed.sec) = (then, then);
        std::fs::write(&file, bytes).unwrap();
        opened.is_still().unwrap()
    }

    #[test]
    fn what_was_left_alone_and_is_longer_is_another_content() {
        assert!(!rewritten(60, b"other bytes"));
    }

    #[test]
    fn what_is_written_to_all_the_time_may_have_been_added_to() {
        assert!(rewritten(1, b"first and more"));
    }

    #[test]
    fn what_is_not_longer_is_another_content() {
        assert!(!rewritten(1, b"other"));
        assert!(!rewritten(60, b"othe"));
    }
}
