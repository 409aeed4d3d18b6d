//! The PROXY protocol, versions 1 and 2 (haproxy's `proxy-protocol.txt`): the header at the start
//! of a proxy's connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The signature of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const VERSION_1: &[u8] = b"PROXY ";
/// The longest line of version 1, with its line end, in bytes.
const LINE_BYTES: usize = 107;
/// The bytes of the fixed part of version 2: signature, command, family, length.
const FIXED_BYTES: usize = 16;
/// The longest accepted header, in bytes: addresses, and the extensions for encryption and host
/// names.
pub const HEADER_BYTES_MAX: usize = 4 << 10;

/// The result of parsing the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// More bytes are needed.
    Incomplete,
    /// The bytes are no header, or the header is longer than [`HEADER_BYTES_MAX`].
    Malformed,
    /// A complete header.
    Complete {
        /// The length of the header in bytes.
        len: usize,
        /// The client; `None` if the proxy speaks for itself, or for a client without an address.
        client: Option<SocketAddr>,
    },
}

/// Parses the header at the start of `bytes`.
///
/// ```
/// use fathom_serve::proxies::{ProxyHeader, parse};
///
/// let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n";
/// let client = "192.0.2.1:1234".parse().ok();
/// assert_eq!(parse(header), ProxyHeader::Complete { len: header.len(), client });
/// assert_eq!(parse(&header[..10]), ProxyHeader::Incomplete);
/// assert_eq!(parse(b"GET / HTTP/1.1\r\n"), ProxyHeader::Malformed);
/// ```
#[must_use]
pub fn parse(bytes: &[u8]) -> ProxyHeader {
    let begins = |with: &[u8]| bytes.starts_with(with) || with.starts_with(bytes);
    if begins(SIGNATURE) {
        binary(bytes)
    } else if begins(VERSION_1) {
        line(bytes)
    } else {
        ProxyHeader::Malformed
    }
}

fn line(bytes: &[u8]) -> ProxyHeader {
    let most = bytes.get(..LINE_BYTES).unwrap_or(bytes);
    let Some(end) = most.windows(2).position(|two| two == b"\r\n") else {
        return if bytes.len() < LINE_BYTES { ProxyHeader::Incomplete } else { ProxyHeader::Malformed };
    };
    let text = most.get(VERSION_1.len()..end).and_then(|text| std::str::from_utf8(text).ok());
    match text.and_then(client) {
        Some(client) => ProxyHeader::Complete { len: end + 2, client },
        None => ProxyHeader::Malformed,
    }
}

/// Parses the words after `PROXY`; `None` if they are malformed.
fn client(text: &str) -> Option<Option<SocketAddr>> {
    let mut words = text.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let [from, to, from_port, to_port] = [words.next()?, words.next()?, words.next()?, words.next()?];
    let (from, to): (IpAddr, IpAddr) = (from.parse().ok()?, to.parse().ok()?);
    let fits = |address: IpAddr| match family {
        "TCP4" => address.is_ipv4(),
        "TCP6" => address.is_ipv6(),
        _ => false,
    };
    let port =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u16>().ok())?;
    let (from_port, _) = (port(from_port)?, port(to_port)?);
    (fits(from) && fits(to) && words.next().is_none()).then(|| Some(SocketAddr::new(from, from_port)))
}

