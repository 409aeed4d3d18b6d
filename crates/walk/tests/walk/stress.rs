//! Thousands of walks, and walks whose backlog is nearly always full: none of them hangs, and all
//! have the same result.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::calls::{Calls, Native, Over};
use crate::support::gate::Gate;
use crate::support::late::Late;
use crate::support::record::{Everything, Heavy, Recorder, assert_same, refuse};
use crate::support::tree::{Tree, bushy, fill, mixed};
use crate::support::way::{self, SYNC, Way};
use crate::support::{Random, Watchdog};
use fathom_io::Dir;
use fathom_walk::{Descend, Errno, Fields, Follow, Meta, Model, Names, Progress, run_with};

/// A quarter of the walks are stopped early, and a quarter decline some directories.
#[test]
fn three_thousand_small_walks_end() {
    const WALKS: usize = 3_000;
    let trees: Vec<Tree> = (0..6).map(|_| Tree::in_memory()).collect();
    mixed(&trees[1]);
    bushy(&trees[2].root(), 2, 3);
    bushy(&trees[3].root(), 9, 1);
    trees[4].dir(&vec!["d"; 40].join("/"));
    fill(&trees[5].root(), 1_500);
    let wholes: Vec<_> = trees.iter().map(|tree| way::lines(SYNC.options(), &[tree.root()])).collect();
    for seed in fathom_cases::seeds(WALKS) {
        let mut random = Random::new(seed);
        let number = random.below(trees.len());
        let ways = [Way::workers(1 + random.below(16)), Way::workers(64), Way::of(Model::Auto)];
        let way = ways[random.below(ways.len())];
        let fate = random.below(4);
        let mut recorder = Recorder::new(&[trees[number].root()]);
        match fate {
            0 => recorder.stopped = Box::new(move |lines| lines >= random.below(100)),
            1 => recorder.descend = Box::new(refuse(seed)),
            _ => {}
        }
        let summary = way::start(way.options(), Everything::default(), &mut recorder);
        let whole = &wholes[number];
        let end = if summary.complete { whole.len() } else { recorder.lines.len() };
        assert!(summary.complete || fate == 0, "{way}, seed {seed}");
        if fate != 1 {
            assert_same(&whole[..end], &recorder.lines, format_args!("{way}, seed {seed}"));
        }
    }
}

#[test]
fn workers_with_a_full_backlog_execute_the_next_task() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 4);
    mixed(&tree);
    fill(&tree.dir("d1/wide"), 5_000);
    tree.dir("d1/wide/below/below");
    let roots: Vec<PathBuf> = ["", "d1", "last", "missing", "a", ""].map(|name| tree.path(name)).into();
    for seed in fathom_cases::seeds(4) {
        let refusing = || {
            let mut recorder = Recorder::new(&roots);
            recorder.descend = Box::new(refuse(seed));
            recorder
        };
        let mut first = refusing();
        way::walk(SYNC.options(), Everything::default(), &mut first);
        for way in way::all() {
            let (visit, mut recorder) = (Everything::default(), refusing());
            way::walk(way.options(), Heavy(visit.clone()), &mut recorder);
            assert_same(&first.lines, &recorder.lines, format_args!("{way}, seed {seed}"));
            visit.check_alone(way);
        }
        let mut recorder = refusing();
        let make = move || Ok(Late::new(seed));
        way::start_over(Way::workers(3).options(), Heavy(Everything::default()), &mut recorder, make);
        assert_same(&first.lines, &recorder.lines, format_args!("late, seed {seed}"));
    }
}

