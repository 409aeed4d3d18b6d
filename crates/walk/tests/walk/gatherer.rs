//! The gatherer sends each entry that its policy picks once, through channels of bounded length,
//! and ends even if its consumers stall, vanish or panic.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::Watchdog;
use crate::support::tree::{Chain, Tree, bushy, fill, late_directories, mixed};
use crate::support::way;
use fathom_walk::gatherer::{Builder, Inbox, Message, Pick, Policy, PolicyEntry, RootId};
use fathom_walk::{Errno, FileType, Node, Op, Operation};

/// Sends every entry with its metadata to the channel of its inode number, and requests the end
/// messages of every directory.
struct SendsEverything;

impl Policy for SendsEverything {
    fn wants_metadata(&self, _dir: &Arc<Node>, _file_type: FileType) -> bool {
        true
    }

    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(entry.ino() as usize).descend()
    }

    fn end(&self, _dir: &Node) -> Option<usize> {
        Some(0)
    }

    fn done(&self, _dir: &Node) -> Option<usize> {
        Some(0)
    }
}

fn path(dir: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    dir.path_into(&mut path);
    path
}

/// The messages of one channel.
#[derive(Debug, Default)]
struct Received {
    entries: Vec<(Vec<u8>, u64, FileType)>,
    errors: Vec<(Vec<u8>, Operation, Errno)>,
    ended: HashSet<Vec<u8>>,
    done: HashSet<Vec<u8>>,
    roots_done: Vec<RootId>,
}

/// Takes all messages, and checks that none about a tree follows the end message of that tree.
fn take(inbox: Inbox) -> Received {
    let mut taken = Received::default();
    for message in inbox {
        let mut at = Vec::new();
        match message {
            Message::Entry(item) => {
                item.path.write(&mut at);
                assert!(!taken.roots_done.contains(&item.path.root()), "after its root's end");
                assert!(
                    item.meta.is_none_or(|meta| meta.ino == item.ino && meta.file_type() == item.file_type)
                );
                taken.entries.push((at, item.ino, item.file_type));
            }
            Message::Processed(_) => panic!("no directory is watched"),
            Message::Error(failed) => {
                failed.path.write(&mut at);
                taken.errors.push((at, failed.operation, failed.errno));
            }
            Message::End(dir) => assert!(taken.ended.insert(path(&dir))),
            Message::Done(dir) => assert!(taken.done.insert(path(&dir))),
            Message::RootDone(root) => taken.roots_done.push(root),
            message => panic!("unknown message: {message:?}"),
        }
    }
    taken
}

fn readers(inboxes: Vec<Inbox>) -> Vec<JoinHandle<Received>> {
    inboxes.into_iter().map(|inbox| thread::spawn(move || take(inbox))).collect()
}

/// Returns `root` and all paths below it.
fn truth(root: &Path) -> BTreeSet<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = BTreeSet::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        if path.symlink_metadata().unwrap().is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path.as_os_str().as_bytes().to_vec());
    }
    found
}

#[track_caller]
fn gathers_all(builder: Builder, roots: &[&Tree], channels: usize, what: impl std::fmt::Display) {
    let _watchdog = Watchdog::new(&what);
    let (gatherer, inboxes) = builder.channels(channels).start(SendsEverything).unwrap();
    let readers = readers(inboxes);
    // Roots are added while others are walked.
    for root in roots {
        gatherer.add_root(root.root()).unwrap();
    }
    let summary = gatherer.finish().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(summary.complete, "{what}");
    let taken: Vec<Received> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let mut expected: BTreeSet<_> = roots.iter().flat_map(|root| truth(&root.root())).collect();
    let dirs: HashSet<_> = expected.iter().filter(|path| is_dir(path)).cloned().collect();
    // A root is not an entry of a directory.
    for root in roots {
        assert!(expected.remove(path_bytes(&root.root())));
    }
    let found: Vec<_> =
        taken.iter().flat_map(|taken| taken.entries.iter().map(|entry| entry.0.clone())).collect();
    assert_eq!(found.len(), expected.len(), "{what}: each once");
    assert!(found.into_iter().collect::<BTreeSet<_>>() == expected, "{what}");
    assert_eq!((&taken[0].ended, &taken[0].done), (&dirs, &dirs), "{what}");
    let mut inodes = HashMap::new();
    for (channel, taken) in taken.iter().enumerate() {
        let roots_done: HashSet<_> = taken.roots_done.iter().map(|root| root.index()).collect();
        assert_eq!(
            roots_done,
            (0..roots.len()).collect(),
            "{what}: every channel has an end message for every root"
        );
        for (_, ino, _) in &taken.entries {
            assert_eq!(*inodes.entry(*ino).or_insert(channel), channel, "{what}: an inode has one channel");
        }
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

fn is_dir(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path)).symlink_metadata().unwrap().is_dir()
}

