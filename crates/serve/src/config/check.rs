//! Whether a configuration makes sense as a whole, without looking at any file or taking any address.
//!
//! Owns: words of which there are only some, and paths of requests. Does not own: rules, which are checked by being compiled.

use super::{Config, Site};
use crate::error::Error;
use crate::files::Model;
use crate::listen::Word;
use crate::rules::hosts::Hosts;
use crate::rules::{self, Rules};

/// The values of `io`.
pub const MODELS: &[&str] = &Model::NAMES;
/// The values of `sendfile`.
pub const SENDFILE: &[&str] = &["remote", "always", "never"];
/// The values of `symlinks`.
pub const SYMLINKS: &[&str] = &["within", "never", "follow"];
/// The values of `access-log.format`.
pub const LOG_FORMATS: &[&str] = &["combined", "json", "off"];
/// The values of `compress.codings`, the best first.
pub const CODINGS: &[&str] = &["br", "zstd", "gzip"];

impl Config {
    /// Checks all of it.
    ///
    /// # Errors
    /// If something makes no sense; the error names its key.
    pub fn check(&self) -> Result<(), Error> {
        self.listen.iter().enumerate().try_for_each(|(at, text)| address(text, &format!("listen[{at}]")))?;
        word(self.io.as_deref(), MODELS, "io")?;
        word(self.sendfile.as_deref(), SENDFILE, "sendfile")?;
        word(self.access_log.format.as_deref(), LOG_FORMATS, "access-log.format")?;
        path(self.health.as_deref(), "health")?;
        path(self.metrics.as_deref(), "metrics")?;
        if let Some(from) = self.tls.as_ref().and_then(|tls| tls.redirect_from.as_deref()) {
            address(from, "tls.redirect-from")?;
        }
        Hosts::new(&self.host)?;
        rules::sites(self).try_for_each(|(key, site)| {
            Rules::new(site, &key, self.tls.is_some())?;
            of_site(site, &key)
        })
    }
}

fn of_site(site: &Site, key: &str) -> Result<(), Error> {
    word(site.symlinks.as_deref(), SYMLINKS, &format!("{key}.symlinks"))?;
    path(site.fallback.as_deref(), &format!("{key}.fallback"))?;
    for (status, page) in &site.error_pages {
        let key = format!("{key}.error-pages.{status}");
        path(Some(page), &key)?;
        let is_error = matches!(status.as_bytes(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9'] | b"4xx" | b"5xx");
        if !is_error {
            return Err(Error::configure(key, "this is no status of an error, like 404 or 5xx"));
        }
    }
    for (at, coding) in site.compress.codings.iter().enumerate() {
        word(Some(coding), CODINGS, &format!("{key}.compress.codings[{at}]"))?;
    }
    let bad = |name: &String| name.is_empty() || name.contains(['/', '\0']) || name == "." || name == "..";
    match site.index.iter().position(bad) {
        Some(at) => Err(Error::configure(format!("{key}.index[{at}]"), "this is no name of a file")),
        None => Ok(()),
    }
}

fn address(text: &str, key: &str) -> Result<(), Error> {
    text.parse::<Word>().map(drop).map_err(|error| Error::configure(key, error))
}

fn word(value: Option<&str>, words: &[&str], key: &str) -> Result<(), Error> {
    match value {
        Some(value) if !words.contains(&value) => Err(Error::configure(
            key,
            format!("'{}' is none of {}", value.escape_default(), words.join(", ")),
        )),
        _ => Ok(()),
    }
}

/// A path of requests.
fn path(value: Option<&str>, key: &str) -> Result<(), Error> {
    match value {
        Some(value) if !value.starts_with('/') || value.chars().any(char::is_control) => {
            Err(Error::configure(key, "a path begins with '/' and has no control characters"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense_passes() {
        Config::default().check().unwrap();
        let text = "listen = ['127.0.0.1:0', '[::]:80', 'unix:/run/a', 'systemd']\nio = 'sync'\nhealth = '/h'\n\
                    [access-log]\nformat = 'json'\n[tls]\ncertificate = 'c'\nkey = 'k'\nredirect-from = '0.0.0.0:80'\n\
                    [site]\nsymlinks = 'never'\nfallback = '/index.html'\nerror-pages = { 404 = '/404.html', 5xx = '/50x.html' }\n\
                    compress = { codings = ['zstd'] }\n[[host]]\nnames = ['a.example']\n";
        Config::from_toml(text).unwrap().check().unwrap();
    }

    #[test]
    fn each_mistake_has_its_key() {
        for (text, key) in [
            ("listen = ['systemd', 'localhost']", "listen[1]"),
            ("listen = ['unix:']", "listen[0]"),
            ("io = 'aio'", "io"),
            ("health = 'h'", "health"),
            ("metrics = \"/a\\n\"", "metrics"),
            ("[access-log]\nformat = 'csv'", "access-log.format"),
            ("[tls]\ncertificate = 'c'\nkey = 'k'\nredirect-from = '80'", "tls.redirect-from"),
            ("[[host]]", "host[0].names"),
            ("[site]\nsymlinks = 'yes'", "site.symlinks"),
            ("[site]\nfallback = 'a'", "site.fallback"),
            ("[site.error-pages]\n200 = '/a'", "site.error-pages.200"),
            ("[site.error-pages]\n404 = 'a'", "site.error-pages.404"),
            ("[site.compress]\ncodings = ['br', 'lzma']", "site.compress.codings[1]"),
            ("[site]\nindex = ['a', '../b']", "site.index[1]"),
            ("[[host]]\nnames = ['a']\n[[host.redirects]]\nfrom = '/'\nto = ''", "host[0].redirects[0].to"),
        ] {
            let error = Config::from_toml(text).unwrap().check().unwrap_err();
            assert_eq!(error.thing(), key, "{error}");
        }
    }
}
