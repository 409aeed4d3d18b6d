//! Writes batches of rows to one file for each table. At a checkpoint the files are closed, and
//! later rows go to a new segment of files. So a crash after a checkpoint leaves the rows before it
//! intact.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use fathom_walk::fault::point;
use fathom_walk::{address_space_left, spawn_thread};

use super::chunk::{MissingColumns, RowChunk};
use super::column::Int64Buffer;
use super::copied_group::CopiedGroup;
use super::dirs::DirsBuffer;
use super::entries::{DIR_ID, EntriesBuffer};
use super::error::{Error, Op};
use super::manifest::ManifestFile;
use super::optional::OptionalColumns;
use super::parquet_writer::{ParquetWriter, TableBuffer};
use super::small_tables::{ErrorsBuffer, LinkRow, LinksBuffer, OwnersBuffer};
use crate::owners::{OwnerKind, Owners};

/// Most rows of a row group.
pub const GROUP_ROWS: usize = 65_536;
/// Most bytes of text in a row group, which ends at the first of both limits. Three batches are in
/// memory at once, and a name without any UTF-8 takes five times its length in the columns.
pub const GROUP_TEXT_BYTES: usize = 8 << 20;
/// Batches that wait in the channel while another is written.
const WAITING: usize = 1;
/// The stack size of the writing thread.
const STACK_BYTES: usize = 1 << 20;
/// Free address space below which the calling thread writes: with a thread, three batches are in
/// memory, and the allocator keeps blocks for each thread.
const THREAD_ROOM: usize = 48 << 20;
/// Address space for each row of a row group: its values in memory, in columns and in encoded
/// pages, and as much again for the walk.
const ROOM_PER_ROW: usize = 2048;
/// Address space for each byte of text of a row group.
const ROOM_PER_TEXT_BYTE: usize = 16;

/// Rows that are passed to the writer.
#[derive(Default)]
pub struct RowBatch {
    /// Rows of `entries`, each chunk with the number of its directory.
    pub entries: Vec<(i64, Box<RowChunk>)>,
    /// Rows of `dirs`.
    pub dirs: DirsBuffer,
    /// Rows of `errors`.
    pub errors: ErrorsBuffer,
    /// The owners and groups of the directories.
    pub owners: BTreeSet<(u32, u32)>,
    /// A row group of entries after the row groups of the chunks.
    pub copied: Option<CopiedGroup>,
    /// The number of entries in the chunks.
    pub rows: usize,
    /// The number of bytes of their names and link targets.
    pub text_bytes: usize,
    /// Closes the segment after the rows, if present.
    pub checkpoint: Option<CheckpointFn>,
}

/// A function that is called once the segment is closed and synced.
pub(crate) type CheckpointFn = Box<dyn FnOnce(&SegmentWriter) -> Result<(), Error> + Send>;

impl RowBatch {
    /// Returns the number of rows of the largest table.
    fn row_count(&self) -> usize {
        self.rows.max(self.dirs.rows()).max(self.errors.rows())
    }

    fn total_text_bytes(&self) -> usize {
        self.text_bytes + self.dirs.text_bytes() + self.errors.text_bytes()
    }
}

/// Writes batches to the files of an inventory: on a thread of its own, or, where no thread can be
/// started, on the calling thread.
pub struct BatchWriter {
    mode: WriterMode,
    limits: RowGroupLimits,
}

enum WriterMode {
    Thread { batches: SyncSender<RowBatch>, thread: JoinHandle<Result<SegmentWriter, Error>> },
    Inline(Box<Result<SegmentWriter, Error>>),
}

/// The size at which a row group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowGroupLimits {
    rows: usize,
    text_bytes: usize,
}

impl RowGroupLimits {
    /// Limits for `room` bytes of address space (RLIMIT_AS); `None` stands for no limit.
    fn within(room: Option<usize>) -> Self {
        let Some(room) = room else { return Self { rows: GROUP_ROWS, text_bytes: GROUP_TEXT_BYTES } };
        Self {
            rows: (room / ROOM_PER_ROW).clamp(GROUP_ROWS / 64, GROUP_ROWS),
            text_bytes: (room / ROOM_PER_TEXT_BYTE).clamp(GROUP_TEXT_BYTES / 64, GROUP_TEXT_BYTES),
        }
    }
}

