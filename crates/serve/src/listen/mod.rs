//! From the words of `--listen` to listening sockets, one list for each worker.
//!
//! Of a TCP address every worker has a socket of its own (SO_REUSEPORT), and the kernel spreads connections over them. What can be
//! opened only once, a Unix socket or one that was handed over by systemd, is shared: all workers accept from the same queue.
//! Does not own: accepting (TCP_NODELAY is set there), the environment: what it says comes in as [`Activation`].

mod bind;
mod inherited;
mod unix;
mod word;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

#[cfg(feature = "http3")]
pub(crate) use bind::udp;
pub use inherited::Activation;
pub use unix::SocketFile;
pub use word::{Address, Word};

use crate::error::{Error, Op};

/// Connections that may wait to be accepted; the kernel's own limit is `net.core.somaxconn`, which is 4096 too.
const BACKLOG: i32 = 4096;

/// Owner and group: a proxy in front is in the group.
const SOCKET_MODE: u32 = 0o660;

/// The permission of a Unix socket's file, from `socket-mode`.
pub fn socket_mode(text: Option<&str>) -> Result<u32, Error> {
    let Some(text) = text else { return Ok(SOCKET_MODE) };
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = digits.then(|| u32::from_str_radix(text, 8).ok()).flatten().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| invalid(format_args!("unix socket of mode {text}"), "it has to be 000 to 777"))
}

/// `thing` cannot be listened on.
fn failed(thing: impl std::fmt::Display, source: impl Into<std::io::Error>) -> Error {
    Error::new(Op::Listen, thing.to_string(), source.into())
}

/// `thing` is nothing that could be listened on.
fn invalid(thing: impl std::fmt::Display, why: &str) -> Error {
    Error::new(Op::Listen, thing.to_string(), why)
}

/// A listening socket that does not block.
#[derive(Debug)]
pub enum Listener {
    /// IPv4 or IPv6.
    Tcp(TcpListener),
    /// By path or by abstract name.
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

/// All that is listened on.
#[derive(Debug)]
pub struct Listening {
    /// For each worker, its listeners in the order of the words.
    pub workers: Vec<Vec<Listener>>,
    /// Where clients find them, with the ports that the kernel chose.
    pub addresses: Vec<Address>,
    /// The files of Unix sockets: they go when this is dropped.
    pub files: Vec<SocketFile>,
}

/// Binds all of `words` for so many workers, or none. `mode` is the permission of files of Unix sockets.
pub fn listen(
    words: &[Word],
    workers: usize,
    mode: u32,
    activation: Activation<'_>,
) -> Result<Listening, Error> {
    let workers = (0..workers.max(1)).map(|_| Vec::new()).collect();
    let mut listening = Listening { workers, addresses: Vec::new(), files: Vec::new() };
    let tcp = bind::resolve(words);
    for word in words {
        match word {
            Word::Tcp(_) | Word::Localhost(_) | Word::All(_) => listening.bind_tcp(word, &tcp)?,
            Word::Unix(path) => {
                let (listener, file) = unix::bind(path, mode)?;
                listening.files.push(file);
                listening.share(word, Listener::Unix(listener), Address::Unix(path.clone()))?;
            }
            Word::Abstract(name) => {
                let listener = unix::bind_abstract(name)?;
                listening.share(word, Listener::Unix(listener), Address::Abstract(name.clone()))?;
            }
            Word::Systemd => {
                for (listener, address) in inherited::take(activation)? {
                    listening.share(word, listener, address)?;
                }
            }
        }
    }
    Ok(listening)
}

impl Listening {
    /// `localhost` has two addresses; a port that the kernel chooses is the same for all of them and for all workers.
    fn bind_tcp(&mut self, word: &Word, resolved: &[(&Word, SocketAddr)]) -> Result<(), Error> {
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
            self.addresses.push(Address::Tcp(address));
            for (worker, socket) in self.workers.iter_mut().zip(sockets) {
                worker.push(Listener::Tcp(socket));
            }
        }
        Ok(())
    }

    fn share(&mut self, word: &Word, listener: Listener, address: Address) -> Result<(), Error> {
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
