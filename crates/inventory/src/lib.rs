//! File inventories: which entries of a walk are listed, and how each of them looks.
//!
//! [`filter`] decides from a name, a path or metadata, in this order, so that nothing is asked of the filesystem for an
//! entry that its name rules out. [`mod@format`] prints an entry as find's `-printf` does, [`json`] as an object.
//!
//! Owns: the grammar of filters and formats, and the bytes that come of them. Does not own: options, the walk,
//! system calls for single entries (a caller gives them as a [`Lookup`]), output. Prints nothing.

mod entry;
pub mod filter;
pub mod format;
pub mod json;
mod owners;

pub use entry::{Entry, Lookup, Target, type_letter};
pub use owners::Owners;
