//! Merges several inventories into one: their trees follow one another, and directories, roots and
//! devices are renumbered.
//!
//! Owns the new numbers and the combined manifest. Rows are read and written a row group at a time,
//! so memory does not grow with the number of entries. Does not own the format on disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_walk::fault::point;
use parquet::errors::{ParquetError, Result as Parquet};

use crate::scan::{BUSY, Lock, create_part_dir, part_path, publish};
use fathom_inventory::Owners;
use fathom_inventory::store::{
    BatchWriter, Completeness, DirColumns, DirRow, EntryColumns, Error, ErrorRow, IMPORTED_FROM, Inventory,
    Manifest, MissingColumns, Op, OptionalColumns, PathColumns, RowBatch, RowGroup, SegmentWriter, Table,
    VERSION, errno_of,
};

/// Most rows of a chunk.
const CHUNK_ROWS: usize = 1024;

/// Merges `inventories` into the new directory `out`, and returns its manifest. `warn` is called
/// with each warning, which does not affect the inventory.
///
/// # Errors
/// If an inventory is damaged, if `out` or its `.part` exists, is being written by another process
/// or cannot be written, or once `stop` is set. `out` does not exist then.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use fathom_scans::merge::merge;
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let both = [Inventory::open(&out)?, Inventory::open(&out)?];
/// let merged = merge(&both, &temp.path().join("all.inv"), &AtomicBool::new(false), &mut |_| ())?;
/// assert_eq!(merged.entries, 2 * both[0].manifest().entries);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge(
    inventories: &[Inventory],
    out: &Path,
    stop: &AtomicBool,
    warn: &mut dyn FnMut(&[u8]),
) -> Result<Manifest, Error> {
    let (part, lock) = begin(out, warn)?;
    let merged = write(inventories, &part, stop).and_then(|manifest| {
        publish(&part, out, "")?;
        Ok(manifest)
    });
    if merged.is_err() {
        // Best effort: the first error is reported. Files that stay are in the `.part` directory.
        let _ = fs::remove_dir_all(&part);
        return merged;
    }
    lock.remove(out)?;
    merged
}

/// Creates the directory for `out` and takes its lock, which keeps scans, imports and other merges
/// out.
pub(crate) fn begin(out: &Path, warn: &mut dyn FnMut(&[u8])) -> Result<(PathBuf, Lock), Error> {
    if out.symlink_metadata().is_ok() {
        return Err(Error::new(Op::Create, out, "it exists already"));
    }
    let part = part_path(out);
    if let Err(error) = create_part_dir(&part) {
        let is_taken = error.kind() == std::io::ErrorKind::AlreadyExists;
        return Err(if is_taken { occupied(&part) } else { Error::new(Op::Create, &part, error) });
    }
    point("merge-part-made");
    // A scan that found the empty directory may have locked it first. The scan owns it then.
    let lock = Lock::take(&part, warn)?;
    point("merge-locked");
    Ok((part, lock))
}

/// Returns the reason why an existing `.part` cannot be used.
fn occupied(part: &Path) -> Error {
    match Lock::is_held(part) {
        true => Error::new(Op::Lock, part, BUSY),
        false => Error::new(Op::Create, part, "left by an interrupted run: remove it, and try again"),
    }
}

fn write(inventories: &[Inventory], part: &Path, stop: &AtomicBool) -> Result<Manifest, Error> {
    let writer =
        BatchWriter::start(SegmentWriter::new(part.to_owned(), Vec::new(), 0, optional_columns(inventories)));
    let mut merger = Merger { writer, batch: RowBatch::default(), stop, devices: DeviceNumbers::default() };
    let (mut offset, mut owners) = (IdOffset::default(), Owners::default());
    let mut read = Ok(());
    for inventory in inventories {
        read = merger.add(inventory, &mut offset).and_then(|()| {
            owners.extend(inventory.owners()?);
            Ok(())
        });
        if read.is_err() {
            break;
        }
    }
    merger.send();
    // A write error is the cause of the errors after it: report it first.
    let shelf = merger.writer.end()?;
    read?;
    let files = shelf.finish(&owners)?;
    let manifest = Manifest { files, ..combined_manifest(inventories) };
    manifest.write(part)?;
    point("merge-written");
    Ok(manifest)
}

