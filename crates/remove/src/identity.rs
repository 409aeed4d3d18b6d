//! The identity of an inode, by which a selection stays the same while names move.

/// An inode, as it was when it was shown to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Device number of the filesystem (`st_dev`).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}
