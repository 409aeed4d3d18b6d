//! The schedule: the tasks of all devices, the workers that execute them, and the consumer's
//! wishes.
//!
//! Each device has one work queue in traversal order (`work_queue.rs`), and an idle worker takes
//! the first task of it. So all workers stay near the place of the consumer, and few outputs have
//! to wait for it. (With a queue for each worker and work stealing, each worker would go deep into
//! a subtree of its own, and all outputs from there would wait.) The workers share a lock that is
//! taken three times a task. A task is usually a directory, for which the kernel takes the lock of
//! the process's descriptor table as often.
//!
//! Waiting outputs are weighed (`backlog.rs`). If a device has too many, workers execute only the
//! task that the consumer waits for, and at most a few others, until half of the backlog is
//! consumed: a slow consumer holds up the workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::device_queue::{DeviceQueue, DeviceQueues};
use crate::parking::Parking;
use crate::tally::{Count, Tally};
use crate::task::{Job, NOWHERE, OutputItem, Task};

/// Searches of a worker before it sleeps: a few microseconds. By then the next task of a small
/// directory usually exists, and sleeping would have taken longer.
const SPINS: u32 = 200;

/// The time that a stopped walk waits for entries that workers hold back. Some workers may be in
/// slow calls.
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// The device queues, and all events that workers and the consumer wait for.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    pub(crate) devices: DeviceQueues<T>,
    /// Sleep and wake-up of the workers.
    parking: Parking,
    /// The number of workers started.
    workers: AtomicUsize,
    /// More workers may be started: the consumer is woken when there are tasks for them.
    can_spawn: AtomicBool,
    /// The task that the consumer waits for.
    wanted: Mutex<Option<Arc<Task<T>>>>,
    /// The device of the last wanted task.
    wanted_device: AtomicUsize,
    panicked: AtomicBool,
    /// The number of workers of an unordered walk that may hold entries back.
    awake: AtomicUsize,
    consumer: Thread,
}

