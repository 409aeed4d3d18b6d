//! Calls on single files: contents, security context, and sendfile.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
use std::os::fd::{AsRawFd, RawFd};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

use crate::{Errno, FileType, Follow};

/// Buffer sizes for a security context in bytes: the first attempt, and the maximum (xattr(7)).
#[cfg(all(target_os = "linux", not(feature = "posix")))]
const CONTEXT_BYTES: [usize; 2] = [256, 64 * 1024];

/// Opens `path` in `at` for reading. Does not wait for a fifo or a device (`O_NONBLOCK`).
///
/// # Errors
/// As openat(2). ELOOP for a symbolic link if `follow` is [`Follow::No`].
///
/// ```
/// use std::io::Read;
/// use fathom_io::{Follow, sys};
///
/// let file = sys::open_file(sys::CWD, c"Cargo.toml", Follow::No)?;
/// let mut text = String::new();
/// std::fs::File::from(file).read_to_string(&mut text)?;
/// assert!(text.contains("fathom-io"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open_file(at: BorrowedFd<'_>, path: &CStr, follow: Follow) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = if follow == Follow::Yes { flags } else { flags | OFlags::NOFOLLOW };
    retry_on_intr(|| rustix::fs::openat(at, path, flags, Mode::empty()))
}

/// Reads the regular file `path` in `at`. Returns `None` if the file does not exist or is not a
/// regular file. Does not wait for a fifo or a device.
///
/// # Errors
/// As openat(2) and read(2). ELOOP for a symbolic link if `follow` is [`Follow::No`]; EFBIG for
/// more than `bytes_max` bytes.
///
/// ```
/// use fathom_io::{Errno, Follow, sys};
///
/// assert!(sys::read_file(sys::CWD, c"Cargo.toml", Follow::No, 1 << 20)?.is_some());
/// assert_eq!(sys::read_file(sys::CWD, c"src", Follow::No, 1 << 20), Ok(None));
/// assert_eq!(sys::read_file(sys::CWD, c"Cargo.toml", Follow::No, 1), Err(Errno::FBIG));
/// # Ok::<(), Errno>(())
/// ```
pub fn read_file(
    at: BorrowedFd<'_>,
    path: &CStr,
    follow: Follow,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, Errno> {
    let file = match open_file(at, path, follow) {
        // The last two are the errors for a socket, on Linux also for a device without a driver.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NXIO | Errno::OPNOTSUPP) => return Ok(None),
        opened => opened?,
    };
    if FileType::from_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Regular {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::from(file).take(limit).read_to_end(&mut bytes);
    match read {
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        Ok(len) if len > bytes_max => Err(Errno::FBIG),
        Ok(_) => Ok(Some(bytes)),
    }
}

/// Sends up to `bytes` of `file` from byte `offset` to the socket `to`. Returns the number of bytes
/// sent, which is 0 at the end of the file.
///
/// # Errors
/// As sendfile(2). EAGAIN if the buffer of a non-blocking socket is full.
///
/// ```
/// use std::io::Read;
/// use std::os::fd::AsFd;
/// use fathom_io::sys;
///
/// let (ours, mut theirs) = std::os::unix::net::UnixStream::pair()?;
/// let file = std::fs::File::open("Cargo.toml")?;
/// assert_eq!(sys::send_file(ours.as_fd(), file.as_fd(), 0, 9)?, 9);
/// let mut text = [0; 9];
/// theirs.read_exact(&mut text)?;
/// assert_eq!(&text, b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub fn send_file(
    to: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    mut offset: u64,
    bytes: usize,
) -> Result<usize, Errno> {
    retry_on_intr(|| rustix::fs::sendfile(to, file, Some(&mut offset), bytes))
}

/// Returns the bytes in the send queue of the socket that the peer has not acknowledged (SIOCOUTQ,
/// tcp(7)).
///
/// # Errors
/// As ioctl(2).
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub fn unacknowledged(socket: BorrowedFd<'_>) -> Result<usize, Errno> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, to one that lives until it returns; the descriptor is open
    // while it is borrowed.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if result == 0 { Ok(usize::try_from(bytes).unwrap_or(0)) } else { Err(failed()) }
}

/// Returns for each socket, given by its number, whether its peer has ended the connection: it has
/// shut down its sending side or reset the connection (POLLRDHUP, poll(2)). This waits for nothing.
/// A number that is no open descriptor counts as ended.
///
/// # Errors
/// As poll(2): EINVAL for more numbers than the process may have descriptors.
///
/// ```
/// use std::os::fd::AsRawFd;
/// use std::os::unix::net::UnixStream;
/// use fathom_io::sys::peers_ended;
///
/// let (first, second) = UnixStream::pair()?;
/// assert_eq!(peers_ended(&[first.as_raw_fd()])?, [false]);
/// second.shutdown(std::net::Shutdown::Write)?;
/// assert_eq!(peers_ended(&[first.as_raw_fd(), second.as_raw_fd()])?, [true, false]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub fn peers_ended(sockets: &[RawFd]) -> Result<Vec<bool>, Errno> {
    let poll = |&fd| libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    let mut polled: Vec<_> = sockets.iter().map(poll).collect();
    // SAFETY: the call writes as many elements as the vector has, and it lives until it returns. A
    // number that is no descriptor is reported and not used.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    if result < 0 { Err(failed()) } else { Ok(polled.iter().map(|socket| socket.revents != 0).collect()) }
}

