//! Which part is executed next, by whom, and who sleeps.
//!
//! There is one line a device (`line.rs`), and whoever is free takes the first part of it: so all work near the place where the
//! consumer is, and little has to wait for its turn. (A queue for each worker, with idle ones
//! stealing, keeps them apart, but each deep in a subtree of its own, and all that comes of it waits.) What workers share here is a
//! lock taken three times a part; a part is a directory as a rule, for which the kernel takes the lock of the process's descriptor
//! table as often.
//!
//! Outcomes that wait are weighed all the same (`backlog.rs`). Where there is too much of a device, until half of that is
//! consumed, the part the consumer waits for is executed and at most a few others: a slow consumer holds up the workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::lane::{Lane, Lanes};
use crate::line::NOWHERE;
use crate::part::{Job, Part, Slot};
use crate::tally::{Count, Tally};

/// Looks a worker takes at the lines before it goes to sleep: a few microseconds, after which the next part of a small
/// directory is there, as a rule, and going to sleep would have cost more.
const LOOKS: u32 = 200;

/// How long a walk that was stopped waits for what workers keep back: some may sit in slow calls.
const PARTING: Duration = Duration::from_millis(50);

/// The lines and everything workers wait for.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    /// The lines, device by device.
    pub(crate) lanes: Lanes<T>,
    /// Workers started.
    workers: AtomicUsize,
    /// More workers may be started: the consumer wants to know when there is work for them.
    hiring: AtomicBool,
    /// Workers allowed to work.
    allowed: AtomicUsize,
    /// The part the consumer waits for.
    wanted: Mutex<Option<Arc<Part<T>>>>,
    /// The lane of the last one.
    wanted_lane: AtomicUsize,
    stop: AtomicBool,
    panicked: AtomicBool,
    sleepers: AtomicUsize,
    /// Workers that may keep something back from a walk in no order.
    awake: AtomicUsize,
    /// Counts reasons to wake up.
    events: Mutex<u64>,
    wake: Condvar,
    /// Where workers wait that may not work for now.
    bench: Condvar,
    consumer: Thread,
}

