//! Inventories against the standard library, live trees, and the reports of `fathom-inventory`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_questions::diff::{DiffOptions, Sides, growth};
use fathom_questions::usage::{UsageTarget, directories, find};
use fathom_scans::import::{ImportFormat, ImportSource, import};
use fathom_scans::scan::{Exclusions, Scan, scan};

use super::*;
use crate::sources::live::{LiveOptions, LiveSource};
use crate::sources::test_tree::{
    NOT_CANCELLED, TestTree, assert_facts, assert_sums, at, listed, sizes, sums_of, top,
};

fn scanned(tree: &TestTree, name: &str, options: Scan) -> PathBuf {
    let out = tree.beside(name);
    scan(&Scan { roots: vec![tree.c_root()], ..options }, &out, &mut ()).unwrap();
    out
}

/// Scans with a file for every few entries, so that directories span files.
fn in_many_files(tree: &TestTree) -> PathBuf {
    scanned(tree, "many.inv", Scan { checkpoint_entries: 3, ..Scan::default() })
}

#[test]
fn rows_and_sums_are_those_of_the_tree() {
    for seed in fathom_cases::seeds(12) {
        let tree = TestTree::random(seed);
        let out =
            if seed % 2 == 0 { in_many_files(&tree) } else { scanned(&tree, "one.inv", Scan::default()) };
        let mut source = InventorySource::open(&out, None).unwrap();
        assert_eq!(source.roots()[0].amount, tree.sums(false), "seed {seed}");
        assert_facts(&mut source, &tree);
        assert_sums(&mut source, &tree);
        let progress = source.progress();
        assert_eq!((progress.entries, progress.finished), (source.roots()[0].amount_of_names(&tree), true));
    }
}

impl Row {
    /// Returns the number of names in the tree, with the root.
    fn amount_of_names(&self, tree: &TestTree) -> u64 {
        assert_eq!(self.file_type, FileType::Directory);
        tree.sums(true).entries + 1
    }
}

#[test]
fn an_inventory_equals_the_live_tree() {
    for seed in fathom_cases::seeds(8) {
        let tree = TestTree::without_links(seed);
        let mut inventory = InventorySource::open(&in_many_files(&tree), None).unwrap();
        let mut live = LiveSource::start(vec![tree.c_root()], LiveOptions::default()).unwrap();
        live.wait();
        assert_eq!(inventory.roots(), live.roots());
        for below in tree.dirs() {
            assert_eq!(listed(&mut inventory, &below), listed(&mut live, &below), "seed {seed}: {below:?}");
            let largest = |source: &mut dyn Source| {
                let mut all = source.largest(&at(&below), 1000, &NOT_CANCELLED).unwrap();
                all.sort_by(|one, other| {
                    (&one.place.below, &one.row.name).cmp(&(&other.place.below, &other.row.name))
                });
                all
            };
            assert_eq!(largest(&mut inventory), largest(&mut live), "seed {seed}: {below:?}");
        }
        for key in [SumKey::Extension, SumKey::Owner] {
            let sums = |source: &mut dyn Source| source.sums(key, &NOT_CANCELLED).unwrap();
            assert_eq!(sums(&mut inventory), sums(&mut live), "seed {seed}");
        }
        let files = |rows: Vec<SumRow>| rows.iter().map(|row| row.amount.entries).sum::<u64>();
        let ages = |source: &mut dyn Source| files(source.sums(SumKey::Age, &NOT_CANCELLED).unwrap());
        assert_eq!(ages(&mut inventory), ages(&mut live));
    }
}

