//! What belongs to one device: the parts that wait for a worker, how many of them may be executed at once, and how its
//! calls have been going. A slow mount below a fast disk holds up nobody else, and what it needs is not asked of the disk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::part::Part;

/// The queue of a lane for roots and for parts the consumer wants; the workers' follow it.
pub(crate) const SHARED: usize = 0;

/// Devices kept apart. Where there are more, some share.
pub(crate) const LANES_MAX: usize = 32;

/// A call that takes longer than this is a round trip, as a rule.
const ROUND_TRIP_NS: u64 = 400_000;

/// What one worker has done on one device. Nobody else writes here: counters that all workers share cost them more than
/// everything else between two system calls.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) entries: Count,
    pub(crate) directories: Count,
    pub(crate) batches: Count,
    pub(crate) stats: Count,
    pub(crate) measured: Count,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.get().wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One worker's parts that wait, the newest the next in traversal order, and what it has done. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Queue<T> {
    len: AtomicUsize,
    parts: Mutex<VecDeque<Arc<Part<T>>>>,
    pub(crate) tally: Tally,
}

impl<T> Queue<T> {
    fn new() -> Self {
        Self { len: AtomicUsize::new(0), parts: Mutex::new(VecDeque::new()), tally: Tally::default() }
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut VecDeque<Arc<Part<T>>>) -> R) -> R {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut parts);
        self.len.store(parts.len(), Ordering::Release);
        result
    }

    fn take(
        &self,
        take: impl FnOnce(&mut VecDeque<Arc<Part<T>>>) -> Option<Arc<Part<T>>>,
    ) -> Option<Arc<Part<T>>> {
        if self.len.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.change(take)
    }

    fn take_newest(&self) -> Option<Arc<Part<T>>> {
        self.take(VecDeque::pop_back)
    }

    fn take_oldest(&self) -> Option<Arc<Part<T>>> {
        self.take(VecDeque::pop_front)
    }

    /// The part at this address.
    fn take_one(&self, address: usize) -> Option<Arc<Part<T>>> {
        self.take(|parts| {
            let at = parts.iter().rposition(|part| Arc::as_ptr(part).addr() == address)?;
            parts.remove(at)
        })
    }
}

/// One device's lane.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    /// The shared one, and one a worker.
    queues: Vec<Queue<T>>,
    /// Parts that may be executed at once.
    limit: AtomicUsize,
    /// Parts being executed.
    active: AtomicUsize,
    /// Parts put in and not finished.
    outstanding: AtomicUsize,
    /// The filesystem is known to ask no server, however long a call takes.
    local: AtomicBool,
    /// Nanoseconds one stat takes, lately; 0 before the first.
    stat_ns: AtomicU64,
}

impl<T> Lane<T> {
    fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            queues: (0..=workers_max).map(|_| Queue::new()).collect(),
            limit: AtomicUsize::new(limit),
            active: AtomicUsize::new(0),
            outstanding: AtomicUsize::new(0),
            local: AtomicBool::new(false),
            stat_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn queue(&self, number: usize) -> &Queue<T> {
        &self.queues[number]
    }

    /// The sum of a counter over the workers of the first `queues_used` queues.
    pub(crate) fn count(&self, queues_used: usize, count: impl Fn(&Tally) -> &Count) -> u64 {
        let tallies = self.queues.iter().take(queues_used).map(|queue| &queue.tally);
        tallies.map(|tally| count(tally).get()).fold(0, u64::wrapping_add)
    }

    /// Whether each call is a round trip, going by how long one takes.
    pub(crate) fn is_remote(&self) -> bool {
        self.stat_ns.load(Ordering::Relaxed) > ROUND_TRIP_NS && !self.is_local()
    }

    /// What is known of the filesystem. Many workers make a disk's calls slow, too.
    pub(crate) fn set_local(&self, local: bool) {
        self.local.store(local, Ordering::Relaxed);
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local.load(Ordering::Relaxed)
    }

    /// Before anything has been stat'ed, another call tells what kind of storage this is.
    pub(crate) fn guess(&self, call_ns: u128) {
        if self.stat_ns.load(Ordering::Relaxed) == 0 {
            self.note(call_ns);
        }
    }

