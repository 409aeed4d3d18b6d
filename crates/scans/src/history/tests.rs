//! Tests of stores of real inventories, of a few files each.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fathom_text::time::Zone;
use proptest::prelude::*;

use super::*;
use crate::scan::{Scan, scan};
use fathom_inventory::store::Manifest;

const DAY: i64 = 86_400;
const FIRST: i64 = 1_790_000_000;

/// A store, and trees that can be scanned into it.
struct Site {
    top: tempfile::TempDir,
    history: History,
}

impl Site {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        for tree in ["a", "b"] {
            fs::create_dir_all(top.path().join(tree).join("inner")).unwrap();
            fs::write(top.path().join(tree).join("file"), tree).unwrap();
            fs::write(top.path().join(tree).join("inner/file"), tree).unwrap();
        }
        let history = History::create(&top.path().join("deep/store"), None).unwrap();
        Self { top, history }
    }

    fn scan_of(&self, tree: &str) -> Scan {
        let root = CString::new(self.top.path().join(tree).as_os_str().as_bytes()).unwrap();
        Scan { roots: vec![root], ..Scan::default() }
    }

    /// Scans a tree at a time. A scan that is stopped reads nothing.
    fn keep(&self, tree: &str, time: i64, stopped: bool) -> PathBuf {
        self.keep_scan(self.scan_of(tree), time, stopped)
    }

    fn keep_scan(&self, wanted: Scan, time: i64, stopped: bool) -> PathBuf {
        let out = self.history.free_path(time);
        let stop = std::sync::Arc::new(stopped.into());
        let outcome = scan(&Scan { stop, ..wanted }, &out, &mut ()).unwrap();
        assert_eq!(outcome.manifest.completeness.stopped.is_some(), stopped);
        out
    }

    /// Makes a copy of an inventory under the name of a time.
    fn copy(&self, from: &Path, time: i64) -> PathBuf {
        let to = self.history.free_path(time);
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            fs::hard_link(from.join(&name), to.join(&name)).unwrap();
        }
        to
    }

    fn prune(&self, retention: &Retention) -> Vec<PathBuf> {
        let plan = plan(self.history.snapshots().unwrap(), retention, &Zone::UTC);
        plan.removed.iter().for_each(|snapshot| remove(snapshot).unwrap());
        plan.removed.into_iter().map(|snapshot| snapshot.path).collect()
    }
}

#[test]
fn scans_of_one_second_have_names_of_their_own() {
    let site = Site::new();
    let paths = [site.keep("a", FIRST, false), site.keep("a", FIRST, false), site.keep("b", FIRST, false)];
    let names = paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    assert_eq!(names, ["2026-09-21T14-13-20Z.inv", "2026-09-21T14-13-21Z.inv", "2026-09-21T14-13-22Z.inv"]);
    // An unfinished scan takes a name as well.
    fs::create_dir(site.history.directory().join("2026-09-21T14-13-23Z.inv.part")).unwrap();
    assert!(site.history.free_path(FIRST).ends_with("2026-09-21T14-13-24Z.inv"));
    // A second that became free again, or a clock that was set back, makes no scan older.
    fs::remove_dir_all(site.history.directory().join(&names[0])).unwrap();
    for now in [FIRST, FIRST - 3600] {
        assert!(site.history.free_path(now).ends_with("2026-09-21T14-13-24Z.inv"), "{now}");
    }
    assert!(site.history.free_path(FIRST - DAY).ends_with("2026-09-20T14-13-20Z.inv"));
}

