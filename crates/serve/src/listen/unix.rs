//! Unix sockets, by path and by abstract name.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::{BACKLOG, ListenSpec, failed};
use crate::error::Error;

/// The file of a Unix socket. Dropping the value removes the file, unless another file has replaced
/// it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // A socket that remains is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the device and inode numbers.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens a socket that listens at `path`. The file has the permission `mode` before the first
/// connection is possible.
pub(super) fn bind(path: &Path, mode: u32) -> Result<(UnixListener, SocketFile), Error> {
    let error = |cause: io::Error| failed(ListenSpec::Unix(path.to_owned()), cause);
    let address = SocketAddrUnix::new(path).map_err(|errno| error(errno.into()))?;
    remove_stale(path, &address).map_err(error)?;
    let listen = || {
        let socket = socket()?;
        rustix::net::bind(&socket, &address)?;
        let file = SocketFile::of(path)?;
        // Before listen(2) the kernel refuses connections: no client connects with the mode that
        // the umask left.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok((UnixListener::from(socket), file))
    };
    listen().map_err(error)
}

/// Opens a socket that listens at an abstract name: no permission protects it, and it vanishes with
/// its last descriptor.
pub(super) fn bind_abstract(name: &str) -> Result<UnixListener, Error> {
    let listen = || -> rustix::io::Result<_> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = socket()?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(UnixListener::from(socket))
    };
    listen().map_err(|errno| failed(ListenSpec::Abstract(name.to_owned()), errno))
}

/// Removes a stale socket. A socket that accepts connections and a file that is no socket are left
/// alone.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "the path exists and is not a socket"));
        }
        Ok(_) => {}
    }
    match rustix::net::connect(socket()?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        // A full backlog (EAGAIN) also means that a server runs.
        Ok(()) | Err(Errno::AGAIN) => Err(Errno::ADDRINUSE.into()),
        Err(errno) => Err(errno.into()),
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}
