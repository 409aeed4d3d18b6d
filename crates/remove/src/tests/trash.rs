//! The user's own trash. Trashes at the top of a mount need one: the tests of the command have it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use fathom_io::fault;

use super::*;
use crate::{Identity, RemovalCause, TrashOptions};

const DATE: &str = "2026-01-02T03:04:05";

fn into_trash(base: &Path) -> RemovalOptions {
    let trash = TrashOptions { home: Some(base.join("data/Trash")), deletion_date: DATE.to_owned() };
    RemovalOptions { action: RemovalAction::Trash(trash), ..measured() }
}

/// Returns the original paths by name in the trash, after checking the files of the information.
fn infos(base: &Path) -> Vec<(String, String)> {
    let [info, files] = ["info", "files"].map(|dir| base.join("data/Trash").join(dir));
    let mut found: Vec<_> = fs::read_dir(info)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap();
            files.join(name).symlink_metadata().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.strip_prefix("[Trash Info]\nPath=").unwrap();
            let original = text.strip_suffix(&format!("\nDeletionDate={DATE}\n")).unwrap();
            (name.to_string_lossy().into_owned(), original.to_owned())
        })
        .collect();
    found.sort();
    assert_eq!(found.len(), fs::read_dir(files).unwrap().count());
    found
}

#[test]
fn files_of_the_same_name_and_of_any_type_are_kept_with_their_original_paths() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for dir in ["a", "b", "c"] {
        fs::create_dir(base.join(dir)).unwrap();
    }
    fs::write(base.join("a/x"), "first").unwrap();
    fs::create_dir(base.join("b/x")).unwrap();
    fs::write(base.join("b/x/inside"), "second").unwrap();
    symlink("nothing", base.join("c/x")).unwrap();
    let odd = base.join(OsStr::from_bytes(b"\xff\n%"));
    fs::write(&odd, "odd").unwrap();
    let targets = [base.join("a/x"), base.join("b/x/"), base.join("c/x"), odd].map(Target::path);
    let (summary, log) = run(targets, &into_trash(&base));
    assert_eq!(log.messages(&base), [""; 0]);
    assert_eq!((summary.files, summary.directories, summary.freed), (3, 1, 0));
    let at = |path: &str| format!("{}/{path}", base.display());
    let expected = [("x", "a/x"), ("x.2", "b/x"), ("x.3", "c/x"), ("\u{fffd}\n%", "%FF%0A%25")];
    assert_eq!(infos(&base), expected.map(|(name, path)| (name.to_owned(), at(path))));
    let files = base.join("data/Trash/files");
    assert_eq!(fs::read_to_string(files.join("x")).unwrap(), "first");
    assert_eq!(fs::read_to_string(files.join("x.2/inside")).unwrap(), "second");
    assert_eq!(fs::metadata(base.join("data/Trash")).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn nothing_is_lost_and_no_information_stays_if_a_file_cannot_be_moved() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::write(base.join("file"), "x").unwrap();
    // A directory cannot be moved into itself.
    let (_, log) = run([Target::path(base.join("data"))], &into_trash(&base));
    assert_eq!(log.messages(&base), ["cannot trash 'data': No such file or directory (os error 2)"]);
    fs::create_dir(base.join("data")).unwrap();
    let (_, log) = run([Target::path(base.join("data"))], &into_trash(&base));
    assert_eq!(log.messages(&base), ["cannot trash 'data': Invalid argument (os error 22)"]);
    assert_eq!(infos(&base), []);
    // A file without information has the name already.
    fs::write(base.join("data/Trash/files/file"), "other").unwrap();
    let (summary, _) = run([Target::path(base.join("file"))], &into_trash(&base));
    assert_eq!(summary.files, 1);
    let files = base.join("data/Trash/files");
    assert_eq!(fs::read_to_string(files.join("file")).unwrap(), "other");
    assert_eq!(fs::read_to_string(files.join("file.2")).unwrap(), "x");
    assert_eq!(listing(&base.join("data/Trash/info")), ["file.2.trashinfo"]);
}

