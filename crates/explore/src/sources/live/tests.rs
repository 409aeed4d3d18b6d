//! Live trees against du and the standard library: with faults, pauses, rescans and removals.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use fathom_io::Random;
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_scans::scan::{Scan, scan};
use fathom_walk::run_unordered_with;

use super::*;
use crate::source::Amount;
use crate::sources::test_tree::{
    NOT_CANCELLED, TestTree, assert_facts, assert_sums, at, listed, sizes, sums_of, top,
};

/// A limit for events that must happen, whatever the load.
const PATIENCE: Duration = Duration::from_secs(120);

fn walked(tree: &TestTree, options: LiveOptions) -> LiveSource {
    let mut source = LiveSource::start(vec![tree.c_root()], options).unwrap();
    source.wait();
    assert!(source.progress().finished);
    source
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Starts a source whose walks wait for a message each.
fn gated(tree: &TestTree, options: LiveOptions) -> (LiveSource, Sender<()>) {
    let (open, gate) = channel();
    let gate = Mutex::new(gate);
    let run = move |options, visitor, roots: &mut WalkRoots| {
        gate.lock().unwrap().recv().expect("a test opens the gate");
        run_unordered(options, visitor, roots, &mut |_| ())
    };
    (LiveSource::start_with(vec![tree.c_root()], options, Arc::new(run)).unwrap(), open)
}

fn faulty(tree: &TestTree, rates: Rates) -> LiveSource {
    let faults = Faults::new(3, rates);
    let run = move |options, visitor, roots: &mut WalkRoots| {
        let faults = faults.clone();
        run_unordered_with(options, visitor, roots, &mut |_| (), move || Ok(faults.over(Blocking)))
    };
    let mut source =
        LiveSource::start_with(vec![tree.c_root()], LiveOptions::default(), Arc::new(run)).unwrap();
    source.wait();
    source
}

#[test]
fn sums_are_those_of_du() {
    for seed in fathom_cases::seeds(12) {
        let tree = TestTree::random(seed);
        let mut source = walked(&tree, LiveOptions::default());
        let sums = source.roots()[0].amount;
        assert_eq!(sums, tree.sums(false), "seed {seed}");
        assert_eq!(sums.allocated, tree.du(&["-s", "-B1"]), "seed {seed}");
        // GNU du before 9.2 adds the lengths of directories to the apparent size.
        let dirs: u64 = tree.dirs().iter().map(|below| fs::metadata(tree.path(below)).unwrap().len()).sum();
        let apparent = tree.du(&["-s", "-b"]);
        assert!([apparent, apparent.saturating_sub(dirs)].contains(&sums.apparent), "seed {seed}");
        assert_facts(&mut source, &tree);
        assert_sums(&mut source, &tree);
        let mut source = walked(&tree, LiveOptions { count_links: true, ..LiveOptions::default() });
        assert_eq!(source.roots()[0].amount, tree.sums(true), "seed {seed}");
        assert_eq!(source.roots()[0].amount.allocated, tree.du(&["-s", "-l", "-B1"]), "seed {seed}");
    }
}

#[test]
fn sums_by_keys_and_the_largest_files_cover_the_tree() {
    let tree = TestTree::random(5);
    let mut source = walked(&tree, LiveOptions::default());
    for key in [SumKey::Extension, SumKey::Owner, SumKey::Age] {
        let rows = source.sums(key, &NOT_CANCELLED).unwrap();
        let files: u64 = rows.iter().map(|row| row.amount.entries).sum();
        assert_eq!(files, tree.files());
        let apparent: u64 = rows.iter().map(|row| row.amount.apparent).sum();
        assert_eq!(apparent, tree.sums(false).apparent);
    }
    let all = source.largest(&top(), usize::MAX, &NOT_CANCELLED).unwrap();
    assert_eq!(all.len() as u64, tree.files());
    assert!(all.is_sorted_by_key(|file| std::cmp::Reverse(file.row.amount.allocated)));
    for PlacedRow { place, row } in &all {
        let path = tree.path(&place.below).join(std::ffi::OsStr::from_bytes(&row.name));
        assert_eq!(row.amount, sizes(&path));
    }
    let below = tree.dirs().pop().unwrap();
    let within = source.largest(&at(&below), 3, &NOT_CANCELLED).unwrap();
    let expected: Vec<_> = all.iter().filter(|file| file.place.below == below).take(3).cloned().collect();
    assert_eq!(within, expected, "the last directory of a breadth-first list has no subdirectory");
}

#[test]
fn memory_does_not_grow_with_files() {
    let tree = TestTree::random(1);
    let dir = tree.root().join("wide");
    fs::create_dir(&dir).unwrap();
    (0..3000).for_each(|number| fs::write(dir.join(number.to_string()), [1; 9]).unwrap());
    let mut source = walked(&tree, LiveOptions::default());
    assert_eq!(source.shared.tree().records(), tree.dirs().len());
    assert_eq!(source.shared.tree().largest.iter().count(), 1000);
    assert_eq!(source.roots()[0].amount, tree.sums(false));
    // The set of the largest files does not have all of this directory: it is read again.
    let found = source.largest(&at(b"wide"), 2000, &NOT_CANCELLED).unwrap();
    assert_eq!(found.len(), 1000);
    assert!(found.iter().all(|file| file.place == at(b"wide")));
}

#[test]
fn a_rescan_replaces_sums() {
    let tree = TestTree::random(8);
    let mut source = walked(&tree, LiveOptions::default());
    let mut random = Random::new(1);
    for round in 0..6 {
        let dirs = tree.dirs();
        let below = dirs[random.below(dirs.len())].clone();
        let path = tree.path(&below);
        fs::write(path.join(format!("new{round}")), vec![1; 70_000]).unwrap();
        fs::hard_link(path.join(format!("new{round}")), tree.root().join(format!("link{round}"))).unwrap();
        fs::create_dir(path.join(format!("dir{round}"))).unwrap();
        if let Some(gone) = dirs.iter().skip(1).find(|dir| dir.starts_with(&below)) {
            fs::remove_dir_all(tree.path(gone)).unwrap();
        }
        for changed in [below, Vec::new()] {
            assert!(source.rescan(&at(&changed)).is_ok() || !tree.path(&changed).exists());
            source.wait();
        }
        assert_eq!(source.roots()[0].amount, tree.sums(false), "round {round}");
        assert_facts(&mut source, &tree);
        assert_sums(&mut source, &tree);
    }
    let names: usize = source.shared.tree().records();
    assert!(names <= 2 * TestTree::random(8).dirs().len() + 20, "indices are used again: {names}");
    let files: u64 =
        source.sums(SumKey::Owner, &NOT_CANCELLED).unwrap().iter().map(|row| row.amount.entries).sum();
    assert_eq!(files, tree.files());
    assert!(source.rescan(&at(b"missing")).is_err());
}

#[test]
fn removed_entries_leave_all_sums() {
    for seed in fathom_cases::seeds(12) {
        let tree = TestTree::random(seed);
        let mut source = walked(&tree, LiveOptions::default());
        let mut random = Random::new(seed);
        for _ in 0..8 {
            let dirs = tree.dirs();
            let below = dirs[random.below(dirs.len())].clone();
            let rows = listed(&mut source, &below);
            let Some(row) = rows.get(random.below(rows.len())) else { continue };
            let path = tree.path(&below).join(std::ffi::OsStr::from_bytes(&row.name));
            if row.file_type == FileType::Directory {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
            source.removed(&[(at(&below), row.clone())]);
            // A filesystem may shrink a directory from which an entry was removed.
            assert_eq!(source.roots()[0].amount.apparent, tree.sums(false).apparent, "seed {seed}");
            assert_eq!(source.roots()[0].amount.entries, tree.sums(false).entries, "seed {seed}");
            let largest = source.largest(&top(), usize::MAX, &NOT_CANCELLED).unwrap();
            let is_there = |file: &PlacedRow| {
                let name = std::ffi::OsStr::from_bytes(&file.row.name);
                tree.path(&file.place.below).join(name).symlink_metadata().is_ok()
            };
            assert!(largest.iter().all(is_there), "seed {seed}");
        }
    }
}

/// Once, a directory of names that counted elsewhere was small from above, and each of them had its
/// size within: 984K in 1 entry, and then 9.6M in 4.
#[test]
fn an_inode_counts_once_in_each_directory_that_has_a_name_of_it() {
    let tree = TestTree::without_links(0);
    for dir in ["one", "two"] {
        fs::create_dir(tree.root().join(dir)).unwrap();
    }
    fs::write(tree.root().join("one/f"), [1; 9000]).unwrap();
    for name in ["one/g", "two/f"] {
        fs::hard_link(tree.root().join("one/f"), tree.root().join(name)).unwrap();
    }
    let mut source = walked(&tree, LiveOptions::default());
    assert_sums(&mut source, &tree);
    let sums = [b"one", b"two"].map(|dir| sums_of(&mut source, dir));
    assert_eq!(sums.map(|sums| (sums.apparent, sums.entries)), [(9000, 2), (9000, 1)]);
    for (dir, name, links) in [("one", "f", 3), ("one", "g", 2), ("two", "f", 1)] {
        let row = listed(&mut source, dir.as_bytes()).into_iter().find(|row| *row.name == *name.as_bytes());
        let row = row.unwrap();
        assert_eq!(row.links, links, "the link count may have changed since the walk");
        fs::remove_file(tree.root().join(dir).join(name)).unwrap();
        source.removed(&[(at(dir.as_bytes()), row.clone())]);
        assert_sums(&mut source, &tree);
        let is_known = source.shared.tree().linked.knows(row.identity);
        assert_eq!(is_known, links > 1, "another inode may get its number");
    }
    fs::write(tree.root().join("one/g"), [1; 9000]).unwrap();
    assert!(source.rescan(&at(b"one")).is_ok());
    source.wait();
    assert_sums(&mut source, &tree);
}

#[test]
fn names_that_are_left_out_are_in_no_rows_sums_and_lists() {
    let tree = TestTree::random(2);
    for path in ["d0/keep", "d0/skip.o/in", "d1/skip.o", "d1/keep.o2"] {
        fs::create_dir_all(tree.root().join(path).parent().unwrap()).unwrap();
        fs::write(tree.root().join(path), [1; 9000]).unwrap();
    }
    let root = tree.root().into_os_string().into_encoded_bytes();
    // By the path of the directory and by the name.
    let filter = NameFilter(Arc::new(move |dir: &[u8], names: &mut fathom_io::Names| {
        let is_d1 = dir == [&root[..], b"/d1"].concat();
        names.retain(|name| {
            let name = name.name.to_bytes();
            !(name.ends_with(b".o") || is_d1 && name == b"keep.o2")
        });
    }));
    let mut source = walked(&tree, LiveOptions { names: Some(filter), ..LiveOptions::default() });
    for path in ["d0/skip.o", "d1/skip.o", "d1/keep.o2"] {
        let path = tree.root().join(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let leave_out = |dir: &Path| {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|extension| extension == "o") {
                fs::remove_file(entry).unwrap();
            }
        }
    };
    tree.dirs().iter().for_each(|below| leave_out(&tree.path(below)));
    let facts = |sums: Amount<u64>| (sums.apparent, sums.entries);
    assert_eq!(facts(source.roots()[0].amount), facts(tree.sums(false)));
    for path in ["d0/skip.o", "d1/skip.o", "d1/keep.o2"] {
        fs::write(tree.root().join(path), [1; 9000]).unwrap();
    }
    assert_eq!(listed(&mut source, b"d1").iter().filter(|row| row.name.contains(&b'.')).count(), 0);
    let excluded = |source: &mut LiveSource| {
        let rows = listed(source, b"").into_iter().filter(|row| row.state == RowState::Excluded);
        rows.map(|row| row.name.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(excluded(&mut source), [b"d0", b"d1"]);
    source.rescan(&at(b"d1")).unwrap();
    source.wait();
    assert_eq!(sums_of(&mut source, b"d1").entries, listed(&mut source, b"d1").len() as u64);
    let largest = source.largest(&at(b"d1"), 100, &NOT_CANCELLED).unwrap();
    assert!(largest.iter().all(|file| !file.row.name.ends_with(b"o2") && !file.row.name.ends_with(b".o")));
}

#[test]
fn a_pause_holds_the_walk_and_a_stop_ends_it() {
    let tree = TestTree::random(2);
    let (mut source, gate) = gated(&tree, LiveOptions::default());
    source.pause(true);
    gate.send(()).unwrap();
    let control = source.walks[0].control.clone();
    wait_for("a worker waits", || control.waiting.load(Ordering::Relaxed) > 0);
    assert_eq!((source.progress().entries, source.roots()[0].state), (0, RowState::Walking));
    assert_eq!(source.row_sums(Some(&top())).total, None, "its rows have more than was counted");
    source.pause(false);
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));

    let (mut source, gate) = gated(&tree, LiveOptions::default());
    source.pause(true);
    gate.send(()).unwrap();
    let control = source.walks[0].control.clone();
    wait_for("a worker waits", || control.waiting.load(Ordering::Relaxed) > 0);
    source.stop();
    source.wait();
    assert!(source.progress().finished);
    assert_eq!(source.roots()[0].state, RowState::Partial);
    // The rest of the tree can still be walked.
    source.pause(false);
    assert!(source.rescan(&top()).is_ok());
    gate.send(()).unwrap();
    source.wait();
    assert_eq!((source.roots()[0].amount, source.roots()[0].state), (tree.sums(false), RowState::Complete));
}

#[test]
fn a_rescan_during_the_walk_counts_everything_once() {
    let tree = TestTree::random(6);
    let (mut source, gate) = gated(&tree, LiveOptions::default());
    assert!(source.rescan(&top()).is_ok());
    assert!(source.rescan(&top()).is_ok());
    assert_eq!(source.roots()[0].state, RowState::Walking);
    (0..3).for_each(|_| gate.send(()).unwrap());
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));
    assert_sums(&mut source, &tree);
    assert_eq!(source.shared.tree().records(), tree.dirs().len() + 2, "two roots were replaced");
    // Rescans of directories while others run.
    for below in tree.dirs() {
        assert!(source.rescan(&at(&below)).is_ok(), "it is walked, or it is being walked");
        gate.send(()).unwrap();
    }
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));
    assert_facts(&mut source, &tree);
}

