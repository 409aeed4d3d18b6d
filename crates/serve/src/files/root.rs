//! A site's directory, and which directory that is by now: deployments remove it and make it again,
//! or point a symbolic link elsewhere.
//!
//! ```text
//! worker: View (its own copy, renewed when it is too old) ──> Followed (shared) ──> Root (open)
//! ```
//! Owns: opening the directory by its path, finding out that the path leads elsewhere or nowhere, and
//! the messages about that. Does not own: when the path is looked at (`worker::roots`), the cache of
//! files below.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fathom_io::Errno;
use fathom_io::beneath::{Beneath, Links, Patience};
use fathom_io::offer::is_local;
use fathom_io::sys::fs_magic;

/// linux/magic.h. Its files are on other filesystems, most of them local; one that makes opens wait
/// is found out.
const OVERLAY: i64 = 0x794C_7630;
/// Least time between two lines about one directory.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// An open directory that is served, for as many workers as there are.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) beneath: Arc<Beneath>,
    pub(crate) dev: u64,
    /// Tells roots apart, also those that a path led to one after the other.
    pub(crate) number: usize,
    /// Whether opening a file may be tried on the worker.
    pub(crate) is_local: bool,
}

impl Root {
    /// Opens the directory `path`.
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self, Errno> {
        let beneath = Beneath::new(path, links)?;
        let meta = beneath.stat(b".", Patience::Wait)?.ok_or(Errno::AGAIN)?;
        let magic = fs_magic(beneath.dir().as_fd()).unwrap_or_default();
        let is_local = is_local(magic) || magic == OVERLAY;
        Ok(Self { beneath: Arc::new(beneath), dev: meta.dev, number: next_number(), is_local })
    }
}

/// A number that no other root has.
fn next_number() -> usize {
    static ROOTS: AtomicUsize = AtomicUsize::new(0);
    ROOTS.fetch_add(1, Ordering::Relaxed)
}

/// The directory at the path of a site, opened anew when the path leads to another one.
#[derive(Debug)]
pub(crate) struct Followed {
    /// As configured, for messages.
    named: PathBuf,
    path: PathBuf,
    links: Links,
    number: usize,
    /// Whether looking asks no server, as far as the directory tells that was there last.
    is_local: AtomicBool,
    /// Whether a background lookup of the path, one that no request waits for, is in progress.
    looking: AtomicBool,
    state: Mutex<State>,
    /// How often `state.root` has changed. Written with the lock held; a worker that sees a new
    /// number takes the lock to see the rest.
    changes: AtomicUsize,
}

#[derive(Debug)]
struct State {
    /// The directory, or why there is none.
    root: Result<Root, Errno>,
    /// Whether the last line about it said that it is gone, and when that was.
    said_gone: bool,
    said: Option<Instant>,
}

impl Followed {
    /// Opens the directory `path`.
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self, Errno> {
        let root = Root::open(path, links)?;
        let state = State { root: Ok(root.clone()), said_gone: false, said: None };
        Ok(Self {
            named: path.to_owned(),
            path: anchored(path, &root.beneath),
            links,
            number: root.number,
            is_local: AtomicBool::new(root.is_local),
            looking: AtomicBool::new(false),
            state: Mutex::new(state),
            changes: AtomicUsize::new(0),
        })
    }

