//! Where samples for advice are made: a real directory, or what a test puts in its place.

use std::fmt;
use std::path::{Path, PathBuf};

use fathom_io::uring::nops;

use super::constants::Nops;
use crate::arms::Arm;
use crate::lab::{self, Cell, Lab};
use crate::runner::{self, Outcome, Plan, Watch};
use crate::{Desk, Error, Programs};

/// Operations that do nothing, to take the time of.
const NOPS: usize = 20_000;

/// What can be known without a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Processors this process may use.
    pub cpus: usize,
    /// A ring by itself; `None` where there is none.
    pub nops: Option<Nops>,
    /// Whether a ring's buffered writes all go to a thread of the kernel's.
    pub writes_are_handed_over: Option<bool>,
    /// Why metadata cannot be made cold; `None` if it can.
    pub stays_warm: Option<String>,
}

/// Who makes samples.
pub trait Bench {
    /// What can be known without a sample.
    fn probe(&mut self) -> Probe;

    /// Runs `arms` in `cell`, the first one twice a block, in so many blocks, in an order that comes from `seed`.
    ///
    /// # Errors
    /// If there is no place for the files.
    fn measure(&mut self, cell: &Cell, arms: &[Arm], blocks: u32, seed: u64) -> Result<Outcome, Error>;
}

/// Who looks on.
pub trait Look: Watch {
    /// Called before the first sample of a cell.
    fn cell(&mut self, label: &str);
}

/// A directory.
pub struct Site<'a, 'p, L> {
    place: PathBuf,
    programs: &'a mut Programs<'p>,
    look: L,
    /// The files of the last cell, which may do for the next.
    lab: Option<Lab>,
}

impl<'a, 'p, L: Look> Site<'a, 'p, L> {
    /// In the directory `place`; `look` is told of everything.
    #[must_use]
    pub fn new(place: PathBuf, programs: &'a mut Programs<'p>, look: L) -> Self {
        Self { place, programs, look, lab: None }
    }
}

impl<L> fmt::Debug for Site<'_, '_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<L: Look> Bench for Site<'_, '_, L> {
    fn probe(&mut self) -> Probe {
        Probe {
            cpus: fathom_io::sys::cpus_allowed(),
            nops: measured_nops(),
            writes_are_handed_over: writes_are_handed_over(&self.place),
            stays_warm: lab::stays_warm(&self.place),
        }
    }

    fn measure(&mut self, cell: &Cell, arms: &[Arm], blocks: u32, seed: u64) -> Result<Outcome, Error> {
        self.look.cell(&cell.label());
        if !self.lab.as_mut().is_some_and(|lab| lab.turn_to(cell)) {
            // The files of the cell before go first: there may be no room for both.
            self.lab = None;
        }
        let lab = match &mut self.lab {
            Some(lab) => lab,
            none => none.insert(Lab::new(&self.place, cell.clone())?),
        };
        let names = arms.iter().map(Arm::full_name).collect();
        let plan = Plan { arms: names, baseline: arms[0].full_name(), blocks, seed };
        Ok(runner::run(&plan, &mut Desk::new(lab, arms, self.programs), &mut self.look))
    }
}

/// Tried in a directory of its own, among nobody's files.
fn writes_are_handed_over(place: &Path) -> Option<bool> {
    let dir = tempfile::Builder::new().prefix(".fathom-bench-").tempdir_in(place).ok()?;
    lab::writes_are_handed_over(dir.path())
}

fn measured_nops() -> Option<Nops> {
    let us = |depth, handed_over| {
        let took = nops(NOPS, depth, handed_over).ok()?;
        Some(took.as_secs_f64() * 1e6 / NOPS as f64)
    };
    Some(Nops {
        inline_us: us(1, false)?,
        handed_over_us: us(1, true)?,
        handed_over_deep_us: us(Nops::DEPTH, true)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_over_costs_more_than_doing_in_place() {
        match measured_nops() {
            Some(nops) => assert!(nops.handed_over_us > nops.inline_us && nops.inline_us > 0.0, "{nops:?}"),
            None => println!("skipped: no io_uring for this process"),
        }
    }
}