#[test]
fn failures_are_counted_and_shown() {
    let tree = TestTree::random(4);
    let dirs = tree.dirs().len() as u64;
    let mut source = faulty(&tree, Rates { open_eacces: 1.0, ..Rates::default() });
    assert_eq!((source.roots()[0].state, source.progress().failures), (RowState::Unreadable, 1));
    assert_eq!(source.roots()[0].amount, sizes(&tree.root()));
    let mut source = faulty(&tree, Rates { stat_eio: 1.0, ..Rates::default() });
    assert_eq!(source.roots()[0].state, RowState::Partial);
    let files = tree.sums(true).entries + 1 - dirs;
    assert_eq!((source.progress().failures, source.roots()[0].amount.entries), (files, dirs - 1));
    // An entry that vanished between the two calls is a failure, but nothing is missing.
    let mut source = faulty(&tree, Rates { stat_enoent: 1.0, ..Rates::default() });
    assert_eq!((source.roots()[0].state, source.progress().failures), (RowState::Complete, files));
    for seed in 0..8 {
        let tree = TestTree::random(seed);
        let mut source = faulty(&tree, Rates { open_eacces: 0.3, read_eio: 0.3, ..Rates::default() });
        let is_bad = |row: &Row| matches!(row.state, RowState::Partial | RowState::Unreadable);
        for below in tree.dirs() {
            let has_bad = listed(&mut source, &below)
                .iter()
                .any(|row| row.file_type == FileType::Directory && is_bad(row));
            let is_known = source.shared.tree().find(&at(&below)).is_some();
            let is_complete = is_known && row_of(&mut source, &below).state == RowState::Complete;
            assert!(!has_bad || !is_complete, "seed {seed}: {below:?}");
        }
        // A rescan without faults repairs everything.
        source.run = Arc::new(|options, visitor, roots| run_unordered(options, visitor, roots, &mut |_| ()));
        assert!(source.rescan(&top()).is_ok());
        source.wait();
        assert_facts(&mut source, &tree);
        assert_eq!(
            (source.roots()[0].state, source.roots()[0].amount),
            (RowState::Complete, tree.sums(false))
        );
    }
}

