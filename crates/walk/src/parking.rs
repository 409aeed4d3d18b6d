//! Sleep and wake-up of workers. A worker sleeps while there is no task for it, and is parked while
//! fewer workers may work than exist.

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// An event count for sleeping workers, and the limit above which workers are parked. A wake-up
/// takes no lock while no worker sleeps.
#[derive(Debug)]
pub(crate) struct Parking {
    /// Searches for a task before a worker goes to sleep.
    spins: u32,
    /// The number of workers that may work: those with a lower number.
    allowed: AtomicUsize,
    stopped: AtomicBool,
    sleepers: AtomicUsize,
    /// The number of wake-ups so far. Both condition variables use this lock.
    events: Mutex<u64>,
    /// Sleeping workers wait here.
    wake: Condvar,
    /// Parked workers wait here.
    parked: Condvar,
}

impl Parking {
    /// Allows the first `allowed` workers to work. A worker searches `spins` times before it
    /// sleeps.
    pub(crate) fn new(allowed: usize, spins: u32) -> Self {
        Self {
            spins,
            allowed: AtomicUsize::new(allowed),
            stopped: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            events: Mutex::new(0),
            wake: Condvar::new(),
            parked: Condvar::new(),
        }
    }

    fn events(&self) -> MutexGuard<'_, u64> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of workers that sleep or are about to.
    pub(crate) fn sleepers(&self) -> usize {
        self.sleepers.load(Ordering::Relaxed)
    }

    /// Allows the first `count` workers to work, and unparks them.
    pub(crate) fn allow(&self, count: usize) {
        // Relaxed is enough: the lock below orders the new limit before the check in `park`, so a
        // worker sees it or waits already.
        let before = self.allowed.swap(count, Ordering::Relaxed);
        if count > before {
            *self.events() += 1;
            self.parked.notify_all();
        }
    }

    fn is_allowed(&self, worker: usize) -> bool {
        worker < self.allowed.load(Ordering::Relaxed)
    }

    /// Stops all workers. They wake up one after the other, because the thread that stops the walk
    /// needs the CPUs at this moment.
    pub(crate) fn stop(&self) {
        // Pairs with the load in `is_stopped`: a worker that ends sees everything that was done
        // before the stop.
        self.stopped.store(true, Ordering::Release);
        // A worker between its search and its wait has an older count, and does not sleep.
        *self.events() += 1;
        self.pass_on_stop();
    }

    /// Wakes the next worker after a stop. Each worker calls this when it ends.
    pub(crate) fn pass_on_stop(&self) {
        self.parked.notify_one();
        self.wake.notify_one();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // Pairs with the store in `stop`.
        self.stopped.load(Ordering::Acquire)
    }

    /// Wakes up to `count` sleeping workers. The caller has made a task available before.
    pub(crate) fn wake(&self, count: usize) {
        // Pairs with the fence in `sleep`: either the sleeper finds the task, or this load sees the
        // sleeper. Without one of the fences both could miss each other, and the task would wait
        // until the next wake-up.
        fence(Ordering::SeqCst);
        if self.sleepers() == 0 {
            return;
        }
        *self.events() += 1;
        if count == 1 {
            self.wake.notify_one();
        } else {
            self.wake.notify_all();
        }
    }

    /// Returns the next task for `worker`, which `find` searches for. If `wait`, waits for one, and
    /// calls `pause` before the worker sleeps or is parked. Returns `None` after the stop, or if
    /// there is no task now and the worker does not wait.
    pub(crate) fn next<R>(
        &self,
        worker: usize,
        wait: bool,
        find: impl Fn() -> Option<R>,
        pause: impl Fn(),
    ) -> Option<R> {
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
            let task = find();
            if task.is_some() || !wait {
                return task;
            }
            if let Some(task) = self.spin(&find) {
                return Some(task);
            }
            pause();
            if let Some(task) = self.sleep(&find) {
                return Some(task);
            }
        }
    }

    /// Waits until `worker` may work again, or the stop.
    fn park(&self, worker: usize) {
        // This worker may have consumed a wake-up meant for a task that another worker can take:
        // forward it.
        self.wake(1);
        let mut events = self.events();
        while !self.is_allowed(worker) && !self.is_stopped() {
            events = self.parked.wait(events).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Searches repeatedly for a short time.
    fn spin<R>(&self, find: impl Fn() -> Option<R>) -> Option<R> {
        // If other workers sleep already, there are too few tasks for all.
        if self.sleepers() > 0 {
            return None;
        }
        (0..self.spins).find_map(|_| {
            std::hint::spin_loop();
            find()
        })
    }

    /// Sleeps until the next wake-up, unless a last search finds a task.
    fn sleep<R>(&self, find: impl Fn() -> Option<R>) -> Option<R> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Before the search: a wake-up after it changes the count, so the wait below ends at once.
        let seen = *self.events();
        // Pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        let task = find();
        if task.is_none() && !self.is_stopped() {
            let mut events = self.events();
            while *events == seen {
                events = self.wake.wait(events).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        task
    }
}
