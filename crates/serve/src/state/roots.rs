//! The root directories of the sites, as one worker sees them.
//!
//! Owns: when the path of a root is looked up again, and that no cache entry outlives its root.
//! Does not own: the lookup itself ([`SiteRoot`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fathom_files::pool::Resource;
use fathom_files::{FileError, Root};
use fathom_io::Errno;

use super::worker::Worker;
use crate::site_root::SiteRoot;

/// The most roots that one sweep checks without a request: more would keep an idle machine busy.
const CHECKS_MAX: usize = 16;
/// The least time between two such checks, by the clock of the server.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The views by [`SiteRoot::number`]. Every request looks one up, usually the only one: that takes
/// one comparison and no hash.
pub(super) type RootViews = RefCell<BTreeMap<usize, Rc<RootView>>>;

/// A root directory as this worker last saw it.
#[derive(Debug)]
pub(super) struct RootView {
    root: RefCell<Result<Rc<Root>, Errno>>,
    generation: Cell<usize>,
    checked: Cell<Instant>,
}

impl RootView {
    fn new(followed: &SiteRoot, now: Instant) -> Rc<Self> {
        let (root, generation) = followed.current();
        let (root, generation) = (RefCell::new(root.map(Rc::new)), Cell::new(generation));
        Rc::new(Self { root, generation, checked: Cell::new(now) })
    }

    fn root(&self) -> Result<Rc<Root>, Errno> {
        self.root.borrow().clone()
    }
}

impl Worker {
    /// Returns the root of `followed`, checked no longer ago than the age limit of the cache before
    /// `now`.
    pub(crate) async fn root(
        &self,
        followed: &Arc<SiteRoot>,
        client: u64,
        now: Instant,
    ) -> Result<Rc<Root>, FileError> {
        let view = self.view(followed);
        if now.duration_since(view.checked.get()) >= self.cache.age_limit() {
            // Set the time first, so that requests that arrive during the check do not check as
            // well.
            view.checked.set(now);
            if !self.is_unchanged(followed, &view) {
                Box::pin(self.check_root(followed, client)).await?;
            }
        }
        self.update_view(followed, &view);
        view.root().map_err(|_errno| FileError::NoRoot)
    }

    fn view(&self, followed: &SiteRoot) -> Rc<RootView> {
        let mut roots = self.roots.borrow_mut();
        Rc::clone(roots.entry(followed.number()).or_insert_with(|| RootView::new(followed, self.now())))
    }

    fn is_unchanged(&self, followed: &SiteRoot, view: &RootView) -> bool {
        view.root().is_ok_and(|root| followed.is_unchanged_nowait(&root))
    }

    async fn check_root(&self, followed: &Arc<SiteRoot>, client: u64) -> Result<(), FileError> {
        let resource = Resource::Device(followed.current().0.map_or(0, |root| root.dev));
        let followed = Arc::clone(followed);
        Ok(self.files.pool().run(client, resource, move || followed.refresh()).await?)
    }

    /// Updates `view` from `followed` if another worker or the pool has found a change, and drops
    /// the cache entries of the old root.
    fn update_view(&self, followed: &SiteRoot, view: &RootView) {
        if followed.generation() == view.generation.get() {
            return;
        }
        let (root, generation) = followed.current();
        view.generation.set(generation);
        if let Ok(old) = view.root.replace(root.map(Rc::new)) {
            self.cache.forget_root(old.number);
        }
    }

    /// Forgets all views, for a new plan.
    pub(crate) fn forget_roots(&self) {
        self.roots.borrow_mut().clear();
    }

    /// Updates all views. One worker also checks the roots on local disks, whether or not there are
    /// requests, and reports roots that disappeared or returned.
    pub(crate) fn sweep_roots(&self, round: usize) {
        let plan = self.plan();
        let roots = plan.roots();
        roots.iter().for_each(|followed| self.update_view(followed, &self.view(followed)));
        // Sweeps come by the machine's clock. While the server's clock stands still, no root is
        // checked without a request, as none is checked for a request.
        let now = self.now();
        if self.number != 0 || now.duration_since(self.roots_checked.get()) < CHECK_INTERVAL {
            return;
        }
        self.roots_checked.set(now);
        let start = round.wrapping_mul(CHECKS_MAX) % roots.len().max(1);
        for followed in roots.iter().cycle().skip(start).take(CHECKS_MAX.min(roots.len())) {
            self.check_root_in_background(followed);
        }
        for line in roots.iter().filter_map(|followed| followed.report(now)) {
            self.shared.errors.note(&line);
        }
    }

    /// Makes the pool check a root, unless the root is known to be unchanged or is on a file
    /// server, which would be asked without end.
    fn check_root_in_background(&self, followed: &Arc<SiteRoot>) {
        if !followed.is_local() || self.is_unchanged(followed, &self.view(followed)) {
            return;
        }
        if let Some(look) = followed.begin_background_refresh() {
            self.files.pool().spawn(Resource::Device(0), || look.run());
        }
    }
}