#[test]
fn a_repaired_directory_repairs_the_states_above() {
    let tree = TestTree::random(9);
    let below = tree.dirs().pop().unwrap();
    let mut source = walked(&tree, LiveOptions::default());
    {
        let mut shared = source.shared.tree();
        let dir = shared.find(&at(&below)).unwrap();
        shared.note_gap(dir);
        shared.set_state(dir, RowState::Walking);
        shared.finish(dir);
    }
    assert_eq!(source.roots()[0].state, RowState::Partial);
    assert!(source.rescan(&at(&below)).is_ok());
    source.wait();
    assert_eq!(source.roots()[0].state, RowState::Complete);
}

fn row_of(source: &mut LiveSource, below: &[u8]) -> Row {
    let tree = source.shared.tree();
    tree.row(tree.find(&at(below)).unwrap())
}

#[test]
fn roots_may_be_missing_or_files() {
    let tree = TestTree::random(3);
    let (file, missing) = (tree.beside("file.rs"), tree.beside("missing"));
    fs::write(&file, [1; 5000]).unwrap();
    let path = |path: &std::path::Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let roots = vec![path(&file), path(&missing), tree.c_root()];
    let mut source = LiveSource::start(roots, LiveOptions::default()).unwrap();
    source.wait();
    let rows = source.roots();
    let states: Vec<_> = rows.iter().map(|row| (row.file_type, row.state)).collect();
    assert_eq!(states[0], (FileType::Regular, RowState::Complete));
    assert_eq!(states[1].1, RowState::Unreadable);
    assert_eq!((rows[0].amount, rows[2].amount), (sizes(&file), tree.sums(false)));
    assert_eq!(source.progress().failures, 1);
    let error = source.list(&Place { root: 1, below: Vec::new() }, &NOT_CANCELLED).unwrap_err();
    assert_eq!(error, SourceError::Os("open directory", Errno::NOENT));
    assert!(source.list(&Place { root: 9, below: Vec::new() }, &NOT_CANCELLED).is_err());
    assert!(source.list(&Place { root: 2, below: b"..".to_vec() }, &NOT_CANCELLED).is_err());
}

