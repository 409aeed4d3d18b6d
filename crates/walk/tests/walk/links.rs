//! Followed links and mounted directories: a directory with several paths, or inside itself.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use crate::support::Random;
use crate::support::child::{self, report_lines, role};
use crate::support::late::Late;
use crate::support::record::{Everything, Recorder, assert_same};
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use fathom_walk::{Descend, Follow, Model, Options};

fn following(way: Way) -> Options {
    way.options().follow_roots(Follow::Yes).follow_links(Follow::Yes)
}

fn count(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

/// Walks `root` with links followed in all blocking ways, and compares the results.
#[track_caller]
fn all_following(root: &Path) -> Vec<String> {
    let lines = way::lines(following(SYNC), &[root]);
    for way in way::blocking() {
        assert_same(&lines, &way::lines(following(way), &[root]), way);
    }
    lines
}

#[test]
fn a_circle_of_links_is_followed_once() {
    let tree = Tree::new();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        tree.dir(from);
        tree.symlink(&format!("../{to}"), &format!("{from}/on"));
    }
    let lines = all_following(&tree.root());
    // From each of the three, the walk enters the other two and meets the first again.
    assert_eq!((count(&lines, "enter "), count(&lines, ": loop")), (1 + 3 * 4, 3));
}

/// The loop is longer than the number of ancestors that a worker checks: only the calling thread
/// detects it, and workers that read ahead must not follow it forever.
#[test]
fn a_loop_of_300_levels_is_detected() {
    const LEVELS: usize = 300;
    let tree = Tree::new();
    let deepest = tree.dir(&vec!["d"; LEVELS].join("/"));
    std::os::unix::fs::symlink(tree.root(), deepest.join("top")).unwrap();
    let start = Instant::now();
    let lines = all_following(&tree.root());
    println!("{} ms", start.elapsed().as_millis());
    assert_eq!((count(&lines, "enter "), count(&lines, ": loop")), (LEVELS + 2, 1));
}

/// Calls `walk` with a recorder that enters each directory once, and with the options for that.
fn each_once(root: &Path, way: Way, walk: impl FnOnce(Options, &mut Recorder<'_>)) -> Vec<String> {
    let mut met = HashSet::new();
    let mut recorder = Recorder::new(&[root]);
    recorder.descend =
        Box::new(move |enter| if met.insert(enter.meta.id()) { Descend::Yes } else { Descend::No });
    walk(following(way).dedup_directories(true), &mut recorder);
    recorder.lines
}

#[test]
fn a_directory_with_2_to_the_30_paths_is_listed_once() {
    const LEVELS: usize = 30;
    let tree = Tree::new();
    for level in 0..LEVELS {
        tree.dir(&format!("d{level}"));
        tree.file(&format!("d{level}/file"));
        for name in ["left", "right"] {
            tree.symlink(&format!("../d{}", level + 1), &format!("d{level}/{name}"));
        }
    }
    tree.dir(&format!("d{LEVELS}"));
    let start = Instant::now();
    let root = tree.path("d0");
    let walk = |options, recorder: &mut Recorder<'_>| {
        let summary = way::walk(options, Everything::default(), recorder);
        assert!(summary.progress.directories < 10 * LEVELS as u64, "{summary:?}");
    };
    let lines = each_once(&root, SYNC, walk);
    assert_eq!((count(&lines, "enter "), count(&lines, "leave")), (1 + 2 * LEVELS, 1 + LEVELS));
    assert_eq!(count(&lines, "item file "), LEVELS);
    for way in way::blocking() {
        assert_same(&lines, &each_once(&root, way, walk), way);
    }
    println!("{} ms", start.elapsed().as_millis());
}

/// Directories with pseudo-random links to each other: only the order of the walk decides which
/// path to a directory is the first.
#[test]
fn a_directory_with_several_paths_is_listed_at_the_first() {
    for seed in fathom_cases::seeds(25) {
        let mut random = Random::new(seed);
        let tree = Tree::new();
        let count = 2 + random.below(60);
        for number in 0..count {
            tree.dir(&format!("d{number}/inside"));
            fill(&tree.path(format!("d{number}/inside")), random.below(4));
        }
        for number in 0..count * (1 + random.below(4)) {
            let (from, to) = (random.below(count), random.below(count));
            let inside = if random.below(3) == 0 { "/inside" } else { "" };
            tree.symlink(
                &tree.path(format!("d{to}{inside}")).display().to_string(),
                &format!("d{from}/l{number}"),
            );
        }
        let walk = |options, recorder: &mut Recorder<'_>| {
            way::walk(options, Everything::default(), recorder);
        };
        let lines = each_once(&tree.root(), SYNC, walk);
        assert_eq!(lines.iter().filter(|line| *line == "leave").count(), 1 + 2 * count);
        for way in way::blocking() {
            assert_same(&lines, &each_once(&tree.root(), way, walk), format_args!("seed {seed}, {way}"));
        }
        let late = each_once(&tree.root(), Way::workers(2), |options, recorder| {
            way::walk_over(options, recorder, move || Ok(Late::new(seed)));
        });
        assert_same(&lines, &late, format_args!("seed {seed}, late"));
    }
}

/// The kernel follows at most 40 links in one path, but directories behind more links can be
/// reopened.
#[test]
fn directories_behind_many_links_are_reopened() {
    const LEVELS: usize = 300;
    let test = "links::directories_behind_many_links_are_reopened";
    if let Some((role, tree)) = role() {
        let way = Way::of(role.parse().unwrap());
        return report_lines(&tree, &role, &way::lines(following(way), &[tree.join("d0")]));
    }
    let tree = Tree::new();
    for level in 0..LEVELS {
        for name in ["a", "z"] {
            tree.dir(&format!("d{level}/{name}"));
        }
        tree.symlink(&format!("../d{}", level + 1), &format!("d{level}/m"));
    }
    tree.dir(&format!("d{LEVELS}"));
    let lines = way::lines(following(SYNC), &[tree.path("d0")]);
    assert_eq!((count(&lines, "enter "), count(&lines, "error")), (1 + 3 * LEVELS, 0));
    for model in [Model::Sync, Model::Threads(Some(64)), Model::AsyncPar] {
        let role = model.to_string();
        let report = child::run(test, &role, &tree.root(), 24);
        assert_same(&lines, &report.lines(&tree.root(), &role), model);
    }
}

#[test]
fn a_directory_mounted_below_itself_is_a_loop() {
    let test = "links::a_directory_mounted_below_itself_is_a_loop";
    if let Some((role, tree)) = role() {
        let lines = way::lines(SYNC.options(), &[&tree]);
        for way in way::all() {
            assert_same(&lines, &way::lines(way.options(), &[&tree]), way);
        }
        return report_lines(&tree, &role, &lines);
    }
    let tree = Tree::new();
    for name in ["a/b/here", "a/b/again", "z/other", "big"] {
        tree.dir(name);
    }
    tree.file("a/file");
    let mounts = "mount --bind \"$0/a\" \"$0/a/b/here\" && mount --bind \"$0\" \"$0/a/b/again\" && mount --bind \"$0/a\" \"$0/z/other\"";
    let Some(report) = child::run_with_mounts(test, "mounted", &tree.root(), mounts) else { return };
    let lines = report.lines(&tree.root(), "mounted");
    // In `z/other`, `a` is not its own ancestor. The bind mounts below the first `a` are the two
    // loops; they are not repeated in `z/other`.
    assert_eq!((count(&lines, ": loop"), count(&lines, "item file ")), (2, 2), "{lines:#?}");
}
