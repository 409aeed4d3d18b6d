//! A visitor with the driver that runs it, as the workers see both.

use std::sync::Arc;

use fathom_io::Meta;

use crate::failure::Failure;
use crate::node::Node;
use crate::visitor::{Descend, Enter, OrderedVisitor, Reached, UnorderedVisitor, Visitor};

/// The calls of a visitor that depend on the driver. A call of the other driver does nothing.
pub(crate) trait Driven: Send + Sync + 'static {
    type Item: Send + 'static;
    type Local: Default;
    type Visitor: Visitor<Item = Self::Item, Local = Self::Local>;

    /// Whether the results of tasks wait for a consumer on the calling thread, which restores their
    /// order; otherwise the workers call the visitor.
    const IS_ORDERED: bool;

    fn visitor(&self) -> &Self::Visitor;

    fn reached(&self, _dir: Reached<'_>) {}

    fn reads_ahead(&self) -> bool {
        true
    }

    fn weight(_item: &Self::Item) -> usize {
        0
    }

    fn enter(&self, _local: &mut Self::Local, _enter: Enter<'_>) -> Descend {
        Descend::Yes
    }

    fn failed(&self, _local: &mut Self::Local, _failure: Failure<'_>) {}

    fn leave(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    fn done(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    fn root_file(&self, _local: &mut Self::Local, _root: &Arc<Node>, _meta: &Meta) {}

    fn flush(&self, _local: &mut Self::Local) {}
}

/// The visitor of an ordered walk.
pub(crate) struct Ordered<V>(pub(crate) V);

impl<V: OrderedVisitor> Driven for Ordered<V> {
    type Item = V::Item;
    type Local = V::Local;
    type Visitor = V;

    const IS_ORDERED: bool = true;

    fn visitor(&self) -> &V {
        &self.0
    }

    fn reached(&self, dir: Reached<'_>) {
        self.0.reached(dir);
    }

    fn reads_ahead(&self) -> bool {
        self.0.reads_ahead()
    }

    fn weight(item: &V::Item) -> usize {
        V::weight(item)
    }
}

/// The visitor of an unordered walk.
pub(crate) struct Unordered<V>(pub(crate) V);

impl<V: UnorderedVisitor> Driven for Unordered<V> {
    type Item = V::Item;
    type Local = V::Local;
    type Visitor = V;

    const IS_ORDERED: bool = false;

    fn visitor(&self) -> &V {
        &self.0
    }

    fn enter(&self, local: &mut V::Local, enter: Enter<'_>) -> Descend {
        self.0.enter(local, enter)
    }

    fn failed(&self, local: &mut V::Local, failure: Failure<'_>) {
        self.0.failed(local, failure);
    }

    fn leave(&self, local: &mut V::Local, node: &Arc<Node>) {
        self.0.leave(local, node);
    }

    fn done(&self, local: &mut V::Local, node: &Arc<Node>) {
        self.0.done(local, node);
    }

    fn root_file(&self, local: &mut V::Local, root: &Arc<Node>, meta: &Meta) {
        self.0.root_file(local, root, meta);
    }

    fn flush(&self, local: &mut V::Local) {
        self.0.flush(local);
    }
}
