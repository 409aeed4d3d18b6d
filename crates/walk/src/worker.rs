//! A worker: takes tasks, executes them with its model (`list.rs` and `batch.rs` read directories),
//! and publishes their outputs.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::Mutex;

use fathom_io::{Errno, Meta, MetadataModel, Names};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::device_queue::DeviceQueue;
use crate::driven::Driven;
use crate::failure::{Failure, Operation};
use crate::fds::Fds;
use crate::node::Node;
use crate::options::Options;
use crate::schedule::Schedule;
use crate::summary::Calls;
use crate::tally::Tally;
use crate::task::{Job, NOWHERE, NameRange, OutputItem, Task, TaskOutput};

/// The state that all workers of a walk share.
pub(crate) struct Shared<D: Driven> {
    pub(crate) driven: D,
    pub(crate) options: Options,
    pub(crate) schedule: Schedule<D::Item>,
    pub(crate) fds: Arc<Fds>,
    /// The directories listed so far, if a walk may meet one twice.
    pub(crate) listed: Option<Mutex<HashSet<(u64, u64)>>>,
}

impl<D: Driven> Shared<D> {
    pub(crate) fn new(driven: D, options: Options, schedule: Schedule<D::Item>, fds_kept: usize) -> Self {
        let listed = options.dedup_directories.then(Mutex::default);
        Self { driven, options, schedule, fds: Arc::new(Fds::new(fds_kept)), listed }
    }

    /// Returns the device queue of a directory.
    pub(crate) fn device(&self, node: &Node) -> &DeviceQueue<D::Item> {
        self.schedule.devices.get(node.device())
    }

    pub(crate) fn calls(&self) -> Calls {
        Calls {
            open: self.schedule.count(|tally| &tally.directories),
            read: self.schedule.count(|tally| &tally.batches),
            stat: self.schedule.count(|tally| &tally.stats),
            reopen: self.fds.reopened(),
        }
    }
}

/// Buffers of a task in execution.
pub(crate) struct Scratch<T> {
    pub(crate) names: Names,
    pub(crate) metas: Vec<Option<Result<Meta, Errno>>>,
    pub(crate) children: Vec<Arc<Task<T>>>,
    /// The origin of the task: its device queue, and its place there.
    pub(crate) origin: (usize, usize),
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { names: Names::new(), metas: Vec::new(), children: Vec::new(), origin: (0, NOWHERE) }
    }
}

/// The owner of the thread that a worker runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadOwner {
    /// The worker, which may change the working directory of the thread.
    Own,
    /// The caller of the walk.
    Shared,
}

/// One worker: its number and its model.
pub(crate) struct Worker<D: Driven, M> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) number: usize,
    pub(crate) model: M,
    pub(crate) owner: ThreadOwner,
    /// The number of tasks in execution at once.
    width: usize,
    scratch: RefCell<Vec<Scratch<D::Item>>>,
    pub(crate) local: RefCell<D::Local>,
    /// `local` may hold entries back.
    holding: Cell<bool>,
}

impl<D: Driven, M: MetadataModel> Worker<D, M> {
    pub(crate) fn new(
        shared: Arc<Shared<D>>,
        number: usize,
        model: M,
        width: usize,
        owner: ThreadOwner,
    ) -> Self {
        let (scratch, local, holding) = (RefCell::default(), RefCell::default(), Cell::new(false));
        Self { shared, number, model, owner, width, scratch, local, holding }
    }

    /// Returns the counters of this worker for the device of `node`.
    pub(crate) fn tally(&self, node: &Node) -> &Tally {
        self.shared.device(node).tally(self.number)
    }

    /// Executes tasks until the walk stops.
    pub(crate) fn run(&self) {
        let schedule = &self.shared.schedule;
        self.model.run(async {
            if self.width == 1 {
                while let Some(task) = self.next(true) {
                    self.execute(task).await;
                }
                return;
            }
            let mut under_way = FuturesUnordered::new();
            loop {
                while under_way.len() < self.width {
                    let Some(task) = self.next(under_way.is_empty()) else { break };
                    under_way.push(self.execute(task));
                }
                if under_way.next().await.is_none() || schedule.is_stopped() {
                    return;
                }
            }
        });
        self.flush();
        schedule.pass_on_stop();
    }

    /// Executes the first queued task. Returns false if there is none.
    pub(crate) fn run_one(&self) -> bool {
        let task = self.next(false);
        let found = task.is_some();
        self.model.run(async {
            if let Some(task) = task {
                self.execute(task).await;
            }
        });
        self.flush();
        found
    }

    fn next(&self, wait: bool) -> Option<Arc<Task<D::Item>>> {
        self.shared.schedule.next(self.number, wait, || self.flush())
    }