impl<T> Schedule<T> {
    /// Creates a schedule for up to `workers_max` workers, of which at most `limit` work on one
    /// device at first. The calling thread is the consumer.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            devices: DeviceQueues::new(workers_max, limit),
            parking: Parking::new(workers_max, SPINS),
            workers: AtomicUsize::new(0),
            can_spawn: AtomicBool::new(false),
            wanted: Mutex::new(None),
            wanted_device: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            awake: AtomicUsize::new(0),
            consumer: std::thread::current(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Option<Arc<Task<T>>>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a worker and returns its number.
    pub(crate) fn add_worker(&self) -> usize {
        // Pairs with the load in `count_on`.
        self.workers.fetch_add(1, Ordering::AcqRel)
    }

    /// Sets whether more workers may be started.
    pub(crate) fn set_can_spawn(&self, can_spawn: bool) {
        self.can_spawn.store(can_spawn, Ordering::Relaxed);
    }

    /// Allows the first `count` workers to work.
    pub(crate) fn allow(&self, count: usize) {
        self.parking.allow(count);
    }

    /// Stops all workers, which end one after the other.
    pub(crate) fn stop(&self) {
        self.parking.stop();
    }

    /// Wakes the next worker after a stop. Each worker calls this when it ends.
    pub(crate) fn pass_on_stop(&self) {
        self.parking.pass_on_stop();
    }

    /// Stops the walk after a panic of a worker: the worker's task will never be finished, so the
    /// walk cannot complete.
    pub(crate) fn panic(&self) {
        // Pairs with the load in `has_panicked`. Before the stop: a consumer that sees the stop
        // reports the panic.
        self.panicked.store(true, Ordering::Release);
        self.stop();
        self.consumer.unpark();
    }

    pub(crate) fn has_panicked(&self) -> bool {
        // Pairs with the store in `panic`.
        self.panicked.load(Ordering::Acquire)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.parking.is_stopped()
    }

    /// Returns the number of announced tasks that are not finished.
    pub(crate) fn outstanding(&self) -> usize {
        self.devices.iter().map(DeviceQueue::outstanding).sum()
    }

    /// Returns the sum of a counter over the workers on one device.
    pub(crate) fn count_on(&self, device: &DeviceQueue<T>, count: impl Fn(&Tally) -> &Count) -> u64 {
        // Pairs with the increment in `add_worker`.
        device.count(self.workers.load(Ordering::Acquire), count)
    }

    /// Returns the sum of a counter over all workers and devices.
    pub(crate) fn count(&self, count: impl Fn(&Tally) -> &Count) -> u64 {
        self.devices.iter().map(|device| self.count_on(device, &count)).fold(0, u64::wrapping_add)
    }

    /// Sets the number of workers that may work on a device at once.
    pub(crate) fn set_limit(&self, device: &DeviceQueue<T>, limit: usize) {
        if device.set_limit(limit) < limit {
            self.parking.wake(usize::MAX);
        }
    }

    /// Queues a task that the consumer asks for: a root behind all others, or a postponed directory
    /// in front of them (`first`).
    pub(crate) fn push_wanted(&self, task: Arc<Task<T>>, first: bool) {
        let device = self.devices.get(task.device);
        device.announce(1);
        device.with_queue(|queue| if first { queue.push_front(task) } else { queue.push_back(task) });
        self.parking.wake(1);
    }

    /// Wakes the consumer.
    pub(crate) fn wake_consumer(&self) {
        self.consumer.unpark();
    }

    /// Counts tasks of one device before [`Schedule::push`] queues them. The consumer may wait for
    /// them from now on.
    pub(crate) fn announce(&self, tasks: &[Arc<Task<T>>]) {
        let Some(first) = tasks.first() else { return };
        self.devices.get(first.device).announce(tasks.len());
    }

    /// Queues announced tasks, given in traversal order. They are from the output of the task of
    /// device `origin.0` with the place `origin.1` there.
    pub(crate) fn push(&self, tasks: &mut Vec<Arc<Task<T>>>, origin: (usize, usize)) {
        let Some(first) = tasks.first() else { return };
        let (device, count) = (self.devices.get(first.device), tasks.len());
        let place = if origin.0 == first.device { origin.1 } else { NOWHERE };
        // The next batch of a very wide directory is read during the calls to stat(2) of the second
        // half of this one.
        let last_is_more = matches!(tasks.last(), Some(last) if matches!(last.job, Job::More(..)));
        let early = last_is_more.then_some(count / 2);
        device.with_queue(|queue| queue.put_before(tasks, place, early));
        tasks.clear();
        self.parking.wake(count);
        if self.can_spawn.load(Ordering::Relaxed) && self.parking.sleepers() < count {
            self.consumer.unpark();
        }
    }

    /// Notes that a task has been executed, with or without success.
    pub(crate) fn finish(&self, task: &Task<T>) {
        if self.devices.get(task.device).finish(task.place()) {
            self.consumer.unpark();
        }
    }

    /// Whether this task was taken before its turn. Then it is executed only if it is on another
    /// device, and otherwise put back.
    pub(crate) fn is_root_ahead(&self, task: &Task<T>) -> bool {
        self.devices.get(task.device).is_root_ahead(task)
    }

    /// Queues a task again that was taken and not executed.
    pub(crate) fn put_back(&self, task: Arc<Task<T>>) {
        self.devices.get(task.device).put_back(task);
        // This worker may find a task of another device first.
        self.parking.wake(1);
    }

    /// Notes that an announced task will not be queued.
    pub(crate) fn forget(&self, task: &Task<T>) {
        self.devices.get(task.device).forget();
    }

    /// Wakes the consumer if it waits for the output of `task`, which has just been published.
    pub(crate) fn published(&self, task: &Arc<Task<T>>) {
        let is_first = matches!(task.job, Job::Root(_) | Job::Relist(_));
        if task.output.is_wanted() && (is_first || self.devices.get(task.device).is_throttled()) {
            self.consumer.unpark();
        }
    }

    /// Subtracts an output of `bytes` from the backlog of this device.
    pub(crate) fn drop_weight(&self, device: usize, bytes: usize) {
        if self.devices.get(device).drop_weight(bytes) {
            self.parking.wake(usize::MAX);
        }
    }

    /// Abandons all tasks below `slots`, without recursion.
    pub(crate) fn abandon(&self, slots: impl IntoIterator<Item = OutputItem<T>>) {
        let mut rest: Vec<OutputItem<T>> = slots.into_iter().collect();
        while let Some(slot) = rest.pop() {
            let Some(task) = slot.task() else { continue };
            if let Some(out) = task.output.abandon() {
                self.drop_weight(task.weighed_on(), out.weight);
                rest.extend(out.slots);
            }
        }
    }

    /// Notes that the consumer waits for `task`, or for none.
    pub(crate) fn want(&self, task: Option<&Arc<Task<T>>>) {
        if let Some(task) = task {
            task.output.set_wanted();
            // A hint for the search: a worker that reads an old value searches another device
            // first.
            self.wanted_device.store(task.device, Ordering::Relaxed);
        }
        *self.wanted() = task.cloned();
        if task.is_some_and(|task| self.devices.get(task.device).is_throttled()) {
            self.parking.wake(1);
        }
    }

    /// Notes that a worker may hold entries back from now on.
    pub(crate) fn mark_busy(&self) {
        // Before the worker finishes its task; pairs with the load in `is_any_awake`.
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a worker has delivered all entries.
    pub(crate) fn mark_idle(&self) {
        // Pairs with the load in `is_any_awake`: the consumer that reads 0 sees all deliveries.
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.consumer.unpark();
        }
    }

    /// Waits a short time after the stop for workers to deliver the entries that they hold back.
    pub(crate) fn drain(&self) {
        let start = Instant::now();
        while self.is_any_awake() && start.elapsed() < DRAIN_MAX {
            std::thread::park_timeout(DRAIN_MAX / 50);
        }
    }

    fn is_any_awake(&self) -> bool {
        // Pairs with the decrement in `mark_idle`.
        self.awake.load(Ordering::Acquire) > 0
    }

    /// Whether all tasks are finished and no worker holds entries back. A worker calls `mark_busy`
    /// before it finishes its task, so one of the two counts is not 0 until it has delivered.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding() == 0 && !self.is_any_awake()
    }

