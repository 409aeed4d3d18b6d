//! The selection: identities, kinds of targets, and paths that are refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use fathom_io::FileTime;

use super::*;
use crate::{Identity, RemovalCause, working_directories};

fn identity(path: &Path) -> Identity {
    let meta = path.symlink_metadata().unwrap();
    Identity { dev: meta.dev(), ino: meta.ino() }
}

fn ctime(path: &Path) -> FileTime {
    let meta = path.symlink_metadata().unwrap();
    FileTime { sec: meta.ctime(), nsec: meta.ctime_nsec() as u32 }
}

#[test]
fn another_inode_than_the_one_that_was_shown_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["file", "dir", "other-file", "other-dir"] {
        let path = temp.path().join(name);
        if name.ends_with("file") { fs::write(path, "x") } else { fs::create_dir(path) }.unwrap();
    }
    fs::write(temp.path().join("dir/inside"), "x").unwrap();
    let shown = |name: &str, other: &str| {
        Target::below(temp.path(), name).identity(identity(&temp.path().join(other)))
    };
    let before = listing(temp.path());
    let wrong =
        [shown("file", "other-file"), shown("dir", "other-dir"), shown("file", "dir"), shown("dir", "file")];
    let (summary, log) = run(wrong, &measured());
    assert_eq!((summary.failures, summary.files, summary.directories), (4, 0, 0));
    let causes: Vec<_> = log.failed.lock().unwrap().iter().map(|failure| failure.cause).collect();
    assert_eq!(causes, [RemovalCause::Replaced; 4]);
    assert_eq!(listing(temp.path()), before);
    let (summary, _) = run([shown("file", "file"), shown("dir", "dir")], &measured());
    assert_eq!((summary.failures, summary.files, summary.directories), (0, 2, 1));
}

/// Once, the inode that was there took the place of the listed one before the question.
#[test]
fn the_inode_of_a_list_stays_the_one_that_is_shown() {
    let temp = tempfile::tempdir().unwrap();
    let made = |name: &str| {
        fs::create_dir(temp.path().join(name)).unwrap();
        identity(&temp.path().join(name))
    };
    let [a, b] = ["a", "b"].map(made);
    let listed = |id| Target::below(temp.path(), "a").identity(id).shown_now().map(drop);
    assert_eq!((listed(a), listed(b)), (Ok(()), Err(RemovalCause::Replaced)));
}

/// Once, a file was missing in the count because a path that cannot be removed had the same place.
#[test]
fn a_path_that_cannot_be_removed_hides_nothing_from_the_count() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("d");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("f"), "x").unwrap();
    let no_directory = Target::path(dir.join("f/"));
    let changed = Target::path(dir.join("f")).ctime(FileTime { sec: 1, nsec: 0 });
    let (file, all) = (Target::path(dir.join("f")), Target::path(&dir));
    for targets in [
        vec![no_directory.clone(), all.clone()],
        vec![all.clone(), no_directory],
        vec![changed.clone(), all.clone()],
        vec![changed, file.clone(), file, all],
    ] {
        let plan = run(targets.clone(), &dry_run()).0;
        assert_eq!((plan.files, plan.directories, plan.failures), (1, 1, 1), "{targets:?}");
    }
}

#[test]
fn a_file_that_was_changed_since_it_was_shown_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    fs::write(&file, "x").unwrap();
    let shown = Target::path(&file).identity(identity(&file)).ctime(FileTime { sec: 1, nsec: 0 });
    let (_, log) = run([shown], &measured());
    assert_eq!(
        log.messages(temp.path()),
        ["cannot remove 'file': It has been replaced or changed since it was shown"]
    );
    let (summary, _) = run([Target::path(&file).ctime(ctime(&file))], &measured());
    assert_eq!((summary.files, summary.failures), (1, 0));
}

#[test]
fn a_path_below_a_root_leads_through_no_link() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("root/dir")).unwrap();
    fs::create_dir(temp.path().join("outside")).unwrap();
    fs::write(temp.path().join("outside/file"), "x").unwrap();
    symlink("../outside", temp.path().join("root/link")).unwrap();
    symlink("dir", temp.path().join("root/inner")).unwrap();
    let root = temp.path().join("root");
    let below = ["link/file", "inner/file", "../outside/file", "dir/../../outside/file"];
    let (summary, log) = run(below.map(|path| Target::below(&root, path)), &measured());
    assert_eq!((summary.failures, summary.files), (4, 0));
    let causes: Vec<_> = log.failed.lock().unwrap().iter().map(|failure| failure.cause).collect();
    let (link, outside) = (RemovalCause::Link, RemovalCause::Outside);
    assert_eq!(causes, [link, link, outside, outside]);
    // The root itself may be named through a link.
    let (summary, _) = run([Target::below(root.join("link"), "file")], &measured());
    assert_eq!((summary.files, summary.failures), (1, 0));
}

#[test]
fn targets_that_cannot_be_removed_are_failures_and_the_others_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    fs::write(temp.path().join("file"), "x").unwrap();
    fs::write(temp.path().join("last"), "x").unwrap();
    symlink("dir", temp.path().join("link")).unwrap();
    let paths = ["missing", "missing/file", "file/", "link/", "dir", "last"];
    let targets = || paths.map(|path| Target::path(temp.path().join(path)));
    let options = RemovalOptions { recursive: false, ..measured() };
    let (summary, log) = run(targets(), &options);
    assert_eq!(
        log.messages(temp.path()),
        [
            "cannot remove 'dir': Is a directory (os error 21)",
            "cannot remove 'file/': Not a directory (os error 20)",
            "cannot remove 'link/': Not a directory (os error 20)",
            "cannot remove 'missing': No such file or directory (os error 2)",
            "cannot remove 'missing/file': No such file or directory (os error 2)",
        ]
    );
    assert_eq!((summary.files, summary.directories), (1, 0));
    assert_eq!(listing(temp.path()), ["dir", "file", "link"]);
    let options = RemovalOptions { ignore_missing: true, ..measured() };
    let (summary, log) =
        run(["missing", "missing/file"].map(|path| Target::path(temp.path().join(path))), &options);
    assert_eq!((summary.failures, log.messages(temp.path())), (0, vec![]));
}

#[test]
fn the_working_directory_is_not_removed_nor_anything_that_contains_it() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    fs::write(temp.path().join("a/file"), "x").unwrap();
    let protected = vec![identity(&temp.path().join("a"))];
    let options = RemovalOptions { protected, ..measured() };
    let (_, log) = run([Target::path(temp.path().join("a"))], &options);
    assert_eq!(log.messages(temp.path()), ["cannot remove 'a': It is the working directory or contains it"]);
    assert_eq!(listing(temp.path()), ["a", "a/b", "a/file"]);
    let here = std::env::current_dir().unwrap();
    let expected: Vec<_> = here.ancestors().map(identity).collect();
    assert_eq!(working_directories().unwrap(), expected);
}
