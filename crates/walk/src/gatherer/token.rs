//! Tokens that report a directory as processed once all of them have been dropped.
//!
//! A watched directory has one [`Watch`]. The walk holds it until everything below the directory
//! has been sent, and so does every message about an entry in the directory. A watch holds the
//! watch of its parent directory, and moves it into the message that it sends when it is dropped. A
//! directory is therefore processed after the messages about all directories in it have been
//! dropped.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::path::EntryPath;

/// Delays the report that the directory of a message is processed, until the token and all its
/// clones are dropped. If the directory is not [watched](super::Policy::processed), the token
/// delays its nearest watched ancestor; without one, it has no effect.
#[derive(Clone, Default)]
pub struct Token(Option<Arc<Watch>>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Token").field(&self.0.as_ref().map(|watch| &watch.path)).finish()
    }
}

impl Token {
    /// Returns whether a directory waits for this token.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Returns a token of the directory `path`, which is in the directory of `self`.
    pub(super) fn below(self, path: EntryPath, channel: usize, reports: Weak<dyn Reports>) -> Self {
        let (is_walked, reports) = (AtomicBool::new(false), Some(reports));
        Self(Some(Arc::new(Watch { path, channel, is_walked, parent: self.0, reports })))
    }

    /// Records that everything below the directory has been sent.
    pub(super) fn set_walked(&self) {
        if let Some(watch) = &self.0 {
            watch.is_walked.store(true, Ordering::Relaxed);
        }
    }
}

/// A directory all of whose messages, and those about everything below it, have been dropped.
#[derive(Clone, Debug)]
pub struct Processed {
    /// The directory.
    pub path: EntryPath,
    /// Delays the report about the parent directory.
    pub token: Token,
}

/// The receiver of reports about dropped watches.
pub(super) trait Reports: Send + Sync {
    /// Sends the message, without waiting. Returns its token if the channel has no consumer.
    fn report(&self, channel: usize, processed: Processed) -> Result<(), Token>;
    /// Removes one directory from those that are still to be reported.
    fn release(&self);
    /// Ends the walk.
    fn shut_down(&self);
}

struct Watch {
    path: EntryPath,
    channel: usize,
    is_walked: AtomicBool,
    parent: Option<Arc<Watch>>,
    /// `None` once the watch has ended. The reference is weak, because the channels contain
    /// messages with tokens, which refer to their watches.
    reports: Option<Weak<dyn Reports>>,
}

impl Watch {
    /// Reports the end. Returns the watch of the parent if no message has taken it.
    fn end(&mut self) -> Option<Arc<Self>> {
        let (reports, parent) = (self.reports.take()?, self.parent.take());
        let Some(reports) = reports.upgrade() else { return parent };
        let token = Token(parent);
        // Relaxed suffices: `Arc` orders the last drop after the drops of all other tokens, and
        // `set_walked` stores before the token of the walk is dropped.
        let left = if self.is_walked.load(Ordering::Relaxed) {
            reports.report(self.channel, Processed { path: self.path.clone(), token }).err()
        } else {
            Some(token)
        };
        reports.release();
        left.and_then(|token| token.0)
    }
}

impl Drop for Watch {
    /// Ends the watches of ancestors in a loop if no message has taken them: a recursion of 100,000
    /// levels would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.end();
        while let Some(mut watch) = next.and_then(Arc::into_inner) {
            next = watch.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use fathom_io::Follow;

    use super::*;
    use crate::node::Node;

    /// A receiver that records reports, or returns their tokens.
    #[derive(Default)]
    struct Desk {
        refuses: bool,
        reported: Mutex<Vec<Processed>>,
        released: AtomicUsize,
    }

    impl Reports for Desk {
        fn report(&self, _channel: usize, processed: Processed) -> Result<(), Token> {
            if self.refuses {
                return Err(processed.token);
            }
            self.reported.lock().unwrap().push(processed);
            Ok(())
        }

        fn release(&self) {
            self.released.fetch_add(1, Ordering::Relaxed);
        }

        fn shut_down(&self) {}
    }

    /// Returns the token of the deepest of nested directories, all of which have been walked.
    fn chain(len: usize, desk: &Arc<Desk>) -> Token {
        let mut node = Arc::new(Node::root(c"r".to_owned(), 0, Follow::No, Weak::new()));
        let mut token = Token::default();
        for _ in 0..len {
            let reports: Weak<dyn Reports> = Arc::<Desk>::downgrade(desk);
            token = token.below(EntryPath::apart(&node), 0, reports);
            token.set_walked();
            node = Arc::new(Node::child(&node, c"d", Follow::No));
        }
        token
    }

    #[test]
    fn each_report_holds_the_directory_above() {
        let desk = Arc::new(Desk::default());
        let token = chain(3, &desk);
        let second = token.clone();
        drop(token);
        assert_eq!(desk.released.load(Ordering::Relaxed), 0);
        drop(second);
        for depth in [2, 1, 0] {
            let report = desk.reported.lock().unwrap().pop().unwrap();
            assert_eq!((report.path.depth(), report.token.is_watched()), (depth, depth > 0));
            drop(report);
        }
        assert_eq!(desk.released.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_long_chain_that_nothing_takes_is_dropped_without_recursion() {
        let desk = Arc::new(Desk { refuses: true, ..Desk::default() });
        drop(chain(200_000, &desk));
        assert_eq!(desk.released.load(Ordering::Relaxed), 200_000);
        let gone = Arc::new(Desk::default());
        let token = chain(200_000, &gone);
        drop(gone);
        drop(token);
    }
}
