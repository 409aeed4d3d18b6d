//! Selects the site of a request by its `Host` or `:authority` (RFC 9110, section 7.2; RFC 3986,
//! section 3.2.2).
//!
//! Does not own: requests without a host, or with several.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::config::SiteConfig;
use crate::error::Error;

/// The longest DNS name in bytes; no site can have a longer name.
const NAME_BYTES_MAX: usize = 255;

/// The numbers of the sites by host name.
///
/// ```
/// use fathom_serve::config::SiteConfig;
/// use fathom_serve::rules::hosts::HostTable;
///
/// let site = |name: &str| SiteConfig { names: vec![name.to_owned()], ..SiteConfig::default() };
/// let table = HostTable::new(&[site("example.org"), site("*.example.org")])?;
/// assert_eq!(table.find(b"EXAMPLE.org:8080"), Some(1));
/// assert_eq!(table.find(b"www.example.org"), Some(2));
/// assert_eq!(table.find(b"example.net"), Some(HostTable::DEFAULT));
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostTable {
    exact: HashMap<Box<[u8]>, usize>,
    /// Sites of wildcard names, by the part after the `*.`.
    wildcards: HashMap<Box<[u8]>, usize>,
}

impl HostTable {
    /// The number of the default site, which serves all names that no other site has.
    pub const DEFAULT: usize = 0;

    /// Indexes the names of `sites`, which are numbered from 1.
    ///
    /// # Errors
    /// If a name is invalid or has a port, two sites share a name, or a site has no name.
    pub fn new(sites: &[SiteConfig]) -> Result<Self, Error> {
        let mut hosts = Self::default();
        for (at, site) in sites.iter().enumerate() {
            if site.names.is_empty() {
                return Err(Error::incomplete(
                    format!("host[{at}].names"),
                    "the site has no name; the default site is 'site'",
                ));
            }
            for (which, name) in site.names.iter().enumerate() {
                let added = hosts.add(name, at + 1);
                added.map_err(|cause| Error::configure(format!("host[{at}].names[{which}]"), cause))?;
            }
        }
        Ok(hosts)
    }

    /// Indexes the names that a site answers alone.
    ///
    /// # Errors
    /// If a name is invalid, has a port, or is there twice.
    pub(crate) fn of_names(names: &[String]) -> Result<Self, Error> {
        let mut hosts = Self::default();
        for (which, name) in names.iter().enumerate() {
            let added = hosts.add(name, Self::DEFAULT + 1);
            added.map_err(|cause| Error::configure(format!("site.names[{which}]"), cause))?;
        }
        Ok(hosts)
    }

    /// Returns whether `host` has one of the names, or is an address or a name of this machine. A
    /// name of others may lead here all the same: their page could then read what this server
    /// answers (DNS rebinding). A browser that was given an address asked for it itself.
    pub(crate) fn has(&self, host: &[u8]) -> bool {
        let Some(name) = name(host) else { return false };
        let is_address = std::str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok());
        let top = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        let is_own = is_address || name.starts_with(b"[") || top.eq_ignore_ascii_case(b"localhost");
        is_own || self.find(host).is_some_and(|number| number != Self::DEFAULT)
    }

    fn add(&mut self, text: &str, site: usize) -> Result<(), String> {
        let (map, text) = match text.strip_prefix("*.") {
            Some(parent) => (&mut self.wildcards, parent),
            None => (&mut self.exact, text),
        };
        let name = name(text.as_bytes())
            .filter(|name| name.len() == text.trim_end_matches('.').len() && !name.is_empty());
        let is_label = |label: &[u8]| label.iter().any(u8::is_ascii_alphanumeric);
        let is_whole =
            |name: &&[u8]| name.starts_with(b"[") || name.split(|byte| *byte == b'.').all(is_label);
        let name = name.filter(|name| !name.contains(&b'*')).filter(is_whole);
        let name = name.ok_or("not a host name: leave out scheme, port and path")?;
        match map.insert(name.to_ascii_lowercase().into(), site) {
            None => Ok(()),
            Some(_) => Err("another site has the same name".to_owned()),
        }
    }

    /// Returns the number of the site for `host`, the value of the header or the authority: 0 for
    /// the default site, else the index in the configuration plus one. An exact name has priority
    /// over a wildcard, and a longer wildcard over a shorter. `None` if `host` is malformed, which
    /// is answered with 400 (RFC 9112, section 3.2).
    #[must_use]
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        let name = name(host)?;
        if self.exact.is_empty() && self.wildcards.is_empty() {
            return Some(Self::DEFAULT);
        }
        let mut lower = [0; NAME_BYTES_MAX];
        let Some(lower) = lower.get_mut(..name.len()) else { return Some(Self::DEFAULT) };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        Some(self.exact.get(&*lower).copied().or_else(|| self.wildcards(lower)).unwrap_or(Self::DEFAULT))
    }

    fn wildcards(&self, mut name: &[u8]) -> Option<usize> {
        while let Some(dot) = name.iter().position(|byte| *byte == b'.') {
            name = name.get(dot + 1..)?;
            if let Some(site) = self.wildcards.get(name) {
                return Some(*site);
            }
        }
        None
    }
}

