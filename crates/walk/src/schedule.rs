//! Which task is executed next, by whom, and who sleeps.
//!
//! There is one line a device (`line.rs`), and whoever is free takes the first task of it: so all work near the place where the
//! consumer is, and little has to wait for its turn. (A queue for each worker, with idle ones
//! stealing, keeps them apart, but each deep in a subtree of its own, and all that comes of it waits.) What workers share here is a
//! lock taken three times a task; a task is a directory as a rule, for which the kernel takes the lock of the process's descriptor
//! table as often.
//!
//! Outcomes that wait are weighed all the same (`backlog.rs`). Where there is too much of a device, until half of that is
//! consumed, the task the consumer waits for is executed and at most a few others: a slow consumer holds up the workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::device_queue::{DeviceQueue, DeviceQueues};
use crate::tally::{Count, Tally};
use crate::task::{Job, OutputItem, Task};
use crate::work_queue::NOWHERE;

/// Looks a worker takes at the lines before it goes to sleep: a few microseconds, after which the next task of a small
/// directory is there, as a rule, and going to sleep would have cost more.
const LOOKS: u32 = 200;

/// How long a walk that was stopped waits for what workers keep back: some may sit in slow calls.
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// The lines and everything workers wait for.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    /// The lines, device by device.
    pub(crate) devices: DeviceQueues<T>,
    /// Workers started.
    workers: AtomicUsize,
    /// More workers may be started: the consumer wants to know when there is work for them.
    can_spawn: AtomicBool,
    /// Workers allowed to work.
    allowed: AtomicUsize,
    /// The task the consumer waits for.
    wanted: Mutex<Option<Arc<Task<T>>>>,
    /// The device of the last one.
    wanted_device: AtomicUsize,
    stop: AtomicBool,
    panicked: AtomicBool,
    sleepers: AtomicUsize,
    /// Workers that may keep something back from a walk in no order.
    awake: AtomicUsize,
    /// Counts reasons to wake up.
    events: Mutex<u64>,
    wake: Condvar,
    /// Where workers wait that may not work for now.
    parked: Condvar,
    consumer: Thread,
}

impl<T> Schedule<T> {
    /// For up to `workers_max` workers, of which `limit` may work on one device at first; the calling thread is the consumer.
    pub(crate) fn new(workers_max: usize, limit: usize) -> Self {
        Self {
            devices: DeviceQueues::new(workers_max, limit),
            workers: AtomicUsize::new(0),
            can_spawn: AtomicBool::new(false),
            allowed: AtomicUsize::new(workers_max),
            wanted_device: AtomicUsize::new(0),
            wanted: Mutex::new(None),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            events: Mutex::new(0),
            wake: Condvar::new(),
            parked: Condvar::new(),
            consumer: std::thread::current(),
        }
    }

    fn events(&self) -> MutexGuard<'_, u64> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, Option<Arc<Task<T>>>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more worker; its number.
    pub(crate) fn add_worker(&self) -> usize {
        self.workers.fetch_add(1, Ordering::AcqRel)
    }

    /// Whether more workers may be started than there are.
    pub(crate) fn set_can_spawn(&self, can_spawn: bool) {
        self.can_spawn.store(can_spawn, Ordering::Relaxed);
    }

