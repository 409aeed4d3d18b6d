//! Restores the traversal order of task outputs and delivers them to the consumer.

use std::collections::{HashSet, VecDeque};
use std::ffi::CStr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fathom_io::{Errno, Follow, Meta};

use crate::driven::Driven;
use crate::failure::{Failure, Operation};
use crate::node::Node;
use crate::pool::Pool;
use crate::schedule::Schedule;
use crate::task::{DirState, Head, Job, OutputItem, Task, TaskOutput};
use crate::visitor::{Consumer, Descend, Enter, NextRoot};
use crate::worker::Shared;

/// The number of roots read ahead of the current one.
const ROOTS_AHEAD: usize = 256;
/// The time that the consumer sleeps before it checks for outputs again, at first and in a long
/// walk. Outputs are delivered in batches of about this much time, and each check takes a CPU from
/// a worker.
const NAP: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(4);
/// Checks for the first output, with a yield between two of them, before the consumer sleeps. The
/// output of a small directory arrives sooner than a sleeping thread would wake up.
const YIELDS: usize = 200;
/// Steps between two calls of [`Tick::tick`].
const STEPS_PER_TICK: u32 = 256;

/// A directory that is being consumed, or a further output of the directory below it on the stack.
struct Frame<T> {
    slots: std::vec::IntoIter<OutputItem<T>>,
    /// The directory, with its device and inode number; `None` for a further output of the
    /// directory below.
    dir: Option<(Arc<Node>, (u64, u64))>,
    error: Option<(Operation, Errno)>,
    /// Elements that are held back, with the inode numbers that order them.
    held: Vec<(u64, OutputItem<T>)>,
}

impl<T> Frame<T> {
    fn new(out: TaskOutput<T>, dir: Option<(Arc<Node>, (u64, u64))>) -> Self {
        Self { slots: out.slots.into_iter(), dir, error: out.error, held: Vec::new() }
    }
}

enum QueuedRoot<T> {
    Task(Arc<Task<T>>),
    Note(usize),
}

enum Step<T> {
    Done,
    Advanced,
    /// The output of this task is needed next, for this role.
    Wait(Arc<Task<T>>, Role),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Dir,
    Rest,
}

/// The consumer's end of an ordered walk.
pub(crate) struct Order<'a, 'p, D: Driven, C> {
    schedule: &'a Schedule<D::Item>,
    follow_roots: Follow,
    pool: &'a mut Pool<'p, D>,
    consumer: &'a mut C,
    stack: Vec<Frame<D::Item>>,
    /// The directories that were entered and not left yet.
    active: HashSet<(u64, u64)>,
    roots: VecDeque<QueuedRoot<D::Item>>,
    roots_seen: usize,
    roots_end: bool,
    nap: Duration,
    /// The consumer has not waited yet.
    fresh: bool,
}

impl<'a, 'p, D: Driven, C: Consumer<D::Item>> Order<'a, 'p, D, C> {
    pub(crate) fn new(shared: &'a Shared<D>, pool: &'a mut Pool<'p, D>, consumer: &'a mut C) -> Self {
        let (stack, roots) = (Vec::new(), VecDeque::new());
        let (schedule, follow_roots) = (&shared.schedule, shared.options.follow_roots);
        Self {
            schedule,
            follow_roots,
            pool,
            consumer,
            stack,
            active: HashSet::default(),
            roots,
            roots_seen: 0,
            roots_end: false,
            nap: NAP,
            fresh: true,
        }
    }