#[test]
fn a_trash_that_others_may_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("data/Trash")).unwrap();
    fs::write(base.join("file"), "x").unwrap();
    fs::set_permissions(base.join("data/Trash"), fs::Permissions::from_mode(0o777)).unwrap();
    let mut dirs = crate::trash::home_only(base.join("data/Trash"));
    let dev = fs::metadata(&base).unwrap().dev();
    assert!(dirs(dev).is_none());
    fs::set_permissions(base.join("data/Trash"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(dirs(dev).is_some());
    assert!(dirs(dev + 1).is_none(), "another filesystem");
}

#[test]
fn another_file_than_the_one_that_was_shown_stays() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::create_dir(base.join("dir")).unwrap();
    fs::write(base.join("file"), "x").unwrap();
    let identity = |name: &str| {
        let meta = base.join(name).symlink_metadata().unwrap();
        Identity { dev: meta.dev(), ino: meta.ino() }
    };
    let wrong = Target::path(base.join("dir")).identity(identity("file"));
    let options = RemovalOptions { protected: vec![identity("dir")], ..into_trash(&base) };
    let (_, log) = run([wrong, Target::path(base.join("dir"))], &options);
    let causes: Vec<_> = log.failed.lock().unwrap().iter().map(|failure| failure.cause).collect();
    assert_eq!(causes, [RemovalCause::Replaced, RemovalCause::WorkingDirectory]);
    assert_eq!(listing(&base), ["dir", "file"]);
}

type PointFn = Box<dyn FnMut(&str)>;

thread_local! {
    /// Called at each fault point of this thread with its name.
    static AT_POINT: RefCell<PointFn> = RefCell::new(Box::new(|_| ()));
}

/// Moves `file` to the trash and calls `act` at each fault point. Returns the causes of failures.
fn trash_with(base: &Path, act: impl FnMut(&str) + 'static) -> Vec<RemovalCause> {
    fault::set_hook(|name| AT_POINT.with_borrow_mut(|act| act(name)));
    AT_POINT.set(Box::new(act));
    let (_, log) = run([Target::path(base.join("file"))], &into_trash(base));
    AT_POINT.set(Box::new(|_| ()));
    log.failed.lock().unwrap().iter().map(|failure| failure.cause).collect()
}

/// Puts another file into the place of `file`.
fn replace(base: &Path) {
    fs::rename(base.join("file"), base.join("aside")).unwrap();
    fs::write(base.join("file"), "other").unwrap();
}

#[test]
#[cfg(debug_assertions)]
fn another_file_that_was_moved_goes_back() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::write(base.join("file"), "x").unwrap();
    let at = base.clone();
    let act = move |point: &str| {
        if point == "trash-info" {
            replace(&at)
        }
    };
    assert_eq!(trash_with(&base, act), [RemovalCause::Replaced]);
    assert_eq!(fs::read_to_string(base.join("file")).unwrap(), "other");
    assert_eq!(infos(&base), []);
}

#[test]
#[cfg(debug_assertions)]
fn a_file_that_cannot_go_back_keeps_its_information() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::write(base.join("file"), "x").unwrap();
    let at = base.clone();
    let act = move |point: &str| match point {
        "trash-info" => replace(&at),
        "trash-renamed" => fs::write(at.join("file"), "third").unwrap(),
        _ => {}
    };
    assert_eq!(trash_with(&base, act), [RemovalCause::Replaced]);
    assert_eq!(fs::read_to_string(base.join("file")).unwrap(), "third");
    assert_eq!(infos(&base), [("file".to_owned(), format!("{}/file", base.display()))]);
    assert_eq!(fs::read_to_string(base.join("data/Trash/files/file")).unwrap(), "other");
}

#[test]
#[cfg(debug_assertions)]
fn a_file_that_cannot_be_checked_keeps_its_information() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    fs::write(base.join("file"), "x").unwrap();
    let files = base.join("data/Trash/files");
    let act = move |point: &str| {
        if point == "trash-renamed" {
            fs::rename(files.join("file"), files.join("elsewhere")).unwrap();
        }
    };
    assert_eq!(trash_with(&base, act), [RemovalCause::Os(fathom_io::Errno::NOENT)]);
    assert_eq!(
        listing(&base.join("data/Trash")),
        ["files", "files/elsewhere", "info", "info/file.trashinfo"]
    );
}
