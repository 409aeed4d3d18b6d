//! Reports on an inventory: its largest directories and files, and totals of groups of entries. An
//! inode with several names counts once, where the walk found it first. Memory grows with the
//! number of such inodes and of the rows shown, not with the number of entries.
//!
//! Owns the rules of counting. Does not own the presentation of a report.

pub(crate) mod below;
mod depths;
pub(crate) mod dirs;
mod files;
mod groups;
mod largest;
pub(crate) mod links;
pub mod outline;
pub(crate) mod scope;

use std::collections::HashMap;
use std::fmt;

use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, Table};

/// The sum of a set of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageSum {
    /// Allocated bytes: 512 for each block.
    pub allocated: u64,
    /// The apparent size in bytes of all entries but directories.
    pub apparent: u64,
    /// The number of entries.
    pub entries: u64,
}

impl UsageSum {
    /// Creates a sum of `entries` entries. A negative number, which a damaged inventory may have,
    /// becomes 0.
    pub(crate) fn new(entries: i64, blocks: i64, size: i64) -> Self {
        let [entries, blocks, apparent] =
            [entries, blocks, size].map(|number| u64::try_from(number).unwrap_or(0));
        Self { entries, allocated: blocks.saturating_mul(512), apparent }
    }

    /// Adds the numbers in `other`.
    pub fn add(&mut self, other: &Self) {
        self.entries = self.entries.saturating_add(other.entries);
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.apparent = self.apparent.saturating_add(other.apparent);
    }

    /// Returns how much larger this is than `old`: allocated bytes, apparent size and entries.
    pub fn growth_since(&self, old: &Self) -> [i64; 3] {
        let difference = |of: fn(&Self) -> u64| {
            let difference = i128::from(of(self)) - i128::from(of(old));
            difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        [difference(|sum| sum.allocated), difference(|sum| sum.apparent), difference(|sum| sum.entries)]
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            allocated: self.allocated.saturating_sub(other.allocated),
            apparent: self.apparent.saturating_sub(other.apparent),
        }
    }
}

/// The kind of a report. A new kind is a breaking change, because programs label each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// The largest directories, with everything below them.
    Dir,
    /// The largest entries that are not directories.
    File,
    /// Totals by owner.
    User,
    /// Totals by owning group.
    Group,
    /// Totals by extension, which follows the last dot of a name.
    Ext,
    /// Totals by the time since the last modification.
    Age,
    /// Totals by size.
    Size,
    /// Totals by type.
    Type,
    /// Totals by depth.
    Depth,
}

impl ReportKind {
    /// All kinds, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Dir,
        Self::File,
        Self::User,
        Self::Group,
        Self::Ext,
        Self::Age,
        Self::Size,
        Self::Type,
        Self::Depth,
    ];

    /// Returns the word for the kind: the value of `--by`, the heading of a column, and a key in
    /// JSON.
    ///
    /// ```
    /// use fathom_questions::top::ReportKind;
    ///
    /// assert_eq!(ReportKind::from_word("ext"), Some(ReportKind::Ext));
    /// assert_eq!(ReportKind::Ext.word(), "ext");
    /// ```
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dir => "dir",
            Self::File => "file",
            Self::User => "user",
            Self::Group => "group",
            Self::Ext => "ext",
            Self::Age => "age",
            Self::Size => "size",
            Self::Type => "type",
            Self::Depth => "depth",
        }
    }

    /// Returns the kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns whether the rows have an order of their own. Rows of other kinds are sorted by size.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        match self {
            Self::Age | Self::Size | Self::Depth => true,
            Self::Dir | Self::File | Self::User | Self::Group | Self::Ext | Self::Type => false,
        }
    }
}

/// The property that the entries of a row share. Ages and sizes are indices into [`AGES`] and
/// [`SIZES`]. A new variant is a breaking change, because programs label each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKey {
    /// The entries are at or below the path in the text of the row.
    Path,
    /// The entries have the extension in the text of the row.
    Extension,
    /// The names of the entries have no extension.
    NoExtension,
    /// The entries are directories, which are in no other group of this report.
    Directory,
    /// The entries have this owner or group. The text of the row is its name, if it has one.
    Id(u32),
    /// The entries have this age.
    Age(usize),
    /// The entries have this size.
    Size(usize),
    /// The entries have this type, given by its letter.
    Type(u8),
    /// The entries have this depth.
    Depth(i64),
    /// The entries are in groups that exceed the greatest number of groups.
    Other,
    /// The property of the entries is unknown.
    Unknown,
}

/// The upper ends of the age groups, in days since the last modification. An entry is in the first
/// group whose end is above its age.
pub const AGES: [i64; 5] = [1, 7, 30, 365, 1095];
/// The upper ends of the size groups, in bytes. An entry is in the first group whose end is above
/// its size.
pub const SIZES: [i64; 9] = [1, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30, 1 << 34, 1 << 40];

