//! The calls on any Unix: openat, fdopendir, readdir and fstatat of POSIX.1-2008.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::{Errno, Fields, FileTime, FileType, Follow, Meta, Names};

/// An open directory. The first read creates the stream, so a directory that is only the base of
/// other calls has none.
// The twin in linux.rs has the same name.
#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    stream: Mutex<Option<Stream>>,
}

#[derive(Debug)]
struct Stream(NonNull<libc::DIR>);

// SAFETY: a DIR may be used from any thread, one at a time (POSIX.1-2008 readdir); `Dir` keeps it
// behind a mutex.
unsafe impl Send for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the pointer came from fdopendir, and this is its only owner.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}

impl Dir {
    /// Creates a `Dir` from a descriptor that is open on a directory.
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd, stream: Mutex::new(None) }
    }

    /// Returns the descriptor.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn open(at: BorrowedFd<'_>, name: &CStr, flags: libc::c_int) -> Result<OwnedFd, Errno> {
    loop {
        // SAFETY: `name` is a C string that outlives the call, and the descriptor is borrowed for
        // as long.
        let fd = unsafe { libc::openat(at.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC) };
        if fd >= 0 {
            // SAFETY: openat has just returned it to this call alone.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        match last_errno() {
            Errno::INTR => {}
            errno => return Err(errno),
        }
    }
}

/// Opens a directory for reading.
///
/// # Errors
/// As openat(3p).
pub fn open_dir(at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
    let nofollow = if follow == Follow::Yes { 0 } else { libc::O_NOFOLLOW };
    open(at, name, libc::O_RDONLY | libc::O_DIRECTORY | nofollow).map(Dir::from_fd)
}

/// Opens the directory `path` below `at` as the base of other calls. Unless links are followed,
/// opens one component at a time and refuses a component that is a link.
///
/// # Errors
/// As openat(3p).
pub fn open_path(at: BorrowedFd<'_>, path: &CStr, follow: Follow) -> Result<OwnedFd, Errno> {
    if follow == Follow::Yes {
        return open_dir(at, path, follow).map(Dir::into_fd);
    }
    let mut base: Option<OwnedFd> = None;
    for part in path.to_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        let name = std::ffi::CString::new(part).map_err(|_| Errno::INVAL)?;
        let next = open_dir(base.as_ref().map_or(at, AsFd::as_fd), &name, follow)?;
        base = Some(next.into_fd());
    }
    base.ok_or(Errno::NOENT)
}

/// Sets the position of `dir` to the cookie of a batch, or to the start for 0.
///
/// # Errors
/// As fdopendir(3p). POSIX defines the position only for the stream that it came from; on Linux and
/// the BSDs it is valid for the directory.
pub fn seek(dir: &Dir, cookie: u64) -> Result<(), Errno> {
    with_stream(dir, |stream| {
        // SAFETY: the stream is open and this thread holds its mutex.
        unsafe {
            if cookie == 0 { libc::rewinddir(stream) } else { libc::seekdir(stream, cookie as libc::c_long) }
        };
        Ok(())
    })
}

fn with_stream<T>(dir: &Dir, act: impl FnOnce(*mut libc::DIR) -> Result<T, Errno>) -> Result<T, Errno> {
    let mut slot = dir.stream.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if slot.is_none() {
        // Duplicate the descriptor, which takes no permission. Opening `.` would take the
        // permission to search the directory.
        let own = dir.fd.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let raw = own.into_raw_fd();
        // SAFETY: `raw` is a fresh descriptor of a directory; on success the stream owns it.
        let stream = unsafe { libc::fdopendir(raw) };
        let Some(stream) = NonNull::new(stream) else {
            let errno = last_errno();
            // SAFETY: fdopendir failed, so this call still owns `raw`.
            drop(unsafe { OwnedFd::from_raw_fd(raw) });
            return Err(errno);
        };
        *slot = Some(Stream(stream));
    }
    act(slot.as_ref().expect("made above").0.as_ptr())
}