#[test]
fn everything_is_sent_once_and_its_end_after_it() {
    let (one, other) = (Tree::new(), Tree::new());
    mixed(&one);
    bushy(&other.root(), 3, 4);
    for way in way::all() {
        let mut builder = Builder::new().model(way.model);
        if let Some(count) = way.threads {
            builder = builder.workers(count);
        }
        gathers_all(builder, &[&one, &other], 3, way);
    }
}

#[test]
fn no_limit_is_too_small() {
    let tree = Tree::new();
    late_directories(&tree, 3);
    fill(&tree.dir("others/wide"), 1500);
    bushy(&tree.path("others"), 3, 4);
    for (fds, backlog, workers) in [(1, 1, 1), (1, 1, 64), (16, 1, 16), (30, 2, 128), (400, 100_000, 256)] {
        let builder = Builder::new().fds_max(fds).backlog(backlog).workers(workers);
        gathers_all(
            builder,
            &[&tree],
            2,
            format_args!("{fds} descriptors, {backlog} messages, {workers} workers"),
        );
    }
    gathers_all(Builder::new().workers_max(1), &[&tree], 1, "one worker at most");
}

#[test]
fn a_chain_deeper_than_any_path_is_gathered() {
    let chain = Chain::new(3000, &[c"x"]);
    let (gatherer, inboxes) = Builder::new().fds_max(20).start(SendsEverything).unwrap();
    let readers = readers(inboxes);
    gatherer.add_root(chain.root()).unwrap();
    assert!(gatherer.finish().unwrap().complete);
    let taken = readers.into_iter().next().unwrap().join().unwrap();
    assert_eq!(taken.errors, []);
    assert!(taken.entries.iter().map(|entry| entry.0.len()).max().unwrap() > 4096);
}

/// Waits until a condition is true.
fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_consumer_that_stalls_holds_up_the_walk_but_not_its_end() {
    const BACKLOG: usize = 500;
    let tree = Tree::new();
    bushy(&tree.root(), 6, fathom_cases::count(5).max(4));
    for workers in [1, 8, 64] {
        let _watchdog = Watchdog::new(workers);
        let builder = Builder::new().channels(2).backlog(BACKLOG).workers(workers);
        let (gatherer, mut inboxes) = builder.start(SendsEverything).unwrap();
        gatherer.add_root(tree.root()).unwrap();
        let stalled = inboxes.pop().unwrap();
        let busy = thread::spawn(move || take(inboxes.pop().unwrap()));
        wait_until(|| stalled.held() >= BACKLOG);
        gatherer.shut_down();
        assert!(!gatherer.finish().unwrap().complete);
        assert!(busy.join().is_ok());
        // Each worker may have held the messages of one directory when the channel became full.
        let left = stalled.count();
        assert!(
            (BACKLOG..=BACKLOG + (workers + 1) * 16).contains(&left),
            "{workers} workers: {left} messages"
        );
    }
}

#[test]
fn a_consumer_that_is_gone_does_not_end_the_others() {
    let tree = Tree::new();
    bushy(&tree.root(), 5, fathom_cases::count(5).max(4));
    let _watchdog = Watchdog::new("gone");
    let (gatherer, mut inboxes) = Builder::new().channels(2).backlog(4).start(SendsEverything).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    let panics = inboxes.pop().unwrap();
    let panicked = thread::spawn(move || {
        let mut panics = panics;
        panics.next();
        panic!("expected panic");
    });
    // The other channel is read meanwhile: on XFS all of the first inode numbers may be its.
    let rest = readers(inboxes);
    assert!(panicked.join().is_err());
    assert!(gatherer.finish().unwrap().complete);
    let taken = rest.into_iter().next().unwrap().join().unwrap();
    assert_eq!(taken.roots_done.len(), 1);
    assert!(taken.entries.len() > 100);
}

#[test]
fn a_walk_without_consumers_ends() {
    let tree = Tree::new();
    bushy(&tree.root(), 6, fathom_cases::count(5).max(4));
    let _watchdog = Watchdog::new("all gone");
    let (gatherer, inboxes) = Builder::new().channels(3).backlog(1).start(SendsEverything).unwrap();
    drop(inboxes);
    gatherer.add_root(tree.root()).unwrap();
    assert!(!gatherer.finish().unwrap().complete);
}

