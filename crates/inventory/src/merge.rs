//! One inventory of several: each tree as it was scanned, one after the other, with numbers of its
//! own.
//!
//! Owns: numbers of directories, trees and devices, and what the manifest says of all. Rows are
//! read and written a group at a time, so memory does not grow with entries. Does not own what an
//! inventory looks like on the disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::{ParquetError, Result as Parquet};

use crate::Owners;
use crate::fault::point;
use crate::scan::{BUSY, Lock, make, part_of, publish};
use crate::store::{
    Also, Batch, Completeness, Dir, Error, Failure, Group, Inventory, Manifest, Metas, Numbers, Op, Paths,
    Row, Rows, Shelf, State, Sums, Table, Texts, VERSION, Writer, errno_of,
};

/// Rows of entries that are handed over together.
const CHUNK_ROWS: usize = 1024;

/// Merges `inventories` into the new directory `out`, and returns its manifest. `warn` gets what is
/// wrong and takes nothing from the inventory.
///
/// # Errors
/// If an inventory is damaged, if `out` or its `.part` exists, is being written by another process
/// or cannot be written, or once `stop` is set. Nothing is left of `out` then.
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
        // The error says what went wrong; files that stay are in a directory that is called
        // `.part`.
        let _ = fs::remove_dir_all(&part);
        return merged;
    }
    lock.remove(out)?;
    merged
}

/// Makes the directory for `out`, and takes the lock that keeps scans and other merges from it.
fn begin(out: &Path, warn: &mut dyn FnMut(&[u8])) -> Result<(PathBuf, Lock), Error> {
    if out.symlink_metadata().is_ok() {
        return Err(Error::new(Op::Create, out, "it exists, and merge replaces nothing"));
    }
    let part = part_of(out);
    if let Err(error) = make(&part) {
        let is_taken = error.kind() == std::io::ErrorKind::AlreadyExists;
        return Err(if is_taken { taken(&part) } else { Error::new(Op::Create, &part, error) });
    }
    point("merge-part-made");
    // A scan that found the empty directory may have locked it first: it is that scan's then.
    let lock = Lock::take(&part, warn)?;
    point("merge-locked");
    Ok((part, lock))
}

/// Returns the reason why an existing `.part` cannot be used.
fn taken(part: &Path) -> Error {
    match Lock::is_held(part) {
        true => Error::new(Op::Lock, part, BUSY),
        false => {
            Error::new(Op::Create, part, "it is left from a run that did not end: remove it, and merge again")
        }
    }
}

fn write(inventories: &[Inventory], part: &Path, stop: &AtomicBool) -> Result<Manifest, Error> {
    let writer = Writer::start(Shelf::new(part.to_owned(), Vec::new(), 0, also(inventories)));
    let mut merging = Merging { writer, batch: Batch::default(), stop, devices: Devices::default() };
    let (mut offset, mut owners) = (Offset::default(), Owners::default());
    let mut read = Ok(());
    for inventory in inventories {
        read = merging.add(inventory, &mut offset).and_then(|()| {
            owners.extend(Owners::of(inventory)?);
            Ok(())
        });
        if read.is_err() {
            break;
        }
    }
    merging.send();
    // A write error is the cause of the errors after it: report it first.
    let shelf = merging.writer.end()?;
    read?;
    let files = shelf.finish(&owners)?;
    let manifest = Manifest { files, ..described(inventories) };
    manifest.write(part)?;
    point("merge-written");
    Ok(manifest)
}

/// Returns the columns that any of the inventories has because they were asked for. Rows of the
/// others have no value in them.
fn also(inventories: &[Inventory]) -> Also {
    inventories.iter().fold(Also::default(), |also, one| also.union(one.manifest().also))
}

/// Returns the combined manifest of all inventories.
fn described(inventories: &[Inventory]) -> Manifest {
    let manifests = || inventories.iter().map(Inventory::manifest);
    let hosts: HashSet<&str> = manifests().map(|manifest| manifest.host.as_str()).collect();
    let mut options: BTreeMap<String, String> =
        manifests().next().map_or_else(BTreeMap::new, |first| first.options.clone());
    options.retain(|name, value| manifests().all(|manifest| manifest.options.get(name) == Some(value)));
    Manifest {
        format: VERSION,
        tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: if hosts.len() == 1 { hosts.into_iter().collect() } else { "several hosts".to_owned() },
        roots: manifests().flat_map(|manifest| manifest.roots.iter().cloned()).collect(),
        options,
        also: also(inventories),
        start: manifests().map(|manifest| manifest.start).min().unwrap_or(0),
        end: manifests().map(|manifest| manifest.end).max().unwrap_or(0),
        entries: manifests().map(|manifest| manifest.entries).sum(),
        completeness: manifests().fold(Completeness::default(), |sum, one| sum.and(&one.completeness)),
        since: None,
        files: Vec::new(),
    }
}

