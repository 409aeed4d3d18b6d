//! The entries of one directory, the largest first, in parts of bounded size.

use std::str::FromStr;

use super::{EntryMix, FileColumns, OutlineOptions};
use crate::top::UsageSum;
use crate::top::dirs::DirSums;
use crate::top::files::counted;
use crate::top::largest::{Largest, sizes};
use crate::top::links::HardLinks;
use crate::top::scope::Scope;
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory, RowGroup, Table};

/// A place in the order of a directory's entries: behind an entry.
///
/// ```
/// use fathom_questions::top::outline::ListingCursor;
///
/// let cursor: ListingCursor = "4096.12.f.17".parse().unwrap();
/// assert_eq!(cursor.to_string(), "4096.12.f.17");
/// assert!("4096.12.f.-1".parse::<ListingCursor>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingCursor {
    sizes: [u64; 2],
    key: ListedKey,
}

/// A directory by number, or a file by the index of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListedKey {
    Dir(i64),
    File(usize),
}

/// The text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCursor;

impl std::fmt::Display for InvalidCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a valid position in a directory")
    }
}

impl std::error::Error for InvalidCursor {}

impl ListingCursor {
    /// Returns whether an entry comes after this place.
    fn is_before(&self, sizes: [u64; 2], key: ListedKey) -> bool {
        (std::cmp::Reverse(self.sizes), self.key) < (std::cmp::Reverse(sizes), key)
    }
}

impl std::fmt::Display for ListingCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [allocated, apparent] = self.sizes;
        match self.key {
            ListedKey::Dir(dir_id) => write!(f, "{allocated}.{apparent}.d.{dir_id}"),
            ListedKey::File(row) => write!(f, "{allocated}.{apparent}.f.{row}"),
        }
    }
}

impl FromStr for ListingCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(InvalidCursor);
        let (allocated, apparent, kind, number) = (part()?, part()?, part()?, part()?);
        let size = |text: &str| text.parse().map_err(|_| InvalidCursor);
        let sizes = [size(allocated)?, size(apparent)?];
        let key = match kind {
            "d" => ListedKey::Dir(number.parse().map_err(|_| InvalidCursor)?),
            "f" => ListedKey::File(number.parse().map_err(|_| InvalidCursor)?),
            _ => return Err(InvalidCursor),
        };
        if parts.next().is_some() { Err(InvalidCursor) } else { Ok(Self { sizes, key }) }
    }
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct ListedEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The sum of everything at and below it.
    pub sum: UsageSum,
    /// The number and the state of a directory; `None` for a file.
    pub dir: Option<(i64, DirState)>,
    /// As in [`super::OutlineNode`].
    pub mtime: Option<i64>,
    /// The properties of a file.
    pub mix: EntryMix,
    /// The place behind it.
    pub cursor: ListingCursor,
}

/// A part of the entries of a directory.
#[derive(Clone, Debug)]
pub struct DirListing {
    /// The entries, the largest first.
    pub entries: Vec<ListedEntry>,
    /// Whether others follow.
    pub has_more: bool,
}

/// Returns up to `count` entries of the directory with the number `dir_id`, behind `after`; `None`
/// if there is no such directory. An inode with several names in the directory counts once. Of the
/// options, only the kinds and the time are used.
///
/// # Errors
/// If the inventory is damaged.
///
/// ```
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::top::outline::{OutlineOptions, list};
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let options = OutlineOptions { nodes_max: 0, bytes_max: 0, cost: &|_| 0, kind: &|_| 0, now: 0 };
/// let (mut names, mut after) = (Vec::new(), None);
/// while let Some(part) = list(&inventory, 1, after, 3, &options)? {
///     names.extend(part.entries.iter().map(|entry| entry.name.clone()));
///     after = part.entries.last().map(|last| last.cursor);
///     if !part.has_more {
///         break;
///     }
/// }
/// assert!(names.contains(&b"lib.rs".to_vec()) && names.contains(&b"top".to_vec()));
/// assert_eq!(names.len(), std::fs::read_dir("src")?.count());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn list(
    inventory: &Inventory,
    dir_id: i64,
    after: Option<ListingCursor>,
    count: usize,
    options: &OutlineOptions<'_>,
) -> Result<Option<DirListing>, Error> {
    let Some(span) = span_of(inventory, dir_id)? else { return Ok(None) };
    // One more than is listed shows whether others follow.
    let mut listed = Listed { after, largest: Largest::new(count.saturating_add(1)) };
    listed.read_dirs(inventory, dir_id, span)?;
    listed.read_files(inventory, dir_id)?;
    let mut rows: Vec<_> = listed.largest.sorted().collect();
    let has_more = rows.len() > count;
    rows.truncate(count);
    let entries = rows.iter().map(|(key, sum)| unnamed(*key, *sum)).collect();
    let mut rows: Vec<_> = rows.into_iter().enumerate().map(|(at, (key, _))| (key, at)).collect();
    rows.sort_unstable();
    let mut listing = DirListing { entries, has_more };
    listing.name(inventory, &rows, options)?;
    Ok(Some(listing))
}