/// Every directory has links to several others: the workers defer most of these, and list them when
/// the consumer needs them.
#[test]
fn workers_with_a_full_backlog_list_deferred_directories() {
    let tree = Tree::new();
    let mut random = Random::new(3);
    for number in 0..100 {
        tree.dir(&format!("d{number}"));
        tree.file(&format!("d{number}/file"));
        for link in 0..4 {
            tree.symlink(&format!("../d{}", random.below(100)), &format!("d{number}/l{link}"));
        }
    }
    let lines = |way: Way, heavy: bool| {
        let mut met = HashSet::new();
        let mut recorder = Recorder::new(&[tree.root()]);
        recorder.descend =
            Box::new(move |enter| if met.insert(enter.meta.id()) { Descend::Yes } else { Descend::No });
        let options = way.options().follow_links(Follow::Yes).dedup_directories(true);
        if heavy {
            way::walk(options, Heavy(Everything::default()), &mut recorder);
        } else {
            way::walk(options, Everything::default(), &mut recorder);
        }
        recorder.lines
    };
    let first = lines(SYNC, false);
    for way in way::all() {
        for _ in 0..fathom_cases::count(5) {
            assert_same(&first, &lines(way, true), way);
        }
    }
}

/// The watch is called and the number of workers changes while the consumer is slow: no worker that
/// has a task stays parked.
#[test]
fn workers_start_and_stop_while_the_consumer_is_slow() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 6, 3);
    let first = way::lines(SYNC.options(), &[tree.root()]);
    for round in 0..fathom_cases::count(4) {
        let mut recorder = Recorder::new(&[tree.root()]);
        recorder.on_item = Box::new(|lines| {
            if lines.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        way::walk(Way::of(Model::Auto).options(), Heavy(Everything::default()), &mut recorder);
        assert_same(&first, &recorder.lines, format_args!("round {round}"));
    }
}

/// Counts the directories that are opened, and blocks some of the calls until several are in flight
/// together.
#[derive(Clone)]
struct Counted {
    opened: Arc<AtomicUsize>,
    gate: Gate,
    /// The inode numbers of the directories whose calls are blocked.
    held: Arc<HashSet<u64>>,
    /// Number of blocked calls that opens the gate.
    together: usize,
}

impl Calls for Counted {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        let dir = Native.open(at, name, follow)?;
        // Read by the consumer below, which waits for the count.
        self.opened.fetch_add(1, Ordering::SeqCst);
        if self.held.contains(&Native.stat_dir(&dir, Fields::IDENTITY)?.ino) {
            self.gate.pass_or_open(|waiting| waiting >= self.together);
        }
        Ok(dir)
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        Native.stat(at, name, follow, fields)
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        Native.stat_dir(dir, fields)
    }
}

/// The weight of a directory that the visitor declined is released: otherwise workers would run one
/// task at a time from then on, and the calls that wait for each other would wait for ever.
#[test]
fn workers_run_in_parallel_after_many_declined_directories() {
    const DECLINED: usize = 120;
    // A number below the few dozen directories whose entries may wait for the consumer.
    const AHEAD: usize = 8;
    let unwanted = Tree::in_memory();
    for number in 0..DECLINED {
        fill(&unwanted.dir(&format!("d{number}")), 250);
    }
    let wanted = Tree::in_memory();
    bushy(&wanted.root(), 4, 2);
    let ino = |path: PathBuf| std::fs::metadata(path).unwrap().ino();
    let held = (0..4).map(|number| ino(wanted.path(format!("d{number}")))).collect();
    let (opened, gate) = (Arc::<AtomicUsize>::default(), Gate::default());
    let calls = Counted { opened: opened.clone(), gate: gate.clone(), held: Arc::new(held), together: 4 };
    let mut recorder = Recorder::new(&[unwanted.root(), wanted.root()]);
    let mut refused = 0;
    recorder.descend = Box::new(|enter| {
        if enter.node.root_index() == 1 || enter.node.depth() != 1 {
            return Descend::Yes;
        }
        refused += 1;
        // The workers list a few more directories that the consumer will decline. The load pairs
        // with the increment in `open`.
        while opened.load(Ordering::SeqCst) < (refused + AHEAD).min(DECLINED) {
            std::thread::yield_now();
        }
        Descend::No
    });
    let _watchdog = Watchdog::new("declined directories");
    let visit = Everything { names_only: true, ..Everything::default() };
    let make = move || Ok(Over(calls.clone()));
    run_with(Way::workers(8).options(), visit, &mut recorder, &mut |_: Progress| {}, make).unwrap();
    drop(recorder);
    assert!(gate.is_open() && refused == DECLINED);
}
