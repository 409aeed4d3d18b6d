//! Tests of removals in real directories.

mod attack;
mod faults;
mod links;
mod targets;
mod trash;
mod trees;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::{
    Observer, RemovalAction, RemovalFailure, RemovalOptions, RemovalSummary, RemovedEntry, Target, remove,
};

/// Records all events.
#[derive(Debug, Default)]
struct EventLog {
    removed: Mutex<Vec<RemovedEntry>>,
    failed: Mutex<Vec<RemovalFailure>>,
}

impl Observer for EventLog {
    fn wants_entries(&self) -> bool {
        true
    }

    fn removed(&self, entries: &[RemovedEntry]) {
        self.removed.lock().unwrap().extend_from_slice(entries);
    }

    fn failed(&self, failure: &RemovalFailure) {
        self.failed.lock().unwrap().push(failure.clone());
    }
}

impl EventLog {
    /// Returns the messages about failures, sorted, with paths relative to `base`.
    fn messages(&self, base: &Path) -> Vec<String> {
        let prefix = format!("{}/", base.display());
        let failed = self.failed.lock().unwrap();
        let mut messages: Vec<_> =
            failed.iter().map(|failure| failure.to_string().replace(&prefix, "")).collect();
        messages.sort();
        messages
    }

    /// Returns the removed paths, sorted, relative to `base`.
    fn paths(&self, base: &Path) -> Vec<String> {
        let prefix = [base.as_os_str().as_bytes(), b"/"].concat();
        let removed = self.removed.lock().unwrap();
        let below = |entry: &RemovedEntry| entry.path.strip_prefix(&prefix[..]).unwrap().to_vec();
        let mut paths: Vec<_> =
            removed.iter().map(|entry| String::from_utf8_lossy(&below(entry)).into_owned()).collect();
        paths.sort();
        paths
    }
}

fn measured() -> RemovalOptions {
    RemovalOptions { measure: true, ..RemovalOptions::default() }
}

fn dry_run() -> RemovalOptions {
    RemovalOptions { action: RemovalAction::DryRun, ..RemovalOptions::default() }
}

fn run(
    targets: impl IntoIterator<Item = Target>,
    options: &RemovalOptions,
) -> (RemovalSummary, Arc<EventLog>) {
    let log = Arc::new(EventLog::default());
    let summary = remove(targets, options, log.clone(), &mut |_| ()).unwrap();
    assert_eq!(summary.failures as usize, log.failed.lock().unwrap().len());
    (summary, log)
}

/// Removes one tree, and asserts that nothing fails.
#[track_caller]
fn removed(path: &Path) -> RemovalSummary {
    let (summary, log) = run([Target::path(path)], &measured());
    assert_eq!(log.messages(path), [""; 0]);
    assert!(path.symlink_metadata().is_err());
    summary
}

/// Returns every path below `dir`, sorted.
fn listing(dir: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().strip_prefix(dir).unwrap().display().to_string());
            left.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
        }
    }
    found.sort();
    found
}
