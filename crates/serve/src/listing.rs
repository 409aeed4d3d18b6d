//! Directory listings: the entries of an open directory as HTML or JSON, sorted, filtered and paged
//! by the client's query.
//!
//! ```text
//! read ─> Listing ─> page (filter, order) ─> html | json
//! ```
//! Does not own: opening the directory, access to the targets of symbolic links (a closure
//! decides), the choice of the form, the response's headers. Listings are computed on pool threads,
//! and call a [`Tick`] so that they can yield.

mod entry;
mod html;
mod json;
mod page;
mod read;
mod readme;
mod sort;
mod tick;
mod view;

pub use entry::{EntryKind, ListingEntry};
pub use html::html;
pub use json::json;
pub use page::{ListingPage, PAGE_ENTRIES};
pub use read::{ENTRIES_MAX, Listing, read};
pub use readme::Readme;
pub use sort::{SortKey, SortOrder};
pub use tick::Tick;
pub use view::ListingView;