#[test]
fn sums_are_those_of_the_usage_of_directories() {
    for (seed, max_depth) in [(0, None), (3, Some(1)), (5, Some(2)), (6, Some(3)), (7, None)] {
        // `du` counts an inode with several names in one directory.
        let tree = TestTree::without_links(seed);
        let exclusions = Exclusions { max_depth, ..Exclusions::default() };
        let out = scanned(&tree, "some.inv", Scan { exclusions, checkpoint_entries: 5, ..Scan::default() });
        let mut source = InventorySource::open(&out, None).unwrap();
        let inventory = Inventory::open(&out).unwrap();
        let root = tree.root();
        let UsageTarget::Directory(usage) = find(&inventory, root.as_os_str().as_bytes()).unwrap() else {
            panic!()
        };
        let mut expected = HashMap::new();
        directories(&inventory, &usage, None, true, |dir| {
            let below = &dir.path[root.as_os_str().len()..];
            expected.insert(below.strip_prefix(b"/").unwrap_or(below).to_vec(), dir.all);
        })
        .unwrap();
        let (mut dirs, mut at_dir) = (vec![Vec::new()], 0);
        while let Some(below) = dirs.get(at_dir).cloned() {
            for row in
                listed(&mut source, &below).into_iter().filter(|row| row.file_type == FileType::Directory)
            {
                let path = joined(&below, &row.name);
                match expected.get(&path) {
                    Some(sum) => {
                        let amount = row.amount.with_itself();
                        assert_eq!(
                            (amount.allocated, amount.apparent, amount.entries),
                            (sum.allocated, sum.apparent, sum.entries)
                        );
                        dirs.push(path);
                    }
                    None => assert_eq!((row.state, row.amount), (RowState::Skipped, Amount::default())),
                }
            }
            at_dir += 1;
        }
        assert_eq!(dirs.len(), expected.len(), "seed {seed}");
        assert_eq!(source.roots()[0].amount.allocated, expected[&b""[..]].allocated);
    }
}

/// Asserts that the growth of each directory equals the growth of its rows: of what is new by its
/// size, of what is gone by the size that it had. Returns the number of rows that are gone.
fn assert_growth_of_rows(source: &mut dyn Source, tree: &TestTree) -> usize {
    let mut gone = 0;
    for below in tree.dirs() {
        let rows = listed(source, &below);
        let Some(growth) = source.row_sums(Some(&at(&below))).growth else {
            assert!(rows.iter().all(|row| row.growth.is_none()), "{below:?}");
            continue;
        };
        let grown = rows.iter().map(|row| match (row.growth, row.state) {
            (Some(growth), RowState::Gone) => (growth.apparent, growth.entries - 1),
            (Some(growth), _) => (growth.apparent, growth.entries),
            (None, _) => (row.amount.apparent.cast_signed(), row.amount.entries.cast_signed() + 1),
        });
        let sum = grown.fold((0, 0), |sum, (apparent, entries)| (sum.0 + apparent, sum.1 + entries));
        assert_eq!((growth.apparent, growth.entries), sum, "{below:?}");
        gone += rows.iter().filter(|row| row.state == RowState::Gone).count();
    }
    gone
}

#[test]
fn rows_of_what_is_gone_explain_the_growth_of_their_directory() {
    for seed in fathom_cases::seeds(8) {
        let tree = TestTree::without_links(seed);
        fs::create_dir(tree.root().join("emptied")).unwrap();
        fs::write(tree.root().join("emptied/file"), [1; 700]).unwrap();
        let old = scanned(&tree, "older.inv", Scan::default());
        fs::remove_file(tree.root().join("emptied/file")).unwrap();
        let first = tree.dirs().into_iter().find(|below| !below.is_empty() && below != b"emptied");
        let removed = first.is_some_and(|below| fs::remove_dir_all(tree.path(&below)).is_ok());
        fs::write(tree.root().join("added"), [1; 10]).unwrap();
        let new = scanned(&tree, "new.inv", Scan::default());
        let mut source = InventorySource::open(&new, Some(&old)).unwrap();
        assert_eq!(assert_growth_of_rows(&mut source, &tree), 1 + usize::from(removed), "seed {seed}");
        let rows = listed(&mut source, b"emptied");
        assert_eq!((rows.len(), &rows[0].name[..], rows[0].has_meta()), (1, &b"file"[..], false));
        assert_eq!(rows[0].growth.unwrap().apparent, -700);
        let [one, all] = [Some(&top()), None].map(|place| source.row_sums(place).growth);
        assert!(one.is_some() && one == all);

        let options = LiveOptions { since: Some(old.clone()), ..LiveOptions::default() };
        let mut live = LiveSource::start(vec![tree.c_root()], options).unwrap();
        live.wait();
        assert_eq!(assert_growth_of_rows(&mut live, &tree), 1 + usize::from(removed), "seed {seed}");

        // An entry that another selection lacks may be there.
        let fewer = Scan { options: [("exclude".to_owned(), "file".to_owned())].into(), ..Scan::default() };
        let fewer = scanned(&tree, "fewer.inv", fewer);
        let mut source = InventorySource::open(&fewer, Some(&old)).unwrap();
        assert!(listed(&mut source, b"emptied").is_empty());
    }
}

