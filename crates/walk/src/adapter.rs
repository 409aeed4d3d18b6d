//! What the workers do for whoever asked for the walk: for a [`Visit`] they make items of entries, which wait for their turn
//! in traversal order; a [`Gather`] has everything told to it there and then.

use std::sync::Arc;

use fathom_io::{Meta, Names};

use crate::failure::Failure;
use crate::gather::{Below, Gather};
use crate::node::Node;
use crate::visit::{Descend, Emit, Enter, Entry, Opened, Reached, Visit};

/// Something that comes up while a task is executed.
pub(crate) enum Event<'a> {
    Enter(Enter<'a>),
    Failed(Failure<'a>),
    Leave(&'a Arc<Node>),
    Done(&'a Arc<Node>),
    RootFile(&'a Arc<Node>, &'a Meta),
    Flush,
}

/// Who asked, as the workers see it.
pub(crate) trait VisitorAdapter: Send + Sync + 'static {
    /// Whether outcomes wait until the calling thread comes to their place in the order.
    const IN_ORDER: bool;
    type Item: Send + 'static;
    /// What a worker has to itself.
    type Local: Default;

    fn reached(&self, dir: Reached<'_>);
    fn opened(&self, dir: Opened<'_>) -> usize;
    /// Whether `names` has what is to be seen of the directory, which is then not read.
    fn recall(&self, dir: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool;
    fn select(&self, dir: &Arc<Node>, names: &mut Names);
    fn entries<'a>(
        &self,
        local: &mut Self::Local,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Self::Item>,
    );
    /// Whether a directory is wanted, of [`Event::Enter`]. Nothing is told if this is [`VisitorAdapter::IN_ORDER`].
    fn tell(&self, local: &mut Self::Local, event: Event<'_>) -> Descend;
    fn weight(item: &Self::Item) -> usize;
}

/// Everything has its turn.
pub(crate) struct OrderedAdapter<V>(pub(crate) V);

impl<V: Visit> VisitorAdapter for OrderedAdapter<V> {
    const IN_ORDER: bool = true;
    type Item = V::Item;
    type Local = ();

    fn reached(&self, dir: Reached<'_>) {
        self.0.reached(dir);
    }

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.0.opened(dir)
    }

    fn recall(&self, dir: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool {
        self.0.recall(dir, meta, names)
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.0.select(dir, names);
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, V::Item>,
    ) {
        self.0.entries(dir, entries, emit);
    }

    fn tell(&self, (): &mut (), _event: Event<'_>) -> Descend {
        Descend::Yes
    }

    fn weight(item: &V::Item) -> usize {
        V::weight(item)
    }
}

/// Everything is told as it is found.
pub(crate) struct UnorderedAdapter<G>(pub(crate) G);

impl<G: Gather> VisitorAdapter for UnorderedAdapter<G> {
    const IN_ORDER: bool = false;
    type Item = std::convert::Infallible;
    type Local = G::Local;

    fn reached(&self, _dir: Reached<'_>) {}

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.0.opened(dir)
    }

    fn recall(&self, _dir: &Arc<Node>, _meta: &Meta, _names: &mut Names) -> bool {
        false
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.0.select(dir, names);
    }

    fn entries<'a>(
        &self,
        local: &mut G::Local,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Self::Item>,
    ) {
        self.0.entries(local, dir, entries, &mut Below(emit));
    }

    fn tell(&self, local: &mut G::Local, event: Event<'_>) -> Descend {
        match event {
            Event::Enter(enter) => return self.0.enter(local, enter),
            Event::Failed(failure) => self.0.failed(local, failure),
            Event::Leave(node) => self.0.leave(local, node),
            Event::Done(node) => self.0.done(local, node),
            Event::RootFile(node, meta) => self.0.root_file(local, node, meta),
            Event::Flush => self.0.flush(local),
        }
        Descend::Yes
    }

    fn weight(item: &Self::Item) -> usize {
        match *item {}
    }
}
