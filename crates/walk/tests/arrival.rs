//! A walk in no order tells what one in order tells, whatever the model and the number of workers;
//! and each directory has its beginning, its end, and the end of everything below it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use fathom_io::blocking::Blocking;
use fathom_walk::{
    Descend, Emit, Enter, Entry, FileType, Follow, Node, Op, Options, Progress, Summary, Visitor,
    run_unordered, run_unordered_with,
};
use support::Watchdog;
use support::child::{self, report_lines, role};
use support::late::Late;
use support::record::assert_same;
use support::tell::{Given, Teller};
use support::tree::{Chain, Tree, bushy, fill, mixed};
use support::way::{self, SYNC, Way};

fn unwatched(_: Progress) {}

#[track_caller]
fn told(options: Options, roots: &[impl AsRef<Path>]) -> Vec<String> {
    let _watchdog = Watchdog::new(format_args!("{options:?}"));
    let teller = Teller::default();
    let summary = run_unordered(options, teller.clone(), &mut Given::new(roots), &mut unwatched).unwrap();
    assert!(summary.complete);
    teller.check_failures(&summary);
    teller.sorted()
}

/// Walks `roots` in every way, in order and in none; how many lines that was.
#[track_caller]
fn the_same_as_in_order(roots: &[impl AsRef<Path>], change: impl Fn(Options) -> Options) -> usize {
    let options = |way: Way| change(way.options());
    let mut lines = way::lines(options(SYNC), roots);
    lines.sort();
    for way in way::all() {
        assert_same(&lines, &told(options(way), roots), way);
    }
    for seed in 0..3 {
        let teller = Teller::default();
        let options = options(Way::workers(1 + 2 * usize::try_from(seed).unwrap()));
        let make = move || Ok(Late::new(seed));
        let summary =
            run_unordered_with(options, teller.clone(), &mut Given::new(roots), &mut unwatched, make)
                .unwrap();
        teller.check_failures(&summary);
        assert_same(&lines, &teller.sorted(), format_args!("late, seed {seed}"));
    }
    lines.len()
}

#[test]
fn mixed_files() {
    let tree = Tree::new();
    mixed(&tree);
    assert!(the_same_as_in_order(&[tree.root()], |options| options) > 20);
    the_same_as_in_order(&[tree.root()], |options| options.stat_dirs(true));
}

#[test]
fn links_followed_and_their_loops() {
    let tree = Tree::new();
    mixed(&tree);
    the_same_as_in_order(&[tree.root()], |options| options.follow_links(Follow::Yes));
}

#[test]
fn several_roots_some_of_them_files_or_missing() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    let roots = ["", "d1", "f", "missing", "d1/d2", ""].map(|name| tree.path(name));
    the_same_as_in_order(&roots, |options| options);
    assert_eq!(told(SYNC.options(), &[] as &[&Path]), [] as [String; 0]);
}

#[test]
fn a_directory_of_25_000_entries_in_pieces() {
    let tree = Tree::new();
    fill(&tree.dir("wide"), 25_000);
    fill(&tree.dir("wide/deeper"), 3);
    tree.file("after");
    the_same_as_in_order(&[tree.root()], |options| options);
}

#[test]
fn a_chain_of_3_000_directories() {
    let chain = Chain::new(3_000, &[c"beside"]);
    let mut lines = way::lines(SYNC.options(), &[chain.root()]);
    lines.sort();
    for way in way::blocking() {
        assert_same(&lines, &told(way.options(), &[chain.root()]), way);
    }
}

#[test]
fn with_few_descriptors() {
    if let Some((_, tree)) = role() {
        let lines = told(Way::workers(4).options(), &[&tree]);
        return report_lines(&tree, "few", &lines);
    }
    let tree = Tree::new();
    bushy(&tree.dir("in"), 5, 4);
    let report = child::run("with_few_descriptors", "few", &tree.path("in"), 24);
    assert_same(&told(SYNC.options(), &[tree.path("in")]), &report.lines(&tree.path("in"), "few"), "few");
}

/// Panics when it sees a directory below the root.
struct Clumsy;

impl Visitor for Clumsy {
    type Item = Infallible;
    type Local = ();

    fn enter(&self, (): &mut (), enter: Enter<'_>) -> Descend {
        assert_eq!(enter.node.depth(), 0, "told to panic");
        Descend::Yes
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        _dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        entries
            .filter(|entry| entry.file_type() == FileType::Directory)
            .for_each(|entry| emit.descend(&entry));
    }
}

#[test]
fn a_gatherer_that_panics_ends_the_walk_with_an_error() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    for way in way::all() {
        let _watchdog = Watchdog::new(way);
        let ended = run_unordered(way.options(), Clumsy, &mut Given::new(&[tree.root()]), &mut unwatched);
        assert_eq!(ended.unwrap_err().op(), Op::Work, "{way}");
    }
}

#[test]
fn a_walk_that_is_stopped_ends_and_tells_what_it_knows() {
    let tree = Tree::new();
    bushy(&tree.root(), 6, 4);
    for way in way::blocking() {
        let (teller, _watchdog) = (Teller::default(), Watchdog::new(way));
        let known = teller.clone();
        let mut looks = 0;
        let mut roots = Given::new(&[tree.root()]);
        roots.stopped = Box::new(|| {
            looks += 1;
            looks > 2
        });
        let make = || Ok(Blocking);
        let summary: Summary =
            run_unordered_with(way.options(), teller, &mut roots, &mut unwatched, make).unwrap();
        assert!(summary.complete || known.len() <= summary.progress.entries as usize * 3, "{way}");
    }
}
