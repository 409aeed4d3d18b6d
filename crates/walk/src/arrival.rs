//! A walk in no order: the worker that executed a task tells what came of it, and counts what is still to come of each directory.
//! The calling thread hands in roots and looks after the workers.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use fathom_io::MetadataModel;

use crate::adapter::{Event, VisitorAdapter};
use crate::failure::Failure;
use crate::gather::Roots;
use crate::node::Node;
use crate::order::Tick;
use crate::task::{DirState, Head, Job, Task, TaskOutput};
use crate::visit::{Descend, Enter, NextRoot};
use crate::worker::{Scratch, Shared, Worker};

/// No root is put in while so many tasks wait or are being executed.
const ENOUGH: usize = 256;
/// How long the calling thread sleeps before it looks again.
const NAP: Duration = Duration::from_millis(2);

impl<D: VisitorAdapter, M: MetadataModel> Worker<D, M> {
    /// Tells what came of `task`, and gives out the tasks in that.
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
            Some(Head::File(_) | Head::Lost(..)) => false,
        };
        let is_wanted = match &head {
            Some(Head::File(Ok(meta))) => self.tell(Event::RootFile(node, meta)),
            Some(Head::Dir { meta, state, .. }) if !read => {
                self.tell(Event::Enter(Enter { node, meta, found: state.found() }))
            }
            Some(Head::Dir { .. } | Head::File(Err(_)) | Head::Lost(..)) | None => Descend::Yes,
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
            self.tell(Event::Leave(node));
        }
        let mut over = Some(node);
        while let Some(node) = over.filter(|node| node.end_below()) {
            self.tell(Event::Done(node));
            over = node.parent().filter(|_| !node.is_apart());
        }
    }
}

/// Hands in roots until there are no more and everything below them has been told; false if stopped before.
pub(crate) fn lead<D: VisitorAdapter>(
    shared: &Shared<D>,
    pool: &mut dyn Tick,
    roots: &mut dyn Roots,
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
            match roots.next_root(is_idle) {
                NextRoot::Path(path) => {
                    let root = Arc::new(Node::root(path, count, follow, Arc::downgrade(&shared.fds)));
                    first = (count == 0).then(|| root.clone());
                    schedule.push_wanted(Task::new(Job::Root(root)), false);
                    count += 1;
                }
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

/// Lists a directory apart from the one it is in, whose descriptor it needs.
fn below<T>(dir: &Arc<Node>, name: &CStr) -> Arc<Task<T>> {
    dir.add_users(1);
    Task::new(Job::List(Arc::new(Node::apart(dir, name))))
}
