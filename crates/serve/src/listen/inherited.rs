//! Sockets passed by systemd (sd_listen_fds(3)): LISTEN_FDS descriptors from 3 on, if LISTEN_PID is
//! this process.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{ListenAddress, ListenSpec, Listener, failed, invalid};
use crate::error::Error;

/// The first descriptor (SD_LISTEN_FDS_START).
const FIRST_FD: RawFd = 3;
/// The maximum number of descriptors, as a guard against a wrong number.
const FDS_MAX: RawFd = 1024;

/// The environment variables of socket activation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activation<'a> {
    /// LISTEN_PID.
    pub pid: Option<&'a str>,
    /// LISTEN_FDS.
    pub fds: Option<&'a str>,
}

/// Returns the passed sockets with their addresses.
pub(super) fn take(activation: Activation<'_>) -> Result<Vec<(Listener, ListenAddress)>, Error> {
    let count = count(activation).map_err(|why| invalid(ListenSpec::Systemd, why))?;
    (FIRST_FD..FIRST_FD + count)
        .map(|fd| listener(fd).map_err(|error| failed(format_args!("systemd, descriptor {fd}"), error)))
        .collect()
}

fn count(activation: Activation<'_>) -> Result<RawFd, &'static str> {
    let (Some(pid), Some(fds)) = (activation.pid, activation.fds) else {
        return Err("systemd passed no sockets (LISTEN_PID and LISTEN_FDS are not set)");
    };
    if pid.parse() != Ok(std::process::id()) {
        return Err("the sockets belong to another process (LISTEN_PID)");
    }
    match fds.parse() {
        Ok(count @ 1..=FDS_MAX) => Ok(count),
        _ => Err("LISTEN_FDS is not a number of sockets"),
    }
}

fn listener(fd: RawFd) -> io::Result<(Listener, ListenAddress)> {
    adopt(fathom_io::sys::inherited(fd)?)
}

/// Checks that a passed socket is a listening stream socket, and makes it nonblocking.
pub(super) fn adopt(socket: OwnedFd) -> io::Result<(Listener, ListenAddress)> {
    let wrong = |why| Err(io::Error::new(ErrorKind::InvalidInput, why));
    if sockopt::socket_type(&socket)? != SocketType::STREAM || !sockopt::socket_acceptconn(&socket)? {
        return wrong("not a listening socket (a unit with Accept=yes passes connections)");
    }
    rustix::io::ioctl_fionbio(&socket, true)?;
    match sockopt::socket_domain(&socket)? {
        AddressFamily::INET | AddressFamily::INET6 => {
            let listener = TcpListener::from(socket);
            let address = ListenAddress::Tcp(listener.local_addr()?);
            Ok((Listener::Tcp(listener), address))
        }
        AddressFamily::UNIX => {
            let listener = UnixListener::from(socket);
            let address = unix_address(&listener)?;
            Ok((Listener::Unix(listener), address))
        }
        _ => wrong("neither a TCP nor a Unix socket"),
    }
}

fn unix_address(listener: &UnixListener) -> io::Result<ListenAddress> {
    use std::os::linux::net::SocketAddrExt;
    let address = listener.local_addr()?;
    let name = address.as_abstract_name().map(|name| String::from_utf8_lossy(name).into_owned());
    Ok(match (address.as_pathname(), name) {
        (Some(path), _) => ListenAddress::Unix(path.to_owned()),
        (None, name) => ListenAddress::Abstract(name.unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::super::listen;
    use super::super::tests::{answer, fd, greeting};
    use super::*;

    /// Runs this test again in a process to which a shell passes the socket as descriptor 3, as
    /// systemd would.
    #[test]
    fn a_socket_that_was_handed_over_serves() {
        if let Ok(pid) = std::env::var("LISTEN_PID") {
            let activation = Activation { pid: Some(&pid), fds: Some("1") };
            let listening = listen(&[ListenSpec::Systemd], 2, 0o660, activation).unwrap();
            assert!(fcntl_getfd(fd(&listening.workers[0][0])).unwrap().contains(FdFlags::CLOEXEC));
            let again = listen(&[ListenSpec::Systemd], 1, 0o660, activation).unwrap_err();
            assert_eq!(
                again.to_string(),
                "cannot listen on 'systemd, descriptor 3': Device or resource busy"
            );
            return answer(&listening.workers[1]);
        }
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let script = "export LISTEN_PID=$$; exec \"$0\" --exact listen::inherited::tests::a_socket_that_was_handed_over_serves 3<&0 </dev/null";
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap()).stdin(OwnedFd::from(socket));
        let output = shell.output().unwrap();
        drop(shell);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(greeting(client), "hello");
    }
}
