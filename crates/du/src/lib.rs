//! Disk usage with GNU du's semantics: sizes, hard links, totals. Prints nothing itself.
//!
//! [`scan::scan`] walks the operands. `visitor.rs` is the half that runs on the walk's workers: it
//! reduces metadata to sums and selects the entries that must be processed in order. `scan.rs` is
//! the half that processes everything in order: it decides which inodes count once, sums up
//! directories and hands lines to a [`scan::Report`]. [`replay`] does the same for a tree that is
//! recorded, not walked. [`dedup`] knows which files must be looked up before they count. [`top`],
//! [`tree`] and [`groups`] select the lines to show when there are too many to read.

mod accumulator;
pub mod dedup;
pub mod exclude;
pub mod groups;
mod inode_set;
mod mounts;
pub mod options;
pub mod problem;
pub mod replay;
pub mod scan;
pub mod threshold;
pub mod top;
pub mod totals;
pub mod tree;
pub mod usage;
mod visitor;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
