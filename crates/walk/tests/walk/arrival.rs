//! An unordered walk reports the same as an ordered one, under every model and number of workers;
//! each directory is entered, left, and done after everything below it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use crate::support::Watchdog;
use crate::support::child::{self, report_lines, role};
use crate::support::events::{EventRecorder, FixedRoots};
use crate::support::late::Late;
use crate::support::record::assert_same;
use crate::support::tree::{Chain, Tree, bushy, fill, mixed};
use crate::support::way::{self, SYNC, Way};
use fathom_io::blocking::Blocking;
use fathom_walk::{
    Descend, Emit, Enter, Entry, FileType, Follow, Node, Op, Options, Progress, Summary, UnorderedVisitor,
    Visitor, run_unordered, run_unordered_with,
};

fn unwatched(_: Progress) {}

#[track_caller]
fn unordered_lines(options: Options, roots: &[impl AsRef<Path>]) -> Vec<String> {
    let _watchdog = Watchdog::new(format_args!("{options:?}"));
    let recorder = EventRecorder::default();
    let summary =
        run_unordered(options, recorder.clone(), &mut FixedRoots::new(roots), &mut unwatched).unwrap();
    assert!(summary.complete);
    recorder.check_failures(&summary);
    recorder.sorted()
}

/// Walks `roots` in every way, ordered and unordered, compares the lines and returns their number.
#[track_caller]
fn assert_same_as_ordered(roots: &[impl AsRef<Path>], change: impl Fn(Options) -> Options) -> usize {
    let options = |way: Way| change(way.options());
    let mut lines = way::lines(options(SYNC), roots);
    lines.sort();
    for way in way::all() {
        assert_same(&lines, &unordered_lines(options(way), roots), way);
    }
    for seed in 0..fathom_cases::count(3) as u64 {
        let recorder = EventRecorder::default();
        let options = options(Way::workers(1 + 2 * usize::try_from(seed).unwrap()));
        let make = move || Ok(Late::new(seed));
        let summary =
            run_unordered_with(options, recorder.clone(), &mut FixedRoots::new(roots), &mut unwatched, make)
                .unwrap();
        recorder.check_failures(&summary);
        assert_same(&lines, &recorder.sorted(), format_args!("late, seed {seed}"));
    }
    lines.len()
}

#[test]
fn mixed_files() {
    let tree = Tree::new();
    mixed(&tree);
    assert!(assert_same_as_ordered(&[tree.root()], |options| options) > 20);
    assert_same_as_ordered(&[tree.root()], |options| options.stat_dirs(true));
}

#[test]
fn links_followed_and_their_loops() {
    let tree = Tree::new();
    mixed(&tree);
    assert_same_as_ordered(&[tree.root()], |options| options.follow_links(Follow::Yes));
}

#[test]
fn several_roots_some_of_them_files_or_missing() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    let roots = ["", "d1", "f", "missing", "d1/d2", ""].map(|name| tree.path(name));
    assert_same_as_ordered(&roots, |options| options);
    assert_eq!(unordered_lines(SYNC.options(), &[] as &[&Path]), [] as [String; 0]);
}

#[test]
fn a_directory_of_25_000_entries_in_chunks() {
    let tree = Tree::new();
    fill(&tree.dir("wide"), 25_000);
    fill(&tree.dir("wide/deeper"), 3);
    tree.file("after");
    assert_same_as_ordered(&[tree.root()], |options| options);
}

#[test]
fn a_chain_of_3_000_directories() {
    let chain = Chain::new(3_000, &[c"beside"]);
    let mut lines = way::lines(SYNC.options(), &[chain.root()]);
    lines.sort();
    for way in way::blocking() {
        assert_same(&lines, &unordered_lines(way.options(), &[chain.root()]), way);
    }
}

#[test]
fn with_few_descriptors() {
    if let Some((_, tree)) = role() {
        let lines = unordered_lines(Way::workers(4).options(), &[&tree]);
        return report_lines(&tree, "few", &lines);
    }
    let tree = Tree::new();
    bushy(&tree.dir("in"), 5, 4);
    let report = child::run("arrival::with_few_descriptors", "few", &tree.path("in"), 24);
    assert_same(
        &unordered_lines(SYNC.options(), &[tree.path("in")]),
        &report.lines(&tree.path("in"), "few"),
        "few",
    );
}

/// Panics when it enters a directory below the root.
struct PanickingEnter;

impl Visitor for PanickingEnter {
    type Item = Infallible;
    type Local = ();

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

impl UnorderedVisitor for PanickingEnter {
    fn enter(&self, (): &mut (), enter: Enter<'_>) -> Descend {
        assert_eq!(enter.node.depth(), 0, "expected panic");
        Descend::Yes
    }
}

#[test]
fn a_visitor_that_panics_ends_the_walk_with_an_error() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    for way in way::all() {
        let _watchdog = Watchdog::new(way);
        let ended = run_unordered(
            way.options(),
            PanickingEnter,
            &mut FixedRoots::new(&[tree.root()]),
            &mut unwatched,
        );
        assert_eq!(ended.unwrap_err().op(), Op::Work, "{way}");
    }
}

#[test]
fn a_stopped_walk_ends_and_reports_the_finished_part() {
    let tree = Tree::new();
    bushy(&tree.root(), 6, 4);
    for way in way::blocking() {
        let (recorder, _watchdog) = (EventRecorder::default(), Watchdog::new(way));
        let known = recorder.clone();
        let mut looks = 0;
        let mut roots = FixedRoots::new(&[tree.root()]);
        roots.stopped = Box::new(|| {
            looks += 1;
            looks > 2
        });
        let make = || Ok(Blocking);
        let summary: Summary =
            run_unordered_with(way.options(), recorder, &mut roots, &mut unwatched, make).unwrap();
        assert!(summary.complete || known.len() <= summary.progress.entries as usize * 3, "{way}");
    }
}
