//! What belongs to one device: the tasks that wait for a worker, how many of them may be executed at once, and how its
//! calls have been going. A slow mount below a fast disk holds up nobody else, and what it needs is not asked of the disk.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fathom_io::filesystem;

use crate::backlog::Backlog;
use crate::tally::{Count, Tally};
use crate::task::Task;
use crate::work_queue::WorkQueue;

/// Devices kept apart. Where there are more, some share.
pub(crate) const DEVICES_MAX: usize = 32;

/// A call that takes longer than this is a round trip, as a rule.
const ROUND_TRIP_NS: u64 = 400_000;

/// No directory ends at its start.
const UNKNOWN: u64 = 0;
/// No offset is negative.
const NO_END: u64 = u64::MAX;

/// One device's device.
#[derive(Debug)]
pub(crate) struct DeviceQueue<T> {
    /// One a worker, by its number, once that has something to count: there are seldom as many as there may be.
    tallies: Box<[OnceLock<Box<Tally>>]>,
    line: Mutex<WorkQueue<T>>,
    /// Tasks that wait in the line.
    queue_len: AtomicUsize,
    /// What waits for its turn.
    backlog: Backlog,
    /// Tasks that may be executed at once.
    limit: AtomicUsize,
    /// Tasks being executed.
    active: AtomicUsize,
    /// Tasks put in and not finished.
    outstanding: AtomicUsize,
    /// The filesystem is known to ask no server, however long a call takes.
    local: AtomicBool,
    /// The cookie at which its directories end; [`UNKNOWN`] at first, [`NO_END`] if there is none.
    end: AtomicU64,
    /// Nanoseconds one stat takes, lately, or before the first, another call; 0 before any.
    stat_ns: AtomicU64,
    /// A stat has been timed.
    timed: AtomicBool,
}

