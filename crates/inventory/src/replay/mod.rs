//! An inventory once more in the order of its scan: a directory is entered, what is in it comes, it is left. Memory grows with
//! directories and with what a row group may have, not with entries.
//!
//! Owns the order, and that what is told fits together, whatever the inventory says. Does not own what becomes of it.

mod journey;
mod tree;

use fathom_walk::{Attributes, Errno, Stamp};
use parquet::errors::ParquetError;

use crate::Entry;
use crate::store::{Also, Error, Extra, Inventory, State};
use crate::top::below::Span;
use journey::Journey;
pub(crate) use tree::Tree;

impl<'a> Item<'a> {
    /// An entry of which nothing is known but this.
    #[must_use]
    pub fn new(entry: Entry<'a>) -> Self {
        Self { entry, born: None, attributes: None, extra: None, link: None, state: None, errno: None }
    }
}

/// Takes what is in an inventory.
pub trait Visitor {
    /// Whether more is wanted than paths and types.
    fn needs_metadata(&self) -> bool {
        true
    }
    /// Whether the targets of symbolic links are wanted.
    fn needs_links(&self) -> bool {
        false
    }
    /// What comes first.
    fn begin(&mut self, _about: &About) {}
    /// An entry that is no directory.
    fn entry(&mut self, item: &Item<'_>);
    /// A directory; what follows is in it.
    fn enter(&mut self, item: &Item<'_>, state: State);
    /// The directory entered last of those not left is left.
    fn leave(&mut self) {}
    /// What comes last.
    fn end(&mut self) {}
    /// Whether more is wanted.
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// What is known beforehand.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Whether everything is in one directory.
    pub is_one_tree: bool,
    /// The columns that the inventory has because they were asked for.
    pub also: Also,
    /// When the scan ended, in seconds since 1970.
    pub scanned: i64,
}

/// What is known of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its place and type; the metadata, if that is known and wanted.
    pub entry: Entry<'a>,
    /// When it was made.
    pub born: Option<Stamp>,
    /// Attributes, where the filesystem reported them to the scan.
    pub attributes: Option<Attributes>,
    /// The columns that were asked for, if the inventory has any and metadata is wanted.
    pub extra: Option<&'a Extra<'a>>,
    /// The target of a symbolic link, if that is known and wanted.
    pub link: Option<&'a [u8]>,
    /// How far a directory is known.
    pub state: Option<State>,
    /// Why nothing is known of it, or of a directory, why some of its entries are missing; if
    /// metadata is wanted.
    pub errno: Option<Errno>,
}

/// Tells `visitor` of what is in `span`.
///
/// # Errors
/// If the inventory is damaged, or the visitor wants no more.
pub fn replay(inventory: &Inventory, span: Span, visitor: impl Visitor) -> Result<(), Error> {
    let tree = Tree::read(inventory, span, visitor.needs_metadata())?;
    Journey::new(&tree, visitor).run(inventory, span)
}

/// What is wrong with an inventory, as an error.
fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
