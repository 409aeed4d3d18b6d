//! How many workers a device should have: more while they wait for storage and that pays, fewer when it does not.
//!
//! Too many blocking workers cost next to nothing while everything is cached; too few cost ten times on a slow
//! mount, and on a disk both cost. So when threads give up their CPUs to wait and there is work for more of them, the
//! controller leaps to a number that is good for most storage of that kind, and climbs from there, one doubling at a
//! time, taking back what did not raise the rate. CPUs that idle are no sign by themselves: another process may have
//! them.

use std::time::Duration;

/// Most workers there ever are.
pub(crate) const WORKERS_MAX: usize = 256;
/// Workers a CPU that keep a local disk busy, as a rule: most of what they ask for is in a block just read.
const LEAP_DISK: usize = 8;
/// Workers that keep a server busy where each call goes to it.
const LEAP_REMOTE: usize = 128;
/// Workers wait for this long on end before that is taken to be the storage's doing: starting up, they wait for one another.
/// A server's calls are slow for as long before it is taken for one, though there is not much to do yet: a disk has its blocks
/// cached by then.
const SURE: Duration = Duration::from_millis(3);
/// CPU time used, as a share of the CPUs' time, above which there is nothing to gain.
const BUSY_SHARE: f64 = 0.97;
/// A step up that raises the rate by less is taken back.
const GAIN: f64 = 1.1;
/// A rate is measured over at least this long, and this many units a worker.
const WINDOW: Duration = Duration::from_millis(50);
const UNITS_PER_WORKER: u64 = 4;
/// How long the number stays after the first step that was taken back; twice as long after each further one.
const HOLD: Duration = Duration::from_millis(200);
/// While everything is cached, a thread waits for another now and then: less than once in so many units.
const UNITS_PER_WAIT: u64 = 64;

/// What happened since the sample before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Time passed.
    pub elapsed: Duration,
    /// CPU time the process used: what a thread did for one device and what for another nobody knows.
    pub cpu: Duration,
    /// How often its threads gave up their CPU to wait.
    pub waits: u64,
    /// Entries and directories done, on this device.
    pub units: u64,
    /// Whether each call goes to a server, or to another process, and back.
    pub remote: bool,
    /// Whether there was work for one more worker.
    pub saturated: bool,
}

/// Decides the number of workers, from samples.
#[derive(Clone, Debug)]
pub struct Controller {
    cpus: usize,
    workers: usize,
    workers_max: usize,
    /// Since the last decision.
    window: Sample,
    /// The highest rate so far, with the number of workers that had it; `None` before the leap.
    best: Option<(f64, usize)>,
    hold: Duration,
    hold_next: Duration,
    remote_for: Duration,
}

impl Controller {
    /// Starts at one worker a CPU.
    #[must_use]
    pub fn new(cpus: usize, workers_max: usize) -> Self {
        let window = Sample::default();
        let workers = cpus.clamp(1, workers_max);
        let (hold, remote_for) = (Duration::ZERO, Duration::ZERO);
        Self { cpus, workers, workers_max, window, best: None, hold, hold_next: HOLD, remote_for }
    }

    /// The number of workers there should be now.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Takes a sample in; the number of workers there should be from now on.
    pub fn tick(&mut self, sample: Sample) -> usize {
        self.window.add(&sample);
        self.hold = self.hold.saturating_sub(sample.elapsed);
        self.remote_for = if sample.remote { self.remote_for + sample.elapsed } else { Duration::ZERO };
        if self.best.is_none() && self.remote_for >= SURE {
            self.leap(true);
        } else if !sample.saturated || self.is_busy() || !self.is_waiting() {
            self.window = Sample::default();
        } else if self.best.is_none() {
            if self.window.elapsed >= SURE {
                self.leap(sample.remote);
            }
        } else if self.hold.is_zero() && self.has_rate() {
            self.climb();
        }
        self.workers
    }

