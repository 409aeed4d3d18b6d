//! Advice: which I/O model to use for which work, here.
//!
//! A few constants are measured first: what calls, hand-offs and rings cost, and what depth gains. From these every arm of every
//! workload is predicted, and only the arms that may be the best are measured against one another, as in any other run.
//!
//! Owns: what is asked, in which order and for how long; the predictions; the verdicts and what would change them. Does not own: how
//! samples are made and counted (`lab`, `runner`), their statistics (`summary`).

mod constants;
mod entry;
mod flips;
mod inquiry;
mod predict;
mod question;
mod report;
mod site;
mod validate;
mod verdict;

use serde::{Deserialize, Serialize};

use crate::Run;

pub use constants::{Constants, Cost, Nops};
pub use inquiry::{Ask, End, advise};
pub use report::text;
pub use site::{Bench, Look, Probe, Site};
pub use validate::{Regret, Strategy, Validation, validate};
pub use verdict::{Candidate, Verdict, sentence};

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// All of `verdicts` in one sentence.
    pub sentence: String,
    /// One a workload and state of the cache.
    pub verdicts: Vec<Verdict>,
    /// What would make the answer another one, a sentence each.
    pub flips: Vec<String>,
    /// How many threads a walk should have once it waits; `None` if those it chooses by itself are as good.
    pub walk_in_flight: Option<u32>,
    /// What predictions were made of.
    pub constants: Constants,
    /// Workloads that were not asked about, and why.
    pub left_out: Vec<LeftOut>,
    /// What the advice costs where it was not made; `None` if that was not asked.
    pub validation: Option<Validation>,
    /// Every sample, and the conditions under which all this holds.
    pub run: Run,
}

/// A workload that was not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The cell.
    pub cell: String,
    /// The reason.
    pub reason: String,
}
