//! Removes what is marked, by the crate `fathom-remove`, and logs it. A disk that is full is no
//! reason to remove nothing, so a log that cannot be written is only reported.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_explore::remover::{
    Removal, RemovalKind, RemovalOutcome, RemovalPlan, RemovalProgress, RemovedAmount, Remover,
};
use fathom_io::filesystem::Space;
use fathom_remove::{
    Observer, OpenFiles, RemovalAction, RemovalFailure, RemovalLimit, RemovalOptions, RemovalSummary,
    RemovedEntry, Target, remove, working_directories,
};
use fathom_text::quote::Charset;
use fathom_walk::Error;

use super::args::ExploreArgs;
use crate::shared::output::reason;
use crate::shared::removal::{RemovalLog, failure_message, program, trash_options, xdg_directory};
use crate::shared::start::AutoStart;

/// The message about a removal that stops at its limit.
const MORE: &[u8] = b"stopped: more entries appeared after the count";

/// Returns the remover for entries of this machine; `None` if nothing may be removed.
pub(crate) fn open_remover(args: &ExploreArgs, charset: Charset) -> Option<Box<dyn Remover>> {
    if args.is_read_only {
        return None;
    }
    let start = AutoStart::read(super::NAME.as_bytes(), charset, args.model, args.threads.is_some());
    let options = RemovalOptions {
        model: args.model,
        threads: args.threads,
        hints: start.hints,
        measure: true,
        ..RemovalOptions::default()
    };
    Some(Box::new(TreeRemover { options, charset }))
}

/// Removes entries of trees of this machine.
struct TreeRemover {
    options: RemovalOptions,
    charset: Charset,
}

impl TreeRemover {
    fn run(
        &self,
        action: RemovalAction,
        limit: Option<RemovalLimit>,
        removals: &[Removal],
        watch: &Arc<RemovalWatch>,
        progress: &mut dyn FnMut(RemovalProgress),
        stop: &Arc<AtomicBool>,
    ) -> Result<RemovalSummary, Error> {
        let options = RemovalOptions {
            limit,
            // Without a working directory, nothing contains it.
            protected: working_directories().unwrap_or_default(),
            open_files: (action == RemovalAction::DryRun).then(|| Arc::new(OpenFiles::read())),
            action,
            stop: stop.clone(),
            ..self.options.clone()
        };
        let tell = &mut |_| progress(watch.progress());
        remove(removals.iter().map(target), &options, watch.clone(), tell)
    }

    fn watch(&self, log: Option<RemovalLog>, wants_entries: bool) -> Arc<RemovalWatch> {
        Arc::new(RemovalWatch {
            charset: self.charset,
            wants_entries,
            log: log.map(Mutex::new),
            entries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            first_failure: Mutex::default(),
            log_failure: Mutex::default(),
        })
    }
}

impl Remover for TreeRemover {
    fn plan(&mut self, removals: &[Removal], stop: &Arc<AtomicBool>) -> Result<RemovalPlan, Vec<u8>> {
        let watch = self.watch(None, false);
        let plan = self.run(RemovalAction::DryRun, None, removals, &watch, &mut |_| (), stop);
        let plan = plan.map_err(|error| error.to_string().into_bytes())?;
        match watch.take_failure() {
            Some(failure) if plan.possible.files + plan.possible.directories == 0 => Err(failure),
            failure => Ok(RemovalPlan {
                possible: plan.possible,
                bytes: plan.allocated,
                freed: (plan.failures == 0 && !plan.stopped).then_some(plan.freed),
                held: plan.held,
                holder: plan.holder.map(program),
                kept: failure,
            }),
        }
    }

    fn remove(
        &mut self,
        kind: RemovalKind,
        limit: RemovalLimit,
        removals: &[Removal],
        progress: &mut dyn FnMut(RemovalProgress),
        stop: &Arc<AtomicBool>,
    ) -> RemovalOutcome {
        let (action, word) = match kind {
            RemovalKind::Delete => (RemovalAction::Delete, "remove"),
            RemovalKind::Trash => (RemovalAction::Trash(trash_options()), "trash"),
        };
        let (log, refused) = match open_log(word) {
            Ok(log) => (Some(log), None),
            Err(error) => (None, Some(error)),
        };
        let watch = self.watch(log, true);
        if let Some(error) = refused {
            watch.keep_log_failure(&error);
        }
        let trash_home = match &action {
            RemovalAction::Trash(options) => Some(options.home.clone()),
            _ => None,
        };
        let ended = self.run(action, Some(limit), removals, &watch, progress, stop);
        let (summary, error) = match ended {
            Ok(summary) if summary.exceeded => (summary, Some(MORE.to_vec())),
            Ok(summary) => (summary, None),
            Err(error) => (RemovalSummary::default(), Some(error.to_string().into_bytes())),
        };
        RemovalOutcome {
            removed: removals.iter().map(is_gone).collect(),
            trashes: trash_home.map(|home| trashes(removals, home.as_deref())).unwrap_or_default(),
            amount: RemovedAmount {
                files: summary.files,
                directories: summary.directories,
                bytes: summary.allocated,
            },
            free_bytes: removals.first().and_then(free_bytes),
            progress: watch.progress(),
            first_failure: error.or_else(|| watch.take_failure()),
        }
    }
}