/// Returns an entry whose name and properties are not known yet.
fn unnamed(key: ListedKey, sum: UsageSum) -> ListedEntry {
    let cursor = ListingCursor { sizes: sizes(&sum), key };
    ListedEntry { name: Vec::new(), sum, dir: None, mtime: None, mix: EntryMix::default(), cursor }
}

/// Returns the numbers at and below a directory that the scan entered.
fn span_of(inventory: &Inventory, dir_id: i64) -> Result<Option<Span>, Error> {
    let mut found = None;
    inventory.each(Table::Dirs, |group| {
        if found.is_none() {
            let ids = group.numbers("dir_id")?;
            if let Some(row) = ids.or_zero().iter().position(|id| *id == dir_id) {
                let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
                found = Some(Span { first: pre.or_zero()[row], last: post.or_zero()[row] });
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The entries found so far.
struct Listed {
    after: Option<ListingCursor>,
    largest: Largest<ListedKey>,
}

impl Listed {
    fn push(&mut self, key: ListedKey, sum: UsageSum) {
        if self.after.is_none_or(|after| after.is_before(sizes(&sum), key)) {
            self.largest.push(key, sum);
        }
    }

    fn read_dirs(&mut self, inventory: &Inventory, dir_id: i64, span: Span) -> Result<(), Error> {
        let links = HardLinks::read(inventory, &Scope::read(inventory, span)?)?;
        let mut sums = DirSums::new(&links, span);
        inventory.each(Table::Dirs, |group| {
            let ids = group.numbers("dir_id")?;
            if !ids.or_zero().iter().any(|id| span.contains(*id)) {
                return Ok(());
            }
            let parents = group.numbers("parent_id")?;
            for dir in sums.rows(group)? {
                if parents.get(dir.row) == Some(dir_id) {
                    self.push(ListedKey::Dir(ids.or_zero()[dir.row]), dir.sum);
                }
            }
            Ok(())
        })
    }

    fn read_files(&mut self, inventory: &Inventory, dir_id: i64) -> Result<(), Error> {
        let own = Span { first: dir_id, last: dir_id };
        let scope = Scope::read(inventory, own)?;
        let mut first_names = HardLinks::read(inventory, &scope)?.within(&scope).first_names();
        let mut start = 0;
        inventory.each(Table::Entries, |group| {
            if group.numbers("dir_id")?.or_zero().contains(&dir_id) {
                for (row, sum) in counted(group, &scope, &mut first_names)? {
                    self.push(ListedKey::File(start + row), sum);
                }
            }
            start += group.rows();
            Ok(())
        })
    }
}

impl DirListing {
    /// Sets the names and properties of the entries. `rows` has their keys in order, each with the
    /// index of its entry.
    fn name(
        &mut self,
        inventory: &Inventory,
        rows: &[(ListedKey, usize)],
        options: &OutlineOptions<'_>,
    ) -> Result<(), Error> {
        let place =
            |key: ListedKey| rows.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| rows[at].1);
        let has_dirs = rows.first().is_some_and(|(key, _)| matches!(key, ListedKey::Dir(_)));
        if has_dirs {
            inventory.each(Table::Dirs, |group| self.name_dirs(group, &place))?;
        }
        let files = rows.partition_point(|(key, _)| matches!(key, ListedKey::Dir(_)));
        let (mut files, mut start) = (rows[files..].iter().peekable(), 0);
        inventory.each(Table::Entries, |group| {
            let end = start + group.rows();
            let is_here = |key: &ListedKey| matches!(key, ListedKey::File(row) if *row < end);
            if files.peek().is_some_and(|(key, _)| is_here(key)) {
                let columns = FileColumns::read(group)?;
                while let Some((ListedKey::File(row), at)) = files.next_if(|(key, _)| is_here(key)) {
                    let (entry, row) = (&mut self.entries[*at], row - start);
                    (entry.name, entry.mtime) = (columns.name(row).to_vec(), columns.mtimes.get(row));
                    entry.mix = columns.mix(row, options);
                }
            }
            start = end;
            Ok(())
        })
    }

    fn name_dirs(
        &mut self,
        group: &RowGroup<'_>,
        place: &impl Fn(ListedKey) -> Option<usize>,
    ) -> parquet::errors::Result<()> {
        let ids = group.numbers("dir_id")?;
        let here: Vec<_> = ids
            .or_zero()
            .iter()
            .enumerate()
            .filter_map(|(row, id)| Some((row, *id, place(ListedKey::Dir(*id))?)))
            .collect();
        if here.is_empty() {
            return Ok(());
        }
        let [names, raw, states] = [group.texts("name")?, group.texts("name_raw")?, group.texts("state")?];
        let mtimes = group.numbers("t_max_mtime")?;
        for (row, id, at) in here {
            let entry = &mut self.entries[at];
            entry.name = raw.get(row).or(names.get(row)).unwrap_or_default().to_vec();
            let state = states.get(row).and_then(DirState::from_word).unwrap_or(DirState::Partial);
            (entry.dir, entry.mtime) = (Some((id, state)), mtimes.get(row));
        }
        Ok(())
    }
}
