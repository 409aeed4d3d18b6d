//! Access to a site by path and by client address: hidden and denied paths, allowed and denied
//! networks.
//!
//! Does not own: users (`auth`), file permissions, and the dotfile policy.

use std::net::IpAddr;

use super::glob::SubtreeGlob;
use super::mounts::MountTable;
use super::network::Network;
use crate::config::SiteConfig;
use crate::error::Error;

/// The compiled access rules of a site.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    hide: Vec<SubtreeGlob>,
    deny: Vec<SubtreeGlob>,
    allow_from: Vec<Network>,
    deny_from: Vec<Network>,
    /// The mount path below the site, with a slash at its end.
    at: Vec<u8>,
    mounts: MountTable,
}

impl AccessRules {
    /// Compiles the access rules of `site`, whose key is `key`.
    ///
    /// # Errors
    /// If a glob or a network is invalid.
    pub fn new(site: &SiteConfig, key: &str) -> Result<Self, Error> {
        Ok(Self {
            hide: compile(&site.hide, &format!("{key}.hide"), SubtreeGlob::new)?,
            deny: compile(&site.deny, &format!("{key}.deny"), SubtreeGlob::new)?,
            allow_from: compile(&site.allow_from, &format!("{key}.allow-from"), str::parse)?,
            deny_from: compile(&site.deny_from, &format!("{key}.deny-from"), str::parse)?,
            at: format!("{}/", site.at).into_bytes(),
            mounts: MountTable::new(&site.mounts),
        })
    }

    /// Returns whether no path is hidden, denied or mounted over.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.hide.is_empty() && self.deny.is_empty() && self.mounts.is_empty()
    }

    /// Returns whether the decoded `path` below the root is treated as absent: the path or a
    /// directory above it is hidden, or a mount is in its place.
    #[must_use]
    pub fn hides(&self, path: &[u8]) -> bool {
        self.unlists(path)
            || (!self.mounts.is_empty()
                && self.mounts.find(self.below_site(path).get(1..).unwrap_or_default()).is_some())
    }

    /// Returns whether listings omit the decoded `path` below the root. A directory with a mount in
    /// its place is listed: its link leads to the mount.
    #[must_use]
    pub fn unlists(&self, path: &[u8]) -> bool {
        self.covers(&self.hide, path)
    }

    /// Returns whether the decoded `path` below the root is denied to every client.
    #[must_use]
    pub fn denies(&self, path: &[u8]) -> bool {
        self.covers(&self.deny, path)
    }

    /// Returns whether a client with this address has any access; a client of a Unix socket has no
    /// address. `deny-from` has priority over `allow-from`.
    #[must_use]
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        (self.allow_from.is_empty() || is_in(&self.allow_from)) && !is_in(&self.deny_from)
    }

    fn covers(&self, patterns: &[SubtreeGlob], path: &[u8]) -> bool {
        !patterns.is_empty() && {
            let path = self.below_site(path);
            patterns.iter().any(|pattern| pattern.matches(&path))
        }
    }

    /// Returns `path` below the root as a path below the site, with a slash at its beginning.
    fn below_site(&self, path: &[u8]) -> Vec<u8> {
        let at = if self.at.is_empty() { b"/" } else { &self.at[..] };
        [at, path].concat()
    }
}

fn compile<T>(
    words: &[String],
    key: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let compile = |(at, word): (usize, &String)| {
        read(word).map_err(|cause| Error::configure(format!("{key}[{at}]"), cause))
    };
    words.iter().enumerate().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(text: &str) -> AccessRules {
        let config = crate::Config::from_toml(&format!("[site]\n{text}")).unwrap();
        AccessRules::new(&config.site, "site").unwrap()
    }

    #[test]
    fn a_site_that_hides_or_denies_or_mounts_is_not_open() {
        assert!(access("").is_open());
        assert!(access("allow-from = ['10.0.0.0/8']").is_open(), "an address is no path");
        for text in ["hide = ['a']", "deny = ['a']", "[[site.mounts]]\npath = '/a'\nroot = '/b'"] {
            assert!(!access(text).is_open(), "{text}");
        }
    }

    #[test]
    fn paths_below_a_hidden_directory_are_hidden() {
        let access = access("hide = ['node_modules', '*.bak', '/private/**']\ndeny = ['/admin']");
        for path in [
            "node_modules",
            "node_modules/a/b",
            "x/node_modules/a",
            "a.bak",
            "x/a.bak/y",
            "private",
            "private/x",
        ] {
            assert!(access.hides(path.as_bytes()), "{path}");
        }
        for path in ["", "a", "x/private", "a.bak2", "node_modules2", "privates"] {
            assert!(!access.hides(path.as_bytes()), "{path}");
        }
        assert!(access.denies(b"admin") && access.denies(b"admin/a") && !access.denies(b"administration"));
        assert!(!AccessRules::default().hides(b"a") && !AccessRules::default().denies(b""));
    }

    #[test]
    fn a_denied_address_is_not_admitted_whatever_is_allowed() {
        let admits = |access: &AccessRules, address: &str| access.admits(address.parse().ok());
        let both = access("allow-from = ['10.0.0.0/8', 'unix']\ndeny-from = ['10.1.0.0/16']");
        for (address, admitted) in [
            ("10.2.0.1", true),
            ("10.1.0.1", false),
            ("192.0.2.1", false),
            ("::ffff:10.2.0.1", true),
            ("unix", true),
        ] {
            assert_eq!(admits(&both, address), admitted, "{address}");
        }
        let deny = access("deny-from = ['::1']");
        assert!(admits(&deny, "127.0.0.1") && admits(&deny, "unix") && !admits(&deny, "::1"));
        assert!(!admits(&access("allow-from = ['::1']"), "unix"));
    }

    #[test]
    fn mistakes_are_refused_with_their_key() {
        for (text, key) in [
            ("hide = ['a', '[']", "site.hide[1]"),
            ("deny = ['']", "site.deny[0]"),
            ("allow-from = ['10.0.0.0/99']", "site.allow-from[0]"),
            ("deny-from = ['localhost']", "site.deny-from[0]"),
        ] {
            let config = crate::Config::from_toml(&format!("[site]\n{text}")).unwrap();
            assert_eq!(AccessRules::new(&config.site, "site").unwrap_err().thing(), key);
        }
    }
}
