//! Estimates the contents of trees within a time, without reading all of them: entries, sizes and
//! the largest subtrees.
//!
//! Two attributes of a directory are known before it is read, from the walk of its parent: its link
//! count, which on most filesystems is the number of its subdirectories plus two, and its size,
//! which grows with its entries. The directories with the largest expected contents are read first,
//! into the *census*: their entries are counted exactly. When half the time is over, the
//! *frontier*, which is all directories known and not read, is sampled: directories are drawn by
//! systematic sampling with probabilities proportional to their expected contents (Madow 1949) and
//! read; some of the directories found in them are drawn and read in turn, generation by
//! generation, until none are left. Each entry found is weighted by the inverse of the probability
//! of finding it (Horvitz and Thompson 1952). So each estimate is unbiased for a tree of any shape,
//! as it is for Knuth's random probes of a tree (1975) and Chen's stratified ones (1992). The
//! method is a relative of these: the strata are generations, and the nodes of a stratum differ in
//! their expected contents.
//!
//! The number of draws follows from the cost of the sampling so far, never from the contents of a
//! directory that has not been read, or the estimates would be biased. So no drawn directory is
//! dropped because it is slow; where time gets short, fewer are drawn, each with a greater weight.
//! The frontier is sampled in blocks, one after the other, as the first blocks tell the cost of the
//! others. All of it is done three times, within a tenth, a third and all of the time, so that an
//! interrupted run can report the last whole estimate.
//!
//! Variances are computed as for draws of a fixed number (Hájek 1964; Raj 1966 for the
//! generations). Ranges follow Student's t distribution with Satterthwaite's degrees of freedom, on
//! a logarithmic scale, with room for more draws like those that add most to the variance: where
//! few subtrees hold most entries, a sample tends to miss them. Whether such a range has a
//! confidence cannot be seen from the sample: `evidence.rs` decides by the probability with which
//! each directory was read. `simulation.rs` checks how often ranges with a confidence hold the
//! truth.
//!
//! Owns the choice of the directories that are read, and the estimators. Does not own how
//! directories are read (`fathom_walk`), nor how estimates are shown.

mod draw;
mod estimator;
mod evidence;
mod interval;
mod probe;
mod sampler;
#[cfg(test)]
mod simulation;
mod survey_walk;

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fathom_walk::{Clock, ConcurrencyHints, Model};

use crate::scan::Observer;
use fathom_inventory::store::{Error, Op};
pub use interval::{Basis, EstimateRange};
use survey_walk::{DirLocation, SurveyWalk};

/// The options of a survey. By default, a survey has no roots, and takes ten seconds.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The roots of the trees.
    pub roots: Vec<CString>,
    /// The limit of the survey.
    pub budget: Budget,
    /// The I/O model.
    pub model: Model,
    /// The number of workers; the model decides if it is `None`.
    pub threads: Option<usize>,
    /// Hints on devices from earlier measurements.
    pub hints: ConcurrencyHints,
    /// Most directories that are read at once.
    pub in_flight_max: Option<usize>,
    /// Most entries that are examined in a second.
    pub rate: Option<u64>,
    /// Whether directories on other filesystems than their root's are left out.
    pub one_file_system: bool,
    /// The number of largest subtrees to report.
    pub largest: usize,
    /// The seed of the random draws.
    pub seed: u64,
    /// The clock of the budget and of the rate.
    pub clock: Clock,
    /// Ends the survey at once, with the results so far, when it is set.
    pub stop: Arc<AtomicBool>,
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            budget: Budget::Time(Duration::from_secs(10)),
            model: Model::default(),
            threads: None,
            hints: ConcurrencyHints::default(),
            in_flight_max: None,
            rate: None,
            one_file_system: false,
            largest: 0,
            seed: 0,
            clock: Clock::default(),
            stop: Arc::default(),
        }
    }
}

/// The limit of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// A duration.
    Time(Duration),
    /// About this number of directories read, however long that takes.
    Directories(u64),
}

/// Estimates of the contents of a tree or a part of it. Each name of a file with several names
/// counts as one entry, and for an equal share of the file's sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeEstimate {
    /// The number of entries of all types, roots included.
    pub entries: EstimateRange,
    /// The number of entries that are not directories.
    pub files: EstimateRange,
    /// The number of directories.
    pub dirs: EstimateRange,
    /// The apparent size of all entries but directories, in bytes.
    pub apparent: EstimateRange,
    /// The disk usage of all entries, in bytes.
    pub allocated: EstimateRange,
}

impl TreeEstimate {
    fn new([entries, files, dirs, apparent, allocated]: [EstimateRange; 5]) -> Self {
        Self { entries, files, dirs, apparent, allocated }
    }
}

/// The result of a survey.
#[derive(Clone, Debug)]
pub struct SurveyOutcome {
    /// The estimates for all trees together.
    pub total: TreeEstimate,
    /// The largest directories by disk usage, with everything below them. Only directories of the
    /// census are among them, and no roots.
    pub largest: Vec<(Vec<u8>, TreeEstimate)>,
    /// Whether everything was read.
    pub exact: bool,
    /// Whether the survey was stopped before its end. There may be no estimate then, only counts.
    pub stopped: bool,
    /// The number of directories read. Some are read twice.
    pub reads: u64,
    /// The number of directories and entries that could not be read.
    pub errors: u64,
    /// The duration of the survey.
    pub elapsed: Duration,
    /// Devices (`st_dev`) of directories that were opened.
    pub devices: Vec<u64>,
}

/// Estimates the contents of the trees.
///
/// # Errors
/// If the walk cannot start. Errors within the trees are counted, and reported to `observer`.
///
/// ```
/// use fathom_scans::estimate::{Budget, Survey, estimate};
///
/// let (roots, budget) = (vec![c"src".into()], Budget::Directories(1_000));
/// let outcome = estimate(&Survey { roots, budget, ..Survey::default() }, &mut ())?;
/// // The budget is enough for everything.
/// assert!(outcome.exact && outcome.total.files.low == outcome.total.files.high);
/// # Ok::<(), fathom_inventory::store::Error>(())
/// ```
pub fn estimate(survey: &Survey, observer: &mut dyn Observer) -> Result<SurveyOutcome, Error> {
    let start = survey.clock.now();
    let walker = SurveyWalk::start(survey, start, observer)
        .map_err(|error| Error::new(Op::Estimate, Path::new(&first(survey)), error))?;
    let roots = survey.roots.iter().cloned().map(DirLocation::Root).collect();
    let sampled = sampler::sample(walker, roots, survey.largest, survey.seed);
    let sampler::SampleResult { estimate, reads, completed, reader } = sampled;
    let (errors, devices) =
        reader.end().map_err(|error| Error::new(Op::Estimate, Path::new(&first(survey)), error))?;
    let largest = estimate.largest.iter();
    Ok(SurveyOutcome {
        total: TreeEstimate::new(estimate.total),
        largest: largest.map(|(location, ranges)| (location.path(), TreeEstimate::new(*ranges))).collect(),
        exact: estimate.exact,
        stopped: !completed,
        reads: reads as u64,
        errors,
        elapsed: survey.clock.now() - start,
        devices,
    })
}

fn first(survey: &Survey) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let root = survey.roots.first().map(|root| root.to_bytes().to_vec());
    std::ffi::OsString::from_vec(root.unwrap_or_default())
}
