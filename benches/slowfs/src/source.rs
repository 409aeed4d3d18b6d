//! The source directory: all system calls on it, by the names from its root. Does not own: FUSE
//! node numbers and delays.
//!
//! The source is one filesystem, and while it is mounted its structure must not change except
//! through the mount. A file on another device is rejected with EXDEV, an inode that has moved since
//! its lookup with ESTALE.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatVfs};
use rustix::io::Errno;

/// Longest path of one system call, in bytes. PATH_MAX is 4096 including the final NUL.
const PATH_BYTES_MAX: usize = 4000;

/// An open source directory.
pub(crate) struct Source {
    root: OwnedFd,
    device: u64,
}

/// A directory entry.
pub(crate) struct DirEntry {
    pub(crate) ino: u64,
    pub(crate) kind: FileType,
    pub(crate) name: OsString,
}

impl Source {
    /// Opens the directory `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Source> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let device = rustix::fs::fstat(&root)?.st_dev;
        Ok(Source { root, device })
    }

    /// Returns the metadata (`lstat`) of the file at `names`; of the source itself if `names` is
    /// empty.
    pub(crate) fn stat(&self, names: &[&OsStr]) -> io::Result<Stat> {
        let stat = self.at(names, |dir, name| rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
        if stat.st_dev == self.device { Ok(stat) } else { Err(Errno::XDEV.into()) }
    }

    /// Returns the target of the symbolic link at `names`.
    pub(crate) fn read_link(&self, names: &[&OsStr]) -> io::Result<Vec<u8>> {
        let target = self.at(names, |dir, name| rustix::fs::readlinkat(dir, name, Vec::new()))?;
        Ok(target.into_bytes())
    }

    /// Opens a regular file for reading, or a directory with `OFlags::DIRECTORY`. `NONBLOCK`: a
    /// FIFO that replaces the file must not block a worker.
    pub(crate) fn open_at(&self, names: &[&OsStr], kind: OFlags) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | kind;
        self.at(names, |dir, name| rustix::fs::openat(dir, name, flags, Mode::empty()))
    }

    /// Removes the file at `names`, or the empty directory with `AtFlags::REMOVEDIR`.
    pub(crate) fn remove(&self, names: &[&OsStr], flags: AtFlags) -> io::Result<()> {
        self.at(names, |dir, name| rustix::fs::unlinkat(dir, name, flags))
    }

    /// Returns space and inodes of the source's filesystem.
    pub(crate) fn statvfs(&self) -> io::Result<StatVfs> {
        Ok(rustix::fs::fstatvfs(&self.root)?)
    }

    /// Calls `call` with a directory and a path that fits into one system call, for files at any
    /// depth.
    fn at<T>(
        &self,
        names: &[&OsStr],
        call: impl FnOnce(BorrowedFd<'_>, &OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let mut path_chunks = path_chunks(names);
        let last = path_chunks.pop().unwrap_or_else(|| OsString::from("."));
        let mut nearest: Option<OwnedFd> = None;
        for chunk in path_chunks {
            let dir = nearest.as_ref().map_or(self.root.as_fd(), |fd| fd.as_fd());
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            nearest = Some(rustix::fs::openat(dir, chunk, flags, Mode::empty())?);
        }
        let dir = nearest.as_ref().map_or(self.root.as_fd(), |fd| fd.as_fd());
        Ok(call(dir, &last)?)
    }
}

/// Returns all entries of an open directory, including `.` and `..`, in the order of the
/// filesystem.
pub(crate) fn list(dir: &OwnedFd) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        let kind = match entry.file_type() {
            FileType::Unknown => stat_type(dir, &name)?,
            known => known,
        };
        entries.push(DirEntry { ino: entry.ino(), kind, name });
    }
    Ok(entries)
}

fn stat_type(dir: &OwnedFd, name: &OsStr) -> io::Result<FileType> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Reads `size` bytes at `offset`; fewer only at the end of the file.
pub(crate) fn read(file: &OwnedFd, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match rustix::io::pread(file, &mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Joins `names` by slashes into as few paths as [`PATH_BYTES_MAX`] permits.
fn path_chunks(names: &[&OsStr]) -> Vec<OsString> {
    let mut path_chunks: Vec<OsString> = Vec::new();
    for name in names {
        match path_chunks.last_mut() {
            Some(chunk) if chunk.len() + 1 + name.len() <= PATH_BYTES_MAX => {
                chunk.push("/");
                chunk.push(name);
            }
            _ => path_chunks.push((*name).to_owned()),
        }
    }
    path_chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_deeper_than_path_max_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::open(scratch.path()).unwrap();
        let name = OsString::from("d".repeat(200));
        let names = vec![name.as_os_str(); 50];
        for depth in 1..=names.len() {
            let mkdir = |dir: BorrowedFd<'_>, last: &OsStr| rustix::fs::mkdirat(dir, last, Mode::RWXU);
            source.at(&names[..depth], mkdir).unwrap();
        }
        assert!(path_chunks(&names).len() > 2);
        let stat = source.stat(&names).unwrap();
        assert_eq!(FileType::from_raw_mode(stat.st_mode), FileType::Directory);
    }

    #[test]
    fn no_names_mean_the_source_itself() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::open(scratch.path()).unwrap();
        let expected = rustix::fs::stat(scratch.path()).unwrap();
        assert_eq!(source.stat(&[]).unwrap().st_ino, expected.st_ino);
    }

    #[test]
    fn a_short_file_reads_short_and_a_link_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("file"), b"0123456789").unwrap();
        std::os::unix::fs::symlink("file", scratch.path().join("link")).unwrap();
        let source = Source::open(scratch.path()).unwrap();
        let file = source.open_at(&[OsStr::new("file")], OFlags::empty()).unwrap();
        assert_eq!(read(&file, 8, 100).unwrap(), b"89");
        let link = [OsStr::new("link")];
        assert_eq!(source.read_link(&link).unwrap(), b"file");
        let error = source.open_at(&link, OFlags::empty()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }
}
