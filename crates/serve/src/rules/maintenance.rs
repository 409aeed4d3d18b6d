//! Maintenance: when all requests are answered with 503, and with which page.
//!
//! Does not own: checking for the flag file and reading the page.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;

use crate::config;
use crate::error::Error;

/// The maximum age of the last check for the flag file.
pub const FLAG_AGE: Duration = Duration::from_secs(1);

/// The compiled maintenance settings of a site.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceRules {
    enabled: bool,
    flag_file: Option<PathBuf>,
    page: Option<String>,
    retry_after: Option<HeaderValue>,
}

impl MaintenanceRules {
    /// Compiles the settings of a site whose key is `key`.
    ///
    /// # Errors
    /// If the page is no absolute path.
    pub fn new(maintenance: &config::MaintenanceConfig, key: &str) -> Result<Self, Error> {
        let config::MaintenanceConfig { enabled, flag_file, page, retry_after_s } = maintenance.clone();
        if page.as_ref().is_some_and(|page| !page.starts_with('/')) {
            return Err(Error::configure(format!("{key}.maintenance.page"), "a path begins with '/'"));
        }
        Ok(Self { enabled, flag_file, page, retry_after: retry_after_s.map(HeaderValue::from) })
    }

    /// Returns the path of the flag file; `None` if maintenance is on anyway.
    #[must_use]
    pub fn flag_file(&self) -> Option<&Path> {
        self.flag_file.as_deref().filter(|_| !self.enabled)
    }

    /// Returns whether requests are answered with 503. `flagged` says whether the flag file exists.
    #[must_use]
    pub fn is_on(&self, flagged: bool) -> bool {
        self.enabled || (flagged && self.flag_file.is_some())
    }

    /// Returns the path of the maintenance page.
    #[must_use]
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Returns the value of `Retry-After`.
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
            let config = config::MaintenanceConfig {
                enabled,
                flag_file: file.map(PathBuf::from),
                ..Default::default()
            };
            let rules = MaintenanceRules::new(&config, "site").unwrap();
            assert_eq!((rules.is_on(flagged), rules.flag_file().is_some()), (on, looked_for), "{config:?}");
        }
    }

    #[test]
    fn page_and_delay_are_kept() {
        let config = config::MaintenanceConfig {
            page: Some("/503.html".to_owned()),
            retry_after_s: Some(60),
            ..Default::default()
        };
        let rules = MaintenanceRules::new(&config, "site").unwrap();
        assert_eq!(
            (rules.page(), rules.retry_after()),
            (Some("/503.html"), Some(&HeaderValue::from_static("60")))
        );
        let config = config::MaintenanceConfig { page: Some("503.html".to_owned()), ..Default::default() };
        let error = MaintenanceRules::new(&config, "host[2]").unwrap_err();
        assert_eq!(error.to_string(), "cannot use 'host[2].maintenance.page': a path begins with '/'");
    }
}
