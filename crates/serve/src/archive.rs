//! An archive of a directory, generated while it is sent: tar with zstd or gzip, or zip.
//!
//! ```text
//! worker ── step ──> pool: walk, read, encode up to [`STEP_BYTES`] ──> piece of the body
//! ```
//! Each step advances an `Archive`, so no thread waits for a slow client. Its memory holds the
//! encoder, the directories it is in and, for zip, the index; all is charged to a budget. Entries
//! are opened below the site's root like the file of a request: hidden names and links that leave
//! the root are omitted. Links to directories are omitted as well: they could form loops.

mod encode;
pub(crate) mod format;

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use fathom_files::pool::TimeSlice;
use fathom_files::{FileError, OpenFile};
use fathom_io::beneath::{Beneath, Links, LookupMode, stat};
use fathom_io::{Errno, FileType, Meta};

pub use format::ArchiveFormat;

use crate::budget::Charge;
use crate::cache::is_forbidden;
use crate::listing::{EntryKind, Listing, ListingEntry, read};
use crate::rules::entry_filter::EntryFilter;
use encode::ArchiveEncoder;

/// The bytes of archive that end a step.
const STEP_BYTES: usize = 64 << 10;
/// The most bytes of files that a step reads. Without this bound, a step with well compressible
/// files would take long.
const STEP_INPUT_BYTES: usize = 1 << 20;
/// The size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;

/// The input of an archive: the root directory and the rules that select its entries.
#[derive(Debug)]
pub(crate) struct ArchiveSource {
    pub(crate) beneath: Arc<Beneath>,
    pub(crate) links: Links,
    pub(crate) dotfiles: bool,
    /// The access rules that apply to the client.
    pub(crate) filter: EntryFilter,
}

/// An archive that is being generated.
pub(crate) struct Archive {
    source: ArchiveSource,
    /// The name of the top directory in the archive, without a slash.
    prefix: Vec<u8>,
    /// The directories that were entered, the innermost last.
    levels: Vec<DirectoryLevel>,
    file: Option<ArchivedFile>,
    encoder: Option<ArchiveEncoder>,
    buffer: Vec<u8>,
    charge: Charge,
}

/// A directory with the entries that are still to come.
struct DirectoryLevel {
    /// The path below the root; empty for the root itself.
    path: Vec<u8>,
    entries: std::vec::IntoIter<ListingEntry>,
    memory: usize,
}

/// A file that is being read.
struct ArchivedFile {
    opened: OpenFile,
    at: u64,
}

impl Archive {
    /// Returns the archive of the directory `path` below the root, which is open as `dir` and is
    /// called `prefix` in it.
    ///
    /// # Errors
    /// As openat(2) and getdents64(2), `NOMEM` where the budget of `charge` does not suffice, and
    /// `TOOBIG` where the whole of it would not, or for a directory with more entries than can be
    /// listed.
    pub(crate) fn new(
        source: ArchiveSource,
        path: &[u8],
        dir: &OpenFile,
        prefix: Vec<u8>,
        format: ArchiveFormat,
        charge: Charge,
    ) -> Result<Self, FileError> {
        let (levels, file, encoder) = (Vec::new(), None, Some(ArchiveEncoder::new(format)?));
        let buffer = vec![0; READ_BYTES];
        let mut archive = Self { source, prefix, levels, file, encoder, buffer, charge };
        archive.enter(path, dir)?;
        Ok(archive)
    }

    /// Generates the next piece, which is empty if the encoder has put nothing out yet. Returns
    /// `None` at the end.
    ///
    /// # Errors
    /// The errors of [`Archive::new`], and `Changed` if a file changed while it was read: the bytes
    /// sent so far are no archive then.
    pub(crate) fn step(&mut self) -> Result<Option<Bytes>, FileError> {
        let (mut pace, mut input) = (TimeSlice::start(), 0);
        while let Some(encoder) = &self.encoder {
            if encoder.pending() >= STEP_BYTES || input >= STEP_INPUT_BYTES {
                return Ok(Some(encoder.take().into()));
            }
            input += self.advance()?;
            pace.check();
            self.update_charge()?;
        }
        Ok(None)
    }

    /// Does one unit of work and returns the bytes read.
    fn advance(&mut self) -> Result<usize, FileError> {
        if let Some(file) = self.file.take() {
            return self.read_file(file);
        }
        let Some(level) = self.levels.last_mut() else { return self.finish() };
        match level.entries.next() {
            None => {
                self.levels.pop();
            }
            Some(entry) => {
                let path =
                    [&level.path[..], if level.path.is_empty() { b"" } else { b"/" }, &entry.name].concat();
                self.begin_entry(&path, &entry)?;
            }
        }
        // An entry counts as input, so that a step over many small entries ends.
        Ok(STEP_BYTES / 64)
    }