    /// Consumes everything. Returns false if the walk was stopped before its end.
    pub(crate) fn run(mut self) -> bool {
        // A small tree is read before the next question.
        if self.tick() {
            return false;
        }
        let mut steps = 0_u32;
        loop {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_PER_TICK) && self.tick() {
                self.abandon_all();
                return false;
            }
            match self.step() {
                Step::Done => return true,
                Step::Advanced => {}
                Step::Wait(task, role) => match self.wait(&task) {
                    Some(out) => {
                        self.schedule.drop_weight(task.weighed_on(), out.weight);
                        self.open(&task, *out, role);
                    }
                    None => {
                        // Workers go on below this task until they are stopped. Abandon it without
                        // recursion: a long chain of tasks would overflow the stack when it is
                        // dropped.
                        self.schedule.abandon([OutputItem::Dir(task)]);
                        self.abandon_all();
                        return false;
                    }
                },
            }
        }
    }

    /// Returns whether to stop.
    fn tick(&mut self) -> bool {
        self.pool.tick() || self.consumer.stopped()
    }

    fn step(&mut self) -> Step<D::Item> {
        let Some(frame) = self.stack.last_mut() else { return self.next_root() };
        match frame.slots.next() {
            Some(OutputItem::Item(item)) => self.consumer.item(item),
            Some(OutputItem::Failed(name, errno)) => self.fail_entry(&name, errno),
            Some(OutputItem::Dir(task)) => return Step::Wait(task, Role::Dir),
            Some(OutputItem::Rest(task)) => return Step::Wait(task, Role::Rest),
            Some(OutputItem::Held(ino, slot)) => frame.held.push((ino, *slot)),
            Some(OutputItem::Release) => drop(self.release()),
            None if frame.dir.is_some() && self.release() => {}
            None => self.close(),
        }
        Step::Advanced
    }

    fn close(&mut self) {
        let Some(frame) = self.stack.pop() else { return };
        if let Some((node, id)) = frame.dir {
            self.active.remove(&id);
            if let Some((operation, errno)) = frame.error {
                self.consumer.failed(Failure { node: &node, name: None, operation, errno });
            }
            self.consumer.leave(&node);
        } else if let Some(below) = self.stack.last_mut() {
            below.error = below.error.or(frame.error);
            below.held.extend(frame.held);
        }
    }

    /// Reports an entry of the innermost directory whose metadata could not be read.
    fn fail_entry(&mut self, name: &CStr, errno: Errno) {
        let mut dirs = self.stack.iter().rev().filter_map(|frame| frame.dir.as_ref());
        if let Some((node, _)) = dirs.next() {
            let (name, operation) = (Some(name), Operation::Stat);
            self.consumer.failed(Failure { node, name, operation, errno });
        }
    }

    /// Consumes the elements that are held back next. Returns false if there are none.
    fn release(&mut self) -> bool {
        let held = self.stack.last_mut().map(|frame| std::mem::take(&mut frame.held));
        let Some(mut held) = held.filter(|held| !held.is_empty()) else { return false };
        held.sort_by_key(|(ino, _)| *ino);
        let mut out = TaskOutput::new(None);
        out.slots = held.into_iter().map(|(_, slot)| slot).collect();
        self.stack.push(Frame::new(out, None));
        true
    }

    fn next_root(&mut self) -> Step<D::Item> {
        self.fill_roots();
        match self.roots.pop_front() {
            Some(QueuedRoot::Task(task)) => Step::Wait(task, Role::Dir),
            Some(QueuedRoot::Note(root)) => {
                self.consumer.note(root);
                Step::Advanced
            }
            None if self.roots_end => Step::Done,
            None => Step::Advanced,
        }
    }

    fn fill_roots(&mut self) {
        while !self.roots_end && self.roots.len() < ROOTS_AHEAD {
            if self.roots.is_empty() {
                self.consumer.idle();
            }
            let root = self.roots_seen;
            match self.consumer.next_root(self.roots.is_empty()) {
                NextRoot::Path(path) => {
                    self.push_root(Node::root(path, root, self.follow_roots, Weak::new()))
                }
                NextRoot::At(base, path) => {
                    self.push_root(Node::root_at(Some(base), path, root, self.follow_roots, Weak::new()));
                }
                NextRoot::Note => self.roots.push_back(QueuedRoot::Note(root)),
                NextRoot::Below(..) => continue,
                NextRoot::NotNow => return,
                NextRoot::End => {
                    self.roots_end = true;
                    return;
                }
            }
            self.roots_seen += 1;
        }
    }

    fn push_root(&mut self, root: Node) {
        let task = Task::new(Job::Root(Arc::new(root)));
        self.roots.push_back(QueuedRoot::Task(task.clone()));
        self.schedule.push_wanted(task, false);
    }

    /// Waits for the output of `task`. Returns `None` if the walk must stop.
    fn wait(&mut self, task: &Arc<Task<D::Item>>) -> Option<Box<TaskOutput<D::Item>>> {
        if let Some(out) = task.output.take() {
            return Some(out);
        }
        self.consumer.idle();
        if std::mem::take(&mut self.fresh)
            && let Some(out) = self.start_with(task)
        {
            return Some(out);
        }
        self.schedule.want(Some(task));
        let out = loop {
            // Take an available output even if the walk must stop. `set_wanted` in `want` precedes
            // this: see `Handoff`.
            if let Some(out) = task.output.take() {
                break Some(out);
            }
            if self.tick() {
                break None;
            }
            if !self.pool.work() {
                std::thread::park_timeout(self.nap);
                self.nap = (self.nap + self.nap / 8).min(NAP_MAX);
            }
        };
        self.schedule.want(None);
        out
    }

    /// Returns the output of the first task if it arrives soon.
    fn start_with(&mut self, task: &Arc<Task<D::Item>>) -> Option<Box<TaskOutput<D::Item>>> {
        self.pool.begin(task.job.node());
        let out = task.output.take();
        if out.is_some() || self.tick() {
            return out;
        }
        (0..YIELDS).find_map(|_| {
            std::thread::yield_now();
            task.output.take()
        })
    }

    /// Starts to consume an output.
    fn open(&mut self, task: &Task<D::Item>, mut out: TaskOutput<D::Item>, role: Role) {
        if role == Role::Rest {
            self.open_rest(out);
            return;
        }
        let node = task.job.node();
        match out.head.take() {
            Some(Head::File(meta)) => self.consumer.root_file(node, &meta),
            Some(Head::Inaccessible(errno)) => {
                self.consumer.failed(Failure { node, name: None, operation: Operation::Access, errno });
            }
            Some(Head::Dir { meta, state }) => self.enter(node, &meta, state, out),
            None => unreachable!("every root and directory has a head"),
        }
    }

    /// Consumes a further output of the same directory. If the first one is consumed, its frame is
    /// reused, so a huge directory stays one level.
    fn open_rest(&mut self, out: TaskOutput<D::Item>) {
        let frame = self.stack.last_mut().expect("more of a directory follows its first task");
        if frame.slots.len() == 0 {
            frame.slots = out.slots.into_iter();
            frame.error = frame.error.or(out.error);
        } else {
            self.stack.push(Frame::new(out, None));
        }
    }

    fn enter(&mut self, node: &Arc<Node>, meta: &Meta, state: DirState, out: TaskOutput<D::Item>) {
        let state = if self.active.contains(&meta.id()) { DirState::Loop } else { state };
        let is_wanted = self.consumer.enter(Enter { node, meta, found: state.found() });
        if is_wanted == Descend::Yes
            && let Some((operation, errno)) = state.failure()
        {
            self.consumer.failed(Failure { node, name: None, operation, errno });
        }
        if is_wanted == Descend::No || state == DirState::Loop {
            self.schedule.abandon(out.slots);
            return;
        }
        self.active.insert(meta.id());
        let mut frame = Frame::new(out, Some((node.clone(), meta.id())));
        if state == DirState::PutOff {
            node.parent().inspect(|parent| parent.add_users(1));
            let task = Task::new(Job::Relist(node.clone()));
            frame.slots = vec![OutputItem::Rest(task.clone())].into_iter();
            self.schedule.push_wanted(task, true);
        }
        self.stack.push(frame);
    }

    fn abandon_all(&mut self) {
        let frames = std::mem::take(&mut self.stack).into_iter();
        let frames = frames.flat_map(|frame| frame.slots.chain(frame.held.into_iter().map(|(_, slot)| slot)));
        let roots = std::mem::take(&mut self.roots).into_iter().filter_map(|root| match root {
            QueuedRoot::Task(task) => Some(OutputItem::Dir(task)),
            QueuedRoot::Note(_) => None,
        });
        self.schedule.abandon(frames.chain(roots));
    }
}
