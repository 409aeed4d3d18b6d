//! The pool of workers. Every few milliseconds, the calling thread samples the controllers and sets
//! the number of workers.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fathom_io::{Unavailable, sys, sys::Usage};

use crate::control::{Controller, Sample};
use crate::device_queue::DeviceQueue;
use crate::driven::Driven;
use crate::error::{Error, Op};
use crate::hints::ConcurrencyHints;
use crate::node::Node;
use crate::schedule::Schedule;
use crate::summary::{Progress, Summary};
use crate::worker::Shared;

/// The time between two samples of the controllers, at first and after [`LATER`], when few
/// decisions are left. With many workers, a sample takes noticeable time.
const SAMPLE: Duration = Duration::from_millis(1);
const SAMPLE_LATER: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(50);
/// The time that the calling thread works alone before it tries again to start a thread.
const RETRY: Duration = Duration::from_secs(1);
/// The address space of a worker: its stack, a signal stack, and its buffers.
const WORKER_BYTES: usize = 2 << 20;
/// Workers started ahead of their tasks for each millisecond of waiting for a server. That takes
/// about half of one CPU's time.
const READY_PER_MS: usize = 8;

/// Readings of monotonic counters.
#[derive(Clone, Copy, Debug)]
struct CounterReading {
    at: Instant,
    usage: Usage,
    idle: Option<Duration>,
}

impl CounterReading {
    fn new(at: Instant) -> Self {
        Self { at, usage: sys::usage(), idle: None }
    }
}

/// The controllers, one for each device.
struct Controllers {
    cpus: usize,
    workers_max: usize,
    hints: ConcurrencyHints,
    /// With the units done there at the last sample.
    devices: Vec<(Controller, u64)>,
}

impl Controllers {
    /// Takes a sample of every device. `common` has the values of the whole process. Returns the
    /// number of workers that there should be.
    fn sample<T>(&mut self, schedule: &Schedule<T>, common: Sample) -> usize {
        // A device is there before its device is known.
        let devs = if self.hints.is_empty() { Vec::new() } else { schedule.devices.devs() };
        for (number, device) in schedule.devices.iter().enumerate() {
            if self.devices.len() == number {
                self.devices.push((Controller::new(self.cpus, self.workers_max), 0));
            }
            let (controller, last) = &mut self.devices[number];
            let known = devs.get(number).and_then(|dev| self.hints.of(*dev));
            known.inspect(|workers| controller.start_at(*workers));
            let units = schedule.count_on(device, |tally| &tally.entries)
                + schedule.count_on(device, |tally| &tally.directories);
            let limit = controller.tick(Sample {
                units: units - *last,
                remote: device.is_remote(),
                saturated: common.saturated
                    && device.outstanding() > device.limit()
                    && !device.is_throttled(),
                ..common
            });
            *last = units;
            schedule.set_limit(device, limit);
        }
        let total: usize = self.devices.iter().map(|(controller, _)| controller.workers()).sum();
        total.min(self.workers_max)
    }
}

/// The workers, as the calling thread looks after them between its other work.
pub(crate) struct Pool<'a, D: Driven> {
    shared: &'a Shared<D>,
    workers_max: usize,
    adaptive: bool,
    controllers: Option<Controllers>,
    /// Starts a worker.
    spawn: &'a dyn Fn() -> io::Result<()>,
    /// Executes a task on the calling thread. Returns false if there is none.
    run_inline: &'a dyn Fn() -> Result<bool, Unavailable>,
    /// The calling thread may execute a task.
    helps_out: bool,
    /// The time of the last failure to start a thread. Until the next attempt, the calling thread
    /// executes all tasks.
    alone_since: Option<Instant>,
    refusal: mpsc::Receiver<Unavailable>,
    failure: Option<Error>,
    watch: &'a mut dyn FnMut(Progress),
    /// The wanted number of workers has been determined.
    sized: bool,
    wanted: usize,
    spawned: usize,
    start: Instant,
    last: CounterReading,
    over_time: Vec<(Duration, usize)>,
}

