//! An inventory: directories are read when they are listed, so it opens at once however large it
//! is. With an older inventory, rows have their growth since then.
//!
//! Owns: the rows of an inventory, and what was removed from the tree since. Does not own: the
//! format of inventories.

pub(crate) mod older;
mod places;
mod removed;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_inventory::store::{DirState, Error, Inventory, Span, Table, TableRows};
use fathom_io::{Errno, Fields, FileTime, FileType, Meta};
use fathom_questions::browse::{BrowseKey, BrowsedDir, BrowsedEntry, Browser};
use fathom_questions::top::UsageSum;
use fathom_remove::Identity;
use fathom_scans::history::have_same_scope;
use fathom_scans::scan::host;

use self::older::OlderInventory;
use self::places::DirPlaces;
use self::removed::RemovedEntries;
use super::largest::LargestFiles;
use super::summary::{FileSummary, SummedFile};
use super::{ctime_of, identity_of, joined, mtime_of, sizes_of, uid_of};
use crate::source::{
    Amount, FileSearch, FoundFiles, Place, PlacedRow, Row, RowState, RowSums, Source, SourceError,
    SourceProgress, SumKey, SumRow,
};

/// Most files of a list of the largest ones.
const LARGEST_MAX: usize = 10_000;

/// An inventory, perhaps with an older one.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use fathom_explore::source::{Place, Source};
/// use fathom_explore::sources::inventory::InventorySource;
/// use fathom_scans::scan::{Scan, scan};
///
/// let temp = tempfile::tempdir()?;
/// let out = temp.path().join("src.inv");
/// scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let mut source = InventorySource::open(&out, Some(&out)).expect("an inventory");
/// let top = Place { root: 0, below: Vec::new() };
/// let rows = source.list(&top, &AtomicBool::new(false)).expect("src is a directory");
/// let lib = rows.iter().find(|row| &row.name[..] == b"lib.rs").expect("a file of this crate");
/// assert_eq!(lib.growth.expect("the older inventory has it").apparent, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InventorySource {
    tree: InventoryTree,
    older: Option<OlderInventory>,
    removed: RemovedEntries,
    /// Whether the inventory was made on this machine.
    is_local: bool,
}

/// The directories of one inventory.
#[derive(Debug)]
struct InventoryTree {
    browser: Browser,
    /// The roots that are directories, by their index.
    roots: HashMap<usize, BrowsedDir>,
    places: DirPlaces,
}

/// An entry of an inventory, before it becomes a row.
enum FoundEntry<'a> {
    Dir(Box<BrowsedDir>),
    File(BrowsedEntry<'a>),
}

impl InventoryTree {
    fn open(path: &Path) -> Result<Self, SourceError> {
        let mut browser = Browser::new(Inventory::open(path).map_err(damaged)?).map_err(damaged)?;
        let roots = roots_of(&mut browser)?;
        Ok(Self { browser, roots, places: DirPlaces::default() })
    }

    /// Leaves names of inodes with several names out of what is counted once.
    fn retain_links(&mut self, keeps: &mut dyn FnMut(i64, (u64, u64)) -> bool) -> Result<(), SourceError> {
        self.browser.retain_links(keeps).map_err(damaged)?;
        self.roots = roots_of(&mut self.browser)?;
        Ok(())
    }

