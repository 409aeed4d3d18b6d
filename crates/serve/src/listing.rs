//! Directory listings: the entries of an open directory, in an order the client asks for, as HTML or
//! as JSON, in pages.
//!
//! ```text
//! read ─> Listing ─> page (filter, order) ─> html | json
//! ```
//! Does not own: how the directory was opened, what may be had through a symbolic link (a closure
//! tells), which form the client wants, the response's headers. All of it is work for a thread of the
//! pool, which a [`Tick`] interrupts.

mod entry;
mod html;
mod json;
mod page;
mod read;
mod readme;
mod sort;
mod view;

pub use entry::{Entry, Kind};
pub use html::html;
pub use json::json;
pub use page::{PAGE_ENTRIES, Page};
pub use read::{ENTRIES_MAX, Listing, read};
pub use readme::Readme;
pub use sort::{Key, Order};
pub use view::View;

use fathom_io::Errno;

/// A function that long work calls every few microseconds with the bytes of memory it holds: it may
/// yield the processor, and its error ends the work.
pub type Tick<'a> = &'a mut dyn FnMut(usize) -> Result<(), Errno>;