    /// Tells sites' directories apart.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Whether looking asks no server, as far as is known.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local.load(Ordering::Relaxed)
    }

    /// How often it has changed.
    pub(crate) fn changes(&self) -> usize {
        self.changes.load(Ordering::Acquire)
    }

    /// The directory as of the last look at it, or why there is none; and how often it had changed.
    pub(crate) fn current(&self) -> (Result<Root, Errno>, usize) {
        let state = self.state();
        (state.root.clone(), self.changes())
    }

    /// Whether the path is known to lead where it led before, without waiting for a disk or a
    /// server.
    pub(crate) fn is_known_same(&self, root: &Root) -> bool {
        root.is_local && root.beneath.is_at(&self.path, Patience::AtOnce) == Ok(Some(true))
    }

    /// Looks where the path leads, and opens what is there if that is another directory. May wait,
    /// without the lock: workers take it.
    pub(crate) fn look(&self) {
        let (known, changes) = self.current();
        let there = match &known {
            Ok(root) => root.beneath.is_at(&self.path, Patience::Wait),
            Err(_) => Ok(None),
        };
        let now = match there {
            Ok(Some(true)) => return,
            Ok(_) => Root::open(&self.path, self.links),
            Err(errno) => Err(errno),
        };
        match (&now, &known) {
            // The cause is this process's or this moment's, and not the directory's.
            (Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::INTR), _) => {}
            (Err(now), Err(known)) if now == known => {}
            _ => self.change(now, changes),
        }
    }

    /// Begins a background lookup, one that no request waits for, or returns `None` if one is in
    /// progress: on a path where lookups hang, each further lookup would block one more thread.
    pub(crate) fn look_unasked(self: &Arc<Self>) -> Option<Look> {
        (!self.looking.swap(true, Ordering::Relaxed)).then(|| Look(Arc::clone(self)))
    }

    /// Takes `now` for the directory, unless another look has found something since it had changed
    /// `changes` times.
    fn change(&self, now: Result<Root, Errno>, changes: usize) {
        let mut state = self.state();
        if self.changes() != changes {
            return;
        }
        if let Ok(root) = &now {
            self.is_local.store(root.is_local, Ordering::Relaxed);
        }
        state.root = now;
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the message that the directory is gone or back, if one is due. At most one message
    /// is due per [`REPORT_EVERY`], and the last message always matches the final state.
    pub(crate) fn report(&self, now: Instant) -> Option<String> {
        let mut state = self.state();
        let is_recent = state.said.is_some_and(|said| now.duration_since(said) < REPORT_EVERY);
        if state.said_gone == state.root.is_err() || is_recent {
            return None;
        }
        (state.said_gone, state.said) = (state.root.is_err(), Some(now));
        let path = self.named.display();
        Some(match &state.root {
            Ok(_) => format!("'{path}' is there again and served"),
            Err(errno) => {
                let cause = String::from_utf8_lossy(&fathom_text::words(*errno)).into_owned();
                format!("cannot open '{path}': {cause}; requests are answered 503 until it is back")
            }
        })
    }

    /// Nothing panics or waits while it is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look to come, or under way.
#[derive(Debug)]
pub(crate) struct Look(Arc<Followed>);

impl Look {
    /// Looks.
    pub(crate) fn run(self) {
        self.0.look();
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.0.looking.store(false, Ordering::Relaxed);
    }
}

/// `path` from the top, so that it still leads to the directory's place when the working directory
/// has been replaced as well. Where only `path` itself leads to `root` (this process may not search
/// what is above the working directory), `path`: it is looked up with what this process may do now,
/// and it never may do less later.
fn anchored(path: &Path, root: &Beneath) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_default();
    match root.is_at(&absolute, Patience::Wait) {
        Ok(Some(true)) => absolute,
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_few_and_the_last_one_is_true() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("dist");
        fs::create_dir(&path).unwrap();
        let followed = Followed::open(&path, Links::Within).unwrap();
        let start = Instant::now();
        let said = |ms| {
            followed.look();
            followed.report(start + Duration::from_millis(ms))
        };
        assert_eq!(said(0), None);
        fs::remove_dir(&path).unwrap();
        let gone = said(0).unwrap();
        assert!(gone.contains("dist': No such file or directory; "), "{gone}");
        assert_eq!(said(0), None, "it was said");
        for ms in (100..1000).step_by(200) {
            fs::create_dir(&path).unwrap();
            assert_eq!(said(ms), None, "{ms}");
            fs::remove_dir(&path).unwrap();
            assert_eq!(said(ms + 50), None, "{ms}");
        }
        fs::create_dir(&path).unwrap();
        assert_eq!(said(999), None);
        assert!(said(1000).unwrap().ends_with("' is there again and served"));
        assert_eq!(said(5000), None);
    }

    #[test]
    fn a_change_is_counted_once() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("dist");
        fs::create_dir(&path).unwrap();
        let followed = Followed::open(&path, Links::Within).unwrap();
        let (first, changes) = followed.current();
        assert!(followed.is_known_same(first.as_ref().unwrap()));
        followed.look();
        assert_eq!(followed.changes(), changes);
        fs::rename(&path, top.path().join("old")).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!followed.is_known_same(first.as_ref().unwrap()));
        followed.look();
        followed.look();
        let (second, now) = followed.current();
        assert_eq!(now, changes + 1);
        assert_ne!(second.unwrap().number, first.unwrap().number);
        fs::remove_dir(&path).unwrap();
        followed.look();
        followed.look();
        assert_eq!((followed.current().0.unwrap_err(), followed.changes()), (Errno::NOENT, changes + 2));
    }
}
