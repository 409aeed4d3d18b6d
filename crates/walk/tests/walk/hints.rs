//! Concurrency hints: a walk starts with the number of workers that was measured on a device, and
//! its result does not change.

use std::thread::available_parallelism;

use crate::support::calls::Over;
use crate::support::record::{Recorder, assert_same};
use crate::support::slow::{TwoDevices, device};
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::{ConcurrencyHints, Model, Summary};

/// Creates a tree that two dozen workers usually finish before the first rate is measured, at a
/// millisecond for each call.
fn tree() -> Tree {
    let tree = Tree::in_memory();
    for number in 0..60 {
        fill(&tree.dir(&number.to_string()), 20);
    }
    tree
}

/// Walks `tree` as a slow device with `hints`, and checks the result.
fn walk(tree: &Tree, hints: ConcurrencyHints) -> Summary {
    let (way, roots) = (Way::of(Model::Auto), [tree.root()]);
    let first = way::lines(SYNC.options(), &roots);
    let (calls, mut recorder) = (TwoDevices::new(device(tree.root())), Recorder::new(&roots));
    let options = way.options().hints(hints);
    let summary = way::walk_over(options, &mut recorder, move || Ok(Over(calls.clone())));
    assert_same(&first, &recorder.lines, way);
    summary
}

fn cpus() -> usize {
    available_parallelism().unwrap().get()
}

fn counts(summary: &Summary) -> Vec<usize> {
    summary.workers_over_time.iter().map(|(_, count)| *count).collect()
}

#[test]
fn a_slow_device_gets_the_workers_that_were_measured_there() {
    let (tree, known) = (tree(), cpus() + 22);
    let summary = walk(&tree, [(1, 99), (device(tree.root()), known)].into_iter().collect());
    let counts = counts(&summary);
    assert!(counts.contains(&known), "{counts:?}");
    // On a busy machine the walk may last until the controller tries twice as many workers, or as
    // many of them as there are tasks for.
    let more = counts.iter().find(|count| **count > known);
    assert!(more.is_none_or(|count| *count <= 2 * known), "{counts:?}");
    assert_eq!(summary.devices, [device(tree.root())]);
}

#[test]
fn a_hint_of_one_worker_has_no_effect() {
    let tree = tree();
    let counts = counts(&walk(&tree, [(device(tree.root()), 1)].into_iter().collect()));
    let more = counts.iter().find(|count| **count > cpus());
    assert!(more.is_none_or(|count| *count <= 2 * cpus()), "a step of the controller only: {counts:?}");
}

#[test]
fn a_hint_for_another_device_has_no_effect() {
    let tree = tree();
    let counts = counts(&walk(&tree, [(1, 3)].into_iter().collect()));
    assert!(counts.iter().any(|count| *count > 2 * cpus()), "{counts:?}");
}