/// The parts of a pool.
pub(crate) struct Setup<'a, D: Driven> {
    pub(crate) shared: &'a Shared<D>,
    pub(crate) workers_max: usize,
    /// The number of workers adapts to the storage.
    pub(crate) adaptive: bool,
    pub(crate) spawn: &'a dyn Fn() -> io::Result<()>,
    pub(crate) run_inline: &'a dyn Fn() -> Result<bool, Unavailable>,
    /// The model's calls are the kernel's own, made on the thread that asks.
    pub(crate) direct: bool,
    pub(crate) refusal: mpsc::Receiver<Unavailable>,
    pub(crate) watch: &'a mut dyn FnMut(Progress),
}

impl<'a, D: Driven> Pool<'a, D> {
    pub(crate) fn new(setup: Setup<'a, D>) -> Self {
        let Setup { shared, workers_max, adaptive, spawn, run_inline, direct, refusal, watch } = setup;
        let start = shared.options.clock.now();
        Self {
            shared,
            workers_max,
            adaptive,
            controllers: None,
            spawn,
            run_inline,
            helps_out: direct,
            alone_since: None,
            refusal,
            failure: None,
            watch,
            sized: false,
            wanted: 1,
            spawned: 0,
            start,
            last: CounterReading::new(start),
            over_time: vec![(Duration::ZERO, 1)],
        }
    }

    fn now(&self) -> Instant {
        self.shared.options.clock.now()
    }

    /// Returns the time since the start of the walk.
    fn elapsed(&self) -> Duration {
        self.now() - self.start
    }

    fn count(&self) -> usize {
        self.spawned.min(self.wanted).max(1)
    }

    fn progress(&self) -> Progress {
        Progress {
            entries: self.shared.schedule.count(|tally| &tally.entries),
            directories: self.shared.schedule.count(|tally| &tally.directories),
            measured: self.shared.schedule.count(|tally| &tally.measured),
            failures: self.shared.schedule.count(|tally| &tally.failures),
            workers: self.count(),
            busy: self.shared.schedule.devices.iter().map(DeviceQueue::active).sum(),
        }
    }

    /// Determines the initial number of workers, while the first one is already working: it takes a
    /// while to determine the CPU quota of this process.
    fn size(&mut self) {
        self.sized = true;
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        self.wanted = self.shared.options.worker_counts(cpus).start.min(self.workers_max);
        self.shared.schedule.set_can_spawn(self.wanted > 1);
        let (workers_max, hints) = (self.workers_max, self.shared.options.hints.clone());
        self.controllers =
            self.adaptive.then(|| Controllers { cpus, workers_max, hints, devices: Vec::new() });
    }

    /// Starts the first worker. If a limit on threads or memory prevents that, the calling thread
    /// works alone for a while.
    pub(crate) fn spawn_first(&mut self) {
        if self.alone_since.is_some_and(|since| self.now() - since < RETRY) {
            return;
        }
        if let Some(room) = sys::address_space_left() {
            self.workers_max = self.workers_max.min(room / WORKER_BYTES);
        }
        if self.workers_max > 0 && (self.spawn)().is_ok() {
            (self.spawned, self.alone_since) = (1, None);
        } else {
            self.alone_since = Some(self.now());
        }
    }

    /// Starts workers up to the wanted number, but not more than there are tasks. If each call is a
    /// round trip, some are started ahead while the first directories are read.
    fn spawn_worker(&mut self) {
        let mut useful = self.shared.schedule.outstanding();
        if self.shared.schedule.devices.iter().any(DeviceQueue::is_remote) {
            useful = useful.max(self.elapsed().as_millis() as usize * READY_PER_MS);
        }
        let before = self.spawned;
        while self.spawned < self.wanted.min(useful) {
            if (self.spawn)().is_err() {
                // The system has no room for more threads: these have to do.
                self.wanted = self.spawned;
                break;
            }
            self.spawned += 1;
        }
        if self.spawned != before {
            self.shared.schedule.set_can_spawn(self.spawned < self.wanted);
            self.note_workers();
        }
    }

