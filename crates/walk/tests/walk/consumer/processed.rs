//! A directory is reported as processed once, after everything below it has been sent and all
//! messages about it have been dropped.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use fathom_walk::gatherer::{Builder, Inbox, Message, Pick, Policy, PolicyEntry, Token};
use fathom_walk::{FileType, Node};

use crate::support::Watchdog;
use crate::support::tree::{Chain, Tree, bushy, fill, mixed};

/// Sends every entry to the channel of its inode number, and watches every directory or the
/// directories of an even depth.
struct Watched {
    everywhere: bool,
}

impl Policy for Watched {
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(entry.ino() as usize).descend()
    }

    fn processed(&self, dir: &Node) -> Option<usize> {
        let ino = dir.id().map(|(_, ino)| ino as usize);
        ino.filter(|_| self.everywhere || dir.depth().is_multiple_of(2))
    }
}

/// The entries and the processed directories that consumers have finished, added just before each
/// message is dropped.
#[derive(Clone, Default)]
struct Finished(Arc<Mutex<(HashSet<PathBuf>, HashSet<PathBuf>)>>);

impl Finished {
    /// Takes all messages, and checks that each processed directory comes after everything below
    /// it.
    fn take(&self, inbox: Inbox, below: &dyn Fn(&Path) -> Vec<PathBuf>) {
        for message in inbox {
            let mut finished = self.0.lock().unwrap();
            match &message {
                Message::Entry(item) => assert!(finished.0.insert(item.path.to_path_buf())),
                Message::Processed(dir) => {
                    let path = dir.path.to_path_buf();
                    let missing: Vec<_> =
                        below(&path).into_iter().filter(|path| !finished.0.contains(path)).collect();
                    assert!(missing.is_empty(), "{path:?} is processed before {missing:?}");
                    assert!(finished.1.insert(path), "once");
                }
                Message::Error(failed) => panic!("{failed}"),
                _ => {}
            }
        }
    }
}

/// Returns the paths of everything below `dir`, from the standard library.
fn below(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            found.push(entry.path());
            pending.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
        }
    }
    found
}

#[test]
fn a_directory_is_processed_once_after_all_below_it() {
    let (one, other) = (Tree::new(), Tree::new());
    mixed(&one);
    fill(&one.dir("wide"), 3_000);
    bushy(&other.root(), 3, 4);
    let is_dir = |path: &PathBuf| path.symlink_metadata().unwrap().is_dir();
    for (workers, channels, backlog, everywhere) in [(1, 1, 1, true), (4, 3, 16, true), (8, 2, 1000, false)] {
        let _watchdog = Watchdog::new(format_args!("{workers} workers, {channels} channels"));
        let builder = Builder::new().workers(workers).channels(channels).backlog(backlog);
        let (gatherer, inboxes) = builder.start(Watched { everywhere }).unwrap();
        let finished = Finished::default();
        for root in [&one, &other] {
            gatherer.add_root(root.root()).unwrap();
        }
        gatherer.no_more_roots();
        thread::scope(|scope| {
            for inbox in inboxes.iter().flat_map(|inbox| [inbox.clone(), inbox.clone()]) {
                let finished = finished.clone();
                scope.spawn(move || finished.take(inbox, &below));
            }
            drop(inboxes);
        });
        assert!(gatherer.finish().unwrap().complete);
        let finished = finished.0.lock().unwrap();
        for tree in [&one, &other] {
            let depth = |dir: &PathBuf| dir.components().count() - tree.root().components().count();
            let mut dirs: Vec<_> = below(&tree.root()).into_iter().filter(is_dir).collect();
            dirs.push(tree.root());
            dirs.retain(|dir| everywhere || depth(dir).is_multiple_of(2));
            let found = finished.1.iter().filter(|path| path.starts_with(tree.root())).count();
            assert_eq!(found, dirs.len());
            assert!(dirs.iter().all(|dir| finished.1.contains(dir)));
        }
    }
}

/// Takes all messages that are in a channel now.
fn available(inbox: &mut Inbox) -> Vec<Message> {
    std::iter::from_fn(|| inbox.try_next()).collect()
}

fn processed(messages: &[Message]) -> Vec<PathBuf> {
    let paths = messages.iter().filter_map(|message| match message {
        Message::Processed(dir) => Some(dir.path.to_path_buf()),
        _ => None,
    });
    paths.collect()
}

/// Walks `tree` to its end and drops all messages except the token of the entry at `path`. Returns
/// the inbox, the token and the directories processed so far.
fn keep_one_token(tree: &Tree, path: &Path) -> (Inbox, Token, Vec<PathBuf>) {
    let (gatherer, mut inboxes) = Builder::new().start(Watched { everywhere: true }).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    assert!(gatherer.finish().unwrap().complete);
    let mut inbox = inboxes.pop().unwrap();
    let (mut kept, mut seen) = (None, Vec::new());
    // The drop of a message may add another one to the channel.
    loop {
        let messages = available(&mut inbox);
        if messages.is_empty() {
            return (inbox, kept.unwrap(), seen);
        }
        seen.extend(processed(&messages));
        for message in messages {
            match message {
                Message::Entry(item) if item.path.to_path_buf() == path => kept = Some(item.token),
                _ => {}
            }
        }
    }
}

