//! The address of a client behind proxies: which neighbours are trusted, and the address that they
//! tell (`Forwarded`, `X-Forwarded-For`, the PROXY protocol).
//!
//! A client can send any of these itself, so only the neighbours that the configuration names are
//! trusted, in the one form that it names. Of a list only the part that trusted neighbours wrote
//! counts: the list is read from its end, up to the first address that is no proxy's.
//!
//! Does not own: where bytes come from, and the uses of an address.

mod header;
mod protocol;

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use crate::config;
use crate::error::Error;
use crate::rules::network::Network;

pub use header::{forwarded, x_forwarded_for};
pub use protocol::{HEADER_BYTES_MAX, Parsed, parse};

/// The values of `proxies.source`.
pub const SOURCES: &[&str] = &["x-forwarded-for", "forwarded", "proxy-protocol"];

/// The addresses in the value of a header; `None` for an entry that is no address.
type Read = fn(&[u8]) -> Vec<Option<IpAddr>>;

/// The form in which proxies tell the address of their client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    XForwardedFor,
    Forwarded,
    Protocol,
}

/// The proxies that are trusted.
#[derive(Debug)]
pub(crate) struct Proxies {
    networks: Vec<Network>,
    source: Source,
}

impl Proxies {
    /// Compiles the proxies of a configuration; `None` if it has none.
    ///
    /// # Errors
    /// If an address or the source makes no sense; the error names its key.
    pub(crate) fn new(config: &config::Proxies) -> Result<Option<Self>, Error> {
        let source = match config.source.as_deref() {
            None | Some("x-forwarded-for") => Source::XForwardedFor,
            Some("forwarded") => Source::Forwarded,
            Some("proxy-protocol") => Source::Protocol,
            Some(other) => {
                let text = format!("'{}' is none of {}", other.escape_default(), SOURCES.join(", "));
                return Err(Error::configure("proxies.source", text));
            }
        };
        let named = |(at, text): (usize, &String)| {
            text.parse::<Network>()
                .map_err(|error| Error::configure(format!("proxies.addresses[{at}]"), error))
        };
        let networks: Vec<_> = config.addresses.iter().enumerate().map(named).collect::<Result<_, _>>()?;
        Ok((!networks.is_empty()).then_some(Self { networks, source }))
    }

    /// Returns whether the neighbour at `address` is trusted; a neighbour on a Unix socket has
    /// none.
    pub(crate) fn trust(&self, address: Option<SocketAddr>) -> bool {
        self.are_at(address.map(|address| address.ip()))
    }

    fn are_at(&self, address: Option<IpAddr>) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns whether connections of proxies begin with a header of the PROXY protocol.
    pub(crate) fn speak_protocol(&self) -> bool {
        self.source == Source::Protocol
    }

    /// Returns the address of the client of a request that a proxy sent; `None` if the proxy does
    /// not tell.
    pub(crate) fn client(&self, fields: &HeaderMap) -> Option<IpAddr> {
        let (name, read): (_, Read) = match self.source {
            Source::XForwardedFor => ("x-forwarded-for", x_forwarded_for),
            Source::Forwarded => ("forwarded", forwarded),
            Source::Protocol => return None,
        };
        let mut client = None;
        // Each proxy appends: the last header is the nearest one's.
        let values = fields.get_all(name).iter().rev();
        for address in values.flat_map(|value| read(value.as_bytes()).into_iter().rev()) {
            // Entries before one that cannot be parsed were not written by a trusted proxy.
            let Some(address) = address else { return client };
            client = Some(address);
            if !self.are_at(Some(address)) {
                return client;
            }
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn proxies(source: &str) -> Proxies {
        let addresses = ["10.0.0.0/8", "::1", "unix"].map(str::to_owned).to_vec();
        let config = config::Proxies { addresses, source: Some(source.to_owned()) };
        Proxies::new(&config).unwrap().unwrap()
    }

    #[track_caller]
    fn client(source: &str, name: &'static str, values: &[&'static str]) -> String {
        let mut fields = HeaderMap::new();
        for value in values {
            fields.append(name, HeaderValue::from_static(value));
        }
        proxies(source).client(&fields).map_or_else(String::new, |address| address.to_string())
    }

    #[test]
    fn only_named_neighbours_are_trusted() {
        let proxies = proxies("forwarded");
        assert!(proxies.trust(Some("10.1.2.3:4".parse().unwrap())) && proxies.trust(None));
        assert!(proxies.trust(Some("[::ffff:10.1.2.3]:4".parse().unwrap())));
        assert!(!proxies.trust(Some("192.0.2.1:4".parse().unwrap())));
        assert!(Proxies::new(&config::Proxies::default()).unwrap().is_none());
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxys() {
        for (values, expected) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1, 10.0.0.1,10.0.0.2"], "192.0.2.1"),
            (&["198.51.100.9", "192.0.2.1", "10.0.0.1"], "192.0.2.1"),
            (&["10.0.0.3, 10.0.0.1"], "10.0.0.3"),
            (&["nonsense, 10.0.0.1"], "10.0.0.1"),
            (&["192.0.2.1, nonsense"], ""),
            (&["192.0.2.1, "], ""),
            (&[""], ""),
            (&[], ""),
            (&["[2001:db8::1]:443, ::1"], "2001:db8::1"),
        ] {
            assert_eq!(client("x-forwarded-for", "x-forwarded-for", values), expected, "{values:?}");
        }
        assert_eq!(
            client("forwarded", "forwarded", &["for=192.0.2.1;proto=https, for=\"[::1]:4\""]),
            "192.0.2.1"
        );
        assert_eq!(
            client("forwarded", "forwarded", &["for=192.0.2.1, for=_hidden, for=10.0.0.1"]),
            "10.0.0.1"
        );
        assert_eq!(client("forwarded", "forwarded", &["for=192.0.2.1", "for=\"10.0.0.1"]), "");
        assert_eq!(client("forwarded", "x-forwarded-for", &["192.0.2.1"]), "", "the other header");
        assert_eq!(client("proxy-protocol", "x-forwarded-for", &["192.0.2.1"]), "");
    }

    #[test]
    fn mistakes_have_their_key() {
        for (address, source, key) in
            [("10.0.0.0/40", None, "proxies.addresses[0]"), ("unix", Some("x-real-ip"), "proxies.source")]
        {
            let config =
                config::Proxies { addresses: vec![address.to_owned()], source: source.map(str::to_owned) };
            assert_eq!(Proxies::new(&config).unwrap_err().thing(), key);
        }
    }
}
