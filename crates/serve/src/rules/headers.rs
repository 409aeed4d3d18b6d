//! Response headers by path: the preset of security headers, then the `Cache-Control` rules, then
//! the header rules. A later rule overrides an earlier one.
//!
//! Does not own: headers that are computed from the file and the request, which no rule may set.

use http::header::{self, HeaderName, HeaderValue};

use super::glob::Glob;
use crate::config::SiteConfig;
use crate::error::Error;

/// Headers that no rule may set or remove: they frame the message, or must agree with the body.
const FIXED: [HeaderName; 14] = [
    header::ALLOW,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::DATE,
    HeaderName::from_static("keep-alive"),
    header::LOCATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::VARY,
];
/// Headers that a rule may remove but not set, as only the computed value is correct.
const COMPUTED: [HeaderName; 4] =
    [header::ACCEPT_RANGES, header::ETAG, header::LAST_MODIFIED, header::WWW_AUTHENTICATE];

/// The preset of security headers. Pages may still load scripts, styles and frames from anywhere.
/// Other origins may not frame the pages, and injected markup may not change their base URL or load
/// plugins.
const PRESET: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'self'; base-uri 'self'; object-src 'self'"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
];
/// HSTS for one year, without subdomains, for which the site may not decide (RFC 6797, section
/// 6.1).
const STRICT_TRANSPORT: &str = "max-age=31536000";

/// The changes to the headers of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// Headers to set, each once, replacing existing values.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Headers to remove.
    pub remove: Vec<HeaderName>,
}

impl HeaderChanges {
    fn put(&mut self, name: &HeaderName, value: Option<&HeaderValue>) {
        self.set.retain(|(known, _)| known != name);
        self.remove.retain(|known| known != name);
        match value {
            Some(value) => self.set.push((name.clone(), value.clone())),
            None => self.remove.push(name.clone()),
        }
    }
}

/// The header rules of a site.
#[derive(Clone, Debug, Default)]
pub struct HeaderRules {
    preset: Vec<(HeaderName, HeaderValue)>,
    rules: Vec<CompiledHeaderRule>,
}

/// The changes for the paths of one glob; a header without a value is removed.
#[derive(Clone, Debug)]
struct CompiledHeaderRule {
    path: Glob,
    /// Whether errors have the headers, too.
    always: bool,
    set: Vec<(HeaderName, Option<HeaderValue>)>,
}

impl HeaderRules {
    /// Compiles the rules of `site`, whose key is `key`. `tls` says whether its responses are
    /// encrypted: HSTS is sent only then.
    ///
    /// # Errors
    /// If a glob, a name or a value is invalid, or a rule may not set the header.
    pub fn new(site: &SiteConfig, key: &str, tls: bool) -> Result<Self, Error> {
        let mut rules = Vec::new();
        for (at, rule) in site.cache_control.iter().enumerate() {
            let key = format!("{key}.cache-control[{at}]");
            let path = glob(&rule.path, &key)?;
            let value =
                value(&rule.value).map_err(|cause| Error::configure(format!("{key}.value"), cause))?;
            let set = vec![(header::CACHE_CONTROL, Some(value))];
            rules.push(CompiledHeaderRule { path, always: rule.always, set });
        }
        for (at, rule) in site.headers.iter().enumerate() {
            let key = format!("{key}.headers[{at}]");
            let path = glob(&rule.path, &key)?;
            let set = rule.set.iter().map(|(name, value)| {
                change(name, value).map_err(|cause| Error::configure(format!("{key}.set.{name}"), cause))
            });
            let set = set.collect::<Result<_, _>>()?;
            rules.push(CompiledHeaderRule { path, always: rule.always, set });
        }
        Ok(Self { preset: preset(site.security_headers, tls), rules })
    }

    /// Returns whether no rule changes any response.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.preset.is_empty() && self.rules.is_empty()
    }

    /// Returns the changes for responses of `path`, which is decoded and begins with `/`. They
    /// depend on the path alone, so they can be cached with the file. A `Content-Type` among them
    /// is for the file, not for a multipart response or an error page.
    #[must_use]
    pub fn resolve(&self, path: &[u8]) -> HeaderChanges {
        self.changes(path, |_| true)
    }

    /// Returns the changes for errors (4xx, 5xx) of `path`: of the preset and of the rules that
    /// always apply. The other rules are about a file: one that is missing for a moment must not be
    /// missing in caches for a year.
    #[must_use]
    pub fn resolve_error(&self, path: &[u8]) -> HeaderChanges {
        self.changes(path, |rule| rule.always)
    }

    fn changes(&self, path: &[u8], applies: impl Fn(&CompiledHeaderRule) -> bool) -> HeaderChanges {
        let mut resolved = HeaderChanges { set: self.preset.clone(), remove: Vec::new() };
        for rule in self.rules.iter().filter(|rule| applies(rule) && rule.path.matches(path)) {
            rule.set.iter().for_each(|(name, value)| resolved.put(name, value.as_ref()));
        }
        resolved
    }
}

fn preset(wanted: bool, tls: bool) -> Vec<(HeaderName, HeaderValue)> {
    let strict = tls.then_some((header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT));
    let all = PRESET.into_iter().chain(strict).filter(|_| wanted);
    all.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}

fn glob(pattern: &str, key: &str) -> Result<Glob, Error> {
    Glob::new(pattern).map_err(|cause| Error::configure(format!("{key}.path"), cause))
}