#[test]
fn a_symbolic_link_below_the_root_is_not_followed() {
    let tree = TestTree::random(3);
    std::os::unix::fs::symlink("/", tree.root().join("way")).unwrap();
    let mut source = walked(&tree, LiveOptions::default());
    let error = source.list(&at(b"way"), &NOT_CANCELLED).unwrap_err();
    assert!(matches!(error, SourceError::Os("open directory", Errno::NOTDIR | Errno::LOOP)), "{error:?}");
    assert!(source.rescan(&at(b"way")).is_err());
}

#[test]
fn questions_that_nobody_wants_end() {
    let tree = TestTree::random(3);
    let mut source = walked(&tree, LiveOptions::default());
    let cancelled = AtomicBool::new(true);
    assert_eq!(source.list(&top(), &cancelled), Err(SourceError::Cancelled));
    source.shared.tree().is_summary_stale = true;
    assert_eq!(source.sums(SumKey::Age, &cancelled), Err(SourceError::Cancelled));
    assert!(source.sums(SumKey::Age, &NOT_CANCELLED).is_ok());
}

#[test]
fn other_filesystems_are_skipped() {
    let tree = TestTree::random(0);
    let below = tree.dirs()[1].clone();
    let mut source = walked(&tree, LiveOptions { one_file_system: true, ..LiveOptions::default() });
    assert_eq!(source.roots()[0].amount, tree.sums(false), "all of it is on one filesystem");
    let (root, dir) = (tree.root(), row_of(&mut source, &below));
    // As if the root were on another filesystem.
    let top = {
        let mut shared = source.shared.tree();
        let dir = shared.find(&at(&below)).unwrap();
        shared.renew(dir)
    };
    let path = CString::new(root.join(std::ffi::OsStr::from_bytes(&below)).as_os_str().as_bytes()).unwrap();
    let device = Some(dir.identity.dev + 1);
    source
        .walk(WalkTops {
            roots: vec![NextRoot::Path(path)],
            tops: vec![top],
            follow: Follow::No,
            device,
            above: Vec::new(),
        })
        .unwrap();
    source.wait();
    let row = row_of(&mut source, &below);
    assert_eq!((row.state, row.amount, row.identity), (RowState::Skipped, Default::default(), dir.identity));
    fs::remove_dir_all(root.join(std::ffi::OsStr::from_bytes(&below))).unwrap();
    assert_eq!(source.roots()[0].amount.entries, tree.sums(false).entries);
    assert_eq!(source.roots()[0].state, RowState::Complete);
}