    /// Returns the next task for `worker`. If `wait`, waits for one, and calls `pause` before that
    /// may take long. Returns `None` after the stop, or if there is no task now and the worker does
    /// not wait.
    pub(crate) fn next(&self, worker: usize, wait: bool, pause: impl Fn()) -> Option<Arc<Task<T>>> {
        self.parking.next(worker, wait, || self.find(), pause)
    }

    fn find(&self) -> Option<Arc<Task<T>>> {
        let (devices, near) = (self.devices.used(), self.wanted_device.load(Ordering::Relaxed));
        let from_near = || (0..devices).map(|offset| self.devices.get((near + offset) % devices));
        self.find_wanted(self.devices.get(near))
            // First those without a worker: a slow device would take every new one until it has its
            // many.
            .or_else(|| from_near().filter(|device| device.is_neglected()).find_map(DeviceQueue::take))
            .or_else(|| from_near().find_map(DeviceQueue::take))
    }

    /// Takes the task that the consumer waits for, if the backlog of the device is full.
    fn find_wanted(&self, device: &DeviceQueue<T>) -> Option<Arc<Task<T>>> {
        if !device.is_throttled() {
            return None;
        }
        // `device` may be an old value.
        let wanted = self.wanted().clone().filter(|task| std::ptr::eq(device, self.devices.get(task.device)));
        device.take_one(&wanted?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use fathom_io::Follow;

    #[test]
    fn a_wanted_task_is_searched_in_its_own_queue_only() {
        let schedule = Schedule::<()>::new(1, 1);
        let [first, other] = [5, 6].map(|dev| schedule.devices.get(schedule.devices.of(dev)));
        let root = |number| Arc::new(Node::root(c"r".to_owned(), number, Follow::No, Default::default()));
        let tasks: Vec<_> = (0..9).map(|number| Task::new(Job::Root(root(number)))).collect();
        tasks.iter().for_each(|task| schedule.push_wanted(task.clone(), false));
        schedule.want(tasks.last());
        [first, other].iter().for_each(|device| device.add_weight(usize::MAX / 4));
        assert!(other.is_throttled() && schedule.find_wanted(other).is_none(), "it has no such place");
        let found = schedule.find_wanted(first).expect("it waits");
        assert!(Arc::ptr_eq(&found, &tasks[8]));
    }
}
