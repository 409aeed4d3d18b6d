//! Answers from file inventories.
//!
//! [`replay`] iterates over an inventory in the order of its scan, and [`browse`] reads its
//! directories one by one. [`top`] reports what is large, [`usage`] the disk usage of directories
//! as du counts it, and [`mod@diff`] the changes between two inventories. [`export`] writes an
//! inventory in the formats of other programs, [`json`] an entry as an object. [`views`] has the
//! tables of an inventory as views of DuckDB.
//!
//! Owns: what is read of an inventory for an answer, and its numbers and order. Does not own: the
//! format on disk, and the tables of a command line. Prints nothing.

pub mod browse;
pub mod diff;
pub mod export;
pub mod json;
pub mod replay;
pub mod top;
pub mod usage;
pub mod views;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
