//! The start of a walk: the calling thread reads a small directory on a disk, because starting
//! another thread takes longer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use crate::support::record::Recorder;
use crate::support::slow::device;
use crate::support::tree::{Tree, fill};
use crate::support::way::{self, SYNC, Way};
use crate::support::{Watchdog, skip};
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_walk::{Emit, Entry, Model, Node, Op, OrderedVisitor, Visitor, run, run_with};

/// Records the threads that call it, and emits no items.
#[derive(Clone, Default)]
struct ThreadVisitor(Arc<Mutex<Vec<ThreadId>>>);

impl Visitor for ThreadVisitor {
    type Item = ();
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        _dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, ()>,
    ) {
        self.0.lock().unwrap().push(thread::current().id());
        entries.filter(|entry| entry.file_type() == fathom_walk::FileType::Directory).for_each(|entry| {
            emit.descend(&entry);
        });
    }
}

impl OrderedVisitor for ThreadVisitor {
    fn weight((): &()) -> usize {
        0
    }
}

/// Ignores all calls.
struct IgnoringConsumer {
    roots: Vec<PathBuf>,
}

impl fathom_walk::RootSource for IgnoringConsumer {
    fn next_root(&mut self, _wait: bool) -> fathom_walk::NextRoot {
        self.roots.pop().map_or(fathom_walk::NextRoot::End, |path| {
            use std::os::unix::ffi::OsStrExt;
            fathom_walk::NextRoot::Path(std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap())
        })
    }
}

impl fathom_walk::Consumer<()> for IgnoringConsumer {
    fn root_file(&mut self, _root: &Arc<Node>, _meta: &fathom_walk::Meta) {}
    fn enter(&mut self, _enter: fathom_walk::Enter<'_>) -> fathom_walk::Descend {
        fathom_walk::Descend::Yes
    }
    fn failed(&mut self, _failure: fathom_walk::Failure<'_>) {}
    fn item(&mut self, (): ()) {}
    fn leave(&mut self, _node: &Arc<Node>) {}
}

/// Returns the number of directories that the calling thread read, and the number of all
/// directories.
fn read_here(way: Way, roots: &[PathBuf]) -> [usize; 2] {
    let threads = ThreadVisitor::default();
    let mut consume = IgnoringConsumer { roots: roots.to_vec() };
    let summary = run(way.options(), threads.clone(), &mut consume, &mut |_| {}).unwrap();
    assert!(summary.complete);
    let threads = threads.0.lock().unwrap();
    [threads.iter().filter(|thread| **thread == thread::current().id()).count(), threads.len()]
}

/// Returns a tree on a disk, or prints why there is none.
fn on_disk() -> Option<Tree> {
    let tree = Tree::new();
    let numbered = fathom_io::sys::major(device(tree.root())) > 0;
    if !numbered {
        skip("needs temporary files on a device with a major number");
    }
    numbered.then_some(tree)
}

#[test]
fn a_small_directory_on_a_disk_is_read_by_the_calling_thread() {
    let Some(tree) = on_disk() else { return };
    fill(&tree.dir("below"), 3);
    for way in [SYNC, Way::workers(2), Way::of(Model::Auto)] {
        // A rename anywhere on the machine may prevent a lookup in the dentry cache alone (openat2,
        // RESOLVE_CACHED).
        let reaches =
            |root: PathBuf, wanted| (0..1_000).any(|_| read_here(way, std::slice::from_ref(&root)) == wanted);
        assert!(reaches(tree.path("below"), [1, 1]), "{way}");
        assert!(reaches(tree.root(), [1, 2]), "{way}: workers read the directories below");
        assert_eq!(read_here(way, &[tree.root(), tree.root()])[0], 0, "{way}: one of several roots");
    }
}

#[test]
fn workers_read_directories_that_are_not_cached() {
    let Some(tree) = on_disk() else { return };
    fill(&tree.dir("wide"), 3000);
    let memory = Tree::in_memory();
    fill(&memory.root(), 3);
    for way in [SYNC, Way::of(Model::Auto)] {
        assert_eq!(read_here(way, &[tree.path("wide")])[0], 0, "{way}: more than one block");
        assert_eq!(read_here(way, &[tree.path("missing")]), [0, 0], "{way}");
        if device(memory.root()) != device(tree.root()) {
            assert_eq!(read_here(way, &[memory.root()]), [0, 1], "{way}: no disk");
        }
    }
    let threads = ThreadVisitor::default();
    let mut consume = IgnoringConsumer { roots: vec![tree.root()] };
    let faults = Faults::new(1, Rates::default());
    let make = move || Ok(faults.over(Blocking));
    run_with(SYNC.options(), threads.clone(), &mut consume, &mut |_| {}, make).unwrap();
    assert!(
        !threads.0.lock().unwrap().contains(&thread::current().id()),
        "calls of another model may be slow"
    );
}

/// A visitor that panics at the first entry.
struct PanickingEntries;

impl Visitor for PanickingEntries {
    type Item = crate::support::record::RecordedItem;
    type Local = ();

    fn entries<'a>(
        &self,
        (): &mut (),
        _dir: &Arc<Node>,
        _entries: impl Iterator<Item = Entry<'a>>,
        _emit: &mut Emit<'_, Self::Item>,
    ) {
        panic!("expected panic");
    }
}

impl OrderedVisitor for PanickingEntries {
    fn weight(_item: &Self::Item) -> usize {
        0
    }
}

#[test]
fn a_visitor_that_panics_on_any_thread_ends_the_walk_with_an_error() {
    let tree = Tree::new();
    fill(&tree.dir("below"), 3);
    for way in way::all() {
        for roots in [&[tree.path("below")][..], &[tree.root(), tree.root()]] {
            let _watchdog = Watchdog::new(way);
            let ended = run(way.options(), PanickingEntries, &mut Recorder::new(roots), &mut |_| {});
            assert_eq!(ended.unwrap_err().op(), Op::Work, "{way}, {} roots", roots.len());
        }
    }
}
