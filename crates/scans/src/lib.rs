//! Scans of file trees into inventories.
//!
//! [`scan`] walks trees and writes an inventory of them, and [`units`] does so on several machines.
//! [`estimate`] estimates the contents of trees from a sample. [`merge`] combines several
//! inventories into one, and [`import`] makes one of what other programs wrote. [`history`] is a
//! store of dated inventories: which are kept, and what grew.
//!
//! Owns: the walk for an inventory, its journal, its order, and when it is complete. Does not own:
//! the format on disk (`fathom-inventory`), and answers (`fathom-questions`). Prints nothing.

pub mod estimate;
pub mod history;
pub mod import;
pub mod merge;
pub mod scan;
pub mod units;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
