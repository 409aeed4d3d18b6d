//! What is known of devices before a walk: how many workers paid best there, once they waited for the storage.

use std::sync::Arc;

/// To how many workers a walk leaps on some devices, instead of to a number that is good for most storage of that kind.
///
/// One worker a CPU or fewer is no leap at all: more are tried later, and kept where that pays. Copies share the table.
#[derive(Clone, Debug, Default)]
pub struct Leaps(Arc<[(u64, usize)]>);

impl Leaps {
    /// The number for the device `dev` (`st_dev`).
    #[must_use]
    pub fn of(&self, dev: u64) -> Option<usize> {
        self.0.iter().find(|(known, _)| *known == dev).map(|(_, workers)| *workers)
    }

    /// Whether nothing is known of any device.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of devices (`st_dev`) and numbers of workers. The first number given for a device counts.
impl FromIterator<(u64, usize)> for Leaps {
    fn from_iter<I: IntoIterator<Item = (u64, usize)>>(leaps: I) -> Self {
        Self(leaps.into_iter().collect())
    }
}
