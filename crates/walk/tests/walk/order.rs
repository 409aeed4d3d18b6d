//! The result of an ordered walk does not depend on the model, the number of workers or the order
//! in which calls complete, and agrees with the standard library.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::late::Late;
use crate::support::record::{Everything, Recorder, assert_same};
use crate::support::skip;
use crate::support::tree::{Chain, Tree, bushy, expected, fill, late_directories, mixed};
use crate::support::way::{self, SYNC, Way};
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_io::{filesystem, sys};
use fathom_walk::{Follow, Options};

/// Walks `roots` in every way and with models that delay their results, compares the results, and
/// returns the lines.
#[track_caller]
fn assert_all_same(roots: &[impl AsRef<Path>], change: impl Fn(Options) -> Options) -> Vec<String> {
    let options = |way: Way| change(way.options());
    let lines = way::lines(options(SYNC), roots);
    for way in way::all() {
        assert_same(&lines, &way::lines(options(way), roots), way);
    }
    for seed in 0..fathom_cases::count(3) as u64 {
        let mut recorder = Recorder::new(roots);
        let way = Way::workers(1 + 2 * usize::try_from(seed).unwrap());
        way::walk_over(options(way), &mut recorder, move || Ok(Late::new(seed)));
        assert_same(&lines, &recorder.lines, format_args!("late, seed {seed}"));
    }
    lines
}

#[test]
fn mixed_files_and_links_not_followed() {
    let tree = Tree::new();
    mixed(&tree);
    assert_same(&expected(&tree.root()), &assert_all_same(&[tree.root()], |options| options), "sync");
}

#[test]
fn links_followed() {
    let tree = Tree::new();
    mixed(&tree);
    let lines = assert_all_same(&[tree.root()], |options| options.follow_links(Follow::Yes));
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    // `itself`, `up` and `top` each lead to an ancestor, the latter two also through `to-dir`.
    assert_eq!(count(": loop"), 5, "{lines:#?}");
    // The dangling link fails with ENOENT, and `knot` with ELOOP.
    assert_eq!((count("error 2"), count("error 40")), (1, 1), "{lines:#?}");
    assert_eq!(count("enter to-dir"), 1);
}

#[test]
fn a_directory_of_25_000_entries_is_split() {
    let tree = Tree::new();
    let wide = tree.dir("wide");
    fill(&wide, 25_000);
    // Some names are directories, and the names are not in the order of their inode numbers.
    for number in 0..50 {
        let dir = wide.join(format!("dir-{number}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("inside"), b"x").unwrap();
    }
    tree.file("after");
    assert_same(&expected(&tree.root()), &assert_all_same(&[tree.root()], |options| options), "sync");
    assert_all_same(&[tree.root()], |options| options.stat_dirs(true));
}

#[test]
fn a_directory_of_110_000_entries_is_read_in_batches() {
    let tree = Tree::new();
    for start in 0..11 {
        fill_from(&tree.root(), start * 10_000);
    }
    for number in 0..100 {
        tree.dir(&format!("dir-{number}/inside"));
    }
    let visit = Everything { names_only: true, ..Everything::default() };
    let lines = |way: Way| {
        let mut recorder = Recorder::new(&[tree.root()]);
        way::walk(way.options(), visit.clone(), &mut recorder);
        recorder.lines
    };
    let first = lines(SYNC);
    for way in way::all() {
        assert_same(&first, &lines(way), way);
    }
    let expected = expected(&tree.root());
    let unasked = expected.iter().map(|line| match line.split_once(": ") {
        Some((name, _)) if line.starts_with("item ") => format!("{name}: not read"),
        _ => line.clone(),
    });
    assert_same(&unasked.collect::<Vec<_>>(), &first, "sync");
}

#[test]
fn unordered_chunks_are_smaller_and_ordered_items_keep_their_order() {
    let tree = Tree::new();
    late_directories(&tree, 2);
    let unordered = |way: Way| way.options().unordered_chunks(true);
    let lines = way::lines(SYNC.options(), &[tree.root()]);
    assert_same(
        &lines,
        &assert_all_same(&[tree.root()], |options| options.unordered_chunks(true)),
        "unordered chunks",
    );
    for seed in 0..4 {
        let broken = |options| {
            let mut recorder = Recorder::new(&[tree.root()]);
            let rates = Rates { read_part: 1.0, stat_eio: 0.01, ..Rates::default() };
            let faults = Faults::new(seed, rates);
            let make = move || Ok(faults.over(Blocking));
            way::walk_over(options, &mut recorder, make);
            recorder.lines
        };
        assert_same(
            &broken(SYNC.options()),
            &broken(unordered(Way::workers(3))),
            format_args!("seed {seed}"),
        );
    }
    let reads = |options| {
        let mut recorder = Recorder::new(&[tree.root()]);
        way::walk(options, Everything::default(), &mut recorder).calls.read
    };
    if filesystem::inode_sort_pays(sys::fs_magic(fs::File::open(tree.root()).unwrap().as_fd()).unwrap()) {
        assert!(reads(SYNC.options()) < reads(unordered(SYNC)));
    } else {
        skip("directories of temporary files are not read in order of inode numbers");
    }
}

fn fill_from(dir: &Path, start: usize) {
    let first = dir.join(format!("file-{start}"));
    fs::write(&first, b"").unwrap();
    for number in start + 1..start + 10_000 {
        fs::hard_link(&first, dir.join(format!("file-{number}"))).unwrap();
    }
}

#[test]
fn a_chain_of_3_000_directories() {
    let levels = fathom_cases::count(3_000);
    let chain = Chain::new(levels, &[c"a", c"z"]);
    let lines = assert_all_same(&[chain.root()], |options| options);
    let enters = lines.iter().filter(|line| line.starts_with("enter ")).count();
    assert_eq!((enters, lines.len()), (1 + 3 * levels, 2 * (1 + 3 * levels)));
    assert!(lines.iter().any(|line| line.starts_with(&format!("enter m {levels} "))));
}

#[test]
fn a_tree_of_20_000_directories() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 5, fathom_cases::count(20_000).ilog(5) as usize);
    assert_same(&expected(&tree.root()), &assert_all_same(&[tree.root()], |options| options), "sync");
}