    /// Begins an entry. An entry that is gone or may not be read is omitted: a request for it would
    /// fail as well.
    fn begin_entry(&mut self, path: &[u8], entry: &ListingEntry) -> Result<(), FileError> {
        if !self.source.filter.admits(path) {
            return Ok(());
        }
        let opened = match self.source.beneath.open(path, LookupMode::Blocking) {
            Ok(Some(file)) => OpenFile::new(file)?,
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(errno.into()),
            Ok(None) | Err(_) => return Ok(()),
        };
        match (entry.kind, opened.kind()) {
            (EntryKind::Directory, FileType::Directory) => self.enter(path, &opened),
            (EntryKind::File, FileType::Regular) => {
                let name = self.name(path);
                self.encoder()?.begin_file(&name, &opened.meta)?;
                self.file = Some(ArchivedFile { opened, at: 0 });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, path: &[u8], dir: &OpenFile) -> Result<(), FileError> {
        let (held, charge) = (self.memory(), &mut self.charge);
        let mut pace = TimeSlice::start();
        let mut tick = |bytes| {
            pace.check();
            charge.grow_to(held + bytes)
        };
        let link = |name: &CStr| self.source.target(path, name);
        let listing = match read(dir.fd()?.as_fd(), self.source.dotfiles, |_| true, link, &mut tick) {
            Err(errno) if !self.levels.is_empty() && (errno == Errno::NOENT || is_forbidden(errno)) => {
                return Ok(());
            }
            listing => listing?,
        };
        if !listing.complete {
            return Err(Errno::TOOBIG.into());
        }
        let name = self.name(path);
        self.encoder()?.directory(&name, &dir.meta)?;
        let memory = listing.memory();
        let Listing { mut entries, .. } = listing;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.levels.push(DirectoryLevel { path: path.to_vec(), entries: entries.into_iter(), memory });
        self.update_charge()
    }

    /// Reads the next bytes of a file and returns their number.
    fn read_file(&mut self, mut file: ArchivedFile) -> Result<usize, FileError> {
        let left = file.opened.len().saturating_sub(file.at);
        if left == 0 {
            // The whole file is in the archive. If it changed meanwhile, the archive may contain a
            // mixture.
            let is_still = file.opened.is_empty() || file.opened.is_same_content()?;
            self.encoder()?.end_file(file.opened.len())?;
            return if is_still { Ok(0) } else { Err(FileError::Changed) };
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES);
        let room = self.buffer.get_mut(..most).unwrap_or_default();
        let read = file.opened.read_at(file.at, room)?;
        if read == 0 {
            return Err(FileError::Changed);
        }
        let bytes = self.buffer.get(..read).unwrap_or_default();
        self.encoder.as_mut().ok_or(FileError::Changed)?.write(bytes)?;
        file.at += read as u64;
        self.file = Some(file);
        Ok(read)
    }

    fn finish(&mut self) -> Result<usize, FileError> {
        let Some(encoder) = self.encoder.as_mut() else { return Ok(0) };
        if encoder.finish()? {
            return Ok(STEP_INPUT_BYTES);
        }
        if encoder.pending() == 0 {
            self.encoder = None;
        }
        Ok(STEP_INPUT_BYTES)
    }

    fn encoder(&mut self) -> Result<&mut ArchiveEncoder, FileError> {
        self.encoder.as_mut().ok_or(FileError::Changed)
    }

    /// Returns the name in the archive of `path` below the root.
    fn name(&self, path: &[u8]) -> Vec<u8> {
        let top = self.levels.first().map_or(path, |level| &level.path);
        let below = path.strip_prefix(top).unwrap_or(path);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        if below.is_empty() { self.prefix.clone() } else { [&self.prefix, &b"/"[..], below].concat() }
    }

    /// Returns the memory of the archive, in bytes.
    fn memory(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.memory).sum();
        levels + READ_BYTES + self.encoder.as_ref().map_or(0, ArchiveEncoder::memory)
    }

    fn update_charge(&mut self) -> Result<(), FileError> {
        let held = self.memory();
        self.charge.grow_to(held)?;
        self.charge.shrink_to(held);
        Ok(())
    }
}

impl ArchiveSource {
    /// Returns the metadata of the regular file that the link `name` in the directory `path` leads
    /// to, if requests may read it.
    fn target(&self, path: &[u8], name: &CStr) -> Option<Meta> {
        if self.links == Links::Never {
            return None;
        }
        let path = [path, if path.is_empty() { b"" } else { b"/" }, name.to_bytes()].concat();
        let file = self.beneath.open(&path, LookupMode::Blocking).ok().flatten()?;
        stat(file.as_fd()).ok().filter(|meta| meta.file_type() == FileType::Regular)
    }
}

#[cfg(test)]
mod tests;