    /// Calls the visitor with this worker's own state.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&D, &mut D::Local) -> R) -> R {
        call(&self.shared.driven, &mut self.local.borrow_mut())
    }

    /// Counts and reports a failure, in an unordered walk.
    pub(crate) fn fail(&self, failure: Failure<'_>) {
        self.tally(failure.node).failures.add(1);
        self.call(|visitor, local| visitor.failed(local, failure));
    }

    fn flush(&self) {
        if self.holding.replace(false) {
            self.call(|visitor, local| visitor.flush(local));
            self.shared.schedule.mark_idle();
        }
    }

    async fn execute(&self, task: Arc<Task<D::Item>>) {
        fathom_io::fault::point("walk-task");
        let mut scratch = self.scratch.borrow_mut().pop().unwrap_or_default();
        if task.output.is_abandoned() {
            self.let_go(&task.job);
        } else if self.shared.schedule.is_root_ahead(&task) && !self.is_elsewhere(&task).await {
            self.scratch.borrow_mut().push(scratch);
            return self.shared.schedule.put_back(task);
        } else {
            scratch.origin = (task.device, task.place());
            if !D::IS_ORDERED && !self.holding.replace(true) {
                self.shared.schedule.mark_busy();
            }
            let mut out = self.perform(&task.job, &mut scratch).await;
            if D::IS_ORDERED {
                out.weight += size_of::<TaskOutput<D::Item>>() + weight_of::<D>(&out.slots);
                self.publish(&task, out, &mut scratch);
            } else {
                self.settle(&task, out, &mut scratch);
            }
        }
        self.shared.schedule.finish(&task);
        self.scratch.borrow_mut().push(scratch);
    }

    /// Releases the directory descriptor of a task whose output is abandoned.
    fn let_go(&self, job: &Job) {
        match job {
            Job::Root(_) => {}
            Job::List(node) | Job::Relist(node) => {
                node.parent().inspect(|parent| self.shared.fds.drop_user(parent));
            }
            Job::More(node, ..) | Job::Stat(node, ..) => self.shared.fds.drop_user(node),
        }
    }

    fn publish(&self, task: &Arc<Task<D::Item>>, out: TaskOutput<D::Item>, scratch: &mut Scratch<D::Item>) {
        let schedule = &self.shared.schedule;
        self.announce(out.tasks().skip(out.given_out), &mut scratch.children);
        // Add the weight first: the consumer may take the output and subtract its weight before
        // `publish` returns.
        let weight = out.weight;
        schedule.devices.get(task.weighed_on()).add_weight(weight);
        match task.output.publish(Box::new(out)) {
            Ok(()) => {
                schedule.push(&mut scratch.children, scratch.origin);
                schedule.published(task);
            }
            Err(out) => {
                schedule.drop_weight(task.weighed_on(), weight);
                for child in scratch.children.drain(..) {
                    self.let_go(&child.job);
                    schedule.forget(&child);
                }
                schedule.abandon(out.slots);
            }
        }
    }

    /// Appends `tasks` to `children` and announces them.
    pub(crate) fn announce<'p>(
        &self,
        tasks: impl Iterator<Item = &'p Arc<Task<D::Item>>>,
        children: &mut Vec<Arc<Task<D::Item>>>,
    ) where
        D::Item: 'p,
    {
        children.extend(tasks.cloned());
        if !D::IS_ORDERED {
            children.iter().for_each(|task| task.job.expect());
        }
        self.shared.schedule.announce(children);
    }

    async fn perform(&self, job: &Job, scratch: &mut Scratch<D::Item>) -> TaskOutput<D::Item> {
        match job {
            Job::Root(node) | Job::List(node) => self.list(node, false, scratch).await,
            Job::Relist(node) => self.list(node, true, scratch).await,
            Job::More(node, resume) => {
                let out = self.more(node, *resume, scratch).await;
                self.shared.fds.drop_user(node);
                out
            }
            Job::Stat(node, names, range, batch) => {
                let mut out = TaskOutput::new(None);
                let names = names.take();
                match self.shared.fds.open(node) {
                    Ok(fd) => {
                        let span = NameRange { names: &names, range: range.clone(), batch: *batch };
                        self.stat(node, fd.as_fd(), span, &mut scratch.metas, &mut out).await;
                    }
                    Err(errno) => out.error = Some((Operation::Reopen, errno)),
                }
                drop(names);
                node.add_users(out.tasks().count());
                self.shared.fds.drop_user(node);
                out
            }
        }
    }
}

fn weight_of<D: Driven>(slots: &[OutputItem<D::Item>]) -> usize {
    let task = size_of::<Task<D::Item>>() + size_of::<Node>() + 32;
    fn weight<D: Driven>(slot: &OutputItem<D::Item>, task: usize) -> usize {
        match slot {
            OutputItem::Item(item) => D::weight(item),
            OutputItem::Failed(name, _) => name.count_bytes(),
            OutputItem::Dir(_) | OutputItem::Rest(_) => task,
            OutputItem::Held(_, slot) => size_of_val(slot) + weight::<D>(slot, task),
            OutputItem::Release => 0,
        }
    }
    slots.iter().map(|slot| weight::<D>(slot, task)).sum::<usize>() + size_of_val(slots)
}