#[test]
fn roots_are_reported_in_order() {
    let tree = Tree::new();
    mixed(&tree);
    let names = ["a", "last", "missing", "a/to-dir", "a/b", "fifo", "a/dangling", "a"];
    let mut roots: Vec<_> = names.iter().map(|name| tree.path(name)).collect();
    for _ in 0..400 {
        roots.extend([tree.path("a/b"), tree.path("last")]);
    }
    let lines = assert_all_same(&roots, |options| options);
    let files = lines.iter().filter(|line| line.starts_with("root ")).count();
    assert_eq!(files, 5 + 400);
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("enter ") && line.contains(" 0 ")).count(),
        3 + 400
    );

    let followed = assert_all_same(&roots[..7], |options| options.follow_roots(Follow::Yes));
    assert_eq!(followed.iter().filter(|line| line.starts_with("root ")).count(), 4);
}

#[test]
fn unreadable_directories_are_reported() {
    let tree = Tree::new();
    let modes = [("unreadable", 0o311), ("unsearchable", 0o444), ("shut", 0o000), ("open", 0o755)];
    for (name, mode) in modes {
        tree.dir(&format!("{name}/dir"));
        tree.file(&format!("{name}/file"));
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let root = tree.root();
    let unprivileged = || {
        if rustix::process::geteuid().is_root() && !(become_nobody() && root.is_dir()) {
            skip("root cannot change its user here, or that user cannot search temporary directories");
            return;
        }
        let lines = assert_all_same(&[&root], |options| options);
        let has =
            |start: &str, end: &str| lines.iter().any(|line| line.starts_with(start) && line.ends_with(end));
        assert!(has("enter unreadable ", ": error 13") && has("enter shut ", ": error 13"), "{lines:#?}");
        assert!(has("lost dir error 13", "") && has("item file", ": error 13"));
    };
    // On Linux a user belongs to a thread, and to the threads that it starts.
    std::thread::scope(|scope| scope.spawn(unprivileged).join().unwrap());
    for (name, _) in modes {
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[cfg(target_os = "linux")]
fn become_nobody() -> bool {
    const NOBODY: u32 = 65534;
    rustix::thread::set_thread_groups(&[]).is_ok()
        && rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn become_nobody() -> bool {
    false
}
