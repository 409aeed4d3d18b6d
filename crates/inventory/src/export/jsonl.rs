//! JSON Lines: the objects of `fathom list --json`, with the targets of links and the states of
//! directories.

use super::ReplayEntry;
use crate::json::JsonWriter;

pub(super) struct JsonLinesFormat(JsonWriter);

impl JsonLinesFormat {
    pub(super) fn new() -> Self {
        Self(JsonWriter::new())
    }
}

impl super::EntryFormat for JsonLinesFormat {
    fn needs_links(&self) -> bool {
        true
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        self.0.write_known(item, out);
    }
}
