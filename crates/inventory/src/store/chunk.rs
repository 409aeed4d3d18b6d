//! What workers make of the entries of a directory: rows of plain numbers, and their names one after the other.

use std::borrow::Cow;

use fathom_walk::{Attributes, Errno, FileType, Meta, Stamp};
use serde::{Deserialize, Serialize};

use super::also::{Extra, Failed};

/// No value, in [`Row::born`].
const NEVER: i64 = i64::MIN;
/// No value, in [`Row::attributes`].
const UNREPORTED: u8 = u8::MAX;

/// An entry.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) size: i64,
    pub(crate) blocks: u64,
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Access, modification and change, in microseconds since 1970.
    pub(crate) micros: [i64; 3],
    /// Nanoseconds beyond that, below 1000.
    pub(crate) nanos: [u16; 3],
    born: i64,
    name_len: u16,
    link_len: u16,
    /// Why there is no metadata; 0 if there is.
    pub(crate) errno: u16,
    attributes: u8,
    #[serde(skip)]
    pub(crate) file_type: FileType,
}

/// Times that microseconds in 64 bits can say.
const MICROS: std::ops::RangeInclusive<i64> = i64::MIN + 1..=i64::MAX;

impl Row {
    pub(crate) fn new(file_type: FileType, meta: Result<&Meta, Errno>) -> Self {
        let (known, errno) = match meta {
            Ok(meta) => (*meta, 0),
            Err(errno) => (Meta::default(), errno.raw_os_error() as u16),
        };
        let times = [known.accessed, known.modified, known.changed].map(micros);
        Self {
            dev: known.dev,
            ino: known.ino,
            size: known.size,
            blocks: known.blocks,
            mode: known.mode,
            nlink: u32::try_from(known.nlink).unwrap_or(u32::MAX),
            uid: known.uid,
            gid: known.gid,
            micros: times.map(|(micros, _)| micros),
            nanos: times.map(|(_, nanos)| nanos),
            born: known.born.map_or(NEVER, |born| micros(born).0),
            name_len: 0,
            link_len: 0,
            errno,
            attributes: known.attributes.map_or(UNREPORTED, Attributes::bits),
            file_type,
        }
    }

    /// The attributes, if any are reported.
    pub(crate) fn attributes(&self) -> Option<Attributes> {
        Attributes::from_bits(self.attributes)
    }

    /// Whether a time is that of the end of the range, as its own is beyond.
    pub(crate) fn is_out_of_range(&self) -> bool {
        let is_end = |micros: &i64| micros == MICROS.start() || micros == MICROS.end();
        self.micros.iter().chain(&self.born()).any(is_end)
    }

    /// When it was made, in microseconds since 1970.
    pub(crate) fn born(&self) -> Option<i64> {
        (self.born != NEVER).then_some(self.born)
    }
}

/// A point in time in microseconds, and the nanoseconds beyond. What 64 bits do not hold is the end of what they do.
pub(crate) fn micros(stamp: Stamp) -> (i64, u16) {
    let micros = i128::from(stamp.sec) * 1_000_000 + i128::from(stamp.nsec / 1000);
    let bounded = micros.clamp(i128::from(*MICROS.start()), i128::from(*MICROS.end()));
    (bounded as i64, (stamp.nsec % 1000) as u16)
}

/// What entries come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    pub(crate) others: u64,
    pub(crate) size: i64,
    pub(crate) blocks: u64,
    pub(crate) modified: Option<i64>,
    pub(crate) changed: Option<i64>,
}

impl Sums {
    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.dirs += other.dirs;
        self.others += other.others;
        self.size = self.size.saturating_add(other.size);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.modified = self.modified.max(other.modified);
        self.changed = self.changed.max(other.changed);
    }

    fn count(&mut self, row: &Row) {
        let regular = row.file_type == FileType::Regular;
        self.files += u64::from(regular);
        self.others += u64::from(!regular);
        if row.errno == 0 {
            self.size = self.size.saturating_add(row.size);
            self.blocks = self.blocks.saturating_add(row.blocks);
            self.modified = self.modified.max(Some(row.micros[1]));
            self.changed = self.changed.max(Some(row.micros[2]));
        }
    }
}

/// Values of columns that were asked for, of one row.
#[derive(Clone, Copy, Debug)]
struct More {
    project: Option<u32>,
    xattrs_len: Option<u32>,
    acl: Option<bool>,
    failed: Failed,
}

/// Entries of one directory, without its subdirectories.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    rows: Vec<Row>,
    /// Of each row its name, then what the link holds, then names of extended attributes.
    text: Vec<u8>,
    /// As many as rows, or none where nobody asked for these columns.
    more: Vec<More>,
    pub(crate) sums: Sums,
}

