//! The state of each device: the tasks that wait for a worker, the number of tasks that may be
//! executed at once, and the duration of recent calls. A slow mount below a fast disk holds up no
//! other device, and its number of workers does not apply to the disk.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fathom_io::filesystem;

use crate::active_limit::ActiveLimit;
use crate::backlog::Backlog;
use crate::tally::{Count, Tally};
use crate::task::{Job, Task};
use crate::work_queue::WorkQueue;

/// The maximum number of device queues. With more devices, some share a queue.
pub(crate) const DEVICES_MAX: usize = 32;

/// A call that takes longer is usually a round trip.
const ROUND_TRIP_NS: u64 = 400_000;

/// The initial value of `end`: no directory ends at cookie 0.
const UNKNOWN: u64 = 0;
/// The value of `end` for no end cookie: no offset is negative.
const NO_END: u64 = u64::MAX;

/// The work queue and the counters of one device.
#[derive(Debug)]
pub(crate) struct DeviceQueue<T> {
    /// The counters of each worker, created on first use: most of the possible workers never exist.
    tallies: Box<[OnceLock<Box<Tally>>]>,
    queue: Mutex<WorkQueue<T>>,
    /// The length of `queue`.
    queue_len: AtomicUsize,
    /// Outputs that wait for the consumer.
    backlog: Backlog,
    /// The number of tasks being executed, and its limit.
    active: ActiveLimit,
    /// The number of announced tasks that are not finished.
    outstanding: AtomicUsize,
    /// The filesystem is known not to need a server, however long a call takes.
    local: AtomicBool,
    /// The cookie at which its directories end. [`UNKNOWN`] at first, [`NO_END`] if there is none.
    end: AtomicU64,
    /// The recent duration of one stat(2) call in nanoseconds. Before the first, the duration of
    /// another call, or 0.
    stat_ns: AtomicU64,
    /// A stat(2) call has been timed.
    timed: AtomicBool,
}

