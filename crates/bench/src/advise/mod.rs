//! Advice: the best I/O model for each workload on this machine.
//!
//! Cost constants are measured first: calls, hand-offs, ring operations, and the gain from depth.
//! They predict the time of every arm on every workload. Only the arms that may be the best are
//! then measured against each other, as in any other run.
//!
//! Owns: the workloads, their order and time budget; the predictions; the verdicts and their
//! sensitivity. Does not own: how samples are made and counted (`fixture`, `runner`), and their
//! statistics (`summary`).

mod advisor;
mod cells;
mod commands;
mod costs;
mod predict;
mod profile_entry;
mod report;
mod sensitivity;
mod source;
mod validate;
mod verdict;

use serde::{Deserialize, Serialize};

use crate::Run;

pub use advisor::{AdviceEnd, AdviceOptions, advise};
pub use costs::{CostConstants, NopCosts, OpCost};
pub use report::{page_lead, text};
pub use source::{AdviceObserver, DirectorySource, HostProbe, SampleSource};
pub use validate::{Regret, Strategy, Validation, validate};
pub use verdict::{Candidate, Verdict, sentence};

/// The result of an advice run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// All of `verdicts` in one sentence.
    pub sentence: String,
    /// The same in one line for each command or kind of program.
    #[serde(default)]
    pub commands: Vec<String>,
    /// One verdict for each workload and cache state.
    pub verdicts: Vec<Verdict>,
    /// Conditions that would change a verdict, one sentence each.
    #[serde(rename = "flips")]
    pub sensitivity: Vec<String>,
    /// The number of threads for a walk whose calls wait for the storage; `None` if the walk's own
    /// adaptation is as good.
    pub walk_in_flight: Option<u32>,
    /// The measurements from which the predictions derive.
    pub constants: CostConstants,
    /// The number of other threads that ran or waited for a processor at the start; `None` if
    /// unknown.
    #[serde(default)]
    pub load: Option<f64>,
    /// The number of cells that could be measured here and have no answer.
    #[serde(default)]
    pub open_questions: usize,
    /// Cells that were not measured, with reasons.
    pub left_out: Vec<SkippedCell>,
    /// The regret of the advice on cells that it was not derived from; `None` if that was not
    /// requested.
    pub validation: Option<Validation>,
    /// Every sample, and the conditions of the measurement.
    pub run: Run,
}

/// A cell that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedCell {
    /// The label of the cell.
    pub cell: String,
    /// The reason.
    pub reason: String,
}