/// Returns the optional columns that any of the inventories has. Rows of the other inventories have
/// no value in them.
fn optional_columns(inventories: &[Inventory]) -> OptionalColumns {
    inventories.iter().fold(OptionalColumns::default(), |optional_columns, one| {
        optional_columns.union(one.manifest().optional_columns)
    })
}

/// Returns the combined manifest of the inventories.
fn combined_manifest(inventories: &[Inventory]) -> Manifest {
    let manifests = || inventories.iter().map(Inventory::manifest);
    let hosts: HashSet<&str> = manifests().map(|manifest| manifest.host.as_str()).collect();
    let mut options: BTreeMap<String, String> =
        manifests().next().map_or_else(BTreeMap::new, |first| first.options.clone());
    options.retain(|name, value| manifests().all(|manifest| manifest.options.get(name) == Some(value)));
    // Times of a part are of whole seconds.
    if let Some(program) = manifests().find_map(|manifest| manifest.options.get(IMPORTED_FROM)) {
        options.insert(IMPORTED_FROM.to_owned(), program.clone());
    }
    Manifest {
        format: VERSION,
        tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: if hosts.len() == 1 { hosts.into_iter().collect() } else { "several hosts".to_owned() },
        roots: manifests().flat_map(|manifest| manifest.roots.iter().cloned()).collect(),
        options,
        optional_columns: optional_columns(inventories),
        start: manifests().map(|manifest| manifest.start).min().unwrap_or(0),
        end: manifests().map(|manifest| manifest.end).max().unwrap_or(0),
        entries: manifests().map(|manifest| manifest.entries).sum(),
        completeness: manifests()
            .fold(Completeness::default(), |sum, one| sum.merged_with(&one.completeness)),
        since: None,
        files: Vec::new(),
    }
}

/// The offsets added to the directory and root numbers of an inventory.
#[derive(Clone, Copy, Debug, Default)]
struct IdOffset {
    dirs: i64,
    roots: i32,
}

/// Maps device numbers to numbers that are unique over all machines.
#[derive(Debug, Default)]
pub(crate) struct DeviceNumbers {
    numbers: HashMap<(String, u64), u64>,
    taken: HashSet<u64>,
}

impl DeviceNumbers {
    /// Returns the number of a device that `host` has under the number `dev`.
    pub(crate) fn number(&mut self, host: &str, dev: u64) -> u64 {
        let key = (host.to_owned(), dev);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let free = std::iter::once(dev).chain(1 << 32..).find(|number| !self.taken.contains(number));
        let number = free.unwrap_or(dev);
        self.taken.insert(number);
        self.numbers.insert(key, number);
        number
    }
}

struct Merger<'a> {
    writer: BatchWriter,
    batch: RowBatch,
    stop: &'a AtomicBool,
    devices: DeviceNumbers,
}

