//! Opens the listening sockets of `--listen`, one list for each worker.
//!
//! Each worker has its own socket for a TCP address (SO_REUSEPORT), and the kernel spreads
//! connections over them. A socket that can be opened only once, a Unix socket or one passed by
//! systemd, is shared: all workers accept from its queue. Does not own: accepting, where
//! TCP_NODELAY is set, and the environment, which is passed in as [`Activation`].

mod bind;
mod inherited;
mod spec;
mod unix;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

#[cfg(feature = "http3")]
pub(crate) use bind::udp;
pub use inherited::Activation;
pub use spec::{ListenAddress, ListenSpec};
pub use unix::SocketFile;

use crate::error::{Error, Op};

/// The length of the accept queue; the kernel's limit `net.core.somaxconn` is 4096 by default, too.
const BACKLOG: i32 = 4096;

/// The default mode of Unix sockets: a proxy in front accesses the socket by its group.
const SOCKET_MODE: u32 = 0o660;

/// Parses the mode of a Unix socket's file, from `socket-mode`.
pub fn socket_mode(text: Option<&str>) -> Result<u32, Error> {
    let Some(text) = text else { return Ok(SOCKET_MODE) };
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = digits.then(|| u32::from_str_radix(text, 8).ok()).flatten().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| invalid(format_args!("unix socket of mode {text}"), "expected 000 to 777"))
}

/// Returns the error that `thing` cannot be listened on.
fn failed(thing: impl std::fmt::Display, source: impl Into<std::io::Error>) -> Error {
    Error::new(Op::Listen, thing.to_string(), source.into())
}

/// Returns the error that `thing` is no valid listen specification.
fn invalid(thing: impl std::fmt::Display, why: &str) -> Error {
    Error::new(Op::Listen, thing.to_string(), why)
}

/// A nonblocking listening socket.
#[derive(Debug)]
pub enum Listener {
    /// A TCP socket, IPv4 or IPv6.
    Tcp(TcpListener),
    /// A Unix socket, by path or by abstract name.
    Unix(UnixListener),
}

impl Listener {
    fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }
}

/// All listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// The listeners of each worker, in the order of the specifications.
    pub workers: Vec<Vec<Listener>>,
    /// The addresses of the sockets, with the ports that the kernel chose.
    pub addresses: Vec<ListenAddress>,
    /// The files of Unix sockets, removed on drop.
    pub files: Vec<SocketFile>,
}

/// Binds all of `specs` for `workers` workers, or fails and binds none. `mode` is the permission of
/// Unix sockets' files.
pub fn listen(
    specs: &[ListenSpec],
    workers: usize,
    mode: u32,
    activation: Activation<'_>,
) -> Result<Listeners, Error> {
    let workers = (0..workers.max(1)).map(|_| Vec::new()).collect();
    let mut listening = Listeners { workers, addresses: Vec::new(), files: Vec::new() };
    let tcp = bind::resolve(specs);
    for word in specs {
        match word {
            ListenSpec::Tcp(_) | ListenSpec::Localhost(_) | ListenSpec::All(_) => {
                listening.bind_tcp(word, &tcp)?
            }
            ListenSpec::Unix(path) => {
                let (listener, file) = unix::bind(path, mode)?;
                listening.files.push(file);
                listening.share(word, Listener::Unix(listener), ListenAddress::Unix(path.clone()))?;
            }
            ListenSpec::Abstract(name) => {
                let listener = unix::bind_abstract(name)?;
                listening.share(word, Listener::Unix(listener), ListenAddress::Abstract(name.clone()))?;
            }
            ListenSpec::Systemd => {
                for (listener, address) in inherited::take(activation)? {
                    listening.share(word, listener, address)?;
                }
            }
        }
    }
    Ok(listening)
}

impl Listeners {
    /// Binds the addresses of one specification. `localhost` has two addresses; a port that the
    /// kernel chooses is the same for both and for all workers.
    fn bind_tcp(&mut self, word: &ListenSpec, resolved: &[(&ListenSpec, SocketAddr)]) -> Result<(), Error> {
        let mut chosen = None;
        for (_, address) in resolved.iter().filter(|(of, _)| std::ptr::eq(*of, word)) {
            let mut address = *address;
            if let (0, Some(port)) = (address.port(), chosen) {
                address.set_port(port);
            }
            let v6only = bind::needs_v6only(address, resolved);
            let sockets = bind::tcp(address, v6only, self.workers.len());
            let (sockets, address) = sockets.map_err(|error| failed(word, error))?;
            chosen = Some(address.port());
            self.addresses.push(ListenAddress::Tcp(address));
            for (worker, socket) in self.workers.iter_mut().zip(sockets) {
                worker.push(Listener::Tcp(socket));
            }
        }
        Ok(())
    }

    fn share(&mut self, word: &ListenSpec, listener: Listener, address: ListenAddress) -> Result<(), Error> {
        self.addresses.push(address);
        let (first, others) = self.workers.split_first_mut().expect("`listen` makes one worker at least");
        for worker in others {
            worker.push(listener.try_clone().map_err(|error| failed(word, error))?);
        }
        first.push(listener);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
