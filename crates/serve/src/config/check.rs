//! Checks of a whole configuration that open no file and bind no address.
//!
//! Owns: request paths, and options that need or exclude others. Does not own: rules, which are
//! checked by compiling them, and single words (`words`).

use super::mount::prefix_error;
use super::{Config, SiteConfig, TlsConfig};
use crate::error::Error;
use crate::listen::ListenSpec;
use crate::path::is_below;
use crate::proxies::TrustedProxies;
use crate::rules::hosts::HostTable;
use crate::rules::{self, Rules};

impl Config {
    /// Checks the whole configuration.
    ///
    /// # Errors
    /// If a value is invalid; the error names its key.
    pub fn check(&self) -> Result<(), Error> {
        self.check_listen()?;
        self.check_limits()?;
        check_path(self.health.as_deref(), "health")?;
        check_path(self.metrics.as_deref(), "metrics")?;
        if self.metrics.is_some() && self.metrics == self.health {
            return Err(Error::configure("metrics", "'health' has the same path"));
        }
        self.tls.as_ref().map_or(Ok(()), check_tls)?;
        TrustedProxies::new(&self.proxies)?;
        HostTable::new(&self.host)?;
        rules::sites(self).try_for_each(|(key, site)| {
            check_prefixes(site, &key)?;
            self.check_site(site, &key)?;
            site.mounted(&key).try_for_each(|(key, mount)| self.check_site(&mount, &key))
        })?;
        self.check_roots()?;
        self.check_archives()
    }

    /// Refuses an address that is there twice. The port 0 is another one each time.
    fn check_listen(&self) -> Result<(), Error> {
        for (at, text) in self.listen.iter().enumerate() {
            let key = format!("listen[{at}]");
            check_address(text, &key)?;
            if self.listen.iter().take(at).any(|other| other == text) && !text.ends_with(":0") {
                return Err(Error::configure(key, "the address is listed twice"));
            }
        }
        Ok(())
    }