impl Merger<'_> {
    fn send(&mut self) {
        // A failed writer returns its error from `end`.
        let _ = self.writer.send(std::mem::take(&mut self.batch));
    }

    fn send_if_full(&mut self) -> Parquet<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(refused("interrupted"));
        }
        if self.writer.is_filled(&self.batch) {
            self.send();
        }
        Ok(())
    }

    /// Adds the rows of an inventory, renumbered from `offset` on, and advances `offset`.
    fn add(&mut self, inventory: &Inventory, offset: &mut IdOffset) -> Result<(), Error> {
        let host = inventory.manifest().host.clone();
        let at = *offset;
        inventory.each(Table::Entries, |group| self.entries(group, at, &host))?;
        let mut last = 0;
        inventory.each(Table::Dirs, |group| {
            last = last.max(group.numbers("dir_id")?.or_zero().iter().copied().max().unwrap_or(0));
            self.dirs(group, at, &host)
        })?;
        inventory.each(Table::Errors, |group| self.errors(group, at))?;
        let next = at.dirs.checked_add(last).zip(i32::try_from(inventory.manifest().roots.len()).ok());
        let next =
            next.and_then(|(dirs, roots)| Some(IdOffset { dirs, roots: at.roots.checked_add(roots)? }));
        *offset = next.ok_or_else(|| inventory.refused("its numbers are too large"))?;
        Ok(())
    }

    fn entries(&mut self, group: &RowGroup<'_>, offset: IdOffset, host: &str) -> Parquet<()> {
        let (ids, devs) = (group.numbers("dir_id")?, group.numbers("dev")?);
        let mut devs: Vec<u64> =
            (0..group.rows()).filter_map(|row| devs.get(row)).map(i64::cast_unsigned).collect();
        devs.sort_unstable();
        devs.dedup();
        let renumbered: Vec<_> = devs.into_iter().map(|dev| (dev, self.devices.number(host, dev))).collect();
        let rows = EntryColumns::read(group)?;
        let mut start = 0;
        while start < group.rows() {
            let dir_id = ids.or_zero()[start];
            let run = ids.or_zero()[start..].iter().take(CHUNK_ROWS).take_while(|id| **id == dir_id).count();
            let mut chunk = rows.chunk(start..start + run)?;
            chunk.renumber_all(&renumbered);
            self.batch.rows += run;
            self.batch.text_bytes += chunk.text_bytes();
            self.batch.entries.push((renumbered_id(dir_id, offset)?, Box::new(chunk)));
            start += run;
            self.send_if_full()?;
        }
        Ok(())
    }

    fn dirs(&mut self, group: &RowGroup<'_>, offset: IdOffset, host: &str) -> Parquet<()> {
        let columns = DirColumns::read(group)?;
        for row in 0..group.rows() {
            let found = columns.row(row)?;
            let mut meta = found.meta;
            if let Some(meta) = &mut meta {
                meta.dev = self.devices.number(host, meta.dev);
                if meta.has(MissingColumns::UID) && meta.has(MissingColumns::GID) {
                    self.batch.owners.insert((meta.uid, meta.gid));
                }
            }
            let root = found.root.checked_add(offset.roots);
            self.batch.dirs.push(&DirRow {
                id: renumbered_id(found.id, offset)?,
                parent: found.parent.map(|parent| renumbered_id(parent, offset)).transpose()?,
                last: renumbered_id(found.last, offset)?,
                root: root.ok_or_else(|| refused("a number is too large"))?,
                depth: found.depth,
                name: found.name,
                path: found.path,
                meta: meta.as_ref(),
                optional_values: found.optional_values.as_ref(),
                own: &found.own,
                below: &found.below,
                scanned: found.scanned,
                state: found.state,
                errno: found.errno,
            });
            self.send_if_full()?;
        }
        Ok(())
    }

    fn errors(&mut self, group: &RowGroup<'_>, offset: IdOffset) -> Parquet<()> {
        let (ids, errnos) = (group.numbers("dir_id")?, group.numbers("errno")?);
        let (paths, ops) = (PathColumns::read(group)?, group.texts("op")?);
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        for row in 0..group.rows() {
            let dir_id = ids.get(row).map(|id| renumbered_id(id, offset)).transpose()?;
            let (name, path) = (raw.get(row).or(names.get(row)), paths.get(row));
            let op = ops.get(row).and_then(|op| std::str::from_utf8(op).ok()).unwrap_or("access");
            let errno = errno_of(errnos.get(row));
            let message = &fathom_text::strerror(errno);
            let errno = errno.raw_os_error();
            self.batch.errors.push(&ErrorRow { dir_id, name, path, op, errno, message });
            self.send_if_full()?;
        }
        Ok(())
    }
}

/// Returns a directory's new number. Number 0, which is no directory, is kept.
fn renumbered_id(dir_id: i64, offset: IdOffset) -> Parquet<i64> {
    match dir_id {
        0 => Ok(0),
        1.. => dir_id.checked_add(offset.dirs).ok_or_else(|| refused("a number is too large")),
        _ => Err(refused("a directory has an impossible number")),
    }
}

fn refused(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_two_machines_stay_apart() {
        let mut devices = DeviceNumbers::default();
        assert_eq!([devices.number("a", 7), devices.number("a", 8), devices.number("a", 7)], [7, 8, 7]);
        let other = devices.number("b", 7);
        assert!(other != 7 && other != 8 && devices.number("b", 7) == other);
        assert_eq!(devices.number("b", 9), 9);
    }

    #[test]
    fn directory_numbers_are_offset_and_zero_is_kept() {
        let offset = IdOffset { dirs: 10, roots: 1 };
        assert_eq!([renumbered_id(1, offset).unwrap(), renumbered_id(0, offset).unwrap()], [11, 0]);
        assert!(renumbered_id(-1, offset).is_err() && renumbered_id(i64::MAX, offset).is_err());
    }
}
