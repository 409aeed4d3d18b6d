//! Removal of directory trees by several threads. The gatherer of `fathom-walk` reads the tree;
//! consumers unlink each entry relative to its open directory.
//!
//! Owns: the order of removal, and the first error. Does not own: the selection of trees.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fathom_walk::gatherer::{
    Builder, EntryPath, Failed, Gatherer, Inbox, Message, Pick, Policy, PolicyEntry,
};
use fathom_walk::{FileType, Node};
use rustix::fs::{AtFlags, unlinkat};

use crate::error::{Error, Op, os_error_text};

/// Number of threads that unlink entries.
const THREADS: usize = 8;

/// Removes the tree at `path`, or a file or symbolic link there. No symbolic link is followed, and
/// the depth of the tree is not limited.
///
/// # Errors
/// With [`Op::Remove`] if anything could not be read or unlinked: the first such error, with its
/// path. Everything else is removed.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Error> {
    remove_with(path, Builder::start)
}

/// Removes the tree at `path` as [`remove_tree`] does. Succeeds if nothing is there.
///
/// # Errors
/// As [`remove_tree`].
pub(crate) fn remove_tree_if_present(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => remove_tree(path),
    }
}

/// Sends the entries of a directory to one channel: unlinking takes the lock of the directory, so a
/// second thread would only wait for it. A directory is sent when everything in it has been
/// removed.
struct Removal;

impl Policy for Removal {
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        match entry.file_type() {
            FileType::Directory => Pick::default().descend(),
            _ => Pick::send(channel_of(Some(entry.dir()))),
        }
    }

    fn processed(&self, dir: &Node) -> Option<usize> {
        Some(channel_of(dir.parent()))
    }
}

/// Returns the channel for the entries of `dir`.
fn channel_of(dir: Option<&Arc<Node>>) -> usize {
    dir.and_then(|dir| dir.id()).map_or(0, |(_, ino)| ino as usize)
}

fn remove_with<E>(
    path: &Path,
    start: impl FnOnce(Builder, Removal) -> Result<(Gatherer, Vec<Inbox>), E>,
) -> Result<(), Error>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let root = || path.display().to_string();
    let (gatherer, inboxes) = start(Builder::new().channels(THREADS), Removal)
        .map_err(|error| Error::new(Op::Remove, root(), error))?;
    gatherer.add_root(path).map_err(|error| Error::new(Op::Remove, root(), error))?;
    gatherer.no_more_roots();
    let first_error = FirstError::default();
    thread::scope(|scope| {
        for inbox in inboxes {
            let consume = || inbox.for_each(|message| first_error.keep(process(&message, path)));
            // A consumer without a thread is dropped, which closes its channel.
            let started = thread::Builder::new().name("remove".to_owned()).spawn_scoped(scope, consume);
            first_error.keep(started.map(drop).map_err(|error| Error::new(Op::Remove, root(), error)));
        }
    });
    let summary = gatherer.finish().map_err(|error| Error::new(Op::Remove, root(), error))?;
    match first_error.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None if !summary.complete => Err(Error::new(Op::Remove, root(), "the walk of it is not complete")),
        None => Ok(()),
    }
}

