//! Disk usage with GNU du's semantics: sizes, hard links, totals. Prints nothing itself.
//!
//! [`scan::scan`] walks the operands. `gather.rs` is its half on the walk's workers: metadata becomes sums, and runs
//! of the entries whose turn matters. `scan.rs` is the half that sees everything in order: it decides what counts
//! once, adds up directories and hands lines to a [`scan::Report`]. [`retold`]
//! has the same for a tree that is told of, not walked. [`again`] knows which files could be met twice.
//! [`top`], [`tree`] and [`by`] pick what is to be shown of more lines than anybody wants to read.

pub mod again;
pub mod by;
pub mod exclude;
mod gather;
mod ledger;
mod mounts;
pub mod options;
pub mod problem;
pub mod retold;
pub mod scan;
mod seen;
pub mod threshold;
pub mod top;
pub mod totals;
pub mod tree;
