//! The address of a client behind proxies: the trusted neighbours, and the address that they name
//! (`Forwarded`, `X-Forwarded-For`, the PROXY protocol).
//!
//! A client can send any of these headers itself. So only the configured neighbours are trusted, in
//! the one configured form. Of a list only the part written by trusted neighbours counts: it is
//! read from its end, up to the first address that is no proxy's.
//!
//! Does not own: reading the connection, and the uses of an address.

mod header;
mod protocol;

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use crate::config;
use crate::config::words::AddressSource;
use crate::error::Error;
use crate::rules::network::Network;

pub use header::{forwarded, x_forwarded_for};
pub use protocol::{HEADER_BYTES_MAX, ProxyHeader, parse};

/// A parser for the addresses in a header's value; `None` for an entry that is no address.
type AddressParser = fn(&[u8]) -> Vec<Option<IpAddr>>;

/// The proxies that are trusted.
#[derive(Debug)]
pub(crate) struct TrustedProxies {
    networks: Vec<Network>,
    source: AddressSource,
}

impl TrustedProxies {
    /// Compiles the proxies of a configuration; `None` if it has none.
    ///
    /// # Errors
    /// If an address is invalid; the error names its key.
    pub(crate) fn new(config: &config::ProxyConfig) -> Result<Option<Self>, Error> {
        let source = config.source.unwrap_or(AddressSource::XForwardedFor);
        let named = |(at, text): (usize, &String)| {
            text.parse::<Network>()
                .map_err(|error| Error::configure(format!("proxies.addresses[{at}]"), error))
        };
        let networks: Vec<_> = config.addresses.iter().enumerate().map(named).collect::<Result<_, _>>()?;
        if networks.is_empty() && config.source.is_some() {
            return Err(Error::incomplete("proxies.source", "requires 'addresses': no proxy is trusted"));
        }
        Ok((!networks.is_empty()).then_some(Self { networks, source }))
    }

    /// Returns whether the neighbour at `address` is trusted; a neighbour on a Unix socket has no
    /// address.
    pub(crate) fn trusts(&self, address: Option<SocketAddr>) -> bool {
        self.contains(address.map(|address| address.ip()))
    }

    fn contains(&self, address: Option<IpAddr>) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns whether connections of proxies begin with a header of the PROXY protocol.
    pub(crate) fn use_proxy_protocol(&self) -> bool {
        self.source == AddressSource::Protocol
    }

    /// Returns the address of the client of a request that a proxy sent; `None` if the proxy does
    /// not name it.
    pub(crate) fn client(&self, fields: &HeaderMap) -> Option<IpAddr> {
        let (name, read): (_, AddressParser) = match self.source {
            AddressSource::XForwardedFor => ("x-forwarded-for", x_forwarded_for),
            AddressSource::Forwarded => ("forwarded", forwarded),
            AddressSource::Protocol => return None,
        };
        let mut client = None;
        // Each proxy appends: the last header comes from the nearest proxy.
        let values = fields.get_all(name).iter().rev();
        for address in values.flat_map(|value| read(value.as_bytes()).into_iter().rev()) {
            // Entries before one that cannot be parsed were not written by a trusted proxy.
            let Some(address) = address else { return client };
            client = Some(address);
            if !self.contains(Some(address)) {
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
    use crate::config::words::Word;

    fn proxies(source: &str) -> TrustedProxies {
        let addresses = ["10.0.0.0/8", "::1", "unix"].map(str::to_owned).to_vec();
        let config = config::ProxyConfig { addresses, source: AddressSource::from_word(source) };
        TrustedProxies::new(&config).unwrap().unwrap()
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
        assert!(proxies.trusts(Some("10.1.2.3:4".parse().unwrap())) && proxies.trusts(None));
        assert!(proxies.trusts(Some("[::ffff:10.1.2.3]:4".parse().unwrap())));
        assert!(!proxies.trusts(Some("192.0.2.1:4".parse().unwrap())));
        assert!(TrustedProxies::new(&config::ProxyConfig::default()).unwrap().is_none());
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
        let source = Some(AddressSource::Forwarded);
        for (addresses, key) in
            [(vec!["10.0.0.0/40".to_owned()], "proxies.addresses[0]"), (vec![], "proxies.source")]
        {
            let config = config::ProxyConfig { addresses, source };
            assert_eq!(TrustedProxies::new(&config).unwrap_err().thing(), key);
        }
    }
}
