//! Trees of any shape and any names.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::*;

#[test]
fn names_of_any_bytes_and_files_of_any_type_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    let tree = temp.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..3000 {
        fs::write(tree.join(number.to_string()), "").unwrap();
    }
    let names: [&[u8]; 6] = [b"\xff\xfe", b"a\nb", b"\x1b[0m", b" ", b"-rf *", b"..."];
    for (number, name) in (0..100).zip(names.into_iter().cycle()) {
        let dir = tree.join(format!("d{number}")).join(OsStr::from_bytes(name));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let _socket = UnixListener::bind(tree.join("socket")).unwrap();
    rustix::fs::mknodat(CWD, tree.join("fifo"), rustix::fs::FileType::Fifo, Mode::from(0o644), 0).unwrap();
    let summary = removed(&tree);
    assert_eq!((summary.files, summary.directories), (3102, 201));
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
    removed(&tree);
    removed(&link);
    assert_eq!(listing(temp.path()), ["kept", "kept/dir"]);
}

/// Creates nested directories of names of 40 bytes, each with a file. Returns the path of the
/// deepest, below `base`.
fn chain(base: &Path, levels: usize) -> Vec<u8> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |at: &OwnedFd, name: &str| openat(at, name, flags, Mode::empty()).unwrap();
    let mut here = openat(CWD, base, flags, Mode::empty()).unwrap();
    let names: Vec<_> = (0..levels).map(|level| format!("{level:040}")).collect();
    for name in &names {
        mkdirat(&here, name, Mode::from(0o755)).unwrap();
        here = open(&here, name);
        let file = openat(here.as_fd(), "file", OFlags::CREATE | OFlags::WRONLY, Mode::from(0o644)).unwrap();
        File::from(file).write_all_at(b"x", 0).unwrap();
    }
    names.join("/").into_bytes()
}

#[test]
fn a_tree_that_is_deeper_than_a_path_can_be_is_removed() {
    for threads in [None, Some(1)] {
        let temp = tempfile::tempdir().unwrap();
        let deepest = chain(temp.path(), 1000);
        assert!(deepest.len() > 10 * 4096);
        // First a file at the bottom, by a path that no system call takes.
        let file = [&deepest[..], b"/file"].concat();
        let options = RemovalOptions { threads, ..measured() };
        let (summary, log) = run([Target::below(temp.path(), file).shown_now().unwrap()], &options);
        assert_eq!((summary.files, log.messages(temp.path())), (1, vec![]));
        let (summary, log) = run([Target::below(temp.path(), &deepest[..40])], &options);
        assert_eq!((summary.files, summary.directories, log.messages(temp.path())), (999, 1000, vec![]));
        assert_eq!(listing(temp.path()), [""; 0]);
    }
}

#[test]
fn targets_may_have_more_parent_directories_than_are_open_at_once() {
    let temp = tempfile::tempdir().unwrap();
    for number in 0..600 {
        fs::create_dir_all(temp.path().join(format!("t{number}/d/e"))).unwrap();
        fs::write(temp.path().join(format!("t{number}/d/e/f")), "").unwrap();
    }
    let targets = (0..600).map(|number| Target::below(temp.path(), format!("t{number}/d").into_bytes()));
    let (summary, _) = run(targets, &RemovalOptions::default());
    assert_eq!((summary.files, summary.directories, summary.failures), (600, 1200, 0));
}

/// Notes the most bytes of paths that one call had.
#[derive(Default)]
struct LargestBatch(AtomicUsize, AtomicUsize);

impl Observer for LargestBatch {
    fn wants_entries(&self) -> bool {
        true
    }

    fn removed(&self, entries: &[RemovedEntry]) {
        self.0.fetch_add(entries.len(), Ordering::Relaxed);
        self.1.fetch_max(entries.iter().map(|entry| entry.path.len()).sum(), Ordering::Relaxed);
    }
}

#[test]
fn a_batch_of_long_paths_has_bounded_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let deep = temp.path().join("tree").join(vec!["d".repeat(250); 14].join("/"));
    fs::create_dir_all(&deep).unwrap();
    (0..700).for_each(|file| fs::write(deep.join(file.to_string()), "").unwrap());
    let observer = Arc::new(LargestBatch::default());
    let targets = [Target::path(temp.path().join("tree"))];
    let summary = remove(targets, &RemovalOptions::default(), observer.clone(), &mut |_| ()).unwrap();
    assert_eq!((summary.files, summary.directories, summary.failures), (700, 15, 0));
    let (entries, bytes) = (observer.0.load(Ordering::Relaxed), observer.1.load(Ordering::Relaxed));
    assert_eq!(entries, 715, "none is lost");
    assert!(bytes < (1 << 20) + 4096, "{bytes}");
}

