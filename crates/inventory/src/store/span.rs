//! Ranges of directories.

/// A range of directory numbers, both ends included. Number 0 is not a directory: it stands for the
/// parent of the operands that are not directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first number.
    pub first: i64,
    /// The last number.
    pub last: i64,
}

impl Span {
    /// All directories, and the operands that are not directories.
    pub const ALL: Self = Self { first: i64::MIN, last: i64::MAX };
    /// All directories.
    pub const TREES: Self = Self { first: 1, last: i64::MAX };
    /// No directory.
    pub const NONE: Self = Self { first: 0, last: -1 };

    /// Returns whether the directory is among these.
    pub fn contains(self, dir_id: i64) -> bool {
        (self.first..=self.last).contains(&dir_id)
    }
}