    /// Finds a directory.
    fn find(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Option<BrowseKey>, SourceError> {
        let Some(root) = self.roots.get(&place.root) else { return Ok(None) };
        let (mut key, mut below) = (root.key, Vec::new());
        let names: Vec<_> = place.below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        for name in names {
            let next = joined(&below, name);
            let here = Place { root: place.root, below: next };
            let found = match self.places.get(&here) {
                Some(found) => Some(found),
                None => self.subdir(key, name, cancelled)?,
            };
            let Some(found) = found else { return Ok(None) };
            self.places.insert(here.clone(), found);
            (key, below) = (found, here.below);
        }
        Ok(Some(key))
    }

    fn subdir(
        &mut self,
        of: BrowseKey,
        name: &[u8],
        cancelled: &AtomicBool,
    ) -> Result<Option<BrowseKey>, SourceError> {
        let mut found = None;
        let read = self.browser.dirs(of, cancelled, &mut |dir| {
            if dir.name == name {
                found = Some(dir.key);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        complete(read)?;
        Ok(found)
    }

    /// Calls `with` for each entry of a directory.
    fn each(
        &mut self,
        of: BrowseKey,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(FoundEntry<'_>),
    ) -> Result<(), SourceError> {
        let read = self.browser.dirs(of, cancelled, &mut |dir| {
            with(FoundEntry::Dir(Box::new(dir)));
            ControlFlow::Continue(())
        });
        complete(read)?;
        complete(self.browser.entries(of, cancelled, &mut |entry| with(FoundEntry::File(entry))))
    }
}

fn roots_of(browser: &mut Browser) -> Result<HashMap<usize, BrowsedDir>, SourceError> {
    Ok(browser.roots().map_err(damaged)?.into_iter().map(|dir| (dir.root, dir)).collect())
}

impl InventorySource {
    /// Opens the inventory at `path`. Rows have their growth since the inventory at `since`.
    ///
    /// # Errors
    /// If there is no such inventory, or if it is damaged.
    pub fn open(path: &Path, since: Option<&Path>) -> Result<Self, SourceError> {
        let tree = InventoryTree::open(path)?;
        let older = since.map(OlderInventory::open).transpose()?;
        let is_local = tree.browser.inventory().manifest().host == host();
        Ok(Self { tree, older, removed: RemovedEntries::default(), is_local })
    }

    fn root_path(&self, root: usize) -> Option<Vec<u8>> {
        self.tree.browser.inventory().manifest().roots.get(root).map(|root| root.bytes())
    }

    /// Hides an entry, with everything below it.
    fn hide(&mut self, place: &Place, row: &Row) -> Result<(), SourceError> {
        let (go_on, here) = (AtomicBool::new(false), place.child(&row.name));
        let mut amount = row.amount;
        if row.file_type != FileType::Directory {
            let dir = self.tree.find(place, &go_on)?;
            dir.into_iter().for_each(|dir| self.removed.add_file(dir, row));
        } else if let Some(dir) = self.tree.find(&here, &go_on)? {
            amount = amount_of(&self.tree.browser.sum_of_names(dir).map_err(damaged)?);
            self.removed.add_tree(dir, &here);
        }
        self.removed.add(here, amount);
        Ok(())
    }

    /// Returns the sums of a directory, which was listed before, or of all roots, if they are
    /// known.
    fn total(&mut self, place: Option<&Place>) -> Option<Amount<u64>> {
        let browser = &mut self.tree.browser;
        let Some(place) = place else {
            let count = browser.inventory().manifest().roots.len();
            // Roots that are files have no sums.
            let total = browser.total().ok().filter(|_| self.tree.roots.len() == count)?;
            let mut amount = amount_of(&total);
            let tops = (0..count).map(|root| Place { root, below: Vec::new() });
            tops.for_each(|top| amount.subtract(&self.removed.below(&top)));
            return Some(amount);
        };
        let key = self.tree.find(place, &AtomicBool::new(false)).ok()??;
        let mut amount = dir_row(&self.tree.browser.dir(key).ok()?).amount;
        amount.subtract(&self.removed.below(place));
        Some(amount)
    }

    /// Returns files, whose directories are known by number, with their places.
    fn placed(&self, files: &LargestFiles<i64>) -> Result<Vec<PlacedRow>, SourceError> {
        let dirs = files.iter().map(|(dir, _)| *dir).collect();
        let paths = self.tree.browser.paths(&dirs).map_err(damaged)?;
        let placed = |(dir, row): &(i64, Row)| {
            let (root, path) = paths.get(dir)?;
            let below = path.get(self.root_path(*root)?.len()..)?;
            let below = below.strip_prefix(b"/").unwrap_or(below).to_vec();
            Some(PlacedRow { place: Place { root: *root, below }, row: row.clone() })
        };
        Ok(files.iter().filter_map(placed).collect())
    }

    /// Returns the span of a directory.
    fn span(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Span, SourceError> {
        let key = self.tree.find(place, cancelled)?;
        key.map(BrowseKey::span).ok_or(SourceError::Os("find", Errno::NOENT))
    }

    /// Calls `with` for each file in `span` of which the metadata is known, an inode with several
    /// names once.
    fn each_file(
        &self,
        span: Span,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(&TableRows, usize),
    ) -> Result<(), SourceError> {
        let mut seen = HashSet::new();
        self.each_name(span, cancelled, &mut |rows, row| {
            let is_linked = file_number(rows, FileColumn::Nlink, row) > 1;
            let inode = [FileColumn::Dev, FileColumn::Ino].map(|column| file_number(rows, column, row));
            if !is_linked || seen.insert(inode) {
                with(rows, row);
            }
        })
    }

    /// Calls `with` for each name of a file in `span` of which the metadata is known.
    fn each_name(
        &self,
        span: Span,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(&TableRows, usize),
    ) -> Result<(), SourceError> {
        let removed = &self.removed;
        let read =
            self.tree.browser.inventory().each_rows(Table::Entries, span, &FILE_COLUMNS, &mut |rows| {
                if cancelled.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                for row in 0..rows.count() {
                    // An import may lack columns; the number of links is of each entry that was
                    // examined.
                    let is_known = rows.number(FileColumn::Nlink as usize, row).is_some();
                    let dir_id = file_number(rows, FileColumn::DirId, row);
                    if is_known && !removed.has(dir_id, file_name(rows, row)) {
                        with(rows, row);
                    }
                }
                ControlFlow::Continue(())
            });
        read.map_err(damaged)?;
        if cancelled.load(Ordering::Relaxed) { Err(SourceError::Cancelled) } else { Ok(()) }
    }
}

/// The columns of [`FILE_COLUMNS`], by their index.
#[derive(Clone, Copy, Debug)]
enum FileColumn {
    DirId,
    Name,
    NameRaw,
    Ext,
    Dev,
    Ino,
    Mode,
    Uid,
    Gid,
    Nlink,
    Size,
    Blocks,
    Mtime,
    Ctime,
    CtimeNs,
}

/// The number of files between two reports of a search.
const SEARCHED_PER_REPORT: u64 = 10_000;
/// The columns that lists across directories need.
const FILE_COLUMNS: [&str; 15] = [
    "dir_id", "name", "name_raw", "ext", "dev", "ino", "mode", "uid", "gid", "nlink", "size", "blocks",
    "mtime", "ctime", "ctime_ns",
];

fn file_number(rows: &TableRows, column: FileColumn, row: usize) -> i64 {
    rows.number(column as usize, row).unwrap_or(0)
}

fn file_name(rows: &TableRows, row: usize) -> &[u8] {
    let [text, raw] = [FileColumn::Name, FileColumn::NameRaw].map(|at| rows.text(at as usize, row));
    raw.or(text).unwrap_or_default()
}

/// Returns the metadata in a row of [`FILE_COLUMNS`].
fn file_meta(rows: &TableRows, row: usize) -> Meta {
    let number = |column| file_number(rows, column, row);
    let mut meta = Meta {
        dev: number(FileColumn::Dev).cast_unsigned(),
        ino: number(FileColumn::Ino).cast_unsigned(),
        mode: number(FileColumn::Mode) as u32,
        uid: number(FileColumn::Uid) as u32,
        gid: number(FileColumn::Gid) as u32,
        nlink: number(FileColumn::Nlink).cast_unsigned(),
        size: number(FileColumn::Size),
        blocks: number(FileColumn::Blocks).cast_unsigned(),
        ..Meta::default()
    };
    let known = [(FileColumn::Uid, Fields::OWNER), (FileColumn::Mtime, Fields::TIMES)];
    for (_, field) in known.into_iter().filter(|(column, _)| rows.number(*column as usize, row).is_some()) {
        meta.fields = meta.fields.union(field);
    }
    meta.mtime.sec = number(FileColumn::Mtime).div_euclid(1_000_000);
    let (micros, nanos) = (number(FileColumn::Ctime), number(FileColumn::CtimeNs).clamp(0, 999));
    let nsec = (micros.rem_euclid(1_000_000) * 1000 + nanos) as u32;
    meta.ctime = FileTime { sec: micros.div_euclid(1_000_000), nsec };
    meta
}

/// Returns the row of an entry, without growth.
fn row(entry: FoundEntry<'_>) -> Row {
    match entry {
        FoundEntry::Dir(dir) => dir_row(&dir),
        FoundEntry::File(BrowsedEntry { name, file_type, meta }) => {
            let state = if meta.is_some() { RowState::Complete } else { RowState::Unreadable };
            let row = meta_row(name, meta, state);
            Row { file_type, ..row }
        }
    }
}

fn dir_row(dir: &BrowsedDir) -> Row {
    let state = match dir.state {
        DirState::Skipped => RowState::Skipped,
        DirState::Failed => RowState::Unreadable,
        _ if dir.has_gap => RowState::Partial,
        _ => RowState::Complete,
    };
    let row = meta_row(&dir.name, dir.meta.as_ref(), state);
    Row {
        file_type: FileType::Directory,
        amount: amount_of(&dir.sum),
        shared: dir.shared,
        newest_mtime_s: dir.newest_mtime_s.filter(|_| row.newest_mtime_s.is_some()).or(row.newest_mtime_s),
        ..row
    }
}

/// Returns the amount of a directory, of which `sum` has its own inode.
fn amount_of(sum: &UsageSum) -> Amount<u64> {
    let UsageSum { apparent, allocated, entries } = *sum;
    Amount { apparent, allocated, entries: entries.saturating_sub(1) }
}

fn meta_row(name: &[u8], meta: Option<&Meta>, state: RowState) -> Row {
    Row {
        name: name.into(),
        identity: meta.map_or(Identity { dev: 0, ino: 0 }, identity_of),
        ctime: meta.and_then(ctime_of),
        file_type: meta.map_or(FileType::Unknown, Meta::file_type),
        links: meta.map_or(0, |meta| meta.nlink),
        uid: meta.and_then(uid_of),
        gid: meta.map_or(0, |meta| meta.gid),
        amount: meta.map(sizes_of).unwrap_or_default(),
        shared: 0,
        newest_mtime_s: meta.and_then(mtime_of),
        growth: None,
        state,
    }
}

fn damaged(error: Error) -> SourceError {
    SourceError::Other(error.to_string())
}

/// Maps the result of a call that returns false if it was cancelled.
fn complete(read: Result<bool, Error>) -> Result<(), SourceError> {
    if read.map_err(damaged)? { Ok(()) } else { Err(SourceError::Cancelled) }
}

impl Source for InventorySource {
    fn roots(&mut self) -> Vec<Row> {
        let count = self.tree.browser.inventory().manifest().roots.len();
        let mut files = HashMap::new();
        if self.tree.roots.len() < count {
            let mut found = Vec::new();
            // A damaged table is reported when a directory is listed.
            let _ = self.tree.browser.root_entries(&mut |entry| found.push(row(FoundEntry::File(entry))));
            let root_of = |row: &Row| self.tree.browser.root_at(&row.name);
            files.extend(found.into_iter().filter_map(|row| Some((root_of(&row)?, row))));
        }
        let mut rows = Vec::new();
        for root in 0..count {
            let path = self.root_path(root).unwrap_or_default();
            let missing = || meta_row(&path, None, RowState::Unreadable);
            let found = self.tree.roots.get(&root).map(dir_row).or_else(|| files.remove(&root));
            let mut row = found.unwrap_or_else(missing);
            row.amount.subtract(&self.removed.below(&Place { root, below: Vec::new() }));
            self.older.iter().for_each(|older| older.set_root_growth(&mut row));
            rows.push(row);
        }
        rows
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        let key = self.tree.find(place, cancelled)?.ok_or(SourceError::Os("find", Errno::NOENT))?;
        let (mut rows, places) = (Vec::new(), &mut DirPlaces::default());
        self.tree.each(key, cancelled, &mut |entry| {
            if let FoundEntry::Dir(dir) = &entry {
                places.insert(Place { root: place.root, below: joined(&place.below, &dir.name) }, dir.key);
            }
            rows.push(row(entry));
        })?;
        self.tree.places.extend(places);
        self.removed.apply(place, &mut rows);
        let is_whole = self.tree.browser.dir(key).map_err(damaged)?.state == DirState::Complete;
        if let (Some(path), Some(older)) = (self.root_path(place.root), &mut self.older) {
            let manifest = self.tree.browser.inventory().manifest();
            let are_all = is_whole && have_same_scope(older.manifest(), manifest);
            older.set_growth(&path, &place.below, &mut rows, are_all, cancelled)?;
        }
        Ok(rows)
    }

    fn row_sums(&mut self, place: Option<&Place>) -> RowSums {
        let total = self.total(place);
        let manifest = self.tree.browser.inventory().manifest();
        let roots: Vec<_> = manifest.roots.iter().map(|root| root.bytes()).collect();
        let growth = self.older.as_mut().and_then(|older| older.growth(&roots, place, &total?));
        RowSums { total, growth, ..RowSums::default() }
    }

    fn progress(&self) -> SourceProgress {
        let manifest = self.tree.browser.inventory().manifest();
        let found = &manifest.completeness;
        let allocated = self.tree.roots.values().map(|root| root.sum.allocated);
        SourceProgress {
            entries: manifest.entries,
            allocated: allocated.fold(0, u64::saturating_add),
            failures: found.partial + found.failed + found.unknown_entries + found.missing_roots,
            finished: true,
            version: self.removed.count(),
        }
    }

    fn stop(&mut self) {}

    fn pause(&mut self, _paused: bool) {}

    fn rescan(&mut self, _place: &Place) -> Result<(), SourceError> {
        Err(SourceError::Other("cannot reread an inventory: scan the tree again".to_owned()))
    }

    fn removed(&mut self, gone: &[(Place, Row)]) {
        for (place, row) in gone {
            // A directory that is damaged is reported when it is listed.
            if self.hide(place, row).is_err() {
                self.removed.add(place.child(&row.name), row.amount);
            }
        }
        // If it fails, sums lack inodes of which some names are left.
        let _ = self.tree.retain_links(&mut self.removed.links_left());
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        let span = self.span(place, cancelled)?;
        let mut largest = LargestFiles::new(count.min(LARGEST_MAX));
        self.each_file(span, cancelled, &mut |rows, row| {
            let meta = file_meta(rows, row);
            if sizes_of(&meta).allocated >= largest.least() {
                let file = meta_row(file_name(rows, row), Some(&meta), RowState::Complete);
                largest.push(file_number(rows, FileColumn::DirId, row), file);
            }
        })?;
        self.placed(&largest)
    }

    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError> {
        let span = self.span(place, cancelled)?;
        let (mut largest, mut total, mut seen) =
            (LargestFiles::new(search.count_max), Amount::default(), 0_u64);
        self.each_name(span, cancelled, &mut |rows, row| {
            seen += 1;
            if seen.is_multiple_of(SEARCHED_PER_REPORT) {
                progress(seen);
            }
            let file = meta_row(file_name(rows, row), Some(&file_meta(rows, row)), RowState::Complete);
            if (search.admits)(&file) {
                total.add(&file.amount.with_itself());
                largest.push(file_number(rows, FileColumn::DirId, row), file);
            }
        })?;
        Ok(FoundFiles { files: self.placed(&largest)?, total })
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        let inventory = self.tree.browser.inventory();
        let owners = inventory.owners().map_err(damaged)?;
        let (now_s, mut summary) = (inventory.manifest().end, FileSummary::default());
        self.each_file(Span::ALL, cancelled, &mut |rows, row| {
            let meta = file_meta(rows, row);
            let extension = rows.text(FileColumn::Ext as usize, row);
            let (uid, mtime_s, sizes) = (uid_of(&meta), mtime_of(&meta), sizes_of(&meta));
            summary.add(&SummedFile { extension, uid, mtime_s, sizes }, now_s);
        })?;
        Ok(summary.rows(key, &owners))
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        let roots = &self.tree.browser.inventory().manifest().roots;
        roots.get(root).filter(|_| self.is_local)?.absolute_bytes()
    }
}

#[cfg(test)]
mod tests;
