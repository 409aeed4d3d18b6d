//! A walk of a slow and a fast device: each gets the workers that it needs, and the order of the
//! result stays the same.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::support::calls::Over;
use crate::support::record::{Recorder, assert_same};
use crate::support::skip;
use crate::support::slow::{TwoDevices, device};
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::Model;

/// Creates `dirs` directories with `files` files each.
fn grow(tree: &Tree, dirs: usize, files: usize) {
    for number in 0..dirs {
        fill(&tree.dir(&number.to_string()), files);
    }
}

/// Returns a tree on a fast and one on a slow device, or prints why there are none.
fn two_trees() -> Option<(Tree, Tree)> {
    let (fast, slow) = (Tree::in_memory(), Tree::new());
    if device(fast.root()) == device(slow.root()) {
        skip("needs a second filesystem for temporary files");
        return None;
    }
    Some((fast, slow))
}

/// Walks both trees and checks the result.
fn walk(roots: &[PathBuf], slow_dev: u64) -> TwoDevices {
    let way = Way::of(Model::Auto);
    let first = way::lines(SYNC.options(), roots);
    let calls = TwoDevices::new(slow_dev);
    let counted = calls.clone();
    let mut recorder = Recorder::new(roots);
    way::walk_over(way.options(), &mut recorder, move || Ok(Over(counted.clone())));
    assert_same(&first, &recorder.lines, way);
    calls
}

#[test]
fn a_slow_device_gets_many_workers_and_a_fast_one_few() {
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 100, 30);
    grow(&fast, 100, 30);
    for roots in [[slow.root(), fast.root()], [fast.root(), slow.root()]] {
        let [fast_most, slow_most] = walk(&roots, device(slow.root())).most();
        assert!(slow_most > 64, "{slow_most} in flight on the slow device");
        let few = 8 * std::thread::available_parallelism().unwrap().get();
        assert!(fast_most <= 4 * few, "{fast_most} in flight on the fast device");
    }
}

/// The consumer waits for the slow tree, but some workers walk the fast one. A busy machine may
/// delay these few, so the best of several walks counts.
#[test]
fn a_fast_device_does_not_wait_for_a_slow_one_that_comes_first() {
    const WALKS: usize = 6;
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 200, 30);
    grow(&fast, 20, 10);
    let done_early = || {
        let calls = walk(&[slow.root(), fast.root()], device(slow.root()));
        let [then, all] =
            [&calls.slow_calls_then, &calls.seen[1].calls].map(|count| count.load(Ordering::Relaxed));
        println!("the fast device was done after {then} of {all} calls on the slow one");
        then < all / 2
    };
    assert!((0..WALKS).any(|_| done_early()), "in none of {WALKS} walks");
}