#[test]
fn a_scan_continues_from_the_newest_of_the_same_trees_that_ended() {
    let site = Site::new();
    let chosen = |scan: &Scan| {
        let snapshots = site.history.snapshots().unwrap();
        earlier(&snapshots, scan).map(|snapshot| snapshot.path.clone())
    };
    let (a, b) = (site.scan_of("a"), site.scan_of("b"));
    assert_eq!(chosen(&a), None);
    let first = site.keep("a", FIRST, false);
    site.keep("b", FIRST + DAY, false);
    assert_eq!(chosen(&a), Some(first.clone()));
    let stopped = site.keep("a", FIRST + 2 * DAY, true);
    assert_eq!(chosen(&a), Some(first));
    let going = |roots: &[CString]| {
        unfinished(&site.history.snapshots().unwrap(), roots, false).map(|one| one.path.clone())
    };
    assert_eq!((going(&[]), going(&a.roots), going(&b.roots)), (Some(stopped.clone()), Some(stopped), None));
    let second = site.keep("a", FIRST + 3 * DAY, false);
    assert_eq!(chosen(&a), Some(second));
    assert_eq!(going(&[]), None);
    // Other options give other entries.
    let mut other = a.clone();
    other.exclusions.max_depth = Some(3);
    assert_eq!(chosen(&other), None);
    other = a.clone();
    other.options.insert("exclude".to_owned(), "*.o".to_owned());
    assert_eq!(chosen(&other), None);
    other = a.clone();
    other.optional_columns = "acl".parse().unwrap();
    assert_eq!(chosen(&other), None);
    assert!(
        chosen(&b).is_some()
            && chosen(&Scan { roots: [a.roots, b.roots].concat(), ..Scan::default() }).is_none()
    );
}

#[test]
fn the_baseline_is_not_younger_than_the_moment_if_one_is_that_old() {
    let site = Site::new();
    let first = site.keep("a", FIRST, false);
    let times = [1, 2, 5].map(|day| FIRST + day * DAY);
    let paths = times.map(|time| site.copy(&first, time));
    site.keep("b", FIRST + 4 * DAY, false);
    let snapshots = site.history.snapshots().unwrap();
    let newest = newest(&snapshots).unwrap();
    assert_eq!(newest.path, paths[2]);
    let chosen = |moment: Option<i64>| {
        let found = baseline(&snapshots, newest, moment).unwrap();
        (found.snapshot.path.clone(), found.is_younger)
    };
    assert_eq!(chosen(None), (paths[1].clone(), false));
    assert_eq!(chosen(Some(FIRST + 2 * DAY)), (paths[1].clone(), false));
    assert_eq!(chosen(Some(FIRST + 2 * DAY - 1)), (paths[0].clone(), false));
    assert_eq!(chosen(Some(FIRST)), (first.clone(), false));
    assert_eq!(chosen(Some(FIRST - 1)), (first, true));
    let oldest = &snapshots[0];
    assert!(baseline(&snapshots, oldest, None).is_none());
}

