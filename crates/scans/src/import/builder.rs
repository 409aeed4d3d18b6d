//! Makes an inventory of directories and entries that come in the order of a walk: a directory is
//! entered, its entries and subdirectories follow, and it is left.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fathom_walk::Errno;

use super::ImportError;
use crate::merge::begin;
use crate::scan::{Lock, publish, seconds};
use fathom_inventory::Owners;
use fathom_inventory::store::{
    BatchWriter, Completeness, DirRow, DirState, EntryRow, EntryTotals, Error, ErrorRow, IMPORTED_FROM,
    Manifest, ManifestRoot, MissingColumns, Op, OptionalColumns, RowBatch, RowChunk, SegmentWriter,
    TREE_PATH_BYTES_MAX, VERSION, hash, stored_path,
};

/// Most directories that contain one another. Each takes some hundred bytes while it is open.
const LEVELS_MAX: usize = 1 << 17;
/// Most trees.
const ROOTS_MAX: usize = 1 << 16;
/// Most bytes of a name, which the kernel limits to 255, and of the path of a root.
pub(super) const NAME_BYTES_MAX: usize = 65_535;
/// Most names of open directories that are remembered, to find two of one name: 64 MiB.
const NAMES_MAX: usize = 4 << 20;
/// Entries of a directory that are sorted by name, as a scan does.
const CHUNK_ROWS: usize = 1024;
/// The error of what another program could not read. Its output has no number.
const UNKNOWN_ERROR: Errno = Errno::IO;

/// Where the contents of an inventory come from.
#[derive(Debug, Default)]
pub(super) struct ImportOrigin {
    /// The program that wrote the input, with its version.
    pub(super) program: String,
    /// The time of its scan, in seconds since 1970, if the input has it.
    pub(super) scanned: Option<i64>,
}

/// An inventory that is being made.
pub(super) struct InventoryBuilder {
    out: PathBuf,
    part: PathBuf,
    lock: Lock,
    writer: BatchWriter,
    batch: RowBatch,
    /// The open directories, the innermost last.
    open: Vec<ImportedDir>,
    /// The number of names that they remember.
    names: usize,
    /// The path of the innermost open directory.
    path: Vec<u8>,
    /// Entries of the innermost open directory that have not been added to the batch.
    pending: Vec<PendingEntry>,
    next_id: i64,
    roots: Vec<Vec<u8>>,
    entries: u64,
    completeness: Completeness,
    /// The time at which directories were read, in microseconds since 1970.
    scanned: i64,
}

struct ImportedDir {
    id: i64,
    /// The start of its name in the path, and the length of the path above it.
    name: usize,
    above: usize,
    row: EntryRow,
    own: EntryTotals,
    below: EntryTotals,
    /// The hashes of the names in it so far, as far as all of them are known.
    names: HashSet<u64>,
}

struct PendingEntry {
    name: Vec<u8>,
    row: EntryRow,
}

/// The reason why input is refused.
pub(super) type Refused = &'static str;

/// The reason that stands for a write error, which [`InventoryBuilder::abandon`] returns.
const NOT_WRITTEN: Refused = "the inventory cannot be written";

impl InventoryBuilder {
    /// Creates the directory for the inventory `out`.
    pub(super) fn begin(out: &Path, warn: &mut dyn FnMut(&[u8])) -> Result<Self, Error> {
        let (part, lock) = begin(out, warn)?;
        let segments = SegmentWriter::new(part.clone(), Vec::new(), 0, OptionalColumns::default());
        Ok(Self {
            out: out.to_owned(),
            part,
            lock,
            writer: BatchWriter::start(segments),
            batch: RowBatch::default(),
            open: Vec::new(),
            names: 0,
            path: Vec::new(),
            pending: Vec::new(),
            next_id: 1,
            roots: Vec::new(),
            entries: 0,
            completeness: Completeness::default(),
            scanned: 0,
        })
    }

    /// Sets the time at which the directories were read, in seconds since 1970.
    pub(super) fn set_scanned(&mut self, sec: i64) {
        self.scanned = sec.saturating_mul(1_000_000);
    }

    /// Returns the directory in which the inventory is made.
    pub(super) fn part(&self) -> &Path {
        &self.part
    }

