//! The end of a walk: a stopped walk ends at once, even if its workers wait, and directories that
//! the consumer declines are dropped. No item or thread is left afterwards.

use std::fmt::Display;

use crate::support::calls::Over;
use crate::support::gate::{Gate, Gated};
use crate::support::late::Late;
use crate::support::record::{Everything, Recorder, assert_same, refuse};
use crate::support::tree::{Tree, bushy, fill, mixed};
use crate::support::way::{self, SYNC, Way};
use crate::support::{Random, Watchdog};
use fathom_walk::{Model, Summary};

/// Stops a walk while calls wait at `gate`, which is opened after the end of the walk: the walk
/// does not wait for these calls.
fn stop(tree: &Tree, gate: &Gate, what: impl Display, start: impl FnOnce(&mut Recorder<'_>) -> Summary) {
    let _watchdog = Watchdog::new(what);
    let mut recorder = Recorder::new(&[tree.root()]);
    recorder.stopped = Box::new(|_| gate.waiting() > 0);
    assert!(!start(&mut recorder).complete);
    assert!(gate.waiting() > 0, "no calls were in flight at the end");
    gate.open();
}

#[test]
fn a_walk_stops_while_its_workers_wait_for_slow_calls() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 4);
    fill(&tree.dir("d0/wide"), 20);
    for way in [SYNC, Way::workers(2), Way::workers(64), Way::of(Model::Auto)] {
        for free in [0, 1, 40, 300] {
            let (calls, visit) = (Gated::after(free), Everything::default());
            let gate = calls.gate.clone();
            stop(&tree, &gate, format_args!("{way} after {free} calls"), |recorder| {
                let make = move || Ok(Over(calls.clone()));
                way::start_over(way.options(), visit.clone(), recorder, make)
            });
            visit.check_alone(way);
        }
    }
}

#[test]
fn a_walk_stops_while_results_are_delayed() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 4);
    for workers in [1, 8] {
        let (gate, visit) = (Gate::default(), Everything::default());
        let late = gate.clone();
        stop(&tree, &gate, format_args!("{workers} workers"), |recorder| {
            let make = move || Ok(Late::held_by(late.clone(), 1));
            way::start_over(Way::workers(workers).options(), visit.clone(), recorder, make)
        });
        visit.check_alone(workers);
    }
}

#[test]
fn the_result_of_a_stopped_walk_is_a_prefix_of_the_whole() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 5);
    fill(&tree.dir("d1/wide"), 5_000);
    let whole = way::lines(SYNC.options(), &[tree.root()]);
    let mut random = Random::new(7);
    for way in way::all() {
        for _ in 0..2 {
            let end = random.below(whole.len() - 1_000);
            let visit = Everything::default();
            let mut recorder = Recorder::new(&[tree.root()]);
            recorder.stopped = Box::new(move |lines| lines >= end);
            let summary = way::start(way.options(), visit.clone(), &mut recorder);
            assert!(!summary.complete);
            let prefix = std::mem::take(&mut recorder.lines);
            drop(recorder);
            assert_same(&whole[..prefix.len()], &prefix, format_args!("{way}, stopped at {end}"));
            // The walk asks every few hundred lines whether to stop.
            assert!((end..end + 1_000).contains(&prefix.len()), "{way}: {end}, {}", prefix.len());
            visit.check_alone(way);
        }
    }
}

#[test]
fn a_walk_that_is_stopped_before_its_start_reads_nothing() {
    let tree = Tree::in_memory();
    tree.file("one");
    for way in way::all() {
        let visit = Everything::default();
        let mut recorder = Recorder::new(&[tree.root(), tree.root().join("one")]);
        recorder.stopped = Box::new(|_| true);
        let summary = way::start(way.options(), visit.clone(), &mut recorder);
        assert!(!summary.complete, "{way}");
        assert!(recorder.lines.is_empty(), "{way}: {:?}", recorder.lines);
        // A worker that has a root may read it before the walk asks again.
        assert_eq!(recorder.roots.len(), 2, "{way}: no root is asked for");
        visit.check_alone(way);
    }
}

#[test]
fn declined_directories_are_dropped() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 4, 5);
    mixed(&tree);
    for name in ["d0/wide", "d1/wide", "d2/d2/wide"] {
        fill(&tree.dir(name), 3_000);
        tree.dir(&format!("{name}/below/below"));
    }
    for seed in fathom_cases::seeds(3) {
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
