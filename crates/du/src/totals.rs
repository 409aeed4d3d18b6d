//! Sums over entries, as GNU du computes them.

use fathom_walk::FileTime;

/// The totals of one or more entries.
///
/// ```
/// use fathom_du::totals::Totals;
/// use fathom_walk::FileTime;
///
/// let mut totals = Totals::one(4096, FileTime { sec: 7, nsec: 0 });
/// totals.add(&Totals::one(512, FileTime { sec: 5, nsec: 0 }));
/// assert_eq!((totals.bytes, totals.inodes, totals.newest.sec), (4608, 2, 7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Disk usage or apparent size. Saturates at `u64::MAX`.
    pub bytes: u64,
    /// The number of inodes.
    pub inodes: u64,
    /// The newest time stamp of the selected kind.
    pub newest: FileTime,
}

impl Totals {
    /// Zero, with a time older than any time stamp.
    pub const NONE: Self = Self { bytes: 0, inodes: 0, newest: FileTime { sec: i64::MIN, nsec: 0 } };

    /// Zero, with the time 1970: the initial value of GNU du's first sums.
    pub const EPOCH: Self = Self { newest: FileTime { sec: 0, nsec: 0 }, ..Self::NONE };

    /// Returns the totals of one inode.
    #[must_use]
    pub fn one(bytes: u64, newest: FileTime) -> Self {
        Self { bytes, inodes: 1, newest }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.inodes = self.inodes.wrapping_add(other.inodes);
        self.newest = self.newest.max(other.newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_at_the_top_and_the_newest_wins() {
        let mut totals = Totals::NONE;
        for sec in [5, -7, 3] {
            totals.add(&Totals::one(u64::MAX / 2 + 1, FileTime { sec, nsec: 0 }));
        }
        assert_eq!((totals.bytes, totals.inodes, totals.newest.sec), (u64::MAX, 3, 5));
    }
}
