//! A site's root directory, reopened when its path resolves to another directory: deployments
//! remove it and make it again, or point a symbolic link elsewhere.
//!
//! ```text
//! worker: View (its own copy, renewed when it is too old) ──> SiteRoot (shared) ──> Root (open)
//! ```
//! Owns: opening the directory by its path, detecting that the path resolves elsewhere or nowhere,
//! and the messages about that. Does not own: when the path is looked up (`worker::roots`), and the
//! cache of files below.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fathom_files::Root;
use fathom_io::Errno;
use fathom_io::beneath::{Beneath, Links, LookupMode};

/// The minimum time between two log lines about one directory.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The root directory of a site, reopened when its path resolves to another directory.
#[derive(Debug)]
pub(crate) struct SiteRoot {
    /// The path as configured, for messages.
    configured_path: PathBuf,
    path: PathBuf,
    links: Links,
    number: usize,
    /// Whether a lookup of the path asks no server, judged by the last directory there.
    is_local: AtomicBool,
    /// Whether a background lookup of the path, one that no request waits for, is in progress.
    refresh_in_progress: AtomicBool,
    state: Mutex<SiteRootState>,
    /// The number of changes of `state.root`. Written with the lock held; a worker that sees a new
    /// number takes the lock to read the root.
    generation: AtomicUsize,
}

#[derive(Debug)]
struct SiteRootState {
    /// The directory, or the error of opening it.
    root: Result<Root, Errno>,
    /// Whether the last log line said that the directory is gone, and the time of that line.
    reported_gone: bool,
    reported_at: Option<Instant>,
}

impl SiteRoot {
    /// Opens the directory `path`.
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self, Errno> {
        let root = Root::open(path, links)?;
        let state = SiteRootState { root: Ok(root.clone()), reported_gone: false, reported_at: None };
        Ok(Self {
            configured_path: path.to_owned(),
            path: resolve_anchored(path, &root.beneath),
            links,
            number: root.number,
            is_local: AtomicBool::new(root.is_local),
            refresh_in_progress: AtomicBool::new(false),
            state: Mutex::new(state),
            generation: AtomicUsize::new(0),
        })
    }

    /// Returns the root of a site without a directory. Nothing is below it.
    pub(crate) fn absent() -> Self {
        let state = SiteRootState { root: Err(Errno::NOENT), reported_gone: true, reported_at: None };
        Self {
            configured_path: PathBuf::new(),
            path: PathBuf::new(),
            links: Links::Never,
            number: usize::MAX,
            is_local: AtomicBool::new(false),
            refresh_in_progress: AtomicBool::new(false),
            state: Mutex::new(state),
            generation: AtomicUsize::new(0),
        }
    }

