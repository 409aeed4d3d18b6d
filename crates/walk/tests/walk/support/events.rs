//! A visitor of an unordered walk that records each call, as the lines of `record.rs`, and checks
//! the guaranteed order: a directory is entered before its entries, left after them, and done after
//! everything below it.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, FileType, Meta, NextRoot, Node, Operation, RootSource, Summary,
    UnorderedVisitor, Visitor,
};

use super::record::{enter_line, failure_line, item_line};

/// The number of a directory or root in the log.
type Key = usize;

/// The last call about a directory or root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Expected,
    Entered,
    Left,
    Done,
}

#[derive(Default)]
struct EventLog {
    lines: Vec<String>,
    /// The keys by the key of the parent and the name; for roots, by the index.
    keys: HashMap<(Option<Key>, Vec<u8>), Key>,
    /// The keys by the address of the node. A node lives as long as those below it, so the last
    /// node at the address of a parent is the parent.
    addresses: HashMap<usize, Key>,
    stages: HashMap<Key, Stage>,
    /// Number of directories in this one that are not done.
    below: HashMap<Key, usize>,
    broken: HashMap<Key, String>,
    failures: u64,
}

/// Records the calls. All clones share the log.
#[derive(Clone, Default)]
pub(crate) struct EventRecorder(Arc<Mutex<EventLog>>);

impl EventRecorder {
    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.0.lock().unwrap()
    }

    /// Returns all lines, sorted. Fails if a directory is not done.
    #[track_caller]
    pub(crate) fn sorted(&self) -> Vec<String> {
        let log = self.log();
        let is_open = |key: &Key| log.stages.get(key).is_some_and(|stage| *stage != Stage::Done);
        let open: Vec<_> = log.keys.iter().filter(|(_, key)| is_open(key)).collect();
        assert!(open.is_empty(), "not done: {open:?}");
        let mut lines = log.lines.clone();
        lines.sort();
        lines
    }

    pub(crate) fn len(&self) -> usize {
        self.log().lines.len()
    }

    /// Fails unless each line about an error has one failure, and the summary counts all failures.
    #[track_caller]
    pub(crate) fn check_failures(&self, summary: &Summary) {
        let log = self.log();
        let wrong = |line: &&String| line.ends_with(": loop") || line.contains(" error ");
        let lines = log.lines.iter().filter(wrong).count() as u64;
        assert_eq!((log.failures, summary.progress.failures), (lines, lines), "failures, of {lines} lines");
    }
}

impl EventLog {
    /// Returns the key of a node whose parent, if any, was entered. No path is built: the paths of
    /// a deep chain would take most of the time of a test.
    fn key(&mut self, node: &Node) -> Key {
        let address = |node: &Node| std::ptr::from_ref(node).addr();
        let key = match node.parent() {
            Some(parent) => self.key_below(self.addresses[&address(parent)], node.name().to_bytes()),
            None => self.numbered((None, node.root_index().to_string().into_bytes())),
        };
        self.addresses.insert(address(node), key);
        key
    }

    fn key_below(&mut self, parent: Key, name: &[u8]) -> Key {
        self.numbered((Some(parent), name.to_vec()))
    }

    fn numbered(&mut self, at: (Option<Key>, Vec<u8>)) -> Key {
        let next = self.keys.len();
        *self.keys.entry(at).or_insert(next)
    }

    #[track_caller]
    fn advance(&mut self, node: &Node, from: &[Stage], to: Stage) -> Key {
        let key = self.key(node);
        let before = self.stages.insert(key, to);
        let is_new_root = before.is_none() && node.parent().is_none() && from.contains(&Stage::Expected);
        assert!(
            is_new_root || before.is_some_and(|stage| from.contains(&stage)),
            "{:?}: {before:?} to {to:?}",
            node.name()
        );
        key
    }

    #[track_caller]
    fn check_inside(&mut self, node: &Node) -> Key {
        let key = self.key(node);
        assert_eq!(self.stages.get(&key), Some(&Stage::Entered), "{:?}", node.name());
        key
    }
}

