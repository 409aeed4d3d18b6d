//! Filesystems on which each call is a round trip: many calls are in flight the whole time, for
//! every size of the tree, and the result and its order are the same as everywhere.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::calls::Over;
use crate::support::record::{Everything, Heavy, Recorder, assert_same, refuse};
use crate::support::skip;
use crate::support::slow::{TwoDevices, device};
use crate::support::tree::{Tree, bushy, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::Model;

const WORKERS: usize = 64;

/// Creates `levels` levels of directories, seven in each. Three files are beside each directory,
/// and thirty in each of the deepest ones.
fn grow(tree: &Tree, dir: &str, levels: usize) {
    for number in 0..7 {
        let dir = format!("{dir}/{number}");
        if levels == 1 {
            fill(&tree.dir(&dir), 30);
        } else {
            grow(tree, &dir, levels - 1);
        }
        for file in 0..3 {
            tree.file(&format!("{dir}-{file}"));
        }
    }
}

/// Walks `roots` with many workers, and checks the result. Returns the number of lines, and the
/// number of calls in flight on the device of `slow`, on average over time.
fn walk(roots: &[PathBuf], slow: &Tree) -> (usize, usize) {
    let first = way::lines(SYNC.options(), roots);
    let calls = TwoDevices::new(device(slow.root()));
    let (counted, mut recorder) = (calls.clone(), Recorder::new(roots));
    let way = Way::workers(WORKERS);
    way::walk_over(way.options(), &mut recorder, move || Ok(Over(counted.clone())));
    assert_same(&first, &recorder.lines, way);
    (first.len(), calls.mean_slow())
}

/// The backlog for a local disk has room for the results of a tenth of these calls.
#[test]
fn many_calls_are_in_flight_all_the_time() {
    let tree = Tree::in_memory();
    grow(&tree, ".", 4);
    let (lines, mean) = walk(&[tree.root()], &tree);
    assert!(lines > 70_000 && mean > WORKERS / 4, "{lines} lines, {mean} calls in flight");
}

/// The results of the fast device have to wait for the consumer, and soon exceed the backlog.
#[test]
fn the_backlog_of_a_fast_device_does_not_delay_a_slow_one() {
    let (fast, slow) = (Tree::in_memory(), Tree::new());
    if device(fast.root()) == device(slow.root()) {
        return skip("needs a second filesystem for temporary files");
    }
    grow(&slow, ".", 3);
    for number in 0..60 {
        fill(&fast.dir(&number.to_string()), 1_000);
    }
    let (_, mean) = walk(&[slow.root(), fast.root()], &slow);
    assert!(mean > WORKERS / 4, "{mean} calls in flight");
}

/// Each item has a weight of 3 MiB, so the backlog holds few of them.
#[test]
fn few_items_wait_for_a_slow_consumer() {
    let tree = Tree::in_memory();
    bushy(&tree.root(), 5, 4);
    let roots = ["", "d1", "f", "missing", "d1/d2", ""].map(|name| tree.path(name));
    for (seed, way) in [1, 2, WORKERS].map(Way::workers).into_iter().chain([Way::of(Model::Auto)]).enumerate()
    {
        let refusing = || {
            let mut recorder = Recorder::new(&roots);
            recorder.descend = Box::new(refuse(seed as u64));
            recorder
        };
        let mut first = refusing();
        way::walk(SYNC.options(), Everything::default(), &mut first);
        let (calls, visit, mut most) = (TwoDevices::new(device(tree.root())), Everything::default(), 0);
        let (alive, mut recorder) = (visit.alive.clone(), refusing());
        recorder.on_item = Box::new(|lines| {
            if lines % 256 == 3 {
                std::thread::sleep(Duration::from_millis(50));
            }
            most = most.max(alive.load(Ordering::Relaxed));
        });
        let start = Instant::now();
        way::start_over(way.options(), Heavy(visit.clone()), &mut recorder, move || Ok(Over(calls.clone())));
        assert_same(&first.lines, &recorder.lines, format_args!("{way}, seed {seed}"));
        drop(recorder);
        drop(alive);
        visit.check_alone(way);
        println!("{way}: {most} items at most, {} ms", start.elapsed().as_millis());
        // The backlog holds 32 MiB of items, and each worker with a task may add one.
        assert!(most <= 11 + 256, "{way}: {most}");
    }
}