/// Returns the SELinux security context of `name` in `at`. `None` if it has none.
///
/// The path goes through /proc/self/fd, because getxattr(2) has no directory argument and
/// getxattrat(2) exists only since Linux 6.13.
///
/// # Errors
/// As getxattr(2).
///
/// ```
/// use fathom_io::{Errno, Follow, sys};
///
/// let context = sys::security_context(sys::CWD, c"Cargo.toml", Follow::No)?;
/// println!("{}", String::from_utf8_lossy(&context.unwrap_or(b"?".to_vec())));
/// # Ok::<(), Errno>(())
/// ```
pub fn security_context(at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Option<Vec<u8>>, Errno> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    {
        let (path, [few, most]) = (path_in(at, name), CONTEXT_BYTES);
        let read = |bytes| retry_on_intr(|| label(&path, follow, bytes));
        match read(few).or_else(|errno| if errno == Errno::RANGE { read(most) } else { Err(errno) }) {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
            // The attribute is stored with a terminating NUL.
            Ok(value) => Ok(Some(value.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())),
        }
    }
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    {
        let _ = (at, name, follow);
        Ok(None)
    }
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn label(path: &[u8], follow: Follow, bytes: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; bytes];
    let len = match follow {
        Follow::Yes => rustix::fs::getxattr(path, c"security.selinux", &mut value[..]),
        Follow::No => rustix::fs::lgetxattr(path, c"security.selinux", &mut value[..]),
    }?;
    value.truncate(len);
    Ok(value)
}

/// Returns a path for calls without a directory argument.
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub(super) fn path_in(at: BorrowedFd<'_>, name: &CStr) -> Vec<u8> {
    let name = name.to_bytes();
    if name.starts_with(b"/") || at.as_raw_fd() == super::CWD.as_raw_fd() {
        return name.to_vec();
    }
    [format!("/proc/self/fd/{}/", at.as_raw_fd()).as_bytes(), name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn read_file_reads_regular_files_up_to_the_size_limit() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "12345").unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("p"), fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let open = File::open(dir.path()).unwrap();
        let read = |name: &CStr, follow, max| read_file(open.as_fd(), name, follow, max);
        assert_eq!(read(c"f", Follow::No, 5), Ok(Some(b"12345".to_vec())));
        assert_eq!(read(c"f", Follow::No, 4), Err(Errno::FBIG));
        assert_eq!(read(c"l", Follow::No, 5), Err(Errno::LOOP));
        assert_eq!(read(c"l", Follow::Yes, 5), Ok(Some(b"12345".to_vec())));
        for name in [c"d", c"p", c"missing", c"f/x"] {
            assert_eq!(read(name, Follow::No, 5), Ok(None), "{name:?}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    fn the_security_context_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        let open = File::open(dir.path()).unwrap();
        let long = "u".repeat(1000);
        for value in ["sys_u:r:t:s0", &long] {
            let flags = rustix::fs::XattrFlags::empty();
            let with_nul = [value.as_bytes(), b"\0"].concat();
            if rustix::fs::setxattr(dir.path().join("f"), c"security.selinux", &with_nul, flags).is_err() {
                return println!("skipped: this process may not set security.selinux");
            }
            let expected = Ok(Some(value.as_bytes().to_vec()));
            assert_eq!(security_context(open.as_fd(), c"f", Follow::No), expected);
            assert_eq!(security_context(open.as_fd(), c"l", Follow::Yes), expected);
        }
    }
}
