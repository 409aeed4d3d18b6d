//! An open file with its metadata, and the detection of later changes to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fathom_io::beneath::stat;
use fathom_io::sys::stat_open_cached;
use fathom_io::{Errno, FileTime, FileType, Meta};
use rustix::io::retry_on_intr;

use crate::FileError;
use crate::pool::{Resource, ThreadPool};

/// The time after a modification within which another modification may leave the same modification
/// time: the tick of the coarsest filesystem clock, which is the 2 s of FAT. Other filesystems, and
/// the kernel's own clock of a few milliseconds, are finer, but do not report their resolution.
pub const SETTLING: Duration = Duration::from_secs(2);

/// Most looks at a file whose time has changed and whose size has not.
const LOOKS: usize = 20;

/// An open file with the metadata of that moment. Clones share the descriptor.
///
/// ```
/// use std::fs::File;
///
/// use fathom_files::{FileChange, OpenFile};
///
/// let opened = OpenFile::new(File::open("Cargo.toml")?.into())?;
/// let content = opened.read_whole()?;
/// assert!(content.starts_with(b"[package]"));
/// assert_eq!(opened.read_range(1, 7)?, b"package"[..]);
/// assert_eq!(opened.change()?, FileChange::Unchanged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// `None` after [`without_fd`](Self::without_fd): the content was read completely.
    file: Option<Arc<SharedFd>>,
    /// The metadata, as of when the file was opened.
    pub meta: Meta,
    /// The clock just before the metadata was read.
    opened_at: SystemTime,
}

impl OpenFile {
    /// Reads the metadata of `file`.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn new(file: OwnedFd) -> Result<Self, Errno> {
        Self::with_closing_pool(file, None)
    }

    /// Reads the metadata of `file`. A `closing_pool` closes the descriptor, for filesystems on
    /// which close(2) may wait.
    pub(crate) fn with_closing_pool(file: OwnedFd, closing_pool: Option<ThreadPool>) -> Result<Self, Errno> {
        let opened_at = SystemTime::now();
        let meta = stat(file.as_fd())?;
        let closing_pool = closing_pool.map(|pool| (pool, meta.dev));
        Ok(Self { file: Some(Arc::new(SharedFd { file: Some(file), closing_pool })), meta, opened_at })
    }

    /// Drops the descriptor of a file whose content has been read completely.
    pub(crate) fn without_fd(self) -> Self {
        Self { file: None, ..self }
    }

    /// # Errors
    /// `BADF` after [`without_fd`](Self::without_fd).
    #[inline]
    pub(crate) fn shared_fd(&self) -> Result<&Arc<SharedFd>, Errno> {
        self.file.as_ref().ok_or(Errno::BADF)
    }

    /// Returns the descriptor.
    ///
    /// # Errors
    /// `BADF` if [`FileIo::fetch`](crate::FileIo::fetch) has read the content completely.
    #[inline]
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.shared_fd()?.as_fd())
    }

    /// Returns the file type.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> FileType {
        FileType::from_mode(self.meta.mode)
    }

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::try_from(self.meta.size).unwrap_or(0)
    }

    /// Returns whether the length is zero.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the version of the content at open time.
    #[inline]
    #[must_use]
    pub fn version(&self) -> FileVersion {
        FileVersion::of(&self.meta)
    }

    /// Returns whether the file had not changed for `time` at the moment `seen`.
    #[inline]
    #[must_use]
    pub fn is_settled(&self, seen: SystemTime, time: Duration) -> bool {
        let FileTime { sec, .. } = self.meta.mtime.max(self.meta.ctime);
        let since = seen.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        since.cast_signed().saturating_sub(sec) > time.as_secs().cast_signed()
    }

    /// Reads bytes from `offset` on into `bytes` and returns their number, which is zero at the end
    /// of the file. May wait for the disk.
    ///
    /// # Errors
    /// As pread(2), and as [`fd`](Self::fd).
    #[inline]
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.fd()?;
        retry_on_intr(|| rustix::io::pread(fd, &mut *bytes, offset))
    }

    /// Reads the content. May wait for the disk.
    ///
    /// # Errors
    /// [`FileError::Changed`] if the file has another content than when it was opened, and the
    /// errors of [`read_at`](Self::read_at).
    pub fn read_whole(&self) -> Result<Bytes, FileError> {
        let mut bytes = vec![0; usize::try_from(self.len()).unwrap_or(usize::MAX)];
        self.read_exactly(0, &mut bytes)?;
        if self.is_same_content()? { Ok(bytes.into()) } else { Err(FileError::Changed) }
    }

    /// Reads `len` bytes from `offset` on. May wait for the disk.
    ///
    /// # Errors
    /// As [`read_whole`](Self::read_whole), except that the file may have grown.
    pub fn read_range(&self, offset: u64, len: usize) -> Result<Bytes, FileError> {
        let mut bytes = vec![0; len];
        self.fill(offset, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Fills `bytes` from `offset` on.
    pub(crate) fn fill(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.read_exactly(offset, bytes)?;
        if self.change()? == FileChange::Content { Err(FileError::Changed) } else { Ok(()) }
    }

    fn read_exactly(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let mut filled = 0;
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.read_at(offset + filled as u64, room)? {
                0 => return Err(FileError::Changed),
                read => filled += read,
            }
        }
        Ok(())
    }

    /// Compares the file's metadata with the metadata at open time, as far as the kernel knows
    /// without asking a server.
    ///
    /// Size and mtime decide whether the content may have changed. The ctime does not: chmod(2),
    /// link(2), rename(2) and setxattr(2) set it as well. The kernel's change counter
    /// (`STATX_CHANGE_COOKIE`) would not tell these from a write either, and statx(2) does not
    /// expose it (as of Linux 6.18).
    ///
    /// # Errors
    /// As statx(2), and as [`fd`](Self::fd).
    pub fn change(&self) -> Result<FileChange, Errno> {
        let fd = self.fd()?;
        self.change_seen(&mut || stat_open_cached(fd))
    }

    /// Compares the metadata that `look` returns. write(2) sets the time before the size, so an
    /// append seems to be a write for a moment: then it is looked at again.
    fn change_seen(&self, look: &mut dyn FnMut() -> Result<Meta, Errno>) -> Result<FileChange, Errno> {
        let mut now = look()?;
        for _ in 1..LOOKS {
            if now.size != self.meta.size || now.mtime == self.meta.mtime {
                break;
            }
            std::thread::yield_now();
            now = look()?;
        }
        Ok(match now {
            _ if FileVersion::of(&now) == self.version() => FileChange::Unchanged,
            _ if (now.size, now.mtime) == (self.meta.size, self.meta.mtime) => FileChange::Inode,
            _ if now.size > self.meta.size => FileChange::Grown,
            _ => FileChange::Content,
        })
    }

    /// Returns whether the content is the same as at open time.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    #[inline]
    pub fn is_content_unchanged(&self) -> Result<bool, Errno> {
        Ok(matches!(self.change()?, FileChange::Unchanged | FileChange::Inode))
    }

    /// Returns whether bytes that were just read from the start of the file belong to the content
    /// at open time. An appended file passes if it was being written when it was opened.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn is_same_content(&self) -> Result<bool, Errno> {
        Ok(match self.change()? {
            FileChange::Unchanged | FileChange::Inode => true,
            FileChange::Grown => self.may_be_growing(),
            FileChange::Content => false,
        })
    }

    /// Returns whether the file may have been appended to rather than rewritten. Only a second read
    /// could tell. A file that was modified shortly before the open is taken to be appended to; a
    /// settled file is taken to be rewritten.
    pub(crate) fn may_be_growing(&self) -> bool {
        !self.is_settled(self.opened_at, SETTLING)
    }
}

