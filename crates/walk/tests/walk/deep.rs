//! Trees so deep that their deepest path exceeds PATH_MAX and a recursion would overflow the stack.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::child::{self, report, report_lines, role};
use crate::support::record::{Everything, Recorder, assert_same};
use crate::support::tree::{Chain, Tree, c_path, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::{
    Consumer, Descend, Emit, Enter, Entry, Failure, FileType, Follow, Meta, Model, NextRoot, Node,
    OrderedVisitor, RootSource, Visitor, run,
};

/// Walks `root` and prints the time that it took.
fn timed(way: Way, root: &Path) -> Vec<String> {
    let start = Instant::now();
    let lines = way::lines(way.options(), &[root]);
    println!("{way}: {} lines in {} ms", lines.len(), start.elapsed().as_millis());
    lines
}

#[test]
fn a_chain_of_100_000_directories() {
    let depth = fathom_cases::count(100_000);
    let chain = Chain::new(depth, &[]);
    let lines = timed(SYNC, &chain.root());
    assert_eq!(lines.len(), 2 * (depth + 1));
    for (depth, line) in lines[..=depth].iter().enumerate().skip(1) {
        assert!(line.starts_with(&format!("enter m {depth} ")), "{line}");
    }
    assert!(lines[depth + 1..].iter().all(|line| line == "leave"));
    for way in [Way::workers(2), Way::workers(64), Way::of(Model::Auto)] {
        assert_same(&lines, &timed(way, &chain.root()), way);
    }
}

#[test]
fn a_chain_whose_walk_is_stopped_halfway() {
    let depth = fathom_cases::count(50_000);
    let chain = Chain::new(depth, &[]);
    for way in [SYNC, Way::workers(7)] {
        for turn_back in [1, depth / 2] {
            let mut recorder = Recorder::new(&[chain.root()]);
            recorder.descend =
                Box::new(|enter| if enter.node.depth() == turn_back { Descend::No } else { Descend::Yes });
            way::walk(way.options(), Everything::default(), &mut recorder);
            assert_eq!(recorder.lines.len(), 2 * turn_back + 1, "{way}");
        }
    }
}

/// 24 descriptors are fewer than 5,000 levels: on the way up each directory is opened again to open
/// its `a` or `z`.
#[test]
fn directories_are_reopened_on_the_way_up_from_5_000_levels() {
    const LEVELS: usize = 5_000;
    if let Some((role, tree)) = role() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&[&tree]);
        let options = Way::of(role.parse().unwrap()).options();
        let summary = way::walk(options, Everything::default(), &mut recorder);
        report("ms", start.elapsed().as_millis());
        report("reopened", summary.calls.reopen);
        return report_lines(&tree, &role, &recorder.lines);
    }
    let chain = Chain::new(LEVELS, &[c"a", c"z"]);
    let lines = way::lines(SYNC.options(), &[chain.root()]);
    assert_eq!(lines.len(), 2 * (1 + 3 * LEVELS));
    for role in ["sync", "threads=64", "auto"] {
        let test = "deep::directories_are_reopened_on_the_way_up_from_5_000_levels";
        let report = child::run(test, role, &chain.root(), 24);
        let [ms, reopened] = ["ms", "reopened"].map(|key| report.number(key));
        println!("{role}: {reopened} reopened, {ms} ms");
        assert_same(&lines, &report.lines(&chain.root(), role), role);
        // Reopening each directory from the root would be 12 million calls.
        assert!((1..20 * LEVELS).contains(&reopened), "{reopened}");
    }
}

#[test]
fn long_names_make_paths_longer_than_path_max() {
    let tree = Tree::new();
    let name = "n".repeat(250);
    let mut dir = std::fs::File::open(tree.root()).map(std::os::fd::OwnedFd::from).unwrap();
    for _ in 0..60 {
        let link = CString::new(name.clone()).unwrap();
        rustix::fs::mkdirat(&dir, &link, rustix::fs::Mode::RWXU).unwrap();
        rustix::fs::symlinkat(c".", &dir, c"here").unwrap();
        dir = fathom_io::sys::open_dir(std::os::fd::AsFd::as_fd(&dir), &link, Follow::No).unwrap().into_fd();
    }
    let root = tree.root();
    let mut longest = 0;
    let mut recorder = Recorder::new(&[&root]);
    recorder.descend = Box::new(|enter| {
        let mut path = Vec::new();
        enter.node.path_into(&mut path);
        longest = longest.max(path.len());
        Descend::Yes
    });
    way::walk(SYNC.options(), Everything::default(), &mut recorder);
    let lines = std::mem::take(&mut recorder.lines);
    drop(recorder);
    assert_eq!(longest, root.as_os_str().len() + 60 * 251);
    assert_eq!(lines.len(), 61 * 2 + 60);
    for way in way::all() {
        assert_same(&lines, &way::lines(way.options(), &[&root]), way);
    }
}

/// Emits items that are slow to drop, and waits in the fifth directory until the walk is stopped.
struct WaitingVisitor(Arc<AtomicBool>);

struct SlowDropItem;

impl Drop for SlowDropItem {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Visitor for WaitingVisitor {
    type Item = SlowDropItem;
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, SlowDropItem>,
    ) {
        while dir.depth() == 5 && !self.0.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        for entry in entries {
            match entry.file_type() {
                FileType::Directory => emit.descend(&entry),
                _ => emit.item(SlowDropItem),
            }
        }
    }
}

impl OrderedVisitor for WaitingVisitor {
    fn weight(_item: &SlowDropItem) -> usize {
        1
    }
}

/// Stops the walk once the visitor waits in the fifth directory.
struct StoppingConsumer {
    root: Option<CString>,
    depth: usize,
    stopped: Arc<AtomicBool>,
}

impl RootSource for StoppingConsumer {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.root.take().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        if self.depth == 4 {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.depth == 4
    }
}

impl Consumer<SlowDropItem> for StoppingConsumer {
    fn root_file(&mut self, _root: &Arc<Node>, _meta: &Meta) {}

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        self.depth = enter.node.depth();
        Descend::Yes
    }

    fn failed(&mut self, _failure: Failure<'_>) {}

    fn item(&mut self, _item: SlowDropItem) {}

    fn leave(&mut self, _node: &Arc<Node>) {}
}

/// A task in flight when the walk stops must not add children while the other tasks are dropped:
/// the resulting chain would be dropped by recursion.
#[test]
fn a_chain_is_not_followed_while_the_walk_is_stopped() {
    let chain = Chain::new(20_000, &[]);
    fill(&chain.root(), 150);
    // A tmpfs lists the newest entry first, and the files have to be dropped after the chain.
    let (first, aside) = (chain.root().join("m"), chain.root().with_extension("aside"));
    std::fs::rename(&first, &aside).unwrap();
    std::fs::rename(&aside, &first).unwrap();
    for workers in [1, 7] {
        let stopped = Arc::new(AtomicBool::new(false));
        let root = Some(c_path(&chain.root()));
        let mut stopper = StoppingConsumer { root, depth: 0, stopped: stopped.clone() };
        let summary =
            run(Way::workers(workers).options(), WaitingVisitor(stopped), &mut stopper, &mut |_| {}).unwrap();
        assert!(!summary.complete && summary.progress.directories < 100, "{summary:?}");
    }
}
