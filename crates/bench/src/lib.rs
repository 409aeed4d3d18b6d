//! Benchmarks of I/O models: the same work under every model, on the user's machine and filesystem.
//!
//! A *sample* is one execution of an *arm* (a method with its parameters) on a *cell* (a workload with its size, block, cache state and
//! flags), in a process of its own; it gives one [`Row`]. A *block* is one repetition: every arm of the cell once, in shuffled order.
//! A [`Run`] is all of it: rows, what the statistics make of them, and what was not available and why.
//!
//! Owns: workloads, their data pattern and its verification, the certificate of the cache's state, the order of samples, statistics,
//! advice, and reports as text. Does not own: system calls and I/O models (`fathom-io`), the command line, the terminal, exit statuses.

pub mod advise;
mod arm;
pub mod arms;
mod compare;
mod desk;
mod error;
pub mod lab;
pub mod lang;
pub mod machine;
pub mod pattern;
pub mod profile;
pub mod report;
mod row;
mod run;
pub mod runner;
pub mod sample;
pub mod stats;
pub mod summary;

pub use arm::ArmName;
pub use compare::{Compared, Comparison, Difference, Key, compare};
pub use desk::{Desk, Programs};
pub use error::{Error, Op};
pub use row::Row;
pub use run::{Interval, Noise, Run, Summary, Unavailable};