    /// Enters a directory. Without an open directory, it is the root of a tree, and `name` its
    /// path.
    pub(super) fn enter(&mut self, name: &[u8], row: EntryRow) -> Result<(), Refused> {
        self.check_name(name)?;
        self.check_new(name)?;
        if self.open.len() >= LEVELS_MAX {
            return Err("directories are nested too deeply");
        }
        self.flush_pending()?;
        self.entries += 1;
        let above = self.path.len();
        match self.open.last_mut() {
            Some(parent) => parent.own.dirs += 1,
            None => self.roots.push(name.to_vec()),
        }
        if above > 0 && !self.path.ends_with(b"/") {
            self.path.push(b'/');
        }
        let start = self.path.len();
        self.path.extend_from_slice(name);
        if row.has(MissingColumns::UID) && row.has(MissingColumns::GID) {
            self.batch.owners.insert((row.uid, row.gid));
        }
        let (own, below) = (EntryTotals::default(), EntryTotals::default());
        self.open.push(ImportedDir {
            id: self.next_id,
            name: start,
            above,
            row,
            own,
            below,
            names: HashSet::new(),
        });
        self.next_id += 1;
        Ok(())
    }

    /// Changes the metadata of the innermost open directory.
    pub(super) fn with_row(&mut self, change: impl FnOnce(&mut EntryRow)) {
        if let Some(open) = self.open.last_mut() {
            change(&mut open.row);
        }
    }

    /// Adds bytes to the sums of the innermost open directory for which the input has no entries.
    pub(super) fn add_unlisted(&mut self, size: i64) {
        if let Some(open) = self.open.last_mut() {
            open.own.add(&EntryTotals { size, ..EntryTotals::default() });
        }
    }

    /// Adds an entry that is not a directory to the innermost open directory. Without one, it is a
    /// root, and `name` its path.
    pub(super) fn entry(&mut self, name: &[u8], row: EntryRow) -> Result<(), Refused> {
        self.check_name(name)?;
        self.check_new(name)?;
        if self.open.is_empty() {
            self.roots.push(name.to_vec());
        }
        self.entries += 1;
        if row.errno != 0 {
            self.completeness.unknown_entries += 1;
            self.record_error("stat", Some(name));
        }
        self.pending.push(PendingEntry { name: name.to_vec(), row });
        if self.pending.len() < CHUNK_ROWS && !self.open.is_empty() { Ok(()) } else { self.flush_pending() }
    }

    /// Leaves the innermost open directory. The error is the reason why it is not complete, if
    /// there was one.
    pub(super) fn leave(&mut self, state: DirState, errno: Option<Errno>) -> Result<(), Refused> {
        self.flush_pending()?;
        if errno.is_some() {
            self.record_error("read", None);
        }
        let parent = self.open.len().checked_sub(2).map(|at| self.open[at].id);
        let Some(mut dir) = self.open.pop() else { return Ok(()) };
        self.names -= dir.names.len();
        self.completeness.count(state);
        dir.below.add(&dir.own);
        if dir.row.errno == 0 {
            dir.below.blocks = dir.below.blocks.saturating_add(dir.row.blocks);
            dir.below.max_mtime = dir.below.max_mtime.max(dir.row.mtime());
        }
        self.batch.dirs.push(&DirRow {
            id: dir.id,
            parent,
            last: self.next_id - 1,
            root: (self.roots.len() - 1) as i32,
            depth: self.open.len() as i32,
            name: &self.path[dir.name..],
            path: stored_path(&self.path),
            meta: Some(&dir.row).filter(|row| row.errno == 0),
            optional_values: None,
            own: &dir.own,
            below: &dir.below,
            scanned: self.scanned,
            state,
            errno: errno.map(Errno::raw_os_error),
        });
        self.path.truncate(dir.above);
        if let Some(above) = self.open.last_mut() {
            above.below.add(&dir.below);
        }
        self.send_if_full()
    }

    fn check_name(&self, name: &[u8]) -> Result<(), Refused> {
        let is_root = self.open.is_empty();
        if name.is_empty() || name.contains(&0) || name.len() > NAME_BYTES_MAX {
            return Err("an entry has an impossible name");
        }
        if !is_root && (name.contains(&b'/') || name == b"." || name == b"..") {
            return Err("an entry has an impossible name");
        }
        if self.path.len() + name.len() >= TREE_PATH_BYTES_MAX {
            return Err("a path is too long");
        }
        if is_root && self.roots.len() >= ROOTS_MAX { Err("there are too many trees") } else { Ok(()) }
    }

