//! The source of samples for advice: a directory, or a model in tests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_io::uring::nops;

use super::cells::advice_cells;
use super::costs::NopCosts;
use crate::arms::Arm;
use crate::fixture::{self, Cell, Fixture};
use crate::runner::{self, Progress, RunObserver, RunOutcome, RunPlan};
use crate::{Error, ProcessExecutor, Programs, machine};

/// Number of no-ops in a measurement.
const NOPS: usize = 20_000;

/// Properties of the machine that need no sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostProbe {
    /// Processors available to this process.
    pub cpus: usize,
    /// No-ops through a ring; `None` if io_uring is unavailable.
    pub nops: Option<NopCosts>,
    /// Whether io_uring punts every buffered write to a kernel worker; `None` if unknown.
    pub writes_are_handed_over: Option<bool>,
    /// The number of other threads that run or wait for a processor at the start; `None` if
    /// unknown.
    pub load: Option<f64>,
}

/// Executes the samples of an advice run.
pub trait SampleSource {
    /// Determines the properties of the machine that need no sample.
    fn probe(&mut self) -> HostProbe;

    /// Returns the reason why the files of `cell` cannot be made cold; `None` if they can or need
    /// not be.
    fn stays_warm(&self, cell: &Cell) -> Option<String>;

    /// Returns the time by which the duration of the run is limited.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns whether the user has stopped the run.
    fn is_stopped(&mut self) -> bool;

    /// Executes `arms` in `cell` in `blocks` blocks, the first arm twice in each block. `seed`
    /// determines the order. No sample begins after `end`, if there is one: then the outcome is
    /// interrupted.
    ///
    /// # Errors
    /// If the files cannot be created.
    fn measure(
        &mut self,
        cell: &Cell,
        arms: &[Arm],
        blocks: u32,
        seed: u64,
        end: Option<Instant>,
    ) -> Result<RunOutcome, Error>;
}

/// Observes an advice run.
pub trait AdviceObserver: RunObserver {
    /// Called before the first sample of a cell.
    fn cell(&mut self, label: &str);
}

/// A source of samples in a directory.
pub struct DirectorySource<'a, 'p, L> {
    dir: PathBuf,
    programs: &'a mut Programs<'p>,
    observer: L,
    /// The files of the previous cell. The next cell reuses them if it needs the same files.
    fixture: Option<Fixture>,
}

impl<'a, 'p, L: AdviceObserver> DirectorySource<'a, 'p, L> {
    /// Executes samples in the directory `dir` and reports progress to `observer`.
    #[must_use]
    pub fn new(dir: PathBuf, programs: &'a mut Programs<'p>, observer: L) -> Self {
        Self { dir, programs, observer, fixture: None }
    }

    /// Returns whether an advice run here drops the caches of the whole machine.
    #[must_use]
    pub fn drops_caches(&self) -> bool {
        advice_cells(0, 1.0).iter().any(|cell| cell.drops_caches() && cell.stays_warm(&self.dir).is_none())
    }

    /// Removes the files of the samples. Later samples create them again.
    ///
    /// # Errors
    /// With [`Op::Remove`](crate::Op::Remove) if anything could not be removed.
    pub fn remove_files(&mut self) -> Result<(), Error> {
        self.fixture.take().map_or(Ok(()), Fixture::remove)
    }
}

impl<L> fmt::Debug for DirectorySource<'_, '_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectorySource").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl<L: AdviceObserver> SampleSource for DirectorySource<'_, '_, L> {
    fn probe(&mut self) -> HostProbe {
        HostProbe {
            cpus: fathom_io::sys::cpus_allowed(),
            nops: measure_nops(),
            writes_are_handed_over: writes_are_handed_over(&self.dir),
            load: machine::load(),
        }
    }

    fn stays_warm(&self, cell: &Cell) -> Option<String> {
        cell.stays_warm(&self.dir)
    }

    fn is_stopped(&mut self) -> bool {
        self.observer.stop()
    }

    fn measure(
        &mut self,
        cell: &Cell,
        arms: &[Arm],
        blocks: u32,
        seed: u64,
        end: Option<Instant>,
    ) -> Result<RunOutcome, Error> {
        self.observer.cell(&cell.label());
        if !self.fixture.as_mut().is_some_and(|fixture| fixture.switch_to(cell)) {
            // Remove the files of the previous cell first: the disk may not have space for both.
            self.remove_files()?;
        }
        let fixture = match &mut self.fixture {
            Some(fixture) => fixture,
            none => none.insert(Fixture::new(&self.dir, cell.clone())?),
        };
        let names = arms.iter().map(Arm::full_name).collect();
        let plan = RunPlan::new(names, arms[0].full_name(), blocks, seed);
        let mut observer = Limited { observer: &mut self.observer, end };
        Ok(runner::run(&plan, &mut ProcessExecutor::new(fixture, arms, self.programs), &mut observer))
    }
}

/// An observer that also stops a run at a time.
struct Limited<'a, L> {
    observer: &'a mut L,
    end: Option<Instant>,
}

impl<L: RunObserver> RunObserver for Limited<'_, L> {
    fn next(&mut self, progress: &Progress<'_>) {
        self.observer.next(progress);
    }

    fn stop(&mut self) -> bool {
        self.observer.stop() || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// Probes in a temporary directory below `dir`, which contains no files of the user.
fn writes_are_handed_over(dir: &Path) -> Option<bool> {
    let dir = tempfile::Builder::new().prefix(".fathom-bench-").tempdir_in(dir).ok()?;
    fixture::writes_are_handed_over(dir.path())
}

fn measure_nops() -> Option<NopCosts> {
    let us = |depth, handed_over| {
        let took = nops(NOPS, depth, handed_over).ok()?;
        Some(took.as_secs_f64() * 1e6 / NOPS as f64)
    };
    Some(NopCosts {
        inline_us: us(1, false)?,
        handed_over_us: us(1, true)?,
        handed_over_deep_us: us(NopCosts::DEPTH, true)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_over_costs_more_than_doing_in_place() {
        match measure_nops() {
            Some(nops) => assert!(nops.handed_over_us > nops.inline_us && nops.inline_us > 0.0, "{nops:?}"),
            None => println!("skipped: no io_uring for this process"),
        }
    }
}
