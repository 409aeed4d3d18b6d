//! Directories that an unordered walk did not descend into are walked later, each as a root
//! relative to its parent directory, and never through a symbolic link. Roots also start from
//! directories that the caller has opened.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::support::Watchdog;
use crate::support::tree::{Chain, Tree, bushy, c_path, expected, mixed};
use crate::support::way::{self, SYNC};
use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, FileType, NextRoot, Node, Progress, RootSource, UnorderedVisitor,
    Visitor, run_unordered,
};

#[derive(Default)]
struct StepLog {
    entries: usize,
    /// Directories that were found and not yet walked.
    found: VecDeque<(Arc<Node>, CString)>,
    ends: Vec<Vec<u8>>,
    refused: Vec<Vec<u8>>,
}

#[derive(Clone, Default)]
struct Step(Arc<Mutex<StepLog>>);

fn path(node: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    node.path_into(&mut path);
    path
}

impl Visitor for Step {
    type Item = Infallible;
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        _emit: &mut Emit<'_, Infallible>,
    ) {
        let mut log = self.0.lock().unwrap();
        for entry in entries {
            log.entries += 1;
            if entry.file_type() == FileType::Directory {
                log.found.push_back((dir.clone(), entry.name.name.to_owned()));
            }
        }
    }
}

impl UnorderedVisitor for Step {
    fn enter(&self, (): &mut (), enter: Enter<'_>) -> Descend {
        assert!(!self.0.lock().unwrap().ends.contains(&path(enter.node)), "entered before its end");
        Descend::Yes
    }

    fn failed(&self, (): &mut (), failure: Failure<'_>) {
        self.0.lock().unwrap().refused.push(path(failure.node));
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        self.0.lock().unwrap().ends.push(path(node));
    }
}

/// Walks every directory that was found, but only when the walk is idle.
struct DeferredRoots {
    root: Option<CString>,
    step: Step,
    ready: VecDeque<(Arc<Node>, CString)>,
    /// Called before the first directory is walked.
    before: Option<Box<dyn FnOnce()>>,
}

impl RootSource for DeferredRoots {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        if let Some(root) = self.root.take() {
            return NextRoot::Path(root);
        }
        if wait && self.ready.is_empty() {
            self.ready = std::mem::take(&mut self.step.0.lock().unwrap().found);
            self.before.take().into_iter().for_each(|before| before());
            if self.ready.is_empty() {
                return NextRoot::End;
            }
        }
        self.ready.pop_front().map_or(NextRoot::NotNow, |(dir, name)| NextRoot::Below(dir, name))
    }
}

/// Walks the entries `names` of one open directory, each as a root.
struct OpenBase(Arc<OwnedFd>, Vec<CString>);

impl RootSource for OpenBase {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.1.pop().map_or(NextRoot::End, |name| NextRoot::At(self.0.clone(), name))
    }
}

/// Walks `root` directory by directory, and returns the recorded calls.
fn walk(way: way::Way, root: PathBuf, before: Option<Box<dyn FnOnce()>>) -> StepLog {
    let _watchdog = Watchdog::new(format_args!("{way:?}"));
    let step = Step::default();
    let mut roots =
        DeferredRoots { root: Some(c_path(&root)), step: step.clone(), ready: VecDeque::new(), before };
    let summary = run_unordered(way.options(), step.clone(), &mut roots, &mut |_: Progress| {}).unwrap();
    assert!(summary.complete);
    std::mem::take(&mut *step.0.lock().unwrap())
}

#[test]
fn every_directory_is_walked_and_done_once() {
    let tree = Tree::new();
    mixed(&tree);
    bushy(&tree.dir("bushy"), 5, 4);
    let lines = expected(&tree.root());
    // Each directory has two lines, and each but the root is an entry of another directory.
    let directories = lines.iter().filter(|line| *line == "leave").count();
    for way in way::all() {
        let mut log = walk(way, tree.root(), None);
        log.ends.sort();
        log.ends.dedup();
        assert_eq!(log.ends.len(), directories, "{way:?}");
        assert_eq!(log.entries + 1, lines.len() - directories, "{way:?}");
    }
}

#[test]
fn a_chain_deeper_than_any_path_is_walked_step_by_step() {
    let chain = Chain::new(1_500, &[]);
    let log = walk(SYNC, chain.root(), None);
    assert_eq!((log.ends.len(), log.refused.len()), (1_501, 0));
}

#[test]
fn a_directory_replaced_by_a_link_is_not_followed() {
    let tree = Tree::new();
    tree.dir("a/b");
    tree.file("a/b/file");
    let outside = tree.beside("outside");
    fs::create_dir_all(outside.join("b")).unwrap();
    fs::write(outside.join("b/secret"), b"x").unwrap();
    let (inside, moved) = (tree.path("a"), tree.path("moved"));
    let swap = move || {
        fs::rename(&inside, &moved).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
    };
    let log = walk(SYNC, tree.root(), Some(Box::new(swap)));
    assert_eq!((log.entries, log.refused.len()), (1, 1), "{:?}", log.ends);
}

#[test]
fn roots_start_from_an_open_directory_wherever_it_is_moved() {
    let tree = Tree::new();
    for dir in ["base/a", "base/b"] {
        tree.dir(dir);
        tree.file(&format!("{dir}/file"));
    }
    let base: Arc<OwnedFd> = Arc::new(fs::File::open(tree.path("base")).unwrap().into());
    fs::rename(tree.path("base"), tree.path("moved")).unwrap();
    for way in way::all() {
        let _watchdog = Watchdog::new(format_args!("{way:?}"));
        let names = ["a", "missing", "b"].map(|name| CString::new(name).unwrap()).to_vec();
        let (step, mut roots) = (Step::default(), OpenBase(base.clone(), names));
        run_unordered(way.options(), step.clone(), &mut roots, &mut |_: Progress| {}).unwrap();
        drop(roots);
        let mut log = std::mem::take(&mut *step.0.lock().unwrap());
        log.ends.sort();
        assert_eq!(log.ends, [&b"a"[..], b"b", b"missing"], "{way:?}");
        assert_eq!((log.entries, log.refused), (2, vec![b"missing".to_vec()]), "{way:?}");
        // Each root has closed its directory at its end.
        assert_eq!(Arc::strong_count(&base), 1, "{way:?}");
    }
}
