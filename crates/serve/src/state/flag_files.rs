//! Flag files, whose existence switches a site into maintenance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The cached existence of flag files, with the time of each check.
#[derive(Debug, Default)]
pub(crate) struct FlagFiles(RefCell<HashMap<PathBuf, (Instant, bool)>>);

impl FlagFiles {
    /// Returns whether `file` exists, as checked at most `age` before `now`.
    pub(crate) fn exists(&self, file: &Path, age: Duration, now: Instant) -> bool {
        let mut known = self.0.borrow_mut();
        match known.get(file) {
            Some((seen, there)) if now.saturating_duration_since(*seen) < age => *there,
            _ => {
                let there = file.exists();
                known.insert(file.to_owned(), (now, there));
                there
            }
        }
    }

    /// Forgets all checks.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
