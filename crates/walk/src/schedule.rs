//! Which part is executed next, by whom, and who sleeps.
//!
//! Every worker has a queue and takes the newest part of it: depth first, and next in traversal order. One whose
//! queue is empty steals the newest part of another's, of the queue the consumer waits for if there is one: so all
//! work near the place where the consumer is, and little has to wait for its turn. (The oldest part would be the
//! larger piece of work, but all that comes of it would wait longest.)
//!
//! Outcomes that wait are weighed all the same. Past [`WEIGHT_MAX`], until half of that is consumed, only the part the consumer
//! waits for is executed: a slow consumer holds up the workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::lane::{Count, Lane, Lanes, SHARED, Tally};
use crate::part::{Part, Slot};

/// Looks a worker takes at the queues before it goes to sleep: a few microseconds, after which the next part of a small
/// directory is there, as a rule, and going to sleep would have cost more.
const LOOKS: u32 = 200;

/// Bytes of outcomes that may wait for their turn.
const WEIGHT_MAX: usize = 2 << 20;

/// The queues and everything workers wait for.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    /// The queues, device by device.
    pub(crate) lanes: Lanes<T>,
    /// Queues of a lane in use: the shared one and those of the workers started.
    queues_used: AtomicUsize,
    /// More workers may be started: the consumer wants to know when there is work for them.
    hiring: AtomicBool,
    /// Workers allowed to work.
    allowed: AtomicUsize,
    /// Bytes of outcomes waiting for their turn.
    weight: AtomicUsize,
    /// Too much is waiting: only what the consumer waits for is executed.
    throttled: AtomicBool,
    /// The lane and the queue of the part the consumer waits for.
    wanted_lane: AtomicUsize,
    wanted_queue: AtomicUsize,
    /// Address of the part the consumer waits for; 0 while it waits for none.
    wanted_part: AtomicUsize,
    stop: AtomicBool,
    sleepers: AtomicUsize,
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
            queues_used: AtomicUsize::new(1),
            hiring: AtomicBool::new(false),
            allowed: AtomicUsize::new(workers_max),
            weight: AtomicUsize::new(0),
            throttled: AtomicBool::new(false),
            wanted_lane: AtomicUsize::new(0),
            wanted_queue: AtomicUsize::new(SHARED),
            wanted_part: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            events: Mutex::new(0),
            wake: Condvar::new(),
            bench: Condvar::new(),
            consumer: std::thread::current(),
        }
    }

    fn events(&self) -> MutexGuard<'_, u64> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more worker; its number.
    pub(crate) fn add_worker(&self) -> usize {
        self.queues_used.fetch_add(1, Ordering::AcqRel)
    }

    /// Whether more workers may be started than there are.
    pub(crate) fn set_hiring(&self, hiring: bool) {
        self.hiring.store(hiring, Ordering::Relaxed);
    }

    /// Workers numbered up to `count` may work from now on.
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
        lane.count(self.queues_used.load(Ordering::Acquire), count)
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
    pub(crate) fn push_shared(&self, part: Arc<Part<T>>, first: bool) {
        part.set_queue(SHARED);
        let lane = self.lanes.get(part.lane);
        lane.announce(1);
        lane.queue(SHARED).change(|parts| if first { parts.push_front(part) } else { parts.push_back(part) });
        self.wake(1);
    }

    /// There is something for the consumer to look at.
    pub(crate) fn wake_consumer(&self) {
        self.consumer.unpark();
    }

    /// Counts parts of one lane that [`Schedule::push`] is going to put into the queue of `worker`. From here on the
    /// consumer may ask for them.
    pub(crate) fn announce(&self, worker: usize, parts: &[Arc<Part<T>>]) {
        let Some(first) = parts.first() else { return };
        self.lanes.get(first.lane).announce(parts.len());
        for part in parts {
            part.set_queue(worker);
        }
    }

    /// Puts announced parts, given in traversal order, into the queue of `worker`.
    pub(crate) fn push(&self, worker: usize, parts: &mut Vec<Arc<Part<T>>>) {
        let Some(first) = parts.first() else { return };
        let (lane, count) = (self.lanes.get(first.lane), parts.len());
        let node = first.job.parent().clone();
        lane.queue(worker).change(|queue| {
            // What is left of an earlier batch of the same directory comes first.
            let is_before = |part: &&Arc<Part<T>>| Arc::ptr_eq(part.job.parent(), &node);
            let before = queue.iter().rev().take_while(is_before).count();
            let before = queue.split_off(queue.len() - before);
            queue.extend(parts.drain(..).rev());
            queue.extend(before);
        });
        self.wake(count);
        if self.hiring.load(Ordering::Relaxed) && self.sleepers() < count {
            self.consumer.unpark();
        }
    }

    /// A part has been executed, whatever came of it.
    pub(crate) fn finish(&self, part: &Part<T>) {
        if self.lanes.get(part.lane).finish() {
            self.consumer.unpark();
        }
    }

    /// An announced part is not put in after all.
    pub(crate) fn forget(&self, part: &Part<T>) {
        self.lanes.get(part.lane).forget();
    }

    /// Whether workers wait for the consumer.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled.load(Ordering::Acquire)
    }

    /// An outcome of `bytes` is going to wait for its turn.
    pub(crate) fn add_weight(&self, bytes: usize) {
        if self.weight.fetch_add(bytes, Ordering::AcqRel) + bytes > WEIGHT_MAX {
            self.throttled.store(true, Ordering::Release);
        }
    }

    /// The outcome of `part` is there.
    pub(crate) fn published(&self, part: &Arc<Part<T>>) {
        let wanted = self.wanted_part.load(Ordering::Acquire) == Arc::as_ptr(part).addr();
        if wanted && (part.queue() == SHARED || self.is_throttled()) {
            self.consumer.unpark();
        }
    }

    /// An outcome of `bytes` has its turn.
    pub(crate) fn drop_weight(&self, bytes: usize) {
        let rest = self.weight.fetch_sub(bytes, Ordering::AcqRel) - bytes;
        if rest < WEIGHT_MAX / 2 && self.is_throttled() {
            self.throttled.store(false, Ordering::Release);
            self.wake(usize::MAX);
        }
    }

    /// Lets go of everything below `slots`, without recursion.
    pub(crate) fn abandon(&self, slots: impl IntoIterator<Item = Slot<T>>) {
        let mut rest: Vec<Slot<T>> = slots.into_iter().collect();
        while let Some(slot) = rest.pop() {
            if let Some(out) = slot.part().and_then(|part| part.abandon()) {
                self.drop_weight(out.weight);
                rest.extend(out.slots);
            }
        }
    }

    /// The consumer waits for `part`, or for none.
    pub(crate) fn want(&self, part: Option<&Arc<Part<T>>>) {
        if let Some(part) = part {
            self.wanted_lane.store(part.lane, Ordering::Release);
            self.wanted_queue.store(part.queue(), Ordering::Release);
        }
        self.wanted_part.store(part.map_or(0, |part| Arc::as_ptr(part).addr()), Ordering::Release);
        if part.is_some() && self.is_throttled() {
            self.wake(1);
        }
    }

    /// The next part for `worker`; waits for it if `wait`. `None` after the stop, or if there is none to be had now.
    pub(crate) fn next(&self, worker: usize, wait: bool) -> Option<Arc<Part<T>>> {
        loop {
            if self.is_stopped() {
                return None;
            }
            if !self.is_allowed(worker) {
                if !wait {
                    return None;
                }
                self.sit_out(worker);
                continue;
            }
            let part = self.find(worker);
            if part.is_some() || !wait {
                return part;
            }
            if let Some(part) = self.look_out(worker) {
                return Some(part);
            }
            if let Some(part) = self.sleep(worker) {
                return Some(part);
            }
        }
    }

    fn is_allowed(&self, worker: usize) -> bool {
        worker <= self.allowed.load(Ordering::Acquire)
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

    fn find(&self, worker: usize) -> Option<Arc<Part<T>>> {
        let lane = self.wanted_lane.load(Ordering::Acquire);
        let queue = self.wanted_queue.load(Ordering::Acquire);
        if self.is_throttled() {
            let part = self.wanted_part.load(Ordering::Acquire);
            return self.lanes.get(lane).take_one(queue, part);
        }
        let (lanes, queues) = (self.lanes.used(), self.queues_used.load(Ordering::Acquire));
        let near = self.lanes.get(lane).take(worker, queue, queues);
        near.or_else(|| {
            let others = (1..lanes).map(|offset| self.lanes.get((lane + offset) % lanes));
            others.into_iter().find_map(|lane| lane.take(worker, SHARED, queues))
        })
    }

    /// Looks again and again for a short while.
    fn look_out(&self, worker: usize) -> Option<Arc<Part<T>>> {
        // Where somebody sleeps already, there is not enough to do.
        if self.sleepers() > 0 {
            return None;
        }
        (0..LOOKS).find_map(|_| {
            std::hint::spin_loop();
            self.find(worker)
        })
    }

    /// Sleeps until something happens, unless there is a part after all.
    fn sleep(&self, worker: usize) -> Option<Arc<Part<T>>> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let ticket = *self.events();
        fence(Ordering::SeqCst);
        let part = self.find(worker);
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
