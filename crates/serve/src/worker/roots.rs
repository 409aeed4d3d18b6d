//! The sites' directories as one worker knows them.
//!
//! Owns: when a directory's path is looked at again, and that nothing kept of a directory outlives
//! it. Does not own: the look, which is [`Followed`]'s.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use fathom_io::Errno;

use super::Worker;
use crate::files::pool::Resource;
use crate::files::{Failure, Followed, Root};

/// Directories that are looked at each time without a request: more would keep an idle machine
/// busy.
const LOOKS_MAX: usize = 16;

/// By the number of [`Followed`], what this worker knows of it. Every request asks, mostly for the
/// only one: that takes one comparison, and no hash.
pub(super) type Roots = RefCell<BTreeMap<usize, Rc<View>>>;

/// A site's directory as this worker knows it.
#[derive(Debug)]
pub(super) struct View {
    root: RefCell<Result<Rc<Root>, Errno>>,
    changes: Cell<usize>,
    looked: Cell<Instant>,
}

impl View {
    fn new(followed: &Followed) -> Rc<Self> {
        let (root, changes) = followed.current();
        let (root, changes) = (RefCell::new(root.map(Rc::new)), Cell::new(changes));
        Rc::new(Self { root, changes, looked: Cell::new(Instant::now()) })
    }

    fn root(&self) -> Result<Rc<Root>, Errno> {
        self.root.borrow().clone()
    }
}

impl Worker {
    /// The directory of `followed`, as it was at most the cache's age before `now`.
    pub(crate) async fn root(
        &self,
        followed: &Arc<Followed>,
        client: u64,
        now: Instant,
    ) -> Result<Rc<Root>, Failure> {
        let view = self.view(followed);
        if now.duration_since(view.looked.get()) >= self.cache.age_limit() {
            // Requests that come meanwhile do not look as well.
            view.looked.set(now);
            if !self.is_known_same(followed, &view) {
                Box::pin(self.look(followed, client)).await?;
            }
        }
        self.adopt(followed, &view);
        view.root().map_err(|_errno| Failure::NoRoot)
    }

    fn view(&self, followed: &Followed) -> Rc<View> {
        let mut roots = self.roots.borrow_mut();
        Rc::clone(roots.entry(followed.number()).or_insert_with(|| View::new(followed)))
    }

    fn is_known_same(&self, followed: &Followed, view: &View) -> bool {
        view.root().is_ok_and(|root| followed.is_known_same(&root))
    }

    async fn look(&self, followed: &Arc<Followed>, client: u64) -> Result<(), Failure> {
        let on = Resource::Device(followed.current().0.map_or(0, |root| root.dev));
        let followed = Arc::clone(followed);
        Ok(self.files.pool.run(client, on, move || followed.look()).await?)
    }

    /// Takes over what others have found out about `followed`. What was kept of the directory
    /// before is dropped.
    fn adopt(&self, followed: &Followed, view: &View) {
        if followed.changes() == view.changes.get() {
            return;
        }
        let (root, changes) = followed.current();
        view.changes.set(changes);
        if let Ok(old) = view.root.replace(root.map(Rc::new)) {
            self.cache.forget_root(old.number);
        }
    }

    /// Forgets what is known of directories that the plan no longer has.
    pub(super) fn forget_roots(&self) {
        self.roots.borrow_mut().clear();
    }

    /// Gives up what is kept of directories that are gone. One worker also looks for those on this
    /// machine's disks, whether or not there are requests, and says what has become of them.
    pub(super) fn sweep_roots(&self, round: usize) {
        let plan = self.plan();
        let roots = plan.roots();
        roots.iter().for_each(|followed| self.adopt(followed, &self.view(followed)));
        if self.number != 0 {
            return;
        }
        let start = round.wrapping_mul(LOOKS_MAX) % roots.len().max(1);
        for followed in roots.iter().cycle().skip(start).take(LOOKS_MAX.min(roots.len())) {
            self.look_unasked(followed);
        }
        let now = Instant::now();
        for line in roots.iter().filter_map(|followed| followed.report(now)) {
            self.shared.errors.note(&line);
        }
    }

    /// Has the pool look, unless that is known to be of no use, or a server would be asked for it
    /// without end.
    fn look_unasked(&self, followed: &Arc<Followed>) {
        if !followed.is_local() || self.is_known_same(followed, &self.view(followed)) {
            return;
        }
        if let Some(look) = followed.look_unasked() {
            self.files.pool.spawn(Resource::Device(0), || look.run());
        }
    }
}
