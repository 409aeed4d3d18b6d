//! Replays an inventory in the order of its scan: a directory is entered, its entries follow, and
//! it is left. Memory grows with the number of directories and with the size of a row group, not
//! with the number of entries.
//!
//! Owns the order, and guarantees that directories are nested properly even if the inventory is
//! damaged. Does not own what a visitor does with the entries.

mod tree;
mod walk;

use fathom_walk::{Errno, FileType, Meta};
use parquet::errors::ParquetError;

use fathom_inventory::Entry;
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory, OptionalColumns, OptionalValues};
pub use tree::ReplayTree;
use walk::ReplayWalk;

impl<'a> ReplayEntry<'a> {
    /// Creates an entry without further values.
    #[must_use]
    pub fn new(entry: Entry<'a>) -> Self {
        Self { entry, optional_values: None, link: None, state: None, entries: None, errno: None }
    }
}

/// Visits the entries of an inventory.
pub trait ReplayVisitor {
    /// Returns whether the visitor needs more than paths and types.
    fn needs_metadata(&self) -> bool {
        true
    }
    /// Returns whether the visitor needs the metadata of directories.
    fn needs_dir_metadata(&self) -> bool {
        self.needs_metadata()
    }
    /// Returns whether the visitor needs the metadata column `name`, if it needs metadata. The
    /// values of other columns are 0, or none.
    ///
    /// ```
    /// use fathom_questions::replay::{ReplayEntry, ReplayVisitor, replay};
    /// use fathom_inventory::store::{DirState, Inventory, Span};
    ///
    /// /// Looks at names, or at names and sizes.
    /// struct Names(bool);
    ///
    /// impl ReplayVisitor for Names {
    ///     fn needs_metadata(&self) -> bool {
    ///         self.0
    ///     }
    ///     fn needs_column(&self, name: &str) -> bool {
    ///         name == "size"
    ///     }
    ///     fn entry(&mut self, _item: &ReplayEntry<'_>) {}
    ///     fn enter(&mut self, _item: &ReplayEntry<'_>, _state: DirState) {}
    /// }
    ///
    /// # let temp = tempfile::tempdir()?;
    /// # let out = temp.path().join("src.inv");
    /// # use fathom_scans::scan::{Scan, scan};
    /// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
    /// let inventory = Inventory::open(&out)?;
    /// replay(&inventory, Span::ALL, Names(false))?;
    /// let names = inventory.bytes_read();
    /// replay(&inventory, Span::ALL, Names(true))?;
    /// assert!(inventory.bytes_read() > 2 * names);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn needs_column(&self, name: &str) -> bool {
        let _ = name;
        true
    }
    /// Returns whether [`Self::accepts`] needs the metadata column `name`.
    fn filters_by_column(&self, name: &str) -> bool {
        let _ = name;
        false
    }
    /// Returns whether the visitor wants an entry that is not a directory, by its type and by the
    /// columns that it filters by. If no row of a row group is wanted, its other columns are not
    /// read.
    fn accepts(&self, file_type: FileType, meta: Option<&Meta>) -> bool {
        let _ = (file_type, meta);
        true
    }
    /// Returns whether the visitor may want entries at or below the directory `path`, other ones
    /// than the directory itself.
    fn reach(&self, path: &[u8]) -> ReplayReach {
        let _ = path;
        ReplayReach::All
    }
    /// Returns whether the visitor needs the targets of symbolic links.
    fn needs_links(&self) -> bool {
        false
    }
    /// Returns whether the visitor needs the numbers of entries of directories.
    fn needs_entry_counts(&self) -> bool {
        false
    }
    /// Begins the replay.
    fn begin(&mut self, _about: &ReplayHeader) {}
    /// Visits an entry that is not a directory.
    fn entry(&mut self, item: &ReplayEntry<'_>);
    /// Visits a directory. The entries that follow are in it, until `leave`.
    fn enter(&mut self, item: &ReplayEntry<'_>, state: DirState);
    /// Ends the directory that was entered last and has not been left.
    fn leave(&mut self) {}
    /// Ends the replay.
    fn end(&mut self) {}
    /// Returns whether the replay goes on.
    fn should_continue(&mut self) -> bool {
        true
    }
}

/// The part of a subtree whose entries a visitor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayReach {
    /// Everything below the directory.
    All,
    /// A part, which depends on the names in the directory.
    Some,
    /// Nothing below the directory.
    None,
}

/// Facts about an inventory that are known before its first entry.
#[derive(Clone, Copy, Debug)]
pub struct ReplayHeader {
    /// Whether one directory contains everything.
    pub is_one_tree: bool,
    /// The optional columns that the inventory has.
    pub optional_columns: OptionalColumns,
    /// The end of the scan, in seconds since 1970.
    pub scanned: i64,
}

/// An entry of an inventory.
#[derive(Clone, Copy, Debug)]
pub struct ReplayEntry<'a> {
    /// Path and type; the metadata, if it is known and the visitor needs it.
    pub entry: Entry<'a>,
    /// The values of optional columns, if the inventory has any and the visitor needs metadata.
    pub optional_values: Option<&'a OptionalValues<'a>>,
    /// The target of a symbolic link, if it is known and the visitor needs it.
    pub link: Option<&'a [u8]>,
    /// The state of a directory.
    pub state: Option<DirState>,
    /// The number of entries of a directory, if it is complete and the visitor needs the number.
    pub entries: Option<u64>,
    /// The error because of which metadata is missing or a directory is incomplete, if the visitor
    /// needs metadata.
    pub errno: Option<Errno>,
}

/// Calls `visitor` for everything in `span`.
///
/// # Errors
/// If the inventory is damaged, or the visitor ends the replay.
///
/// ```
/// use fathom_questions::replay::{ReplayEntry, ReplayVisitor, replay};
/// use fathom_inventory::store::{DirState, Inventory};
/// use fathom_inventory::store::Span;
///
/// /// Counts files and directories.
/// struct Count<'a>(&'a mut [u64; 2]);
///
/// impl ReplayVisitor for Count<'_> {
///     fn entry(&mut self, _item: &ReplayEntry<'_>) {
///         self.0[0] += 1;
///     }
///     fn enter(&mut self, _item: &ReplayEntry<'_>, _state: DirState) {
///         self.0[1] += 1;
///     }
/// }
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let mut count = [0, 0];
/// replay(&inventory, Span::ALL, Count(&mut count))?;
/// assert_eq!(count.iter().sum::<u64>(), inventory.manifest().entries);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replay(inventory: &Inventory, span: Span, visitor: impl ReplayVisitor) -> Result<(), Error> {
    let needs = |name: &str| visitor.needs_column(name);
    let needs_column = visitor.needs_dir_metadata().then_some(&needs as &dyn Fn(&str) -> bool);
    let tree = ReplayTree::read(inventory, span, needs_column, visitor.needs_entry_counts())?;
    ReplayWalk::new(&tree, visitor).run(inventory, span)
}

/// Returns an error that says what is wrong with an inventory.
fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
