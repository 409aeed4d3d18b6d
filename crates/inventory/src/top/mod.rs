//! Canned reports of an inventory: its largest directories and files, and totals of groups of entries. An inode with several
//! names counts once, where the walk met it first. Memory grows with such inodes and with what is shown, not with entries.
//!
//! Owns what counts for what. Does not own how a report looks.

pub(crate) mod below;
mod depths;
pub(crate) mod dirs;
mod files;
mod groups;
mod largest;
pub(crate) mod links;
pub(crate) mod scope;

use std::collections::HashMap;

use crate::store::{Error, Inventory, Table};
use below::Span;

/// What entries come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    /// Allocated bytes: blocks of 512.
    pub allocated: u64,
    /// Bytes that files and links hold; directories hold none.
    pub apparent: u64,
    /// Entries.
    pub entries: u64,
}

impl Sum {
    /// Of so many entries; what an inventory has below zero is nothing.
    pub(crate) fn new(entries: i64, blocks: i64, size: i64) -> Self {
        let [entries, blocks, apparent] =
            [entries, blocks, size].map(|number| u64::try_from(number).unwrap_or(0));
        Self { entries, allocated: blocks.saturating_mul(512), apparent }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.entries = self.entries.saturating_add(other.entries);
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.apparent = self.apparent.saturating_add(other.apparent);
    }

    pub(crate) fn less(&self, other: &Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            allocated: self.allocated.saturating_sub(other.allocated),
            apparent: self.apparent.saturating_sub(other.apparent),
        }
    }
}

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The largest directories, with everything below them.
    Dir,
    /// The largest entries that are no directories.
    File,
    /// Totals by owner.
    User,
    /// By owning group.
    Group,
    /// By what follows the last dot of the name.
    Ext,
    /// By the time since the last modification.
    Age,
    /// By size.
    Size,
    /// By type.
    Type,
    /// By the number of directories above.
    Depth,
}

/// What the entries of a row have in common. Ages and sizes are places in [`AGES`] and [`SIZES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// They are at or below the path that is the row's text.
    Path,
    /// The row's text is their extension.
    Extension,
    /// Their names have no extension.
    NoExtension,
    /// They are directories, which are in no other group here.
    Directory,
    /// Their owner or group; the row's text is its name, if it has one.
    Id(u32),
    /// Their age.
    Age(usize),
    /// Their size.
    Size(usize),
    /// Their type, as the letter of the inventory.
    Type(u8),
    /// How many directories they are below.
    Depth(i64),
    /// There were too many groups for theirs to be one.
    Other,
    /// Nothing is known of them.
    Unknown,
}

/// Days since the last modification: an entry is of the first that it is below.
pub const AGES: [i64; 5] = [1, 7, 30, 365, 1095];
/// Bytes: an entry is of the first that it is below.
pub const SIZES: [i64; 9] = [1, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30, 1 << 34, 1 << 40];

/// A row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What its entries have in common.
    pub key: Key,
    /// The text that goes with it.
    pub text: Vec<u8>,
    /// What they come to.
    pub sum: Sum,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The largest first; ages, sizes and depths in their own order.
    pub rows: Vec<Row>,
    /// What everything comes to that was looked at.
    pub total: Sum,
}

/// What to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The kind of rows.
    pub by: By,
    /// How many rows at most.
    pub count: usize,
    /// Only what is at or below this directory: as the inventory has it, or relative to what was scanned.
    pub below: Option<Vec<u8>>,
    /// The present, in microseconds since 1970.
    pub now: i64,
}

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// The inventory has no such directory.
    Absent,
    /// It is in several of the trees that were scanned.
    Ambiguous,
    /// The inventory cannot be read.
    Unreadable(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Reports.
///
/// # Errors
/// If the inventory is damaged, or has no directory to be below of.
pub fn report(inventory: &Inventory, ask: &Ask) -> Result<Report, Failure> {
    let span = match &ask.below {
        Some(path) => below::find(inventory, path)?,
        None => Span::ALL,
    };
    let mut report = match ask.by {
        By::Dir => dirs::report(inventory, span, ask.count)?,
        By::File => files::report(inventory, span, ask.count)?,
        By::Depth => depths::report(inventory, span)?,
        by => groups::report(inventory, span, by, ask.now)?,
    };
    report.rows.truncate(ask.count);
    match ask.by {
        By::User => name(inventory, Table::Users, &mut report.rows)?,
        By::Group => name(inventory, Table::Groups, &mut report.rows)?,
        _ => {}
    }
    Ok(report)
}

/// Gives rows of numbers their names.
fn name(inventory: &Inventory, table: Table, rows: &mut [Row]) -> Result<(), Error> {
    let mut wanted: HashMap<Key, &mut Vec<u8>> =
        rows.iter_mut().map(|row| (row.key, &mut row.text)).collect();
    inventory.each(table, |group| {
        let (ids, names) = (group.numbers("id")?, group.texts("name")?);
        for row in 0..group.rows() {
            let id = ids.get(row).and_then(|id| u32::try_from(id).ok()).map(Key::Id);
            if let (Some(text), Some(name)) = (id.and_then(|id| wanted.get_mut(&id)), names.get(row)) {
                **text = name.to_vec();
            }
        }
        Ok(())
    })
}