#[test]
fn a_dry_run_counts_the_same_and_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let tree = temp.path().join("tree");
    for dir in ["a/b", "c"] {
        fs::create_dir_all(tree.join(dir)).unwrap();
        fs::write(tree.join(dir).join("file"), vec![1; 10_000]).unwrap();
    }
    let before = listing(temp.path());
    let (plan, events) = run([Target::path(&tree)], &dry_run());
    assert_eq!(listing(temp.path()), before);
    assert_eq!(events.paths(temp.path()), before);
    assert_eq!((plan.files, plan.directories, plan.failures), (2, 4, 0));
    assert!(plan.freed >= 20_000 && plan.freed == plan.allocated);
    assert_eq!((plan.possible.files, plan.possible.directories), (2, 4));
    assert_eq!(RemovalSummary { possible: plan.possible, ..removed(&tree) }, plan);
}

#[test]
fn a_removal_stops_when_it_is_told_to() {
    struct StopAt(RemovalOptions, u32, Mutex<u32>);
    impl Observer for StopAt {
        fn wants_entries(&self) -> bool {
            true
        }
        fn removed(&self, _: &[RemovedEntry]) {
            let mut count = self.2.lock().unwrap();
            *count += 1;
            self.0.stop.store(*count >= self.1, Ordering::Relaxed);
        }
    }
    let temp = tempfile::tempdir().unwrap();
    for number in 0..200 {
        fs::create_dir_all(temp.path().join(format!("tree/{number}"))).unwrap();
        (0..10).for_each(|file| fs::write(temp.path().join(format!("tree/{number}/{file}")), "").unwrap());
    }
    let options = RemovalOptions { threads: Some(2), ..RemovalOptions::default() };
    let observer = Arc::new(StopAt(options.clone(), 5, Mutex::new(0)));
    let targets = [Target::path(temp.path().join("tree"))];
    let summary = remove(targets, &options, observer, &mut |_| ()).unwrap();
    assert!(summary.stopped && summary.failures == 0);
    let left = listing(&temp.path().join("tree")).len() as u64;
    assert_eq!(summary.files + summary.directories + left, 2200);
    assert!(left > 0);
}

/// Puts a file into `tree/d` whenever another one has been removed there, up to `left` times.
struct Refill(std::path::PathBuf, Mutex<u32>, EventLog);

impl Observer for Refill {
    fn wants_entries(&self) -> bool {
        true
    }

    fn removed(&self, entries: &[RemovedEntry]) {
        let mut left = self.1.lock().unwrap();
        if *left > 0 && entries.iter().any(|entry| entry.path.ends_with(b"/file")) {
            *left -= 1;
            fs::write(self.0.join("file"), "").unwrap();
        }
    }

    fn failed(&self, failure: &RemovalFailure) {
        self.2.failed(failure);
    }
}

#[test]
fn a_directory_that_is_filled_meanwhile_is_emptied_again_up_to_a_limit() {
    for (refills, expected) in [(0, (0, 1)), (1, (0, 2)), (3, (0, 4)), (9, (0, 10)), (u32::MAX, (1, 100))] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("tree/d");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("file"), "").unwrap();
        let observer = Arc::new(Refill(dir.clone(), Mutex::new(refills), EventLog::default()));
        let targets = [Target::path(temp.path().join("tree"))];
        let summary = remove(targets, &measured(), observer.clone(), &mut |_| ()).unwrap();
        assert_eq!((summary.failures, summary.files), expected, "{refills}");
        assert_eq!(dir.exists(), expected.0 == 1);
        let message = "cannot remove 'tree/d': Directory not empty (os error 39)";
        let all: &[&str] = if expected.0 == 1 { &[message] } else { &[] };
        assert_eq!(observer.2.messages(temp.path()), all);
    }
}

#[test]
fn a_directory_that_is_tried_again_counts_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("tree/d");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("file"), "").unwrap();
    let observer = Arc::new(Refill(dir, Mutex::new(3), EventLog::default()));
    let targets = [Target::path(temp.path().join("tree"))];
    let limit = Some(crate::RemovalLimit { files: 4, directories: 2 });
    let ended = remove(targets, &RemovalOptions { limit, ..measured() }, observer, &mut |_| ()).unwrap();
    assert_eq!((ended.files, ended.directories, ended.exceeded), (4, 2, false));
}

#[test]
fn a_removal_stops_at_its_limit_without_a_failure() {
    for threads in [1, 4] {
        let temp = tempfile::tempdir().unwrap();
        let tree = temp.path().join("tree");
        for number in 0..200 {
            fs::create_dir_all(tree.join(format!("{}", number % 10))).unwrap();
            fs::write(tree.join(format!("{}/{number}", number % 10)), "").unwrap();
        }
        let plan = run([Target::path(&tree)], &dry_run()).0;
        let with = |files, directories| RemovalOptions {
            limit: Some(crate::RemovalLimit { files, directories }),
            threads: Some(threads),
            ..measured()
        };
        let (some, log) = run([Target::path(&tree)], &with(50, 5));
        assert_eq!((some.files, some.exceeded, some.failures), (50, true, 0));
        assert!(some.directories <= 5 && log.failed.lock().unwrap().is_empty());
        let left = with(plan.files - some.files, plan.directories - some.directories);
        let (rest, _) = run([Target::path(&tree)], &left);
        assert_eq!((rest.files + some.files, rest.exceeded, rest.failures), (200, false, 0));
        assert!(!tree.exists());
    }
}
