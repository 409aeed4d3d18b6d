//! A visitor that emits every entry, and a consumer of an ordered walk that records each call as a
//! line and checks its place: calls about the contents of a directory come between its `enter` and
//! its `leave`.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fathom_walk::{
    Consumer, Descend, Emit, Enter, Entry, Errno, Failure, FileType, Found, Meta, Names, NextRoot, Node,
    Operation, OrderedVisitor, RootSource, Visitor,
};

use super::Random;

type Id = (u64, u64);

/// The item of an entry that is not a directory.
pub(crate) struct RecordedItem {
    dir: Option<Id>,
    line: String,
    alive: Arc<AtomicUsize>,
}

impl Drop for RecordedItem {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Emits every entry, and descends into every directory.
#[derive(Clone, Default)]
pub(crate) struct Everything {
    /// Whether the metadata of regular files is not read.
    pub(crate) names_only: bool,
    /// Whether directories are not read before the consumer enters them.
    pub(crate) is_lazy: bool,
    /// Number of items that exist. Every item has a clone of the reference, and so has the visitor
    /// that all workers share.
    pub(crate) alive: Arc<AtomicUsize>,
}

impl Everything {
    /// Fails unless this visitor soon has the only reference: workers, items and everything that
    /// the walk kept of them have been dropped then.
    #[track_caller]
    pub(crate) fn check_alone(self, what: impl std::fmt::Display) {
        // Workers end asynchronously. The limit only ends a test whose worker never does.
        let start = Instant::now();
        while Arc::strong_count(&self.alive) > 1 && start.elapsed() < Duration::from_secs(300) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (alive, left) = (self.alive.load(Ordering::Relaxed), Arc::strong_count(&self.alive) - 1);
        assert_eq!((alive, left), (0, 0), "{what}: items and references are left");
    }
}

/// Weight of an item of [`Everything`], without its line.
const ITEM_BYTES: usize = size_of::<RecordedItem>() + 32;

impl Visitor for Everything {
    type Item = RecordedItem;
    type Local = ();

    fn select(&self, _dir: &Arc<Node>, names: &mut Names) {
        if self.names_only {
            names.skip_stat(FileType::Regular);
        }
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, RecordedItem>,
    ) {
        for entry in entries {
            if entry.file_type() == FileType::Directory {
                emit.descend(&entry);
            } else if let Some(Err(errno)) = entry.meta {
                emit.failed(&entry, errno);
            } else {
                self.alive.fetch_add(1, Ordering::Relaxed);
                let line = item_line(
                    entry.name.name.to_bytes(),
                    entry.name.file_type,
                    entry.meta.and_then(Result::ok).copied().map(Ok),
                );
                emit.item_at(&entry, RecordedItem { dir: dir.id(), line, alive: self.alive.clone() });
            }
        }
    }
}

impl OrderedVisitor for Everything {
    fn reads_ahead(&self) -> bool {
        !self.is_lazy
    }

    fn weight(item: &RecordedItem) -> usize {
        ITEM_BYTES + item.line.capacity()
    }
}

/// Like [`Everything`], but the weight of a single item exceeds the backlog limit, so workers
/// execute only the task that the consumer needs next.
pub(crate) struct Heavy(pub(crate) Everything);

impl Visitor for Heavy {
    type Item = RecordedItem;
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, RecordedItem>,
    ) {
        self.0.entries(&mut (), dir, entries, emit);
    }
}

impl OrderedVisitor for Heavy {
    fn weight(_item: &RecordedItem) -> usize {
        3 << 20
    }
}

/// Returns the line of an entry that is not a directory.
pub(crate) fn item_line(name: &[u8], listed: FileType, meta: Option<Result<Meta, Errno>>) -> String {
    let name = name.escape_ascii();
    let meta = match meta {
        None => "not read".to_owned(),
        Some(Ok(meta)) => format!("{:?} {} {}", meta.file_type(), meta.ino, meta.size),
        Some(Err(errno)) => return format!("item {name}: {}", error(errno)),
    };
    format!("item {name} {listed:?}: {meta}")
}

/// Returns the line of a directory that is entered.
pub(crate) fn enter_line(name: &[u8], depth: usize, ino: u64, found: Found) -> String {
    let found = if found == Found::Loop { ": loop" } else { "" };
    format!("enter {} {depth} {ino}{found}", name.escape_ascii())
}

/// Returns the line of a failure, or the end of the line of the directory that cannot be read.
pub(crate) fn failure_line(Failure { node, name, operation, errno }: Failure<'_>) -> String {
    let node_name = node.name().to_bytes().escape_ascii();
    match operation {
        Operation::Access if node.parent().is_none() => {
            format!("root {} {}", node.root_index(), item_line(b"", FileType::Unknown, Some(Err(errno))))
        }
        Operation::Access => format!("lost {node_name} {}", error(errno)),
        Operation::Stat => item_line(name.unwrap().to_bytes(), FileType::Unknown, Some(Err(errno))),
        Operation::Open => format!(": {}", error(errno)),
        Operation::Read | Operation::Reopen => format!(" {}", error(errno)),
        Operation::Descend => String::new(),
        _ => panic!("unknown operation: {operation}"),
    }
}

