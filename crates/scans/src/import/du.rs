//! The output of GNU du: lines of a size, a tab and a path. A directory comes after everything
//! below it, with the sum of it.
//!
//! The lines are read from the last one to the first, so that each directory comes before its
//! entries. The difference between the size of a directory and the sum of the lines below it is its
//! own.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use fathom_walk::{FileType, Meta};

use super::builder::{ImportOrigin, InventoryBuilder};
use super::{DuOutput, ImportError};
use fathom_inventory::store::{DirState, EntryRow, MissingColumns};

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Most bytes of a line.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The path in the last line of `du -c`, if messages are in English.
const GRAND_TOTAL: &[u8] = b"total";
const MAYBE_TOTAL: &[u8] =
    b"warning: reading the last line, 'total', as an entry: use --total if it comes from du -c";
/// The type bits of modes (inode(7)). No permission is known.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// Reads lines into `builder`. `warn` is called with a warning if the last line may be a grand
/// total.
pub(super) fn read(
    input: &mut dyn BufRead,
    options: &DuOutput,
    builder: &mut InventoryBuilder,
    warn: &mut dyn FnMut(&[u8]),
) -> Result<ImportOrigin, ImportError> {
    let mut spool = tempfile::tempfile_in(builder.part())?;
    io::copy(input, &mut spool)?;
    let mut lines = LinesBackwards::new(spool)?;
    // The last terminator is not in the buffer.
    let end = lines.start + lines.buffer.len() as u64 + 1;
    let total = if options.has_total { lines.next()? } else { None };
    let mut next = lines.next()?;
    if next.is_none() && total.is_none() {
        return Err(lines.malformed("the input is empty"));
    }
    let may_be_total = total.is_none() && next.as_ref().is_some_and(|last| last.path == GRAND_TOTAL);
    let mut tree = DuTree { builder, options, levels: Vec::new(), path: Vec::new(), roots: 0, roots_size: 0 };
    while let Some(line) = next {
        next = lines.next()?;
        let has_below = next.as_ref().is_some_and(|below| relative(&below.path, &line.path).is_some());
        if tree.roots == 0 && may_be_total && !has_below && next.is_some() {
            warn(MAYBE_TOTAL);
        }
        tree.add(&line, has_below).map_err(|what| lines.malformed(what))?;
    }
    tree.leave_to(0).map_err(|what| lines.malformed(what))?;
    if total.is_some_and(|total| !tree.is_total(&total)) {
        let what = "the last line is not the total that LC_ALL=C du -c writes: is the output complete?";
        return Err(ImportError::Malformed { offset: end, what });
    }
    Ok(ImportOrigin { program: "du".to_owned(), scanned: None })
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
    /// The number of bytes before the bytes in the buffer.
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
            self.malformed("a line has no size and path: use du -0 for names with line breaks")
        })?;
        let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
        let size = std::str::from_utf8(size).ok().filter(|_| is_number).and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| self.malformed("a size is not a whole number: use du without -h"))?;
        if has_time(path) {
            return Err(self.malformed("a line has a time: use du without --time"));
        }
        Ok(DuLine { size, path: path.to_vec() })
    }
}

/// Returns whether a path begins with a time as `du --time` prints it, and a tab.
fn has_time(path: &[u8]) -> bool {
    let Some(tab) = path.iter().position(|byte| *byte == b'\t') else { return false };
    let shape: Vec<u8> =
        path[..tab].iter().map(|byte| if byte.is_ascii_digit() { b'9' } else { *byte }).collect();
    let times: [&[u8]; 4] = [
        b"9999-99-99",
        b"9999-99-99 99:99",
        b"9999-99-99 99:99:99.999999999 +9999",
        b"9999-99-99 99:99:99.999999999 -9999",
    ];
    times.contains(&&shape[..])
}

/// A directory that is open.
struct DuLevel {
    /// The length of its path, without slashes at its end.
    path_len: usize,
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
    /// The path of the last line, which begins with the paths of all levels.
    path: Vec<u8>,
    /// The number of lines that are below no other, and the sum of their sizes.
    roots: u64,
    roots_size: u64,
}

impl DuTree<'_> {
    /// Adds a line, which is about a directory if others are below it.
    fn add(&mut self, line: &DuLine, has_below: bool) -> Result<(), &'static str> {
        let is_below = |level: &DuLevel| relative(&line.path, &self.path[..level.path_len]).is_some();
        let depth = self.levels.iter().rposition(is_below).map_or(0, |last| last + 1);
        self.leave_to(depth)?;
        self.path.clone_from(&line.path);
        let name = match self.levels.last() {
            Some(level) => self.enter_implied(level.path_len)?,
            None => 0..line.path.len(),
        };
        match self.levels.last_mut() {
            Some(level) => level.listed = level.listed.saturating_add(line.size),
            None => {
                self.roots += 1;
                self.roots_size = self.roots_size.saturating_add(line.size);
            }
        }
        if has_below || self.options.only_directories {
            return self.enter(name, line.size, false);
        }
        let row = self.row(FileType::Regular, line.size)?;
        self.builder.entry(&line.path[name], row)
    }

    /// Enters the directories between that whose path ends at `above` and the entry of the current
    /// path, which have no lines. Returns the place of the name of the entry.
    fn enter_implied(&mut self, above: usize) -> Result<Range<usize>, &'static str> {
        let mut end = above;
        loop {
            let name = self.path[end..].iter().position(|byte| *byte != b'/');
            let start = end + name.ok_or("an entry has an impossible name")?;
            let length = self.path[start..].iter().position(|byte| *byte == b'/');
            end = start + length.unwrap_or(self.path.len() - start);
            if self.path[end..].iter().all(|byte| *byte == b'/') {
                return Ok(start..end);
            }
            self.enter(start..end, 0, true)?;
        }
    }

    /// Enters the directory whose name is this part of the current path.
    fn enter(&mut self, name: Range<usize>, total: u64, is_implied: bool) -> Result<(), &'static str> {
        let slashes = self.path[..name.end].iter().rev().take_while(|byte| **byte == b'/').count();
        let row = self.row(FileType::Directory, 0)?;
        self.builder.enter(&self.path[name.clone()], row)?;
        self.levels.push(DuLevel { path_len: name.end - slashes, total, listed: 0, is_implied });
        Ok(())
    }

    /// Returns whether a line can be the sum of the roots, whose sizes are rounded up to blocks.
    fn is_total(&self, line: &DuLine) -> bool {
        let Some(others) = self.roots.checked_sub(1) else { return false };
        let rounded = if self.options.apparent { 0 } else { others };
        let sums = self.roots_size.saturating_sub(rounded)..=self.roots_size;
        sums.contains(&line.size) && line.path == GRAND_TOTAL
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
        // The size of a directory itself is no part of sums, but here it is the size of its files.
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