    /// Checks that the innermost open directory has no other entry of this name, as far as
    /// [`NAMES_MAX`] suffices.
    fn check_new(&mut self, name: &[u8]) -> Result<(), Refused> {
        let Some(dir) = self.open.last_mut().filter(|_| self.names < NAMES_MAX) else { return Ok(()) };
        self.names += 1;
        if dir.names.insert(hash(name)) { Ok(()) } else { Err("a directory has two entries of one name") }
    }

    /// Records that the program could not read an entry of the innermost open directory, or the
    /// directory itself.
    fn record_error(&mut self, op: &str, name: Option<&[u8]>) {
        let mut path = self.path.clone();
        if let Some(name) = name {
            if !path.is_empty() && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        self.batch.errors.push(&ErrorRow {
            dir_id: self.open.last().map(|open| open.id),
            name,
            path: stored_path(&path),
            op,
            errno: UNKNOWN_ERROR.raw_os_error(),
            message: b"the program that wrote the imported file could not read it",
        });
    }

    /// Adds the pending entries to the batch, in the order of their names.
    fn flush_pending(&mut self) -> Result<(), Refused> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.pending.sort_by(|one, two| one.name.cmp(&two.name));
        let mut chunk = Box::<RowChunk>::default();
        for entry in self.pending.drain(..) {
            chunk.push_row(entry.row, &entry.name, b"");
        }
        let dir_id = self.open.last_mut().map_or(0, |open| {
            open.own.add(&chunk.sums);
            open.id
        });
        self.batch.rows += chunk.row_count();
        self.batch.text_bytes += chunk.text_bytes();
        self.batch.entries.push((dir_id, chunk));
        self.send_if_full()
    }

    fn send_if_full(&mut self) -> Result<(), Refused> {
        if self.writer.is_filled(&self.batch) && !self.writer.send(std::mem::take(&mut self.batch)) {
            return Err(NOT_WRITTEN);
        }
        Ok(())
    }

    /// Ends the inventory and gives it its name. Every directory has to have been left.
    pub(super) fn finish(mut self, origin: &ImportOrigin, source: &str) -> Result<Manifest, Error> {
        let batch = std::mem::take(&mut self.batch);
        // A failed writer returns its error from `end`.
        let _ = self.writer.send(batch);
        let (part, out, lock) = (self.part, self.out, self.lock);
        let now = seconds(SystemTime::now());
        let mut manifest = Manifest {
            format: VERSION,
            tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
            host: "unknown".to_owned(),
            roots: self.roots.iter().map(|root| manifest_root(root)).collect(),
            options: BTreeMap::from([
                (IMPORTED_FROM.to_owned(), origin.program.clone()),
                ("import-source".to_owned(), source.to_owned()),
            ]),
            optional_columns: OptionalColumns::default(),
            start: origin.scanned.unwrap_or(now),
            end: origin.scanned.unwrap_or(now),
            entries: self.entries,
            completeness: self.completeness,
            since: None,
            files: Vec::new(),
        };
        let written = self.writer.end().and_then(|writer| {
            manifest.files = writer.finish(&Owners::default())?;
            manifest.write(&part)?;
            publish(&part, &out, "")
        });
        if let Err(error) = written {
            // Best effort: the first error is reported.
            let _ = fs::remove_dir_all(&part);
            return Err(error);
        }
        lock.remove(&out)?;
        Ok(manifest)
    }

    /// Removes what was written. Returns the error of a failed write.
    pub(super) fn abandon(self) -> Result<(), ImportError> {
        let written = self.writer.end();
        fs::remove_dir_all(&self.part).map_err(|error| Error::new(Op::Remove, &self.part, error))?;
        written.map(drop).map_err(ImportError::from)
    }
}

fn manifest_root(path: &[u8]) -> ManifestRoot {
    let path = std::ffi::CString::new(path).unwrap_or_default();
    crate::scan::manifest_root(&path)
}
