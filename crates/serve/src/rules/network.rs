//! Networks of client addresses as written in configurations: `192.0.2.0/24`, `2001:db8::/32`,
//! `::1`, `unix`.
//!
//! Does not own: how the client's address is determined.

use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses, or the clients of Unix sockets.
///
/// ```
/// use fathom_serve::rules::network::Network;
///
/// let network: Network = "192.0.2.0/24".parse().unwrap();
/// assert!(network.contains("192.0.2.7".parse().ok()) && !network.contains(None));
/// assert!("192.0.2.1/24".parse::<Network>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// The addresses with the same first `len` bits as `base`.
    Ip {
        /// The first address, in canonical form (an IPv4-mapped address of IPv6 is one of IPv4).
        base: IpAddr,
        /// The prefix length in bits: up to 32, or 128 for IPv6.
        len: u8,
    },
    /// Clients without an address.
    Unix,
}

impl Network {
    /// Returns whether the network contains a client with this address; clients of Unix sockets
    /// have none.
    #[must_use]
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        match (self, address.map(|address| address.to_canonical())) {
            (Self::Ip { base, len }, Some(address)) => {
                base.is_ipv4() == address.is_ipv4() && masked(address, *len) == bits(*base)
            }
            (Self::Unix, None) => true,
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let (address, len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
        let forms = || "expected a network like 192.0.2.0/24, 2001:db8::/32, ::1 or unix".to_owned();
        let base: IpAddr = address.parse().map_err(|_| forms())?;
        let width = width(base);
        let digits =
            |len: &str| len.bytes().all(|byte| byte.is_ascii_digit()).then(|| len.parse::<u8>().ok())?;
        let len = len.map_or(Some(width), digits).filter(|len| *len <= width).ok_or_else(forms)?;
        if masked(base, len) != bits(base) {
            return Err(format!("the address has bits set after the first {len}"));
        }
        // `::ffff:192.0.2.0/120` is `192.0.2.0/24`.
        let canonical = base.to_canonical();
        match (base.is_ipv6() && canonical.is_ipv4(), len.checked_sub(96)) {
            (true, Some(len)) => Ok(Self::Ip { base: canonical, len }),
            (true, None) => Err(forms()),
            (false, _) => Ok(Self::Ip { base, len }),
        }
    }
}

/// Returns the number of bits of an address of this family.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the address as a number, most significant bit first.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(address: IpAddr, len: u8) -> u128 {
    let behind = u128::MAX.checked_shr(len.into()).unwrap_or(0);
    bits(address) & !behind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().ok())
    }

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", ["192.0.2.0", "192.0.2.255"], ["192.0.3.0", "::c000:200"]),
            ("192.0.2.7", ["192.0.2.7", "::ffff:192.0.2.7"], ["192.0.2.6", "192.0.2.8"]),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
            ("::/0", ["::", "2001:db8::1"], ["10.0.0.1", "::ffff:10.0.0.1"]),
            ("2001:db8::/33", ["2001:db8::", "2001:db8:7fff::1"], ["2001:db8:8000::", "2001:db7::"]),
            ("::1", ["::1", "0:0::1"], ["::2", "127.0.0.1"]),
            ("::ffff:10.0.0.0/104", ["10.255.0.1", "::ffff:10.0.0.1"], ["11.0.0.0", "::a00:1"]),
        ] {
            inside.iter().for_each(|address| assert!(contains(network, address), "{network} {address}"));
            outside.iter().for_each(|address| assert!(!contains(network, address), "{network} {address}"));
            assert!(!contains(network, "unix"), "a client of a Unix socket has no address");
        }
        assert!(contains("unix", "unix") && !contains("unix", "127.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "a",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10/8",
            "::ffff:0.0.0.0/95",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        let refusal = "10.0.0.1/8".parse::<Network>().unwrap_err();
        assert_eq!(refusal, "the address has bits set after the first 8");
    }
}
