//! How many workers a walk should have: more while they wait for storage and that pays, fewer when it does not.
//!
//! Too many blocking workers cost next to nothing while everything is cached; too few cost ten times on a slow
//! mount. So the controller doubles eagerly while threads give up their CPUs to wait and work is there for more of them,
//! and takes back a step that did not raise the rate. CPUs that idle are no sign by themselves: another process may
//! have them.

use std::time::Duration;

/// Most workers there ever are.
pub(crate) const WORKERS_MAX: usize = 256;
/// CPU time used, as a share of the CPUs' time, above which workers are computing rather than waiting.
const BUSY_SHARE: f64 = 0.8;
/// A step up that raises the rate by less is taken back.
const GAIN: f64 = 1.03;
/// Steps without gain in a row before one is taken back: one sample may be unlucky.
const STEPS_IDLE: u32 = 2;
/// Samples for which the number stays after a step was taken back.
const HOLD_SAMPLES: u32 = 25;
/// Units that must finish between two decisions for a rate to mean something, in multiples of the number of workers.
const UNITS_PER_WORKER: u64 = 2;

/// What happened since the sample before.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time passed.
    pub elapsed: Duration,
    /// CPU time the process used.
    pub cpu: Duration,
    /// How often its threads gave up their CPU to wait.
    pub waits: u64,
    /// Entries and directories done.
    pub units: u64,
    /// Whether every worker had work, so that one more would too.
    pub saturated: bool,
}

/// Decides the number of workers, from samples.
#[derive(Clone, Debug)]
pub struct Controller {
    cpus: usize,
    workers: usize,
    workers_max: usize,
    /// What has been sampled since the last decision.
    elapsed: Duration,
    cpu: Duration,
    waits: u64,
    units: u64,
    /// Rate and number of workers before the steps that did not pay yet.
    best: Option<(f64, usize)>,
    steps_idle: u32,
    hold: u32,
}

impl Controller {
    /// Starts at one worker a CPU.
    #[must_use]
    pub fn new(cpus: usize, workers_max: usize) -> Self {
        let (elapsed, cpu) = (Duration::ZERO, Duration::ZERO);
        let workers = cpus.clamp(1, workers_max);
        Self {
            cpus,
            workers,
            workers_max,
            elapsed,
            cpu,
            waits: 0,
            units: 0,
            best: None,
            steps_idle: 0,
            hold: 0,
        }
    }

    /// The number of workers there should be now.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Takes a sample in; the number of workers there should be from now on.
    pub fn tick(&mut self, sample: Sample) -> usize {
        self.elapsed += sample.elapsed;
        self.cpu += sample.cpu;
        self.waits += sample.waits;
        self.units += sample.units;
        self.hold = self.hold.saturating_sub(1);
        if !sample.saturated || self.is_busy() || !self.is_waiting() {
            self.forget();
        } else if self.hold == 0 && self.has_rate() {
            self.decide();
        }
        self.workers
    }

    fn is_busy(&self) -> bool {
        let cpus = self.cpus.min(self.workers);
        self.cpu.as_secs_f64() > BUSY_SHARE * cpus as f64 * self.elapsed.as_secs_f64()
    }

    /// Whether every worker has had to wait, over and above the naps of the consumer.
    fn is_waiting(&self) -> bool {
        let naps = self.elapsed.as_millis() as u64;
        self.waits > naps + self.workers as u64
    }

    /// Before the first step there is nothing to compare with, so nothing to wait for.
    fn has_rate(&self) -> bool {
        self.best.is_none() || self.units >= UNITS_PER_WORKER * self.workers as u64
    }

    fn forget(&mut self) {
        (self.elapsed, self.cpu, self.waits, self.units) = (Duration::ZERO, Duration::ZERO, 0, 0);
    }

    fn decide(&mut self) {
        let rate = self.units as f64 / self.elapsed.as_secs_f64().max(1e-9);
        self.forget();
        let (best_rate, best_workers) = *self.best.get_or_insert((rate, self.workers));
        if self.workers > best_workers && rate < best_rate * GAIN {
            self.steps_idle += 1;
        } else {
            self.steps_idle = 0;
            self.best = Some((rate, self.workers));
        }
        if self.steps_idle >= STEPS_IDLE {
            self.workers = best_workers;
            self.hold = HOLD_SAMPLES;
            (self.best, self.steps_idle) = (None, 0);
        } else {
            self.workers = (self.workers * 2).min(self.workers_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(2);

    /// Storage that serves up to `best` requests at once, each in `latency_us`, and more of them no faster.
    fn settle(cpus: usize, best: usize, latency_us: f64, ticks: usize) -> Vec<usize> {
        let mut controller = Controller::new(cpus, WORKERS_MAX);
        (0..ticks)
            .map(|_| {
                let serving = controller.workers().min(best) as f64;
                let units = (serving * 2000.0 / latency_us) as u64;
                controller.tick(Sample {
                    elapsed: TICK,
                    cpu: TICK / 10,
                    waits: units.max(300),
                    units,
                    saturated: true,
                })
            })
            .collect()
    }

    #[test]
    fn grows_to_many_workers_within_milliseconds_on_a_slow_mount() {
        let workers = settle(2, 128, 1000.0, 20);
        assert!(*workers.iter().max().unwrap() >= 128, "{workers:?}");
        assert!(workers.iter().position(|count| *count >= 64).unwrap() < 20, "{workers:?}");
    }

    #[test]
    fn takes_back_what_does_not_pay() {
        let workers = settle(2, 8, 100.0, 30);
        assert_eq!(*workers.last().unwrap(), 8, "{workers:?}");
    }

    #[test]
    fn stays_at_one_worker_a_cpu_while_they_compute() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            controller.tick(Sample {
                elapsed: TICK,
                cpu: TICK * 2,
                waits: 100,
                units: 1000,
                saturated: true,
            });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_nobody_when_another_process_has_the_cpus() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            controller.tick(Sample { elapsed: TICK, cpu: TICK / 2, waits: 2, units: 1000, saturated: true });
        }
        assert_eq!(controller.workers(), 2);
    }

    #[test]
    fn adds_nobody_when_somebody_is_idle_already() {
        let mut controller = Controller::new(2, WORKERS_MAX);
        for _ in 0..100 {
            controller.tick(Sample {
                elapsed: TICK,
                cpu: Duration::ZERO,
                waits: 100,
                units: 10,
                saturated: false,
            });
        }
        assert_eq!(controller.workers(), 2);
    }
}
