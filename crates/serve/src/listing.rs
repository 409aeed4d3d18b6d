//! Directory listings: what an open directory holds, in an order the client asks for, as a page or as JSON.
//!
//! ```text
//! read ─> Listing ─> sort ─> html | json
//! ```
//! Does not own: how the directory was opened, what may be had through a symbolic link (a closure tells), which form the client
//! wants, the response's headers. Everything here may take long: it belongs on a thread of the pool.

mod entry;
mod html;
mod json;
mod read;
mod sort;

pub use entry::{Entry, Kind};
pub use html::html;
pub use json::json;
pub use read::{ENTRIES_MAX, Listing, read};
pub use sort::{Key, Order};
