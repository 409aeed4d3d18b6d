//! Walks by the thousand, and walks whose workers may hardly do anything ahead of time: none hangs, none tells anything else.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fathom_io::blocking::Blocking;
use fathom_io::calls::Native;
use fathom_io::sim::{Rates, Sim};
use fathom_walk::{Choice, Descend, Follow, Options, Progress, run_with};
use support::late::Late;
use support::record::{Everything, Heavy, Recorder, assert_same, refuse};
use support::tree::{Tree, bushy, fill, mixed};
use support::way::{self, SYNC, Way};
use support::{Random, Watchdog};

/// A quarter of them stopped early, a quarter refused some directories.
#[test]
fn three_thousand_small_walks_end() {
    const WALKS: u64 = 3_000;
    let trees: Vec<Tree> = (0..6).map(|_| Tree::in_memory()).collect();
    mixed(&trees[1]);
    bushy(&trees[2].root(), 2, 3);
    bushy(&trees[3].root(), 9, 1);
    trees[4].dir(&vec!["d"; 40].join("/"));
    fill(&trees[5].root(), 1_500);
    let wholes: Vec<_> = trees.iter().map(|tree| way::lines(SYNC.options(), &[tree.root()])).collect();
    let start = Instant::now();
    for seed in 0..WALKS {
        let mut random = Random(seed);
        let number = random.below(trees.len());
        let ways = [Way::workers(1 + random.below(16)), Way::workers(64), Way::of(Choice::Auto)];
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
    println!("{WALKS} walks in {} ms", start.elapsed().as_millis());
}

#[test]
fn workers_that_may_do_only_what_is_needed_next_do_it() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 4);
    mixed(&tree);
    fill(&tree.dir("d1/wide"), 5_000);
    tree.dir("d1/wide/below/below");
    let roots: Vec<PathBuf> = ["", "d1", "last", "missing", "a", ""].map(|name| tree.path(name)).into();
    for seed in 0..4 {
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

/// Every directory has links to several others: most are put off, and listed when they are needed.
#[test]
fn workers_that_may_do_only_what_is_needed_next_list_what_was_put_off() {
    let tree = Tree::new();
    let mut random = Random(3);
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
        let options = Options { links: Follow::Yes, once: true, ..way.options() };
        if heavy {
            way::walk(options, Heavy(Everything::default()), &mut recorder);
        } else {
            way::walk(options, Everything::default(), &mut recorder);
        }
        recorder.lines
    };
    let first = lines(SYNC, false);
    for way in way::all() {
        for _ in 0..5 {
            assert_same(&first, &lines(way, true), way);
        }
    }
}

/// The watch is called and the number of workers changes while somebody takes things slowly: nobody who is needed sleeps.
#[test]
fn workers_come_and_go_while_things_are_taken_slowly() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 6, 3);
    let first = way::lines(SYNC.options(), &[tree.root()]);
    for round in 0..4 {
        let mut recorder = Recorder::new(&[tree.root()]);
        recorder.on_item = Box::new(|lines| {
            if lines.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        way::walk(Way::of(Choice::Auto).options(), Heavy(Everything::default()), &mut recorder);
        assert_same(&first, &recorder.lines, format_args!("round {round}"));
    }
}

/// What a directory that was not wanted weighed is forgotten: if not, workers would do one thing after another from then on.
#[test]
fn workers_work_side_by_side_after_much_was_not_wanted() {
    let unwanted = Tree::in_memory();
    for number in 0..30 {
        fill(&unwanted.dir(&format!("d{number}")), 1_000);
    }
    let wanted = Tree::in_memory();
    // More than the workers get done while the rest is refused.
    bushy(&wanted.root(), 4, 4);
    let here = AtomicUsize::new(0);
    let mut recorder = Recorder::new(&[unwanted.root(), wanted.root()]);
    recorder.descend = Box::new(|enter| {
        here.store(enter.node.root_index(), Ordering::Relaxed);
        let refused = enter.node.root_index() == 0 && enter.node.depth() == 1;
        if refused {
            // Time for the workers to list more that is not wanted.
            std::thread::sleep(Duration::from_millis(5));
        }
        if refused { Descend::No } else { Descend::Yes }
    });
    let mut busy = 0;
    let mut watch = |progress: Progress| {
        if here.load(Ordering::Relaxed) == 1 {
            busy = busy.max(progress.busy);
        }
    };
    let _watchdog = Watchdog::new("not wanted");
    let slow = Sim::new(Native, 1, Rates { slow: 1.0, slow_us: 4_000, nameless: true, ..Rates::default() });
    let make = move || Ok(Blocking::new(slow.clone()));
    let visit = Everything { names_only: true, ..Everything::default() };
    run_with(Way::workers(8).options(), visit, &mut recorder, &mut watch, make).unwrap();
    assert!(busy >= 4, "at most {busy} of 8 workers at once");
}
