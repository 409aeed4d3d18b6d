//! Decides whether a range may be said to hold the truth in 95 of 100 runs.
//!
//! A sample says nothing about a directory that it could not have drawn. If one directory deep in
//! the tree, below directories that look like all others, holds half of all entries, most short
//! samples miss it, and such a sample looks like a sample of a small and even tree. So the sample
//! itself cannot decide. The inclusion probabilities do: a range has a confidence only if every
//! directory that may hold much was read with a probability of at least [`PROBABILITY_MIN`].
//!
//! For counts, a directory may hold much if it may have subdirectories, by its link count, or many
//! entries, by its size; this holds as long as link counts and sizes of the directories read were
//! consistent with their entries. For bytes, every directory may hold much.

/// Least probability with which every directory must have been read for a range to have a
/// confidence.
pub(super) const PROBABILITY_MIN: f64 = 0.9;
/// Fewest directories without subdirectories that have to be drawn for their mean to be known.
const LEAVES_MIN: usize = 100;
/// Least size of a directory for each of its entries, in bytes, where the size says anything at
/// all: a short name takes 12 in ext4, 20 in tmpfs and 9 in XFS.
const ENTRY_BYTES: f64 = 8.0;

/// The expected contents of a directory that has not been read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExpectedContents {
    /// The expected amount, relative to the amount of other directories.
    pub(super) size: f64,
    /// Whether the link count says that there are no subdirectories.
    pub(super) is_leaf: bool,
}

impl ExpectedContents {
    /// Estimates the contents of a directory from its link count and its size in bytes. A
    /// subdirectory counts for more than the size, as the size of its subtree is unknown. A
    /// filesystem that does not count subdirectories reports a link count of 1, or of 2 as for a
    /// directory without any.
    pub(super) fn new(nlink: u64, bytes: i64) -> Self {
        let size = 0.5 + 8.0 * nlink.saturating_sub(2) as f64 + bytes.max(0) as f64 / 4096.0;
        Self { size, is_leaf: nlink == 2 }
    }

    /// The expected contents of a directory whose metadata is unknown.
    pub(super) const UNKNOWN: Self = Self { size: 1.0, is_leaf: false };
}

/// Returns whether link count and size of a directory are consistent with the entries found in it.
pub(super) fn is_consistent(nlink: u64, bytes: i64, subdirectories: u64, entries: u64) -> bool {
    let links = nlink < 2 || nlink - 2 >= subdirectories;
    links && entries as f64 * ENTRY_BYTES <= bytes.max(0) as f64
}

/// The probabilities with which the parts of a tree were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// The least probability with which a directory was read.
    least: f64,
    /// The least probability with which a directory was read that may have subdirectories.
    least_above: f64,
    /// The least share of a directory's files whose metadata was read.
    stat_share: f64,
    /// The number of directories without subdirectories that were drawn.
    leaves_drawn: usize,
    /// Whether link counts and sizes of all directories read were consistent with their entries.
    consistent: bool,
}

impl Default for Evidence {
    fn default() -> Self {
        Self { least: 1.0, least_above: 1.0, stat_share: 1.0, leaves_drawn: 0, consistent: true }
    }
}

impl Evidence {
    /// Records a directory that was to be read with this probability.
    pub(super) fn record(&mut self, probability: f64, is_leaf: bool) {
        self.least = self.least.min(probability);
        if !is_leaf {
            self.least_above = self.least_above.min(probability);
        }
    }

    pub(super) fn record_drawn(&mut self, is_leaf: bool) {
        self.leaves_drawn += usize::from(is_leaf);
    }

    /// Records the result of reading a directory.
    pub(super) fn record_read(&mut self, stat_share: f64, consistent: bool) {
        self.stat_share = self.stat_share.min(stat_share);
        self.consistent &= consistent;
    }

    /// Combines two records: the lesser of each probability and share, the sum of the leaves drawn,
    /// and consistency only if both are consistent.
    pub(super) fn combine(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            least_above: self.least_above.min(other.least_above),
            stat_share: self.stat_share.min(other.stat_share),
            leaves_drawn: self.leaves_drawn + other.leaves_drawn,
            consistent: self.consistent && other.consistent,
        }
    }

    /// Returns whether the number of directories is known: those not read have no subdirectories.
    pub(super) fn knows_directories(&self) -> bool {
        self.consistent && self.least_above >= 1.0
    }

    /// Returns whether ranges of numbers of entries have a confidence.
    pub(super) fn supports_counts(&self) -> bool {
        let leaves_are_known =
            self.consistent && self.least_above >= PROBABILITY_MIN && self.leaves_drawn >= LEAVES_MIN;
        self.least >= PROBABILITY_MIN || leaves_are_known
    }

    /// Returns whether ranges of bytes have a confidence. Any directory may have the largest file.
    pub(super) fn supports_sizes(&self) -> bool {
        self.least >= PROBABILITY_MIN && self.stat_share >= PROBABILITY_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_directories_support_a_range() {
        let mut evidence = Evidence::default();
        assert!(evidence.supports_counts() && evidence.supports_sizes() && evidence.knows_directories());
        evidence.record(0.2, true);
        assert!(!evidence.supports_counts() && !evidence.supports_sizes(), "too few were drawn");
        (0..LEAVES_MIN).for_each(|_| evidence.record_drawn(true));
        assert!(evidence.supports_counts() && !evidence.supports_sizes() && evidence.knows_directories());
        let mut fooled = evidence;
        fooled.record_read(1.0, false);
        assert!(!fooled.supports_counts() && !fooled.knows_directories());
        evidence.record(0.95, false);
        assert!(evidence.supports_counts() && !evidence.knows_directories());
        evidence.record(0.5, false);
        assert!(!evidence.supports_counts());
    }

    #[test]
    fn a_file_that_was_not_looked_at_may_be_the_largest() {
        let mut evidence = Evidence::default();
        evidence.record_read(0.3, true);
        assert!(evidence.supports_counts() && !evidence.supports_sizes());
    }

    #[test]
    fn link_counts_and_sizes_are_checked() {
        assert!(
            is_consistent(2, 4096, 0, 300) && is_consistent(5, 4096, 3, 9) && is_consistent(5, 4096, 2, 9)
        );
        assert!(!is_consistent(2, 4096, 1, 1), "it has a subdirectory that it does not count");
        assert!(!is_consistent(2, 4096, 0, 30_000), "its size is always the same");
        assert!(is_consistent(1, 4096, 7, 9), "a link count of 1 promises nothing");
        assert_eq!([2, 3, 1].map(|nlink| ExpectedContents::new(nlink, 0).is_leaf), [true, false, false]);
    }
}