    /// Returns a number that is unique among the sites' roots.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns whether a lookup of the path asks no server, as far as is known.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local.load(Ordering::Relaxed)
    }

    /// Returns the number of changes of the directory so far.
    pub(crate) fn generation(&self) -> usize {
        // Pairs with the Release in `change`. A worker that sees the new number reads the root
        // under the lock, which orders that read by itself.
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the directory as of the last lookup, or its error, and the generation.
    pub(crate) fn current(&self) -> (Result<Root, Errno>, usize) {
        let state = self.state();
        (state.root.clone(), self.generation())
    }

    /// Returns whether the path is known to resolve to `root` still, without waiting for a disk or
    /// a server.
    pub(crate) fn is_unchanged_nowait(&self, root: &Root) -> bool {
        root.is_local && root.beneath.is_at(&self.path, LookupMode::Cached) == Ok(Some(true))
    }

    /// Looks the path up, and opens the directory there if it is another one. May wait, without the
    /// lock, which workers take.
    pub(crate) fn refresh(&self) {
        let (known, generation) = self.current();
        let there = match &known {
            Ok(root) => root.beneath.is_at(&self.path, LookupMode::Blocking),
            Err(_) => Ok(None),
        };
        let now = match there {
            Ok(Some(true)) => return,
            Ok(_) => Root::open(&self.path, self.links),
            Err(errno) => Err(errno),
        };
        match (&now, &known) {
            // These errors are temporary or come from this process: the directory may be fine.
            (Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::INTR), _) => {}
            (Err(now), Err(known)) if now == known => {}
            _ => self.change(now, generation),
        }
    }

    /// Begins a background lookup, one that no request waits for, or returns `None` if one is in
    /// progress: on a path where lookups hang, each further lookup would block one more thread.
    pub(crate) fn begin_background_refresh(self: &Arc<Self>) -> Option<BackgroundRefresh> {
        (!self.refresh_in_progress.swap(true, Ordering::Relaxed)).then(|| BackgroundRefresh(Arc::clone(self)))
    }

    /// Stores `now` as the directory, unless another lookup has changed it since the generation
    /// `generation`.
    fn change(&self, now: Result<Root, Errno>, generation: usize) {
        let mut state = self.state();
        if self.generation() != generation {
            return;
        }
        if let Ok(root) = &now {
            self.is_local.store(root.is_local, Ordering::Relaxed);
        }
        state.root = now;
        // Pairs with the Acquire in `generation`: the number is published after the root it counts.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns the message that the directory is gone or back, if one is due. At most one message
    /// is due per [`REPORT_EVERY`], and the last message always matches the final state.
    pub(crate) fn report(&self, now: Instant) -> Option<String> {
        let mut state = self.state();
        let is_recent =
            state.reported_at.is_some_and(|reported_at| now.duration_since(reported_at) < REPORT_EVERY);
        if state.reported_gone == state.root.is_err() || is_recent {
            return None;
        }
        (state.reported_gone, state.reported_at) = (state.root.is_err(), Some(now));
        let path = self.configured_path.display();
        Some(match &state.root {
            Ok(_) => format!("'{path}' exists again and is served"),
            Err(errno) => {
                let cause = String::from_utf8_lossy(&fathom_text::strerror(*errno)).into_owned();
                format!("cannot open '{path}': {cause}; answering 503 until it exists")
            }
        })
    }

    /// Locks the state. No code panics or waits with the lock held.
    fn state(&self) -> MutexGuard<'_, SiteRootState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A background lookup that is scheduled or running.
#[derive(Debug)]
pub(crate) struct BackgroundRefresh(Arc<SiteRoot>);

impl BackgroundRefresh {
    /// Looks the path up.
    pub(crate) fn run(self) {
        self.0.refresh();
    }
}

impl Drop for BackgroundRefresh {
    fn drop(&mut self) {
        self.0.refresh_in_progress.store(false, Ordering::Relaxed);
    }
}

/// Returns `path` as an absolute path, so that it still resolves when the working directory has
/// been replaced as well. Returns `path` itself if only that resolves to `root`, because this
/// process may not search the directories above the working directory.
fn resolve_anchored(path: &Path, root: &Beneath) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_default();
    match root.is_at(&absolute, LookupMode::Blocking) {
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
        let followed = SiteRoot::open(&path, Links::Within).unwrap();
        let start = Instant::now();
        let said = |ms| {
            followed.refresh();
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
        assert!(said(1000).unwrap().ends_with("' exists again and is served"));
        assert_eq!(said(5000), None);
    }

    #[test]
    fn a_change_is_counted_once() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("dist");
        fs::create_dir(&path).unwrap();
        let followed = SiteRoot::open(&path, Links::Within).unwrap();
        let (first, generation) = followed.current();
        assert!(followed.is_unchanged_nowait(first.as_ref().unwrap()));
        followed.refresh();
        assert_eq!(followed.generation(), generation);
        fs::rename(&path, top.path().join("old")).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!followed.is_unchanged_nowait(first.as_ref().unwrap()));
        followed.refresh();
        followed.refresh();
        let (second, now) = followed.current();
        assert_eq!(now, generation + 1);
        assert_ne!(second.unwrap().number, first.unwrap().number);
        fs::remove_dir(&path).unwrap();
        followed.refresh();
        followed.refresh();
        assert_eq!(
            (followed.current().0.unwrap_err(), followed.generation()),
            (Errno::NOENT, generation + 2)
        );
    }
}