impl Chunk {
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
        self.text.reserve(rows * 16);
    }

    /// Adds an entry; `link` is what a symbolic link holds.
    pub(crate) fn push(&mut self, name: &[u8], file_type: FileType, meta: Result<&Meta, Errno>, link: &[u8]) {
        // The kernel's names have 255 bytes at most, and links 4095.
        self.push_row(Row::new(file_type, meta), name, link);
    }

    /// Adds the columns that were asked for of the entry pushed last: of every one, or of none.
    pub(crate) fn push_extra(&mut self, extra: &Extra<'_>) {
        let Extra { project, acl, failed, .. } = *extra;
        // A list of names has 64 KiB at most, and a byte takes four in its text.
        let xattrs_len = extra.xattrs.as_deref().and_then(|xattrs| xattrs.len().try_into().ok());
        if let (Some(xattrs), Some(_)) = (&extra.xattrs, xattrs_len) {
            self.text.extend_from_slice(xattrs.as_bytes());
        }
        self.more.push(More { project, xattrs_len, acl, failed });
    }

    /// Adds `row`, unless a name or link is longer than any.
    pub(crate) fn push_row(&mut self, mut row: Row, name: &[u8], link: &[u8]) -> bool {
        let (Ok(name_len), Ok(link_len)) = (name.len().try_into(), link.len().try_into()) else {
            return false;
        };
        (row.name_len, row.link_len) = (name_len, link_len);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(link);
        self.sums.count(&row);
        self.rows.push(row);
        true
    }

    /// Calls what is on device `from` on device `to`.
    pub(crate) fn renumber(&mut self, from: u64, to: u64) {
        self.rows.iter_mut().filter(|row| row.dev == from).for_each(|row| row.dev = to);
    }

    /// Does so with many, of which none is found in the others.
    pub(crate) fn renumber_all(&mut self, devices: &[(u64, u64)]) {
        if devices.iter().all(|(from, to)| from == to) {
            return;
        }
        for row in &mut self.rows {
            let found = devices.iter().find(|(from, _)| *from == row.dev);
            row.dev = found.map_or(row.dev, |(_, to)| *to);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of names, link targets and names of extended attributes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.text.capacity()
            + self.more.capacity() * size_of::<More>()
    }

    /// The rows with their names and links.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Row, &[u8], &[u8])> {
        self.iter_all().map(|(row, name, link, _)| (row, name, link))
    }

    /// The same with the columns that were asked for.
    pub(crate) fn iter_all(&self) -> impl Iterator<Item = (&Row, &[u8], &[u8], Option<Extra<'_>>)> {
        let mut text = self.text.as_slice();
        self.rows.iter().enumerate().map(move |(at, row)| {
            let (name, rest) = text.split_at(usize::from(row.name_len));
            let (link, rest) = rest.split_at(usize::from(row.link_len));
            text = rest;
            let extra = self.more.get(at).map(|more| {
                let xattrs = more.xattrs_len.map(|len| {
                    let (xattrs, rest) = text.split_at(len as usize);
                    text = rest;
                    Cow::Borrowed(std::str::from_utf8(xattrs).unwrap_or_default())
                });
                Extra { project: more.project, xattrs, acl: more.acl, failed: more.failed }
            });
            (row, name, link, extra)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_with_their_names() {
        let mut chunk = Chunk::default();
        let meta =
            Meta { size: 7, blocks: 8, modified: Stamp { sec: -1, nsec: 999_999_999 }, ..Meta::default() };
        chunk.push(b"a", FileType::Regular, Ok(&meta), b"");
        chunk.push(b"link", FileType::Symlink, Ok(&meta), b"to");
        chunk.push(b"gone", FileType::Regular, Err(Errno::NOENT), b"");
        let found: Vec<_> = chunk.iter().map(|(row, name, link)| (row.errno, name, link)).collect();
        assert_eq!(found, [(0, &b"a"[..], &b""[..]), (0, b"link", b"to"), (2, b"gone", b"")]);
        let sums = Sums { files: 2, others: 1, size: 14, blocks: 16, ..chunk.sums };
        assert_eq!(chunk.sums, sums);
        assert_eq!(chunk.sums.modified, Some(-1));
    }

    #[test]
    fn what_was_asked_for_comes_out_with_its_row() {
        let mut chunk = Chunk::default();
        let extras = [
            Extra { project: Some(7), xattrs: Some("user.a".into()), ..Extra::default() },
            Extra { acl: Some(true), failed: Failed { project: 5, xattrs: 0 }, ..Extra::default() },
            Extra { xattrs: Some("".into()), ..Extra::default() },
        ];
        for (name, extra) in [b"a", b"b", b"c"].into_iter().zip(&extras) {
            chunk.push(name, FileType::Symlink, Ok(&Meta::default()), b"to");
            chunk.push_extra(extra);
        }
        let found: Vec<_> = chunk.iter_all().map(|(_, name, link, extra)| (name, link, extra)).collect();
        let [a, b, c] = extras;
        let expected =
            [(&b"a"[..], a), (b"b", b), (b"c", c)].map(|(name, extra)| (name, &b"to"[..], Some(extra)));
        assert_eq!(found, expected);
    }

    #[test]
    fn times_go_to_the_ends_of_what_there_is() {
        assert_eq!(micros(Stamp { sec: 1, nsec: 1_234_567 }), (1_001_234, 567));
        assert_eq!(micros(Stamp { sec: -1, nsec: 999_999_999 }), (-1, 999));
        assert_eq!(micros(Stamp { sec: i64::MAX, nsec: 0 }).0, i64::MAX);
        assert_eq!(micros(Stamp { sec: i64::MIN, nsec: 0 }).0, i64::MIN + 1);
    }

    #[test]
    fn a_time_beyond_the_range_is_known_to_be_one() {
        let row = |sec| {
            Row::new(FileType::Regular, Ok(&Meta { changed: Stamp { sec, nsec: 0 }, ..Meta::default() }))
        };
        assert!(!row(0).is_out_of_range() && !row(9_000_000_000_000).is_out_of_range());
        assert!(row(10_000_000_000_000).is_out_of_range() && row(i64::MIN).is_out_of_range());
        let born = Meta { born: Some(Stamp { sec: i64::MAX, nsec: 0 }), ..Meta::default() };
        assert!(Row::new(FileType::Regular, Ok(&born)).is_out_of_range());
        assert!(!Row::new(FileType::Regular, Err(Errno::IO)).is_out_of_range());
    }
}