#[test]
fn what_is_no_dated_inventory_is_neither_listed_nor_removed() {
    let site = Site::new();
    let at = |name: &str| site.history.directory().join(name);
    let first = site.keep("a", FIRST, false);
    let second = site.copy(&first, FIRST + DAY);
    let third = site.copy(&first, FIRST + 2 * DAY);
    scan(&site.scan_of("a"), &at("home.inv"), &mut ()).unwrap();
    fs::write(at("2026-09-01T00-00-00Z.inv"), "a file").unwrap();
    std::os::unix::fs::symlink(&third, at("2026-09-02T00-00-00Z.inv")).unwrap();
    fs::create_dir(at("2026-09-03T00-00-00Z.inv")).unwrap();
    fs::create_dir(at(".2026-09-04T00-00-00Z.inv.removed")).unwrap();
    fs::write(at(".2026-09-04T00-00-00Z.inv.removed").join("entries-00000.parquet"), "").unwrap();
    fs::create_dir(at(".2026-09-05T00-00-00Z.inv.removed")).unwrap();
    fs::write(at(".2026-09-05T00-00-00Z.inv.removed").join("thesis.txt"), "").unwrap();
    fs::write(second.join("thesis.txt"), "mine").unwrap();
    let retention = Retention { last: 1, ..Retention::default() };
    let planned = plan(site.history.snapshots().unwrap(), &retention, &Zone::UTC);
    let removed: Vec<_> = planned.removed.iter().map(|snapshot| &snapshot.path).collect();
    assert_eq!(removed, [&first, &second]);
    remove(&planned.removed[0]).unwrap();
    let refused = remove(&planned.removed[1]).unwrap_err().to_string();
    assert!(refused.contains("thesis.txt") && second.join("manifest.json").exists(), "{refused}");
    remove_leftovers(&site.history, &mut |error| panic!("{error}")).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(site.history.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let names = [
        ".2026-09-05T00-00-00Z.inv.removed",
        "2026-09-01T00-00-00Z.inv",
        "2026-09-02T00-00-00Z.inv",
        "2026-09-03T00-00-00Z.inv",
        "2026-09-22T14-13-20Z.inv",
        "2026-09-23T14-13-20Z.inv",
        "home.inv",
    ];
    assert_eq!(left, names);
    let state = |snapshot: &Snapshot| matches!(snapshot.state, SnapshotState::Unreadable(_));
    assert_eq!(site.history.snapshots().unwrap().iter().map(state).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn scans_that_did_not_end_stay_until_a_later_one_did() {
    let site = Site::new();
    let retention = Retention { last: 1, ..Retention::default() };
    let stopped = site.keep("a", FIRST, true);
    let part = site.history.directory().join("2026-09-22T14-13-20Z.inv.part");
    fs::create_dir(&part).unwrap();
    assert!(site.prune(&retention).is_empty());
    site.keep("b", FIRST + 2 * DAY, false);
    assert!(site.prune(&retention).is_empty());
    site.keep("a", FIRST + 3 * DAY, false);
    // The roots of the unfinished one are unknown, so it is kept.
    assert_eq!(site.prune(&retention), [stopped]);
    assert!(part.exists());
    let unfinished = site.keep("a", FIRST + 4 * DAY, true);
    fs::rename(&unfinished, unfinished.with_extension("inv.part")).unwrap();
    fs::remove_file(unfinished.with_extension("inv.part").join("manifest.json")).unwrap();
    assert!(site.prune(&retention).is_empty());
    site.keep("a", FIRST + 5 * DAY, false);
    assert_eq!(site.prune(&retention).len(), 2);
    assert!(!unfinished.with_extension("inv.part").exists());
}

#[test]
fn a_store_is_locked_by_one_process() {
    let site = Site::new();
    let lock = site.history.lock(&mut |_| ()).unwrap();
    assert!(site.history.lock(&mut |_| ()).is_err());
    lock.release().unwrap();
    site.history.lock(&mut |_| ()).unwrap().release().unwrap();
    assert_eq!(fs::read_dir(site.history.directory()).unwrap().count(), 0);
    assert!(History::open(&site.top.path().join("none")).is_err());
}

#[test]
fn scans_of_another_scope_are_of_other_trees() {
    let site = Site::new();
    let full = site.scan_of("a");
    let mut shallow = full.clone();
    shallow.exclusions.max_depth = Some(1);
    shallow.options.insert("max-depth".to_owned(), "1".to_owned());
    let paths = [0, 1].map(|day| site.keep_scan(full.clone(), FIRST + day * DAY, false));
    let stopped = site.keep_scan(full.clone(), FIRST + 2 * DAY, true);
    let killed = site.keep_scan(full.clone(), FIRST + 3 * DAY, true);
    let part = crate::scan::part_path(&killed);
    fs::rename(&killed, &part).unwrap();
    fs::remove_file(part.join("manifest.json")).unwrap();
    site.keep_scan(shallow, FIRST + 4 * DAY, false);
    let snapshots = site.history.snapshots().unwrap();
    assert!(baseline(&snapshots, newest(&snapshots).unwrap(), None).is_none());
    assert_eq!(unfinished(&snapshots, &[], false).map(|one| &one.path), Some(&part));
    assert_eq!(site.prune(&Retention { last: 1, ..Retention::default() }), [paths[0].clone()]);
    assert!(stopped.exists() && part.exists());
}

#[test]
fn a_full_scan_does_not_go_on_with_one_that_copies() {
    let site = Site::new();
    let first = site.keep("a", FIRST, false);
    let chosen = |is_full| {
        let snapshots = site.history.snapshots().unwrap();
        unfinished(&snapshots, &[], is_full).map(|snapshot| snapshot.path.clone())
    };
    let full = site.keep("a", FIRST + DAY, true);
    let copies = site.keep_scan(Scan { since: Some(first), ..site.scan_of("a") }, FIRST + 2 * DAY, true);
    assert_eq!((chosen(false), chosen(true)), (Some(copies), Some(full)));
    // A scan of other trees changes nothing, and a directory without a journal is taken last.
    site.keep("b", FIRST + 3 * DAY, false);
    assert!(chosen(true).is_some());
    let empty = site.history.directory().join("2026-09-26T14-13-20Z.inv.part");
    fs::create_dir(&empty).unwrap();
    let snapshots = site.history.snapshots().unwrap();
    let roots = |tree: &str| unfinished(&snapshots, &site.scan_of(tree).roots, false).map(|one| &one.path);
    assert!(roots("a").is_some_and(|path| *path != empty) && roots("b") == Some(&empty));
}

/// The sets of trees of the snapshots that are drawn: the machine, and the depth of the scans.
const SETS: [&str; 3] = ["one 1", "one 2", "two 1"];

/// Returns a snapshot without files.
fn snapshot(time: i64, set: &str, ended: bool, complete: bool, manifest: &Manifest) -> Snapshot {
    let (host, depth) = set.split_once(' ').unwrap();
    let mut manifest = Box::new(Manifest { host: host.to_owned(), ..manifest.clone() });
    manifest.options.insert("max-depth".to_owned(), depth.to_owned());
    manifest.completeness.failed = u64::from(!complete);
    manifest.completeness.stopped = (!ended).then(|| "deadline".to_owned());
    let state = if ended { SnapshotState::Ended(manifest) } else { SnapshotState::Stopped(manifest) };
    Snapshot { path: format!("{time}-{set}").into(), time, state }
}

proptest! {
    #![proptest_config(fathom_cases::property(200))]

    #[test]
    fn the_newest_ones_of_each_set_of_trees_are_always_kept(
        drawn in proptest::collection::btree_map(0i64..100 * DAY, (0usize..SETS.len(), any::<bool>(), any::<bool>()), 0..60),
        (last, daily, weekly, monthly) in (0u64..3, 0u64..5, 0u64..4, 0u64..4),
    ) {
        static MANIFEST: OnceLock<Manifest> = OnceLock::new();
        let manifest = MANIFEST.get_or_init(|| Manifest::read(&Site::new().keep("a", FIRST, false)).unwrap());
        let make = || drawn.iter().map(|(time, (set, ended, complete))| {
            snapshot(*time, SETS[*set], *ended, *complete, manifest)
        }).collect::<Vec<_>>();
        let retention = Retention { last, daily, weekly, monthly };
        let planned = plan(make(), &retention, &Zone::UTC);
        prop_assert_eq!(planned.kept.len() + planned.removed.len(), drawn.len());
        for set in SETS {
            let of_set = |found: &&Snapshot| {
                let manifest = found.manifest().unwrap();
                format!("{} {}", manifest.host, manifest.options["max-depth"]) == set
            };
            let all = make();
            let ended: Vec<_> = all.iter().filter(of_set).filter(|found| found.ended().is_some()).collect();
            let kept: BTreeSet<_> = planned.kept.iter().filter(of_set).map(|found| found.time).collect();
            let newest = ended.last();
            let complete = ended.iter().rfind(|found| found.ended().unwrap().completeness.is_complete());
            for must in [newest, complete].into_iter().flatten() {
                prop_assert!(kept.contains(&must.time));
            }
            for found in all.iter().filter(of_set).filter(|found| found.ended().is_none()) {
                prop_assert_eq!(kept.contains(&found.time), newest.is_none_or(|newest| newest.time < found.time));
            }
            let kept_ended = ended.iter().filter(|found| kept.contains(&found.time)).count() as u64;
            prop_assert!(kept_ended <= last + daily + weekly + monthly + 2);
        }
        // A second run removes nothing.
        prop_assert!(plan(planned.kept, &retention, &Zone::UTC).removed.is_empty());
    }
}
