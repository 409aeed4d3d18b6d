//! A report on the I/O that a site's filesystem supports: which system calls work, which models
//! run, and what [`Model::Auto`] does.
//!
//! `probe` tries the calls, `summary` describes what they mean for the models. Does not own: the
//! layout of the report.

mod probe;
mod summary;

use std::path::{Path, PathBuf};

use fathom_files::is_in_memory;
use fathom_io::availability::Availability;
use fathom_io::beneath::Beneath;
use fathom_io::filesystem::is_local;
use fathom_io::{Errno, Model};

use crate::config::{self, Config, SiteConfig};
use crate::error::{Error, Op};
use crate::plan::{links, open_cause, split_root};
use crate::server::workers;

/// The report on one site.
///
/// ```
/// use fathom_serve::Config;
/// use fathom_serve::report::Report;
///
/// let config = Config::from_toml("[site]\nroot = 'src'")?;
/// let report = Report::new(&config.site, &config)?;
/// assert_eq!(report.root, std::path::Path::new("src"));
/// for (model, state) in &report.models {
///     match state {
///         Ok(description) => println!("{model}: {description}"),
///         Err(reason) => println!("{model} cannot run: {reason}"),
///     }
/// }
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The directory that is served.
    pub root: PathBuf,
    /// The kernel, the filesystem and the limits of this process.
    pub availability: Availability,
    /// The result of trying each call.
    pub calls: CallStatuses,
    /// The file below the root that the calls were tried on, if the site has one.
    pub sample: Option<PathBuf>,
    /// The configured limits of resources.
    pub limits: ResourceLimits,
    /// Each model with its description, or the reason why it cannot run.
    pub models: Vec<(Model, Result<&'static str, String>)>,
    /// The behaviour of `auto`: each case with how it is served. Empty if openat2(2) does not work.
    pub plan: Vec<(&'static str, String)>,
    /// Further notes on the filesystem.
    pub notes: Vec<&'static str>,
}

/// The result of trying a system call. The set is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The call works as the server needs it.
    Works,
    /// The call fails for this reason.
    Fails(String),
    /// The call was not tried: there was no file for it.
    Untested,
}

impl CallStatus {
    fn failed(errno: Errno) -> Self {
        Self::Fails(String::from_utf8_lossy(&fathom_text::strerror(errno)).into_owned())
    }

    /// Returns whether the call is known to fail.
    fn fails(&self) -> bool {
        matches!(self, Self::Fails(_))
    }
}

/// The results of trying the system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStatuses {
    /// openat2(2), without which nothing is served.
    pub openat2: CallStatus,
    /// Looking up a path without waiting: openat2(2) with `RESOLVE_CACHED`.
    pub resolve_cached: CallStatus,
    /// Reading without waiting: preadv2(2) with `RWF_NOWAIT`.
    pub nowait: CallStatus,
    /// Querying which pages of a file are cached: cachestat(2).
    pub cachestat: CallStatus,
    /// sendfile(2).
    pub sendfile: CallStatus,
    /// io_uring(7).
    pub uring: CallStatus,
}

impl CallStatuses {
    /// Returns all results with the names of their calls.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &CallStatus); 6] {
        [
            ("openat2", &self.openat2),
            ("RESOLVE_CACHED", &self.resolve_cached),
            ("RWF_NOWAIT", &self.nowait),
            ("cachestat", &self.cachestat),
            ("sendfile", &self.sendfile),
            ("io_uring", &self.uring),
        ]
    }

    /// Returns the results if openat2(2) fails with `errno`: no other call was tried.
    fn none(errno: Errno) -> Self {
        let untested = || CallStatus::Untested;
        Self {
            openat2: CallStatus::failed(errno),
            resolve_cached: untested(),
            nowait: untested(),
            cachestat: untested(),
            sendfile: untested(),
            uring: untested(),
        }
    }
}

/// The configured limits of resources.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLimits {
    /// The number of worker threads.
    pub workers: usize,
    /// The maximum number of connections.
    pub connections: usize,
    /// The limits of the thread pool for blocking calls.
    pub pool: config::PoolConfig,
    /// The limits of the file cache.
    pub cache: config::CacheConfig,
    /// The descriptors that connections and cached files need; files being sent come on top.
    pub descriptors: u64,
}

impl ResourceLimits {
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
    /// Creates the report on `site`, served with `config`.
    ///
    /// # Errors
    /// If the root directory cannot be opened.
    pub fn new(site: &SiteConfig, config: &Config) -> Result<Self, Error> {
        let (root, _) = split_root(&site.root);
        let root = root.as_path();
        let failed = |errno: Errno| Error::new(Op::Open, root.display().to_string(), open_cause(errno));
        let availability = Availability::of(root).map_err(failed)?;
        match Beneath::new(root, links(site)) {
            Ok(beneath) => {
                let (calls, sample) = probe::calls(root, &beneath).map_err(failed)?;
                Ok(Self::of(root, availability, calls, sample.map(|sample| sample.path), config))
            }
            // The call itself is refused: it does not exist, or a filter (seccomp) forbids it.
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                Ok(Self::of(root, availability, CallStatuses::none(errno), None, config))
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Describes the results.
    fn of(
        root: &Path,
        availability: Availability,
        calls: CallStatuses,
        sample: Option<PathBuf>,
        config: &Config,
    ) -> Self {
        let limits = ResourceLimits::of(config);
        let magic = availability.filesystem.magic.unwrap_or_default();
        let traits = summary::FilesystemTraits {
            in_memory: is_in_memory(magic),
            is_local: is_local(magic),
            is_overlay: availability.filesystem.name == Some("overlay"),
            has_sample: sample.is_some(),
        };
        Self {
            root: root.to_owned(),
            models: summary::models(&calls, traits),
            plan: summary::plan(&calls, traits, &limits),
            notes: summary::notes(&calls, traits),
            availability,
            calls,
            sample,
            limits,
        }
    }

    /// Returns whether connections and cached files need more descriptors than this process may
    /// have.
    #[must_use]
    pub fn lacks_descriptors(&self) -> bool {
        self.availability.fd_limit.is_some_and(|limit| limit < self.limits.descriptors)
    }
}

#[cfg(test)]
mod tests;