/// The labels of the age groups: one for each of [`AGES`], then the labels of older entries and of
/// times in the future.
pub const AGE_LABELS: [&str; AGES.len() + 2] = [
    "under 1 day",
    "under 7 days",
    "under 30 days",
    "under 1 year",
    "under 3 years",
    "older",
    "in the future",
];
/// The labels of the size groups: one for each of [`SIZES`], then one for larger entries.
pub const SIZE_LABELS: [&str; SIZES.len() + 1] = [
    "empty",
    "under 4 KiB",
    "under 64 KiB",
    "under 1 MiB",
    "under 16 MiB",
    "under 256 MiB",
    "under 1 GiB",
    "under 16 GiB",
    "under 1 TiB",
    "larger",
];

/// A row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRow {
    /// The property that the entries of the row share.
    pub key: GroupKey,
    /// The text of the row, as [`GroupKey`] says.
    pub text: Vec<u8>,
    /// The sum of the entries.
    pub sum: UsageSum,
}

/// A report on an inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// The rows, the largest first; ages, sizes and depths in their own order.
    pub rows: Vec<ReportRow>,
    /// The sum of all entries in the requested part.
    pub total: UsageSum,
}

/// The options of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The kind of the report.
    pub by: ReportKind,
    /// Most rows of the report.
    pub count: usize,
    /// Report only on entries at or below this directory. The path is as the inventory records it,
    /// or relative to a root.
    pub below: Option<Vec<u8>>,
    /// The current time, in microseconds since 1970.
    pub now: i64,
}

/// The error of a query on an inventory.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueryError {
    /// The inventory has no such directory.
    Absent,
    /// Several of the scanned trees have such a directory.
    Ambiguous,
    /// The inventory cannot be read.
    Unreadable(Error),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("the inventory has no such directory"),
            Self::Ambiguous => f.write_str("the inventory has several such directories"),
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Reports on an inventory.
///
/// # Errors
/// If the inventory is damaged, or has no directory [`ReportOptions::below`].
///
/// ```
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::top::{QueryError, ReportKind, ReportOptions, report};
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let mut options = ReportOptions { by: ReportKind::Ext, count: 10, below: None, now: 0 };
/// let largest = report(&inventory, &options)?;
/// assert_eq!(largest.rows[0].text, b"rs");
/// assert!(largest.rows[0].sum.apparent <= largest.total.apparent);
/// options.below = Some(b"src/none".to_vec());
/// assert!(matches!(report(&inventory, &options), Err(QueryError::Absent)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn report(inventory: &Inventory, options: &ReportOptions) -> Result<UsageReport, QueryError> {
    let span = match &options.below {
        Some(path) => below::find(inventory, path)?,
        None => Span::ALL,
    };
    let mut report = match options.by {
        ReportKind::Dir => dirs::report(inventory, span, options.count)?,
        ReportKind::File => files::report(inventory, span, options.count)?,
        ReportKind::Depth => depths::report(inventory, span)?,
        by => {
            let mut reports = groups::reports(inventory, span, &[by], options.now)?;
            reports.pop().unwrap_or(UsageReport { rows: Vec::new(), total: UsageSum::default() })
        }
    };
    report.rows.truncate(options.count);
    name(inventory, options.by, &mut report.rows)?;
    Ok(report)
}

/// Reports totals by several properties of entries in one pass, each as [`report`] does for its
/// kind. `now` is in microseconds since 1970.
///
/// # Errors
/// If the inventory is damaged.
///
/// # Panics
/// If one of `kinds` is no property of single entries, but `Dir`, `File` or `Depth`.
///
/// ```
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::top::{ReportKind, reports};
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let both = reports(&inventory, &[ReportKind::Ext, ReportKind::Size], 0)?;
/// assert_eq!(both[0].total, both[1].total);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reports(inventory: &Inventory, kinds: &[ReportKind], now: i64) -> Result<Vec<UsageReport>, Error> {
    let is_property = |by: &ReportKind| !matches!(by, ReportKind::Dir | ReportKind::File | ReportKind::Depth);
    assert!(kinds.iter().all(is_property), "these have reports of their own");
    let mut reports = groups::reports(inventory, Span::ALL, kinds, now)?;
    for (by, report) in kinds.iter().zip(&mut reports) {
        name(inventory, *by, &mut report.rows)?;
    }
    Ok(reports)
}

/// Sets the names of the rows of a report by owner or by group.
fn name(inventory: &Inventory, by: ReportKind, rows: &mut [ReportRow]) -> Result<(), Error> {
    let table = match by {
        ReportKind::User => Table::Users,
        ReportKind::Group => Table::Groups,
        ReportKind::Dir
        | ReportKind::File
        | ReportKind::Ext
        | ReportKind::Age
        | ReportKind::Size
        | ReportKind::Type
        | ReportKind::Depth => return Ok(()),
    };
    let mut wanted: HashMap<GroupKey, &mut Vec<u8>> =
        rows.iter_mut().map(|row| (row.key, &mut row.text)).collect();
    inventory.each(table, |group| {
        let (ids, names) = (group.numbers("id")?, group.texts("name")?);
        for row in 0..group.rows() {
            let id = ids.get(row).and_then(|id| u32::try_from(id).ok()).map(GroupKey::Id);
            if let (Some(text), Some(name)) = (id.and_then(|id| wanted.get_mut(&id)), names.get(row)) {
                **text = name.to_vec();
            }
        }
        Ok(())
    })
}
