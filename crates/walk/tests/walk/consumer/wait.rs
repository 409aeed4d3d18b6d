//! Consumers that wait for messages without polling: for a limited time, for several channels, and
//! as tasks. The policy is called once for each entry.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fathom_walk::gatherer::{Builder, Inbox, Message, Pick, Policy, PolicyEntry, next_of};
use fathom_walk::{FileType, Node};
use futures_util::Stream;

use crate::support::Watchdog;
use crate::support::tree::{Tree, bushy, fill};

/// Sends each entry to the channel of its inode number.
struct ByInode;

impl Policy for ByInode {
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(entry.ino() as usize).descend()
    }
}

fn is_entry(message: &Message) -> bool {
    matches!(message, Message::Entry(_))
}

#[test]
fn one_thread_waits_for_several_channels() {
    let (tree, _watchdog) = (Tree::new(), Watchdog::new("several channels"));
    bushy(&tree.root(), 4, 4);
    for (channels, backlog) in [(1, 1), (3, 1), (3, 1000)] {
        let builder = Builder::new().channels(channels).backlog(backlog);
        let (gatherer, mut inboxes) = builder.start(ByInode).unwrap();
        gatherer.add_root(tree.root()).unwrap();
        gatherer.no_more_roots();
        let (mut counts, mut ends) = (vec![0; channels], 0);
        while let Some((index, message)) = next_of(&mut inboxes) {
            counts[index] += usize::from(is_entry(&message));
            ends += usize::from(matches!(message, Message::RootDone(_)));
        }
        let summary = gatherer.finish().unwrap();
        assert_eq!(counts.iter().sum::<usize>() as u64, summary.progress.entries);
        assert_eq!(ends, channels);
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }
}

#[test]
fn a_wait_has_a_limit_and_ends_with_the_walk() {
    let (tree, _watchdog) = (Tree::new(), Watchdog::new("limited waits"));
    let (gatherer, mut inboxes) = Builder::new().start(ByInode).unwrap();
    let inbox = &mut inboxes[0];
    assert!(inbox.next_timeout(Duration::from_millis(1)).is_pending(), "no root yet");
    tree.file("a");
    gatherer.add_root(tree.root()).unwrap();
    let entry = inbox.next_timeout(Duration::MAX);
    assert!(matches!(entry, Poll::Ready(Some(Message::Entry(_)))), "{entry:?}");
    let done = inbox.next_timeout(Duration::MAX);
    assert!(matches!(done, Poll::Ready(Some(Message::RootDone(_)))), "{done:?}");
    assert!(inbox.next_timeout(Duration::ZERO).is_pending());
    // The leading thread waits for a root without a timeout, and ends in spite of that.
    gatherer.shut_down();
    assert!(matches!(inbox.next_timeout(Duration::MAX), Poll::Ready(None)));
    assert!(gatherer.add_root(tree.root()).is_err());
    assert!(!gatherer.finish().unwrap().complete);
}

/// Counts the wake-ups, and unparks the thread that created it.
struct CountingWaker(AtomicUsize, std::thread::Thread);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.unpark();
    }
}

#[test]
fn a_task_is_woken_for_each_batch_and_for_the_end() {
    let (tree, _watchdog) = (Tree::new(), Watchdog::new("a task"));
    fill(&tree.root(), 10);
    let wakes = Arc::new(CountingWaker(AtomicUsize::new(0), std::thread::current()));
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    let (gatherer, mut inboxes) = Builder::new().start(ByInode).unwrap();
    let mut poll = |inbox: &mut Inbox| Pin::new(inbox).poll_next(&mut cx);
    let inbox = &mut inboxes[0];
    assert!(poll(inbox).is_pending() && poll(inbox).is_pending());
    gatherer.add_root(tree.root()).unwrap();
    gatherer.no_more_roots();
    let mut entries = 0;
    loop {
        let before = wakes.0.load(Ordering::Relaxed);
        match poll(inbox) {
            Poll::Ready(Some(message)) => entries += usize::from(is_entry(&message)),
            Poll::Ready(None) => break,
            Poll::Pending => {
                while wakes.0.load(Ordering::Relaxed) == before {
                    std::thread::park();
                }
            }
        }
    }
    assert_eq!(entries, 10);
    assert!(wakes.0.load(Ordering::Relaxed) >= 1);
}

/// The number of calls for each key.
type Counts = HashMap<Vec<u8>, usize>;

/// Counts the calls for each type in each directory, and for each entry.
#[derive(Clone, Default)]
struct CountingPolicy(Arc<Mutex<[Counts; 2]>>);

impl CountingPolicy {
    fn count(&self, kind: usize, key: Vec<u8>) {
        *self.0.lock().unwrap()[kind].entry(key).or_default() += 1;
    }
}

impl Policy for CountingPolicy {
    fn wants_metadata(&self, dir: &Arc<Node>, file_type: FileType) -> bool {
        self.count(0, format!("{dir:?} {file_type:?}", dir = dir.to_path_buf()).into_bytes());
        file_type == FileType::Regular
    }

    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
        assert_eq!(entry.meta().is_some(), entry.file_type() == FileType::Regular);
        let mut path = Vec::new();
        entry.path().write(&mut path);
        self.count(1, path);
        Pick::send(0).descend()
    }
}

#[test]
fn the_policy_is_called_once_for_each_entry() {
    let (tree, _watchdog) = (Tree::new(), Watchdog::new("calls of the policy"));
    bushy(&tree.root(), 3, 5);
    let policy = CountingPolicy::default();
    let (gatherer, inboxes) = Builder::new().start(policy.clone()).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    gatherer.no_more_roots();
    inboxes.into_iter().flatten().for_each(drop);
    let summary = gatherer.finish().unwrap();
    let [types, entries] = &*policy.0.lock().unwrap();
    assert!(types.values().chain(entries.values()).all(|count| *count == 1), "{types:?} {entries:?}");
    assert_eq!(entries.len() as u64, summary.progress.entries);
}