/// A descriptor shared by the clones of an [`OpenFile`]. A pool thread closes it where close(2) may
/// wait: FUSE and NFS notify their server.
#[derive(Debug)]
pub(crate) struct SharedFd {
    /// `Some` until the value is dropped.
    file: Option<OwnedFd>,
    /// The pool, and the device number for its queue.
    closing_pool: Option<(ThreadPool, u64)>,
}

impl Drop for SharedFd {
    fn drop(&mut self) {
        if let (Some((pool, dev)), Some(file)) = (self.closing_pool.take(), self.file.take()) {
            pool.spawn(Resource::Device(dev), move || drop(file));
        }
    }
}

impl AsFd for SharedFd {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("`file` is `Some` until the value is dropped").as_fd()
    }
}

/// The change of a file since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// No change.
    Unchanged,
    /// The inode changed, not the content: mode, owner, links, attributes, atime.
    Inode,
    /// The file is longer, as an appended log is; the old content may be intact.
    Grown,
    /// The file was written to, or became shorter.
    Content,
}

/// The identity of a file's content: a new content or another file has another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    dev: u64,
    ino: u64,
    size: i64,
    mtime: FileTime,
    ctime: FileTime,
}

impl FileVersion {
    /// Returns the version of a file with the metadata `meta`. The ctime is part of it: programs
    /// can set the mtime back, but not the ctime.
    #[inline]
    #[must_use]
    pub fn of(meta: &Meta) -> Self {
        let Meta { dev, ino, size, mtime, ctime, .. } = *meta;
        Self { dev, ino, size, mtime, ctime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a file that had been settled for `before` seconds when it was opened still
    /// has the same content after a write of `bytes`.
    fn rewritten(before: u64, bytes: &[u8]) -> bool {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, b"first").unwrap();
        let mut opened = OpenFile::new(std::fs::File::open(&file).unwrap().into()).unwrap();
        let then = opened.meta.mtime.sec - before.cast_signed();
        (opened.meta.mtime.sec, opened.meta.ctime.sec) = (then, then);
        std::fs::write(&file, bytes).unwrap();
        opened.is_same_content().unwrap()
    }

    #[test]
    fn a_settled_file_that_grew_has_new_content() {
        assert!(!rewritten(60, b"other bytes"));
    }

    #[test]
    fn a_recently_written_file_that_grew_was_appended_to() {
        assert!(rewritten(1, b"first and more"));
    }

    #[test]
    fn an_append_of_which_the_time_comes_before_the_size_is_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = OpenFile::new(std::fs::File::open(&file).unwrap().into()).unwrap();
        let mut written = opened.meta;
        written.mtime.sec += 1;
        let seen = |at_first: usize| {
            let mut looks = 0;
            let change = opened.change_seen(&mut || {
                looks += 1;
                Ok(Meta { size: written.size + i64::from(looks > at_first), ..written })
            });
            (change.unwrap(), looks)
        };
        assert_eq!([seen(0), seen(3)], [(FileChange::Grown, 1), (FileChange::Grown, 4)]);
        assert_eq!(seen(usize::MAX), (FileChange::Content, LOOKS));
    }

    #[test]
    fn a_file_that_did_not_grow_has_new_content() {
        assert!(!rewritten(1, b"other"));
        assert!(!rewritten(60, b"othe"));
    }
}
