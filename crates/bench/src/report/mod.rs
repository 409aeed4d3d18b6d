//! Runs as text: a table for people, CSV for other programs, JSON for storage, comparison and
//! pages.
//!
//! Owns: layout and rounding. Does not own: output and files.

mod bars;
mod columns;
mod csv;
mod finding;
mod json;
mod number;
mod table;

pub use bars::BarStyle;
pub use csv::{csv, plain_csv};
pub use finding::{CellDecision, CellFinding, CellSentence, FasterArm, ToBaseline, sentences};
pub use json::{SCHEMA, from_json, read, to_json, to_json_line};
pub use table::{markdown_table, table, table_with_bars};

pub(crate) use columns::{Align, aligned, markdown, markdown_text};
pub(crate) use finding::baseline_of;
pub(crate) use number::{interval, significant};

/// Escapes the control characters of untrusted text, for one line on a terminal.
pub(crate) fn escape_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() }).collect()
}
