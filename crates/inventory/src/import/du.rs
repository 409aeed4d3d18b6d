//! The output of GNU du: lines of a size, a tab and a path. A directory comes after everything below
//! it, with the sum of it.
//!
//! The lines are read from the last one to the first, so that each directory comes before its
//! entries. What a directory has beyond the lines below it is its own.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

use fathom_walk::{FileType, Meta};

use super::builder::{InventoryBuilder, NAME_BYTES_MAX, Origin};
use super::{DuOutput, ImportError};
use crate::store::{DirState, EntryRow, MissingColumns};

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Most bytes of a line.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The path in the last line of `du -c`.
const GRAND_TOTAL: &[u8] = b"total";
/// The type bits of modes (inode(7)). No permission is known.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// Reads lines into `builder`.
pub(super) fn read(
    input: &mut dyn BufRead,
    options: &DuOutput,
    builder: &mut InventoryBuilder,
) -> Result<Origin, ImportError> {
    let mut spool = tempfile::tempfile_in(builder.part())?;
    io::copy(input, &mut spool)?;
    let mut lines = LinesBackwards::new(spool)?;
    let mut tree = DuTree { builder, options, levels: Vec::new() };
    let mut next = lines.next()?;
    if next.is_none() {
        return Err(lines.malformed("the input is empty"));
    }
    let mut is_last = true;
    while let Some(line) = next {
        next = lines.next()?;
        let is_sum = |below: &DuLine| line.path == GRAND_TOTAL && relative(&below.path, &line.path).is_none();
        if std::mem::take(&mut is_last) && next.as_ref().is_some_and(is_sum) {
            continue;
        }
        let has_below = next.as_ref().is_some_and(|below| relative(&below.path, &line.path).is_some());
        tree.add(&line, has_below).map_err(|what| lines.malformed(what))?;
    }
    tree.leave_to(0).map_err(|what| lines.malformed(what))?;
    Ok(Origin { program: "du".to_owned(), scanned: None })
}

/// A line of the output.
#[derive(Debug, PartialEq, Eq)]
struct DuLine {
    size: u64,
    path: Vec<u8>,
}

/// Returns the path of `path` below `dir`; `None` if it is not below.
fn relative<'p>(path: &'p [u8], dir: &[u8]) -> Option<&'p [u8]> {
    let end = dir.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let rest = path.strip_prefix(&dir[..end])?.strip_prefix(b"/")?;
    let start = rest.iter().position(|byte| *byte != b'/')?;
    Some(&rest[start..])
}

/// Reads the lines of a file from the last to the first.
struct LinesBackwards {
    file: File,
    /// The number of bytes before those in the buffer.
    start: u64,
    buffer: Vec<u8>,
    terminator: u8,
}

impl LinesBackwards {
    fn new(mut file: File) -> Result<Self, ImportError> {
        let start = file.seek(SeekFrom::End(0))?;
        let mut lines = Self { file, start, buffer: Vec::new(), terminator: b'\n' };
        if start > 0 {
            lines.fill()?;
            match lines.buffer.pop() {
                Some(terminator @ (0 | b'\n')) => lines.terminator = terminator,
                _ => return Err(lines.malformed("the last line does not end")),
            }
        }
        Ok(lines)
    }

    /// Returns an error at the line that was read last.
    fn malformed(&self, what: &'static str) -> ImportError {
        ImportError::Malformed { offset: self.start + self.buffer.len() as u64, what }
    }

    /// Reads the block before the buffer.
    fn fill(&mut self) -> Result<(), ImportError> {
        let count = self.start.min(BLOCK_BYTES as u64);
        self.start -= count;
        self.file.seek(SeekFrom::Start(self.start))?;
        let mut block = vec![0; count as usize];
        self.file.read_exact(&mut block)?;
        block.append(&mut self.buffer);
        self.buffer = block;
        Ok(())
    }

    /// Returns the line before the one that was returned last.
    fn next(&mut self) -> Result<Option<DuLine>, ImportError> {
        loop {
            if let Some(end) = self.buffer.iter().rposition(|byte| *byte == self.terminator) {
                let line = self.parse(end + 1)?;
                self.buffer.truncate(end);
                return Ok(Some(line));
            }
            if self.start == 0 {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                let line = self.parse(0)?;
                self.buffer.clear();
                return Ok(Some(line));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.malformed("a line is too long"));
            }
            self.fill()?;
        }
    }

    /// Parses the line from `start` on.
    fn parse(&self, start: usize) -> Result<DuLine, ImportError> {
        let line = &self.buffer[start..];
        let tab = line.iter().position(|byte| *byte == b'\t');
        let (size, path) = tab.map(|tab| (&line[..tab], &line[tab + 1..])).ok_or_else(|| {
            self.malformed("a line has no size and path: du -0 for names that have line breaks")
        })?;
        let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
        let size = std::str::from_utf8(size).ok().filter(|_| is_number).and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| self.malformed("a size is not a whole number: du without -h"))?;
        Ok(DuLine { size, path: path.to_vec() })
    }
}

