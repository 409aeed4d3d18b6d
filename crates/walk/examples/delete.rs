//! Deletes trees with several threads: `delete DIRECTORY...`

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fathom_walk::gatherer::{Builder, EntryPath, Inbox, Message, Pick, Policy, PolicyEntry};
use fathom_walk::{Error, FileType, Node};
use rustix::fs::{AtFlags, unlinkat};

const THREADS: usize = 8;

/// Files go to any thread. A directory goes to one when every message about what is in it has been
/// dropped.
struct Delete;

impl Policy for Delete {
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        match entry.file_type() {
            FileType::Directory => Pick::default().descend(),
            _ => Pick::send(entry.ino() as usize),
        }
    }

    fn processed(&self, dir: &Node) -> Option<usize> {
        dir.id().map(|(_, ino)| ino as usize)
    }
}

/// Removes everything below `roots`, and the roots; returns how much could not be removed.
pub(crate) fn delete(roots: &[impl AsRef<Path>]) -> Result<usize, Error> {
    let (gatherer, inboxes) = Builder::new().channels(THREADS).start(Delete)?;
    for root in roots {
        if let Err(error) = gatherer.add_root(root) {
            eprintln!("delete: cannot add '{}': {error}", root.as_ref().display());
        }
    }
    gatherer.no_more_roots();
    let failures = AtomicUsize::new(0);
    thread::scope(|scope| {
        for inbox in inboxes {
            scope.spawn(|| delete_all(inbox, &failures));
        }
    });
    gatherer.finish()?;
    Ok(failures.into_inner())
}

/// Each message is dropped once it has been acted on: that is what makes its directory processed.
fn delete_all(inbox: Inbox, failures: &AtomicUsize) {
    for message in inbox {
        let removed = match &message {
            Message::Entry(item) => remove(&item.path, AtFlags::empty()),
            Message::Processed(dir) => remove(&dir.path, AtFlags::REMOVEDIR),
            Message::Error(failed) => Err(failed.to_string()),
            _ => Ok(()),
        };
        if let Err(problem) = removed {
            eprintln!("delete: {problem}");
            failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Removes an entry relative to its open directory, so that a symbolic link that another process
/// puts into the path is not followed.
fn remove(path: &EntryPath, flags: AtFlags) -> Result<(), String> {
    let removed = path.at().and_then(|at| Ok(unlinkat(&at, at.name(), flags)?));
    removed.map_err(|error| format!("cannot remove '{path}': {error}"))
}

fn main() {
    let roots: Vec<_> = std::env::args_os().skip(1).collect();
    match delete(&roots) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(error) => {
            eprintln!("delete: {error}");
            std::process::exit(2);
        }
    }
}