/// Appends names until `names` has `limit` entries. Returns false at the end of the directory.
///
/// # Errors
/// As readdir(3p).
pub fn read_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    with_stream(dir, |stream| {
        loop {
            if names.len() >= limit {
                // SAFETY: the stream is open and this thread holds its mutex.
                names.cookie = unsafe { libc::telldir(stream) } as u64;
                return Ok(true);
            }
            if !read_one(stream, names)? {
                return Ok(false);
            }
        }
    })
}

/// Calls [`read_names`], because the C library hides the size of one system call.
///
/// # Errors
/// As [`read_names`].
pub fn read_some_names(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    read_names(dir, names, limit)
}

fn read_one(stream: *mut libc::DIR, names: &mut Names) -> Result<bool, Errno> {
    // SAFETY: errno belongs to this thread. readdir distinguishes the end from an error by it
    // alone.
    unsafe { *libc::__errno_location() = 0 };
    // SAFETY: the stream is open and its mutex held; the entry lives until the next call on the
    // stream.
    let Some(entry) = NonNull::new(unsafe { libc::readdir(stream) }) else {
        let error = std::io::Error::last_os_error();
        return if error.raw_os_error() == Some(0) { Ok(false) } else { Err(last_errno()) };
    };
    // SAFETY: readdir returned the entry and no call has used the stream since; d_name ends in a
    // NUL (POSIX dirent.h).
    let (name, ino, d_type) = unsafe {
        let entry = entry.as_ref();
        (CStr::from_ptr(entry.d_name.as_ptr()), entry.d_ino, entry.d_type)
    };
    if !matches!(name.to_bytes(), b"." | b"..") {
        names.push(name, ino, FileType::from_dirent(d_type))?;
    }
    Ok(true)
}

/// Reads the metadata of `name` in `at` with fstatat.
///
/// # Errors
/// As fstatat(3p).
pub fn stat(at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    let flags = if follow == Follow::Yes { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    loop {
        // SAFETY: `name` is a C string and `stat` a buffer of the call's own type; both outlive it.
        if unsafe { libc::fstatat(at.as_raw_fd(), name.as_ptr(), stat.as_mut_ptr(), flags) } == 0 {
            // SAFETY: zeroed, and filled by a call that succeeded.
            return Ok(meta(&unsafe { stat.assume_init() }, fields));
        }
        match last_errno() {
            Errno::INTR => {}
            errno => return Err(errno),
        }
    }
}

/// Returns false: POSIX has no call that answers this.
#[must_use]
pub fn is_cached_local(_path: &CStr) -> bool {
    false
}

/// Returns false: in POSIX, all threads of a process share one working directory.
#[must_use]
pub fn enter(_dir: BorrowedFd<'_>) -> bool {
    false
}

/// Reads the metadata of an open directory with fstat.
///
/// # Errors
/// As fstat(3p).
pub fn stat_dir(dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `stat` is a buffer of the call's own type and outlives it.
    if unsafe { libc::fstat(dir.fd.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return Err(last_errno());
    }
    // SAFETY: zeroed, and filled by a call that succeeded.
    Ok(meta(&unsafe { stat.assume_init() }, fields))
}

fn meta(stat: &libc::stat, fields: Fields) -> Meta {
    let stamp = |sec: libc::time_t, nsec: libc::c_long| FileTime { sec, nsec: nsec as u32 };
    Meta {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: stat.st_size,
        blocks: stat.st_blocks as u64,
        mode: stat.st_mode,
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        atime: stamp(stat.st_atime, stat.st_atime_nsec),
        mtime: stamp(stat.st_mtime, stat.st_mtime_nsec),
        ctime: stamp(stat.st_ctime, stat.st_ctime_nsec),
        btime: None,
        mount_root: None,
        attributes: None,
        fields: fields.intersection(Fields::ALL),
    }
}