/// The offsets added to the directory and root numbers of an inventory.
#[derive(Clone, Copy, Debug, Default)]
struct Offset {
    dirs: i64,
    roots: i32,
}

/// Numbers of devices: of two machines, one number means two devices.
#[derive(Debug, Default)]
struct Devices {
    numbers: HashMap<(String, u64), u64>,
    taken: HashSet<u64>,
}

impl Devices {
    fn number(&mut self, host: &str, dev: u64) -> u64 {
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

struct Merging<'a> {
    writer: Writer,
    batch: Batch,
    stop: &'a AtomicBool,
    devices: Devices,
}

impl Merging<'_> {
    fn send(&mut self) {
        // A writer that has failed says why at its end.
        let _ = self.writer.send(std::mem::take(&mut self.batch));
    }

    fn relieve(&mut self) -> Parquet<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(refused("it was interrupted"));
        }
        if self.writer.is_filled(&self.batch) {
            self.send();
        }
        Ok(())
    }

    /// Adds an inventory behind those before it.
    fn add(&mut self, inventory: &Inventory, offset: &mut Offset) -> Result<(), Error> {
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
        let next = next.and_then(|(dirs, roots)| Some(Offset { dirs, roots: at.roots.checked_add(roots)? }));
        *offset = next.ok_or_else(|| inventory.refused("its numbers are too large"))?;
        Ok(())
    }

    fn entries(&mut self, group: &Group<'_>, offset: Offset, host: &str) -> Parquet<()> {
        let (ids, devs) = (group.numbers("dir_id")?, group.numbers("dev")?);
        let mut devs: Vec<u64> =
            (0..group.rows()).filter_map(|row| devs.get(row)).map(i64::cast_unsigned).collect();
        devs.sort_unstable();
        devs.dedup();
        let renumbered: Vec<_> = devs.into_iter().map(|dev| (dev, self.devices.number(host, dev))).collect();
        let rows = Rows::read(group)?;
        let mut start = 0;
        while start < group.rows() {
            let dir_id = ids.or_zero()[start];
            let run = ids.or_zero()[start..].iter().take(CHUNK_ROWS).take_while(|id| **id == dir_id).count();
            let mut chunk = rows.chunk(start..start + run)?;
            chunk.renumber_all(&renumbered);
            self.batch.rows += run;
            self.batch.text_bytes += chunk.text_bytes();
            self.batch.entries.push((moved(dir_id, offset)?, Box::new(chunk)));
            start += run;
            self.relieve()?;
        }
        Ok(())
    }

    fn dirs(&mut self, group: &Group<'_>, offset: Offset, host: &str) -> Parquet<()> {
        let columns = DirColumns::read(group)?;
        for row in 0..group.rows() {
            let mut meta = columns.metas.get(row);
            if let Some(meta) = &mut meta {
                meta.dev = self.devices.number(host, meta.dev);
                self.batch.owners.insert((meta.uid, meta.gid));
            }
            let (errno, extra) = (columns.errno.get(row), columns.metas.extra(row));
            let known = meta.as_ref().map(|meta| Row::new(fathom_walk::FileType::Directory, Ok(meta)));
            let number = |column: &Numbers| moved(column.or_zero()[row], offset);
            let parent = columns.parent.get(row).map(|parent| moved(parent, offset)).transpose()?;
            let (own, below) = (sums(&columns.own, row), sums(&columns.below, row));
            let narrow = |number: i64| i32::try_from(number).map_err(|_| refused("a number is too large"));
            let root = narrow(columns.root.or_zero()[row])?.checked_add(offset.roots);
            self.batch.dirs.push(&Dir {
                id: number(&columns.pre)?,
                parent,
                last: number(&columns.post)?,
                root: root.ok_or_else(|| refused("a number is too large"))?,
                depth: narrow(columns.depth.or_zero()[row])?,
                name: columns.name(row),
                path: columns.paths.get(row),
                meta: known.as_ref(),
                extra: extra.as_ref(),
                own: &own,
                below: &below,
                scanned: columns.scanned.or_zero()[row],
                state: columns.state(row).ok_or_else(|| refused("a directory has an impossible state"))?,
                errno: errno.and_then(|errno| i32::try_from(errno).ok()),
            });
            self.relieve()?;
        }
        Ok(())
    }

    fn errors(&mut self, group: &Group<'_>, offset: Offset) -> Parquet<()> {
        let (ids, errnos) = (group.numbers("dir_id")?, group.numbers("errno")?);
        let (paths, ops) = (Paths::read(group)?, group.texts("op")?);
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        for row in 0..group.rows() {
            let dir_id = ids.get(row).map(|id| moved(id, offset)).transpose()?;
            let (name, path) = (raw.get(row).or(names.get(row)), paths.get(row));
            // Format 1 has the operand in the path alone.
            let name = if dir_id.is_none() { name.or(path) } else { name };
            let op = ops.get(row).and_then(|op| std::str::from_utf8(op).ok()).unwrap_or("access");
            let errno = errno_of(errnos.get(row));
            let message = &fathom_text::words(errno);
            let errno = errno.raw_os_error();
            self.batch.errors.push(&Failure { dir_id, name, path, op, errno, message });
            self.relieve()?;
        }
        Ok(())
    }
}

