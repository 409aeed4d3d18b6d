//! What a caller supplies who does not care for order: a [`Gather`] sees everything on the workers, as it is found, and
//! [`Roots`] on the calling thread has the roots.

use std::convert::Infallible;
use std::sync::Arc;

use fathom_io::{Meta, Names};

use crate::failure::Failure;
use crate::node::Node;
use crate::visit::{Descend, Emit, Enter, Entry, NextRoot, Opened};

/// Sees everything where it is found: on the workers, several at once, in no order but this: a directory is entered before its
/// entries are seen, left after the last of them, and done after everything below it is.
///
/// A call that waits, for a full channel or a slow pipe, holds up its worker and in the end all of them: nothing piles up.
pub trait Gather: Send + Sync + 'static {
    /// What a worker has to itself, a buffer for instance. Every worker begins with a new one.
    type Local: Default;

    /// Looks at a directory that has been opened, before any of its names are selected; only with
    /// [`Options::inspect_directories`](crate::Options::inspect_directories). Returns how many bytes of memory, roughly, it now keeps for it.
    fn opened(&self, _dir: Opened<'_>) -> usize {
        0
    }

    /// Drops names nobody wants to know of, before their metadata is taken.
    fn select(&self, _dir: &Arc<Node>, _names: &mut Names) {}

    /// Returns whether a directory that was reached is wanted, before it is read. One that is
    /// [`Found::Readable`](crate::Found) may still fail to be read; any other is not read, and if
    /// it is wanted that is a [failure](Gather::failed).
    fn enter(&self, local: &mut Self::Local, enter: Enter<'_>) -> Descend;

    /// Some of the entries of `dir`.
    fn entries<'a>(
        &self,
        local: &mut Self::Local,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        below: &mut Below<'_, '_>,
    );

    /// Sees a failure. Every failure that the walk knows of comes here, once, and nowhere else, but
    /// for this: the metadata of an entry that could not be taken is an error in
    /// [`Gather::entries`] too, which is called next and may do without.
    fn failed(&self, local: &mut Self::Local, failure: Failure<'_>);

    /// All entries of a directory that was to be read have been seen.
    fn leave(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    /// Nothing more will be told of this root or directory, or of anything below it.
    fn done(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    /// Sees a root that is no directory.
    fn root_file(&self, local: &mut Self::Local, root: &Arc<Node>, meta: &Meta);

    /// Nothing is to be done just now, or ever again: what this worker has kept back should go out.
    fn flush(&self, local: &mut Self::Local);
}

/// Where [`Gather::entries`] says which directories are to be walked.
#[derive(Debug)]
pub struct Below<'b, 'e>(pub(crate) &'b mut Emit<'e, Infallible>);

impl Below<'_, '_> {
    /// Walks the directory `entry`.
    pub fn descend(&mut self, entry: &Entry<'_>) {
        self.0.descend(entry);
    }

    pub(crate) fn descend_with(&mut self, entry: &Entry<'_>, begin: impl FnOnce(&Node)) {
        self.0.descend_with(entry, begin);
    }

    /// Adds to [`Progress::measured`](crate::Progress), at once.
    pub fn measure(&mut self, amount: u64) {
        self.0.measure(amount);
    }
}

/// The roots of a walk in no order, asked for on the calling thread.
pub trait Roots {
    /// The next root. Waits for it only if `wait`: then nothing else is under way. A [`NextRoot::Note`] is passed over.
    fn next_root(&mut self, wait: bool) -> NextRoot;
    /// Whether to stop now.
    fn stopped(&mut self) -> bool {
        false
    }
}
