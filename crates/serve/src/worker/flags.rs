//! Files whose being there means something.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What was seen of such files, and when.
#[derive(Debug, Default)]
pub(crate) struct Flags(RefCell<HashMap<PathBuf, (Instant, bool)>>);

impl Flags {
    /// Whether `file` is there, as of `age` ago at most.
    pub(crate) fn is_there(&self, file: &Path, age: Duration) -> bool {
        let mut known = self.0.borrow_mut();
        match known.get(file) {
            Some((seen, there)) if seen.elapsed() < age => *there,
            _ => {
                let there = file.exists();
                known.insert(file.to_owned(), (Instant::now(), there));
                there
            }
        }
    }

    /// Forgets all of it.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
