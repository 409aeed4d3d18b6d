//! The entries that an inventory leaves out, and the interface that selects them.

use std::fmt::Debug;
use std::sync::Arc;

use fathom_walk::{Names, Node, Opened};
use serde::{Deserialize, Serialize};

/// The criteria by which entries are left out. The journal of an earlier run records its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Entries whose names or paths match one of these patterns.
    pub patterns: Vec<Vec<u8>>,
    /// Whether entries that files like `.gitignore` exclude are left out.
    pub ignores_vcs: bool,
    /// The number of levels below a root from which on the contents of directories are left out;
    /// the directories themselves are recorded as skipped.
    pub max_depth: Option<usize>,
}

impl LeftOut {
    /// Whether only depth decides.
    #[must_use]
    pub fn is_of_depth_alone(&self) -> bool {
        self.patterns.is_empty() && !self.ignores_vcs
    }
}

/// Makes a [`Selection`] of what was asked for; none if everything is wanted.
pub type Selector = fn(&LeftOut) -> Option<Arc<dyn Selection>>;

/// Decides which entries are left out, with everything below them. Asked on the walk's workers.
pub trait Selection: Debug + Send + Sync {
    /// Whether directories have to be looked into before their names are chosen from.
    fn looks_into_directories(&self) -> bool {
        false
    }
    /// Looks into a directory; the bytes of memory that it keeps for that, roughly.
    fn opened(&self, dir: &Opened<'_>) -> usize {
        let _ = dir;
        0
    }
    /// Drops names that are left out. Of a name whose type is not known yet, only if it is left out
    /// whatever it is.
    fn select(&self, dir: &Node, names: &mut Names);
    /// Whether the entry `name` is left out, now that its type is known.
    fn leaves_out(&self, dir: &Node, name: &[u8], is_dir: bool) -> bool;
    /// Messages on what was found wrong when a directory was looked into.
    fn warnings(&self, dir: &Node) -> Vec<Vec<u8>> {
        let _ = dir;
        Vec::new()
    }
}