/// The first error in time. A directory that is not empty because an entry in it could not be
/// removed is a later one.
#[derive(Default)]
struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    fn keep(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// Acts on a message. Its token must stay until the error is kept, and no longer: see
/// [`FirstError`].
fn process(message: &Message, root: &Path) -> Result<(), Error> {
    match message {
        Message::Entry(item) => unlink(&item.path, AtFlags::empty()),
        Message::Processed(dir) => unlink(&dir.path, AtFlags::REMOVEDIR),
        Message::Error(Failed { path, operation, errno, .. }) => {
            let cause = os_error_text(&(*errno).into());
            let failure = format!("cannot {operation} '{path}': {cause}");
            Err(Error::new(Op::Remove, root.display().to_string(), failure))
        }
        _ => Ok(()),
    }
}

fn unlink(path: &EntryPath, flags: AtFlags) -> Result<(), Error> {
    let unlinked = path.at().and_then(|at| Ok(unlinkat(&at, at.name(), flags)?));
    unlinked.map_err(|error| Error::new(Op::Remove, path.to_string(), error))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use fathom_io::blocking::Blocking;
    use fathom_io::sim::{Faults, Rates};

    use super::*;

    fn is_empty(dir: &Path) -> bool {
        fs::read_dir(dir).unwrap().count() == 0
    }

    #[test]
    fn a_deep_tree_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let mut dir = temp.path().join("tree");
        for level in 0..1000 {
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("file"), "x").unwrap();
            dir.push(if level % 2 == 0 { "a" } else { "b" });
        }
        remove_tree(&temp.path().join("tree")).unwrap();
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn a_wide_tree_with_names_of_any_bytes_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let tree = temp.path().join("tree");
        fs::create_dir(&tree).unwrap();
        for number in 0..2000 {
            fs::write(tree.join(number.to_string()), "").unwrap();
        }
        let names: [&[u8]; 5] = [b"\xff\xfe", b"a\nb", b"\x1b[0m", b" ", b"-rf *"];
        for (number, name) in (0..100).zip(names.into_iter().cycle()) {
            let name = OsStr::from_bytes(name);
            let dir = tree.join(format!("d{number}")).join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(name), "x").unwrap();
        }
        let _socket = UnixListener::bind(tree.join("socket")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let [kept, tree, link] = ["kept", "tree", "link"].map(|name| temp.path().join(name));
        fs::create_dir_all(kept.join("dir")).unwrap();
        fs::create_dir(&tree).unwrap();
        for (name, target) in [("dir", "../kept"), ("dangling", "nothing"), ("loop", "loop")] {
            symlink(target, tree.join(name)).unwrap();
        }
        symlink("kept", &link).unwrap();
        remove_tree(&tree).unwrap();
        remove_tree(&link).unwrap();
        assert!(kept.join("dir").is_dir());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_path_is_an_error_unless_it_may_be_missing() {
        let path = Path::new("/no/such/tree");
        let error = remove_tree(path).unwrap_err();
        let cause = "cannot access '/no/such/tree': No such file or directory";
        assert_eq!(error.to_string(), format!("cannot remove '/no/such/tree': {cause}"));
        remove_tree_if_present(path).unwrap();
    }

    /// Creates a tree with a file at depth 2 and removes it with faults of `rates`. Returns the
    /// path of the tree and the error.
    fn failure(temp: &Path, rates: Rates) -> (PathBuf, Error) {
        let tree = temp.join("tree");
        fs::create_dir_all(tree.join("sub/dir")).unwrap();
        let faults = Faults::new(1, rates);
        let error = remove_with(&tree, |builder, policy| {
            builder.start_with(policy, move || Ok(faults.over(Blocking)))
        });
        (tree, error.unwrap_err())
    }

    #[test]
    fn failures_of_the_walk_are_errors_with_operation_and_path() {
        let temp = tempfile::tempdir().unwrap();
        let (tree, error) = failure(temp.path(), Rates { open_eacces: 1.0, ..Rates::default() });
        let path = tree.display();
        let cause = format!("cannot open directory '{path}': Permission denied");
        assert_eq!((error.op(), error.cause()), (Op::Remove, cause));
        let rates = Rates { unknown_type: 1.0, stat_eio: 1.0, ..Rates::default() };
        let (_, error) = failure(temp.path(), rates);
        assert_eq!(error.cause(), format!("cannot stat '{path}/sub': Input/output error"));
        assert!(tree.join("sub/dir").is_dir());
        remove_tree(&tree).unwrap();
        assert!(is_empty(temp.path()));
    }

    #[test]
    fn an_entry_that_cannot_be_unlinked_is_the_error_and_the_rest_is_removed() {
        if rustix::process::geteuid().is_root() {
            println!("skipped: root may unlink everything");
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        let tree = temp.path().join("tree");
        let locked = tree.join("locked");
        fs::create_dir_all(tree.join("other/dir")).unwrap();
        fs::create_dir(&locked).unwrap();
        fs::write(locked.join("file"), "x").unwrap();
        for (mode, cause) in [
            (0o555, format!("cannot remove '{}': Permission denied", locked.join("file").display())),
            (
                0,
                format!(
                    "cannot remove '{}': cannot open directory '{}': Permission denied",
                    tree.display(),
                    locked.display()
                ),
            ),
        ] {
            fs::set_permissions(&locked, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(remove_tree(&tree).unwrap_err().to_string(), cause);
            assert_eq!(fs::read_dir(&tree).unwrap().count(), 1);
        }
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(is_empty(temp.path()));
    }
}