impl<T> Schedule<T> {
    /// For up to `workers_max` workers, of which `limit` may work on one device at first; the calling thread is the consumer.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            lanes: Lanes::new(workers_max, limit),
            workers: AtomicUsize::new(0),
            hiring: AtomicBool::new(false),
            allowed: AtomicUsize::new(workers_max),
            wanted_lane: AtomicUsize::new(0),
            wanted: Mutex::new(None),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            events: Mutex::new(0),
            wake: Condvar::new(),
            bench: Condvar::new(),
            consumer: std::thread::current(),
        }
    }

    fn events(&self) -> MutexGuard<'_, u64> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, Option<Arc<Part<T>>>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more worker; its number.
    pub(crate) fn add_worker(&self) -> usize {
        self.workers.fetch_add(1, Ordering::AcqRel)
    }

    /// Whether more workers may be started than there are.
    pub(crate) fn set_hiring(&self, hiring: bool) {
        self.hiring.store(hiring, Ordering::Relaxed);
    }

    /// The first `count` workers may work from now on.
    pub(crate) fn allow(&self, count: usize) {
        let before = self.allowed.swap(count, Ordering::AcqRel);
        if count > before {
            *self.events() += 1;
            self.bench.notify_all();
        }
    }

    /// Has every worker end, one after the other: whoever stops the walk has better uses for the CPUs just now.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        *self.events() += 1;
        self.pass_on_stop();
    }

    /// Wakes the next one to end: every worker calls this when it has.
    pub(crate) fn pass_on_stop(&self) {
        self.bench.notify_one();
        self.wake.notify_one();
    }

    /// A worker has panicked, and whatever it had to do will not be done: the walk cannot come to its end.
    pub(crate) fn panic(&self) {
        self.panicked.store(true, Ordering::Release);
        self.stop();
        self.consumer.unpark();
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn sleepers(&self) -> usize {
        self.sleepers.load(Ordering::Relaxed)
    }

    /// Parts put in and not finished.
    pub(crate) fn outstanding(&self) -> usize {
        self.lanes.iter().map(Lane::outstanding).sum()
    }

    /// The sum of a counter over the workers on one device.
    pub(crate) fn count_on(&self, lane: &Lane<T>, count: impl Fn(&Tally) -> &Count) -> u64 {
        lane.count(self.workers.load(Ordering::Acquire), count)
    }

    /// The sum of a counter over all workers and devices.
    pub(crate) fn count(&self, count: impl Fn(&Tally) -> &Count) -> u64 {
        self.lanes.iter().map(|lane| self.count_on(lane, &count)).fold(0, u64::wrapping_add)
    }

    /// Lets a device have more workers at once, or fewer.
    pub(crate) fn set_limit(&self, lane: &Lane<T>, limit: usize) {
        if lane.set_limit(limit) < limit {
            self.wake(usize::MAX);
        }
    }

    fn wake(&self, count: usize) {
        // Pairs with the fence in `sleep`: either the sleeper sees what was put in, or this sees the sleeper.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) == 0 {
            return;
        }
        *self.events() += 1;
        if count == 1 {
            self.wake.notify_one();
        } else {
            self.wake.notify_all();
        }
    }

    /// Puts in a part at the consumer's wish: a root behind the others, a part put off before everything.
    pub(crate) fn push_wanted(&self, part: Arc<Part<T>>, first: bool) {
        let lane = self.lanes.get(part.lane);
        lane.announce(1);
        lane.change_line(|line| if first { line.push_front(part) } else { line.push_back(part) });
        self.wake(1);
    }

    /// There is something for the consumer to look at.
    pub(crate) fn wake_consumer(&self) {
        self.consumer.unpark();
    }

    /// Counts parts of one lane that [`Schedule::push`] is going to put into its line. From here on the consumer may ask for them.
    pub(crate) fn announce(&self, parts: &[Arc<Part<T>>]) {
        let Some(first) = parts.first() else { return };
        self.lanes.get(first.lane).announce(parts.len());
    }

    /// Puts announced parts, given in traversal order, into the line. They came of the part of lane `origin.0` that has the place
    /// `origin.1` there.
    pub(crate) fn push(&self, parts: &mut Vec<Arc<Part<T>>>, origin: (usize, usize)) {
        let Some(first) = parts.first() else { return };
        let (lane, count) = (self.lanes.get(first.lane), parts.len());
        let place = if origin.0 == first.lane { origin.1 } else { NOWHERE };
        // The next batch of a very wide directory is read while the second half of this one is stat'ed.
        let last_is_more = matches!(parts.last(), Some(last) if matches!(last.job, Job::More(..)));
        let early = last_is_more.then_some(count / 2);
        lane.change_line(|line| line.put_before(parts, place, early));
        parts.clear();
        self.wake(count);
        if self.hiring.load(Ordering::Relaxed) && self.sleepers() < count {
            self.consumer.unpark();
        }
    }

    /// A part has been executed, whatever came of it.
    pub(crate) fn finish(&self, part: &Part<T>) {
        if self.lanes.get(part.lane).finish(part.place()) {
            self.consumer.unpark();
        }
    }

    /// An announced part is not put in after all.
    pub(crate) fn forget(&self, part: &Part<T>) {
        self.lanes.get(part.lane).forget();
    }

    /// The outcome of `part` is there.
    pub(crate) fn published(&self, part: &Arc<Part<T>>) {
        let is_first = matches!(part.job, Job::Root(_) | Job::Relist(_));
        if part.is_wanted() && (is_first || self.lanes.get(part.lane).is_throttled()) {
            self.consumer.unpark();
        }
    }

    /// An outcome of `bytes` of a part of this lane has its turn.
    pub(crate) fn drop_weight(&self, lane: usize, bytes: usize) {
        if self.lanes.get(lane).drop_weight(bytes) {
            self.wake(usize::MAX);
        }
    }

    /// Lets go of everything below `slots`, without recursion.
    pub(crate) fn abandon(&self, slots: impl IntoIterator<Item = Slot<T>>) {
        let mut rest: Vec<Slot<T>> = slots.into_iter().collect();
        while let Some(slot) = rest.pop() {
            let Some(part) = slot.part() else { continue };
            if let Some(out) = part.abandon() {
                self.drop_weight(part.lane, out.weight);
                rest.extend(out.slots);
            }
        }
    }

    /// The consumer waits for `part`, or for none.
    pub(crate) fn want(&self, part: Option<&Arc<Part<T>>>) {
        if let Some(part) = part {
            part.set_wanted();
            self.wanted_lane.store(part.lane, Ordering::Release);
        }
        *self.wanted() = part.cloned();
        if part.is_some_and(|part| self.lanes.get(part.lane).is_throttled()) {
            self.wake(1);
        }
    }

    /// A worker may keep something back from now on.
    pub(crate) fn stir(&self) {
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// A worker keeps nothing back any more.
    pub(crate) fn rest(&self) {
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.consumer.unpark();
        }
    }

    /// After the stop: gives workers a moment to hand over what they keep back.
    pub(crate) fn part(&self) {
        let start = Instant::now();
        while self.is_any_awake() && start.elapsed() < PARTING {
            std::thread::park_timeout(PARTING / 50);
        }
    }

    fn is_any_awake(&self) -> bool {
        self.awake.load(Ordering::Acquire) > 0
    }

    /// Whether nothing is to be done and nobody keeps anything back. A worker stirs before its part is finished.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding() == 0 && !self.is_any_awake()
    }

    /// The next part for `worker`; waits for it if `wait`, and calls `pause` before that may take long. `None` after the stop,
    /// or if there is none to be had now.
    pub(crate) fn next(&self, worker: usize, wait: bool, pause: impl Fn()) -> Option<Arc<Part<T>>> {
        loop {
            if self.is_stopped() {
                return None;
            }
            if !self.is_allowed(worker) {
                if !wait {
                    return None;
                }
                pause();
                self.sit_out(worker);
                continue;
            }
            let part = self.find();
            if part.is_some() || !wait {
                return part;
            }
            if let Some(part) = self.look_out() {
                return Some(part);
            }
            pause();
            if let Some(part) = self.sleep() {
                return Some(part);
            }
        }
    }

    fn is_allowed(&self, worker: usize) -> bool {
        worker < self.allowed.load(Ordering::Acquire)
    }

    /// Waits until `worker` may work again, or the stop.
    fn sit_out(&self, worker: usize) {
        // Who was woken for a part and may not take it passes that on.
        self.wake(1);
        let mut events = self.events();
        while !self.is_allowed(worker) && !self.is_stopped() {
            events = self.bench.wait(events).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn find(&self) -> Option<Arc<Part<T>>> {
        let (lanes, near) = (self.lanes.used(), self.wanted_lane.load(Ordering::Acquire));
        let mut lanes = (0..lanes).map(|offset| self.lanes.get((near + offset) % lanes));
        self.find_wanted(self.lanes.get(near)).or_else(|| lanes.find_map(Lane::take))
    }

    /// Where workers wait for the consumer, the part that it waits for.
    fn find_wanted(&self, lane: &Lane<T>) -> Option<Arc<Part<T>>> {
        if !lane.is_throttled() {
            return None;
        }
        lane.take_one(self.wanted().as_ref()?)
    }

    /// Looks again and again for a short while.
    fn look_out(&self) -> Option<Arc<Part<T>>> {
        // Where somebody sleeps already, there is not enough to do.
        if self.sleepers() > 0 {
            return None;
        }
        (0..LOOKS).find_map(|_| {
            std::hint::spin_loop();
            self.find()
        })
    }

    /// Sleeps until something happens, unless there is a part after all.
    fn sleep(&self) -> Option<Arc<Part<T>>> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let ticket = *self.events();
        fence(Ordering::SeqCst);
        let part = self.find();
        if part.is_none() && !self.is_stopped() {
            let mut events = self.events();
            while *events == ticket {
                events = self.wake.wait(events).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        part
    }
}