    fn is_busy(&self) -> bool {
        let cpus = self.cpus.min(self.workers);
        self.window.cpu.as_secs_f64() > BUSY_SHARE * cpus as f64 * self.window.elapsed.as_secs_f64()
    }

    /// Whether workers have had to wait, over and above the naps of the consumer.
    fn is_waiting(&self) -> bool {
        let naps = self.window.elapsed.as_millis() as u64 * 3 / 2;
        self.window.waits > naps + self.window.units / UNITS_PER_WAIT
    }

    fn has_rate(&self) -> bool {
        self.window.elapsed >= WINDOW && self.window.units >= UNITS_PER_WORKER * self.workers as u64
    }

    fn leap(&mut self, remote: bool) {
        let workers = if remote { LEAP_REMOTE } else { LEAP_DISK * self.cpus };
        self.workers = workers.max(self.workers).min(self.workers_max);
        self.best = Some((0.0, self.workers));
        self.window = Sample::default();
    }

    fn climb(&mut self) {
        let rate = self.window.units as f64 / self.window.elapsed.as_secs_f64();
        self.window = Sample::default();
        match self.best {
            Some((best, workers)) if rate < best * GAIN => {
                self.workers = workers;
                self.best = Some((0.0, workers));
                self.hold = self.hold_next;
                self.hold_next *= 2;
            }
            _ => {
                self.best = Some((rate, self.workers));
                self.workers = (self.workers * 2).min(self.workers_max);
            }
        }
    }
}

impl Sample {
    fn add(&mut self, sample: &Self) {
        self.elapsed += sample.elapsed;
        self.cpu += sample.cpu;
        self.waits += sample.waits;
        self.units += sample.units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// Storage that serves up to `depth` requests at once, each in `latency_us`, and a call that takes `cpu_us` of CPU time.
    fn settle(depth: usize, latency_us: f64, cpu_us: f64, ticks: usize) -> Vec<usize> {
        let mut controller = Controller::new(2, WORKERS_MAX);
        (0..ticks)
            .map(|_| {
                let serving = controller.workers().min(depth) as f64;
                let units = (serving * 1000.0 / (latency_us + cpu_us)).min(2.0 * 1000.0 / cpu_us);
                controller.tick(Sample {
                    elapsed: TICK,
                    cpu: Duration::from_secs_f64(units * cpu_us / 1e6),
                    waits: 100,
                    units: units.round() as u64,
                    remote: latency_us > 500.0,
                    saturated: true,
                })
            })
            .collect()
    }

    #[test]
    fn leaps_to_many_workers_at_once_on_a_slow_mount() {
        let workers = settle(1000, 1000.0, 30.0, 3);
        assert!(*workers.last().unwrap() >= 64, "{workers:?}");
    }

    #[test]
    fn takes_back_what_does_not_pay() {
        let workers = settle(16, 200.0, 5.0, 300);
        assert!(workers.iter().filter(|count| **count > 128).count() < 100, "{workers:?}");
        assert_eq!(settle(16, 200.0, 5.0, 190).last(), Some(&16), "where the storage has no more to give");
    }

    #[test]
    fn stays_at_one_worker_a_cpu_while_they_compute() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            let cpu = TICK * 2;
            controller.tick(Sample {
                elapsed: TICK,
                cpu,
                waits: 100,
                units: 1000,
                remote: false,
                saturated: true,
            });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_nobody_when_another_process_has_the_cpus() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            let cpu = TICK / 2;
            controller.tick(Sample {
                elapsed: TICK,
                cpu,
                waits: 1,
                units: 1000,
                remote: false,
                saturated: true,
            });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_nobody_for_a_wait_now_and_then() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for tick in 0..100 {
            let (waits, units) = if tick % 5 < 2 { (8, 0) } else { (0, 1000) };
            controller.tick(Sample { elapsed: TICK, waits, units, saturated: true, ..Sample::default() });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_nobody_when_somebody_is_idle_already() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            controller.tick(Sample { elapsed: TICK, waits: 100, units: 10, ..Sample::default() });
        }
        assert_eq!(controller.workers(), 2);
    }
}