fn target(removal: &Removal) -> Target {
    let target = Target::below(as_path(&removal.root), removal.below.clone()).identity(removal.identity);
    match removal.ctime {
        Some(ctime) => target.ctime(ctime),
        None => target,
    }
}

/// Returns the free bytes of the filesystem of an entry that was removed, for users other than
/// root.
fn free_bytes(removal: &Removal) -> Option<u64> {
    let path = as_path(&removal.root).join(as_path(&removal.below));
    Space::of(path.parent()?).map(|space| space.free)
}

/// Returns whether the inode that was shown is no longer at its place.
fn is_gone(removal: &Removal) -> bool {
    let path = as_path(&removal.root).join(as_path(&removal.below));
    match path.symlink_metadata() {
        Ok(meta) => (meta.dev(), meta.ino()) != (removal.identity.dev, removal.identity.ino),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns the trashes in the trees of these entries: of the user, and at the tops of the mounts of
/// the trees. Each is the path of a root, and the path below it.
fn trashes(removals: &[Removal], home: Option<&Path>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut roots: Vec<_> = removals.iter().map(|removal| (&removal.root, removal.identity.dev)).collect();
    roots.sort_unstable();
    roots.dedup();
    let mut found = Vec::new();
    for (root, dev) in roots {
        let Ok(top) = as_path(root).canonicalize() else { continue };
        let is_on = |path: &Path| path.metadata().is_ok_and(|meta| meta.dev() == dev);
        let mount = top.ancestors().take_while(|above| is_on(above)).last();
        let uid = rustix::process::geteuid().as_raw();
        let at_mount = mount.into_iter().flat_map(|mount| {
            [mount.join(".Trash").join(uid.to_string()), mount.join(format!(".Trash-{uid}"))]
        });
        let home = home.and_then(|home| home.canonicalize().ok());
        let inside = home.into_iter().chain(at_mount).filter(|trash| is_on(trash)).filter_map(|trash| {
            let below = trash.strip_prefix(&top).ok()?.as_os_str().as_bytes().to_vec();
            (!below.is_empty()).then(|| (root.clone(), below))
        });
        found.extend(inside);
    }
    found
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Opens the log of the explorer, `$XDG_STATE_HOME/fathom/removed.jsonl`.
fn open_log(action: &'static str) -> io::Result<RemovalLog> {
    let path = log_path().ok_or_else(|| io::Error::other("HOME is not set"))?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    RemovalLog::open(&path, action)
}

/// Returns the path of the log.
pub(crate) fn log_path() -> Option<PathBuf> {
    Some(xdg_directory("XDG_STATE_HOME", ".local/state")?.join("fathom/removed.jsonl"))
}

/// Receives the events of a removal.
struct RemovalWatch {
    charset: Charset,
    wants_entries: bool,
    log: Option<Mutex<RemovalLog>>,
    entries: AtomicU64,
    failures: AtomicU64,
    first_failure: Mutex<Option<Vec<u8>>>,
    log_failure: Mutex<Option<Vec<u8>>>,
}

impl RemovalWatch {
    fn progress(&self) -> RemovalProgress {
        RemovalProgress {
            entries: self.entries.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }

    fn keep_log_failure(&self, error: &io::Error) {
        let message = [b"not logged: ", &reason(error)[..]].concat();
        self.log_failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }

    /// Returns the first failure; if there is none, the failure of the log.
    fn take_failure(&self) -> Option<Vec<u8>> {
        let take =
            |failure: &Mutex<Option<Vec<u8>>>| failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        take(&self.first_failure).or_else(|| take(&self.log_failure))
    }
}

impl Observer for RemovalWatch {
    fn wants_entries(&self) -> bool {
        self.wants_entries
    }

    fn removed(&self, entries: &[RemovedEntry]) {
        self.entries.fetch_add(entries.len() as u64, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let written = log.lock().unwrap_or_else(PoisonError::into_inner).append(entries);
        if let Err(error) = written {
            self.keep_log_failure(&error);
        }
    }

    fn failed(&self, failure: &RemovalFailure) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let message = failure_message(failure, self.charset);
        self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trash_inside_the_tree_is_found() {
        let temp = tempfile::tempdir().unwrap();
        let (root, home) = (temp.path().join("root"), temp.path().join("root/data/Trash"));
        std::fs::create_dir_all(&home).unwrap();
        let dev = root.metadata().unwrap().dev();
        let removal = |dev| Removal {
            root: root.as_os_str().as_bytes().to_vec(),
            below: b"f".to_vec(),
            identity: fathom_remove::Identity { dev, ino: 1 },
            ctime: None,
        };
        let found = [(removal(dev).root, b"data/Trash".to_vec())];
        assert_eq!(trashes(&[removal(dev), removal(dev)], Some(&home)), found);
        assert_eq!(trashes(&[removal(dev + 1)], Some(&home)), [], "it is for another filesystem");
        let outside = temp.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        assert_eq!(trashes(&[removal(dev)], Some(&outside)), []);
        assert_eq!(trashes(&[removal(dev)], None), []);
    }
}
