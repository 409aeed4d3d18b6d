//! Paths as they are, each with a zero byte behind it: no path has one in it.

use super::Item;

pub(super) struct Form;

impl super::Form for Form {
    fn needs_metadata(&self) -> bool {
        false
    }

    fn entry(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        item.entry.write_path(out);
        out.push(0);
    }
}
