//! Concurrency that is known before a walk: the number of workers with the highest rate on a
//! device, from an earlier measurement.

use std::sync::Arc;

/// The number of workers with which a walk starts on some devices once its workers wait for the
/// storage, in place of a number that suits most storage of that kind.
///
/// A number that does not exceed the number of CPUs has no effect. The walk still tries more
/// workers later, and keeps them if the rate rises. Copies share the table.
///
/// ```
/// use fathom_walk::{ConcurrencyHints, Options};
///
/// let dev = fathom_walk::stat(c"/")?.dev;
/// let hints: ConcurrencyHints = [(dev, 64)].into_iter().collect();
/// assert_eq!((hints.of(dev), hints.of(dev + 1)), (Some(64), None));
/// let options = Options::default().hints(hints);
/// # Ok::<(), fathom_walk::Errno>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConcurrencyHints(Arc<[(u64, usize)]>);

impl ConcurrencyHints {
    /// Returns the number of workers for the device `dev` (`st_dev`).
    #[must_use]
    pub fn of(&self, dev: u64) -> Option<usize> {
        self.0.iter().find(|(known, _)| *known == dev).map(|(_, workers)| *workers)
    }

    /// Returns whether there is no hint for any device.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Takes pairs of a device (`st_dev`) and a number of workers. If a device has several, the first
/// one counts.
impl FromIterator<(u64, usize)> for ConcurrencyHints {
    fn from_iter<I: IntoIterator<Item = (u64, usize)>>(hints: I) -> Self {
        Self(hints.into_iter().collect())
    }
}
