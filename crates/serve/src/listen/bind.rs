//! TCP and UDP: resolution of listen specifications, and sockets that share an address.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::{BACKLOG, ListenSpec};

/// Returns the addresses of all TCP specifications.
pub(super) fn resolve(specs: &[ListenSpec]) -> Vec<(&ListenSpec, SocketAddr)> {
    specs.iter().flat_map(|word| addresses(word).into_iter().map(move |address| (word, address))).collect()
}

/// Returns the addresses of a specification. Without IPv6 in the kernel, forms for both families
/// resolve to IPv4 alone.
fn addresses(word: &ListenSpec) -> Vec<SocketAddr> {
    let has_v6 = |ip: Ipv6Addr| bound((ip, 0).into(), true, false).is_ok();
    match *word {
        ListenSpec::Tcp(address) => vec![address],
        ListenSpec::Localhost(port) => {
            let v6 = has_v6(Ipv6Addr::LOCALHOST).then(|| (Ipv6Addr::LOCALHOST, port).into());
            [(Ipv4Addr::LOCALHOST, port).into()].into_iter().chain(v6).collect()
        }
        ListenSpec::All(port) if has_v6(Ipv6Addr::UNSPECIFIED) => vec![(Ipv6Addr::UNSPECIFIED, port).into()],
        ListenSpec::All(port) => vec![(Ipv4Addr::UNSPECIFIED, port).into()],
        ListenSpec::Unix(_) | ListenSpec::Abstract(_) | ListenSpec::Systemd => Vec::new(),
    }
}

/// Returns whether a socket for `address` must be IPv6 only. `[::]` accepts IPv4 as well (whatever
/// `net.ipv6.bindv6only` says), unless an IPv4 address with the same port is configured, too.
pub(super) fn needs_v6only(address: SocketAddr, resolved: &[(&ListenSpec, SocketAddr)]) -> bool {
    let same_port =
        |(_, other): &(&ListenSpec, SocketAddr)| other.is_ipv4() && other.port() == address.port();
    address.port() != 0 && resolved.iter().any(same_port)
}

/// Opens `count` sockets that listen on one address. Returns them with the address and its actual
/// port.
pub(super) fn tcp(
    address: SocketAddr,
    v6only: bool,
    count: usize,
) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    // SO_REUSEPORT would let a second server of the same user share the port, and each would get
    // half of the connections. This bind without it fails if the address is taken.
    drop(bound(address, v6only, false)?);
    let mut sockets = Vec::new();
    let mut address = address;
    for _ in 0..count {
        let socket = TcpListener::from(bound(address, v6only, true)?);
        address = socket.local_addr()?;
        sockets.push(socket);
    }
    // Listen last: the kernel spreads connections over all sockets of the group from the start.
    for socket in &sockets {
        listen(socket, BACKLOG)?;
    }
    Ok((sockets, address))
}

/// Opens one UDP socket for each TCP address in `addresses`, which no other server can share.
#[cfg(feature = "http3")]
pub(crate) fn udp(
    addresses: &[super::ListenAddress],
) -> Result<Vec<std::net::UdpSocket>, crate::error::Error> {
    let addresses = addresses.iter().filter_map(|address| match address {
        super::ListenAddress::Tcp(address) => Some(*address),
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