/// A directory's number behind those of earlier inventories; 0 is none.
fn moved(dir_id: i64, offset: Offset) -> Parquet<i64> {
    match dir_id {
        0 => Ok(0),
        1.. => dir_id.checked_add(offset.dirs).ok_or_else(|| refused("a number is too large")),
        _ => Err(refused("a directory has an impossible number")),
    }
}

fn refused(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

/// The columns of `dirs`.
struct DirColumns {
    pre: Numbers,
    post: Numbers,
    parent: Numbers,
    root: Numbers,
    depth: Numbers,
    names: [Texts; 2],
    paths: Paths,
    states: Texts,
    metas: Metas,
    own: SumColumns,
    below: SumColumns,
    scanned: Numbers,
    errno: Numbers,
}

/// Counts of files, directories and others, bytes, blocks; the latest modification and change.
type SumColumns = ([Numbers; 5], Vec<Numbers>);

impl DirColumns {
    fn read(group: &Group<'_>) -> Parquet<Self> {
        let number = |name| group.numbers(name);
        let own = [
            number("n_files")?,
            number("n_dirs")?,
            number("n_other")?,
            number("sum_size")?,
            number("sum_blocks")?,
        ];
        let below = [
            number("t_files")?,
            number("t_dirs")?,
            number("t_other")?,
            number("t_size")?,
            number("t_blocks")?,
        ];
        Ok(Self {
            pre: number("pre")?,
            post: number("post")?,
            parent: number("parent_id")?,
            root: number("root")?,
            depth: number("depth")?,
            names: [group.texts("name")?, group.texts("name_raw")?],
            paths: Paths::read(group)?,
            states: group.texts("state")?,
            metas: Metas::read(group)?,
            own: (own, vec![number("max_mtime")?, number("max_ctime")?]),
            below: (below, vec![number("t_max_mtime")?]),
            scanned: number("scanned")?,
            errno: number("errno")?,
        })
    }

    fn name(&self, row: usize) -> &[u8] {
        self.names[1].get(row).or(self.names[0].get(row)).unwrap_or_default()
    }

    fn state(&self, row: usize) -> Option<State> {
        self.states.get(row).and_then(State::from_word)
    }
}

fn sums((numbers, times): &SumColumns, row: usize) -> Sums {
    let [files, dirs, others, size, blocks] = numbers.each_ref().map(|column| column.or_zero()[row]);
    let time = |at: usize| times.get(at).and_then(|column| column.get(row));
    Sums {
        files: files.cast_unsigned(),
        dirs: dirs.cast_unsigned(),
        others: others.cast_unsigned(),
        size,
        blocks: blocks.cast_unsigned(),
        modified: time(0),
        changed: time(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_two_machines_stay_apart() {
        let mut devices = Devices::default();
        assert_eq!([devices.number("a", 7), devices.number("a", 8), devices.number("a", 7)], [7, 8, 7]);
        let other = devices.number("b", 7);
        assert!(other != 7 && other != 8 && devices.number("b", 7) == other);
        assert_eq!(devices.number("b", 9), 9);
    }

    #[test]
    fn numbers_move_and_none_stays_none() {
        let offset = Offset { dirs: 10, roots: 1 };
        assert_eq!([moved(1, offset).unwrap(), moved(0, offset).unwrap()], [11, 0]);
        assert!(moved(-1, offset).is_err() && moved(i64::MAX, offset).is_err());
    }
}