#[test]
fn growth_is_that_of_the_diff() {
    for seed in fathom_cases::seeds(8) {
        let tree = TestTree::without_links(seed);
        let old = in_many_files(&tree);
        let dirs = tree.dirs();
        let changed = tree.path(&dirs[dirs.len() / 2]);
        fs::write(changed.join("grown"), vec![1; 300_000]).unwrap();
        fs::create_dir(changed.join("new")).unwrap();
        fs::write(changed.join("new/file"), vec![1; 5000]).unwrap();
        fs::write(tree.root().join("grown"), [1; 10]).unwrap();
        let middle = scanned(&tree, "middle.inv", Scan::default());
        fs::write(tree.root().join("grown"), [1; 20_000]).unwrap();
        let new = scanned(&tree, "new.inv", Scan::default());
        let (old_inventory, new_inventory) = (Inventory::open(&old).unwrap(), Inventory::open(&new).unwrap());
        let scratch = tree.beside("");
        let options = DiffOptions { below: None, scratch };
        let sides = Sides { old: &old_inventory, new: &new_inventory };
        let report = growth(&sides, &options, usize::MAX).unwrap();
        let expected: HashMap<_, _> = report.rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        let mut source = InventorySource::open(&new, Some(&old)).unwrap();
        let root = source.roots()[0].growth.unwrap();
        assert_eq!(root.allocated, expected[tree.root().as_os_str().as_bytes()].allocated);
        for below in tree.dirs() {
            let is_new = below.ends_with(b"new");
            for row in listed(&mut source, &below) {
                let path = tree.path(&below).join(std::ffi::OsStr::from_bytes(&row.name));
                let Some(found) = row.growth else {
                    assert!(is_new || row.name.ends_with(b"new") || row.name.ends_with(b"grown"), "{path:?}");
                    continue;
                };
                if row.file_type == FileType::Directory {
                    let growth = expected.get(path.as_os_str().as_bytes()).cloned().unwrap_or_default();
                    assert_eq!(
                        (found.allocated, found.apparent, found.entries),
                        (growth.allocated, growth.apparent, growth.entries),
                        "{path:?}"
                    );
                } else {
                    assert_eq!(found, Amount::default(), "{path:?}");
                }
            }
        }
        let mut source = InventorySource::open(&new, Some(&middle)).unwrap();
        let rows = listed(&mut source, b"");
        let grown = rows.iter().find(|row| &row.name[..] == b"grown").unwrap();
        assert_eq!(grown.growth.unwrap().apparent, 19_990);
    }
}

