//! A walk with 32 descriptors or fewer reports the same as one with many, for trees that are deeper
//! and wider than that, in every way to walk. Each walk has a process of its own, because the limit
//! applies to a process.

use std::path::Path;
use std::time::Instant;

use crate::support::child::{self, report, report_lines, role};
use crate::support::record::{Everything, Recorder, assert_same};
use crate::support::tree::{Chain, Tree};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::Model;

/// Returns the number of open descriptors without the one that lists them; `most` if none is left
/// to list them.
fn open_descriptors(most: usize) -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(most, |entries| entries.count() - 1)
}

/// Runs in a child: walks `tree` in the way `role` and counts the descriptors meanwhile.
fn walk(role: &str, tree: &Path) {
    let limit = fathom_io::sys::fd_limit();
    let mut most = open_descriptors(limit);
    let mut recorder = Recorder::new(&[tree]);
    recorder.stopped = Box::new(|_| {
        most = most.max(open_descriptors(limit));
        false
    });
    let start = Instant::now();
    let options = Way::of(role.parse().unwrap()).options().unordered_chunks(true);
    let summary = way::walk(options, Everything::default(), &mut recorder);
    let ms = start.elapsed().as_millis();
    report_lines(tree, role, &recorder.lines);
    drop(recorder);
    report("most", most);
    report("ms", ms);
    report("reopened", summary.calls.reopen);
}

/// Walks `tree` in all ways with the limit `fds`. Fails if the result of one differs from `lines`.
#[track_caller]
fn assert_same_with_limit(fds: usize, test: &str, tree: &Path, lines: &[String]) {
    for way in way::models() {
        let role = way.model.to_string();
        let report = child::run(&format!("descriptors::{test}"), &role, tree, fds);
        let [most, ms, reopened] = ["most", "ms", "reopened"].map(|key| report.number(key));
        println!("{role}, {fds} descriptors: {most} at most, {reopened} reopened, {ms} ms");
        assert_same(lines, &report.lines(tree, &role), format_args!("{role}, {fds} descriptors"));
        assert!(most + 4 <= fds, "the rest of the process has no descriptors");
    }
}

#[test]
fn a_chain_of_2_000_directories_takes_few_descriptors() {
    if let Some((role, tree)) = role() {
        return walk(&role, &tree);
    }
    let chain = Chain::new(2_000, &[c"a", c"z"]);
    let lines = way::lines(SYNC.options(), &[chain.root()]);
    assert_eq!(lines.len(), 2 * (1 + 3 * 2_000));
    for fds in [24, 32] {
        assert_same_with_limit(
            fds,
            "a_chain_of_2_000_directories_takes_few_descriptors",
            &chain.root(),
            &lines,
        );
    }
}

#[test]
fn ten_thousand_directories_take_few_descriptors() {
    if let Some((role, tree)) = role() {
        return walk(&role, &tree);
    }
    let tree = Tree::in_memory();
    for number in 0..10_000 {
        tree.dir(&format!("d{number}"));
        tree.file(&format!("d{number}/file"));
    }
    let lines = way::lines(SYNC.options(), &[tree.root()]);
    assert_eq!(lines.len(), 2 + 3 * 10_000);
    assert_same_with_limit(32, "ten_thousand_directories_take_few_descriptors", &tree.root(), &lines);
}

#[test]
fn a_wide_directory_is_continued_after_deep_ones() {
    if let Some((role, tree)) = role() {
        return walk(&role, &tree);
    }
    let tree = Tree::new();
    crate::support::tree::late_directories(&tree, 50);
    let lines = way::lines(SYNC.options(), &[tree.root()]);
    for fds in [24, 32] {
        assert_same_with_limit(fds, "a_wide_directory_is_continued_after_deep_ones", &tree.root(), &lines);
    }
}

#[test]
fn no_descriptor_is_left_open_by_a_walk_that_ended() {
    if let Some((role, tree)) = role() {
        let before = open_descriptors(0);
        walk(&role, &tree);
        // Workers end asynchronously.
        let start = Instant::now();
        while open_descriptors(0) > before && start.elapsed().as_secs() < 300 {
            std::thread::yield_now();
        }
        return report("left", open_descriptors(0) - before);
    }
    let tree = Tree::in_memory();
    crate::support::tree::bushy(&tree.root(), 5, 4);
    for model in [Model::Sync, Model::Threads(Some(64)), Model::AsyncPar] {
        let test = "descriptors::no_descriptor_is_left_open_by_a_walk_that_ended";
        assert_eq!(child::run(test, &model.to_string(), &tree.root(), 256).number("left"), 0, "{model}");
    }
}
