//! Tokens that report a directory as processed once all of them have been dropped.
//!
//! A watched directory has one [`Watch`], which the walk holds until everything below the directory
//! has been sent, and every message about something in it holds too. A watch holds its parent
//! directory's watch, and hands it to the message that it sends at its end: so a directory is
//! processed after the messages about all directories in it have been dropped.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::path::EntryPath;

/// Keeps the directory of a message from being reported as processed, until it and all its clones
/// are dropped. Of a directory that is not [watched](super::Policy::processed) it keeps the nearest
/// watched one above; without any, it does nothing.
#[derive(Clone, Default)]
pub struct Token(Option<Arc<Watch>>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Token").field(&self.0.as_ref().map(|watch| &watch.path)).finish()
    }
}

impl Token {
    /// Whether some directory waits for this token.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    /// A token of the directory `path`, in a directory of which `self` is a token.
    pub(super) fn below(self, path: EntryPath, channel: usize, reports: Weak<dyn Reports>) -> Self {
        let (is_walked, reports) = (AtomicBool::new(false), Some(reports));
        Self(Some(Arc::new(Watch { path, channel, is_walked, parent: self.0, reports })))
    }

    /// Everything below the directory has been sent.
    pub(super) fn set_walked(&self) {
        if let Some(watch) = &self.0 {
            watch.is_walked.store(true, Ordering::Relaxed);
        }
    }
}

/// A directory of which all messages have been processed, and all below it.
#[derive(Clone, Debug)]
pub struct Processed {
    /// The directory.
    pub path: EntryPath,
    /// Keeps the directory above from being processed.
    pub token: Token,
}

/// Where ends of watches are reported to.
pub(super) trait Reports: Send + Sync {
    /// Sends the message, without waiting; gives the token in it back if nothing will take it.
    fn report(&self, channel: usize, processed: Processed) -> Result<(), Token>;
    /// One directory less is to be reported.
    fn release(&self);
    /// Ends the walk.
    fn shut_down(&self);
}

struct Watch {
    path: EntryPath,
    channel: usize,
    is_walked: AtomicBool,
    parent: Option<Arc<Watch>>,
    /// `None` once the end has been reported. Weak, because what the walk keeps of directories
    /// refers to their watches.
    reports: Option<Weak<dyn Reports>>,
}

impl Watch {
    /// Reports the end; returns the parent if no message holds it from now on.
    fn end(&mut self) -> Option<Arc<Self>> {
        let (reports, parent) = (self.reports.take()?, self.parent.take());
        let Some(reports) = reports.upgrade() else { return parent };
        let token = Token(parent);
        // The stores before the drop of each other token happen before this drop, the last one
        // (`Arc`).
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
    /// Ends those above one by one where no message takes them over: a chain of 100,000 would
    /// overflow the stack otherwise.
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

    /// Takes reports, or gives their tokens back.
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

    /// Directories in each other, all walked; the token of the deepest.
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
