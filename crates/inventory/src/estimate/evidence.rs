//! Whether a range may be called one that holds the truth in 95 of 100 runs.
//!
//! A sample says nothing of a directory that it could not have met. One that holds half of a tree,
//! deep down below directories that look like all others, is missed by most short samples, and then
//! the sample looks like one of a small and even tree. So nothing within the sample decides, but
//! how likely each directory was to be read: a range has a confidence only if every directory that
//! may hold much was read with a probability of [`SURE`] at least.
//!
//! A directory that may hold much is, for counts, any that may have subdirectories, by its link
//! count, or many entries, by its size: as long as link counts and sizes of the directories read
//! have been right. For bytes it is every directory.

/// Least probability with which a directory must have been read for a range to have a confidence.
pub(super) const SURE: f64 = 0.9;
/// Fewer directories drawn say too little of those without subdirectories.
const ENOUGH: usize = 100;
/// Directories have at least so many bytes for each entry where their size tells anything: a short
/// name takes 12 in ext4, 20 in tmpfs and 9 in XFS.
const ENTRY_BYTES: f64 = 8.0;

/// The expected contents of a directory that has not been read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outlook {
    /// The expected amount, relative to other directories.
    pub(super) size: f64,
    /// Its link count says that it has no subdirectories.
    pub(super) is_leaf: bool,
}

impl Outlook {
    /// Estimates the contents of a directory from its link count and its size in bytes. A
    /// subdirectory weighs more than the size, as the size of its subtree is unknown. On a
    /// filesystem that does not count subdirectories, the link count is 1, or 2 as for none.
    pub(super) fn new(nlink: u64, bytes: i64) -> Self {
        let size = 0.5 + 8.0 * nlink.saturating_sub(2) as f64 + bytes.max(0) as f64 / 4096.0;
        Self { size, is_leaf: nlink == 2 }
    }

    /// The expected contents of a directory whose metadata is unknown.
    pub(super) const UNKNOWN: Self = Self { size: 1.0, is_leaf: false };
}

/// Whether link count and size of a directory were right about what was found in it.
pub(super) fn is_honest(nlink: u64, bytes: i64, subdirectories: u64, entries: u64) -> bool {
    let links = nlink < 2 || nlink - 2 >= subdirectories;
    links && entries as f64 * ENTRY_BYTES <= bytes.max(0) as f64
}

/// How likely what is in a tree was to be met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// The least probability with which a directory was read.
    least: f64,
    /// The same of directories that may have subdirectories.
    least_above: f64,
    /// The least share of a directory's files that was looked at.
    looks: f64,
    /// Directories without subdirectories that were drawn.
    leaves_drawn: usize,
    /// All directories read have been honest.
    honest: bool,
}

impl Default for Evidence {
    fn default() -> Self {
        Self { least: 1.0, least_above: 1.0, looks: 1.0, leaves_drawn: 0, honest: true }
    }
}

impl Evidence {
    /// Notes a directory that was to be read with this probability.
    pub(super) fn note(&mut self, probability: f64, is_leaf: bool) {
        self.least = self.least.min(probability);
        if !is_leaf {
            self.least_above = self.least_above.min(probability);
        }
    }

    pub(super) fn note_drawn(&mut self, is_leaf: bool) {
        self.leaves_drawn += usize::from(is_leaf);
    }

    /// Notes what reading a directory gave.
    pub(super) fn note_read(&mut self, looks: f64, honest: bool) {
        self.looks = self.looks.min(looks);
        self.honest &= honest;
    }

    /// Combines two pieces of evidence: the lesser of each probability and share, the sum of the
    /// leaves drawn, and honesty only if both are honest.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            least_above: self.least_above.min(other.least_above),
            looks: self.looks.min(other.looks),
            leaves_drawn: self.leaves_drawn + other.leaves_drawn,
            honest: self.honest && other.honest,
        }
    }

    /// Whether the number of directories is known: those not read have none below them.
    pub(super) fn knows_directories(&self) -> bool {
        self.honest && self.least_above >= 1.0
    }

    /// Whether ranges of numbers of entries have a confidence.
    pub(super) fn supports_counts(&self) -> bool {
        let leaves_are_known = self.honest && self.least_above >= SURE && self.leaves_drawn >= ENOUGH;
        self.least >= SURE || leaves_are_known
    }

    /// Whether ranges of bytes have a confidence: any directory may have the largest file.
    pub(super) fn supports_sizes(&self) -> bool {
        self.least >= SURE && self.looks >= SURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_likely_to_be_met_supports_a_range() {
        let mut evidence = Evidence::default();
        assert!(evidence.supports_counts() && evidence.supports_sizes() && evidence.knows_directories());
        evidence.note(0.2, true);
        assert!(!evidence.supports_counts() && !evidence.supports_sizes(), "too few were drawn");
        (0..ENOUGH).for_each(|_| evidence.note_drawn(true));
        assert!(evidence.supports_counts() && !evidence.supports_sizes() && evidence.knows_directories());
        let mut fooled = evidence;
        fooled.note_read(1.0, false);
        assert!(!fooled.supports_counts() && !fooled.knows_directories());
        evidence.note(0.95, false);
        assert!(evidence.supports_counts() && !evidence.knows_directories());
        evidence.note(0.5, false);
        assert!(!evidence.supports_counts());
    }

    #[test]
    fn a_file_that_was_not_looked_at_may_be_the_largest() {
        let mut evidence = Evidence::default();
        evidence.note_read(0.3, true);
        assert!(evidence.supports_counts() && !evidence.supports_sizes());
    }

    #[test]
    fn link_counts_and_sizes_are_checked() {
        assert!(is_honest(2, 4096, 0, 300) && is_honest(5, 4096, 3, 9) && is_honest(5, 4096, 2, 9));
        assert!(!is_honest(2, 4096, 1, 1), "it has a subdirectory that it does not count");
        assert!(!is_honest(2, 4096, 0, 30_000), "its size is always the same");
        assert!(is_honest(1, 4096, 7, 9), "a link count of 1 promises nothing");
        assert_eq!([2, 3, 1].map(|nlink| Outlook::new(nlink, 0).is_leaf), [true, false, false]);
    }
}