fn binary(bytes: &[u8]) -> ProxyHeader {
    let Some([command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED_BYTES) else {
        return ProxyHeader::Incomplete;
    };
    let len = FIXED_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    if len > HEADER_BYTES_MAX {
        return ProxyHeader::Malformed;
    }
    let Some(body) = bytes.get(FIXED_BYTES..len) else { return ProxyHeader::Incomplete };
    let client = match (command, family) {
        // LOCAL: the proxy speaks for itself, as in a health check.
        (0x20, _) => Ok(None),
        (0x21, 0x11) => {
            source::<4>(body, 12).map(|(address, port)| Some((Ipv4Addr::from(address).into(), port)))
        }
        (0x21, 0x21) => {
            source::<16>(body, 36).map(|(address, port)| Some((Ipv6Addr::from(address).into(), port)))
        }
        // Unspecified protocols, datagrams and Unix sockets: no client address.
        (0x21, 0x00 | 0x12 | 0x22 | 0x31 | 0x32) => Ok(None),
        _ => Err(()),
    };
    match client {
        Ok(client) => ProxyHeader::Complete {
            len,
            client: client.map(|(address, port)| SocketAddr::new(address, port)),
        },
        Err(()) => ProxyHeader::Malformed,
    }
}

/// Parses the source address of `N` bytes and the source port, where the addresses and ports take
/// `all` bytes.
fn source<const N: usize>(body: &[u8], all: usize) -> Result<([u8; N], u16), ()> {
    let body = body.get(..all).ok_or(())?;
    let address = body.first_chunk::<N>().ok_or(())?;
    let port = body.get(2 * N..).and_then(|ports| ports.first_chunk::<2>()).ok_or(())?;
    Ok((*address, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, client: Option<&str>) -> ProxyHeader {
        ProxyHeader::Complete { len, client: client.map(|client| client.parse().unwrap()) }
    }

    fn second(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[command, family], &len, body].concat()
    }

    /// Checks that `bytes` are a complete header, that no shorter prefix is, and that further bytes
    /// do not change the result.
    #[track_caller]
    fn check(bytes: &[u8], client: Option<&str>) {
        let expected = header(bytes.len(), client);
        assert_eq!(parse(bytes), expected);
        assert_eq!(parse(&[bytes, b"GET / HTTP/1.1"].concat()), expected);
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), ProxyHeader::Incomplete, "{end} bytes");
        }
    }

    #[test]
    fn lines_of_version_1_are_read() {
        check(b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n", Some("192.0.2.1:56324"));
        check(b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", Some("[2001:db8::1]:1"));
        check(b"PROXY UNKNOWN\r\n", None);
        check(b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None);
    }

    #[test]
    fn headers_of_version_2_are_read() {
        let four = [192, 0, 2, 1, 10, 0, 0, 1, 0xdc, 4, 1, 0xbb];
        check(&second(0x21, 0x11, &four), Some("192.0.2.1:56324"));
        check(&second(0x21, 0x11, &[&four[..], b"\x04\0\x01x"].concat()), Some("192.0.2.1:56324"));
        let six =
            [&Ipv6Addr::LOCALHOST.octets()[..], &Ipv6Addr::UNSPECIFIED.octets(), &[0, 80, 0, 81]].concat();
        check(&second(0x21, 0x21, &six), Some("[::1]:80"));
        check(&second(0x20, 0x00, b""), None);
        check(&second(0x20, 0x11, &four), None);
        check(&second(0x21, 0x31, &[0; 216]), None);
        check(&second(0x21, 0x00, b"anything"), None);
    }

    #[test]
    fn anything_else_is_malformed() {
        let long = [b"PROXY UNKNOWN ", &[b'x'; 100][..]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXY TCP4 192.0.2.1 10.0.0.1 56324\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443 1\r\n",
            b"PROXY TCP4 ::1 ::1 1 1\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 +1 443\r\n",
            b"PROXY TCP4 192.0.2.1 10.0.0.1 65536 443\r\n",
            b"PROXY  TCP4 192.0.2.1 10.0.0.1 1 443\r\n",
            b"PROXY tcp4 192.0.2.1 10.0.0.1 1 443\r\n",
            b"PROXY \xff\r\n",
            b"\x16\x03\x01",
            &long,
            &second(0x21, 0x11, &[0; 11]),
            &second(0x21, 0x21, &[0; 35]),
            &second(0x11, 0x11, &[0; 12]),
            &second(0x22, 0x11, &[0; 12]),
            &second(0x21, 0x13, &[0; 12]),
            &second(0x21, 0x11, &[0; HEADER_BYTES_MAX]),
        ] {
            assert_eq!(parse(bytes), ProxyHeader::Malformed, "{}", bytes.escape_ascii());
        }
    }
}
