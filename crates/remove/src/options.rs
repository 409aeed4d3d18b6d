//! Options of a removal.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_walk::{ConcurrencyHints, Model};

use crate::identity::Identity;
use crate::open_files::OpenFiles;

/// The action on each target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RemovalAction {
    /// Remove it, with everything below it.
    #[default]
    Delete,
    /// Count it and everything below it, and change nothing.
    DryRun,
    /// Move it to a trash on the same filesystem.
    Trash(TrashOptions),
}

/// Data for the trash that a library does not find out itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashOptions {
    /// The user's own trash, `$XDG_DATA_HOME/Trash`.
    pub home: Option<PathBuf>,
    /// The current local time as `YYYY-MM-DDThh:mm:ss`.
    pub deletion_date: String,
}

/// The most that a removal removes. It stops when there is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalLimit {
    /// Entries that are no directories.
    pub files: u64,
    /// Directories.
    pub directories: u64,
}

impl RemovalLimit {
    /// The most files, or directories, for which a key is enough.
    const KEY_MAX: u64 = 100;

    /// Returns the number that a user types to confirm the removal of so many: the number of files,
    /// or of the directories if there are no files. `None` if a key is enough.
    #[must_use]
    pub fn number_to_type(self) -> Option<u64> {
        let Self { files, directories } = self;
        let number = if files > 0 { files } else { directories };
        (files.max(directories) > Self::KEY_MAX).then_some(number)
    }
}

/// Options of a removal.
#[derive(Clone, Debug)]
pub struct RemovalOptions {
    /// The action.
    pub action: RemovalAction,
    /// Whether directories are removed. Otherwise a directory is a failure (EISDIR).
    pub recursive: bool,
    /// Whether a target that does not exist is no failure.
    pub ignore_missing: bool,
    /// Whether bytes and identities of entries are determined, which takes one more system call for
    /// each. A dry run always does.
    pub measure: bool,
    /// Directories that are not removed, nor anything that contains them: see
    /// [`working_directories`](crate::working_directories).
    pub protected: Vec<Identity>,
    /// The most that is removed, as the user has confirmed it; `None` for no limit.
    pub limit: Option<RemovalLimit>,
    /// The files that processes hold open, whose blocks the filesystem does not get back at once;
    /// `None` if that is not to be known.
    pub open_files: Option<Arc<OpenFiles>>,
    /// The number of threads: [`Model::Auto`] adapts it to the storage.
    pub model: Model,
    /// A fixed number of threads, which turns adaptation off.
    pub threads: Option<usize>,
    /// The known concurrency of devices.
    pub hints: ConcurrencyHints,
    /// Stops the removal soon after it is set.
    pub stop: Arc<AtomicBool>,
}

impl Default for RemovalOptions {
    /// Removes files and directories, with a number of threads that adapts to the storage.
    fn default() -> Self {
        Self {
            action: RemovalAction::Delete,
            recursive: true,
            ignore_missing: false,
            measure: false,
            protected: Vec::new(),
            limit: None,
            open_files: None,
            model: Model::Auto,
            threads: None,
            hints: ConcurrencyHints::default(),
            stop: Arc::default(),
        }
    }
}
