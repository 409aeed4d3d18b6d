//! A walk on threads of its own: a [`Policy`] selects entries on the workers, which send them to
//! bounded channels, from which any number of threads take them. Programs that use it are in
//! `docs/gatherer.md`.
//!
//! ```
//! use fathom_walk::gatherer::{Builder, Message, Pick, Policy, PolicyEntry};
//! use fathom_walk::{FileType, Node};
//! use std::sync::Arc;
//!
//! /// Walks everything; sends regular files to one of two channels, by inode number.
//! struct Sizes;
//!
//! impl Policy for Sizes {
//!     fn wants_metadata(&self, _dir: &Arc<Node>, file_type: FileType) -> bool {
//!         file_type == FileType::Regular
//!     }
//!
//!     fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
//!         match entry.file_type() {
//!             FileType::Regular => Pick::send(entry.ino() as usize % 2),
//!             _ => Pick::default().descend(),
//!         }
//!     }
//! }
//!
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("a"), "1234")?;
//! # std::fs::create_dir(dir.path().join("d"))?;
//! # std::fs::write(dir.path().join("d/b"), "12")?;
//! let (gatherer, inboxes) = Builder::new().channels(2).start(Sizes)?;
//! gatherer.add_root(dir.path())?;
//! gatherer.no_more_roots();
//! let readers: Vec<_> = inboxes
//!     .into_iter()
//!     .map(|inbox| {
//!         std::thread::spawn(move || {
//!             inbox.filter_map(|message| match message {
//!                 Message::Entry(item) => item.meta.map(|meta| meta.size),
//!                 _ => None,
//!             })
//!             .sum::<i64>()
//!         })
//!     })
//!     .collect();
//! let total: i64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
//! let summary = gatherer.finish()?;
//! assert_eq!((summary.complete, total), (true, 6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: the channels, the leading thread, the end of the walk. Does not own: the selection of
//! entries, the reading of the tree.

mod channel;
mod message;
mod path;
mod policy;
mod sorter;
mod token;
mod walk;

use std::ffi::CString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use fathom_io::{Fields, Follow, MetadataModel, Model, Unavailable};

use crate::error::{Error, Op};
use crate::options::Options;
use crate::run::{run_unordered, run_unordered_with};
use crate::summary::{Progress, Summary};
use crate::visitor::{NextRoot, RootSource};

use channel::Outlets;
use sorter::{Limits, Sorter};
use token::Reports;

pub use channel::{Inbox, next_of};
pub use message::{Failed, Item, Message, RootId};
pub use path::{At, EntryPath};
pub use policy::{Filter, Pick, Policy, PolicyEntry};
pub use token::{Processed, Token};
pub use walk::Walk;

/// Default number of messages in a channel: enough for a few dozen directories of each of several
/// workers.
const BACKLOG: usize = 16 * 1024;

