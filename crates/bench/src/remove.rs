//! Removal of the benchmarks' files, by `fathom-remove`.
//!
//! Owns: the first error. Does not own: the selection of trees.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_remove::{Observer, RemovalFailure, RemovalOperation, RemovalOptions, Target, remove};

use crate::error::{Error, Op, os_error_text};

/// Removes the tree at `path`, or a file or symbolic link there. No symbolic link is followed, and
/// the depth of the tree is not limited.
///
/// # Errors
/// With [`Op::Remove`] if anything could not be read or unlinked: the first such error, with its
/// path. Everything else is removed.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Error> {
    remove_with(path, false)
}

/// Removes the tree at `path` as [`remove_tree`] does. Succeeds if nothing is there.
///
/// # Errors
/// As [`remove_tree`].
pub(crate) fn remove_tree_if_present(path: &Path) -> Result<(), Error> {
    remove_with(path, true)
}

fn remove_with(path: &Path, ignore_missing: bool) -> Result<(), Error> {
    let first = Arc::new(FirstFailure::default());
    let options = RemovalOptions { ignore_missing, ..RemovalOptions::default() };
    let removed = remove([Target::path(path)], &options, first.clone(), &mut |_| ());
    let root = || path.display().to_string();
    removed.map_err(|error| Error::new(Op::Remove, root(), error))?;
    match first.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(failure) => Err(error_of(&failure, root())),
        None => Ok(()),
    }
}

/// The first failure in time.
#[derive(Default)]
struct FirstFailure(Mutex<Option<RemovalFailure>>);

impl Observer for FirstFailure {
    fn failed(&self, failure: &RemovalFailure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| failure.clone());
    }
}

fn error_of(failure: &RemovalFailure, root: String) -> Error {
    let cause = failure.cause.errno().map(|errno| os_error_text(&errno.into()));
    let cause = cause.unwrap_or_else(|| failure.cause.to_string());
    let path = String::from_utf8_lossy(&failure.path).into_owned();
    match failure.operation {
        RemovalOperation::Remove => Error::new(Op::Remove, path, cause),
        operation => Error::new(Op::Remove, root, format!("cannot {operation} '{path}': {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_and_a_link_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let [kept, tree, link] = ["kept", "tree", "link"].map(|name| temp.path().join(name));
        fs::create_dir_all(tree.join("dir")).unwrap();
        fs::create_dir(&kept).unwrap();
        symlink("kept", &link).unwrap();
        symlink("../kept", tree.join("dir/link")).unwrap();
        remove_tree(&tree).unwrap();
        remove_tree(&link).unwrap();
        assert!(kept.is_dir());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_path_is_an_error_unless_it_may_be_missing() {
        let path = Path::new("/no/such/tree");
        let error = remove_tree(path).unwrap_err();
        assert_eq!(error.to_string(), "cannot remove '/no/such/tree': No such file or directory");
        remove_tree_if_present(path).unwrap();
    }

    #[test]
    fn the_first_failure_is_the_error_with_its_operation() {
        let failure = |operation, cause| RemovalFailure { path: b"/t/f".to_vec(), operation, cause };
        let denied = fathom_io::Errno::ACCESS.into();
        let error = error_of(&failure(RemovalOperation::Remove, denied), "/t".to_owned());
        assert_eq!(error.to_string(), "cannot remove '/t/f': Permission denied");
        let walk = RemovalOperation::Walk(fathom_walk::Operation::Open);
        let error = error_of(&failure(walk, denied), "/t".to_owned());
        assert_eq!(error.to_string(), "cannot remove '/t': cannot open directory '/t/f': Permission denied");
    }
}