#[test]
fn removed_entries_are_hidden() {
    for seed in fathom_cases::seeds(6) {
        let tree = TestTree::without_links(seed);
        let mut source = InventorySource::open(&in_many_files(&tree), None).unwrap();
        let dirs = tree.dirs();
        let below = dirs[dirs.len() - 1].clone();
        let before = source.roots()[0].amount;
        let mut expected = before;
        for row in listed(&mut source, &below) {
            source.removed(&[(at(&below), row.clone())]);
            expected.subtract(&row.amount.with_itself());
            assert_eq!(source.roots()[0].amount, expected);
        }
        assert!(listed(&mut source, &below).is_empty());
        let largest = source.largest(&top(), 1000, &NOT_CANCELLED).unwrap();
        assert!(largest.iter().all(|file| file.place.below != below));
        if !below.is_empty() {
            let (parent, name) = match below.iter().rposition(|byte| *byte == b'/') {
                Some(slash) => (&below[..slash], &below[slash + 1..]),
                None => (&b""[..], &below[..]),
            };
            let rows = listed(&mut source, parent);
            let row = rows.iter().find(|row| &row.name[..] == name).unwrap();
            assert_eq!(row.amount, sizes(&tree.path(&below)), "only its own inode is left");
            source.removed(&[(at(parent), row.clone())]);
            assert_eq!(source.roots()[0].amount.entries, expected.entries - 1);
            assert!(source.largest(&top(), 1000, &NOT_CANCELLED).unwrap().len() <= largest.len());
        }
    }
}

/// Once, what an import does not have was root's and from 1970.
#[test]
fn owners_and_times_that_an_import_lacks_are_unknown() {
    let tree = TestTree::random(1);
    let export = br#"[1,2,{},[{"name":"/t"},{"name":"a","asize":5,"dsize":4096},{"name":"b","read_error":true},{"name":"c","asize":5,"dsize":4096,"uid":0,"mtime":0}]]"#;
    let (out, mut input) = (tree.beside("ncdu.inv"), &export[..]);
    let (source, stop) = (ImportSource::default(), AtomicBool::new(false));
    import(ImportFormat::Ncdu, &mut input, &source, &out, &stop, &mut |_| ()).unwrap();
    let mut source = InventorySource::open(&out, None).unwrap();
    let facts = |row: &Row| (row.has_meta(), row.uid, row.newest_mtime_s);
    let rows = listed(&mut source, b"");
    assert_eq!(
        rows.iter().map(facts).collect::<Vec<_>>(),
        [(true, None, None), (false, None, None), (true, Some(0), Some(0))]
    );
    for (key, unknown) in [(SumKey::Owner, &b"(unknown)"[..]), (SumKey::Age, b"unknown")] {
        // A file that could not be examined is in no sum, as in a live tree.
        let sums = source.sums(key, &NOT_CANCELLED).unwrap();
        assert_eq!(sums.iter().map(|sum| sum.amount.entries).sum::<u64>(), 2, "{key:?}");
        assert!(sums.iter().any(|sum| sum.key == unknown && sum.amount.entries == 1), "{sums:?}");
    }
}