#[test]
fn rows_have_their_growth_since_an_inventory() {
    let tree = TestTree::without_links(5);
    let older = tree.beside("older.inv");
    let options = Scan { roots: vec![tree.c_root()], ..Scan::default() };
    scan(&options, &older, &mut ()).unwrap();
    let before = tree.sums(false);
    let dir = tree.path(&tree.dirs()[1]);
    fs::write(dir.join("new"), vec![1; 50_000]).unwrap();
    let options = LiveOptions { since: Some(older), ..LiveOptions::default() };
    let (mut source, gate) = gated(&tree, options.clone());
    assert_eq!(source.roots()[0].growth, None, "it is not known yet");
    gate.send(()).unwrap();
    source.wait();
    let growth = tree.sums(false).since(&before);
    assert_eq!((source.roots()[0].growth, growth.entries), (Some(growth), 1));
    let grown: Vec<_> =
        listed(&mut source, b"").into_iter().filter(|row| row.growth != Some(Default::default())).collect();
    assert_eq!((grown.len(), grown[0].growth), (1, Some(growth)));
    let below = listed(&mut source, &grown[0].name);
    let new = below.iter().filter(|row| row.growth.is_none()).map(|row| row.name.to_vec());
    assert_eq!(new.collect::<Vec<_>>(), [b"new"]);
    let options = LiveOptions { since: Some(tree.beside("none")), ..LiveOptions::default() };
    assert!(LiveSource::start(vec![tree.c_root()], options).is_err());
}