    fn check_archives(&self) -> Result<(), Error> {
        let offers = |site: &SiteConfig| !site.archives.is_empty();
        let is_offered = rules::sites(self)
            .any(|(key, site)| offers(site) || site.mounted(&key).any(|(_, mount)| offers(&mount)));
        match self.limits.archives {
            0 if is_offered => {
                Err(Error::configure("limits.archives", "must be at least 1, because a site offers archives"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses sites without a directory, except for the default site beside others. A directory
    /// that is there in any case, like the working directory, would be published by mistake.
    fn check_roots(&self) -> Result<(), Error> {
        let is_optional =
            |key: &str, site: &SiteConfig| key == "site" && !self.host.is_empty() && site.mounts.is_empty();
        let mut sites = rules::sites(self);
        match sites.find(|(key, site)| !site.has_root() && !is_optional(key, site)) {
            Some((key, _)) => {
                Err(Error::incomplete(format!("{key}.root"), "missing: the directory to serve"))
            }
            None => Ok(()),
        }
    }

    fn check_site(&self, site: &SiteConfig, key: &str) -> Result<(), Error> {
        Rules::new(site, key, self.tls.is_some())?;
        check_site_values(site, key)
    }

    /// Refuses sizes of 0 with which no request could be answered.
    fn check_limits(&self) -> Result<(), Error> {
        let (limits, pool) = (&self.limits, self.pool.as_ref());
        let zeros = [
            ("limits.connections", limits.connections == 0),
            ("limits.header-bytes", limits.header_bytes == 0),
            ("limits.burst", limits.burst == Some(0)),
            ("limits.headers", limits.headers == 0),
            ("limits.target-bytes", limits.target_bytes == 0),
            ("limits.streams", limits.streams == 0),
            ("limits.password-checks", limits.password_checks == 0),
            ("limits.header-timeout-ms", limits.header_timeout_ms == 0),
            ("limits.idle-timeout-ms", limits.idle_timeout_ms == 0),
            ("limits.write-timeout-ms", limits.write_timeout_ms == 0),
            ("pool.threads", pool.is_some_and(|pool| pool.threads == 0)),
            ("pool.per-device", pool.is_some_and(|pool| pool.per_device == Some(0))),
            ("pool.queue", pool.is_some_and(|pool| pool.queue == 0)),
        ];
        if !(limits.requests_per_s.is_finite() && limits.requests_per_s >= 0.0) {
            return Err(Error::configure("limits.requests-per-s", "expected a number of at least 0"));
        }
        if limits.burst.is_some() && limits.requests_per_s == 0.0 {
            return Err(Error::incomplete("limits.burst", "requires 'requests-per-s'"));
        }
        match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((key, _)) => Err(Error::configure(key, "must be at least 1")),
            None => Ok(()),
        }
    }
}

fn check_tls(tls: &TlsConfig) -> Result<(), Error> {
    let has_files = tls.certificate.is_some() || tls.key.is_some() || !tls.more.is_empty();
    if tls.self_signed && has_files {
        return Err(Error::configure(
            "tls.self-signed",
            "cannot be combined with 'certificate', 'key' or 'more'",
        ));
    }
    for (key, is_there) in [("tls.certificate", tls.certificate.is_some()), ("tls.key", tls.key.is_some())] {
        if !tls.self_signed && !is_there {
            return Err(Error::incomplete(
                key,
                "missing: TLS requires 'certificate' and 'key', or 'self-signed'",
            ));
        }
    }
    if tls.http3 && !cfg!(feature = "http3") {
        return Err(Error::configure(
            "tls.http3",
            "built without HTTP/3 (cargo build --release --features http3)",
        ));
    }
    if tls.client_auth.is_some() && tls.client_ca.is_none() {
        return Err(Error::incomplete("tls.client-auth", "requires 'client-ca'"));
    }
    tls.redirect_from.as_deref().map_or(Ok(()), |from| check_address(from, "tls.redirect-from"))
}

/// Checks the base of a site and the paths of its mounts.
fn check_prefixes(site: &SiteConfig, key: &str) -> Result<(), Error> {
    if let Some(cause) = prefix_error(site.base()).filter(|_| !site.base().is_empty()) {
        return Err(Error::configure(format!("{key}.base"), cause));
    }
    for (number, mount) in site.mounts.iter().enumerate() {
        let refused = |cause: &str| Err(Error::configure(format!("{key}.mounts[{number}].path"), cause));
        if let Some(cause) = prefix_error(&mount.path) {
            return refused(cause);
        }
        if let Some(other) = site.mounts.iter().take(number).position(|other| other.at() == mount.at()) {
            return refused(&format!("'{}' is also the path of {key}.mounts[{other}]", mount.at()));
        }
    }
    Ok(())
}

fn check_site_values(site: &SiteConfig, key: &str) -> Result<(), Error> {
    if let Some(at) = site.suffixes.iter().position(|suffix| !is_suffix(suffix)) {
        return Err(Error::configure(
            format!("{key}.try[{at}]"),
            "expected the end of a path, like '.html' or '/index.html'",
        ));
    }
    check_file(site.fallback.as_deref(), &format!("{key}.fallback"))?;
    check_file(site.maintenance.page.as_deref(), &format!("{key}.maintenance.page"))?;
    for (status, page) in &site.error_pages {
        let key = format!("{key}.error-pages.{status}");
        check_file(Some(page), &key)?;
        let is_error = matches!(status.as_bytes(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9'] | b"4xx" | b"5xx");
        if !is_error {
            return Err(Error::configure(key, "expected the status of an error, like 404 or 5xx"));
        }
    }
    let bad = |name: &String| name.is_empty() || name.contains(['/', '\0']) || name == "." || name == "..";
    match site.index.iter().position(bad) {
        Some(at) => {
            Err(Error::configure(format!("{key}.index[{at}]"), "expected the name of a file, without '/'"))
        }
        None => Ok(()),
    }
}

/// Returns whether `text` appended to a path gives another path.
fn is_suffix(text: &str) -> bool {
    !text.is_empty() && is_below(format!("a{text}").as_bytes()) && !text.chars().any(char::is_control)
}

fn check_address(text: &str, key: &str) -> Result<(), Error> {
    let refused = |error: Error| Error::configure(key, format!("{}, found '{text}'", error.cause()));
    text.parse::<ListenSpec>().map(drop).map_err(refused)
}

/// Checks the path of a file below the root.
fn check_file(value: Option<&str>, key: &str) -> Result<(), Error> {
    check_path(value, key)?;
    match value.and_then(|value| value.strip_prefix('/')) {
        Some(path) if !is_below(path.as_bytes()) => {
            Err(Error::configure(key, "the path leads out of the root"))
        }
        _ => Ok(()),
    }
}

/// Checks a request path.
fn check_path(value: Option<&str>, key: &str) -> Result<(), Error> {
    match value {
        Some(value) if !value.starts_with('/') || value.chars().any(char::is_control) => {
            Err(Error::configure(key, "expected a path that begins with '/', without control characters"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_configurations_pass() {
        let text = "listen = ['127.0.0.1:0', '[::]:80', 'unix:/run/a', 'systemd']\nio = 'sync'\nhealth = '/h'\n\
                    [access-log]\nformat = 'json'\n[tls]\ncertificate = 'c'\nkey = 'k'\nredirect-from = '0.0.0.0:80'\n\
                    [site]\nsymlinks = 'never'\nfallback = '/index.html'\nerror-pages = { 404 = '/404.html', 5xx = '/50x.html' }\n\
                    base = '/app/'\nmounts = [{ path = '/a', root = '.' }, { path = '/a/b/', root = '.' }]\n\
                    compress = { codings = ['zstd'] }\nroot = '.'\n[[host]]\nnames = ['a.example']\nroot = '.'\n\
                    [limits]\nbody-bytes = 0\nranges = 0\ndrain-timeout-ms = 0\ndrain-notice-ms = 0\n[cache]\nfiles = 0\nage-ms = 0\n";
        Config::from_toml(text).unwrap().check().unwrap();
        Config::from_toml("[[host]]\nnames = ['a']\nroot = '.'").unwrap().check().unwrap();
    }

    #[test]
    fn each_mistake_has_its_key() {
        for (text, key) in [
            ("listen = ['systemd', 'localhost']", "listen[1]"),
            ("listen = ['unix:']", "listen[0]"),
            ("health = 'h'", "health"),
            ("limits.connections = 0", "limits.connections"),
            ("limits.headers = 0", "limits.headers"),
            ("limits.requests-per-s = -1.0", "limits.requests-per-s"),
            ("limits.requests-per-s = nan", "limits.requests-per-s"),
            ("limits = { requests-per-s = 1.0, burst = 0 }", "limits.burst"),
            ("site.try = ['.html', '/../x']", "site.try[1]"),
            ("site.hide = ['[']", "site.hide[0]"),
            ("site.base = 'app'", "site.base"),
            ("site.base = '/a//b'", "site.base"),
            ("site.base = '/a%20b'", "site.base"),
            ("site.mounts = [{ path = 'docs', root = '.' }]", "site.mounts[0].path"),
            ("site.mounts = [{ path = '/', root = '.' }]", "site.mounts[0].path"),
            ("site.mounts = [{ path = '', root = '.' }]", "site.mounts[0].path"),
            ("site.mounts = [{ path = '/a/../b', root = '.' }]", "site.mounts[0].path"),
            ("site.mounts = [{ path = '/a?', root = '.' }]", "site.mounts[0].path"),
            (
                "site.mounts = [{ path = '/a', root = '.' }, { path = '/b', root = '.' }, { path = '/a/', root = '.' }]",
                "site.mounts[2].path",
            ),
            ("site.mounts = [{ path = '/a', root = '.', deny = ['x', '['] }]", "site.mounts[0].deny[1]"),
            ("limits.write-timeout-ms = 0", "limits.write-timeout-ms"),
            ("pool.threads = 0", "pool.threads"),
            ("pool.per-device = 0", "pool.per-device"),
            ("metrics = \"/a\\n\"", "metrics"),
            ("[tls]\ncertificate = 'c'\nkey = 'k'\nredirect-from = '80'", "tls.redirect-from"),
            ("[tls]\ncertificate = 'c'", "tls.key"),
            ("[tls]\nkey = 'k'", "tls.certificate"),
            ("[tls]\nkey = 'k'\nself-signed = true", "tls.self-signed"),
            ("[tls]\nself-signed = true\nclient-auth = 'optional'", "tls.client-auth"),
            ("[[host]]", "host[0].names"),
            ("[site]\nfallback = 'a'", "site.fallback"),
            ("site.root = ''", "site.root"),
            (
                "[site]\nmounts = [{ path = '/a', root = '.' }]\n[[host]]\nnames = ['a']\nroot = '.'",
                "site.root",
            ),
            ("[[host]]\nnames = ['a']", "host[0].root"),
            ("[site.error-pages]\n200 = '/a'", "site.error-pages.200"),
            ("[site.error-pages]\n404 = 'a'", "site.error-pages.404"),
            ("[site]\nindex = ['a', '../b']", "site.index[1]"),
            ("[[host]]\nnames = ['a']\n[[host.redirects]]\nfrom = '/'\nto = ''", "host[0].redirects[0].to"),
        ] {
            let error = Config::from_toml(text).unwrap().check().unwrap_err();
            assert_eq!(error.thing(), key, "{error}");
        }
    }

    #[test]
    fn a_setting_without_effect_is_a_mistake() {
        for (text, key) in [
            ("", "site.root"),
            ("listen = ['[::]:80', '[::]:80']", "listen[1]"),
            ("health = '/h'\nmetrics = '/h'", "metrics"),
            ("limits.burst = 3", "limits.burst"),
            ("[proxies]\nsource = 'proxy-protocol'", "proxies.source"),
            ("limits.archives = 0\n[site]\nroot = '.'\narchives = ['zip']", "limits.archives"),
            ("[site]\nfallback = '/../x'", "site.fallback"),
            ("[site.error-pages]\n404 = '/a//b'", "site.error-pages.404"),
            ("[site.maintenance]\npage = '/../x'", "site.maintenance.page"),
        ] {
            let error = Config::from_toml(text).unwrap().check().unwrap_err();
            assert_eq!(error.thing(), key, "{error}");
        }
    }
}
