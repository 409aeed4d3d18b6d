//! Unix sockets, by path and by abstract name.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::{BACKLOG, Word, failed};
use crate::error::Error;

/// The file of a Unix socket. When this is dropped the file goes, unless somebody else has put another one there.
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
            // A stale socket is what the next start removes.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and inode.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A socket that listens at `path`, whose permission is `mode` before anybody is let in.
pub(super) fn bind(path: &Path, mode: u32) -> Result<(UnixListener, SocketFile), Error> {
    let error = |cause: io::Error| failed(Word::Unix(path.to_owned()), cause);
    let address = SocketAddrUnix::new(path).map_err(|errno| error(errno.into()))?;
    remove_stale(path, &address).map_err(error)?;
    let listen = || {
        let socket = socket()?;
        rustix::net::bind(&socket, &address)?;
        let file = SocketFile::of(path)?;
        // Until it listens, connecting is refused: nobody slips in under the mode that the umask left.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok((UnixListener::from(socket), file))
    };
    listen().map_err(error)
}

/// A socket that listens at a name without a file: no permission protects it, and it goes with the last of its descriptors.
pub(super) fn bind_abstract(name: &str) -> Result<UnixListener, Error> {
    let listen = || -> rustix::io::Result<_> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = socket()?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(UnixListener::from(socket))
    };
    listen().map_err(|errno| failed(Word::Abstract(name.to_owned()), errno))
}

/// Removes the socket of a server that is gone. What answers is left alone, and so is what is not a socket.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file that is not a socket"));
        }
        Ok(_) => {}
    }
    match rustix::net::connect(socket()?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        // A full backlog (EAGAIN) is a server's, too.
        Ok(()) | Err(Errno::AGAIN) => Err(Errno::ADDRINUSE.into()),
        Err(errno) => Err(errno.into()),
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}
