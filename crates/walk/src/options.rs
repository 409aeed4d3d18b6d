//! Options of a walk, as a builder.

use fathom_io::{Clock, Fields, Follow, Model};

use crate::control::WORKERS_MAX;
use crate::hints::ConcurrencyHints;

/// Defines [`Options`]: for each option its documentation, name, type and default value, from which
/// the field, the default and the builder's method are made.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// Options of a walk. Each method sets one option and returns the options.
        ///
        /// ```
        /// use fathom_walk::{Fields, Model, Options};
        ///
        /// let options = Options::default().model(Model::Threads(Some(4))).fields(Fields::ALL);
        /// ```
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct Options {
            $(pub(crate) $name: $kind,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Options {
            $($(#[$doc])* pub fn $name(mut self, $name: $kind) -> Self {
                self.$name = $name;
                self
            })*
        }
    };
}

options! {
    /// Sets the I/O model. Default: [`Model::Auto`].
    model: Model = Model::Auto;
    /// Sets the number of workers, instead of the model's own, and turns adaptation off. Default:
    /// `None`.
    threads: Option<usize> = None;
    /// Sets whether a root that is a symbolic link is followed. Default: no.
    follow_roots: Follow = Follow::No;
    /// Sets whether symbolic links below a root are followed. Default: no.
    follow_links: Follow = Follow::No;
    /// Sets the metadata fields that are read of every entry. Default: [`Fields::IDENTITY`].
    fields: Fields = Fields::IDENTITY;
    /// Sets whether the metadata of a directory is read with the other entries of its parent, not
    /// only once the directory is open. Default: no.
    stat_dirs: bool = false;
    /// Sets whether a directory that is reachable twice is listed once only, until the consumer has
    /// entered it a second time. Default: no.
    dedup_directories: bool = false;
    /// Sets whether a very wide directory may be read in chunks smaller than those that are ordered
    /// by inode number, to use less memory. Items of [`Emit::item`](crate::Emit::item) may then be
    /// out of order within their directory; everything else keeps its order. Default: no.
    unordered_chunks: bool = false;
    /// Sets whether [`Visitor::opened`](crate::Visitor::opened) is called for each directory,
    /// before any of its names is selected. The directory, or the first batch of a very wide one,
    /// is then read before any worker gets a part of it. Default: no.
    inspect_directories: bool = false;
    /// Sets the maximum number of workers. Default: no limit but the model's.
    workers_max: Option<usize> = None;
    /// Sets the maximum number of descriptors, if the process may not have fewer anyway. Default:
    /// the process's limit.
    fds_max: Option<usize> = None;
    /// Sets the known concurrency of devices, for [`Model::Auto`]. Default: none.
    hints: ConcurrencyHints = ConcurrencyHints::default();
    /// Sets the clock by which the number of workers adapts, the progress is shown, and a thread
    /// that could not be started is tried again. Default: the machine's.
    clock: Clock = Clock::default();
}

/// The numbers of workers of a walk, at least one.
pub(crate) struct WorkerCounts {
    pub(crate) start: usize,
    pub(crate) max: usize,
}

impl Options {
    /// Returns whether the number of workers adapts to the storage.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.model == Model::Auto && self.threads.is_none()
    }

    /// Returns the numbers of workers for a machine with `cpus` processors.
    pub(crate) fn worker_counts(&self, cpus: usize) -> WorkerCounts {
        let start = match (self.threads, self.model) {
            (Some(count), _) | (None, Model::Threads(Some(count))) => count,
            (None, Model::Sync | Model::AsyncSeq | Model::AsyncPar) => 1,
            (None, _) => cpus,
        };
        let max = if self.is_adaptive() { WORKERS_MAX.max(cpus) } else { start };
        let limit = self.workers_max.unwrap_or(usize::MAX);
        WorkerCounts { start: start.min(limit).max(1), max: max.min(limit).max(1) }
    }
}
