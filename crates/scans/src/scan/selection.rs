//! The criteria by which an inventory leaves out entries, or marks them, and the interface that
//! applies them.

use std::fmt::Debug;
use std::sync::Arc;

use fathom_walk::{Names, Node, Opened};
use serde::{Deserialize, Serialize};

/// The criteria by which entries are left out. A journal records the criteria of its scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusions {
    /// Entries whose names or paths match one of these patterns.
    pub patterns: Vec<Vec<u8>>,
    /// Whether entries that files like `.gitignore` exclude are left out.
    pub ignores_vcs: bool,
    /// The number of levels below a root from which on the contents of directories are left out;
    /// the directories themselves are recorded as skipped.
    pub max_depth: Option<usize>,
}

impl Exclusions {
    /// Returns whether the depth is the only criterion.
    #[must_use]
    pub fn is_depth_only(&self) -> bool {
        self.patterns.is_empty() && !self.ignores_vcs
    }
}

/// Creates the [`Selection`] for these criteria; `None` if nothing is left out. If the flag is set,
/// the selection marks what files like `.gitignore` exclude.
pub type SelectionFn = fn(&Exclusions, bool) -> Option<Arc<dyn Selection>>;

/// Returns whether an entry is marked, by its name and whether it is a directory.
pub type MarkFn<'a> = Box<dyn FnMut(&[u8], bool) -> bool + 'a>;

/// Decides which entries are left out, or marked, with everything below them. The methods are
/// called on the workers of the walk.
pub trait Selection: Debug + Send + Sync {
    /// Returns whether `inspect` has to be called for each directory before `select`.
    fn inspects_directories(&self) -> bool {
        false
    }
    /// Inspects an open directory. Returns the approximate memory that the result takes, in bytes.
    fn inspect(&self, dir: &Opened<'_>) -> usize {
        let _ = dir;
        0
    }
    /// Removes the names that are left out. A name of unknown type is removed only if it is left
    /// out whatever its type.
    fn select(&self, dir: &Node, names: &mut Names);
    /// Returns whether the entry `name`, whose type was unknown in `select`, is left out.
    fn leaves_out(&self, dir: &Node, name: &[u8], is_dir: bool) -> bool;
    /// Returns a function that decides which entries of `dir`, which has been inspected and is not
    /// marked itself, are marked as `ignored`; `None` if none is.
    fn marks<'a>(&'a self, dir: &'a Node) -> Option<MarkFn<'a>> {
        let _ = dir;
        None
    }
    /// Returns messages on problems that were found when the directory was inspected.
    fn warnings(&self, dir: &Node) -> Vec<Vec<u8>> {
        let _ = dir;
        Vec::new()
    }
}
