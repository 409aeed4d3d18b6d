//! Selection of a certificate by host name, and the names in client certificates.
//!
//! Does not own: trust. A host name only selects one of the server's certificates, and a client's
//! chain was verified before.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;

/// The certificates for one name, with different types of keys.
type CertifiedKeys = Vec<Arc<CertifiedKey>>;

/// The certificates of a server by host name (RFC 6066, section 3). A client that names no host, or
/// an unknown one, gets the first.
#[derive(Debug)]
pub(super) struct CertificateResolver {
    first: Arc<CertifiedKey>,
    exact: HashMap<String, CertifiedKeys>,
    /// Certificates of wildcard names, by the part after the `*.`.
    wildcards: HashMap<String, CertifiedKeys>,
}

impl CertificateResolver {
    /// Indexes the certificates `first` and `others` by name.
    ///
    /// # Errors
    /// The index in `others` of the first certificate without a DNS name, which could never be
    /// selected.
    pub(super) fn new(first: Arc<CertifiedKey>, others: &[Arc<CertifiedKey>]) -> Result<Self, usize> {
        let mut names = Self { first: Arc::clone(&first), exact: HashMap::new(), wildcards: HashMap::new() };
        names.add(&first);
        match others.iter().position(|other| names.add(other) == 0) {
            Some(at) => Err(at),
            None => Ok(names),
        }
    }

    /// Indexes a certificate. Returns the number of its names.
    fn add(&mut self, key: &Arc<CertifiedKey>) -> usize {
        let names = key.cert.first().map(dns_names).unwrap_or_default();
        for name in &names {
            let (map, name) = match name.strip_prefix("*.") {
                Some(parent) => (&mut self.wildcards, parent),
                None => (&mut self.exact, name.as_str()),
            };
            map.entry(name.to_owned()).or_default().push(Arc::clone(key));
        }
        names.len()
    }

    /// Returns the certificates for `name`; a wildcard stands for one label (RFC 9525, section
    /// 6.3).
    fn find(&self, name: &str) -> Option<&CertifiedKeys> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcards = || self.wildcards.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(wildcards)
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let keys = hello.server_name().and_then(|name| self.find(name));
        let schemes = hello.signature_schemes();
        // Prefer a certificate whose type of key the client can verify.
        let fits = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let key = keys.and_then(|keys| keys.iter().find(fits).or(keys.first()));
        Some(Arc::clone(key.unwrap_or(&self.first)))
    }
}

fn dns_names(certificate: &CertificateDer<'static>) -> Vec<String> {
    let parsed = EndEntityCert::try_from(certificate);
    parsed.map(|cert| cert.valid_dns_names().map(str::to_ascii_lowercase).collect()).unwrap_or_default()
}

/// Returns the name of a client from its verified certificate chain: the common name of the
/// subject, or the first DNS name or URI.
pub(crate) fn client_name(chain: &[CertificateDer<'_>]) -> Option<String> {
    let certificate = EndEntityCert::try_from(chain.first()?).ok()?;
    let other =
        || certificate.valid_dns_names().chain(certificate.valid_uri_names()).next().map(str::to_owned);
    common_name(certificate.subject()).or_else(other)
}

/// Returns the last common name in a subject, the content of a Name (RFC 5280, section 4.1.2.4;
/// X.690 for the encoding).
fn common_name(mut subject: &[u8]) -> Option<String> {
    const SET: u8 = 0x31;
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    /// UTF8String, PrintableString, IA5String.
    const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
    /// 2.5.4.3.
    const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
    let mut found = None;
    while let Some((SET, mut attributes, rest)) = element(subject) {
        subject = rest;
        while let Some((SEQUENCE, attribute, rest)) = element(attributes) {
            attributes = rest;
            if let Some((OBJECT_IDENTIFIER, oid, value)) = element(attribute)
                && oid == COMMON_NAME
                && let Some((tag, text, [])) = element(value)
                && TEXTS.contains(&tag)
            {
                found = std::str::from_utf8(text).ok();
            }
        }
    }
    found.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Parses the first DER element. Returns its tag and content, and the rest. Names are shorter than
/// 64 KiB.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (len, rest) = match *rest {
        [len @ 0..=0x7f, ref rest @ ..] => (usize::from(len), rest),
        [0x81, len, ref rest @ ..] => (usize::from(len), rest),
        [0x82, high, low, ref rest @ ..] => (usize::from(high) << 8 | usize::from(low), rest),
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(common_name: Option<&str>, names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "x".repeat(300));
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().into()
    }

    #[test]
    fn a_client_is_called_by_its_common_name_or_another() {
        for (common_name, names, expected) in [
            (Some("alice"), &["a.example"][..], Some("alice")),
            (Some("José é"), &[], Some("José é")),
            (None, &["a.example", "b.example"], Some("a.example")),
            (None, &[], None),
        ] {
            assert_eq!(client_name(&[certificate(common_name, names)]).as_deref(), expected);
        }
        assert_eq!(client_name(&[]), None);
        assert_eq!(client_name(&[CertificateDer::from(vec![0x30, 0x82])]), None);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_have_a_name_or_none(bytes: Vec<u8>, tag in 0x30u8..0x32) {
            common_name(&bytes);
            common_name(&[&[tag, bytes.len().min(0x7f) as u8][..], &bytes].concat());
        }
    }
}
