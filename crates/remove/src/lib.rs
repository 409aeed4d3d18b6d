//! Removal of files and directory trees: only the inodes that were selected, beneath their roots.

mod identity;

pub use identity::Identity;
