//! A gatherer that writes down what it is told, in the words of `record.rs`, and checks what order
//! there is: a directory is entered before its entries are seen, left after them, and done after
//! everything below it.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, FileType, Meta, NextRoot, Node, Operation, RootSource, Summary,
    Visitor,
};

use super::record::{enter_line, failure_line, item_line};

/// How far a directory or root has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Expected,
    Entered,
    Left,
    Done,
}

#[derive(Default)]
struct Told {
    lines: Vec<String>,
    /// By root and path.
    stages: HashMap<(usize, Vec<u8>), Stage>,
    /// Directories below this one that are not done.
    below: HashMap<(usize, Vec<u8>), usize>,
    broken: HashMap<(usize, Vec<u8>), String>,
    failures: u64,
}

/// What all clones have been told.
#[derive(Clone, Default)]
pub(crate) struct Teller(Arc<Mutex<Told>>);

fn key(node: &Node) -> (usize, Vec<u8>) {
    let mut path = Vec::new();
    node.path_into(&mut path);
    (node.root_index(), path)
}

impl Teller {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap()
    }

    /// Every line, sorted; fails if something told of is not done.
    #[track_caller]
    pub(crate) fn sorted(&self) -> Vec<String> {
        let told = self.told();
        let open: Vec<_> = told.stages.iter().filter(|(_, stage)| **stage != Stage::Done).collect();
        assert!(open.is_empty(), "not done: {open:?}");
        let mut lines = told.lines.clone();
        lines.sort();
        lines
    }

    pub(crate) fn len(&self) -> usize {
        self.told().lines.len()
    }

    /// Fails unless every line of something that went wrong came with a failure, and all failures
    /// are in the sum.
    #[track_caller]
    pub(crate) fn check_failures(&self, summary: &Summary) {
        let told = self.told();
        let wrong = |line: &&String| line.ends_with(": loop") || line.contains(" error ");
        let lines = told.lines.iter().filter(wrong).count() as u64;
        assert_eq!((told.failures, summary.progress.failures), (lines, lines), "failures, of {lines} lines");
    }
}

impl Told {
    #[track_caller]
    fn advance(&mut self, node: &Node, from: &[Stage], to: Stage) {
        let key = key(node);
        let before = self.stages.insert(key.clone(), to);
        let is_new_root = before.is_none() && node.parent().is_none() && from.contains(&Stage::Expected);
        assert!(
            is_new_root || before.is_some_and(|stage| from.contains(&stage)),
            "{key:?}: {before:?} to {to:?}"
        );
    }

    #[track_caller]
    fn check_inside(&self, node: &Node) {
        assert_eq!(self.stages.get(&key(node)), Some(&Stage::Entered), "{:?}", node.name());
    }
}

/// What a worker keeps back: lines.
pub(crate) type Kept = Vec<String>;

impl Visitor for Teller {
    type Item = Infallible;
    type Local = Kept;

    fn enter(&self, kept: &mut Kept, enter: Enter<'_>) -> Descend {
        let node = enter.node;
        self.told().advance(node, &[Stage::Expected], Stage::Entered);
        kept.push(enter_line(node.name().to_bytes(), node.depth(), enter.meta.ino, enter.found));
        Descend::Yes
    }

    fn entries<'a>(
        &self,
        kept: &mut Kept,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let mut told = self.told();
        told.check_inside(dir);
        for entry in entries {
            let name = entry.name.name.to_bytes();
            if let Some(Err(errno)) = entry.meta
                && entry.file_type() != FileType::Directory
            {
                emit.failed(&entry, errno);
                continue;
            }
            if entry.file_type() != FileType::Directory {
                let meta = entry.meta.and_then(Result::ok).copied().map(Ok);
                kept.push(item_line(name, entry.name.file_type, meta));
                continue;
            }
            emit.descend(&entry);
            let mut path = key(dir);
            *told.below.entry(path.clone()).or_default() += 1;
            if path.1.last() != Some(&b'/') {
                path.1.push(b'/');
            }
            path.1.extend_from_slice(name);
            assert_eq!(told.stages.insert(path, Stage::Expected), None);
        }
    }

    fn failed(&self, kept: &mut Kept, failure: Failure<'_>) {
        let (node, line) = (failure.node, failure_line(failure));
        let mut told = self.told();
        told.failures += 1;
        match failure.operation {
            Operation::Read | Operation::Reopen => {
                told.check_inside(node);
                assert_eq!(told.broken.insert(key(node), line), None);
            }
            Operation::Access if node.parent().is_none() => {
                told.stages.insert(key(node), Stage::Entered);
                kept.push(line);
            }
            Operation::Access => kept.push(line),
            Operation::Stat => {
                told.check_inside(node);
                kept.push(line);
            }
            Operation::Open => {
                kept.last_mut().unwrap().push_str(&line);
                kept.push("leave".to_owned());
            }
            Operation::Descend => assert!(kept.last().unwrap().ends_with(": loop")),
        }
    }

    fn leave(&self, kept: &mut Kept, node: &Arc<Node>) {
        let mut told = self.told();
        told.advance(node, &[Stage::Entered], Stage::Left);
        let error = told.broken.remove(&key(node)).unwrap_or_default();
        kept.push(format!("leave{error}"));
    }

    fn done(&self, _: &mut Kept, node: &Arc<Node>) {
        let mut told = self.told();
        told.advance(node, &[Stage::Expected, Stage::Entered, Stage::Left], Stage::Done);
        assert_eq!(
            told.below.remove(&key(node)).unwrap_or(0),
            0,
            "{:?} is done before what is below",
            node.name()
        );
        if let Some(parent) = node.parent() {
            *told.below.get_mut(&key(parent)).unwrap() -= 1;
        }
    }

    fn root_file(&self, kept: &mut Kept, root: &Arc<Node>, meta: &Meta) {
        self.told().stages.insert(key(root), Stage::Entered);
        let line = item_line(b"", FileType::Unknown, Some(Ok(*meta)));
        kept.push(format!("root {} {line}", root.root_index()));
    }

    fn flush(&self, kept: &mut Kept) {
        self.told().lines.append(kept);
    }
}

/// Roots, and when to stop.
pub(crate) struct Given<'a> {
    roots: VecDeque<CString>,
    pub(crate) stopped: Box<dyn FnMut() -> bool + 'a>,
}

impl Given<'_> {
    pub(crate) fn new(roots: &[impl AsRef<Path>]) -> Self {
        let path = |root: &Path| CString::new(root.as_os_str().as_bytes()).unwrap();
        Self { roots: roots.iter().map(|root| path(root.as_ref())).collect(), stopped: Box::new(|| false) }
    }
}

impl RootSource for Given<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.roots.pop_front().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        (self.stopped)()
    }
}
