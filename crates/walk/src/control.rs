//! How many workers a device should have: more while they wait for storage and that pays, fewer when it does not.
//!
//! Too many blocking workers cost next to nothing while everything is cached; too few cost ten times on a slow
//! mount, and on a disk both cost. So when threads give up their CPUs to wait and there is work for more of them, the
//! controller leaps to a number that is good for most storage of that kind, and climbs from there, one doubling at a
//! time, each tried between two measurements without it: a walk's rate also changes by itself, with what it meets. A number that was
//! measured on that very storage earlier takes the place of the one that is good for most. Where no CPU
//! of the machine idles, be it for a server that runs on it, no climb pays and none is tried. CPUs that idle are no sign by
//! themselves: another process may have them.

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
/// A step up that raises the rate by less than this is taken back.
const GAIN: f64 = 1.1;
/// A rate is measured over at least this long, and this many units a worker.
const WINDOW: Duration = Duration::from_millis(100);
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
    /// How long the machine's CPUs were idle, added up: `cpus` times `elapsed` where nobody says.
    pub idle: Duration,
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
    /// Workers that paid best on this device when that was measured.
    known: Option<usize>,
    /// Since the last decision.
    window: Sample,
    stage: Stage,
    hold: Duration,
    hold_next: Duration,
    remote_for: Duration,
}

/// Where the search for the right number is. Rates are in units a second.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// One worker a CPU, before the leap.
    Start,
    /// The rate is measured.
    Before,
    /// So many workers had this rate; now twice as many are tried.
    Twice { workers: usize, rate: f64 },
    /// Twice as many did so much better; the rate is measured again.
    After { twice: f64 },
}

impl Controller {
    /// Starts at one worker a CPU.
    #[must_use]
    pub fn new(cpus: usize, workers_max: usize) -> Self {
        let window = Sample::default();
        let workers = cpus.clamp(1, workers_max);
        let (hold, remote_for) = (Duration::ZERO, Duration::ZERO);
        let stage = Stage::Start;
        Self { cpus, workers, workers_max, known: None, window, stage, hold, hold_next: HOLD, remote_for }
    }

    /// Tells it to how many workers to leap. If that is no more than one a CPU, there is no leap, and a step up is tried later.
    pub fn leap_to(&mut self, workers: usize) {
        self.known = Some(workers);
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
        let is_start = matches!(self.stage, Stage::Start);
        if is_start && self.remote_for >= SURE {
            self.leap(true);
        } else if !sample.saturated || self.is_busy() || !self.is_waiting() {
            self.window = Sample::default();
        } else if is_start {
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

    /// Whether a step up could raise the rate by [`GAIN`] before every CPU is busy.
    fn has_idle_cpus(&self) -> bool {
        let all = self.cpus as f64 * self.window.elapsed.as_secs_f64();
        self.window.idle.as_secs_f64() >= (1.0 - 1.0 / GAIN) * all
    }

    fn has_rate(&self) -> bool {
        self.window.elapsed >= WINDOW && self.window.units >= UNITS_PER_WORKER * self.workers as u64
    }

    fn leap(&mut self, remote: bool) {
        let usual = if remote { LEAP_REMOTE } else { LEAP_DISK * self.cpus };
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

    /// Storage that serves up to `depth` requests at once, each in `latency_us`, and a call that takes `cpu_us` of CPU time.
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
    fn leaps_to_many_workers_at_once_on_a_slow_mount() {
        let workers = settle(1000, 1000.0, 30.0, 3);
        assert!(*workers.last().unwrap() >= 64, "{workers:?}");
    }

    /// On a slow mount and on a disk.
    const SLOW: [(usize, f64, f64); 2] = [(1000, 1000.0, 30.0), (1000, 200.0, 5.0)];

    #[test]
    fn leaps_to_the_number_that_was_measured_and_climbs_from_there() {
        for storage in SLOW {
            let mut controller = Controller::new(2, WORKERS_MAX);
            controller.leap_to(24);
            let workers = settle_from(controller, storage, 400);
            let mut changes = workers.clone();
            changes.dedup();
            assert_eq!(changes[..3], [2, 24, 48], "{storage:?}: {workers:?}");
            assert_eq!(workers[3], 24, "{storage:?}: as early as without");
        }
    }

    #[test]
    fn does_not_leap_where_no_more_than_one_worker_a_cpu_paid() {
        for (known, storage) in [(1, SLOW[0]), (2, SLOW[0]), (2, SLOW[1])] {
            let mut controller = Controller::new(2, WORKERS_MAX);
            controller.leap_to(known);
            let mut changes = settle_from(controller, storage, 400);
            assert!(changes[..90].iter().all(|count| *count == 2), "{storage:?}: {changes:?}");
            changes.dedup();
            assert_eq!(changes[..2], [2, 4], "{storage:?}: once a rate is measured");
        }
    }

    #[test]
    fn no_number_is_above_the_most_there_may_be() {
        let mut controller = Controller::new(2, 16);
        controller.leap_to(usize::MAX);
        assert_eq!(settle_from(controller, SLOW[0], 400).into_iter().max(), Some(16));
    }

    #[test]
    fn goes_on_to_the_most_there_are_where_that_pays() {
        let workers = settle(1000, 5000.0, 5.0, 400);
        assert!(workers[350..].iter().all(|count| *count == WORKERS_MAX), "{workers:?}");
    }

    #[test]
    fn does_not_climb_where_the_server_has_the_cpus() {
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
        assert_eq!(controller.workers(), LEAP_REMOTE);
    }

    #[test]
    fn a_rate_that_rises_by_itself_is_not_put_down_to_more_workers() {
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
        let most = workers.iter().filter(|count| **count > LEAP_REMOTE).count();
        assert!((1..300).contains(&most), "{most}: {workers:?}");
        assert_eq!(workers.last(), Some(&LEAP_REMOTE));
    }

    #[test]
    fn takes_back_what_does_not_pay() {
        let workers = settle(16, 200.0, 5.0, 2000);
        let most = workers.iter().filter(|count| **count > 16).count();
        assert!((1..500).contains(&most), "{most}: where the storage has no more to give");
        assert_eq!(workers.iter().max(), Some(&32), "each trial is of one doubling");
    }

    #[test]
    fn stays_at_one_worker_a_cpu_while_they_compute() {
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
    fn adds_nobody_when_another_process_has_the_cpus() {
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
