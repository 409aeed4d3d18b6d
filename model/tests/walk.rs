//! The protocols of `crates/walk` under loom: sleep and wake-up of workers, and the hand-off of
//! outputs to the consumer.
//!
//! These protocols use Relaxed accesses, fences and locks, and loom also explores the values that a
//! weak memory ordering allows a load to return. (It treats SeqCst accesses as AcqRel, but it
//! models SeqCst fences, which is all that these protocols need.) A lost wake-up is a deadlock,
//! which loom reports. A test names the changes of the code that it was
//! seen to fail with.

#[allow(dead_code)]
#[path = "../../crates/walk/src/active_limit.rs"]
mod active_limit;
#[allow(dead_code)]
#[path = "../../crates/walk/src/backlog.rs"]
mod backlog;
#[allow(dead_code)]
#[path = "../../crates/walk/src/handoff.rs"]
mod handoff;
#[allow(dead_code)]
#[path = "../../crates/walk/src/parking.rs"]
mod parking;
mod sync {
    pub(crate) use loom::sync::atomic;
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use std::sync::{Arc, PoisonError};

use loom::thread::{self, JoinHandle};

use active_limit::ActiveLimit;
use backlog::{BYTES_MAX, Backlog};
use handoff::Handoff;
use parking::Parking;
use sync::atomic::{AtomicUsize, Ordering};
use sync::{Condvar, Mutex};

/// Explores a model with up to `preemptions` preemptions in one execution.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Park and unpark of the consumer. (An unpark of loom breaks a `join` of that thread.)
#[derive(Default)]
struct Parker {
    is_unparked: Mutex<bool>,
    unparked: Condvar,
}

impl Parker {
    fn unpark(&self) {
        *self.is_unparked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.unparked.notify_one();
    }

    fn park(&self) {
        let mut is_unparked = self.is_unparked.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *is_unparked) {
            is_unparked = self.unparked.wait(is_unparked).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A queue of tasks with its parking. Like the device queues of the walk, it publishes its length
/// in an atomic, and workers do not take the lock of an empty queue.
struct Tasks {
    parking: Parking,
    len: AtomicUsize,
    tasks: Mutex<usize>,
    active: ActiveLimit,
    /// The number of tasks that workers of [`Tasks::work`] have finished.
    done: AtomicUsize,
    consumer: Parker,
}

impl Tasks {
    /// The first `allowed` of two workers may work. At most `limit` tasks are active at once.
    fn new(allowed: usize, limit: usize) -> Arc<Self> {
        let (parking, consumer) = (Parking::new(allowed, 0), Parker::default());
        let (len, tasks, done) = (AtomicUsize::new(0), Mutex::new(0), AtomicUsize::new(0));
        let active = ActiveLimit::new(limit);
        Arc::new(Self { parking, len, tasks, active, done, consumer })
    }

    fn push(&self, count: usize) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        *tasks += count;
        // Pairs with the load in `find`, as in the device queues.
        self.len.store(*tasks, Ordering::Release);
        drop(tasks);
        self.parking.wake(count);
    }

    fn find(&self) -> Option<()> {
        // Pairs with the stores of the length.
        if self.len.load(Ordering::Acquire) == 0 || !self.active.enter(usize::MAX) {
            return None;
        }
        assert!(self.active.active() <= self.active.limit(), "more tasks than the limit are active");
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rest) = tasks.checked_sub(1) else {
            self.active.leave();
            return None;
        };
        *tasks = rest;
        // Pairs with the load above.
        self.len.store(*tasks, Ordering::Release);
        Some(())
    }

