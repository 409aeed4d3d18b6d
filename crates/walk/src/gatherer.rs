//! A walk that runs by itself: a [`Policy`] says on the workers what is of interest, and that goes to bounded channels, from which
//! any number of threads take it.
//!
//! ```
//! use fathom_walk::gatherer::{Builder, Entry, Message, Pick, Policy};
//! use fathom_walk::{FileType, Node};
//!
//! /// Everything is walked; sizes of regular files go to one of two channels, by inode.
//! struct Sizes;
//!
//! impl Policy for Sizes {
//!     fn pick(&self, _dir: &Node, entry: Entry<'_>) -> Pick {
//!         match entry.file_type {
//!             FileType::Regular => Pick::metadata(entry.ino as usize % 2),
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
//! let readers: Vec<_> = inboxes
//!     .into_iter()
//!     .map(|inbox| {
//!         std::thread::spawn(move || {
//!             inbox.filter_map(|message| match message {
//!                 Message::Metadata(_, meta) => Some(meta.size),
//!                 _ => None,
//!             })
//!             .sum::<i64>()
//!         })
//!     })
//!     .collect();
//! let summary = gatherer.finish()?;
//! let total: i64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
//! assert_eq!((summary.complete, total), (true, 6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: the channels, the thread that leads the walk, its end. Does not own: what is of interest, how the tree is read.

mod channel;
mod policy;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use fathom_io::{Choice, Fields, Follow};

use crate::error::{Error, Op};
use crate::gather::Roots;
use crate::leaps::Leaps;
use crate::run::{Options, Progress, Summary, gather};
use crate::visit::NextRoot;

use channel::Outlets;
pub use channel::{EntryPath, Inbox, Message, RootId};
use policy::Sorter;
pub use policy::{Entry, Pick, Policy};

/// How long the leading thread waits for a root before it looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// Messages a channel holds unless told otherwise: those of a few dozen directories for each of some workers.
const BACKLOG: usize = 16 * 1024;

/// How to gather.
#[derive(Clone, Debug)]
pub struct Builder {
    options: Options,
    channels: usize,
    backlog: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// One channel, workers as the storage wants them, all fields of metadata where that is asked for.
    #[must_use]
    pub fn new() -> Self {
        let options = Options {
            choice: Choice::Auto,
            threads: None,
            roots: Follow::No,
            links: Follow::No,
            fields: Fields::ALL,
            stat_dirs: true,
            once: false,
            loose: false,
            whole: false,
            workers_max: None,
            fds_max: None,
            leaps: Leaps::default(),
        };
        Self { options, channels: 1, backlog: BACKLOG }
    }

    /// The I/O model.
    #[must_use]
    pub fn model(mut self, choice: Choice) -> Self {
        self.options.choice = choice;
        self
    }

    /// Just so many workers.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.options.threads = Some(count);
        self
    }

    /// Never more workers.
    #[must_use]
    pub fn workers_max(mut self, count: usize) -> Self {
        self.options.workers_max = Some(count);
        self
    }

    /// No more descriptors, if the process may not have fewer anyway. There is no number too small for a walk to come to its end.
    #[must_use]
    pub fn fds_max(mut self, count: usize) -> Self {
        self.options.fds_max = Some(count);
        self
    }

    /// So many channels.
    #[must_use]
    pub fn channels(mut self, count: usize) -> Self {
        self.channels = count.max(1);
        self
    }

    /// So many messages in a channel before workers wait for whoever takes them; those of one directory go together, however many.
    #[must_use]
    pub fn backlog(mut self, messages: usize) -> Self {
        self.backlog = messages.max(1);
        self
    }

    /// These fields of the metadata.
    #[must_use]
    pub fn fields(mut self, fields: Fields) -> Self {
        self.options.fields = fields;
        self
    }

    /// Whether symbolic links are followed.
    #[must_use]
    pub fn follow(mut self, follow: Follow) -> Self {
        (self.options.roots, self.options.links) = (follow, follow);
        self
    }

    /// Starts the workers; the channels' other ends are given back, one each.
    ///
    /// # Errors
    /// If no thread can be started. That the model cannot run here is told by [`Gatherer::finish`].
    pub fn start<P: Policy>(self, policy: P) -> Result<(Gatherer, Vec<Inbox>), Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (outlets, inboxes) = Outlets::new(self.channels, self.backlog, stop.clone());
        let outlets = Arc::new(outlets);
        let (roots, waiting) = unbounded();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let mut line = Line { waiting, stop: stop.clone() };
        let (shown, options) = (progress.clone(), self.options);
        let lead = move || {
            let sorter = Sorter { policy, outlets: outlets.clone() };
            let mut watch = |now| *shown.lock().unwrap_or_else(PoisonError::into_inner) = now;
            let ended = gather(options, sorter, &mut line, &mut watch);
            outlets.close();
            ended
        };
        let thread = std::thread::Builder::new().name("gather".to_owned()).spawn(lead);
        let thread = thread.map_err(|error| Error::new(Op::StartWorker, error))?;
        let roots = Mutex::new((Some(roots), 0));
        Ok((Gatherer { roots, stop, progress, thread: Some(thread) }, inboxes))
    }
}

/// The roots that are still to be handed out.
struct Line {
    waiting: Receiver<CString>,
    stop: Arc<AtomicBool>,
}

impl Roots for Line {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        let patience = if wait { PATIENCE } else { Duration::ZERO };
        match self.waiting.recv_timeout(patience) {
            Ok(path) => NextRoot::Path(path),
            Err(RecvTimeoutError::Timeout) => NextRoot::NotNow,
            Err(RecvTimeoutError::Disconnected) => NextRoot::End,
        }
    }

    fn stopped(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A walk under way. Dropped, it ends.
#[derive(Debug)]
pub struct Gatherer {
    /// Where roots go, as long as there may be more, and how many have gone.
    roots: Mutex<(Option<Sender<CString>>, usize)>,
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Progress>>,
    thread: Option<JoinHandle<Result<Summary, Error>>>,
}

impl Gatherer {
    /// Adds a tree, at any time; [`Message::RootDone`] says when all of it has been told.
    ///
    /// # Errors
    /// If the path has a NUL byte, or the walk has ended.
    pub fn add_root(&self, path: impl AsRef<Path>) -> std::io::Result<RootId> {
        let path = CString::new(path.as_ref().as_os_str().as_bytes())?;
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (sender, count) = &mut *roots;
        sender.as_ref().ok_or_else(ended)?.send(path).map_err(|_| ended())?;
        *count += 1;
        Ok(RootId(*count - 1))
    }

    /// How the walk is doing.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the walk soon, whatever its workers or consumers wait for. What is in the channels stays there to be taken.
    pub fn shut_down(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// There are no more roots: waits for the walk's end, or for that of one that was shut down. As long as a channel is full, and
    /// somebody has its other end, that does not come.
    ///
    /// # Errors
    /// If the model cannot run here, no worker can be started, or the policy panics.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            _ => Err(Error::new(Op::Work, std::io::Error::other("the walk's leading thread panicked"))),
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shut_down();
            // Whoever drops it does not want to know.
            let _ = self.end();
        }
    }
}
