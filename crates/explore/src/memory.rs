//! A source in memory, for tests and examples.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use fathom_io::{Errno, FileTime, FileType};
use fathom_remove::Identity;

use crate::source::{
    Amount, FileSearch, FoundFiles, Place, PlacedRow, Row, RowState, RowSums, Source, SourceError,
    SourceProgress, SumKey, SumRow,
};

/// Returns a row of a regular file whose sizes are `bytes`.
#[must_use]
pub fn file(name: &str, bytes: u64, mtime_s: i64) -> Row {
    Row {
        name: name.as_bytes().into(),
        identity: Identity { dev: 1, ino: 0 },
        ctime: Some(FileTime { sec: mtime_s, nsec: 0 }),
        file_type: FileType::Regular,
        links: 1,
        uid: Some(0),
        gid: 0,
        amount: Amount { apparent: bytes, allocated: bytes, entries: 0 },
        shared: 0,
        newest_mtime_s: Some(mtime_s),
        growth: None,
        state: RowState::Complete,
    }
}

/// Returns a row of a directory.
#[must_use]
pub fn directory(name: &str, bytes: u64, mtime_s: i64) -> Row {
    Row { file_type: FileType::Directory, ctime: None, ..file(name, bytes, mtime_s) }
}

/// The tree of one root.
#[derive(Debug)]
struct MemoryRoot {
    row: Row,
    local: Option<Vec<u8>>,
    directories: HashMap<Vec<u8>, Vec<Row>>,
}

/// A source whose trees are in memory.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use fathom_explore::memory::{MemorySource, file};
/// use fathom_explore::source::{Place, Source};
///
/// let mut source = MemorySource::default();
/// let root = source.root("/data", None);
/// source.add(root, b"a/b", file("c", 5, 0));
/// let place = Place { root, below: b"a".to_vec() };
/// let rows = source.list(&place, &AtomicBool::new(false)).unwrap();
/// assert_eq!((&*rows[0].name, rows[0].amount.apparent), (&b"b"[..], 5));
/// ```
#[derive(Debug, Default)]
pub struct MemorySource {
    roots: Vec<MemoryRoot>,
    inodes: u64,
    progress: SourceProgress,
    /// Whether the source can walk directories again.
    pub rescans: bool,
    /// The calls that change something, in words.
    pub calls: Vec<String>,
}

impl MemorySource {
    /// Adds a root, and returns its number. `local` is its path for the system.
    pub fn root(&mut self, name: &str, local: Option<&[u8]>) -> usize {
        self.inodes += 1;
        let mut row = directory(name, 0, 0);
        row.identity.ino = self.inodes;
        let directories = HashMap::from([(Vec::new(), Vec::new())]);
        self.roots.push(MemoryRoot { row, local: local.map(<[u8]>::to_vec), directories });
        self.progress = SourceProgress { finished: true, version: 1, ..self.progress };
        self.roots.len() - 1
    }

    /// Adds an entry to the directory `below` of a root, which is made if it does not exist.
    pub fn add(&mut self, root: usize, below: &[u8], row: Row) {
        if row.identity.ino == 0 {
            self.inodes += 1;
        }
        let ino = self.inodes;
        self.make(root, below);
        let mut row = row;
        row.identity.ino = if row.identity.ino == 0 { ino } else { row.identity.ino };
        self.progress.entries += 1;
        self.progress.allocated += row.amount.allocated;
        self.count(root, below, &row, u64::wrapping_add);
        if row.file_type == FileType::Directory {
            self.roots[root].directories.entry(join(below, &row.name)).or_default();
        }
        self.roots[root].directories.entry(below.to_vec()).or_default().push(row);
    }

    /// Sets the progress.
    pub fn set_progress(&mut self, progress: SourceProgress) {
        self.progress = progress;
    }

    fn make(&mut self, root: usize, below: &[u8]) {
        if self.roots[root].directories.contains_key(below) {
            return;
        }
        let (parent, name) = split(below);
        self.add(root, parent, directory(&String::from_utf8_lossy(name), 0, 0));
    }

    /// Adds the sums of a row to all directories above it, or takes them away.
    fn count(&mut self, root: usize, below: &[u8], row: &Row, operation: fn(u64, u64) -> u64) {
        let tree = &mut self.roots[root];
        let add = |above: &mut Row| {
            let amount = &mut above.amount;
            amount.apparent = operation(amount.apparent, row.amount.apparent);
            amount.allocated = operation(amount.allocated, row.amount.allocated);
            amount.entries = operation(amount.entries, row.amount.entries + 1);
            above.newest_mtime_s = above.newest_mtime_s.max(row.newest_mtime_s);
        };
        add(&mut tree.row);
        let mut path = below;
        while !path.is_empty() {
            let (parent, name) = split(path);
            let rows = tree.directories.get_mut(parent).into_iter().flatten();
            rows.filter(|above| *above.name == *name).for_each(add);
            path = parent;
        }
    }