    /// The first `count` workers may work from now on.
    pub(crate) fn allow(&self, count: usize) {
        let before = self.allowed.swap(count, Ordering::AcqRel);
        if count > before {
            *self.events() += 1;
            self.parked.notify_all();
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
        self.parked.notify_one();
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

    /// Tasks put in and not finished.
    pub(crate) fn outstanding(&self) -> usize {
        self.devices.iter().map(DeviceQueue::outstanding).sum()
    }

    /// The sum of a counter over the workers on one device.
    pub(crate) fn count_on(&self, device: &DeviceQueue<T>, count: impl Fn(&Tally) -> &Count) -> u64 {
        device.count(self.workers.load(Ordering::Acquire), count)
    }

    /// The sum of a counter over all workers and devices.
    pub(crate) fn count(&self, count: impl Fn(&Tally) -> &Count) -> u64 {
        self.devices.iter().map(|device| self.count_on(device, &count)).fold(0, u64::wrapping_add)
    }

    /// Lets a device have more workers at once, or fewer.
    pub(crate) fn set_limit(&self, device: &DeviceQueue<T>, limit: usize) {
        if device.set_limit(limit) < limit {
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

    /// Puts in a task at the consumer's wish: a root behind the others, a task put off before everything.
    pub(crate) fn push_wanted(&self, task: Arc<Task<T>>, first: bool) {
        let device = self.devices.get(task.device);
        device.announce(1);
        device.with_queue(|line| if first { line.push_front(task) } else { line.push_back(task) });
        self.wake(1);
    }

    /// There is something for the consumer to look at.
    pub(crate) fn wake_consumer(&self) {
        self.consumer.unpark();
    }

    /// Counts tasks of one device that [`Schedule::push`] is going to put into its line. From here on the consumer may ask for them.
    pub(crate) fn announce(&self, tasks: &[Arc<Task<T>>]) {
        let Some(first) = tasks.first() else { return };
        self.devices.get(first.device).announce(tasks.len());
    }

    /// Puts announced tasks, given in traversal order, into the line. They came of the task of device `origin.0` that has the place
    /// `origin.1` there.
    pub(crate) fn push(&self, tasks: &mut Vec<Arc<Task<T>>>, origin: (usize, usize)) {
        let Some(first) = tasks.first() else { return };
        let (device, count) = (self.devices.get(first.device), tasks.len());
        let place = if origin.0 == first.device { origin.1 } else { NOWHERE };
        // The next batch of a very wide directory is read while the second half of this one is stat'ed.
        let last_is_more = matches!(tasks.last(), Some(last) if matches!(last.job, Job::More(..)));
        let early = last_is_more.then_some(count / 2);
        device.with_queue(|line| line.put_before(tasks, place, early));
        tasks.clear();
        self.wake(count);
        if self.can_spawn.load(Ordering::Relaxed) && self.sleepers() < count {
            self.consumer.unpark();
        }
    }

    /// A task has been executed, whatever came of it.
    pub(crate) fn finish(&self, task: &Task<T>) {
        if self.devices.get(task.device).finish(task.place()) {
            self.consumer.unpark();
        }
    }

    /// An announced task is not put in after all.
    pub(crate) fn forget(&self, task: &Task<T>) {
        self.devices.get(task.device).forget();
    }

    /// The outcome of `task` is there.
    pub(crate) fn published(&self, task: &Arc<Task<T>>) {
        let is_first = matches!(task.job, Job::Root(_) | Job::Relist(_));
        if task.is_wanted() && (is_first || self.devices.get(task.device).is_throttled()) {
            self.consumer.unpark();
        }
    }

    /// An outcome of `bytes` of a task of this device has its turn.
    pub(crate) fn drop_weight(&self, device: usize, bytes: usize) {
        if self.devices.get(device).drop_weight(bytes) {
            self.wake(usize::MAX);
        }
    }

    /// Lets go of everything below `slots`, without recursion.
    pub(crate) fn abandon(&self, slots: impl IntoIterator<Item = OutputItem<T>>) {
        let mut rest: Vec<OutputItem<T>> = slots.into_iter().collect();
        while let Some(slot) = rest.pop() {
            let Some(task) = slot.task() else { continue };
            if let Some(out) = task.abandon() {
                self.drop_weight(task.device, out.weight);
                rest.extend(out.slots);
            }
        }
    }

    /// The consumer waits for `task`, or for none.
    pub(crate) fn want(&self, task: Option<&Arc<Task<T>>>) {
        if let Some(task) = task {
            task.set_wanted();
            self.wanted_device.store(task.device, Ordering::Release);
        }
        *self.wanted() = task.cloned();
        if task.is_some_and(|task| self.devices.get(task.device).is_throttled()) {
            self.wake(1);
        }
    }

    /// A worker may keep something back from now on.
    pub(crate) fn mark_busy(&self) {
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// A worker keeps nothing back any more.
    pub(crate) fn mark_idle(&self) {
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.consumer.unpark();
        }
    }

    /// After the stop: gives workers a moment to hand over what they keep back.
    pub(crate) fn drain(&self) {
        let start = Instant::now();
        while self.is_any_awake() && start.elapsed() < DRAIN_MAX {
            std::thread::park_timeout(DRAIN_MAX / 50);
        }
    }

    fn is_any_awake(&self) -> bool {
        self.awake.load(Ordering::Acquire) > 0
    }

    /// Whether nothing is to be done and nobody keeps anything back. A worker stirs before its task is finished.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding() == 0 && !self.is_any_awake()
    }

    /// The next task for `worker`; waits for it if `wait`, and calls `pause` before that may take long. `None` after the stop,
    /// or if there is none to be had now.
    pub(crate) fn next(&self, worker: usize, wait: bool, pause: impl Fn()) -> Option<Arc<Task<T>>> {
        loop {
            if self.is_stopped() {
                return None;
            }
            if !self.is_allowed(worker) {
                if !wait {
                    return None;
                }
                pause();
                self.park(worker);
                continue;
            }
            let task = self.find();
            if task.is_some() || !wait {
                return task;
            }
            if let Some(task) = self.spin() {
                return Some(task);
            }
            pause();
            if let Some(task) = self.sleep() {
                return Some(task);
            }
        }
    }

    fn is_allowed(&self, worker: usize) -> bool {
        worker < self.allowed.load(Ordering::Acquire)
    }

    /// Waits until `worker` may work again, or the stop.
    fn park(&self, worker: usize) {
        // Who was woken for a task and may not take it passes that on.
        self.wake(1);
        let mut events = self.events();
        while !self.is_allowed(worker) && !self.is_stopped() {
            events = self.parked.wait(events).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn find(&self) -> Option<Arc<Task<T>>> {
        let (devices, near) = (self.devices.used(), self.wanted_device.load(Ordering::Acquire));
        let mut devices = (0..devices).map(|offset| self.devices.get((near + offset) % devices));
        self.find_wanted(self.devices.get(near)).or_else(|| devices.find_map(DeviceQueue::take))
    }

    /// Where workers wait for the consumer, the task that it waits for.
    fn find_wanted(&self, device: &DeviceQueue<T>) -> Option<Arc<Task<T>>> {
        if !device.is_throttled() {
            return None;
        }
        device.take_one(self.wanted().as_ref()?)
    }

    /// Looks again and again for a short while.
    fn spin(&self) -> Option<Arc<Task<T>>> {
        // Where somebody sleeps already, there is not enough to do.
        if self.sleepers() > 0 {
            return None;
        }
        (0..LOOKS).find_map(|_| {
            std::hint::spin_loop();
            self.find()
        })
    }

    /// Sleeps until something happens, unless there is a task after all.
    fn sleep(&self) -> Option<Arc<Task<T>>> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let ticket = *self.events();
        fence(Ordering::SeqCst);
        let task = self.find();
        if task.is_none() && !self.is_stopped() {
            let mut events = self.events();
            while *events == ticket {
                events = self.wake.wait(events).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        task
    }
}
