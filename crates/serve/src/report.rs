//! What a site's files can be read with here, found by trying, and what that comes to: which models work, and what `auto` does.
//!
//! `probe` asks the kernel, `outlook` says what the answers mean. Does not own: how a report looks.

mod outlook;
mod probe;

use std::path::{Path, PathBuf};

use fathom_io::Errno;
use fathom_io::beneath::Beneath;
use fathom_io::offer::{Offer, is_local};

use crate::config::{self, Config, Site};
use crate::error::{Error, Op};
use crate::files::{Model, is_in_memory};
use crate::plan::{cause, links, place};
use crate::server::workers;

/// What was found for one site.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The directory that is served.
    pub root: PathBuf,
    /// The kernel, the filesystem and the limits of this process.
    pub offer: Offer,
    /// The calls that matter.
    pub calls: Calls,
    /// The file below the root that calls were tried on; there may be none.
    pub sample: Option<PathBuf>,
    /// How much there may be of everything.
    pub sizes: Sizes,
    /// Each model: what it does here, or why it cannot run.
    pub models: Vec<(Model, Result<&'static str, String>)>,
    /// What `auto` does: the case, and how it is served. Empty where nothing can be.
    pub plan: Vec<(&'static str, String)>,
    /// What else is to be known of such a filesystem.
    pub notes: Vec<&'static str>,
}

/// What came of trying a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It does what the server wants of it.
    Works,
    /// It does not, because of this.
    Fails(String),
    /// There was no file to try it on.
    Untried,
}

impl Finding {
    fn failed(errno: Errno) -> Self {
        Self::Fails(String::from_utf8_lossy(&fathom_text::words(errno)).into_owned())
    }

    /// Whether it is known not to work.
    fn fails(&self) -> bool {
        matches!(self, Self::Fails(_))
    }
}

/// What came of trying each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// openat2(2), without which nothing is served.
    pub openat2: Finding,
    /// Looking up a path without waiting: openat2(2) with `RESOLVE_CACHED`.
    pub resolve_cached: Finding,
    /// Reading without waiting: preadv2(2) with `RWF_NOWAIT`.
    pub nowait: Finding,
    /// Asking what of a file is in memory: cachestat(2).
    pub cachestat: Finding,
    /// sendfile(2).
    pub sendfile: Finding,
    /// io_uring(7).
    pub uring: Finding,
}

impl Calls {
    /// All of them by name.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &Finding); 6] {
        [
            ("openat2", &self.openat2),
            ("RESOLVE_CACHED", &self.resolve_cached),
            ("RWF_NOWAIT", &self.nowait),
            ("cachestat", &self.cachestat),
            ("sendfile", &self.sendfile),
            ("io_uring", &self.uring),
        ]
    }

    /// Where openat2 fails with `errno`, nothing else was tried.
    fn none(errno: Errno) -> Self {
        let untried = || Finding::Untried;
        Self {
            openat2: Finding::failed(errno),
            resolve_cached: untried(),
            nowait: untried(),
            cachestat: untried(),
            sendfile: untried(),
            uring: untried(),
        }
    }
}

/// How much there may be of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Threads that serve connections.
    pub workers: usize,
    /// Connections at once.
    pub connections: usize,
    /// Threads for what would make a worker wait.
    pub pool: config::Pool,
    /// What is kept.
    pub cache: config::Cache,
    /// Descriptors that connections and kept files come to; files that are being sent may come on top.
    pub descriptors: u64,
}

impl Sizes {
    fn of(config: &Config) -> Self {
        let (cache, connections) = (config.cache.clone(), config.limits.connections);
        Self {
            workers: workers(config),
            connections,
            pool: config.pool.clone().unwrap_or_default(),
            descriptors: (connections as u64).saturating_add(cache.files as u64),
            cache,
        }
    }
}

impl Report {
    /// Of `site`, served as `config` says.
    ///
    /// # Errors
    /// If its directory cannot be opened.
    pub fn new(site: &Site, config: &Config) -> Result<Self, Error> {
        let (root, _) = place(&site.root);
        let root = root.as_path();
        let failed = |errno: Errno| Error::new(Op::Open, root.display().to_string(), cause(errno));
        let offer = Offer::of(root).map_err(failed)?;
        match Beneath::new(root, links(site)) {
            Ok(beneath) => {
                let (calls, sample) = probe::calls(root, &beneath).map_err(failed)?;
                Ok(Self::of(root, offer, calls, sample.map(|sample| sample.path), config))
            }
            // What the call itself is refused with: not there, or forbidden by a filter (seccomp).
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                Ok(Self::of(root, offer, Calls::none(errno), None, config))
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    /// What was found comes to this.
    fn of(root: &Path, offer: Offer, calls: Calls, sample: Option<PathBuf>, config: &Config) -> Self {
        let sizes = Sizes::of(config);
        let magic = offer.filesystem.magic.unwrap_or_default();
        let place = outlook::Place {
            in_memory: is_in_memory(magic),
            is_local: is_local(magic),
            is_overlay: offer.filesystem.name == Some("overlay"),
            has_sample: sample.is_some(),
        };
        Self {
            root: root.to_owned(),
            models: outlook::models(&calls, place),
            plan: outlook::plan(&calls, place, &sizes),
            notes: outlook::notes(&calls, place),
            offer,
            calls,
            sample,
            sizes,
        }
    }

    /// Whether connections and kept files need more descriptors than this process may have.
    #[must_use]
    pub fn lacks_descriptors(&self) -> bool {
        self.offer.fd_limit.is_some_and(|limit| limit < self.sizes.descriptors)
    }
}

#[cfg(test)]
mod tests;
