//! File inventories: the selection of the entries of a walk, their presentation, and the tables
//! that keep them.
//!
//! [`filter`] decides by name, then path, then metadata, so that no system call is made for an
//! entry that its name rules out. [`ignores`] applies files like `.gitignore`. [`mod@format`]
//! prints an entry as find's `-printf` does. [`store`] is the format on disk, with its writer and
//! its reader.
//!
//! Above this crate, `fathom-questions` answers from inventories, and `fathom-scans` makes them.
//!
//! Owns the grammar of filters and formats, and their output. Does not own options, the walk,
//! system calls for single entries (a caller implements them as a [`Lookup`]), or standard output.
//! Prints nothing.

mod entry;
pub mod filter;
pub mod format;
pub mod ignores;
pub mod normal;
mod owners;
pub mod store;

pub use entry::{Entry, LinkTarget, Lookup, type_letter, type_of};
pub use owners::{NameService, OwnerKind, Owners};

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