impl BatchWriter {
    /// Starts the writer.
    pub fn start(segments: SegmentWriter) -> Self {
        let limits = RowGroupLimits::within(address_space_left());
        // The files are sent to the thread once it runs. If the closure owned them and the thread
        // could not be started, they would be lost.
        let (sender, receiver) = sync_channel::<SegmentWriter>(1);
        let (batches, waiting) = sync_channel(WAITING);
        let work = move || receiver.recv().expect("it is sent once the thread runs").run(&waiting);
        let mode = match spawn_thread("write", STACK_BYTES, THREAD_ROOM, work) {
            Ok(thread) => {
                // The channel has room, and the thread receives the files before any batch.
                let _ = sender.send(segments);
                WriterMode::Thread { batches, thread }
            }
            Err(_no_thread) => WriterMode::Inline(Box::new(Ok(segments))),
        };
        Self { mode, limits }
    }

    /// Returns whether `batch` has to be written before more rows are added to it.
    pub fn is_filled(&self, batch: &RowBatch) -> bool {
        batch.row_count() >= self.limits.rows || batch.total_text_bytes() >= self.limits.text_bytes
    }

    /// Writes a batch, after waiting for the batches before it. Returns false if writing has
    /// failed; [`BatchWriter::end`] returns the error.
    pub fn send(&mut self, batch: RowBatch) -> bool {
        match &mut self.mode {
            WriterMode::Thread { batches, .. } => batches.send(batch).is_ok(),
            WriterMode::Inline(segments) => {
                if let Ok(open) = &mut **segments
                    && let Err(error) = open.write_batch(batch)
                {
                    **segments = Err(error);
                }
                segments.is_ok()
            }
        }
    }

    /// Waits until everything is written. Returns the files.
    pub fn end(self) -> Result<SegmentWriter, Error> {
        match self.mode {
            WriterMode::Thread { batches, thread } => {
                drop(batches);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            WriterMode::Inline(segments) => segments.and_then(SegmentWriter::into_closed),
        }
    }
}

/// The files of an inventory that is being written, one segment after another.
pub struct SegmentWriter {
    /// The directory of the inventory.
    pub directory: PathBuf,
    /// The closed files.
    pub files: Vec<ManifestFile>,
    /// The number of the segment that is being written.
    pub segment: u32,
    entries: TableWriter<EntriesBuffer>,
    dirs: TableWriter<DirsBuffer>,
    errors: TableWriter<ErrorsBuffer>,
    links: TableWriter<LinksBuffer>,
    /// The owners of all entries so far.
    pub users: BTreeSet<u32>,
    /// The groups of all entries so far.
    pub groups: BTreeSet<u32>,
}

/// The buffer and the file of a table. The file is created with the first row.
struct TableWriter<C> {
    table: &'static str,
    optional_columns: OptionalColumns,
    columns: C,
    file: Option<(String, ParquetWriter<C>)>,
}

impl<C: TableBuffer> TableWriter<C> {
    fn new(table: &'static str, optional_columns: OptionalColumns) -> Self {
        Self { table, optional_columns, columns: C::default(), file: None }
    }

