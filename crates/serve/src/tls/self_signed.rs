//! A self-signed certificate that the server generates for development: no authority has signed it,
//! and it is discarded when the server stops.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;

use crate::error::{Error, Op};

/// The lifetime: browsers refuse certificates that are valid for more than 398 days.
const LIFETIME: Duration = Duration::from_secs(397 * 24 * 3600);
/// The backdating of the certificate, for clients whose clocks are slow.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of addresses in the certificate, as all of them are sent to every client.
const ADDRESSES_MAX: usize = 64;

/// The certificate with its key, and a sentence about it for the log.
#[derive(Clone, Debug)]
pub(super) struct SelfSigned {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) note: String,
}

impl SelfSigned {
    /// Generates a certificate for `localhost`, the host name and the addresses of this machine.
    pub(super) fn generate(provider: &CryptoProvider) -> Result<Self, Error> {
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(Op::Start, "self-signed certificate", cause)
        };
        let names = names();
        let pair = KeyPair::generate().map_err(|error| failed(error.into()))?;
        let mut params = CertificateParams::new(names.clone()).map_err(|error| failed(error.into()))?;
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + LIFETIME).into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "fathom serve, self-signed");
        let certificate = params.self_signed(&pair).map_err(|error| failed(error.into()))?;
        let hexes = digest(&SHA256, certificate.der());
        let hexes: Vec<_> = hexes.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let note = format!(
            "self-signed certificate for {}, valid until this server stops; SHA-256 fingerprint: {}",
            names.join(", "),
            hexes.join(":")
        );
        let key = PrivateKeyDer::try_from(pair.serialize_der()).map_err(|error| failed(error.into()))?;
        let key = provider.key_provider.load_private_key(key).map_err(|error| failed(error.into()))?;
        Ok(Self { key: Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)), note })
    }
}

/// Returns the names and addresses of this machine.
fn names() -> Vec<String> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let host = read("/proc/sys/kernel/hostname").trim().to_ascii_lowercase();
    let is_name =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    addresses.extend(ipv4(&read("/proc/net/fib_trie")).into_iter().map(IpAddr::V4));
    addresses.extend(ipv6(&read("/proc/net/if_inet6")).into_iter().map(IpAddr::V6));
    let mut names = vec!["localhost".to_owned()];
    names.extend(Some(host).filter(|host| is_name && host != "localhost"));
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        let text = address.to_string();
        if !names.contains(&text) {
            names.push(text);
        }
    }
    names
}

/// Parses the local addresses from the kernel's routing trie (proc(5)): each address stands on a
/// line before the line of its route.
fn ipv4(trie: &str) -> Vec<Ipv4Addr> {
    let mut last = None;
    let mut found = Vec::new();
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(last.filter(|address| !found.contains(address)));
        }
    }
    found
}

/// Parses the addresses of interfaces (proc(5)), without link-local ones, which are usable only
/// with the name of their link.
fn ipv6(table: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let all = table.lines().filter_map(address).map(Ipv6Addr::from_bits);
    all.filter(|address| !address.is_unicast_link_local()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_kernels_tables() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\nLocal:\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
                    \x20       |-- 192.0.2.7\n           /32 host LOCAL\n        |-- 192.0.2.255\n           /32 link BROADCAST\n     |-- 192.0.2.7\n        /32 host LOCAL\n";
        let expected: Vec<Ipv4Addr> = ["127.0.0.1", "192.0.2.7"].map(|text| text.parse().unwrap()).into();
        assert_eq!(ipv4(trie), expected);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000000000000000000000007 02 40 00 80     eth0\n\
                     fe800000000000000000000000000001 02 40 20 80     eth0\nx\n";
        let expected: Vec<Ipv6Addr> = ["::1", "2001:db8::7"].map(|text| text.parse().unwrap()).into();
        assert_eq!(ipv6(table), expected);
        assert!(ipv4("").is_empty() && ipv6("").is_empty());
    }

    #[test]
    fn this_machine_has_its_loopback_addresses_once() {
        let names = names();
        for name in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{names:?}");
        }
    }
}