#[test]
fn roots_keep_their_order() {
    let tree = TestTree::random(3);
    let file = tree.beside("file");
    fs::write(&file, [1; 5000]).unwrap();
    let path = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let roots =
        vec![path(&tree.beside("missing")), tree.c_root(), path(&file), path(&tree.root().join("d0"))];
    let out = tree.beside("roots.inv");
    scan(&Scan { roots: roots.clone(), ..Scan::default() }, &out, &mut ()).unwrap();
    let mut source = InventorySource::open(&out, Some(&out)).unwrap();
    let rows = source.roots();
    let names: Vec<_> = rows.iter().map(|row| row.name.to_vec()).collect();
    assert_eq!(names, roots.iter().map(|root| root.to_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(rows[0].state, RowState::Unreadable);
    assert_eq!((rows[2].file_type, rows[2].amount), (FileType::Regular, sizes(&file)));
    assert_eq!(rows[1].growth, Some(Amount::default()));
    let found = source.list(&Place { root: 3, below: Vec::new() }, &NOT_CANCELLED).unwrap();
    assert_eq!(found.len(), fs::read_dir(tree.root().join("d0")).unwrap().count());
    assert_eq!(
        source.list(&Place { root: 0, below: Vec::new() }, &NOT_CANCELLED),
        Err(SourceError::Os("find", Errno::NOENT))
    );
    assert_eq!(source.local_root(1), Some(tree.c_root().to_bytes().to_vec()));
    assert_eq!((source.rescan(&top()).is_err(), source.local_root(7)), (true, None));
}

#[test]
fn a_tree_of_a_relative_scan_is_where_the_scan_was() {
    let tree = TestTree::random(3);
    let out = tree.beside("relative.inv");
    scan(&Scan { roots: vec![c"./src".to_owned()], ..Scan::default() }, &out, &mut ()).unwrap();
    let source = InventorySource::open(&out, None).unwrap();
    let place = std::env::current_dir().unwrap().join("src");
    assert_eq!(source.local_root(0), Some(place.as_os_str().as_bytes().to_vec()));
}

#[test]
fn questions_that_nobody_wants_end() {
    let tree = TestTree::random(3);
    let mut source = InventorySource::open(&in_many_files(&tree), None).unwrap();
    let cancelled = AtomicBool::new(true);
    assert_eq!(source.list(&top(), &cancelled), Err(SourceError::Cancelled));
    assert_eq!(source.sums(SumKey::Owner, &cancelled), Err(SourceError::Cancelled));
    assert_eq!(source.largest(&top(), 10, &cancelled), Err(SourceError::Cancelled));
    assert!(source.list(&top(), &NOT_CANCELLED).is_ok());
    let missing = InventorySource::open(&tree.beside("none"), None).unwrap_err();
    assert!(matches!(missing, SourceError::Other(why) if why.contains("No such file")));
}

#[test]
fn removed_entries_leave_the_sums_of_all_files() {
    for seed in fathom_cases::seeds(6) {
        let tree = TestTree::random(seed);
        let mut source = InventorySource::open(&in_many_files(&tree), None).unwrap();
        let mut random = fathom_io::Random::new(seed);
        for _ in 0..6 {
            let dirs = tree.dirs();
            let below = dirs[random.below(dirs.len())].clone();
            let rows = listed(&mut source, &below);
            let Some(row) = rows.get(random.below(rows.len().max(1))) else { continue };
            let path = tree.path(&below).join(std::ffi::OsStr::from_bytes(&row.name));
            if row.file_type == FileType::Directory {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
            source.removed(&[(at(&below), row.clone())]);
            // An inode with several names counts as long as one of them is left.
            let mut expected = tree.sums(false);
            let dirs = tree.dirs();
            dirs.iter().for_each(|below| expected.subtract(&sizes(&tree.path(below)).with_itself()));
            let mut files = Amount::default();
            for row in source.sums(SumKey::Owner, &NOT_CANCELLED).unwrap() {
                files.add(&row.amount);
            }
            assert_eq!(files.apparent, expected.apparent, "seed {seed}");
            let all = source.largest(&top(), 1000, &NOT_CANCELLED).unwrap();
            assert_eq!(all.len() as u64, files.entries, "seed {seed}");
            for below in tree.dirs() {
                let (found, expected) = (sums_of(&mut source, &below), tree.sums_below(&below, false));
                let facts = |sums: Amount<u64>| (sums.apparent, sums.entries);
                assert_eq!(facts(found), facts(expected), "seed {seed}: {below:?}");
                assert_eq!(source.row_sums(Some(&at(&below))).total, Some(found), "seed {seed}: {below:?}");
            }
            assert_eq!(source.row_sums(None).total, Some(sums_of(&mut source, b"")), "seed {seed}");
        }
    }
}

/// Each name of a file that is searched for, in a live tree and in an inventory.
#[test]
fn a_search_finds_every_name_in_the_whole_tree() {
    for seed in 0..6 {
        let tree = TestTree::random(seed);
        let out = scanned(&tree, "some.inv", Scan::default());
        let mut inventory = InventorySource::open(&out, None).unwrap();
        let mut live = LiveSource::start(vec![tree.c_root()], LiveOptions::default()).unwrap();
        let is_wanted = |row: &Row| !row.amount.apparent.is_multiple_of(3);
        for below in tree.dirs() {
            let (mut expected, mut total) = (Vec::new(), Amount::default());
            for dir in tree.dirs().into_iter().filter(|dir| {
                below.is_empty() || *dir == below || dir.starts_with(&[&below[..], b"/"].concat())
            }) {
                let rows = listed(&mut inventory, &dir).into_iter();
                for row in rows.filter(|row| row.file_type != FileType::Directory && is_wanted(row)) {
                    total.add(&row.amount.with_itself());
                    expected.push((dir.clone(), row.name.to_vec()));
                }
            }
            expected.sort();
            for source in [&mut inventory as &mut dyn Source, &mut live] {
                let mut find = |count_max| {
                    let search = FileSearch { admits: Arc::new(is_wanted), count_max };
                    let found = source.search(&at(&below), &search, &NOT_CANCELLED, &mut |_| ()).unwrap();
                    assert_eq!(found.total, total, "seed {seed}: {below:?}");
                    found.files
                };
                let all = find(usize::MAX);
                let mut names: Vec<_> =
                    all.iter().map(|file| (file.place.below.clone(), file.row.name.to_vec())).collect();
                names.sort();
                assert_eq!(names, expected, "seed {seed}: {below:?}");
                let sizes = |files: &[PlacedRow]| -> Vec<u64> {
                    files.iter().map(|file| file.row.amount.allocated).collect()
                };
                assert_eq!(sizes(&find(3)), sizes(&all[..all.len().min(3)]));
            }
        }
    }
}

#[test]
fn directories_have_what_they_share_with_others() {
    let tree = TestTree::without_links(3);
    for path in ["one/inside", "two"] {
        fs::create_dir_all(tree.root().join(path)).unwrap();
    }
    let link = |from: &str, to: &str| fs::hard_link(tree.root().join(from), tree.root().join(to)).unwrap();
    for (name, bytes) in [("one/all", 40_000), ("one/inside/both", 70_000), ("two/alone", 9_000)] {
        fs::write(tree.root().join(name), vec![1; bytes]).unwrap();
    }
    link("one/all", "one/inside/all");
    link("one/inside/both", "two/both");
    fs::hard_link(tree.root().join("two/alone"), tree.beside("elsewhere")).unwrap();
    let out = scanned(&tree, "some.inv", Scan::default());
    let mut inventory = InventorySource::open(&out, None).unwrap();
    let mut live = LiveSource::start(vec![tree.c_root()], LiveOptions::default()).unwrap();
    live.wait();
    let allocated = |name: &str| sizes(&tree.root().join(name)).allocated;
    let [all, both, alone] = ["one/all", "two/both", "two/alone"].map(allocated);
    for source in [&mut inventory as &mut dyn Source, &mut live] {
        let mut shared = |below: &str, name: &str| {
            let rows = listed(source, below.as_bytes());
            rows.into_iter().find(|row| *row.name == *name.as_bytes()).unwrap().shared
        };
        assert_eq!((shared("", "one"), shared("", "two")), (both, both + alone));
        assert_eq!(shared("one", "inside"), all + both);
        assert!(
            listed(source, b"")
                .iter()
                .all(|row| row.shared == 0 || [&b"one"[..], b"two"].contains(&&*row.name))
        );
    }
    // Once its other name is gone, a file is shared with nobody, and one that is gone takes none.
    let mut rows = listed(&mut live, b"two");
    rows.retain(|row| *row.name == *b"both" || *row.name == *b"alone");
    let gone: Vec<_> = rows.into_iter().map(|row| (at(b"two"), row)).collect();
    assert_eq!(gone.len(), 2);
    for (_, row) in &gone {
        fs::remove_file(tree.root().join("two").join(std::ffi::OsStr::from_bytes(&row.name))).unwrap();
    }
    for source in [&mut inventory as &mut dyn Source, &mut live] {
        source.removed(&gone);
        let rows = listed(source, b"");
        assert!(rows.iter().all(|row| row.shared == 0), "{rows:?}");
    }
}
