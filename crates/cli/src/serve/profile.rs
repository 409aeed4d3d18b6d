//! The pool size from a saved profile, if the user did not set one. The model in the profile is
//! advice for people: `auto` adapts anyway.

use fathom_serve::Model;
use fathom_serve::config::{Config, PoolConfig};
use fathom_serve::rules;
use fathom_text::quote::Charset;

use super::NAME;
use crate::shared::start::{PoolThreads, pool_threads};

/// The profile's entry, read once for the life of the server.
#[derive(Debug, Default)]
pub(super) struct PoolProfile(Option<PoolThreads>);

impl PoolProfile {
    /// Reads the entry for the directory of the first site that has one. Models other than `auto`,
    /// and a configured pool, do not use a profile.
    pub(super) fn read(config: &Config, charset: Charset) -> Self {
        if config.io.is_some_and(|model| model != Model::Auto) || config.pool.is_some() {
            return Self::default();
        }
        let site = rules::sites(config).find(|(_, site)| site.has_root());
        Self(site.and_then(|(_, site)| pool_threads(NAME.as_bytes(), charset, &site.root)))
    }

    /// Sets the size of the pool, if it is not configured.
    pub(super) fn apply(&self, config: &mut Config) {
        let threads = self.0.as_ref().and_then(|threads| threads.number);
        if let (None, Some(threads)) = (&config.pool, threads) {
            config.pool = Some(pool(threads));
        }
    }

    /// Returns the origin of the pool's size, or the reason why the profile was not used.
    pub(super) fn note(&self) -> Option<&str> {
        self.0.as_ref().map(|threads| threads.note.as_str())
    }
}

/// Sizes the pool: `per_device` threads for one device, and a third as many in addition for other
/// devices and for computation, the same ratio as without a profile.
fn pool(per_device: usize) -> PoolConfig {
    PoolConfig {
        threads: (per_device * 4).div_ceil(3),
        per_device: Some(per_device),
        ..PoolConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: Option<usize>) -> PoolProfile {
        PoolProfile(Some(PoolThreads { number, note: String::new() }))
    }

    #[test]
    fn the_usual_number_makes_the_usual_pool() {
        let usual = PoolConfig::default();
        let profile = pool(usual.per_device());
        assert_eq!((profile.threads, profile.per_device()), (usual.threads, usual.per_device()));
        assert_eq!((pool(1).threads, pool(256).threads), (2, 342));
    }

    #[test]
    fn a_pool_that_somebody_described_is_left_alone() {
        let mut config = Config::default();
        found(None).apply(&mut config);
        assert_eq!(config.pool, None);
        found(Some(6)).apply(&mut config);
        assert_eq!(config.pool.as_ref().map(|pool| (pool.threads, pool.per_device())), Some((8, 6)));
        found(Some(9)).apply(&mut config);
        assert_eq!(config.pool.map(|pool| pool.per_device()), Some(6));
    }
}
