//! Directories that a walk in no order did not go on to are walked later, each by itself: relative
//! to where they were found, and through no link.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, FileType, NextRoot, Node, Progress, RootSource, Visitor,
    run_unordered,
};
use support::Watchdog;
use support::tree::{Chain, Tree, bushy, c_path, expected, mixed};
use support::way::{self, SYNC};

#[derive(Default)]
struct Told {
    entries: usize,
    /// Directories seen and not gone on to.
    seen: VecDeque<(Arc<Node>, CString)>,
    ends: Vec<Vec<u8>>,
    refused: Vec<Vec<u8>>,
}

#[derive(Clone, Default)]
struct Step(Arc<Mutex<Told>>);

fn path(node: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    node.path_into(&mut path);
    path
}

impl Visitor for Step {
    type Item = Infallible;
    type Local = ();

    fn enter(&self, (): &mut (), enter: Enter<'_>) -> Descend {
        assert!(!self.0.lock().unwrap().ends.contains(&path(enter.node)), "entered before its end");
        Descend::Yes
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        _emit: &mut Emit<'_, Infallible>,
    ) {
        let mut told = self.0.lock().unwrap();
        for entry in entries {
            told.entries += 1;
            if entry.file_type() == FileType::Directory {
                told.seen.push_back((dir.clone(), entry.name.name.to_owned()));
            }
        }
    }

    fn failed(&self, (): &mut (), failure: Failure<'_>) {
        self.0.lock().unwrap().refused.push(path(failure.node));
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        self.0.lock().unwrap().ends.push(path(node));
    }
}

/// Goes on to everything, but only when nothing else is to be done.
struct Later {
    root: Option<CString>,
    step: Step,
    ready: VecDeque<(Arc<Node>, CString)>,
    /// What happens before the first of them.
    before: Option<Box<dyn FnOnce()>>,
}

impl RootSource for Later {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        if let Some(root) = self.root.take() {
            return NextRoot::Path(root);
        }
        if wait && self.ready.is_empty() {
            self.ready = std::mem::take(&mut self.step.0.lock().unwrap().seen);
            self.before.take().into_iter().for_each(|before| before());
            if self.ready.is_empty() {
                return NextRoot::End;
            }
        }
        self.ready.pop_front().map_or(NextRoot::NotNow, |(dir, name)| NextRoot::Below(dir, name))
    }
}

/// Walks `root` step by step; what was told.
fn walk(way: way::Way, root: PathBuf, before: Option<Box<dyn FnOnce()>>) -> Told {
    let _watchdog = Watchdog::new(format_args!("{way:?}"));
    let step = Step::default();
    let mut later = Later { root: Some(c_path(&root)), step: step.clone(), ready: VecDeque::new(), before };
    let summary = run_unordered(way.options(), step.clone(), &mut later, &mut |_: Progress| {}).unwrap();
    assert!(summary.complete);
    std::mem::take(&mut *step.0.lock().unwrap())
}

#[test]
fn every_directory_is_walked_and_done_once() {
    let tree = Tree::new();
    mixed(&tree);
    bushy(&tree.dir("bushy"), 5, 4);
    let lines = expected(&tree.root());
    // Each directory has two lines, and is an entry of another, but for the root.
    let directories = lines.iter().filter(|line| *line == "leave").count();
    for way in way::all() {
        let mut told = walk(way, tree.root(), None);
        told.ends.sort();
        told.ends.dedup();
        assert_eq!(told.ends.len(), directories, "{way:?}");
        assert_eq!(told.entries + 1, lines.len() - directories, "{way:?}");
    }
}

#[test]
fn a_chain_deeper_than_any_path_is_walked_step_by_step() {
    let chain = Chain::new(1_500, &[]);
    let told = walk(SYNC, chain.root(), None);
    assert_eq!((told.ends.len(), told.refused.len()), (1_501, 0));
}

#[test]
fn what_became_a_link_is_not_gone_through() {
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
    let told = walk(SYNC, tree.root(), Some(Box::new(swap)));
    assert_eq!((told.entries, told.refused.len()), (1, 1), "{:?}", told.ends);
}
