//! Memory does not grow with the number of files, even if the consumer is slow: the workers wait.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::Watchdog;
use crate::support::child::{self, report, role};
use crate::support::record::{Everything, Recorder};
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::{
    Consumer, Descend, Emit, Enter, Entry, Failure, FileType, Meta, NextRoot, Node, OrderedVisitor,
    RootSource, Visitor, run,
};

/// Creates `dirs` directories with `files` files each.
fn flat(dirs: usize, files: usize) -> Tree {
    let tree = Tree::in_memory();
    for number in 0..dirs {
        fill(&tree.dir(&format!("d{number}")), files);
    }
    tree
}

/// Returns the peak of this process's resident memory.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Emits a large item for each file.
struct LargeItems;

const ITEM_BYTES: usize = 400;

impl Visitor for LargeItems {
    type Item = Box<[u8; ITEM_BYTES]>;
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        _dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Self::Item>,
    ) {
        for entry in entries {
            match entry.file_type() {
                FileType::Directory => emit.descend(&entry),
                _ => emit.item(Box::new([1; ITEM_BYTES])),
            }
        }
    }
}

impl OrderedVisitor for LargeItems {
    fn weight(_item: &Self::Item) -> usize {
        ITEM_BYTES
    }
}

/// Counts the items, and sleeps at some of them.
struct SlowConsumer {
    root: Option<std::ffi::CString>,
    items: usize,
    naps: bool,
}

impl RootSource for SlowConsumer {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.root.take().map_or(NextRoot::End, NextRoot::Path)
    }
}

impl Consumer<Box<[u8; ITEM_BYTES]>> for SlowConsumer {
    fn root_file(&mut self, _root: &Arc<Node>, _meta: &Meta) {}

    fn enter(&mut self, _enter: Enter<'_>) -> Descend {
        Descend::Yes
    }

    fn item(&mut self, _item: Box<[u8; ITEM_BYTES]>) {
        if self.naps && self.items.is_multiple_of(60_000) {
            std::thread::sleep(Duration::from_millis(150));
        }
        self.items += 1;
    }

    fn failed(&mut self, failure: Failure<'_>) {
        panic!("{failure:?}");
    }

    fn leave(&mut self, _node: &Arc<Node>) {}
}

/// Runs in a child: walks the tree, and reports the memory.
fn walk(role: &str, tree: &Path) {
    let (model, naps) = role.strip_suffix(" slow").map_or((role, false), |model| (model, true));
    let way = Way::of(model.parse().unwrap());
    // The pages of the test program count as resident memory when the code in them first runs.
    let one_file = flat(1, 1);
    let mut warm_up =
        SlowConsumer { root: Some(crate::support::tree::c_path(&one_file.root())), items: 0, naps: false };
    run(way.options(), LargeItems, &mut warm_up, &mut |_| {}).unwrap();
    let before = peak_kib();
    let mut slow = SlowConsumer { root: Some(crate::support::tree::c_path(tree)), items: 0, naps };
    let _watchdog = Watchdog::new(role);
    assert!(run(way.options(), LargeItems, &mut slow, &mut |_| {}).unwrap().complete);
    report("items", slow.items);
    report("grown", peak_kib() - before);
}

/// Returns the growth of the peak in KiB by a walk of `tree`.
#[track_caller]
fn grown(test: &str, role: &str, tree: &Tree, items: usize) -> usize {
    let report = child::run(test, role, &tree.root(), 1024);
    assert_eq!(report.number("items"), items);
    let grown = report.number("grown");
    println!("{role}: {items} files, {grown} KiB");
    grown
}

/// All items together have 120 MB. Each worker may process a chunk of 1,000 entries, so 64 workers
/// have a higher limit.
#[test]
fn memory_is_the_same_for_ten_times_the_files() {
    if let Some((role, tree)) = role() {
        return walk(&role, &tree);
    }
    let test = "memory::memory_is_the_same_for_ten_times_the_files";
    let (few, many) = (flat(30, 1_000), flat(300, 1_000));
    for (role, most_mib) in [("threads=2", 16), ("threads=2 slow", 16), ("threads=64 slow", 48)] {
        let (few, many) = (grown(test, role, &few, 30_000), grown(test, role, &many, 300_000));
        assert!(many < most_mib * 1024, "{role}: {few} KiB, {many} KiB");
    }
}

#[test]
fn memory_is_bounded_below_a_root_of_20_000_directories() {
    if let Some((role, tree)) = role() {
        return walk(&role, &tree);
    }
    let test = "memory::memory_is_bounded_below_a_root_of_20_000_directories";
    let tree = flat(20_000, 10);
    for role in ["threads=2", "threads=64 slow"] {
        let grown = grown(test, role, &tree, 200_000);
        assert!(grown < 40 * 1024, "{role}: {grown} KiB");
    }
}

/// The number of items that exist at the same time is bounded while the consumer is slow. This does
/// not depend on the memory statistics of the system.
#[test]
fn few_items_wait_for_a_slow_consumer() {
    for (dirs, files) in [(100, 1_000), (10_000, 10), (1, 100_000)] {
        let tree = flat(dirs, files);
        for way in [SYNC, Way::workers(2), Way::workers(16)] {
            let visit = Everything::default();
            let (alive, mut most) = (visit.alive.clone(), 0);
            let mut recorder = Recorder::new(&[tree.root()]);
            recorder.on_item = Box::new(|lines| {
                most = most.max(alive.load(Ordering::Relaxed));
                if lines.is_multiple_of(20_000) || lines == 3 {
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            way::walk(way.options(), visit, &mut recorder);
            drop(recorder);
            println!("{way}: {dirs} directories of {files} files: {most} items at most");
            // The backlog holds 2 MiB of items, and each worker may be in the middle of a chunk.
            assert!(most < 20_000 + 1_100 * 16, "{way}: {most} of {}", dirs * files);
        }
    }
}
