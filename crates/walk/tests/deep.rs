//! Trees so deep that no path leads to their end, and that recursion would not come back from.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::ffi::CString;
use std::path::Path;
use std::time::Instant;

use fathom_walk::{Choice, Descend, Follow};
use support::child::{self, report, report_lines, role};
use support::record::{Everything, Recorder, assert_same};
use support::tree::{Chain, Tree};
use support::way::{self, SYNC, Way};

/// Walks `root` and says how long that took.
fn timed(way: Way, root: &Path) -> Vec<String> {
    let start = Instant::now();
    let lines = way::lines(way.options(), &[root]);
    println!("{way}: {} lines in {} ms", lines.len(), start.elapsed().as_millis());
    lines
}

#[test]
fn a_chain_of_100_000_directories() {
    const DEPTH: usize = 100_000;
    let chain = Chain::new(DEPTH, &[]);
    let lines = timed(SYNC, &chain.root());
    assert_eq!(lines.len(), 2 * (DEPTH + 1));
    for (depth, line) in lines[..=DEPTH].iter().enumerate().skip(1) {
        assert!(line.starts_with(&format!("enter m {depth} ")), "{line}");
    }
    assert!(lines[DEPTH + 1..].iter().all(|line| line == "leave"));
    for way in [Way::workers(2), Way::workers(64), Way::of(Choice::Auto)] {
        assert_same(&lines, &timed(way, &chain.root()), way);
    }
}

#[test]
fn a_chain_whose_walk_is_given_up_halfway() {
    const DEPTH: usize = 50_000;
    let chain = Chain::new(DEPTH, &[]);
    for way in [SYNC, Way::workers(7)] {
        for turn_back in [1, DEPTH / 2] {
            let mut recorder = Recorder::new(&[chain.root()]);
            recorder.descend =
                Box::new(|enter| if enter.node.depth() == turn_back { Descend::No } else { Descend::Yes });
            way::walk(way.options(), Everything::default(), &mut recorder);
            assert_eq!(recorder.lines.len(), 2 * turn_back + 1, "{way}");
        }
    }
}

/// 24 descriptors do not reach over 5,000 levels: on the way up directories are opened a second time, `a` or `z` from each.
#[test]
fn directories_are_found_again_on_the_way_up_from_5_000_levels() {
    const LEVELS: usize = 5_000;
    if let Some((role, tree)) = role() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&[&tree]);
        let options = Way::of(role.parse().unwrap()).options();
        let summary = way::walk(options, Everything::default(), &mut recorder);
        report("ms", start.elapsed().as_millis());
        report("reopened", summary.calls.reopen);
        return report_lines(&tree, &role, &recorder.lines);
    }
    let chain = Chain::new(LEVELS, &[c"a", c"z"]);
    let lines = way::lines(SYNC.options(), &[chain.root()]);
    assert_eq!(lines.len(), 2 * (1 + 3 * LEVELS));
    for role in ["sync", "threads=64", "auto"] {
        let test = "directories_are_found_again_on_the_way_up_from_5_000_levels";
        let report = child::run(test, role, &chain.root(), 24);
        let [ms, reopened] = ["ms", "reopened"].map(|key| report.number(key));
        println!("{role}: {reopened} reopened, {ms} ms");
        assert_same(&lines, &report.lines(&chain.root(), role), role);
        // Not one by one from the root: that would be 12 million.
        assert!((1..20 * LEVELS).contains(&reopened), "{reopened}");
    }
}

#[test]
fn long_names_make_paths_that_no_call_takes() {
    let tree = Tree::new();
    let name = "n".repeat(250);
    let mut dir = std::fs::File::open(tree.root()).map(std::os::fd::OwnedFd::from).unwrap();
    for _ in 0..60 {
        let link = CString::new(name.clone()).unwrap();
        rustix::fs::mkdirat(&dir, &link, rustix::fs::Mode::RWXU).unwrap();
        rustix::fs::symlinkat(c".", &dir, c"here").unwrap();
        dir = fathom_io::sys::open_dir(std::os::fd::AsFd::as_fd(&dir), &link, Follow::No).unwrap().into_fd();
    }
    let root = tree.root();
    let mut longest = 0;
    let mut recorder = Recorder::new(&[&root]);
    recorder.descend = Box::new(|enter| {
        let mut path = Vec::new();
        enter.node.path_into(&mut path);
        longest = longest.max(path.len());
        Descend::Yes
    });
    way::walk(SYNC.options(), Everything::default(), &mut recorder);
    let lines = std::mem::take(&mut recorder.lines);
    drop(recorder);
    assert_eq!(longest, root.as_os_str().len() + 60 * 251);
    assert_eq!(lines.len(), 61 * 2 + 60);
    for way in way::all() {
        assert_same(&lines, &way::lines(way.options(), &[&root]), way);
    }
}
