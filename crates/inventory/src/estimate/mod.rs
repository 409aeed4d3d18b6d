//! Estimates of what a tree holds, within a time, without reading all of it: entries, sizes and the
//! largest subtrees.
//!
//! Two attributes of a directory are known before it is read, from the walk of its parent: its link
//! count, which on most filesystems is two more than its subdirectories, and its size, which grows
//! with its entries. The directories with the largest expected contents are read first, and *for
//! good*: their entries are counted. When half the time is over, the directories known and not read
//! are *sampled*: some are drawn by systematic sampling with probabilities proportional to their
//! expected contents (Madow 1949), read, and again some of the directories found in them,
//! generation by generation, until there are none. Each entry found is weighted by the inverse of
//! the probability of finding it (Horvitz and Thompson 1952); with that, each estimate is right on
//! average for a tree of any shape, as it is for Knuth's random probes of a tree (1975) and Chen's
//! stratified ones (1992). The method is a relative of these: the strata are generations, and the
//! nodes of a stratum differ in their expected contents.
//!
//! How many are drawn follows from what the sampling has taken so far: from what is known, never
//! from what a directory holds that is not read yet, or estimates would not be right on average. So
//! nothing drawn is left out because it is slow; where time gets short, fewer are drawn, each for
//! more. The frontier is sampled in blocks, one after the other, as the first ones tell what the
//! others take. All of it is done three times, within a tenth, a third and all of the time, so that
//! there is something to show for a run that is interrupted: the last whole estimate.
//!
//! Variances are those of draws of a fixed number (Hájek 1964; Raj 1966 for the generations);
//! ranges are by Student's t with Satterthwaite's degrees of freedom, on a logarithmic scale, with
//! room for more than was met of what adds most to the variance: where few subtrees hold most, a
//! sample tends to miss them. Whether such a range has a confidence is not for the sample to say,
//! which does not know what it missed: `evidence.rs` decides by how likely each directory was to be
//! read. `simulation.rs` has how often ranges with a confidence hold the truth.
//!
//! Owns: what is read and what it stands for. Does not own: how directories are read
//! (`fathom_walk`), what is shown.

mod evidence;
mod interval;
mod probe;
mod random;
mod reader;
mod sampler;
#[cfg(test)]
mod simulation;
mod tally;

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fathom_walk::{Choice, Leaps};

use crate::scan::Watch;
use crate::store::{Error, Op};
pub use interval::{Basis, Range};
use reader::{Place, Walker};

/// What to estimate, and how.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The trees.
    pub roots: Vec<CString>,
    /// When to be done.
    pub budget: Budget,
    /// The I/O model.
    pub choice: Choice,
    /// This many workers, whatever the model would have.
    pub threads: Option<usize>,
    /// What is known beforehand of devices.
    pub leaps: Leaps,
    /// No more directories under way at once than this.
    pub in_flight_max: Option<usize>,
    /// Look at no more than so many entries a second.
    pub rate: Option<u64>,
    /// Leave out what is on other filesystems than its root.
    pub one_file_system: bool,
    /// How many of the largest subtrees to tell of.
    pub largest: usize,
    /// Decides what is drawn.
    pub seed: u64,
    /// End at once with what there is, once this is set.
    pub stop: Arc<AtomicBool>,
}

/// What a survey may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// This time.
    Time(Duration),
    /// About so many directories read, whatever time that takes.
    Directories(u64),
}

/// What a tree, or a part of it, holds. A name of a file that has several counts as one entry, and for its share of the file's sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Files and directories, roots included.
    pub entries: Range,
    /// Whatever is no directory.
    pub files: Range,
    /// Directories.
    pub dirs: Range,
    /// Bytes of all but directories.
    pub apparent: Range,
    /// Bytes allocated, directories included.
    pub allocated: Range,
}

impl Figures {
    fn new([entries, files, dirs, apparent, allocated]: [Range; 5]) -> Self {
        Self { entries, files, dirs, apparent, allocated }
    }
}

/// What a survey found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All trees together.
    pub total: Figures,
    /// The largest directories by disk usage, of those read for good, with all that is below them; not the roots.
    pub largest: Vec<(Vec<u8>, Figures)>,
    /// Everything was read.
    pub exact: bool,
    /// It was ended before it was done: there may be no estimate, only what was counted.
    pub stopped: bool,
    /// Directories read; some twice.
    pub reads: u64,
    /// Directories and entries met that could not be read.
    pub errors: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Devices (`st_dev`) of directories that were opened.
    pub devices: Vec<u64>,
}

/// Estimates what is in the trees.
///
/// # Errors
/// If the walk cannot start. What goes wrong within the trees is counted, and told to `watch`.
pub fn estimate(survey: &Survey, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let start = Instant::now();
    let walker = Walker::start(survey, start, watch)
        .map_err(|error| Error::new(Op::Estimate, Path::new(&first(survey)), error))?;
    let roots = survey.roots.iter().cloned().map(Place::Root).collect();
    let sampled = sampler::sample(walker, roots, survey.largest, survey.seed);
    let sampler::Sampled { estimate, reads, whole, reader } = sampled;
    let (errors, devices) =
        reader.end().map_err(|error| Error::new(Op::Estimate, Path::new(&first(survey)), error))?;
    let largest = estimate.largest.iter();
    Ok(Outcome {
        total: Figures::new(estimate.total),
        largest: largest.map(|(place, ranges)| (place.path(), Figures::new(*ranges))).collect(),
        exact: estimate.exact,
        stopped: !whole,
        reads: reads as u64,
        errors,
        elapsed: start.elapsed(),
        devices,
    })
}

fn first(survey: &Survey) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let root = survey.roots.first().map(|root| root.to_bytes().to_vec());
    std::ffi::OsString::from_vec(root.unwrap_or_default())
}
