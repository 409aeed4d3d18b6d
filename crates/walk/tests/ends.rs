//! A walk ends: when it is stopped, at once, whatever its workers wait for; when what it found is not wanted. Nothing is left
//! behind by it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::time::{Duration, Instant};

use fathom_io::blocking::Blocking;
use fathom_io::calls::Native;
use fathom_io::sim::{Rates, Sim};
use fathom_walk::{Choice, Summary};
use support::Random;
use support::late::Late;
use support::record::{Everything, Recorder, assert_same, refuse};
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
