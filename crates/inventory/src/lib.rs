//! File inventories: which entries of a walk are listed, and how each of them looks.
//!
//! [`filter`] decides from a name, a path or metadata, in this order, so that nothing is asked of the filesystem for an
//! entry that its name rules out. [`ignores`] has what files like `.gitignore` leave out. [`mod@format`] prints an entry as find's `-printf` does, [`json`] as an object.
//!
//! [`scan`] walks trees and makes an inventory of them on the disk, [`store`] is what that looks like there, and
//! [`top`] reports from it what is large.
//!
//! Owns: the grammar of filters and formats, and the bytes that come of them. Does not own: options, the walk,
//! system calls for single entries (a caller gives them as a [`Lookup`]), standard output. Prints nothing.

mod entry;
pub mod estimate;
pub mod filter;
pub mod format;
pub mod ignores;
pub mod json;
mod owners;
pub mod scan;
pub mod store;
pub mod top;

pub use entry::{Entry, Lookup, Target, type_letter};
pub use owners::Owners;