impl<T> DeviceQueue<T> {
    fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            tallies: (0..workers_max).map(|_| OnceLock::new()).collect(),
            queue: Mutex::new(WorkQueue::new()),
            queue_len: AtomicUsize::new(0),
            backlog: Backlog::default(),
            active: ActiveLimit::new(limit),
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
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut queue);
        // Pairs with the load in `take`. A worker that reads an old length misses a task; then the
        // fences in `Parking` make sure that it is woken.
        self.queue_len.store(queue.len(), Ordering::Release);
        result
    }

    /// Returns the sum of a counter over the first `workers` workers.
    pub(crate) fn count(&self, workers: usize, count: impl Fn(&Tally) -> &Count) -> u64 {
        let tallies = self.tallies.iter().take(workers).filter_map(OnceLock::get);
        tallies.map(|tally| count(tally).get()).fold(0, u64::wrapping_add)
    }

    /// Whether each call seems to be a round trip, according to the duration of recent calls.
    pub(crate) fn is_remote(&self) -> bool {
        self.stat_ns.load(Ordering::Relaxed) > ROUND_TRIP_NS && !self.is_local()
    }

    /// Sets the type of the filesystem, because many workers make the calls of a local disk slow
    /// too.
    pub(crate) fn set_filesystem(&self, magic: Option<i64>) {
        self.local.store(magic.is_some_and(filesystem::is_local), Ordering::Relaxed);
        let end = magic.and_then(filesystem::end_cookie).unwrap_or(NO_END);
        let before = self.end.compare_exchange(UNKNOWN, end, Ordering::Relaxed, Ordering::Relaxed);
        // Devices that share a queue have the same end or none: a name beyond a wrong end would be
        // lost.
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

    /// Sets the duration of another call as an estimate until a stat(2) call is timed.
    pub(crate) fn guess(&self, call_ns: u128) {
        if self.stat_ns.load(Ordering::Relaxed) == 0 {
            self.stat_ns.store(u64::try_from(call_ns).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Whether the answer of [`DeviceQueue::is_remote`] is reliable. On an unknown filesystem, the
    /// root may be cached and nothing else.
    pub(crate) fn is_known(&self) -> bool {
        self.is_local() || self.timed.load(Ordering::Relaxed)
    }

    /// Adds the duration of a stat(2) call.
    pub(crate) fn note(&self, stat_ns: u128) {
        const CLEARLY_LOCAL_NS: u64 = ROUND_TRIP_NS / 8;
        let new = u64::try_from(stat_ns).unwrap_or(u64::MAX);
        let old = self.stat_ns.load(Ordering::Relaxed);
        // The answer would not change, and a store would evict the line from the caches of all
        // workers.
        if (1..CLEARLY_LOCAL_NS).contains(&old) && new < CLEARLY_LOCAL_NS && self.is_known() {
            return;
        }
        let first = !self.timed.swap(true, Ordering::Relaxed);
        let mean = if first { new } else { (7 * (old / 8)).saturating_add(new / 8) };
        self.stat_ns.store(mean, Ordering::Relaxed);
    }

    /// Whether the backlog is full, so that workers wait for the consumer.
    pub(crate) fn is_throttled(&self) -> bool {
        self.backlog.is_full()
    }

    /// Adds an output of `bytes` to the backlog.
    pub(crate) fn add_weight(&self, bytes: usize) {
        self.backlog.add(bytes, self.is_remote());
    }

    /// Subtracts an output of `bytes` from the backlog. Returns whether it was full and no longer
    /// is.
    pub(crate) fn drop_weight(&self, bytes: usize) -> bool {
        self.backlog.subtract(bytes, self.is_remote())
    }

    /// Whether more tasks wait than there can be workers.
    pub(crate) fn has_plenty(&self) -> bool {
        self.queue_len.load(Ordering::Relaxed) > self.tallies.len()
    }

    pub(crate) fn limit(&self) -> usize {
        self.active.limit()
    }

    /// Sets the number of tasks that may be executed at once. Returns the number before.
    pub(crate) fn set_limit(&self, limit: usize) -> usize {
        self.active.set_limit(limit)
    }

    pub(crate) fn active(&self) -> usize {
        self.active.active()
    }

    pub(crate) fn outstanding(&self) -> usize {
        // Pairs with `forget`: a consumer that reads 0 sees the effects of all tasks.
        self.outstanding.load(Ordering::Acquire)
    }

    /// Counts tasks that will be queued.
    pub(crate) fn announce(&self, tasks: usize) {
        // Before the tasks are queued, and before their parent is finished: the count cannot be 0
        // while a task is left.
        self.outstanding.fetch_add(tasks, Ordering::Relaxed);
    }

    /// Notes that a task is finished, or will not be executed. Returns whether it was the last one.
    pub(crate) fn forget(&self) -> bool {
        // Pairs with the load in `outstanding`. AcqRel, so that the last decrement also passes on
        // the effects of all tasks before it.
        self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that the task at `place` of the queue has been executed. Returns whether it was the
    /// last one.
    pub(crate) fn finish(&self, place: usize) -> bool {
        self.with_queue(|queue| queue.leave(place));
        self.active.leave();
        self.forget()
    }

    /// Whether tasks wait and none is being executed.
    pub(crate) fn is_neglected(&self) -> bool {
        // Pairs with the store in `with_queue`.
        self.queue_len.load(Ordering::Acquire) > 0 && self.active.active() == 0
    }

    /// Takes the first queued task, unless the limit of executed tasks is reached. While it is
    /// raised, as workers wait for this device's storage, takes roots before their turn: each may
    /// be on another device.
    pub(crate) fn take(&self) -> Option<Arc<Task<T>>> {
        // Pairs with the store in `with_queue`.
        if self.queue_len.load(Ordering::Acquire) == 0 || !self.enter() {
            return None;
        }
        let is_root_first = self.active.is_raised();
        let task = self.with_queue(|queue| {
            let root = if is_root_first { queue.take_root() } else { None };
            root.or_else(|| queue.take_first())
        });
        if task.is_none() {
            self.active.leave();
        }
        task
    }

    fn enter(&self) -> bool {
        let throttle =
            if self.is_throttled() { self.backlog.in_flight_max(self.is_remote()) } else { usize::MAX };
        self.active.enter(throttle)
    }

    /// Whether this task was taken before its turn.
    pub(crate) fn is_root_ahead(&self, task: &Task<T>) -> bool {
        matches!(task.job, Job::Root(_)) && self.with_queue(|queue| queue.is_root_ahead(task.place()))
    }

    /// Queues a task again that was taken and not executed, at its place.
    pub(crate) fn put_back(&self, task: Arc<Task<T>>) {
        self.with_queue(|queue| queue.put_back(task));
        self.active.leave();
    }

    /// Takes this task if it is queued, whatever the limit.
    pub(crate) fn take_one(&self, task: &Arc<Task<T>>) -> Option<Arc<Task<T>>> {
        let task = self.with_queue(|queue| queue.take_one(task));
        if task.is_some() {
            self.active.enter_anyway();
        }
        task
    }
}

/// All device queues. The first one also has the tasks of unknown devices: roots before they are
/// opened.
#[derive(Debug)]
pub(crate) struct DeviceQueues<T> {
    workers_max: usize,
    limit: usize,
    devices: Vec<OnceLock<DeviceQueue<T>>>,
    used: AtomicUsize,
    /// The device number of each queue.
    devs: Mutex<Vec<u64>>,
}

impl<T> DeviceQueues<T> {
    /// Creates the queues. Each starts with this limit.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        let devices = (0..DEVICES_MAX).map(|_| OnceLock::new()).collect();
        Self { workers_max, limit, devices, used: AtomicUsize::new(1), devs: Mutex::new(Vec::new()) }
    }

    pub(crate) fn used(&self) -> usize {
        // Pairs with the store in `of`.
        self.used.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, number: usize) -> &DeviceQueue<T> {
        self.devices[number].get_or_init(|| DeviceQueue::new(self.workers_max, self.limit))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DeviceQueue<T>> {
        (0..self.used()).map(|number| self.get(number))
    }

    /// Returns the numbers of the devices that have a queue, in the order of the queues.
    pub(crate) fn devs(&self) -> Vec<u64> {
        self.devs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a device has the queue `number`.
    pub(crate) fn is_of(&self, number: usize, dev: u64) -> bool {
        let devs = self.devs.lock().unwrap_or_else(PoisonError::into_inner);
        devs.get(number) == Some(&dev)
    }

    /// Returns the index of the queue of a device.
    pub(crate) fn of(&self, dev: u64) -> usize {
        let mut devs = self.devs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = devs.iter().position(|known| *known == dev) {
            return number;
        }
        if devs.len() == DEVICES_MAX {
            return (dev % DEVICES_MAX as u64) as usize;
        }
        devs.push(dev);
        // Pairs with the load in `used`: a worker that finds the new queue's task has seen it.
        self.used.store(devs.len(), Ordering::Release);
        devs.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::{BYTES_MAX, BYTES_MAX_REMOTE, IN_FLIGHT_REMOTE};
    use crate::node::Node;
    use fathom_io::Follow;

    const EXT4: i64 = 0xEF53;
    const NFS: i64 = 0x6969;

    fn task() -> Arc<Task<()>> {
        Task::new(Job::Root(Arc::new(Node::root(c"r".to_owned(), 0, Follow::No, std::sync::Weak::new()))))
    }

    fn device(limit: usize, tasks: usize) -> DeviceQueue<()> {
        let device = DeviceQueue::new(4, limit);
        device.announce(tasks);
        (0..tasks).for_each(|_| device.with_queue(|queue| queue.push_back(task())));
        device
    }

    #[test]
    fn no_more_tasks_are_executed_than_the_limit_allows() {
        let device = device(2, 5);
        let (one, two) = (device.take().unwrap(), device.take().unwrap());
        assert!(device.take().is_none());
        assert_eq!((device.active(), device.outstanding()), (2, 5));
        assert!(!device.finish(one.place()));
        let three = device.take().unwrap();
        assert!(device.take().is_none());
        device.set_limit(4);
        let (four, five) = (device.take().unwrap(), device.take().unwrap());
        assert!(device.take().is_none(), "no task is left");
        assert_eq!(device.active(), 4);
        assert_eq!(
            [two, three, four, five].map(|task| device.finish(task.place())),
            [false, false, false, true]
        );
    }

    #[test]
    fn a_root_is_taken_before_its_turn_once_workers_wait_for_storage_and_put_back() {
        let device = device(2, 0);
        let roots = [task(), task()];
        roots.iter().for_each(|root| device.with_queue(|queue| queue.push_back(root.clone())));
        let below = [0, 1].map(|_| Task::new(Job::List(roots[0].job.node().clone())));
        device.with_queue(|queue| below.iter().for_each(|task| queue.push_front(task.clone())));
        let takes = |expected: &Arc<Task<()>>| {
            let taken = device.take().expect("one waits");
            assert!(Arc::ptr_eq(&taken, expected));
            taken
        };
        assert!(!device.is_root_ahead(&takes(&below[1])));
        assert_eq!(device.set_limit(9), 2);
        let ahead = takes(&roots[0]);
        assert!(device.is_root_ahead(&ahead));
        takes(&below[0]);
        device.put_back(ahead);
        assert!(device.is_root_ahead(&takes(&roots[1])));
        assert_eq!(device.active(), 3);
        assert!(!device.is_root_ahead(&takes(&roots[0])), "its turn has come");
    }

    #[test]
    fn a_device_is_neglected_while_tasks_wait_and_none_is_executed() {
        let device = device(1, 2);
        assert!(device.is_neglected());
        let taken = device.take().unwrap();
        assert!(!device.is_neglected());
        device.finish(taken.place());
        assert!(device.is_neglected());
        let taken = device.take().unwrap();
        device.finish(taken.place());
        assert!(!device.is_neglected(), "no task is left");
    }

    #[test]
    fn the_task_that_the_consumer_waits_for_is_executed_whatever_the_limit() {
        let device = device(0, 3);
        let wanted = task();
        device.announce(1);
        device.with_queue(|queue| queue.push_back(wanted.clone()));
        assert!(device.take().is_none());
        let taken = device.take_one(&wanted).unwrap();
        assert!(Arc::ptr_eq(&taken, &wanted));
        assert_eq!(device.active(), 1);
    }

    #[test]
    fn a_backlog_is_full_until_half_of_it_is_consumed() {
        for (remote, max) in [(false, BYTES_MAX), (true, BYTES_MAX_REMOTE)] {
            let backlog = Backlog::default();
            backlog.add(max, remote);
            assert!(!backlog.is_full());
            backlog.add(1, remote);
            assert!(backlog.is_full());
            assert!(!backlog.subtract(max / 2, remote) && backlog.is_full());
            assert!(backlog.subtract(2, remote) && !backlog.is_full());
        }
    }

    #[test]
    fn a_server_gets_a_few_requests_until_the_backlog_is_twice_as_full() {
        let backlog = Backlog::default();
        backlog.add(BYTES_MAX_REMOTE + 1, true);
        assert_eq!((backlog.in_flight_max(true), backlog.in_flight_max(false)), (IN_FLIGHT_REMOTE, 0));
        backlog.add(BYTES_MAX_REMOTE, true);
        assert_eq!(backlog.in_flight_max(true), 0);
    }

    #[test]
    fn devices_have_queues_of_their_own_up_to_the_maximum() {
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
    fn the_estimate_of_the_first_call_is_corrected_by_stat_calls() {
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
    fn a_local_disk_is_not_remote_however_slow() {
        let device = device(1, 0);
        device.set_filesystem(Some(EXT4));
        device.note(10_000_000);
        assert!(!device.is_remote());
        device.set_filesystem(Some(NFS));
        assert!(device.is_remote());
    }

    #[test]
    fn devices_of_one_queue_have_an_end_cookie_only_if_all_of_them_do() {
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
