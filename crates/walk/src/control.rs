//! The number of workers for a device: more if workers wait for storage and more of them raise the
//! rate, fewer otherwise.
//!
//! Too many blocking workers cost almost nothing if everything is cached. Too few take ten times as
//! long on a slow mount. On a disk, both are slower. So when threads give up their CPUs to wait and
//! there are tasks for more threads, the controller jumps to a number that is good for most storage
//! of that kind. From there it climbs one doubling at a time, each tried between two measurements
//! without it, because the rate of a walk also changes with the directories that it meets. A number
//! that was measured on the same storage earlier replaces the one that is good for most. If no CPU
//! of the machine idles, perhaps because of a file server on it, more workers cannot raise the rate
//! and no climb is tried. Idle CPUs alone are no reason for more workers: they may idle for other
//! reasons.

use std::time::Duration;

/// The maximum number of workers.
pub(crate) const WORKERS_MAX: usize = 256;
/// Workers for each CPU that usually keep a local disk busy. Most metadata is in a block that was
/// just read.
const JUMP_DISK: usize = 8;
/// Workers that keep a server busy if each call goes to it.
const JUMP_REMOTE: usize = 128;
/// The time that workers have to wait without interruption before the controller attributes it to
/// the storage: during start-up they wait for one another. It is also the time that calls have to
/// be slow before the controller assumes a server, even with few tasks: a disk has its blocks
/// cached by then.
const SURE: Duration = Duration::from_millis(3);
/// The share of CPU time above which more workers cannot raise the rate.
const BUSY_SHARE: f64 = 0.97;
/// The minimum factor by which a doubling must raise the rate to be kept.
const GAIN: f64 = 1.1;
/// The minimum time over which a rate is measured, and the minimum number of units for each worker.
const WINDOW: Duration = Duration::from_millis(100);
const UNITS_PER_WORKER: u64 = 4;
/// The time without a new trial after the first doubling that was taken back. It doubles with each
/// further one.
const HOLD: Duration = Duration::from_millis(200);
/// The minimum of units for each voluntary context switch while everything is cached.
const UNITS_PER_WAIT: u64 = 64;

/// The measurements since the previous sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Elapsed time.
    pub elapsed: Duration,
    /// CPU time of the process. It cannot be divided between devices.
    pub cpu: Duration,
    /// Idle time of the machine's CPUs, added up: `cpus` times `elapsed` if it is unknown.
    pub idle: Duration,
    /// Voluntary context switches of the process.
    pub waits: u64,
    /// Entries and directories completed on this device.
    pub units: u64,
    /// Whether each call is a round trip to a server or to another process.
    pub remote: bool,
    /// Whether there were tasks for one more worker.
    pub saturated: bool,
}

/// Chooses the number of workers from samples.
///
/// ```
/// use std::time::Duration;
/// use fathom_walk::{Controller, Sample};
///
/// let mut controller = Controller::new(4, 256);
/// assert_eq!(controller.workers(), 4);
/// // Each call is a round trip to a server, and there are tasks for more workers.
/// let elapsed = Duration::from_millis(10);
/// let idle = elapsed * 4;
/// let sample = Sample { elapsed, idle, remote: true, saturated: true, ..Sample::default() };
/// assert!(controller.tick(sample) > 4);
/// ```
#[derive(Clone, Debug)]
pub struct Controller {
    cpus: usize,
    workers: usize,
    workers_max: usize,
    /// The number of workers that was fastest on this device in an earlier measurement.
    known: Option<usize>,
    /// The sum of the samples since the last decision.
    window: Sample,
    stage: Stage,
    hold: Duration,
    hold_next: Duration,
    remote_for: Duration,
}

/// The state of the search for the best number. Rates are in units per second.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// One worker for each CPU, before the jump.
    Start,
    /// The rate is being measured.
    Before,
    /// `workers` workers had this rate; twice as many are being tried.
    Twice { workers: usize, rate: f64 },
    /// Twice as many had the rate `twice`; the rate without them is measured again.
    After { twice: f64 },
}

impl Controller {
    /// Creates a controller that starts with one worker for each CPU.
    #[must_use]
    pub fn new(cpus: usize, workers_max: usize) -> Self {
        let window = Sample::default();
        let workers = cpus.clamp(1, workers_max);
        let (hold, remote_for) = (Duration::ZERO, Duration::ZERO);
        let stage = Stage::Start;
        Self { cpus, workers, workers_max, known: None, window, stage, hold, hold_next: HOLD, remote_for }
    }

