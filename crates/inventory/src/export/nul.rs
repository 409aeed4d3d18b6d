//! Paths as they are, each with a zero byte after it, which no path contains.

use super::ReplayEntry;

pub(super) struct NulFormat;

impl super::EntryFormat for NulFormat {
    fn needs_metadata(&self) -> bool {
        false
    }

    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>) {
        item.entry.write_path(out);
        out.push(0);
    }
}
