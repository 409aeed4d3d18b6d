//! Writes batches of rows to one file a table; at a checkpoint those files are closed, and what comes
//! goes to new ones. So what was written before a checkpoint outlives whatever happens after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use fathom_walk::{room, spawn_thread};

use super::also::Also;
use super::chunk::Chunk;
use super::dirs::Dirs;
use super::entries::Entries;
use super::error::{Error, Op};
use super::manifest::Listed;
use super::side::{Errors, Links, Names};
use super::table::{Columns, Table};
use crate::fault::point;
use crate::{OwnerKind, Owners};

/// Rows that are encoded together.
pub(crate) const GROUP_ROWS: usize = 65_536;
/// Bytes of text that are encoded together: a row group ends at whichever of both comes first.
/// Three batches are in memory at once, and a name without a byte of UTF-8 takes five times its
/// length in columns.
pub(crate) const GROUP_TEXT_BYTES: usize = 8 << 20;
/// Batches that wait to be written: one, while another is.
const WAITING: usize = 1;
/// The writing thread's stack.
const STACK_BYTES: usize = 1 << 20;
/// Address space below which batches are written by the calling thread: with a thread, three are in
/// memory, and each thread's allocator keeps blocks of its own.
const THREAD_ROOM: usize = 48 << 20;
/// Address space left for each row of a row group: its values in memory, in columns and as encoded
/// pages, and as much again for the walk.
const ROOM_PER_ROW: usize = 2048;
/// Address space left for each byte of text of a row group.
const ROOM_PER_TEXT_BYTE: usize = 16;

/// Rows on their way.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<(i64, Box<Chunk>)>,
    pub(crate) dirs: Dirs,
    pub(crate) errors: Errors,
    /// Owners and groups of directories.
    pub(crate) owners: BTreeSet<(u32, u32)>,
    /// Entries in the chunks.
    pub(crate) rows: usize,
    /// Bytes of their names and link targets.
    pub(crate) text_bytes: usize,
    /// Close the files after this.
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// What is to be known of a checkpoint, once it is on the disk.
pub(crate) type Checkpoint = Box<dyn FnOnce(&Shelf) -> Result<(), Error> + Send>;

impl Batch {
    /// The rows of the table with the most.
    fn row_count(&self) -> usize {
        self.rows.max(self.dirs.rows()).max(self.errors.rows())
    }

    fn total_text_bytes(&self) -> usize {
        self.text_bytes + self.dirs.text_bytes() + self.errors.text_bytes()
    }
}

/// Writes batches to the files of an inventory: on a thread of its own, or, where no thread can be
/// started, on the calling thread.
pub(crate) struct Writer {
    execution: Execution,
    group: GroupLimits,
}

enum Execution {
    Thread { batches: SyncSender<Batch>, thread: JoinHandle<Result<Shelf, Error>> },
    Inline(Box<Result<Shelf, Error>>),
}

/// The size at which a row group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupLimits {
    rows: usize,
    text_bytes: usize,
}

impl GroupLimits {
    /// Limits for `room` bytes of address space (RLIMIT_AS); `None` stands for no limit.
    fn within(room: Option<usize>) -> Self {
        let Some(room) = room else { return Self { rows: GROUP_ROWS, text_bytes: GROUP_TEXT_BYTES } };
        Self {
            rows: (room / ROOM_PER_ROW).clamp(GROUP_ROWS / 64, GROUP_ROWS),
            text_bytes: (room / ROOM_PER_TEXT_BYTE).clamp(GROUP_TEXT_BYTES / 64, GROUP_TEXT_BYTES),
        }
    }
}

impl Writer {
    /// Starts writing.
    pub(crate) fn start(shelf: Shelf) -> Self {
        let group = GroupLimits::within(room());
        // The files are sent once the thread runs: they would be lost with a closure that owns them
        // where it cannot be started.
        let (sender, shelves) = sync_channel::<Shelf>(1);
        let (batches, receiver) = sync_channel(WAITING);
        let work = move || shelves.recv().expect("it is sent once the thread runs").serve(&receiver);
        let execution = match spawn_thread("write", STACK_BYTES, THREAD_ROOM, work) {
            Ok(thread) => {
                // The channel has room for it; the thread receives it before any batch.
                let _ = sender.send(shelf);
                Execution::Thread { batches, thread }
            }
            Err(_no_thread) => Execution::Inline(Box::new(Ok(shelf))),
        };
        Self { execution, group }
    }

