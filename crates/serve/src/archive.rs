//! A directory as one file: tar compressed by zstd or gzip, or zip, made while it is sent.
//!
//! ```text
//! worker ── step ──> pool: walk, read, encode up to [`STEP_BYTES`] ──> piece of the body
//! ```
//! An `Archive` is a state that each step moves on, so no thread waits for a slow client. It takes
//! the memory of its encoder, the directories it is in and, for zip, its index, all charged to a
//! budget. Entries are opened below the site's root like any request's file: hidden names and links
//! that lead out are left out. Links to directories are left out, too: they could lead in circles.

mod encode;

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use fathom_io::beneath::{Beneath, Links, Patience, stat};
use fathom_io::{Errno, FileType, Meta};
use rustix::io::retry_on_intr;

pub use encode::Format;

use crate::answer::Shown;
use crate::budget::Charge;
use crate::files::pool::Pace;
use crate::files::{Failure, Opened, is_forbidden};
use crate::listing::{Entry, Kind, Listing, read};
use encode::Encoder;

/// Bytes of an archive that a step is to make.
const STEP_BYTES: usize = 64 << 10;
/// Bytes of files that a step reads at most: what compresses well would keep it busy for long.
const STEP_INPUT_BYTES: usize = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The input of an archive: the root directory and the rules that select its entries.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) beneath: Arc<Beneath>,
    pub(crate) links: Links,
    pub(crate) dotfiles: bool,
    /// The access rules that apply to the client.
    pub(crate) shown: Shown,
}

/// An archive under way.
pub(crate) struct Archive {
    source: Source,
    /// The directory that holds all others in the archive, without a slash.
    prefix: Vec<u8>,
    /// Directories that were entered, the innermost last.
    levels: Vec<Level>,
    file: Option<Reading>,
    encoder: Option<Encoder>,
    buffer: Vec<u8>,
    charge: Charge,
}

/// A directory under way.
struct Level {
    /// Below the root; empty for the root itself.
    path: Vec<u8>,
    entries: std::vec::IntoIter<Entry>,
    memory: usize,
}

/// A file under way.
struct Reading {
    opened: Opened,
    at: u64,
}

impl Archive {
    /// Returns the archive of the directory `path` below the root, which is open as `dir` and is
    /// called `prefix` in it.
    ///
    /// # Errors
    /// As openat(2) and getdents64(2), `NOMEM` where the budget of `charge` does not suffice, and
    /// `Changed` for a directory with more entries than can be listed.
    pub(crate) fn new(
        source: Source,
        (path, dir): (&[u8], &Opened),
        prefix: Vec<u8>,
        format: Format,
        charge: Charge,
    ) -> Result<Self, Failure> {
        let (levels, file, encoder) = (Vec::new(), None, Some(Encoder::new(format)?));
        let buffer = vec![0; READ_BYTES];
        let mut archive = Self { source, prefix, levels, file, encoder, buffer, charge };
        archive.enter(path, dir)?;
        Ok(archive)
    }

    /// Makes the next piece; an empty one if nothing has come out of the encoder yet, none at the
    /// end.
    ///
    /// # Errors
    /// Those of [`Archive::new`], and `Changed` if a file did while it was read: what was sent is
    /// no archive then.
    pub(crate) fn step(&mut self) -> Result<Option<Bytes>, Failure> {
        let (mut pace, mut input) = (Pace::new(), 0);
        while let Some(encoder) = &self.encoder {
            if encoder.pending() >= STEP_BYTES || input >= STEP_INPUT_BYTES {
                return Ok(Some(encoder.take().into()));
            }
            input += self.advance()?;
            pace.step();
            self.account()?;
        }
        Ok(None)
    }

    /// Does the next bit of work; bytes it has read.
    fn advance(&mut self) -> Result<usize, Failure> {
        if let Some(file) = self.file.take() {
            return self.go_on(file);
        }
        let Some(level) = self.levels.last_mut() else { return self.finish() };
        match level.entries.next() {
            None => {
                self.levels.pop();
            }
            Some(entry) => {
                let path =
                    [&level.path[..], if level.path.is_empty() { b"" } else { b"/" }, &entry.name].concat();
                self.begin(&path, &entry)?;
            }
        }
        Ok(STEP_BYTES / 64)
    }

