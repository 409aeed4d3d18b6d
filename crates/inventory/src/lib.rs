//! File inventories: the selection of the entries of a walk, and their presentation.
//!
//! [`filter`] decides by name, then path, then metadata, so that no system call is made for an
//! entry that its name rules out. [`ignores`] applies files like `.gitignore`. [`mod@format`]
//! prints an entry as find's `-printf` does, [`json`] as an object.
//!
//! [`store`] is the format on disk. Answers from it: [`replay`] iterates over an inventory in the
//! order of its scan, and [`browse`] reads its directories one by one. [`top`] reports what is
//! large, [`usage`] the disk usage of directories as du counts it, and [`mod@diff`] the changes
//! between two inventories. [`export`] writes an inventory in the formats of other programs.
//! [`views`] has the tables of an inventory as views of DuckDB.
//!
//! Above these, [`scan`] walks trees and writes an inventory of them, and [`units`] does so on
//! several machines. [`estimate`] estimates the contents of trees from a sample. [`merge`] combines
//! several inventories into one, and [`import`] makes one of what other programs wrote. [`history`]
//! is a store of dated inventories. `crates/cli/tests/tidy/layers.rs` holds these layers.
//!
//! Owns the grammar of filters and formats, and their output. Does not own options, the walk,
//! system calls for single entries (a caller implements them as a [`Lookup`]), or standard output.
//! Prints nothing.

pub mod browse;
pub mod diff;
mod entry;
pub mod estimate;
pub mod export;
pub mod filter;
pub mod format;
pub mod history;
pub mod ignores;
pub mod import;
pub mod json;
pub mod merge;
mod normal;
mod owners;
pub mod replay;
pub mod scan;
pub mod store;
pub mod top;
pub mod units;
pub mod usage;
pub mod views;

pub use entry::{Entry, LinkTarget, Lookup, type_letter};
pub use owners::{NameService, OwnerKind, Owners};

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