/// Any sequence of calls, while walks run, leaves sums that a last rescan makes right.
#[test]
fn any_sequence_of_calls_ends_with_the_sums_of_the_tree() {
    for seed in fathom_cases::seeds(20) {
        let tree = TestTree::random(seed);
        let mut random = Random::new(seed);
        let mut source = LiveSource::start(vec![tree.c_root()], LiveOptions::default()).unwrap();
        let dirs = tree.dirs();
        for _ in 0..30 {
            let place = at(&dirs[random.below(dirs.len())]);
            match random.below(8) {
                // After a stop, the directory may be unknown.
                0..=2 => drop(source.rescan(&place)),
                3 => drop(source.list(&place, &NOT_CANCELLED).unwrap()),
                4 => source.pause(random.below(2) == 0),
                5 => source.stop(),
                6 => drop(source.sums(SumKey::Extension, &AtomicBool::new(true))),
                _ => drop(source.largest(&place, 5, &AtomicBool::new(random.below(2) == 0))),
            }
            let progress = source.progress();
            assert!(progress.entries <= 40 * (tree.sums(true).entries + 1), "{progress:?}");
        }
        source.pause(false);
        source.wait();
        assert!(source.rescan(&top()).is_ok());
        source.wait();
        assert_eq!(
            (source.roots()[0].amount, source.roots()[0].state),
            (tree.sums(false), RowState::Complete)
        );
        assert_facts(&mut source, &tree);
        assert_sums(&mut source, &tree);
        let records = source.shared.tree().records();
        assert!(records <= 31 * dirs.len(), "seed {seed}: {records}");
    }
}

#[test]
fn hostile_places_are_errors() {
    let tree = TestTree::random(3);
    let mut source = walked(&tree, LiveOptions::default());
    let long = [&b"a"[..]; 3000].join(&b'/');
    for below in [&b".."[..], b"d0/../d0", b".", b"\0", b"missing", &long[..]] {
        assert!(source.list(&at(below), &NOT_CANCELLED).is_err(), "{below:?}");
        assert!(source.rescan(&at(below)).is_err());
        assert_eq!(source.largest(&at(below), 3, &NOT_CANCELLED), Err(SourceError::Os("find", Errno::NOENT)));
        let row = source.roots().remove(0);
        source.removed(&[(at(below), row.clone())]);
    }
    assert_eq!(source.roots()[0].amount, tree.sums(false));
}

