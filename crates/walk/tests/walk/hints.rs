//! Concurrency hints: a walk starts with the number of workers that was measured on a device, and
//! its result does not change.

use std::thread::available_parallelism;
use std::time::Duration;

use crate::support::calls::Over;
use crate::support::record::{Recorder, assert_same};
use crate::support::slow::{TwoDevices, device};
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::{Clock, ConcurrencyHints, Model, Summary};

/// Creates a tree that takes more rounds of calls than the clock is moved in.
fn tree() -> Tree {
    let tree = Tree::in_memory();
    for number in 0..60 {
        fill(&tree.dir(&number.to_string()), 20);
    }
    tree
}

/// The time between two samples of the controller, and one after which it has measured no rate yet.
const SAMPLE: Duration = Duration::from_millis(1);
const BEFORE_RATES: Duration = Duration::from_millis(90);

/// Walks `tree` as a slow device with `hints`, and checks the result.
fn walk(tree: &Tree, hints: ConcurrencyHints) -> Summary {
    let (way, roots) = (Way::of(Model::Auto), [tree.root()]);
    let first = way::lines(SYNC.options(), &roots);
    let (calls, clock) = (TwoDevices::new(device(tree.root())).in_rounds(), Clock::held());
    let (mut recorder, rounds, mut moved) = (Recorder::new(&roots), calls.clone(), Duration::ZERO);
    let options = way.options().hints(hints).clock(clock.clone());
    recorder.stopped = Box::new(move |_| {
        if rounds.next_round() && moved < BEFORE_RATES {
            clock.advance(SAMPLE);
            moved += SAMPLE;
        }
        false
    });
    let summary = way::walk_over(options, &mut recorder, move || Ok(Over(calls.clone())));
    assert_same(&first, &recorder.lines, way);
    summary
}

fn cpus() -> usize {
    available_parallelism().unwrap().get()
}

fn most(summary: &Summary) -> usize {
    summary.workers_over_time.iter().map(|(_, count)| *count).max().unwrap()
}

#[test]
fn a_slow_device_gets_the_workers_that_were_measured_there() {
    let (tree, known) = (tree(), cpus() + 22);
    let summary = walk(&tree, [(1, 99), (device(tree.root()), known)].into_iter().collect());
    assert_eq!(most(&summary), known);
    assert_eq!(summary.devices, [device(tree.root())]);
}

#[test]
fn a_hint_of_one_worker_has_no_effect() {
    let tree = tree();
    assert_eq!(most(&walk(&tree, [(device(tree.root()), 1)].into_iter().collect())), cpus());
}

#[test]
fn a_hint_for_another_device_has_no_effect() {
    let tree = tree();
    assert!(most(&walk(&tree, [(1, 3)].into_iter().collect())) > 2 * cpus());
}