    /// Whether `batch` should be written before more is added to it.
    pub(crate) fn is_filled(&self, batch: &Batch) -> bool {
        batch.row_count() >= self.group.rows || batch.total_text_bytes() >= self.group.text_bytes
    }

    /// Hands over rows; waits while others are being written. False if writing has failed: [`Writer::end`] tells why.
    pub(crate) fn send(&mut self, batch: Batch) -> bool {
        match &mut self.execution {
            Execution::Thread { batches, .. } => batches.send(batch).is_ok(),
            Execution::Inline(shelf) => {
                if let Ok(open) = &mut **shelf
                    && let Err(error) = open.take(batch)
                {
                    **shelf = Err(error);
                }
                shelf.is_ok()
            }
        }
    }

    /// Waits until everything is written.
    pub(crate) fn end(self) -> Result<Shelf, Error> {
        match self.execution {
            Execution::Thread { batches, thread } => {
                drop(batches);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Execution::Inline(shelf) => shelf.and_then(Shelf::closed),
        }
    }
}

/// The files of an inventory.
pub(crate) struct Shelf {
    pub(crate) directory: PathBuf,
    /// Those that are closed.
    pub(crate) files: Vec<Listed>,
    pub(crate) segment: u32,
    entries: Pile<Entries>,
    dirs: Pile<Dirs>,
    errors: Pile<Errors>,
    links: Pile<Links>,
    pub(crate) users: BTreeSet<u32>,
    pub(crate) groups: BTreeSet<u32>,
}

/// A table of which there is a file, once there are rows.
struct Pile<C> {
    table: &'static str,
    also: Also,
    columns: C,
    file: Option<(String, Table<C>)>,
}

impl<C: Columns> Pile<C> {
    fn new(table: &'static str, also: Also) -> Self {
        Self { table, also, columns: C::default(), file: None }
    }

    fn open(&mut self, directory: &Path, segment: u32) -> Result<&mut Table<C>, Error> {
        if self.file.is_none() {
            let name = format!("{}-{segment:05}.parquet", self.table);
            let path = directory.join(&name);
            let table =
                Table::create(&path, self.also).map_err(|error| Error::new(Op::Create, &path, error))?;
            self.file = Some((name, table));
        }
        Ok(&mut self.file.as_mut().expect("there is one now").1)
    }

    fn write(&mut self, directory: &Path, segment: u32) -> Result<(), Error> {
        if self.columns.rows() == 0 {
            return Ok(());
        }
        let mut columns = std::mem::take(&mut self.columns);
        let written = self.open(directory, segment)?.write(&mut columns);
        self.columns = columns;
        written.map_err(|error| Error::new(Op::Write, directory, error))
    }