#[test]
fn no_link_that_replaced_a_directory_is_followed() {
    let tree = TestTree::without_links(3);
    fs::create_dir_all(tree.root().join("way/in")).unwrap();
    fs::create_dir_all(tree.beside("outside/in")).unwrap();
    fs::write(tree.beside("outside/in/large"), [1; 90_000]).unwrap();
    let mut source = walked(&tree, LiveOptions::default());
    fs::remove_dir_all(tree.root().join("way")).unwrap();
    std::os::unix::fs::symlink(tree.beside("outside"), tree.root().join("way")).unwrap();
    for below in [&b"way/in"[..], b"way"] {
        drop(source.rescan(&at(below)));
        source.wait();
        let names = source.shared.tree().largest.iter().map(|(_, row)| row.name.to_vec()).collect::<Vec<_>>();
        assert!(!names.contains(&b"large".to_vec()), "{below:?}");
    }
    fs::remove_file(tree.root().join("way")).unwrap();
    fs::create_dir_all(tree.root().join("way/in")).unwrap();
    assert!(source.rescan(&at(b"way")).is_ok(), "it is a directory again");
    source.wait();
    // A survey below the link: its answer equals the walk's, or is an error.
    fs::remove_dir_all(tree.root().join("way")).unwrap();
    std::os::unix::fs::symlink(tree.beside("outside"), tree.root().join("way")).unwrap();
    let cancelled = &NOT_CANCELLED;
    assert!(source.reach(&at(b"way/in")).is_err());
    let (name, root, above) = source.reach(&at(b"way")).unwrap();
    assert!(
        source
            .survey(vec![(name, root)], above, Follow::No, cancelled, None)
            .is_ok_and(|survey| survey.known_largest(&top(), 9).is_none_or(|(rows, _)| rows.is_empty()))
    );
}

#[test]
fn a_file_that_was_modified_since_the_start_leaves_the_sums() {
    let tree = TestTree::without_links(4);
    let dir = tree.root().join("log");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("kept"), [1; 700]).unwrap();
    fs::write(dir.join("growing"), [1; 10]).unwrap();
    let mut source = walked(&tree, LiveOptions::default());
    fs::write(dir.join("growing"), [1; 50_000]).unwrap();
    let later = SystemTime::now() + Duration::from_secs(3600);
    fs::File::options().write(true).open(dir.join("growing")).unwrap().set_modified(later).unwrap();
    let row = listed(&mut source, b"log").remove(0);
    assert_eq!((&row.name[..], row.amount.apparent), (&b"growing"[..], 50_000));
    fs::remove_file(dir.join("growing")).unwrap();
    source.removed(&[(at(b"log"), row)]);
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));
}

#[test]
fn a_file_that_goes_while_its_directory_is_walked_leaves_the_sums() {
    let tree = TestTree::without_links(4);
    fs::write(tree.root().join("gone"), [1; 5000]).unwrap();
    let mut source = walked(&tree, LiveOptions::default());
    let row = listed(&mut source, b"").into_iter().find(|row| &row.name[..] == b"gone").unwrap();
    // As if the walk had counted the file, and had not come to the end of the directory.
    {
        let mut shared = source.shared.tree();
        let root = shared.roots()[0];
        let new = shared.renew(root);
        shared.add(new, &row.amount.with_itself(), None);
    }
    fs::remove_file(tree.root().join("gone")).unwrap();
    source.removed(&[(top(), row)]);
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));
}

#[test]
fn a_directory_that_has_appeared_can_be_walked() {
    let tree = TestTree::without_links(4);
    let mut source = walked(&tree, LiveOptions::default());
    fs::create_dir_all(tree.root().join("trash/files")).unwrap();
    fs::write(tree.root().join("trash/files/f"), [1; 5000]).unwrap();
    assert!(source.rescan(&at(b"trash/files")).is_err(), "its parent is unknown");
    assert!(source.rescan(&at(b"trash")).is_ok());
    source.wait();
    assert_eq!(source.roots()[0].amount, tree.sums(false));
    fs::write(tree.root().join("file"), [1; 5000]).unwrap();
    assert!(source.rescan(&at(b"file")).is_err(), "no directory");
    assert_eq!(source.shared.tree().progress().failures, 0);
}
