//! The unordered driver: the worker that executed a task calls the visitor with the result, and
//! counts the unfinished tasks of each directory. The calling thread supplies roots and adjusts the
//! number of workers.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use fathom_io::MetadataModel;

use crate::driven::Driven;
use crate::failure::Failure;
use crate::node::Node;
use crate::pool::Pool;
use crate::task::{DirState, Head, Job, Task, TaskOutput};
use crate::visitor::{Descend, Enter, NextRoot, RootSource};
use crate::worker::{Scratch, Shared, Worker};

/// Number of unfinished tasks from which on no further root is requested.
const ENOUGH: usize = 256;
/// Time between two checks of the calling thread.
const NAP: Duration = Duration::from_millis(2);

impl<D: Driven, M: MetadataModel> Worker<D, M> {
    /// Calls the visitor with the result of `task`, and schedules the tasks in it.
    pub(crate) fn settle(
        &self,
        task: &Task<D::Item>,
        mut out: TaskOutput<D::Item>,
        scratch: &mut Scratch<D::Item>,
    ) {
        self.announce(out.tasks().skip(out.given_out), &mut scratch.children);
        self.shared.schedule.push(&mut scratch.children, scratch.origin);
        let node = task.job.node();
        let head = out.head.take();
        let read = match &head {
            None => !matches!(task.job, Job::Root(_) | Job::List(_)),
            Some(Head::Dir { state, .. }) => *state == DirState::Listed,
            Some(Head::File(_) | Head::Inaccessible(_)) => false,
        };
        let is_wanted = match &head {
            Some(Head::File(meta)) => {
                self.call(|visitor, local| visitor.root_file(local, node, meta));
                Descend::Yes
            }
            Some(Head::Dir { meta, state, .. }) if !read => {
                let found = state.found();
                self.call(|visitor, local| visitor.enter(local, Enter { node, meta, found }))
            }
            Some(Head::Dir { .. } | Head::Inaccessible(_)) | None => Descend::Yes,
        };
        // A directory that the visitor declines may be unreadable: that is not reported as a
        // failure.
        if is_wanted == Descend::Yes {
            let failed = head.as_ref().and_then(Head::failure).into_iter().chain(out.error);
            failed.for_each(|(operation, errno)| self.fail(Failure { node, name: None, operation, errno }));
        }
        self.end_part(node, read);
    }

    fn end_part(&self, node: &Arc<Node>, read: bool) {
        if !node.end_part() {
            return;
        }
        if read {
            self.call(|visitor, local| visitor.leave(local, node));
        }
        let mut over = Some(node);
        while let Some(node) = over.filter(|node| node.end_below()) {
            self.call(|visitor, local| visitor.done(local, node));
            if node.parent().is_none() {
                node.release_root_base();
            }
            over = node.parent().filter(|_| !node.is_apart());
        }
    }
}

/// Schedules roots until there are no more and everything below them has been visited. Returns
/// false if the walk was stopped before.
pub(crate) fn lead<D: Driven>(
    shared: &Shared<D>,
    pool: &mut Pool<'_, D>,
    roots: &mut dyn RootSource,
) -> bool {
    let (schedule, follow) = (&shared.schedule, shared.options.follow_roots);
    let (mut count, mut ended) = (0, false);
    let mut first = None;
    loop {
        if pool.tick() || roots.stopped() {
            return false;
        }
        while !ended && schedule.outstanding() < ENOUGH {
            let is_idle = schedule.is_idle();
            if is_idle {
                // The call below may wait for long.
                pool.show();
            }
            let mut add = |base: Option<Arc<OwnedFd>>, path| {
                let (is_first, fds) = (count == 0 && base.is_none(), Arc::downgrade(&shared.fds));
                let root = Arc::new(Node::root_at(base, path, count, follow, fds));
                first = is_first.then(|| root.clone());
                schedule.push_wanted(Task::new(Job::Root(root)), false);
                count += 1;
            };
            match roots.next_root(is_idle) {
                NextRoot::Path(path) => add(None, path),
                NextRoot::At(base, path) => add(Some(base), path),
                NextRoot::Below(dir, name) => schedule.push_wanted(below(&dir, &name), false),
                NextRoot::Note => {}
                NextRoot::NotNow => break,
                NextRoot::End => ended = true,
            }
        }
        if let Some(root) = first.take() {
            pool.begin(&root);
        }
        if ended && schedule.is_idle() {
            return true;
        }
        if !pool.work() {
            std::thread::park_timeout(NAP);
        }
    }
}

/// Returns a task that lists a directory independently of its parent, whose descriptor it needs.
fn below<T>(dir: &Arc<Node>, name: &CStr) -> Arc<Task<T>> {
    dir.add_users(1);
    Task::new(Job::List(Arc::new(Node::apart(dir, name))))
}