impl<T> DeviceQueue<T> {
    fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            tallies: (0..workers_max).map(|_| OnceLock::new()).collect(),
            line: Mutex::new(WorkQueue::new()),
            queue_len: AtomicUsize::new(0),
            backlog: Backlog::default(),
            limit: AtomicUsize::new(limit),
            active: AtomicUsize::new(0),
            outstanding: AtomicUsize::new(0),
            local: AtomicBool::new(false),
            end: AtomicU64::new(UNKNOWN),
            stat_ns: AtomicU64::new(0),
            timed: AtomicBool::new(false),
        }
    }

    pub(crate) fn tally(&self, worker: usize) -> &Tally {
        self.tallies[worker].get_or_init(Box::default)
    }

    pub(crate) fn with_queue<R>(&self, change: impl FnOnce(&mut WorkQueue<T>) -> R) -> R {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut line);
        self.queue_len.store(line.len(), Ordering::Release);
        result
    }

    /// The sum of a counter over the first `workers` workers.
    pub(crate) fn count(&self, workers: usize, count: impl Fn(&Tally) -> &Count) -> u64 {
        let tallies = self.tallies.iter().take(workers).filter_map(OnceLock::get);
        tallies.map(|tally| count(tally).get()).fold(0, u64::wrapping_add)
    }

    /// Whether each call is a round trip, going by how long one takes.
    pub(crate) fn is_remote(&self) -> bool {
        self.stat_ns.load(Ordering::Relaxed) > ROUND_TRIP_NS && !self.is_local()
    }

    /// Notes which filesystem this is. Many workers make a disk's calls slow, too.
    pub(crate) fn set_filesystem(&self, magic: Option<i64>) {
        self.local.store(magic.is_some_and(filesystem::is_local), Ordering::Relaxed);
        let end = magic.and_then(filesystem::end_cookie).unwrap_or(NO_END);
        let before = self.end.compare_exchange(UNKNOWN, end, Ordering::Relaxed, Ordering::Relaxed);
        // Devices that share a device have the same end or none: a name beyond a wrong end is lost.
        if before.is_err_and(|before| before != end) {
            self.end.store(NO_END, Ordering::Relaxed);
        }
    }

    /// Returns the cookie at which directories end, where they are known to end at one.
    pub(crate) fn end_cookie(&self) -> Option<u64> {
        let end = self.end.load(Ordering::Relaxed);
        (end != UNKNOWN && end != NO_END).then_some(end)
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local.load(Ordering::Relaxed)
    }

    /// Before anything has been stat'ed, another call tells what kind of storage this is.
    pub(crate) fn guess(&self, call_ns: u128) {
        if self.stat_ns.load(Ordering::Relaxed) == 0 {
            self.stat_ns.store(u64::try_from(call_ns).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Whether it can be told whether each call is a round trip: a filesystem may have its root cached and nothing else.
    pub(crate) fn is_known(&self) -> bool {
        self.is_local() || self.timed.load(Ordering::Relaxed)
    }

    /// A stat took this long.
    pub(crate) fn note(&self, stat_ns: u128) {
        const CLEARLY_LOCAL_NS: u64 = ROUND_TRIP_NS / 8;
        let new = u64::try_from(stat_ns).unwrap_or(u64::MAX);
        let old = self.stat_ns.load(Ordering::Relaxed);
        // Nothing would change, and all workers read this.
        if (1..CLEARLY_LOCAL_NS).contains(&old) && new < CLEARLY_LOCAL_NS && self.is_known() {
            return;
        }
        let first = !self.timed.swap(true, Ordering::Relaxed);
        let mean = if first { new } else { (7 * (old / 8)).saturating_add(new / 8) };
        self.stat_ns.store(mean, Ordering::Relaxed);
    }

    /// Whether workers wait for the consumer.
    pub(crate) fn is_throttled(&self) -> bool {
        self.backlog.is_full()
    }

    /// An outcome of `bytes` is going to wait for its turn.
    pub(crate) fn add_weight(&self, bytes: usize) {
        self.backlog.add(bytes, self.is_remote());
    }

    /// An outcome of `bytes` has its turn; whether that is what workers wait for.
    pub(crate) fn drop_weight(&self, bytes: usize) -> bool {
        self.backlog.subtract(bytes, self.is_remote())
    }

    /// Whether more tasks wait than there will ever be workers.
    pub(crate) fn has_plenty(&self) -> bool {
        self.queue_len.load(Ordering::Relaxed) > self.tallies.len()
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

    /// Counts tasks that are going to be put in.
    pub(crate) fn announce(&self, tasks: usize) {
        self.outstanding.fetch_add(tasks, Ordering::AcqRel);
    }

    /// A task will not be executed after all, or has been; whether it was the last one.
    pub(crate) fn forget(&self) -> bool {
        self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// A task has been executed, the one at `place` in the line; whether it was the last one.
    pub(crate) fn finish(&self, place: usize) -> bool {
        self.with_queue(|line| line.leave(place));
        self.active.fetch_sub(1, Ordering::AcqRel);
        self.forget()
    }

    /// The first task in the line, unless as many are being executed as may be.
    pub(crate) fn take(&self) -> Option<Arc<Task<T>>> {
        if self.queue_len.load(Ordering::Acquire) == 0 || !self.enter() {
            return None;
        }
        let task = self.with_queue(WorkQueue::take_first);
        if task.is_none() {
            self.active.fetch_sub(1, Ordering::AcqRel);
        }
        task
    }

    fn enter(&self) -> bool {
        let throttle =
            if self.is_throttled() { self.backlog.in_flight_max(self.is_remote()) } else { usize::MAX };
        let limit = self.limit.load(Ordering::Acquire).min(throttle);
        let entered = self.active.fetch_add(1, Ordering::AcqRel) < limit;
        if !entered {
            self.active.fetch_sub(1, Ordering::AcqRel);
        }
        entered
    }

    /// This task, if it waits, however many are being executed.
    pub(crate) fn take_one(&self, task: &Arc<Task<T>>) -> Option<Arc<Task<T>>> {
        let task = self.with_queue(|line| line.take_one(task));
        if task.is_some() {
            self.active.fetch_add(1, Ordering::AcqRel);
        }
        task
    }
}

/// Every device there is. The first one is also for what is on an unknown device: roots, before they are opened.
#[derive(Debug)]
pub(crate) struct DeviceQueues<T> {
    workers_max: usize,
    limit: usize,
    devices: Vec<OnceLock<DeviceQueue<T>>>,
    used: AtomicUsize,
    /// The device of each device.
    devs: Mutex<Vec<u64>>,
}

impl<T> DeviceQueues<T> {
    /// Each device starts with this limit.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        let devices = (0..DEVICES_MAX).map(|_| OnceLock::new()).collect();
        Self { workers_max, limit, devices, used: AtomicUsize::new(1), devs: Mutex::new(Vec::new()) }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, number: usize) -> &DeviceQueue<T> {
        self.devices[number].get_or_init(|| DeviceQueue::new(self.workers_max, self.limit))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DeviceQueue<T>> {
        (0..self.used()).map(|number| self.get(number))
    }

    /// The devices that have devices, by their devices' numbers.
    pub(crate) fn devs(&self) -> Vec<u64> {
        self.devs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of the device of a device.
    pub(crate) fn of(&self, dev: u64) -> usize {
        let mut devs = self.devs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = devs.iter().position(|known| *known == dev) {
            return number;
        }
        if devs.len() == DEVICES_MAX {
            return (dev % DEVICES_MAX as u64) as usize;
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
    use crate::task::Job;
    use fathom_io::Follow;

    const EXT4: i64 = 0xEF53;
    const NFS: i64 = 0x6969;

    fn task() -> Arc<Task<()>> {
        Task::new(Job::Root(Arc::new(Node::root(c"r".to_owned(), 0, Follow::No, std::sync::Weak::new()))))
    }

    fn device(limit: usize, tasks: usize) -> DeviceQueue<()> {
        let device = DeviceQueue::new(4, limit);
        device.announce(tasks);
        (0..tasks).for_each(|_| device.with_queue(|line| line.push_back(task())));
        device
    }

    #[test]
    fn no_more_parts_are_executed_than_the_limit_says() {
        let device = device(2, 5);
        let (one, two) = (device.take().unwrap(), device.take().unwrap());
        assert!(device.take().is_none());
        assert_eq!((device.active(), device.outstanding()), (2, 5));
        assert!(!device.finish(one.place()));
        let three = device.take().unwrap();
        assert!(device.take().is_none());
        device.set_limit(4);
        let (four, five) = (device.take().unwrap(), device.take().unwrap());
        assert!(device.take().is_none(), "nothing is left");
        assert_eq!(device.active(), 4);
        assert_eq!(
            [two, three, four, five].map(|task| device.finish(task.place())),
            [false, false, false, true]
        );
    }

    #[test]
    fn the_part_the_consumer_waits_for_is_executed_whatever_the_limit() {
        let device = device(0, 3);
        let wanted = task();
        device.announce(1);
        device.with_queue(|line| line.push_back(wanted.clone()));
        assert!(device.take().is_none());
        let taken = device.take_one(&wanted).unwrap();
        assert!(Arc::ptr_eq(&taken, &wanted));
        assert_eq!(device.active(), 1);
    }

    #[test]
    fn devices_get_lanes_of_their_own_while_there_are_some() {
        let devices = DeviceQueues::<()>::new(1, 1);
        assert_eq!(devices.used(), 1);
        let numbers: Vec<usize> = (100..).take(DEVICES_MAX).map(|dev| devices.of(dev)).collect();
        assert_eq!(numbers, (0..DEVICES_MAX).collect::<Vec<_>>());
        assert_eq!(devices.of(100), 0);
        assert_eq!(devices.devs(), (100..).take(DEVICES_MAX).collect::<Vec<_>>());
        assert!((1000..1100).all(|dev| devices.of(dev) < DEVICES_MAX));
        assert_eq!((devices.used(), devices.iter().count()), (DEVICES_MAX, DEVICES_MAX));
    }

    #[test]
    fn the_first_call_is_a_guess_that_stats_correct() {
        let device = device(1, 0);
        device.guess(1_000_000);
        assert!(device.is_remote());
        device.guess(1);
        assert!(device.is_remote() && !device.is_known());
        device.note(1_000);
        assert!(!device.is_remote() && device.is_known());
        (0..20).for_each(|_| device.note(1_000_000));
        assert!(device.is_remote());
        (0..20).for_each(|_| device.note(1_000));
        assert!(!device.is_remote());
    }

    #[test]
    fn a_disk_is_no_server_however_slow() {
        let device = device(1, 0);
        device.set_filesystem(Some(EXT4));
        device.note(10_000_000);
        assert!(!device.is_remote());
        device.set_filesystem(Some(NFS));
        assert!(device.is_remote());
    }

    #[test]
    fn devices_of_one_lane_have_an_end_cookie_only_if_all_of_them_do() {
        for (magics, has_end) in [
            (vec![EXT4], true),
            (vec![EXT4, EXT4], true),
            (vec![NFS], false),
            (vec![EXT4, NFS, EXT4], false),
            (vec![NFS, EXT4], false),
        ] {
            let device = device(1, 0);
            assert_eq!(device.end_cookie(), None, "no device is known yet");
            magics.iter().for_each(|magic| device.set_filesystem(Some(*magic)));
            assert_eq!(device.end_cookie().is_some(), has_end, "{magics:x?}");
        }
    }
}
