//! Removal of files and directory trees: only the inodes that were selected, beneath their roots.
//!
//! [`remove`] is the one function that deletes. It opens the parent directory of each target
//! beneath the root through no symbolic link, compares the inode with the one that was shown,
//! crosses no mount, and makes every call relative to an open directory. So a process that renames
//! directories or puts links in their place meanwhile cannot lead it out of the selected trees.
//!
//! ```
//! use std::sync::Arc;
//! use fathom_remove::{RemovalAction, RemovalOptions, Target, remove};
//!
//! # let temp = tempfile::tempdir()?;
//! # std::fs::create_dir(temp.path().join("old"))?;
//! # std::fs::write(temp.path().join("old/a"), "1234")?;
//! let targets = || [Target::below(temp.path(), "old")];
//! // Count first, then remove.
//! let dry_run = RemovalOptions { action: RemovalAction::DryRun, ..RemovalOptions::default() };
//! let plan = remove(targets(), &dry_run, Arc::new(()), &mut |_| ())?;
//! assert_eq!((plan.files, plan.directories, plan.failures), (1, 1, 0));
//! let done = remove(targets(), &RemovalOptions::default(), Arc::new(()), &mut |_| ())?;
//! assert_eq!((done.files, done.directories), (1, 1));
//! assert!(!temp.path().join("old").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: the order of removal, identities, mounts, the trash, sums. Does not own: the selection,
//! questions to the user, messages. Prints nothing.

mod failure;
mod identity;
mod observer;
mod open_files;
mod options;
mod protect;
mod removal;
mod running;
mod shared_places;
mod summary;
mod target;
#[cfg(test)]
mod tests;
mod trash;

use std::sync::Arc;

use fathom_io::sys;
use fathom_walk::{Error, Options, Progress, RootSource, Summary, run_unordered};

use removal::{FIELDS, Removal, Remover};
use running::TargetSource;
use shared_places::SharedPlaces;

pub use failure::{RemovalCause, RemovalFailure, RemovalOperation};
pub use fathom_io::Errno;
pub use identity::Identity;
pub use observer::{Observer, RemovedEntry};
pub use open_files::{DeletedFile, FileHolder, OpenFiles};
pub use options::{RemovalAction, RemovalLimit, RemovalOptions, TrashOptions};
pub use protect::working_directories;
pub use summary::RemovalSummary;
pub use target::Target;

/// Removes targets, in any order and several at once. Continues after failures, each of which is
/// one call of [`Observer::failed`]. A dry run counts an entry that several targets share once; it
/// keeps all targets in memory for that.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// If the model cannot run here.
pub fn remove(
    targets: impl IntoIterator<Item = Target>,
    options: &RemovalOptions,
    observer: Arc<dyn Observer>,
    watch: &mut dyn FnMut(Progress),
) -> Result<RemovalSummary, Error> {
    if let RemovalAction::Trash(trash_options) = &options.action {
        let removal = Removal::new(options, observer);
        trash::trash(&removal, targets.into_iter(), trash_options);
        return Ok(removal.sums.summary(removal.is_stopped()));
    }
    remove_over(targets, options, observer, |walk, remover, source| {
        run_unordered(walk, remover, source, watch)
    })
}

/// Removes targets by a walk that `run` starts.
fn remove_over(
    targets: impl IntoIterator<Item = Target>,
    options: &RemovalOptions,
    observer: Arc<dyn Observer>,
    run: impl FnOnce(Options, Remover, &mut dyn RootSource) -> Result<Summary, Error>,
) -> Result<RemovalSummary, Error> {
    let mut removal = Removal::new(options, observer);
    let mut targets: Box<dyn Iterator<Item = Target>> = Box::new(targets.into_iter());
    if removal.is_dry_run {
        let all: Vec<_> = targets.collect();
        removal.places = SharedPlaces::of(&all);
        targets = Box::new(all.into_iter());
    }
    let removal = Arc::new(removal);
    let mut source = TargetSource::new(targets, &removal);
    let walk = run(walk_options(options), Remover(removal.clone()), &mut source)?;
    let summary = removal.sums.summary(!walk.complete);
    Ok(RemovalSummary { exceeded: removal.has_exceeded(), ..summary })
}

fn walk_options(options: &RemovalOptions) -> Options {
    Options::default()
        .model(options.model)
        .threads(options.threads)
        .hints(options.hints.clone())
        .fields(FIELDS)
        // A directory is read before its entries are removed, a wide one in batches: a server may
        // count entries to continue where it stopped. A further walk finds those that it leaves
        // out because of that.
        .inspect_directories(true)
        .fds_max(Some(sys::fd_limit().saturating_sub(running::parents_max())))
}

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