    fn open(&mut self, directory: &Path, segment: u32) -> Result<&mut ParquetWriter<C>, Error> {
        if self.file.is_none() {
            let name = format!("{}-{segment:05}.parquet", self.table);
            let path = directory.join(&name);
            let table = ParquetWriter::create(&path, self.optional_columns)
                .map_err(|error| Error::new(Op::Create, &path, error))?;
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

    fn close(&mut self, directory: &Path) -> Result<Option<ManifestFile>, Error> {
        let Some((name, table)) = self.file.take() else { return Ok(None) };
        let facts = table.finish().map_err(|error| Error::new(Op::Write, &directory.join(&name), error))?;
        Ok(Some(ManifestFile::new(name, self.table, &facts)))
    }
}

impl TableWriter<EntriesBuffer> {
    /// Writes a row group of another file. The buffer must be empty, for the rows have an order.
    fn copy(&mut self, copied: &CopiedGroup, directory: &Path, segment: u32) -> Result<(), Error> {
        let mut dir_ids = Int64Buffer::default();
        copied.dir_ids.iter().for_each(|id| dir_ids.push(*id));
        let written = self.open(directory, segment)?.copy(copied, DIR_ID, &mut dir_ids);
        written.map_err(|error| Error::new(Op::Write, directory, error))
    }
}

impl SegmentWriter {
    /// Creates a writer with these optional columns that continues after `segment` segments, whose
    /// files are `files`.
    pub fn new(
        directory: PathBuf,
        files: Vec<ManifestFile>,
        segment: u32,
        optional_columns: OptionalColumns,
    ) -> Self {
        Self {
            directory,
            files,
            segment,
            entries: TableWriter::new("entries", optional_columns),
            dirs: TableWriter::new("dirs", optional_columns),
            errors: TableWriter::new("errors", optional_columns),
            links: TableWriter::new("links", optional_columns),
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    fn run(mut self, batches: &Receiver<RowBatch>) -> Result<Self, Error> {
        for batch in batches {
            self.write_batch(batch)?;
        }
        self.into_closed()
    }

    fn into_closed(mut self) -> Result<Self, Error> {
        self.close()?;
        Ok(self)
    }

    fn write_batch(&mut self, batch: RowBatch) -> Result<(), Error> {
        for (dir_id, chunk) in batch.entries {
            self.record_owners_and_links(dir_id, &chunk);
            self.entries.columns.extend(dir_id, &chunk);
        }
        for (uid, gid) in batch.owners {
            self.users.insert(uid);
            self.groups.insert(gid);
        }
        (self.dirs.columns, self.errors.columns) = (batch.dirs, batch.errors);
        let (directory, segment) = (&self.directory, self.segment);
        self.entries.write(directory, segment)?;
        if let Some(copied) = &batch.copied {
            self.entries.copy(copied, directory, segment)?;
            copied.links.iter().for_each(|row| self.links.columns.push(row));
        }
        self.dirs.write(directory, segment)?;
        self.errors.write(directory, segment)?;
        if self.links.columns.rows() >= GROUP_ROWS {
            self.links.write(directory, segment)?;
        }
        let Some(checkpoint) = batch.checkpoint else { return Ok(()) };
        self.close()?;
        checkpoint(self)
    }

    /// Records owners, and the names of inodes that have several.
    fn record_owners_and_links(&mut self, dir_id: i64, chunk: &RowChunk) {
        let mut last = None;
        for (row, ..) in chunk.iter().filter(|(row, ..)| row.errno == 0) {
            if last != Some((row.uid, row.gid)) {
                last = Some((row.uid, row.gid));
                self.users.extend(row.has(MissingColumns::UID).then_some(row.uid));
                self.groups.extend(row.has(MissingColumns::GID).then_some(row.gid));
            }
            if row.nlink > 1 {
                self.links.columns.push(&LinkRow::new(dir_id, row));
            }
        }
    }

    /// Closes the files of the segment.
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

    /// Writes the tables of owners and creates a file for each table that has none. Returns all
    /// files.
    pub fn finish(mut self, owners: &Owners) -> Result<Vec<ManifestFile>, Error> {
        let optional_columns = OptionalColumns::default();
        let (mut users, mut groups) = (
            TableWriter::<OwnersBuffer>::new("users", optional_columns),
            TableWriter::<OwnersBuffer>::new("groups", optional_columns),
        );
        owners.prefetch(OwnerKind::User, self.users.iter().copied());
        owners.prefetch(OwnerKind::Group, self.groups.iter().copied());
        self.users
            .iter()
            .for_each(|uid| users.columns.push(*uid, owners.name(OwnerKind::User, *uid).as_deref()));
        self.groups
            .iter()
            .for_each(|gid| groups.columns.push(*gid, owners.name(OwnerKind::Group, *gid).as_deref()));
        let (directory, segment) = (self.directory.clone(), self.segment);
        for table in [&mut users, &mut groups] {
            table.open(&directory, segment)?;
            table.write(&directory, segment)?;
            self.files.extend(table.close(&directory)?);
        }
        self.create_missing_files()?;
        self.close()?;
        Ok(self.files)
    }

    fn create_missing_files(&mut self) -> Result<(), Error> {
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
        let rows = |room| RowGroupLimits::within(room).rows;
        assert_eq!([None, Some(usize::MAX), Some(1 << 30)].map(rows), [GROUP_ROWS; 3]);
        assert_eq!([Some(16 << 20), Some(4 << 20), Some(0)].map(rows), [8192, 2048, 1024]);
        let text_bytes = |room| RowGroupLimits::within(room).text_bytes;
        assert_eq!([None, Some(16 << 20), Some(0)].map(text_bytes), [8 << 20, 1 << 20, 128 << 10]);
    }
}