    /// A stat took this long.
    pub(crate) fn note(&self, stat_ns: u128) {
        const CLEARLY_LOCAL_NS: u64 = ROUND_TRIP_NS / 8;
        let new = u64::try_from(stat_ns).unwrap_or(u64::MAX);
        let old = self.stat_ns.load(Ordering::Relaxed);
        // Nothing would change, and all workers read this.
        if (1..CLEARLY_LOCAL_NS).contains(&old) && new < CLEARLY_LOCAL_NS {
            return;
        }
        let mean = if old == 0 { new } else { (7 * (old / 8)).saturating_add(new / 8) };
        self.stat_ns.store(mean, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns the limit before.
    pub(crate) fn set_limit(&self, limit: usize) -> usize {
        self.limit.swap(limit, Ordering::AcqRel)
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Counts parts that are going to be put in.
    pub(crate) fn announce(&self, parts: usize) {
        self.outstanding.fetch_add(parts, Ordering::AcqRel);
    }

    /// A part will not be executed after all, or has been; whether it was the last one.
    pub(crate) fn forget(&self) -> bool {
        self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// A part has been executed; whether it was the last one.
    pub(crate) fn finish(&self) -> bool {
        self.active.fetch_sub(1, Ordering::AcqRel);
        self.forget()
    }

    /// The next part for `worker`, unless as many are being executed as may be.
    pub(crate) fn take(&self, worker: usize, wanted: usize, queues_used: usize) -> Option<Arc<Part<T>>> {
        if self.outstanding() <= self.active.load(Ordering::Acquire) || !self.enter() {
            return None;
        }
        let own = self.queues[worker].take_newest();
        let part = own
            .or_else(|| self.queues[SHARED].take_oldest())
            .or_else(|| self.steal(worker, wanted, queues_used));
        if part.is_none() {
            self.active.fetch_sub(1, Ordering::AcqRel);
        }
        part
    }

    fn enter(&self) -> bool {
        let entered = self.active.fetch_add(1, Ordering::AcqRel) < self.limit.load(Ordering::Acquire);
        if !entered {
            self.active.fetch_sub(1, Ordering::AcqRel);
        }
        entered
    }

    fn steal(&self, worker: usize, wanted: usize, queues_used: usize) -> Option<Arc<Part<T>>> {
        let others = (1..queues_used).map(|offset| (worker + offset) % queues_used);
        std::iter::once(wanted).chain(others).find_map(|queue| self.queues[queue].take_newest())
    }

    /// The part at this address, however many are being executed.
    pub(crate) fn take_one(&self, queue: usize, address: usize) -> Option<Arc<Part<T>>> {
        let part = self.queues[queue].take_one(address);
        if part.is_some() {
            self.active.fetch_add(1, Ordering::AcqRel);
        }
        part
    }
}

/// Every lane there is. The first one is also for what is on an unknown device: roots, before they are opened.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    workers_max: usize,
    limit: usize,
    lanes: Vec<OnceLock<Lane<T>>>,
    used: AtomicUsize,
    /// The device of each lane.
    devs: Mutex<Vec<u64>>,
}

impl<T> Lanes<T> {
    /// Each lane starts with this limit.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        let lanes = (0..LANES_MAX).map(|_| OnceLock::new()).collect();
        Self { workers_max, limit, lanes, used: AtomicUsize::new(1), devs: Mutex::new(Vec::new()) }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, number: usize) -> &Lane<T> {
        self.lanes[number].get_or_init(|| Lane::new(self.workers_max, self.limit))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane<T>> {
        (0..self.used()).map(|number| self.get(number))
    }

    /// The number of the lane of a device.
    pub(crate) fn of(&self, dev: u64) -> usize {
        let mut devs = self.devs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = devs.iter().position(|known| *known == dev) {
            return number;
        }
        if devs.len() == LANES_MAX {
            return (dev % LANES_MAX as u64) as usize;
        }
        devs.push(dev);
        self.used.store(devs.len(), Ordering::Release);
        devs.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::part::Job;
    use fathom_io::Follow;

    fn part() -> Arc<Part<()>> {
        Part::new(Job::Root(Arc::new(Node::root(c"r".to_owned(), 0, Follow::No))))
    }

    fn lane(limit: usize, parts: usize) -> Lane<()> {
        let lane = Lane::new(4, limit);
        lane.announce(parts);
        lane.queue(1).change(|queue| queue.extend((0..parts).map(|_| part())));
        lane
    }

    #[test]
    fn no_more_parts_are_executed_than_the_limit_says() {
        let lane = lane(2, 5);
        assert!(lane.take(1, SHARED, 5).is_some() && lane.take(2, SHARED, 5).is_some());
        assert!(lane.take(3, SHARED, 5).is_none());
        assert_eq!((lane.active(), lane.outstanding()), (2, 5));
        assert!(!lane.finish());
        assert!(lane.take(3, SHARED, 5).is_some() && lane.take(1, SHARED, 5).is_none());
        lane.set_limit(4);
        assert!(lane.take(1, SHARED, 5).is_some() && lane.take(1, SHARED, 5).is_some());
        assert!(lane.take(1, SHARED, 5).is_none(), "nothing is left");
        assert_eq!(lane.active(), 4);
        assert_eq!((0..4).filter(|_| lane.finish()).count(), 1);
    }

    #[test]
    fn the_part_the_consumer_waits_for_is_executed_whatever_the_limit() {
        let lane = lane(0, 3);
        let wanted = part();
        lane.announce(1);
        lane.queue(2).change(|queue| queue.push_front(wanted.clone()));
        assert!(lane.take(2, 2, 5).is_none());
        let taken = lane.take_one(2, Arc::as_ptr(&wanted).addr()).unwrap();
        assert!(Arc::ptr_eq(&taken, &wanted));
        assert_eq!(lane.active(), 1);
    }

    #[test]
    fn devices_get_lanes_of_their_own_while_there_are_some() {
        let lanes = Lanes::<()>::new(1, 1);
        assert_eq!(lanes.used(), 1);
        let numbers: Vec<usize> = (100..).take(LANES_MAX).map(|dev| lanes.of(dev)).collect();
        assert_eq!(numbers, (0..LANES_MAX).collect::<Vec<_>>());
        assert_eq!(lanes.of(100), 0);
        assert!((1000..1100).all(|dev| lanes.of(dev) < LANES_MAX));
        assert_eq!((lanes.used(), lanes.iter().count()), (LANES_MAX, LANES_MAX));
    }

    #[test]
    fn the_first_call_is_a_guess_that_stats_correct() {
        let lane = lane(1, 0);
        lane.guess(1_000_000);
        assert!(lane.is_remote());
        lane.guess(1);
        assert!(lane.is_remote());
        (0..20).for_each(|_| lane.note(1_000));
        assert!(!lane.is_remote());
    }

    #[test]
    fn a_disk_is_no_server_however_slow() {
        let lane = lane(1, 0);
        lane.set_local(true);
        lane.note(10_000_000);
        assert!(!lane.is_remote());
        lane.set_local(false);
        assert!(lane.is_remote());
    }
}
