//! Writes batches of rows, on a thread of its own, to one file a table; at a checkpoint those files are closed, and what comes
//! goes to new ones. So what was written before a checkpoint outlives whatever happens after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

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
    /// Whether it should be written before more comes.
    pub(crate) fn is_full(&self) -> bool {
        let rows = self.rows.max(self.dirs.rows()).max(self.errors.rows());
        let text_bytes = self.text_bytes + self.dirs.text_bytes() + self.errors.text_bytes();
        rows >= GROUP_ROWS || text_bytes >= GROUP_TEXT_BYTES
    }
}

/// The other end of the thread that writes.
pub(crate) struct Writer {
    batches: SyncSender<Batch>,
    thread: JoinHandle<Result<Shelf, Error>>,
}

impl Writer {
    pub(crate) fn start(shelf: Shelf) -> Result<Self, Error> {
        let (batches, receiver) = sync_channel(WAITING);
        let directory = shelf.directory.clone();
        let thread = thread::Builder::new().name("write".to_owned()).spawn(move || shelf.serve(&receiver));
        let thread = thread.map_err(|error| Error::new(Op::Write, &directory, error))?;
        Ok(Self { batches, thread })
    }

    /// Hands over rows; waits while others are being written. False if writing has failed: [`Writer::end`] tells why.
    pub(crate) fn send(&self, batch: Batch) -> bool {
        self.batches.send(batch).is_ok()
    }

    /// Waits until everything is written.
    pub(crate) fn end(self) -> Result<Shelf, Error> {
        drop(self.batches);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
    columns: C,
    file: Option<(String, Table<C>)>,
}

impl<C: Columns> Pile<C> {
    fn new(table: &'static str) -> Self {
        Self { table, columns: C::default(), file: None }
    }

    fn open(&mut self, directory: &Path, segment: u32) -> Result<&mut Table<C>, Error> {
        if self.file.is_none() {
            let name = format!("{}-{segment:05}.parquet", self.table);
            let path = directory.join(&name);
            let table = Table::create(&path).map_err(|error| Error::new(Op::Create, &path, error))?;
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
    /// With `files` already, of `segment` segments.
    pub(crate) fn new(directory: PathBuf, files: Vec<Listed>, segment: u32) -> Self {
        Self {
            directory,
            files,
            segment,
            entries: Pile::new("entries"),
            dirs: Pile::new("dirs"),
            errors: Pile::new("errors"),
            links: Pile::new("links"),
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    fn serve(mut self, batches: &Receiver<Batch>) -> Result<Self, Error> {
        for batch in batches {
            self.take(batch)?;
        }
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
        let (mut users, mut groups) = (Pile::<Names>::new("users"), Pile::<Names>::new("groups"));
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