    /// Begins with an entry. One that is gone, or may not be read, is left out, as a request for it
    /// would get nothing.
    fn begin(&mut self, path: &[u8], entry: &Entry) -> Result<(), Failure> {
        if !self.source.shown.admits(path) {
            return Ok(());
        }
        let opened = match self.source.beneath.open(path, Patience::Wait) {
            Ok(Some(file)) => Opened::new(file, None)?,
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(errno.into()),
            Ok(None) | Err(_) => return Ok(()),
        };
        match (entry.kind, opened.kind()) {
            (Kind::Directory, FileType::Directory) => self.enter(path, &opened),
            (Kind::File, FileType::Regular) => {
                let name = self.name(path);
                self.encoder()?.begin_file(&name, &opened.meta)?;
                self.file = Some(Reading { opened, at: 0 });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, path: &[u8], dir: &Opened) -> Result<(), Failure> {
        let (held, charge) = (self.held(), &mut self.charge);
        let mut pace = Pace::new();
        let mut tick = |bytes| {
            pace.step();
            charge.grow_to(held + bytes)
        };
        let link = |name: &CStr| self.source.target(path, name);
        let listing = match read(dir.fd()?.as_fd(), self.source.dotfiles, link, &mut tick) {
            Err(errno) if !self.levels.is_empty() && (errno == Errno::NOENT || is_forbidden(errno)) => {
                return Ok(());
            }
            listing => listing?,
        };
        if !listing.complete {
            return Err(Failure::Changed);
        }
        let name = self.name(path);
        self.encoder()?.directory(&name, &dir.meta)?;
        let memory = listing.memory();
        let Listing { mut entries, .. } = listing;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.levels.push(Level { path: path.to_vec(), entries: entries.into_iter(), memory });
        self.account()
    }

    /// Reads on in a file; bytes it has read.
    fn go_on(&mut self, mut file: Reading) -> Result<usize, Failure> {
        let left = file.opened.len().saturating_sub(file.at);
        if left == 0 {
            // All of it is in the archive: if it was changed meanwhile, that may be a mixture.
            let is_still = file.opened.len() == 0 || file.opened.is_still()?;
            self.encoder()?.end_file(file.opened.len())?;
            return if is_still { Ok(0) } else { Err(Failure::Changed) };
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES);
        let room = self.buffer.get_mut(..most).unwrap_or_default();
        let read = retry_on_intr(|| rustix::io::pread(file.opened.fd()?, &mut *room, file.at))?;
        if read == 0 {
            return Err(Failure::Changed);
        }
        let bytes = self.buffer.get(..read).unwrap_or_default();
        self.encoder.as_mut().ok_or(Failure::Changed)?.write(bytes)?;
        file.at += read as u64;
        self.file = Some(file);
        Ok(read)
    }

    fn finish(&mut self) -> Result<usize, Failure> {
        let Some(encoder) = self.encoder.as_mut() else { return Ok(0) };
        if encoder.finish()? {
            return Ok(STEP_INPUT_BYTES);
        }
        if encoder.pending() == 0 {
            self.encoder = None;
        }
        Ok(STEP_INPUT_BYTES)
    }

    fn encoder(&mut self) -> Result<&mut Encoder, Failure> {
        self.encoder.as_mut().ok_or(Failure::Changed)
    }

    /// The name in the archive of what is at `path` below the root.
    fn name(&self, path: &[u8]) -> Vec<u8> {
        let top = self.levels.first().map_or(path, |level| &level.path);
        let below = path.strip_prefix(top).unwrap_or(path);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        if below.is_empty() { self.prefix.clone() } else { [&self.prefix, &b"/"[..], below].concat() }
    }

    /// Bytes of memory it takes.
    fn held(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.memory).sum();
        levels + READ_BYTES + self.encoder.as_ref().map_or(0, Encoder::memory)
    }

    fn account(&mut self) -> Result<(), Failure> {
        let held = self.held();
        self.charge.grow_to(held)?;
        self.charge.shrink_to(held);
        Ok(())
    }
}

impl Source {
    /// Returns the metadata of the file that a link in the directory `path` leads to, if requests
    /// could have it.
    fn target(&self, path: &[u8], name: &CStr) -> Option<Meta> {
        if self.links == Links::Never {
            return None;
        }
        let path = [path, if path.is_empty() { b"" } else { b"/" }, name.to_bytes()].concat();
        let file = self.beneath.open(&path, Patience::Wait).ok().flatten()?;
        stat(file.as_fd()).ok().filter(|meta| meta.file_type() == FileType::Regular)
    }
}

#[cfg(test)]
mod tests;