/// The lines of a worker that are not yet in the log.
pub(crate) type PendingLines = Vec<String>;

impl Visitor for EventRecorder {
    type Item = Infallible;
    type Local = PendingLines;

    fn entries<'a>(
        &self,
        pending: &mut PendingLines,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let mut log = self.log();
        let here = log.check_inside(dir);
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
                pending.push(item_line(name, entry.name.file_type, meta));
                continue;
            }
            emit.descend(&entry);
            *log.below.entry(here).or_default() += 1;
            let key = log.key_below(here, name);
            assert_eq!(log.stages.insert(key, Stage::Expected), None);
        }
    }
}

impl UnorderedVisitor for EventRecorder {
    fn enter(&self, pending: &mut PendingLines, enter: Enter<'_>) -> Descend {
        let node = enter.node;
        self.log().advance(node, &[Stage::Expected], Stage::Entered);
        pending.push(enter_line(node.name().to_bytes(), node.depth(), enter.meta.ino, enter.found));
        Descend::Yes
    }

    fn failed(&self, pending: &mut PendingLines, failure: Failure<'_>) {
        let (node, line) = (failure.node, failure_line(failure));
        let mut log = self.log();
        log.failures += 1;
        match failure.operation {
            Operation::Read | Operation::Reopen => {
                let here = log.check_inside(node);
                assert_eq!(log.broken.insert(here, line), None);
            }
            Operation::Access if node.parent().is_none() => {
                let root = log.key(node);
                log.stages.insert(root, Stage::Entered);
                pending.push(line);
            }
            Operation::Access => pending.push(line),
            Operation::Stat => {
                log.check_inside(node);
                pending.push(line);
            }
            Operation::Open => {
                pending.last_mut().unwrap().push_str(&line);
                pending.push("leave".to_owned());
            }
            Operation::Descend => assert!(pending.last().unwrap().ends_with(": loop")),
            operation => panic!("unknown operation: {operation}"),
        }
    }

    fn leave(&self, pending: &mut PendingLines, node: &Arc<Node>) {
        let mut log = self.log();
        let left = log.advance(node, &[Stage::Entered], Stage::Left);
        let error = log.broken.remove(&left).unwrap_or_default();
        pending.push(format!("leave{error}"));
    }

    fn done(&self, _: &mut PendingLines, node: &Arc<Node>) {
        let mut log = self.log();
        let done = log.advance(node, &[Stage::Expected, Stage::Entered, Stage::Left], Stage::Done);
        assert_eq!(
            log.below.remove(&done).unwrap_or(0),
            0,
            "{:?} is done before the directories below",
            node.name()
        );
        if let Some(parent) = node.parent() {
            let parent = log.key(parent);
            *log.below.get_mut(&parent).unwrap() -= 1;
        }
    }

    fn root_file(&self, pending: &mut PendingLines, root: &Arc<Node>, meta: &Meta) {
        let mut log = self.log();
        let key = log.key(root);
        log.stages.insert(key, Stage::Entered);
        let line = item_line(b"", FileType::Unknown, Some(Ok(*meta)));
        pending.push(format!("root {} {line}", root.root_index()));
    }

    fn flush(&self, pending: &mut PendingLines) {
        self.log().lines.append(pending);
    }
}

/// A list of roots, and the condition to stop.
pub(crate) struct FixedRoots<'a> {
    roots: VecDeque<CString>,
    pub(crate) stopped: Box<dyn FnMut() -> bool + 'a>,
}

impl FixedRoots<'_> {
    pub(crate) fn new(roots: &[impl AsRef<Path>]) -> Self {
        let path = |root: &Path| CString::new(root.as_os_str().as_bytes()).unwrap();
        Self { roots: roots.iter().map(|root| path(root.as_ref())).collect(), stopped: Box::new(|| false) }
    }
}

impl RootSource for FixedRoots<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.roots.pop_front().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        (self.stopped)()
    }
}