    fn adapt(&mut self) {
        if !self.sized {
            self.size();
        }
        if self.spawned < self.wanted {
            self.spawn_worker();
        }
        let pause = if self.last.at - self.start < LATER { SAMPLE } else { SAMPLE_LATER };
        if self.now() - self.last.at >= pause {
            self.sample();
            self.show();
        }
    }

    fn refused(&mut self, unavailable: Unavailable) {
        self.failure = Some(Error::new(Op::StartModel, std::io::Error::other(unavailable)));
    }

    /// Returns the summary of the walk, or the error that prevented it.
    pub(crate) fn end(self, complete: bool) -> Result<Summary, Error> {
        let progress = self.progress();
        if let Some(error) = self.failure {
            return Err(error);
        }
        if self.shared.schedule.has_panicked() {
            return Err(Error::new(
                Op::Work,
                std::io::Error::other("a worker thread panicked, which is a bug"),
            ));
        }
        Ok(Summary {
            complete,
            progress,
            elapsed: self.elapsed(),
            calls: self.shared.calls(),
            workers_over_time: self.over_time,
            devices: self.shared.schedule.devices.devs(),
        })
    }

    fn note_workers(&mut self) {
        let workers = self.count();
        if self.over_time.last().is_none_or(|last| last.1 != workers) {
            self.over_time.push((self.elapsed(), workers));
        }
    }

    fn sample(&mut self) {
        let at = self.now();
        let Some(controllers) = &mut self.controllers else { return };
        let mut now = CounterReading::new(at);
        // The answer takes three system calls, and the controllers need it only with many workers.
        if self.wanted > controllers.cpus {
            now.idle = sys::machine_idle();
        }
        let elapsed = now.at - self.last.at;
        let idle = now.idle.zip(self.last.idle).map(|(now, last)| now.saturating_sub(last));
        let common = Sample {
            elapsed,
            idle: idle.unwrap_or(elapsed * controllers.cpus as u32),
            cpu: now.usage.cpu.saturating_sub(self.last.usage.cpu),
            waits: now.usage.waits - self.last.usage.waits,
            saturated: self.spawned >= self.wanted,
            ..Sample::default()
        };
        self.last = now;
        let wanted = controllers.sample(&self.shared.schedule, common);
        if wanted != self.wanted {
            self.wanted = wanted;
            self.shared.schedule.allow(wanted);
            self.shared.schedule.set_can_spawn(self.spawned < wanted);
            self.note_workers();
        }
    }
}

impl<D: Driven> Pool<'_, D> {
    /// Called when the first root has been put into the queue.
    pub(crate) fn begin(&mut self, root: &Node) {
        // The output of a small cached directory is complete before a thread would have started.
        // Other roots may be on other devices and must not wait for it.
        let alone = self.spawned == 0 && self.shared.schedule.outstanding() == 1;
        let is_cached = || root.root_base().is_none() && sys::is_cached_local(root.name());
        if self.helps_out && alone && is_cached() {
            // An error of the model is reported by the first worker.
            let _ = (self.run_inline)();
        }
    }

    /// Executes a task on the calling thread if no worker thread could be started. Returns false if
    /// there is no task to execute here.
    pub(crate) fn work(&mut self) -> bool {
        if self.alone_since.is_none() {
            return false;
        }
        if self.now() - self.last.at >= SAMPLE_LATER {
            self.last = CounterReading::new(self.now());
            self.show();
        }
        (self.run_inline)().unwrap_or_else(|unavailable| {
            self.refused(unavailable);
            true
        })
    }

    /// Reports the progress.
    pub(crate) fn show(&mut self) {
        let progress = self.progress();
        (self.watch)(progress);
    }

    /// Starts workers and samples the controllers as needed, every few milliseconds. Returns true
    /// if the walk must stop.
    pub(crate) fn tick(&mut self) -> bool {
        if self.spawned == 0 && self.failure.is_none() && self.shared.schedule.outstanding() > 0 {
            self.spawn_first();
        }
        if let Ok(unavailable) = self.refusal.try_recv() {
            self.refused(unavailable);
        }
        if self.failure.is_some() || self.shared.schedule.has_panicked() {
            return true;
        }
        if self.spawned > 0 {
            self.adapt();
        }
        false
    }
}