#[test]
fn a_gatherer_that_is_dropped_ends_and_so_do_its_channels() {
    let tree = Tree::new();
    bushy(&tree.root(), 6, fathom_cases::count(5).max(4));
    let _watchdog = Watchdog::new("dropped");
    let (gatherer, inboxes) = Builder::new().backlog(1).start(SendsEverything).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    drop(gatherer);
    assert!(inboxes.into_iter().all(|inbox| inbox.count() < 10_000));
    let (gatherer, inboxes) = Builder::new().start(SendsEverything).unwrap();
    assert!(gatherer.finish().unwrap().complete, "a walk of nothing");
    assert_eq!(inboxes.into_iter().map(Iterator::count).sum::<usize>(), 0);
}

/// A policy that panics at the first entry.
struct PanickingPolicy;

impl Policy for PanickingPolicy {
    fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
        panic!("expected panic");
    }
}

#[test]
fn a_policy_that_panics_ends_the_walk_with_an_error() {
    let tree = Tree::new();
    bushy(&tree.root(), 3, 3);
    let _watchdog = Watchdog::new("panics");
    let (gatherer, mut inboxes) = Builder::new().workers(4).start(PanickingPolicy).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    assert_eq!(inboxes.pop().unwrap().count(), 0);
    assert_eq!(gatherer.finish().unwrap_err().op(), Op::Work);
}

#[test]
fn trees_are_added_while_others_are_walked_and_each_has_its_end() {
    let trees: Vec<Tree> = (0..5).map(|_| Tree::new()).collect();
    trees.iter().for_each(|tree| bushy(&tree.root(), 2, 3));
    let _watchdog = Watchdog::new("one after the other");
    let (gatherer, mut inboxes) = Builder::new().start(SendsEverything).unwrap();
    let mut inbox = inboxes.pop().unwrap();
    for tree in &trees {
        let added = gatherer.add_root(tree.root()).unwrap();
        // The next root is added after the end of this one: all workers are parked in between, and
        // have to be woken.
        let over = inbox.by_ref().find_map(|message| match message {
            Message::RootDone(root) => Some(root),
            _ => None,
        });
        assert_eq!(over, Some(added));
        // The leading thread publishes the progress at intervals.
        wait_until(|| gatherer.progress().entries > 0 && gatherer.progress().busy == 0);
    }
    assert!(gatherer.finish().unwrap().complete);
    assert!(inbox.next().is_none() && inbox.try_next().is_none());
}

/// Sends names without metadata, of one level.
struct Names;

impl Policy for Names {
    fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(0)
    }
}

#[test]
fn metadata_is_read_only_of_requested_types() {
    let tree = Tree::new();
    fill(&tree.dir("below"), 50);
    (0..40).for_each(|number| tree.file(&format!("file{number}")));
    let (gatherer, mut inboxes) = Builder::new().workers(2).start(Names).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    gatherer.add_root(tree.path("file0")).unwrap();
    gatherer.add_root(tree.path("missing")).unwrap();
    let summary = gatherer.finish().unwrap();
    let taken = take(inboxes.pop().unwrap());
    assert_eq!(summary.calls.open, 3, "only picked directories are opened: {summary:?}");
    assert_eq!(summary.calls.stat, 1, "of the directory that was opened: {summary:?}");
    assert_eq!(taken.errors.len(), 1);
    assert_eq!((taken.errors[0].1, taken.errors[0].2), (Operation::Access, Errno::NOENT));
    assert!(!summary.complete, "a root is missing");
    assert!(taken.entries.len() > 41);
}

#[test]
fn several_threads_share_a_channel() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 5);
    let (gatherer, mut inboxes) = Builder::new().backlog(64).start(SendsEverything).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    let inbox = inboxes.pop().unwrap();
    let counters: Vec<_> =
        (0..4).map(|_| inbox.clone()).map(|inbox| thread::spawn(|| inbox.count())).collect();
    drop(inbox);
    let summary = gatherer.finish().unwrap();
    let all: usize = counters.into_iter().map(|counter| counter.join().unwrap()).sum();
    let directories = usize::try_from(summary.progress.directories).unwrap();
    // One message for each entry, two for each directory, and one for the root.
    let entries = usize::try_from(summary.progress.entries).unwrap();
    assert_eq!(all, entries + 2 * directories + 1);
}

#[test]
fn nothing_is_kept_of_a_finished_walk() {
    struct Counted(Arc<()>);
    impl Policy for Counted {
        fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
            assert!(Arc::strong_count(&self.0) > 1);
            Pick::send(0).descend()
        }
    }
    let tree = Tree::new();
    bushy(&tree.root(), 3, 3);
    let alive = Arc::new(());
    let (gatherer, inboxes) = Builder::new().workers(8).start(Counted(alive.clone())).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    assert!(gatherer.finish().unwrap().complete);
    drop(inboxes);
    let _watchdog = Watchdog::new("workers end and drop the policy");
    wait_until(|| Arc::strong_count(&alive) == 1);
}