    fn finish(&self) {
        // The queue's lock, as in `DeviceQueue::finish`.
        drop(self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        self.active.leave();
    }

    /// Waits until `count` tasks are done, and stops the workers.
    fn stop_after(&self, count: usize) {
        while self.done.load(Ordering::Relaxed) < count {
            self.consumer.park();
        }
        self.parking.stop();
    }

    fn next(&self, worker: usize) -> Option<()> {
        self.parking.next(worker, true, || self.find(), || ())
    }

    /// Starts a worker that ends after `count` tasks.
    fn take(self: &Arc<Self>, worker: usize, count: usize) -> JoinHandle<()> {
        let tasks = Arc::clone(self);
        thread::spawn(move || {
            (0..count).for_each(|_| {
                tasks.next(worker).expect("no stop");
                tasks.finish();
            })
        })
    }

    /// Starts a worker that works until the stop.
    fn work(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let tasks = Arc::clone(self);
        thread::spawn(move || {
            while tasks.next(worker).is_some() {
                tasks.finish();
                tasks.done.fetch_add(1, Ordering::Relaxed);
                tasks.consumer.unpark();
            }
            tasks.parking.pass_on_stop();
        })
    }
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Fails without the fence in `wake` or the one in `sleep`.
#[test]
fn a_worker_that_goes_to_sleep_does_not_miss_a_task() {
    check(2, || {
        let tasks = Tasks::new(1, 2);
        let worker = tasks.take(0, 2);
        tasks.push(1);
        tasks.push(1);
        join([worker]);
    });
}

/// Fails if `wake` notifies one sleeper for any number of tasks.
#[test]
fn as_many_workers_wake_up_as_there_are_tasks() {
    check(2, || {
        let tasks = Tasks::new(2, 2);
        let workers = [tasks.take(0, 1), tasks.take(1, 1)];
        tasks.push(2);
        join(workers);
    });
}

/// Fails if `stop` does not count an event.
#[test]
fn all_workers_end_after_a_stop() {
    check(2, || {
        let tasks = Tasks::new(1, 2);
        let workers = [tasks.work(0), tasks.work(1)];
        tasks.parking.stop();
        join(workers);
    });
}

/// Fails if `allow` does not take the lock of the events before it notifies.
#[test]
fn a_parked_worker_is_unparked_when_it_is_allowed_to_work() {
    check(2, || {
        let tasks = Tasks::new(0, 2);
        let worker = tasks.take(0, 1);
        tasks.push(1);
        tasks.parking.allow(1);
        join([worker]);
    });
}

/// The wake-up for a task may reach a worker that has just lost the permission to work.
#[test]
fn a_wake_up_of_a_worker_that_may_not_work_reaches_another_one() {
    check(1, || {
        let tasks = Tasks::new(2, 2);
        let workers = [tasks.work(0), tasks.work(1)];
        tasks.parking.allow(1);
        tasks.push(1);
        tasks.stop_after(1);
        join(workers);
    });
}

/// A worker that finds the device full sleeps, and the worker that ends a task takes the next one.
#[test]
fn a_task_of_a_device_at_its_limit_is_taken_when_another_one_ends() {
    check(1, || {
        let tasks = Tasks::new(2, 1);
        let workers = [tasks.work(0), tasks.work(1)];
        tasks.push(2);
        tasks.stop_after(2);
        join(workers);
    });
}

/// A worker's end of a hand-off: the order of calls in `Worker::publish` and
/// `Schedule::published`. Returns whether this ended a full backlog.
fn publish(output: &Handoff<usize>, backlog: &Backlog, bytes: usize, consumer: &Parker) -> bool {
    backlog.add(bytes, false);
    match output.publish(bytes) {
        Ok(()) => {
            if output.is_wanted() {
                consumer.unpark();
            }
            false
        }
        Err(bytes) => backlog.subtract(bytes, false),
    }
}

/// The consumer's end, as `Order::wait`, but without a timeout.
fn wait(output: &Handoff<usize>, consumer: &Parker) -> usize {
    if let Some(bytes) = output.take() {
        return bytes;
    }
    output.set_wanted();
    loop {
        match output.take() {
            Some(bytes) => return bytes,
            None => consumer.park(),
        }
    }
}

/// The consumer waits without a timeout, so a lost wake-up would be a deadlock. A weight that is
/// subtracted before it is added would be an overflow.
#[test]
fn the_consumer_wakes_up_for_an_output_and_its_weight_is_there() {
    check(2, || {
        let (output, backlog) = (Arc::new(Handoff::new()), Arc::new(Backlog::default()));
        let consumer = Arc::new(Parker::default());
        let theirs = (Arc::clone(&output), Arc::clone(&backlog), Arc::clone(&consumer));
        let worker = thread::spawn(move || {
            publish(&theirs.0, &theirs.1, BYTES_MAX + 1, &theirs.2);
        });
        let bytes = wait(&output, &consumer);
        assert!(backlog.is_full(), "the worker added the weight first");
        assert!(backlog.subtract(bytes, false) && !backlog.is_full());
        join([worker]);
    });
}

/// The weight of the output is subtracted by the thread that gets it.
#[test]
fn the_consumer_or_the_worker_gets_an_abandoned_output() {
    check(2, || {
        let (output, backlog) = (Arc::new(Handoff::new()), Arc::new(Backlog::default()));
        let consumer = Arc::new(Parker::default());
        let theirs = (Arc::clone(&output), Arc::clone(&backlog), Arc::clone(&consumer));
        let worker = thread::spawn(move || publish(&theirs.0, &theirs.1, BYTES_MAX + 1, &theirs.2));
        let here = output.abandon().is_some_and(|bytes| backlog.subtract(bytes, false));
        let there = worker.join().expect("no panic");
        assert!(here != there, "the weight is subtracted once");
        assert!(!backlog.is_full());
    });
}

/// Fails if `subtract` clears `full` only when the weight crosses the limit: the worker may set it
/// after the weight has fallen below.
#[test]
fn a_full_backlog_ends_with_its_last_output() {
    check(2, || {
        let backlog = Arc::new(Backlog::default());
        let outputs = Arc::new([Handoff::new(), Handoff::new()]);
        let consumer = Arc::new(Parker::default());
        let workers = [0, 1].map(|index| {
            let (backlog, outputs) = (Arc::clone(&backlog), Arc::clone(&outputs));
            let (bytes, consumer) = ([BYTES_MAX, 1][index], Arc::clone(&consumer));
            thread::spawn(move || {
                publish(&outputs[index], &backlog, bytes, &consumer);
            })
        });
        backlog.subtract(wait(&outputs[0], &consumer), false);
        let bytes = wait(&outputs[1], &consumer);
        let was_full = backlog.is_full();
        assert_eq!(backlog.subtract(bytes, false), was_full, "the workers are woken");
        assert!(!backlog.is_full());
        join(workers);
    });
}