fn error(errno: Errno) -> String {
    format!("error {}", errno.raw_os_error())
}

/// Records an ordered walk, one line for each call.
pub(crate) struct Recorder<'a> {
    pub(crate) roots: VecDeque<CString>,
    pub(crate) lines: Vec<String>,
    /// Directories that have been entered and not left.
    inside: Vec<Id>,
    /// The error at the end of the line of the next `leave`.
    broken: String,
    /// Called for every directory that can be read.
    pub(crate) descend: Box<dyn FnMut(&Enter<'_>) -> Descend + 'a>,
    /// Called with the number of lines so far.
    pub(crate) stopped: Box<dyn FnMut(usize) -> bool + 'a>,
    /// Called before each item, with the number of lines so far.
    pub(crate) on_item: Box<dyn FnMut(usize) + 'a>,
}

impl Recorder<'_> {
    pub(crate) fn new(roots: &[impl AsRef<Path>]) -> Self {
        let path = |root: &Path| CString::new(root.as_os_str().as_bytes()).unwrap();
        Self {
            roots: roots.iter().map(|root| path(root.as_ref())).collect(),
            lines: Vec::new(),
            inside: Vec::new(),
            broken: String::new(),
            descend: Box::new(|_| Descend::Yes),
            stopped: Box::new(|_| false),
            on_item: Box::new(|_| {}),
        }
    }

    /// Fails unless every directory that was entered has been left.
    pub(crate) fn check_end(&self) {
        assert!(
            self.inside.is_empty() && self.roots.is_empty(),
            "{} directories not left",
            self.inside.len()
        );
    }

    fn check_place(&self, node: &Node) {
        assert_eq!(node.depth(), self.inside.len(), "{:?} is reported at another depth", node.name());
        let parent = node.parent().map(|parent| parent.id().expect("entered, so opened"));
        assert_eq!(parent, self.inside.last().copied(), "{:?} is reported in another directory", node.name());
    }
}

impl RootSource for Recorder<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.roots.pop_front().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        (self.stopped)(self.lines.len())
    }
}

impl Consumer<RecordedItem> for Recorder<'_> {
    fn root_file(&mut self, root: &Arc<Node>, meta: &Meta) {
        assert!(self.inside.is_empty());
        let line = item_line(b"", FileType::Unknown, Some(Ok(*meta)));
        self.lines.push(format!("root {} {line}", root.root_index()));
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        self.check_place(enter.node);
        let name = enter.node.name().to_bytes();
        self.lines.push(enter_line(name, enter.node.depth(), enter.meta.ino, enter.found));
        let descend = (self.descend)(&enter);
        if descend == Descend::Yes && enter.found != Found::Loop {
            self.inside.push(enter.meta.id());
        }
        descend
    }

    fn failed(&mut self, failure: Failure<'_>) {
        let line = failure_line(failure);
        let place = failure.node.id();
        match failure.operation {
            Operation::Access => {
                self.check_place(failure.node);
                self.lines.push(line);
            }
            Operation::Stat => {
                assert_eq!(place.as_ref(), self.inside.last());
                self.lines.push(line);
            }
            // The last line is about the directory.
            Operation::Open => self.lines.last_mut().unwrap().push_str(&line),
            Operation::Descend => assert!(self.lines.last().unwrap().ends_with(": loop")),
            Operation::Read | Operation::Reopen => {
                assert_eq!(place.as_ref(), self.inside.last());
                self.broken = line;
            }
            operation => panic!("unknown operation: {operation}"),
        }
    }

    fn item(&mut self, mut item: RecordedItem) {
        assert_eq!(item.dir.as_ref(), self.inside.last(), "{} is reported in another directory", item.line);
        (self.on_item)(self.lines.len());
        self.lines.push(std::mem::take(&mut item.line));
    }

    fn leave(&mut self, node: &Arc<Node>) {
        let left = self.inside.pop().expect("entered before it is left");
        assert!(node.id().is_none_or(|id| id == left));
        self.lines.push(format!("leave{}", std::mem::take(&mut self.broken)));
    }
}

/// Returns a function that declines pseudo-random directories, the same ones for a seed.
pub(crate) fn refuse(seed: u64) -> impl FnMut(&Enter<'_>) -> Descend {
    move |enter| {
        let wanted = enter.node.depth() == 0 || Random::new(seed ^ enter.meta.ino).below(100) >= 30;
        if wanted { Descend::Yes } else { Descend::No }
    }
}

/// Fails with the first lines that differ, if any do.
#[track_caller]
pub(crate) fn assert_same(expected: &[String], found: &[String], what: impl std::fmt::Display) {
    if expected == found {
        return;
    }
    let same = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    let around = |lines: &[String]| {
        lines[same.saturating_sub(3).min(lines.len())..]
            .iter()
            .take(8)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    panic!(
        "{what}: {} lines, not {}; line {same} is the first that differs\nexpected:\n  {}\nfound:\n  {}",
        found.len(),
        expected.len(),
        around(expected),
        around(found)
    );
}