/// Options of a gatherer. The [module](self) has an example of [`Builder::start`], [`Walk`] one of
/// [`Builder::walk`].
#[derive(Clone)]
pub struct Builder {
    options: Options,
    limits: Limits,
    channels: usize,
    backlog: usize,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, channels, backlog, .. } = self;
        let shown = (options, channels, backlog);
        f.debug_tuple("Builder").field(&shown).finish()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Returns the defaults: one channel, a number of workers that adapts to the storage, all
    /// fields of metadata for the entries that need it, no limits.
    #[must_use]
    pub fn new() -> Self {
        let options = Options::default().fields(Fields::ALL).stat_dirs(true);
        let limits = Limits {
            min_depth: 0,
            max_depth: usize::MAX,
            one_file_system: false,
            contents_first: false,
            metadata: false,
            links: Follow::No,
            filter: None,
        };
        Self { options, limits, channels: 1, backlog: BACKLOG }
    }

    /// Sets the I/O model.
    #[must_use]
    pub fn model(mut self, model: Model) -> Self {
        self.options.model = model;
        self
    }

    /// Sets the number of worker threads and turns adaptation off.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.options.threads = Some(count);
        self
    }

    /// Sets the maximum number of worker threads.
    #[must_use]
    pub fn workers_max(mut self, count: usize) -> Self {
        self.options.workers_max = Some(count);
        self
    }

    /// Sets the maximum number of open descriptors, if the process may not have fewer anyway. Every
    /// number is sufficient for a walk to end.
    #[must_use]
    pub fn fds_max(mut self, count: usize) -> Self {
        self.options.fds_max = Some(count);
        self
    }

    /// Sets the number of channels.
    #[must_use]
    pub fn channels(mut self, count: usize) -> Self {
        self.channels = count.max(1);
        self
    }

    /// Sets the number of messages in a channel from which on workers wait for its consumers. The
    /// messages of one batch of entries are sent together, whatever their number.
    #[must_use]
    pub fn backlog(mut self, messages: usize) -> Self {
        self.backlog = messages.max(1);
        self
    }

    /// Sets the fields of metadata that are read.
    #[must_use]
    pub fn fields(mut self, fields: Fields) -> Self {
        self.options.fields = fields;
        self
    }

    /// Sets whether symbolic links are followed. A dangling link is then a failure.
    #[must_use]
    pub fn follow(mut self, follow: Follow) -> Self {
        self.options = self.options.follow_roots(follow).follow_links(follow);
        self.limits.links = follow;
        self
    }

    /// Sets whether the metadata of every entry is read, whatever the policy returns.
    #[must_use]
    pub fn metadata(mut self, metadata: bool) -> Self {
        self.limits.metadata = metadata;
        self
    }

    /// Sends no entries above this depth; what is in a root is at depth 1.
    #[must_use]
    pub fn min_depth(mut self, depth: usize) -> Self {
        self.limits.min_depth = depth;
        self
    }

    /// Reads no directories at this depth or below; a root is at depth 0.
    #[must_use]
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.limits.max_depth = depth;
        self
    }

    /// Reads no directories on other devices than their root's. A mount point is still an entry.
    #[must_use]
    pub fn one_file_system(mut self, one: bool) -> Self {
        self.limits.one_file_system = one;
        self
    }

    /// Sends a directory that is descended into after everything below it, instead of with the
    /// other entries of its parent.
    #[must_use]
    pub fn contents_first(mut self, first: bool) -> Self {
        self.limits.contents_first = first;
        self
    }

    /// Sets a filter. The policy sees no entry that the filter drops, and nothing below it.
    #[must_use]
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.limits.filter = Some(Arc::new(filter));
        // The filter sees the names of a directory, or its first batch, before any worker gets a
        // part of it.
        self.options.inspect_directories = true;
        self
    }

    /// Starts the walk. Returns it with the receiving ends of its channels.
    ///
    /// # Errors
    /// If no thread can be started. [`Gatherer::finish`] returns the error if the model is not
    /// available here.
    pub fn start<T: Send + 'static, P: Policy<T>>(
        self,
        policy: P,
    ) -> Result<(Gatherer, Vec<Inbox<T>>), Error> {
        self.lead(policy, run_unordered)
    }

    /// Starts the walk over models that `make` returns, one for every worker, on the worker's own
    /// thread.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub fn start_with<T: Send + 'static, P: Policy<T>, M: MetadataModel>(
        self,
        policy: P,
        make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
    ) -> Result<(Gatherer, Vec<Inbox<T>>), Error> {
        self.lead(policy, move |options, sorter, roots, watch| {
            run_unordered_with(options, sorter, roots, watch, make)
        })
    }

    fn lead<T: Send + 'static, P: Policy<T>>(
        self,
        policy: P,
        walk: impl UnorderedWalk<Sorter<T, P>>,
    ) -> Result<(Gatherer, Vec<Inbox<T>>), Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let outlets = Arc::new(Outlets::new(self.channels, self.backlog, stop.clone()));
        let (inboxes, reports) = (outlets.inboxes(), outlets.clone());
        let (roots, waiting) = unbounded();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let mut queue = RootQueue { waiting, stop };
        let (shown, options, limits) = (progress.clone(), self.options, self.limits);
        let closing = Closing(outlets.clone());
        let lead = move || {
            let _closing = closing;
            let sorter = Sorter { policy, limits, outlets: outlets.clone() };
            let mut watch = |now| *shown.lock().unwrap_or_else(PoisonError::into_inner) = now;
            let ended = walk(options, sorter, &mut queue, &mut watch);
            if !ended.as_ref().is_ok_and(|summary| summary.complete) {
                // Directories that were walked in part are never processed: do not wait for their
                // tokens.
                outlets.shut_down();
            }
            ended
        };
        let thread = std::thread::Builder::new().name("gather".to_owned()).spawn(lead);
        let thread = thread.map_err(|error| Error::new(Op::StartWorker, error))?;
        let roots = Mutex::new((Some(roots), 0));
        Ok((Gatherer { roots, reports, progress, thread: Some(thread) }, inboxes))
    }
}

