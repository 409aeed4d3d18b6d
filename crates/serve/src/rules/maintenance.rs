//! When everything is answered 503, and with what.
//!
//! Does not own: looking for the flag file and reading the page, which is the server's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;

use crate::config;
use crate::error::Error;

/// How old what is known of the flag file may be.
pub const FLAG_AGE: Duration = Duration::from_secs(1);

/// The compiled rules of a site.
#[derive(Clone, Debug, Default)]
pub struct Maintenance {
    enabled: bool,
    flag_file: Option<PathBuf>,
    page: Option<String>,
    retry_after: Option<HeaderValue>,
}

impl Maintenance {
    /// Compiles those of a site whose key is `key`.
    ///
    /// # Errors
    /// If the page is no path.
    pub fn new(maintenance: &config::Maintenance, key: &str) -> Result<Self, Error> {
        let config::Maintenance { enabled, flag_file, page, retry_after_s } = maintenance.clone();
        if page.as_ref().is_some_and(|page| !page.starts_with('/')) {
            return Err(Error::configure(format!("{key}.maintenance.page"), "a path begins with '/'"));
        }
        Ok(Self { enabled, flag_file, page, retry_after: retry_after_s.map(HeaderValue::from) })
    }

    /// The file to be looked for, unless the answer is known without it.
    #[must_use]
    pub fn flag_file(&self) -> Option<&Path> {
        self.flag_file.as_deref().filter(|_| !self.enabled)
    }

    /// Whether requests are answered 503, if `flagged` says whether the flag file is there.
    #[must_use]
    pub fn is_on(&self, flagged: bool) -> bool {
        self.enabled || (flagged && self.flag_file.is_some())
    }

    /// Path of the file that is shown.
    #[must_use]
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// The value of `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<&HeaderValue> {
        self.retry_after.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_on_when_enabled_or_flagged() {
        for (enabled, file, flagged, on, looked_for) in [
            (false, None, false, false, false),
            (false, None, true, false, false),
            (true, None, false, true, false),
            (false, Some("/run/f"), false, false, true),
            (false, Some("/run/f"), true, true, true),
            (true, Some("/run/f"), false, true, false),
        ] {
            let config =
                config::Maintenance { enabled, flag_file: file.map(PathBuf::from), ..Default::default() };
            let rules = Maintenance::new(&config, "site").unwrap();
            assert_eq!((rules.is_on(flagged), rules.flag_file().is_some()), (on, looked_for), "{config:?}");
        }
    }

    #[test]
    fn page_and_delay_are_kept() {
        let config = config::Maintenance {
            page: Some("/503.html".to_owned()),
            retry_after_s: Some(60),
            ..Default::default()
        };
        let rules = Maintenance::new(&config, "site").unwrap();
        assert_eq!(
            (rules.page(), rules.retry_after()),
            (Some("/503.html"), Some(&HeaderValue::from_static("60")))
        );
        let config = config::Maintenance { page: Some("503.html".to_owned()), ..Default::default() };
        let error = Maintenance::new(&config, "host[2]").unwrap_err();
        assert_eq!(error.to_string(), "cannot use 'host[2].maintenance.page': a path begins with '/'");
    }
}