/// A directory that is open.
struct DuLevel {
    path: Vec<u8>,
    total: u64,
    /// The sum of the lines directly below it.
    listed: u64,
    /// Whether it has no line of its own.
    is_implied: bool,
}

struct DuTree<'a> {
    builder: &'a mut InventoryBuilder,
    options: &'a DuOutput,
    levels: Vec<DuLevel>,
}

impl DuTree<'_> {
    /// Adds a line, which is that of a directory if others are below it.
    fn add(&mut self, line: &DuLine, has_below: bool) -> Result<(), &'static str> {
        let is_below = |level: &DuLevel| relative(&line.path, &level.path).is_some();
        let depth = self.levels.iter().rposition(is_below).map_or(0, |last| last + 1);
        self.leave_to(depth)?;
        let name = match self.levels.last() {
            Some(level) => relative(&line.path, &level.path).unwrap_or_default().to_vec(),
            None => line.path.clone(),
        };
        let name = if self.levels.is_empty() { name } else { self.enter_implied(&name)? };
        if let Some(level) = self.levels.last_mut() {
            level.listed = level.listed.saturating_add(line.size);
        }
        if has_below || self.options.only_directories {
            return self.enter(&name, line.path.clone(), line.size, false);
        }
        let row = self.row(FileType::Regular, line.size)?;
        self.builder.entry(&name, row)
    }

    /// Enters the directories of a relative path that have no line, and returns the last name.
    fn enter_implied(&mut self, path: &[u8]) -> Result<Vec<u8>, &'static str> {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return Ok(name.to_vec());
            }
            let above = self.levels.last().map(|level| level.path.clone()).unwrap_or_default();
            let path = [&above[..], if above.ends_with(b"/") { b"" } else { b"/" }, name].concat();
            self.enter(name, path, 0, true)?;
        }
        Err("an entry has an impossible name")
    }

    fn enter(
        &mut self,
        name: &[u8],
        path: Vec<u8>,
        total: u64,
        is_implied: bool,
    ) -> Result<(), &'static str> {
        if path.len() > NAME_BYTES_MAX {
            return Err("a path is too long");
        }
        let row = self.row(FileType::Directory, 0)?;
        self.builder.enter(name, row)?;
        self.levels.push(DuLevel { path, total, listed: 0, is_implied });
        Ok(())
    }

    /// Leaves the directories from `depth` on.
    fn leave_to(&mut self, depth: usize) -> Result<(), &'static str> {
        while self.levels.len() > depth {
            let Some(level) = self.levels.pop() else { break };
            self.leave(&level)?;
        }
        Ok(())
    }

    fn leave(&mut self, level: &DuLevel) -> Result<(), &'static str> {
        if level.is_implied {
            // Its lines count for the directory above.
            if let Some(above) = self.levels.last_mut() {
                above.listed = above.listed.saturating_add(level.listed);
            }
            return self.builder.leave(DirState::Partial, None);
        }
        let own = self.row(FileType::Directory, level.total.saturating_sub(level.listed))?;
        self.builder.with_row(|row| (row.size, row.blocks) = (own.size, own.blocks));
        if !self.options.only_directories {
            return self.builder.leave(DirState::Complete, None);
        }
        // The size of a directory itself is no part of sums, but here it is that of its files.
        self.builder.add_unlisted(own.size);
        self.builder.leave(DirState::Partial, None)
    }

    /// Returns a row with a size as du prints it.
    fn row(&self, file_type: FileType, size: u64) -> Result<EntryRow, &'static str> {
        use MissingColumns as Missing;
        let DuOutput { block_bytes, apparent, .. } = *self.options;
        let bytes = size.checked_mul(if apparent { 1 } else { block_bytes });
        let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok()).ok_or("a size is too large")?;
        let mode = if file_type == FileType::Directory { DIRECTORY } else { REGULAR };
        let mut meta = Meta { mode, nlink: 1, ..Meta::default() };
        if apparent {
            meta.size = bytes
        } else {
            meta.blocks = bytes.unsigned_abs().div_ceil(512)
        }
        let columns = [
            Missing::INO,
            Missing::UID,
            Missing::GID,
            Missing::NLINK,
            if apparent { Missing::BLOCKS } else { Missing::SIZE },
        ];
        let missing = columns.into_iter().chain(Missing::TIMES).fold(Missing::default(), Missing::union);
        Ok(EntryRow::new(file_type, Ok(&meta)).without(missing))
    }
}
