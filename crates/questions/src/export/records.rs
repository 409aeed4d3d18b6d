//! The formats of one record an entry that need no more than the entry.

use super::{EntryFormat, ReplayEntry};
use crate::json::JsonWriter;

/// JSON Lines: the objects of `fathom list --json`, with the targets of links and the states of
/// directories.
pub(super) struct JsonLinesFormat(JsonWriter);

impl JsonLinesFormat {
    pub(super) fn new() -> Self {
        Self(JsonWriter::new())
    }
}

impl EntryFormat for JsonLinesFormat {
    fn needs_links(&self) -> bool {
        true
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        self.0.write_known(item, out);
    }
}

/// Paths as they are, each with a zero byte after it, which no path contains.
pub(super) struct NulFormat;

impl EntryFormat for NulFormat {
    fn needs_metadata(&self) -> bool {
        false
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        item.entry.write_path(out);
        out.push(0);
    }
}
