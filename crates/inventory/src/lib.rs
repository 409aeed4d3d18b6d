//! File inventories: which entries of a walk are listed, and how each of them looks.
//!
//! [`filter`] decides from a name, a path or metadata, in this order, so that nothing is asked of
//! the filesystem for an entry that its name rules out. [`ignores`] has what files like
//! `.gitignore` leave out. [`mod@format`] prints an entry as find's `-printf` does, [`json`] as an
//! object.
//!
//! [`scan`] walks trees and makes an inventory of them on the disk, [`store`] is what that looks
//! like there, and [`replay`] goes through one in the order of its scan. [`top`] reports from it
//! what is large, [`usage`] what directories come to as du counts, and [`mod@diff`] what changed
//! between two. [`merge`] makes one of several. [`export`] writes it in the formats of other
//! programs.
//!
//! Owns: the grammar of filters and formats, and the bytes that come of them. Does not own:
//! options, the walk, system calls for single entries (a caller gives them as a [`Lookup`]),
//! standard output. Prints nothing.

pub mod diff;
mod entry;
pub mod estimate;
pub mod export;
pub mod fault;
pub mod filter;
pub mod format;
pub mod ignores;
pub mod json;
pub mod merge;
mod normal;
mod owners;
pub mod replay;
pub mod scan;
pub mod store;
pub mod top;
pub mod usage;

pub use entry::{Entry, Lookup, Target, type_letter};
pub use owners::{NameService, OwnerKind, Owners};