#[test]
fn a_token_delays_the_directories_above_it() {
    let tree = Tree::new();
    tree.dir("a/b/c");
    tree.dir("x/y");
    tree.file("a/b/f");
    let _watchdog = Watchdog::new("a token is kept");
    let (mut inbox, token, seen) = keep_one_token(&tree, &tree.path("a/b/f"));
    let seen: HashSet<_> = seen.into_iter().collect();
    assert_eq!(seen, HashSet::from(["a/b/c", "x", "x/y"].map(|name| tree.path(name))));
    assert!(token.is_watched() && inbox.try_next().is_none());
    let second = token.clone();
    drop(token);
    assert!(inbox.try_next().is_none(), "a clone keeps them too");
    drop(second);
    // Each message is dropped before the next one is taken, so its parent is processed then.
    let mut rest = Vec::new();
    for message in inbox {
        rest.extend(processed(&[message]));
    }
    assert_eq!(
        rest,
        ["a/b", "a", ""].map(|name| tree.path(name)).map(|path| path.components().collect::<PathBuf>())
    );
}

#[test]
fn a_channel_waits_for_no_token_once_the_walk_is_shut_down() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 4);
    let _watchdog = Watchdog::new("shut down with tokens");
    let builder = Builder::new().channels(2).backlog(8);
    let (gatherer, inboxes) = builder.start(Watched { everywhere: true }).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    let mut inboxes = inboxes.into_iter();
    let (mut first, second) = (inboxes.next().unwrap(), inboxes.next().unwrap());
    let kept = first.next().unwrap();
    gatherer.shut_down();
    assert!(!gatherer.finish().unwrap().complete);
    let left: Vec<Message> = first.chain(second).collect();
    drop((kept, left));
}

#[test]
fn a_dropped_consumer_delays_no_directory() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    let _watchdog = Watchdog::new("one consumer is gone");
    let (gatherer, mut inboxes) = Builder::new().channels(2).start(Watched { everywhere: true }).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    gatherer.no_more_roots();
    // The consumer of one channel is dropped after the first message of the other channel, while
    // both contain tokens.
    let mut stays = inboxes.pop().unwrap();
    let first = stays.next();
    drop(inboxes);
    drop(first);
    assert!(stays.count() > 0);
    assert!(gatherer.finish().unwrap().complete);
}

#[test]
fn a_policy_that_panics_ends_the_channels() {
    struct PanickingPolicy;
    impl Policy for PanickingPolicy {
        fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
            assert!(entry.depth() < 3, "expected panic");
            Pick::send(0).descend()
        }

        fn processed(&self, _dir: &Node) -> Option<usize> {
            Some(0)
        }
    }
    let tree = Tree::new();
    bushy(&tree.root(), 3, 4);
    let _watchdog = Watchdog::new("a policy panics");
    let (gatherer, inboxes) = Builder::new().workers(2).start(PanickingPolicy).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    let kept: Vec<Message> = inboxes.into_iter().flatten().collect();
    assert!(gatherer.finish().is_err());
    drop(kept);
}

#[test]
fn a_chain_is_processed_from_its_end_to_its_start() {
    const DEPTH: usize = 3_000;
    let chain = Chain::new(DEPTH, &[]);
    let _watchdog = Watchdog::new("a chain");
    let (gatherer, inboxes) = Builder::new().start(Watched { everywhere: true }).unwrap();
    gatherer.add_root(chain.root()).unwrap();
    gatherer.no_more_roots();
    let depths = inboxes.into_iter().flatten().filter_map(|message| match message {
        Message::Processed(dir) => Some(dir.path.depth()),
        _ => None,
    });
    assert!(depths.eq((0..=DEPTH).rev()));
    assert!(gatherer.finish().unwrap().complete);
}

#[test]
fn tokens_delay_nothing_without_a_watched_directory() {
    struct Plain;
    impl Policy for Plain {
        fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
            if entry.file_type() == FileType::Directory { Pick::send(0).descend() } else { Pick::send(0) }
        }
    }
    let tree = Tree::new();
    bushy(&tree.root(), 2, 2);
    let (gatherer, inboxes) = Builder::new().start(Plain).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    gatherer.no_more_roots();
    // A consumer may keep all messages.
    let all: Vec<Message> = inboxes.into_iter().flatten().collect();
    let watched =
        all.iter().filter(|message| matches!(message, Message::Entry(item) if item.token.is_watched()));
    assert_eq!((watched.count(), all.len()), (0, 7 + 6 + 1));
}