/// Returns the name in `host`, without the port and a trailing dot. An IPv6 address keeps its
/// brackets.
fn name(host: &[u8]) -> Option<&[u8]> {
    let end = match host.first() {
        Some(b'[') => host.iter().position(|byte| *byte == b']')? + 1,
        _ => host.iter().position(|byte| *byte == b':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at_checked(end)?;
    let is_name =
        if name.starts_with(b"[") { is_address(name) } else { name.iter().all(|byte| is_of_name(*byte)) };
    (is_name && is_port(port)).then(|| name.strip_suffix(b".").unwrap_or(name))
}

fn is_address(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    inner
        .and_then(|inner| std::str::from_utf8(inner).ok())
        .is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok())
}

/// Returns whether `text` is empty, or a colon and an optional port number.
fn is_port(text: &[u8]) -> bool {
    let Some(digits) = text.strip_prefix(b":") else { return text.is_empty() };
    let number = digits.iter().try_fold(0u32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        Some(number * 10 + digit).filter(|number| *number <= 65_535)
    });
    number.is_some()
}

/// Returns whether `byte` may occur in a `reg-name`.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_site_of_its_own_names_answers_these_and_those_of_this_machine() {
        let names = ["a.org", "*.b.org"].map(str::to_owned);
        let hosts = HostTable::of_names(&names).unwrap();
        let none = HostTable::of_names(&[]).unwrap();
        for own in [
            "localhost",
            "LOCALHOST:8080",
            "x.localhost.",
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]:8080",
            "192.0.2.7",
        ] {
            assert!(hosts.has(own.as_bytes()) && none.has(own.as_bytes()), "{own}");
        }
        for named in ["a.org", "A.org:8080", "a.org.", "x.b.org"] {
            assert!(hosts.has(named.as_bytes()) && !none.has(named.as_bytes()), "{named}");
        }
        for other in [
            "evil.org",
            "b.org",
            "a.org.evil.org",
            "127.0.0.1.evil.org",
            "localhost.evil.org",
            "1.2.3",
            "",
            "a b",
        ] {
            assert!(!hosts.has(other.as_bytes()), "{other}");
        }
        for invalid in ["http://a.org", "a:80", "", "*", "*.", ".a.org", "a..org", "*.*.org", "a*.org", "-"] {
            let error = HostTable::of_names(&["a".to_owned(), invalid.to_owned()]).unwrap_err();
            assert!(error.to_string().contains("site.names[1]"), "{error}");
        }
    }

    fn site(names: &[&str]) -> SiteConfig {
        SiteConfig { names: names.iter().map(|name| (*name).to_owned()).collect(), ..SiteConfig::default() }
    }

    fn hosts() -> HostTable {
        HostTable::new(&[
            site(&["a.example", "[::1]"]),
            site(&["*.example", "B.Example."]),
            site(&["*.deep.example"]),
        ])
        .unwrap()
    }

    #[test]
    fn a_name_goes_before_a_wildcard_and_that_before_the_default() {
        for (host, expected) in [
            ("a.example", 1),
            ("A.EXAMPLE", 1),
            ("a.example:8080", 1),
            ("a.example.", 1),
            ("a.example.:80", 1),
            ("a.example:", 1),
            ("[::1]", 1),
            ("[::1]:80", 1),
            ("b.example", 2),
            ("x.example", 2),
            ("x.y.example", 2),
            ("x.deep.example", 3),
            ("deep.example", 2),
            ("example", 0),
            ("aa.examples", 0),
            ("127.0.0.1:80", 0),
            ("", 0),
            (".", 0),
        ] {
            assert_eq!(hosts().find(host.as_bytes()), Some(expected), "{host}");
        }
        assert_eq!(hosts().find(&[b'a'; 300]), Some(0));
    }

    #[test]
    fn malformed_hosts_are_refused() {
        for host in [
            "a b",
            "a/b",
            "a:b",
            "a:99999",
            "a:80:80",
            "::1",
            "[::1",
            "[::1]x",
            "[a]",
            "[]",
            "u@a",
            "a\\b",
            "a?b",
            "a#b",
            "é",
            "a\0",
            "[::1%eth0]",
        ] {
            assert_eq!(hosts().find(host.as_bytes()), None, "{host}");
            assert_eq!(HostTable::default().find(host.as_bytes()), None, "{host}");
        }
    }

    #[test]
    fn mistakes_are_refused_with_their_key() {
        for (sites, expected) in [
            (vec![site(&[])], "host[0].names"),
            (vec![site(&["a"]), site(&["b", "A."])], "host[1].names[1]"),
            (vec![site(&["a:80"])], "host[0].names[0]"),
            (vec![site(&["http://a"])], "host[0].names[0]"),
            (vec![site(&["*."])], "host[0].names[0]"),
            (vec![site(&[""])], "host[0].names[0]"),
        ] {
            assert_eq!(HostTable::new(&sites).unwrap_err().thing(), expected);
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(1000))]

        #[test]
        fn a_site_is_always_one_of_those_there_are(host in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(hosts().find(&host).is_none_or(|site| site <= 3));
        }

        #[test]
        fn neither_case_nor_port_matter(labels in prop::collection::vec("[a-z]{1,4}", 1..4), port in any::<u16>()) {
            let name = format!("{}.example", labels.join("."));
            let loud = format!("{}:{port}", name.to_uppercase());
            prop_assert_eq!(hosts().find(loud.as_bytes()), hosts().find(name.as_bytes()));
        }
    }
}
