//! A walk of a slow and a fast device: each gets the workers that it needs, and the order of the
//! result stays the same.

use std::path::PathBuf;

use crate::support::calls::Over;
use crate::support::held::Held;
use crate::support::record::{Recorder, assert_same};
use crate::support::skip;
use crate::support::slow::device;
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

/// Walks the trees with these calls and checks the result.
fn walk(roots: &[PathBuf], calls: Held) {
    let way = Way::of(Model::Auto);
    let first = way::lines(SYNC.options(), roots);
    let mut recorder = Recorder::new(roots);
    way::walk_over(way.options(), &mut recorder, move || Ok(Over(calls.clone())));
    assert_same(&first, &recorder.lines, way);
}

/// A walk with few workers for the slow device hangs.
#[test]
fn a_slow_device_gets_many_workers_and_a_fast_one_few() {
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 100, 30);
    grow(&fast, 100, 30);
    for roots in [[slow.root(), fast.root()], [fast.root(), slow.root()]] {
        let held = Held::until_many(device(slow.root()));
        walk(&roots, held.clone());
        let [fast_most, _] = held.calls.most();
        let few = 8 * std::thread::available_parallelism().unwrap().get();
        assert!((1..=4 * few).contains(&fast_most), "{fast_most} in flight on the fast device");
    }
}

/// The consumer waits for the slow tree, and its many workers wait until the fast one is done. A
/// walk that has the fast device wait hangs.
#[test]
fn a_fast_device_does_not_wait_for_a_slow_one_that_comes_first() {
    const DIRS: usize = 20;
    const FILES: usize = 10;
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 200, 3);
    grow(&fast, DIRS, FILES);
    walk(&[slow.root(), fast.root()], Held::until_fast_is_done(device(slow.root()), DIRS * FILES));
}
