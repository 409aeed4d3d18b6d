//! A visitor that lets everything through, a consumer that writes down everything it is told, in
//! lines, and checks that each thing is told in its place: what is inside a directory between its
//! enter and its leave.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fathom_walk::{
    Consume, Descend, Emit, Enter, Entry, Errno, FileType, Found, Meta, Names, NextRoot, Node, Visit,
};

use super::Random;

type Id = (u64, u64);

/// An entry that is no directory.
pub(crate) struct Seen {
    dir: Option<Id>,
    line: String,
    alive: Arc<AtomicUsize>,
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Emits every entry, and descends into every directory.
#[derive(Clone, Default)]
pub(crate) struct Everything {
    /// Leave the metadata of regular files alone.
    pub(crate) names_only: bool,
    /// Items there are; every item has a clone of it, and so has the visitor that all workers
    /// share.
    pub(crate) alive: Arc<AtomicUsize>,
}

impl Everything {
    /// Fails if this visitor is not soon the only one: workers, items and what the walk kept of
    /// them are gone then.
    #[track_caller]
    pub(crate) fn check_alone(self, what: impl std::fmt::Display) {
        // Workers end in their own time; this is only how long a test is held up by one that never
        // does.
        let start = Instant::now();
        while Arc::strong_count(&self.alive) > 1 && start.elapsed() < Duration::from_secs(300) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (alive, left) = (self.alive.load(Ordering::Relaxed), Arc::strong_count(&self.alive) - 1);
        assert_eq!((alive, left), (0, 0), "{what}: items, and those with visitors, left behind");
    }
}

/// What an item of [`Everything`] is said to weigh, besides its line.
const SEEN_BYTES: usize = size_of::<Seen>() + 32;

impl Visit for Everything {
    type Item = Seen;

    fn select(&self, _dir: &Arc<Node>, names: &mut Names) {
        if self.names_only {
            names.skip_stat(FileType::Regular);
        }
    }

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Seen>,
    ) {
        for entry in entries {
            if entry.file_type() == FileType::Directory {
                emit.descend(&entry);
            } else {
                self.alive.fetch_add(1, Ordering::Relaxed);
                let line = item_line(
                    entry.name.name.to_bytes(),
                    entry.name.file_type,
                    entry.meta.map(|meta| meta.copied()),
                );
                emit.item_at(&entry, Seen { dir: dir.id(), line, alive: self.alive.clone() });
            }
        }
    }

    fn weight(item: &Seen) -> usize {
        SEEN_BYTES + item.line.capacity()
    }
}

/// The same, but one item alone is said to weigh more than may wait for its turn: workers do only
/// what is needed next.
pub(crate) struct Heavy(pub(crate) Everything);

impl Visit for Heavy {
    type Item = Seen;

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Seen>,
    ) {
        self.0.entries(dir, entries, emit);
    }

    fn weight(_item: &Seen) -> usize {
        3 << 20
    }
}

/// The line of an entry that is no directory.
pub(crate) fn item_line(name: &[u8], listed: FileType, meta: Option<Result<Meta, Errno>>) -> String {
    let meta = match meta {
        None => "not asked".to_owned(),
        Some(Ok(meta)) => format!("{:?} {} {}", meta.file_type(), meta.ino, meta.size),
        Some(Err(errno)) => error(errno),
    };
    format!("item {} {listed:?}: {meta}", name.escape_ascii())
}

/// The line of a directory reached.
pub(crate) fn enter_line(name: &[u8], depth: usize, ino: u64, found: Found) -> String {
    let found = match found {
        Found::Readable => String::new(),
        Found::Unreadable(errno) => format!(": {}", error(errno)),
        Found::Loop => ": loop".to_owned(),
    };
    format!("enter {} {depth} {ino}{found}", name.escape_ascii())
}

fn error(errno: Errno) -> String {
    format!("error {}", errno.raw_os_error())
}

/// Takes a walk down, line by line.
pub(crate) struct Recorder<'a> {
    roots: VecDeque<CString>,
    pub(crate) lines: Vec<String>,
    /// Directories entered and not left.
    inside: Vec<Id>,
    /// Asked of every directory that can be read.
    pub(crate) descend: Box<dyn FnMut(&Enter<'_>) -> Descend + 'a>,
    /// Asked with the number of lines so far.
    pub(crate) stopped: Box<dyn FnMut(usize) -> bool + 'a>,
    /// Told the number of lines so far, before each item.
    pub(crate) on_item: Box<dyn FnMut(usize) + 'a>,
}

impl Recorder<'_> {
    pub(crate) fn new(roots: &[impl AsRef<Path>]) -> Self {
        let path = |root: &Path| CString::new(root.as_os_str().as_bytes()).unwrap();
        Self {
            roots: roots.iter().map(|root| path(root.as_ref())).collect(),
            lines: Vec::new(),
            inside: Vec::new(),
            descend: Box::new(|_| Descend::Yes),
            stopped: Box::new(|_| false),
            on_item: Box::new(|_| {}),
        }
    }

    /// Fails unless everything entered was left.
    pub(crate) fn check_end(&self) {
        assert!(
            self.inside.is_empty() && self.roots.is_empty(),
            "{} directories not left",
            self.inside.len()
        );
    }

    fn check_place(&self, node: &Node) {
        assert_eq!(node.depth(), self.inside.len(), "{:?} is told at another depth", node.name());
        let parent = node.parent().map(|parent| parent.id().expect("entered, so opened"));
        assert_eq!(parent, self.inside.last().copied(), "{:?} is told in another directory", node.name());
    }
}

impl Consume<Seen> for Recorder<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.roots.pop_front().map_or(NextRoot::End, NextRoot::Path)
    }

    fn root_file(&mut self, root: usize, meta: Result<Meta, Errno>) {
        assert!(self.inside.is_empty());
        self.lines.push(format!("root {root} {}", item_line(b"", FileType::Unknown, Some(meta))));
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

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.check_place(node);
        self.lines.push(format!("lost {} {}", node.name().to_bytes().escape_ascii(), error(errno)));
    }

    fn item(&mut self, mut item: Seen) {
        assert_eq!(item.dir.as_ref(), self.inside.last(), "{} is told in another directory", item.line);
        (self.on_item)(self.lines.len());
        self.lines.push(std::mem::take(&mut item.line));
    }

    fn leave(&mut self, failed: Option<Errno>) {
        self.inside.pop().expect("entered before it is left");
        self.lines
            .push(format!("leave{}", failed.map_or_else(String::new, |errno| format!(" {}", error(errno)))));
    }

    fn stopped(&mut self) -> bool {
        (self.stopped)(self.lines.len())
    }
}

/// Refuses directories at random, but always the same ones.
pub(crate) fn refuse(seed: u64) -> impl FnMut(&Enter<'_>) -> Descend {
    move |enter| {
        let wanted = enter.node.depth() == 0 || Random(seed ^ enter.meta.ino).below(100) >= 30;
        if wanted { Descend::Yes } else { Descend::No }
    }
}

/// Fails with the first lines that differ.
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
