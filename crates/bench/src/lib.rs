//! Benchmarks of I/O models: the same work under every model, on the user's machine and filesystem.
//!
//! The terms are taken from the randomised block design. An *arm* is a method with its parameters.
//! A *cell* is a workload with its size, block size, cache state and flags. A *sample* is one
//! execution of an arm on a cell, in a process of its own; it yields one [`Row`]. A *block* is one
//! repetition: it runs every arm of the cell once, in shuffled order. A [`Run`] holds the rows, the
//! statistics computed from them, and the arms that were unavailable, with the reason.
//!
//! Owns: workloads, their data pattern and its verification, the page cache state and the check of
//! it, the order of samples, statistics, advice, and reports as text. Does not own: system calls
//! and I/O models (`fathom-io`, `fathom-files`), the command line, the terminal, exit statuses.

pub mod advise;
mod arm_name;
mod arm_numbers;
pub mod arms;
pub mod commands;
mod compare;
mod error;
mod executor;
pub mod fixture;
mod histogram;
pub mod judgement;
pub mod lang;
pub mod machine;
pub mod pattern;
pub mod profile;
mod remove;
pub mod report;
mod row;
mod run;
pub mod runner;
pub mod sample;
pub mod stats;
pub mod summary;
mod workload;

pub use arm_name::ArmName;
pub use arm_numbers::ArmNumbers;
pub use compare::{ArmComparison, ArmKey, ConditionDifference, RunComparison, TimeChange, compare};
pub use error::{Error, Op};
pub use executor::{ProcessExecutor, Programs};
pub use histogram::{LatencyBucket, LatencyHistogram};
pub use row::Row;
pub use run::{
    ArmSummary, CommandUse, Interval, Noise, RequirementOutcome, RequirementVerdict, Run, UnavailableArm,
};
pub use workload::Workload;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
