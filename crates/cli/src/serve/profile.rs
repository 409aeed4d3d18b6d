//! What a saved profile says of the pool: a start, where nobody has said how large it is to be. The model in it is advice for people:
//! `auto` adapts anyway.

use fathom_serve::Model;
use fathom_serve::config::{Config, Pool};
use fathom_text::quote::Charset;

use super::NAME;
use crate::start::{Threads, threads};

/// What was found, once for as long as the server runs.
#[derive(Debug, Default)]
pub(super) struct Profiled(Option<Threads>);

impl Profiled {
    /// For the directory of the default site. Other models than `auto`, and a pool whose size is given, have no use for a profile.
    pub(super) fn read(config: &Config, charset: Charset) -> Self {
        let model = config.io.as_deref().unwrap_or_default();
        let adapts = model.is_empty() || model == Model::Auto.name();
        if !adapts || config.pool.is_some() {
            return Self::default();
        }
        Self(threads(NAME.as_bytes(), charset, &config.site.root))
    }

    /// Sets the size of the pool, if none is given.
    pub(super) fn apply(&self, config: &mut Config) {
        let threads = self.0.as_ref().and_then(|threads| threads.number);
        if let (None, Some(threads)) = (&config.pool, threads) {
            config.pool = Some(pool(threads));
        }
    }

    /// Where the size of the pool is from, or why not.
    pub(super) fn note(&self) -> Option<&str> {
        self.0.as_ref().map(|threads| threads.note.as_str())
    }
}

/// So many threads for the device, and as large a part besides for what waits for another one, or for a processor, as there is without
/// a profile.
fn pool(per_device: usize) -> Pool {
    Pool { threads: (per_device * 4).div_ceil(3), per_device: Some(per_device), ..Pool::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: Option<usize>) -> Profiled {
        Profiled(Some(Threads { number, note: String::new() }))
    }

    #[test]
    fn the_usual_number_makes_the_usual_pool() {
        let usual = Pool::default();
        let profiled = pool(usual.per_device());
        assert_eq!((profiled.threads, profiled.per_device()), (usual.threads, usual.per_device()));
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
