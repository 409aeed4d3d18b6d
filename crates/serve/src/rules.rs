//! The rules of a site: compiled and checked once, and evaluated for each request or file.
//!
//! Owns: globs, networks, access, headers by path, redirects, rewrites, CORS, host names, mounts,
//! maintenance. Does not own: files, responses, and the order in which rules are evaluated.

pub mod access;
pub(crate) mod clean_urls;
pub mod cors;
pub(crate) mod entry_filter;
pub mod glob;
pub mod headers;
pub mod hosts;
pub mod maintenance;
pub mod mounts;
pub mod network;
pub mod route;

use std::sync::Arc;

use self::access::AccessRules;
use self::cors::CorsRules;
use self::headers::HeaderRules;
use self::maintenance::MaintenanceRules;
use self::route::{Redirects, Rewrites};
use crate::config::{Config, SiteConfig};
use crate::error::Error;

/// The rules of a site.
///
/// ```
/// use fathom_serve::Config;
/// use fathom_serve::rules::Rules;
///
/// let config = Config::from_toml(r#"
///     [site]
///     redirects = [{ from = "/old/**", to = "/new/$1", status = 301 }]
///     rewrites = [{ from = "/app/**", to = "/index.html" }]
///     headers = [{ path = "*.js", set = { X-Test = "1" } }]
///     deny = ["/private"]
/// "#)?;
/// let rules = Rules::new(&config.site, "site", false)?;
/// let (status, location) = rules.redirects.find(b"/old/a", None).unwrap();
/// assert!(status == 301 && location.unwrap().as_bytes().ends_with(b"new/a"));
/// assert_eq!(rules.rewrites.find(b"/app/x"), Some(b"/index.html".to_vec()));
/// assert_eq!(rules.headers.resolve(b"/a.js").set.last().unwrap().1, "1");
/// assert!(rules.access.denies(b"private/a") && !rules.access.denies(b"public"));
/// // An error names the key.
/// let config = Config::from_toml("[site]\nrewrites = [{ from = '[', to = '/' }]")?;
/// let error = Rules::new(&config.site, "site", false).unwrap_err();
/// assert_eq!(error.thing(), "site.rewrites[0].from");
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Access by path and by client address.
    pub access: Arc<AccessRules>,
    /// Headers by path.
    pub headers: HeaderRules,
    /// Redirects by path.
    pub redirects: Redirects,
    /// Rewrites by path.
    pub rewrites: Rewrites,
    /// Cross-origin requests (CORS).
    pub cors: Option<CorsRules>,
    /// Maintenance: 503 for all requests.
    pub maintenance: MaintenanceRules,
}

impl Rules {
    /// Compiles the rules of `site`, whose key is `key` (`site`, `host[0]`). `tls` says whether its
    /// responses are encrypted.
    ///
    /// # Errors
    /// If a rule is invalid; the error names its key.
    pub fn new(site: &SiteConfig, key: &str, tls: bool) -> Result<Self, Error> {
        Ok(Self {
            access: Arc::new(AccessRules::new(site, key)?),
            headers: HeaderRules::new(site, key, tls)?,
            redirects: Redirects::new(&site.redirects_below_base(), key)?,
            rewrites: Rewrites::new(&site.rewrites, key)?,
            cors: site.cors.as_ref().map(|cors| CorsRules::new(cors, key)).transpose()?,
            maintenance: MaintenanceRules::new(&site.maintenance, key)?,
        })
    }
}

/// Returns the sites of `config` with their keys, in the order of the numbers that
/// [`hosts::HostTable::find`] returns.
pub fn sites(config: &Config) -> impl Iterator<Item = (String, &SiteConfig)> {
    let others = config.host.iter().enumerate().map(|(at, site)| (format!("host[{at}]"), site));
    std::iter::once(("site".to_owned(), &config.site)).chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_says_its_key() {
        for (text, key) in [
            ("[[site.headers]]\npath = '['\nset = {}", "site.headers[0].path"),
            ("[[site.cache-control]]\npath = '*'\nvalue = \"a\\nb\"", "site.cache-control[0].value"),
            ("[[site.redirects]]\nfrom = '/a'\nto = 'b'", "site.redirects[0].to"),
            ("[[site.rewrites]]\nfrom = '/a'\nto = 'b'", "site.rewrites[0].to"),
            ("[site.cors]\ncredentials = true\norigins = ['*']", "site.cors.credentials"),
            ("[site.maintenance]\npage = 'a'", "site.maintenance.page"),
        ] {
            let config = Config::from_toml(text).unwrap();
            assert_eq!(Rules::new(&config.site, "site", false).unwrap_err().thing(), key, "{text}");
        }
    }

    #[test]
    fn sites_are_numbered_as_hosts_are() {
        let config = Config::from_toml(
            "[site]\nroot = 'd'\n[[host]]\nnames = ['a']\nroot = 'a'\n[[host]]\nnames = ['b']\nroot = 'b'",
        )
        .unwrap();
        let all: Vec<_> = sites(&config).collect();
        let keys: Vec<_> = all.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["site", "host[0]", "host[1]"]);
        let hosts = hosts::HostTable::new(&config.host).unwrap();
        for (host, root) in [("x", "d"), ("a", "a"), ("b", "b")] {
            let site = all[hosts.find(host.as_bytes()).unwrap()].1;
            assert_eq!(site.root, std::path::Path::new(root));
        }
    }
}
