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

/// UDP sockets on the TCP addresses among `addresses`: one of each, which no other server shares.
#[cfg(feature = "http3")]
pub(crate) fn udp(addresses: &[super::Address]) -> Result<Vec<std::net::UdpSocket>, crate::error::Error> {
    let addresses = addresses.iter().filter_map(|address| match address {
        super::Address::Tcp(address) => Some(*address),
        _ => None,
    });
    let is_v4_of = |port| addresses.clone().any(|other| other.is_ipv4() && other.port() == port);
    let bind = |address: SocketAddr| {
        let socket = open(SocketType::DGRAM, address, is_v4_of(address.port()))?;
        bind(&socket, &address)?;
        Ok(socket.into())
    };
    let failed = |address, error: io::Error| super::failed(format_args!("{address} for HTTP/3 (UDP)"), error);
    addresses.clone().map(|address| bind(address).map_err(|error| failed(address, error))).collect()
}

fn bound(address: SocketAddr, v6only: bool, shared: bool) -> io::Result<OwnedFd> {
    let socket = open(SocketType::STREAM, address, v6only)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    bind(&socket, &address)?;
    Ok(socket)
}

fn open(kind: SocketType, address: SocketAddr, v6only: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, kind, flags, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, v6only)?;
    }
    Ok(socket)
}