    fn close(&mut self, directory: &Path) -> Result<Option<Listed>, Error> {
        let Some((name, table)) = self.file.take() else { return Ok(None) };
        let facts = table.finish().map_err(|error| Error::new(Op::Write, &directory.join(&name), error))?;
        Ok(Some(Listed::new(name, self.table, &facts)))
    }
}

impl Shelf {
    /// With `files` already, of `segment` segments, and with the columns `also`.
    pub(crate) fn new(directory: PathBuf, files: Vec<Listed>, segment: u32, also: Also) -> Self {
        Self {
            directory,
            files,
            segment,
            entries: Pile::new("entries", also),
            dirs: Pile::new("dirs", also),
            errors: Pile::new("errors", also),
            links: Pile::new("links", also),
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    fn serve(mut self, batches: &Receiver<Batch>) -> Result<Self, Error> {
        for batch in batches {
            self.take(batch)?;
        }
        self.closed()
    }

    fn closed(mut self) -> Result<Self, Error> {
        self.close()?;
        Ok(self)
    }

    fn take(&mut self, batch: Batch) -> Result<(), Error> {
        for (dir_id, chunk) in batch.entries {
            self.note(dir_id, &chunk);
            self.entries.columns.extend(dir_id, &chunk);
        }
        for (uid, gid) in batch.owners {
            self.users.insert(uid);
            self.groups.insert(gid);
        }
        (self.dirs.columns, self.errors.columns) = (batch.dirs, batch.errors);
        let (directory, segment) = (&self.directory, self.segment);
        self.entries.write(directory, segment)?;
        self.dirs.write(directory, segment)?;
        self.errors.write(directory, segment)?;
        if self.links.columns.rows() >= GROUP_ROWS {
            self.links.write(directory, segment)?;
        }
        let Some(checkpoint) = batch.checkpoint else { return Ok(()) };
        self.close()?;
        checkpoint(self)
    }

    /// Notes owners, and names that share an inode.
    fn note(&mut self, dir_id: i64, chunk: &Chunk) {
        let mut last = None;
        for (row, ..) in chunk.iter().filter(|(row, ..)| row.errno == 0) {
            if last != Some((row.uid, row.gid)) {
                last = Some((row.uid, row.gid));
                self.users.insert(row.uid);
                self.groups.insert(row.gid);
            }
            if row.nlink > 1 {
                self.links.columns.push(dir_id, row);
            }
        }
    }

    /// Closes the files of this segment.
    fn close(&mut self) -> Result<(), Error> {
        let directory = &self.directory;
        self.links.write(directory, self.segment)?;
        let closed = [
            self.entries.close(directory)?,
            self.dirs.close(directory)?,
            self.errors.close(directory)?,
            self.links.close(directory)?,
        ];
        self.files.extend(closed.into_iter().flatten());
        self.segment += 1;
        point("segment-closed");
        Ok(())
    }

    /// Writes what is known at the end only, and gives each table a file, if it has none; all files.
    pub(crate) fn finish(mut self, owners: &Owners) -> Result<Vec<Listed>, Error> {
        let also = Also::default();
        let (mut users, mut groups) = (Pile::<Names>::new("users", also), Pile::<Names>::new("groups", also));
        owners.prepare(OwnerKind::User, self.users.iter().copied());
        owners.prepare(OwnerKind::Group, self.groups.iter().copied());
        self.users
            .iter()
            .for_each(|uid| users.columns.push(*uid, owners.name(OwnerKind::User, *uid).as_deref()));
        self.groups
            .iter()
            .for_each(|gid| groups.columns.push(*gid, owners.name(OwnerKind::Group, *gid).as_deref()));
        let (directory, segment) = (self.directory.clone(), self.segment);
        for pile in [&mut users, &mut groups] {
            pile.open(&directory, segment)?;
            pile.write(&directory, segment)?;
            self.files.extend(pile.close(&directory)?);
        }
        self.open_missing()?;
        self.close()?;
        Ok(self.files)
    }

    fn open_missing(&mut self) -> Result<(), Error> {
        let (directory, segment) = (&self.directory, self.segment);
        let has = |table: &str| self.files.iter().any(|file| file.table == table);
        let missing = ["entries", "dirs", "errors", "links"].map(|table| !has(table));
        if missing[0] {
            self.entries.open(directory, segment)?;
        }
        if missing[1] {
            self.dirs.open(directory, segment)?;
        }
        if missing[2] {
            self.errors.open(directory, segment)?;
        }
        if missing[3] {
            self.links.open(directory, segment)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_shrink_with_the_address_space_that_is_left() {
        let rows = |room| GroupLimits::within(room).rows;
        assert_eq!([None, Some(usize::MAX), Some(1 << 30)].map(rows), [GROUP_ROWS; 3]);
        assert_eq!([Some(16 << 20), Some(4 << 20), Some(0)].map(rows), [8192, 2048, 1024]);
        let text_bytes = |room| GroupLimits::within(room).text_bytes;
        assert_eq!([None, Some(16 << 20), Some(0)].map(text_bytes), [8 << 20, 1 << 20, 128 << 10]);
    }
}
