//! A walk ends: when it is stopped, at once, whatever its workers wait for; when what it found is not wanted; and thousands of
//! times in a row. Nothing is left behind by it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fathom_io::blocking::Blocking;
use fathom_io::calls::Native;
use fathom_io::sim::{Rates, Sim};
use fathom_walk::{Choice, Descend, Enter, Summary};
use support::Random;
use support::late::Late;
use support::record::{Everything, Recorder, assert_same};
use support::tree::{Tree, bushy, fill, mixed};
use support::way::{self, SYNC, Way};

/// Stops a walk in the middle of slow calls; how long it took from there to the end.
fn stop(tree: &Tree, start: impl FnOnce(&mut Recorder<'_>) -> Summary) -> Duration {
    const UNDER_WAY: Duration = Duration::from_millis(150);
    let begin = Instant::now();
    let mut recorder = Recorder::new(&[tree.root()]);
    recorder.stopped = Box::new(|_| begin.elapsed() > UNDER_WAY);
    let summary = start(&mut recorder);
    assert!(!summary.complete, "calls were too fast: {summary:?}");
    begin.elapsed() - UNDER_WAY
}

#[test]
fn a_walk_stops_while_its_workers_sit_in_slow_calls() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 4);
    fill(&tree.dir("d0/wide"), 20);
    // Most calls take seconds, up to five; some are fast, so some workers are anywhere else.
    let rates = Rates { slow: 0.7, slow_us: 5_000_000, ..Rates::default() };
    for (seed, way) in
        [SYNC, Way::workers(2), Way::workers(64), Way::of(Choice::Auto)].into_iter().enumerate()
    {
        let sim = Sim::new(Native, seed as u64, rates);
        let took = stop(&tree, |recorder| {
            let make = move || Ok(Blocking::new(sim.clone()));
            way::start_over(way.options(), Everything::default(), recorder, make)
        });
        println!("{way}: stopped after {took:?}");
        assert!(took < Duration::from_secs(1), "{way}: {took:?}");
    }
}

#[test]
fn a_walk_stops_while_answers_are_late() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 4);
    for workers in [1, 8] {
        let visit = Everything::default();
        let took = stop(&tree, |recorder| {
            let make = || Ok(Late::by(Duration::from_millis(40), 1));
            way::start_over(Way::workers(workers).options(), visit.clone(), recorder, make)
        });
        println!("{workers} workers: stopped after {took:?}");
        assert!(took < Duration::from_secs(1), "{workers} workers: {took:?}");
        visit.check_alone(workers);
    }
}

#[test]
fn what_was_told_before_a_stop_is_the_beginning_of_the_whole() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 5);
    fill(&tree.dir("d1/wide"), 5_000);
    let whole = way::lines(SYNC.options(), &[tree.root()]);
    let mut random = Random(7);
    for way in way::all() {
        for _ in 0..2 {
            let end = random.below(whole.len() - 1_000);
            let visit = Everything::default();
            let mut recorder = Recorder::new(&[tree.root()]);
            recorder.stopped = Box::new(move |lines| lines >= end);
            let summary = way::start(way.options(), visit.clone(), &mut recorder);
            assert!(!summary.complete);
            let told = std::mem::take(&mut recorder.lines);
            drop(recorder);
            assert_same(&whole[..told.len()], &told, format_args!("{way}, stopped at {end}"));
            // Asked every few hundred lines.
            assert!((end..end + 1_000).contains(&told.len()), "{way}: {end}, {}", told.len());
            visit.check_alone(way);
        }
    }
}

/// Refuses directories at random, but always the same ones.
fn refuse(seed: u64) -> impl FnMut(&Enter<'_>) -> Descend {
    move |enter| {
        let wanted = enter.node.depth() == 0 || Random(seed ^ enter.meta.ino).below(100) >= 30;
        if wanted { Descend::Yes } else { Descend::No }
    }
}

#[test]
fn what_is_not_wanted_is_let_go() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 5);
    mixed(&tree);
    for name in ["d0/wide", "d1/wide", "d2/d2/wide"] {
        fill(&tree.dir(name), 3_000);
        tree.dir(&format!("{name}/below/below"));
    }
    for seed in 0..3 {
        let refusing = || {
            let mut recorder = Recorder::new(&[tree.root()]);
            recorder.descend = Box::new(refuse(seed));
            recorder
        };
        let mut first = refusing();
        way::walk(SYNC.options(), Everything::default(), &mut first);
        for way in way::all() {
            let (visit, mut recorder) = (Everything::default(), refusing());
            way::walk(way.options(), visit.clone(), &mut recorder);
            assert_same(&first.lines, &recorder.lines, format_args!("{way}, seed {seed}"));
            visit.check_alone(way);
        }
        let (visit, mut recorder) = (Everything::default(), refusing());
        let make = move || Ok(Late::new(seed));
        way::start_over(Way::workers(3).options(), visit.clone(), &mut recorder, make);
        assert_same(&first.lines, &recorder.lines, format_args!("late, seed {seed}"));
        visit.check_alone("late");
    }
}

/// Half of them stopped, half of them of whom only some directories are wanted.
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
    let roots: Vec<PathBuf> = trees.iter().map(Tree::root).collect();
    let start = Instant::now();
    for seed in 0..WALKS {
        let mut random = Random(seed);
        let number = random.below(trees.len());
        let way =
            [Way::workers(1 + random.below(16)), Way::workers(64), Way::of(Choice::Auto)][random.below(3)];
        let mut recorder = Recorder::new(&roots[number..=number]);
        match random.below(4) {
            0 => recorder.stopped = Box::new(move |lines| lines >= random.below(100)),
            1 => recorder.descend = Box::new(refuse(seed)),
            _ => {}
        }
        let summary = way::start(way.options(), Everything::default(), &mut recorder);
        if seed % 4 == 3 && summary.complete && recorder.lines.len() == wholes[number].len() {
            assert_same(&wholes[number], &recorder.lines, format_args!("{way}, seed {seed}"));
        }
    }
    println!("{WALKS} walks in {} ms", start.elapsed().as_millis());
}
