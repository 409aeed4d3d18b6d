//! Objects, one a line: those of `fathom list --json`, with the targets of links and the states of
//! directories.

use super::Item;
use crate::json::Writer;

pub(super) struct Form(Writer);

impl Form {
    pub(super) fn new() -> Self {
        Self(Writer::new())
    }
}

impl super::Form for Form {
    fn needs_links(&self) -> bool {
        true
    }

    fn entry(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        self.0.write_known(item, out);
    }
}