/// Closes the channels when the leading thread ends, even by a panic.
struct Closing<T>(Arc<Outlets<T>>);

impl<T> Drop for Closing<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs an unordered walk with a given model.
trait UnorderedWalk<G>:
    FnOnce(Options, G, &mut dyn RootSource, &mut dyn FnMut(Progress)) -> Result<Summary, Error> + Send + 'static
{
}

impl<G, F> UnorderedWalk<G> for F where
    F: FnOnce(Options, G, &mut dyn RootSource, &mut dyn FnMut(Progress)) -> Result<Summary, Error>
        + Send
        + 'static
{
}

/// The roots that the walk has not taken yet.
struct RootQueue {
    waiting: Receiver<CString>,
    stop: Arc<AtomicBool>,
}

impl RootSource for RootQueue {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        // A walk that is shut down takes no further root. `shut_down` sets the flag before it drops
        // the sender, so the wait below ends, and a worker sets it before its task is finished, so
        // it is visible here when the walk is idle.
        if self.stopped() {
            return NextRoot::NotNow;
        }
        let next = if wait {
            self.waiting.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.waiting.try_recv()
        };
        match next {
            Ok(path) => NextRoot::Path(path),
            Err(TryRecvError::Disconnected) if !self.stopped() => NextRoot::End,
            Err(TryRecvError::Disconnected | TryRecvError::Empty) => NextRoot::NotNow,
        }
    }

    fn stopped(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A running walk. Dropping it ends the walk.
pub struct Gatherer {
    /// The sender of roots, as long as more may be added, and the number of roots so far.
    roots: Mutex<(Option<Sender<CString>>, usize)>,
    /// The channels.
    reports: Arc<dyn Reports>,
    progress: Arc<Mutex<Progress>>,
    thread: Option<JoinHandle<Result<Summary, Error>>>,
}

impl fmt::Debug for Gatherer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gatherer").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Gatherer {
    /// Adds a tree, at any time; [`Message::RootDone`] says when all of it has been sent.
    ///
    /// # Errors
    /// If the path has a NUL byte, the walk has ended, or [no more roots](Gatherer::no_more_roots)
    /// were to come.
    pub fn add_root(&self, path: impl AsRef<Path>) -> std::io::Result<RootId> {
        let path = CString::new(path.as_ref().as_os_str().as_bytes())?;
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (sender, count) = &mut *roots;
        sender.as_ref().ok_or_else(ended)?.send(path).map_err(|_| ended())?;
        *count += 1;
        Ok(RootId(*count - 1))
    }

    /// Promises that no tree will be added: the walk, and with it every channel, comes to its end
    /// by itself.
    pub fn no_more_roots(&self) {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
    }

    /// Returns the progress of the walk.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the walk soon, even if its workers or consumers wait. Messages in the channels can
    /// still be taken; no further tree can be added.
    pub fn shut_down(&self) {
        self.reports.shut_down();
        // The leading thread may wait for a root.
        self.no_more_roots();
    }

    /// Waits for the end of the walk, to which no more trees are added, or of one that was shut
    /// down. As long as a channel is full and has a consumer, that does not come.
    /// [`Summary::complete`] is false if the walk was shut down or anything failed.
    ///
    /// # Errors
    /// If the model cannot run here, no worker can be started, or the policy panics.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.no_more_roots();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map(|summary| {
                let complete = summary.complete && summary.progress.failures == 0;
                Summary { complete, ..summary }
            }),
            _ => Err(Error::new(
                Op::Work,
                std::io::Error::other("the walk's leading thread panicked, which is a bug"),
            )),
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shut_down();
            // The caller has dropped the result.
            let _ = self.end();
        }
    }
}