    fn files(&self) -> impl Iterator<Item = (usize, &Vec<u8>, &Row)> {
        let directories = self.roots.iter().enumerate().flat_map(|(number, root)| {
            root.directories.iter().map(move |(below, rows)| (number, below, rows))
        });
        let rows = directories.flat_map(|(root, below, rows)| rows.iter().map(move |row| (root, below, row)));
        rows.filter(|(_, _, row)| row.file_type != FileType::Directory)
    }
}

/// Returns the path of an entry.
fn join(below: &[u8], name: &[u8]) -> Vec<u8> {
    if below.is_empty() { name.to_vec() } else { [below, b"/", name].concat() }
}

/// Splits a path into its directory and its name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

impl Source for MemorySource {
    fn roots(&mut self) -> Vec<Row> {
        self.roots.iter().map(|root| root.row.clone()).collect()
    }

    fn list(&mut self, place: &Place, _cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        let root = self.roots.get(place.root);
        let rows = root.and_then(|root| root.directories.get(&place.below)).cloned();
        rows.ok_or(SourceError::Os("open directory", Errno::NOENT))
    }

    fn row_sums(&mut self, place: Option<&Place>) -> RowSums {
        let row = |Place { root, below }: &Place| {
            let root = self.roots.get(*root)?;
            let (parent, name) = split(below);
            let row = root.directories.get(parent)?.iter().find(|row| *row.name == *name);
            if below.is_empty() { Some(&root.row) } else { row }
        };
        let row = place.and_then(row);
        let (total, growth) = (row.map(|row| row.amount), row.and_then(|row| row.growth));
        RowSums { total, growth, ..RowSums::default() }
    }

    fn progress(&self) -> SourceProgress {
        self.progress
    }

    fn stop(&mut self) {
        self.calls.push("stop".to_owned());
    }

    fn pause(&mut self, paused: bool) {
        self.calls.push(format!("pause {paused}"));
    }

    fn rescan(&mut self, place: &Place) -> Result<(), SourceError> {
        self.calls.push(format!("rescan {}", String::from_utf8_lossy(&place.below)));
        self.progress.version += 1;
        let refused = || SourceError::Other("it is in memory".to_owned());
        self.rescans.then_some(()).ok_or_else(refused)
    }

    fn removed(&mut self, gone: &[(Place, Row)]) {
        for (place, row) in gone {
            self.count(place.root, &place.below, row, u64::wrapping_sub);
            let directories = &mut self.roots[place.root].directories;
            directories.entry(place.below.clone()).or_default().retain(|other| other.name != row.name);
            self.progress.version += 1;
        }
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        _cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        let mut found: Vec<PlacedRow> = self
            .files()
            .filter(|(root, below, _)| *root == place.root && below.starts_with(&place.below))
            .map(|(root, below, row)| PlacedRow {
                place: Place { root, below: below.clone() },
                row: row.clone(),
            })
            .collect();
        found.sort_by_key(|found| (u64::MAX - found.row.amount.allocated, found.row.name.clone()));
        found.truncate(count);
        Ok(found)
    }

    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError> {
        self.calls.push(format!("search {}", search.count_max));
        let mut files = self.largest(place, usize::MAX, cancelled)?;
        progress(files.len() as u64);
        files.retain(|file| (search.admits)(&file.row));
        let mut total = Amount::default();
        files.iter().for_each(|file| total.add(&file.row.amount.with_itself()));
        files.truncate(search.count_max);
        Ok(FoundFiles { files, total })
    }

    fn sums(&mut self, key: SumKey, _cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        let mut sums: HashMap<Vec<u8>, Amount<u64>> = HashMap::new();
        for (_, _, row) in self.files() {
            let extension = row.name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
            let key = match key {
                SumKey::Extension => extension.to_vec(),
                SumKey::Owner => row.uid.unwrap_or(0).to_string().into_bytes(),
                SumKey::Age => b"older".to_vec(),
            };
            let sum = sums.entry(key).or_default();
            sum.apparent += row.amount.apparent;
            sum.allocated += row.amount.allocated;
            sum.entries += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().map(|(key, amount)| SumRow { key, amount }).collect();
        sums.sort_by_key(|sum| (u64::MAX - sum.amount.allocated, sum.key.clone()));
        Ok(sums)
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        self.roots.get(root)?.local.clone()
    }
}