    /// Sets the number of workers to jump to. If it is not more than one for each CPU, there is no
    /// jump, and a doubling is tried later.
    pub fn start_at(&mut self, workers: usize) {
        self.known = Some(workers);
    }

    /// Returns the current number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Adds a sample and returns the new number of workers.
    pub fn tick(&mut self, sample: Sample) -> usize {
        self.window.add(&sample);
        self.hold = self.hold.saturating_sub(sample.elapsed);
        self.remote_for = if sample.remote { self.remote_for + sample.elapsed } else { Duration::ZERO };
        let is_start = matches!(self.stage, Stage::Start);
        if is_start && self.remote_for >= SURE {
            self.jump(true);
        } else if !sample.saturated || self.is_busy() || !self.is_waiting() {
            self.window = Sample::default();
        } else if is_start {
            if self.window.elapsed >= SURE {
                self.jump(sample.remote);
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

    /// Whether workers had to wait more often than the consumer's naps explain.
    fn is_waiting(&self) -> bool {
        let naps = self.window.elapsed.as_millis() as u64 * 3 / 2;
        self.window.waits > naps + self.window.units / UNITS_PER_WAIT
    }

    /// Whether a doubling could raise the rate by [`GAIN`] before every CPU is busy.
    fn has_idle_cpus(&self) -> bool {
        let all = self.cpus as f64 * self.window.elapsed.as_secs_f64();
        self.window.idle.as_secs_f64() >= (1.0 - 1.0 / GAIN) * all
    }

    fn has_rate(&self) -> bool {
        self.window.elapsed >= WINDOW && self.window.units >= UNITS_PER_WORKER * self.workers as u64
    }

    fn jump(&mut self, remote: bool) {
        let usual = if remote { JUMP_REMOTE } else { JUMP_DISK * self.cpus };
        self.workers = self.known.unwrap_or(usual).max(self.workers).min(self.workers_max);
        self.stage = Stage::Before;
        self.window = Sample::default();
    }

    fn climb(&mut self) {
        let rate = self.window.units as f64 / self.window.elapsed.as_secs_f64();
        let may_gain = self.has_idle_cpus() && self.workers < self.workers_max;
        self.window = Sample::default();
        match self.stage {
            Stage::Start | Stage::Before if !may_gain => {}
            Stage::Start | Stage::Before => {
                self.stage = Stage::Twice { workers: self.workers, rate };
                self.workers = self.twice();
            }
            Stage::Twice { workers, rate: before } => {
                self.workers = workers;
                self.stage = Stage::After { twice: rate };
                if rate < before * GAIN {
                    self.stay();
                }
            }
            Stage::After { twice } if twice < rate * GAIN => self.stay(),
            Stage::After { .. } => {
                self.workers = self.twice();
                self.stage = Stage::Before;
            }
        }
    }

    fn twice(&self) -> usize {
        (self.workers * 2).min(self.workers_max)
    }

    fn stay(&mut self) {
        self.stage = Stage::Before;
        self.hold = self.hold_next;
        self.hold_next *= 2;
    }
}

impl Sample {
    fn add(&mut self, sample: &Self) {
        self.elapsed += sample.elapsed;
        self.cpu += sample.cpu;
        self.idle += sample.idle;
        self.waits += sample.waits;
        self.units += sample.units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// Simulates storage that serves up to `depth` requests at once, each in `latency_us`, and
    /// calls of `cpu_us` of CPU time. Returns the number of workers after each tick.
    fn settle(depth: usize, latency_us: f64, cpu_us: f64, ticks: usize) -> Vec<usize> {
        settle_from(Controller::new(2, WORKERS_MAX), (depth, latency_us, cpu_us), ticks)
    }

    fn settle_from(
        mut controller: Controller,
        (depth, latency_us, cpu_us): (usize, f64, f64),
        ticks: usize,
    ) -> Vec<usize> {
        (0..ticks)
            .map(|_| {
                let serving = controller.workers().min(depth) as f64;
                let units = (serving * 1000.0 / (latency_us + cpu_us)).min(2.0 * 1000.0 / cpu_us);
                let cpu = Duration::from_secs_f64(units * cpu_us / 1e6);
                controller.tick(Sample {
                    elapsed: TICK,
                    cpu,
                    idle: (TICK * 2).saturating_sub(cpu),
                    waits: 100,
                    units: units.round() as u64,
                    remote: latency_us > 500.0,
                    saturated: true,
                })
            })
            .collect()
    }

    #[test]
    fn jumps_to_many_workers_at_once_on_a_slow_mount() {
        let workers = settle(1000, 1000.0, 30.0, 3);
        assert!(*workers.last().unwrap() >= 64, "{workers:?}");
    }

    /// A slow mount and a disk.
    const SLOW: [(usize, f64, f64); 2] = [(1000, 1000.0, 30.0), (1000, 200.0, 5.0)];

    #[test]
    fn jumps_to_the_measured_number_and_climbs_from_there() {
        for storage in SLOW {
            let mut controller = Controller::new(2, WORKERS_MAX);
            controller.start_at(24);
            let workers = settle_from(controller, storage, 400);
            let mut changes = workers.clone();
            changes.dedup();
            assert_eq!(changes[..3], [2, 24, 48], "{storage:?}: {workers:?}");
            assert_eq!(workers[3], 24, "{storage:?}: as early as without a known number");
        }
    }

    #[test]
    fn does_not_jump_to_one_worker_for_each_cpu_or_fewer() {
        for (known, storage) in [(1, SLOW[0]), (2, SLOW[0]), (2, SLOW[1])] {
            let mut controller = Controller::new(2, WORKERS_MAX);
            controller.start_at(known);
            let mut changes = settle_from(controller, storage, 400);
            assert!(changes[..90].iter().all(|count| *count == 2), "{storage:?}: {changes:?}");
            changes.dedup();
            assert_eq!(changes[..2], [2, 4], "{storage:?}: once a rate is measured");
        }
    }

    #[test]
    fn no_number_exceeds_the_maximum() {
        let mut controller = Controller::new(2, 16);
        controller.start_at(usize::MAX);
        assert_eq!(settle_from(controller, SLOW[0], 400).into_iter().max(), Some(16));
    }

    #[test]
    fn climbs_to_the_maximum_while_the_rate_rises() {
        let workers = settle(1000, 5000.0, 5.0, 400);
        assert!(workers[350..].iter().all(|count| *count == WORKERS_MAX), "{workers:?}");
    }

    #[test]
    fn does_not_climb_if_the_server_uses_the_cpus() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        let (remote, saturated) = (true, true);
        for _ in 0..1000 {
            let idle = TICK / 8;
            controller.tick(Sample {
                elapsed: TICK,
                idle,
                waits: 100,
                units: 100,
                remote,
                saturated,
                ..Sample::default()
            });
        }
        assert_eq!(controller.workers(), JUMP_REMOTE);
    }

    #[test]
    fn a_rate_that_rises_by_itself_is_not_attributed_to_more_workers() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        let workers: Vec<usize> = (1..1000_u64)
            .map(|tick| {
                let units = 1000 + tick * 10;
                let (remote, saturated) = (true, true);
                controller.tick(Sample {
                    elapsed: TICK,
                    idle: TICK,
                    waits: units,
                    units,
                    remote,
                    saturated,
                    ..Sample::default()
                })
            })
            .collect();
        let most = workers.iter().filter(|count| **count > JUMP_REMOTE).count();
        assert!((1..300).contains(&most), "{most}: {workers:?}");
        assert_eq!(workers.last(), Some(&JUMP_REMOTE));
    }

    #[test]
    fn takes_back_a_doubling_that_does_not_raise_the_rate() {
        let workers = settle(16, 200.0, 5.0, 2000);
        let most = workers.iter().filter(|count| **count > 16).count();
        assert!((1..500).contains(&most), "{most}: beyond the depth of the storage");
        assert_eq!(workers.iter().max(), Some(&32), "each trial is of one doubling");
    }

    #[test]
    fn stays_at_one_worker_for_each_cpu_while_all_compute() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            let cpu = TICK * 2;
            controller.tick(Sample {
                elapsed: TICK,
                cpu,
                idle: TICK * 2 - cpu,
                waits: 100,
                units: 1000,
                remote: false,
                saturated: true,
            });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_no_worker_if_another_process_uses_the_cpus() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            let cpu = TICK / 2;
            controller.tick(Sample {
                elapsed: TICK,
                cpu,
                idle: TICK * 2 - cpu,
                waits: 1,
                units: 1000,
                remote: false,
                saturated: true,
            });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_no_worker_for_occasional_waits() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for tick in 0..100 {
            let (waits, units) = if tick % 5 < 2 { (8, 0) } else { (0, 1000) };
            controller.tick(Sample { elapsed: TICK, waits, units, saturated: true, ..Sample::default() });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_no_worker_while_tasks_are_few() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            controller.tick(Sample { elapsed: TICK, waits: 100, units: 10, ..Sample::default() });
        }
        assert_eq!(controller.workers(), 2);
    }
}
