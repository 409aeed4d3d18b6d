//! TCP: what a word resolves to, and sockets that share an address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::{BACKLOG, Word};

/// The addresses of all TCP words.
pub(super) fn resolve(words: &[Word]) -> Vec<(&Word, SocketAddr)> {
    words.iter().flat_map(|word| addresses(word).into_iter().map(move |address| (word, address))).collect()
}

/// Where the kernel has no IPv6, the names that mean both families mean IPv4.
fn addresses(word: &Word) -> Vec<SocketAddr> {
    let has_v6 = |ip: Ipv6Addr| bound((ip, 0).into(), true, false).is_ok();
    match *word {
        Word::Tcp(address) => vec![address],
        Word::Localhost(port) => {
            let v6 = has_v6(Ipv6Addr::LOCALHOST).then(|| (Ipv6Addr::LOCALHOST, port).into());
            [(Ipv4Addr::LOCALHOST, port).into()].into_iter().chain(v6).collect()
        }
        Word::All(port) if has_v6(Ipv6Addr::UNSPECIFIED) => vec![(Ipv6Addr::UNSPECIFIED, port).into()],
        Word::All(port) => vec![(Ipv4Addr::UNSPECIFIED, port).into()],
        Word::Unix(_) | Word::Abstract(_) | Word::Systemd => Vec::new(),
    }
}

/// Whether `address` has to leave IPv4 alone: `[::]` takes it along (whatever `net.ipv6.bindv6only` says), unless an address of IPv4
/// with the same port was asked for as well.
pub(super) fn needs_v6only(address: SocketAddr, resolved: &[(&Word, SocketAddr)]) -> bool {
    let same_port = |(_, other): &(&Word, SocketAddr)| other.is_ipv4() && other.port() == address.port();
    address.port() != 0 && resolved.iter().any(same_port)
}

/// Sockets that listen on one address, and the address with the port that it is.
pub(super) fn tcp(
    address: SocketAddr,
    v6only: bool,
    count: usize,
) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    // SO_REUSEPORT would also let in a second server of the same user, and each would get half of the connections. Without it the
    // kernel says that the address is taken.
    drop(bound(address, v6only, false)?);
    let mut sockets = Vec::new();
    let mut address = address;
    for _ in 0..count {
        let socket = TcpListener::from(bound(address, v6only, true)?);
        address = socket.local_addr()?;
        sockets.push(socket);
    }
    // Last: no connection comes before there is somebody for all of them.
    for socket in &sockets {
        listen(socket, BACKLOG)?;
    }
    Ok((sockets, address))
}

fn bound(address: SocketAddr, v6only: bool, shared: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, v6only)?;
    }
    bind(&socket, &address)?;
    Ok(socket)
}