fn change(name: &str, text: &str) -> Result<(HeaderName, Option<HeaderValue>), String> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "not a valid header name")?;
    if FIXED.contains(&name) {
        return Err("the server sets this header".to_owned());
    }
    if text.trim().is_empty() {
        return Ok((name, None));
    }
    if COMPUTED.contains(&name) {
        return Err("the server sets this header; it can only be removed, by an empty value".to_owned());
    }
    value(text).map(|value| (name, Some(value)))
}

fn value(text: &str) -> Result<HeaderValue, String> {
    match text.trim() {
        "" => Err("the value is empty".to_owned()),
        text => HeaderValue::from_str(text)
            .ok()
            .filter(|_| text.is_ascii())
            .ok_or_else(|| "expected one line of ASCII".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CacheControlRule, HeaderRule};

    fn rule(path: &str, set: &[(&str, &str)]) -> HeaderRule {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HeaderRule { path: path.to_owned(), set, always: false }
    }

    fn cache(path: &str, value: &str) -> CacheControlRule {
        CacheControlRule { path: path.to_owned(), value: value.to_owned(), always: false }
    }

    fn shown(resolved: &HeaderChanges) -> String {
        let set = resolved.set.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let removed = resolved.remove.iter().map(|name| format!("-{name}"));
        set.chain(removed).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn the_last_rule_that_fits_wins() {
        let site = SiteConfig {
            cache_control: vec![cache("*", "no-cache"), cache("/assets/**", "max-age=60, immutable")],
            headers: vec![
                rule("*", &[("X-A", " 1 "), ("Server", "")]),
                rule("*.js", &[("x-a", "2")]),
                rule("/raw.js", &[("Cache-Control", ""), ("Server", "x")]),
            ],
            ..SiteConfig::default()
        };
        let rules = HeaderRules::new(&site, "site", false).unwrap();
        for (path, expected) in [
            ("/", "cache-control: no-cache | x-a: 1 | -server"),
            ("/assets/a.js", "cache-control: max-age=60, immutable | x-a: 2 | -server"),
            ("/raw.js", "x-a: 2 | server: x | -cache-control"),
        ] {
            assert_eq!(shown(&rules.resolve(path.as_bytes())), expected);
        }
    }

    #[test]
    fn errors_have_the_headers_of_rules_that_always_apply() {
        let always = HeaderRule { always: true, ..rule("/a/*", &[("X-A", "2"), ("Server", "")]) };
        let site = SiteConfig {
            cache_control: vec![cache("*", "max-age=60")],
            headers: vec![rule("*", &[("X-A", "1"), ("X-B", "1")]), always],
            ..SiteConfig::default()
        };
        let rules = HeaderRules::new(&site, "site", false).unwrap();
        assert_eq!(shown(&rules.resolve_error(b"/a/x")), "x-a: 2 | -server");
        assert_eq!(rules.resolve_error(b"/b"), HeaderChanges::default());
    }

    #[test]
    fn a_site_without_rules_has_none() {
        let rules = HeaderRules::new(&SiteConfig::default(), "site", true).unwrap();
        assert!(rules.is_empty());
        assert_eq!(rules.resolve(b"/"), HeaderChanges::default());
    }

    #[test]
    fn the_preset_can_be_overruled_and_is_strict_only_when_encrypted() {
        let headers = vec![rule("/embed/*", &[("X-Frame-Options", "")])];
        let site = SiteConfig { security_headers: true, headers, ..SiteConfig::default() };
        let rules = HeaderRules::new(&site, "site", true).unwrap();
        let all = rules.resolve(b"/");
        assert_eq!(all.set.len(), 6);
        assert!(shown(&all).contains("strict-transport-security: max-age=31536000"), "{all:?}");
        let embedded = rules.resolve(b"/embed/a");
        assert_eq!((embedded.set.len(), embedded.remove), (5, vec![header::X_FRAME_OPTIONS]));
        let plain = HeaderRules::new(&site, "site", false).unwrap();
        assert!(!plain.is_empty() && !shown(&plain.resolve(b"/")).contains("strict-transport"));
    }

    #[test]
    fn invalid_headers_are_refused_with_their_key() {
        for (set, expected) in [
            (("X A", "1"), "cannot use 'host[1].headers[0].set.X A': not a valid header name"),
            (("X-A", "1\r\nB: 2"), "cannot use 'host[1].headers[0].set.X-A': expected one line of ASCII"),
            (("X-A", "é"), "cannot use 'host[1].headers[0].set.X-A': expected one line of ASCII"),
            (
                ("Content-Length", "1"),
                "cannot use 'host[1].headers[0].set.Content-Length': the server sets this header",
            ),
            (("Vary", ""), "cannot use 'host[1].headers[0].set.Vary': the server sets this header"),
            (
                ("ETag", "1"),
                "cannot use 'host[1].headers[0].set.ETag': the server sets this header; it can only be removed, by an empty value",
            ),
        ] {
            let site = SiteConfig { headers: vec![rule("*", &[set])], ..SiteConfig::default() };
            assert_eq!(HeaderRules::new(&site, "host[1]", false).unwrap_err().to_string(), expected);
        }
        let site = SiteConfig { cache_control: vec![cache("*", " ")], ..SiteConfig::default() };
        let error = HeaderRules::new(&site, "site", false).unwrap_err();
        assert_eq!(error.to_string(), "cannot use 'site.cache-control[0].value': the value is empty");
        let site = SiteConfig { headers: vec![rule("[", &[])], ..SiteConfig::default() };
        let error = HeaderRules::new(&site, "site", false).unwrap_err();
        assert_eq!(error.thing(), "site.headers[0].path");
    }
}
