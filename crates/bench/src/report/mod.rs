//! Runs as text: a table for people, CSV for other programs, JSON to keep and to compare, a page with plots.
//!
//! Owns what stands where and how numbers are rounded. Prints nothing, and writes no file.

mod columns;
mod csv;
pub mod html;
mod json;
mod number;
mod table;

pub use csv::csv;
pub use json::{SCHEMA, from_json, read, to_json};
pub use table::table;

pub(crate) use columns::{Align, aligned};
pub(crate) use number::{interval, significant};

/// A text of somebody else on one line of a terminal, without what terminals obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() }).collect()
}
