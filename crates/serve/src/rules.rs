//! The rules of a site's configuration, compiled and checked once, and evaluated for every request
//! or every file.
//!
//! Owns: globs, networks, what may be had, headers by path, redirects, rewrites, other origins,
//! names of sites, mounts, maintenance. Does not own: files, responses, and when a rule is asked.

pub mod access;
pub mod cors;
pub mod glob;
pub mod headers;
pub mod hosts;
pub mod maintenance;
pub mod mounts;
pub mod network;
pub mod route;

use std::sync::Arc;

use self::access::Access;
use self::cors::Cors;
use self::headers::HeaderRules;
use self::maintenance::Maintenance;
use self::route::{Redirects, Rewrites};
use crate::config::{Config, Site};
use crate::error::Error;

/// The rules of a site.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Access by path and by client address.
    pub access: Arc<Access>,
    /// Headers by path.
    pub headers: HeaderRules,
    /// Other addresses by path.
    pub redirects: Redirects,
    /// Other files by path.
    pub rewrites: Rewrites,
    /// Requests from other origins.
    pub cors: Option<Cors>,
    /// 503 for everything.
    pub maintenance: Maintenance,
}

impl Rules {
    /// Compiles those of `site`, whose key is `key` (`site`, `host[0]`). `tls` says whether its responses are encrypted.
    ///
    /// # Errors
    /// If a rule makes no sense; the error names its key.
    pub fn new(site: &Site, key: &str, tls: bool) -> Result<Self, Error> {
        Ok(Self {
            access: Arc::new(Access::new(site, key)?),
            headers: HeaderRules::new(site, key, tls)?,
            redirects: Redirects::new(&site.redirects_below_base(), key)?,
            rewrites: Rewrites::new(&site.rewrites, key)?,
            cors: site.cors.as_ref().map(|cors| Cors::new(cors, key)).transpose()?,
            maintenance: Maintenance::new(&site.maintenance, key)?,
        })
    }
}

/// The sites of `config` with their keys, in the order of the numbers that [`hosts::Hosts::find`] gives.
pub fn sites(config: &Config) -> impl Iterator<Item = (String, &Site)> {
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
        let hosts = hosts::Hosts::new(&config.host).unwrap();
        for (host, root) in [("x", "d"), ("a", "a"), ("b", "b")] {
            let site = all[hosts.find(host.as_bytes()).unwrap()].1;
            assert_eq!(site.root, std::path::Path::new(root));
        }
    }
}
