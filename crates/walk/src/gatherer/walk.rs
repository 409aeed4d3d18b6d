//! A walk as an iterator, for programs with one thread.

use std::path::Path;

use super::message::{Failed, Item, Message};
use super::policy::{Pick, Policy, PolicyEntry};
use super::{Builder, Gatherer, Inbox};
use crate::error::{Error, Op};
use crate::summary::Summary;

/// A policy that sends every entry and descends into every directory.
struct Everything;

impl Policy for Everything {
    fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(0).descend()
    }
}

/// An iterator of the entries below some roots and of failures, in no order. [`Builder::walk`]
/// creates it.
///
/// ```
/// use fathom_walk::gatherer::Builder;
///
/// let mut walk = Builder::new().max_depth(1).walk(["src", "missing"])?;
/// let (mut entries, mut failures) = (0, 0);
/// for item in &mut walk {
///     match item {
///         Ok(item) => entries += usize::from(item.path.depth() <= 1),
///         Err(failed) => {
///             assert!(failed.to_string().starts_with("cannot access 'missing': No such file"));
///             failures += 1;
///         }
///     }
/// }
/// assert!(entries > 10 && failures == 1);
/// // A walk with failures is not complete.
/// assert!(!walk.finish()?.complete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Walk {
    gatherer: Gatherer,
    inbox: Inbox,
    is_over: bool,
}

impl Builder {
    /// Starts a walk of everything below `roots`, and returns an iterator of the entries.
    ///
    /// # Errors
    /// If no thread can be started, or the path of a root has a NUL byte.
    pub fn walk(self, roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Walk, Error> {
        let (gatherer, mut inboxes) = self.channels(1).start(Everything)?;
        for root in roots {
            gatherer.add_root(root).map_err(|error| Error::new(Op::AddRoot, error))?;
        }
        gatherer.no_more_roots();
        let inbox = inboxes.pop().expect("there is one channel");
        Ok(Walk { gatherer, inbox, is_over: false })
    }
}

impl Walk {
    /// Ends the walk if it is still running, and returns its summary.
    ///
    /// # Errors
    /// As [`Gatherer::finish`].
    pub fn finish(self) -> Result<Summary, Error> {
        if !self.is_over {
            self.gatherer.shut_down();
        }
        self.gatherer.finish()
    }
}

impl Iterator for Walk {
    type Item = Result<Item, Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        for message in self.inbox.by_ref() {
            match message {
                Message::Entry(item) => return Some(Ok(item)),
                Message::Error(failed) => return Some(Err(failed)),
                Message::End(_) | Message::Done(_) | Message::Processed(_) | Message::RootDone(_) => {}
            }
        }
        self.is_over = true;
        None
    }
}
