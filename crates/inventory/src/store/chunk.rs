//! The rows that workers make of the entries of a directory: fixed-size numbers, and one buffer for
//! all names.

use std::borrow::Cow;

use fathom_walk::{Attributes, Errno, FileTime, FileType, Meta};
use serde::{Deserialize, Serialize};

use super::optional::{OptionalErrors, OptionalValues};

/// Marks a missing value of [`EntryRow::btime`].
const NEVER: i64 = i64::MIN;
/// Marks a missing value of [`EntryRow::attributes`].
const UNREPORTED: u8 = u8::MAX;

/// Columns in which a row has no value although it has metadata: an imported inventory lacks the
/// values that the other program did not write.
///
/// The mode is not one of them: a row without a mode has no metadata at all. Where only the type is
/// known, the permission bits are 0, which stands for unknown if the owner is unknown, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingColumns(u16);

impl MissingColumns {
    /// The inode number.
    pub const INO: Self = Self(1);
    /// The owner.
    pub const UID: Self = Self(1 << 1);
    /// The group.
    pub const GID: Self = Self(1 << 2);
    /// The number of names.
    pub const NLINK: Self = Self(1 << 3);
    /// The size.
    pub const SIZE: Self = Self(1 << 4);
    /// The blocks.
    pub const BLOCKS: Self = Self(1 << 5);
    /// The access time.
    pub const ATIME: Self = Self(1 << 6);
    /// The modification time.
    pub const MTIME: Self = Self(1 << 7);
    /// The change time.
    pub const CTIME: Self = Self(1 << 8);
    /// The columns of the times, in the order of [`EntryRow::micros`].
    pub const TIMES: [Self; 3] = [Self::ATIME, Self::MTIME, Self::CTIME];

    /// Returns whether all columns of `other` are among these.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these columns together with `other`.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The metadata of an entry, as the tables have it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EntryRow {
    /// The device number.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
    /// The size in bytes.
    pub size: i64,
    /// The blocks of 512 bytes.
    pub blocks: u64,
    pub(crate) mode: u32,
    /// The number of names.
    pub nlink: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Access, modification and change time, in microseconds since 1970.
    pub micros: [i64; 3],
    /// The nanoseconds of these times beyond the microsecond, below 1000.
    pub(crate) nanos: [u16; 3],
    #[serde(rename = "born")]
    btime: i64,
    name_len: u16,
    link_len: u16,
    /// The error because of which there is no metadata; 0 if there is.
    pub errno: u16,
    attributes: u8,
    #[serde(default)]
    pub(crate) missing: MissingColumns,
    #[serde(skip)]
    pub(crate) file_type: FileType,
}

/// The range of times in microseconds that 64 bits can hold, without the mark of a missing value.
const MICROS: std::ops::RangeInclusive<i64> = i64::MIN + 1..=i64::MAX;

impl EntryRow {
    /// Makes the row of an entry, or of one whose metadata could not be read.
    pub fn new(file_type: FileType, meta: Result<&Meta, Errno>) -> Self {
        let (known, errno) = match meta {
            Ok(meta) => (*meta, 0),
            Err(errno) => (Meta::default(), errno.raw_os_error() as u16),
        };
        let times = [known.atime, known.mtime, known.ctime].map(micros);
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
            btime: known.btime.map_or(NEVER, |btime| micros(btime).0),
            name_len: 0,
            link_len: 0,
            errno,
            attributes: known.attributes.map_or(UNREPORTED, Attributes::bits),
            missing: MissingColumns::default(),
            file_type,
        }
    }

    /// Returns the row without values in these columns.
    pub fn without(mut self, missing: MissingColumns) -> Self {
        self.missing = missing;
        self
    }

    /// Returns whether the row has a value in these columns.
    pub fn has(&self, columns: MissingColumns) -> bool {
        self.errno == 0 && !self.missing.contains(columns)
    }

    /// Returns the time of the last modification, in microseconds since 1970.
    pub fn mtime(&self) -> Option<i64> {
        self.has(MissingColumns::MTIME).then_some(self.micros[1])
    }

    /// Returns the time of the last change, in microseconds since 1970.
    pub(crate) fn ctime(&self) -> Option<i64> {
        self.has(MissingColumns::CTIME).then_some(self.micros[2])
    }

    /// Returns the attributes, if the filesystem reported any.
    pub(crate) fn attributes(&self) -> Option<Attributes> {
        Attributes::from_bits(self.attributes)
    }

    /// Returns whether a time is an end of the range, which stands for all times beyond it.
    pub fn is_out_of_range(&self) -> bool {
        let is_end = |micros: &i64| micros == MICROS.start() || micros == MICROS.end();
        self.micros.iter().chain(&self.btime()).any(is_end)
    }

    /// Returns the creation time, in microseconds since 1970.
    pub(crate) fn btime(&self) -> Option<i64> {
        (self.btime != NEVER).then_some(self.btime)
    }
}

/// Returns a time in microseconds, and the nanoseconds beyond. A time that 64 bits cannot hold
/// becomes an end of the range.
pub fn micros(stamp: FileTime) -> (i64, u16) {
    let micros = i128::from(stamp.sec) * 1_000_000 + i128::from(stamp.nsec / 1000);
    let bounded = micros.clamp(i128::from(*MICROS.start()), i128::from(*MICROS.end()));
    (bounded as i64, (stamp.nsec % 1000) as u16)
}

/// The sums over entries of a directory or a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryTotals {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub dirs: u64,
    /// Entries of other types.
    pub others: u64,
    /// Bytes.
    pub size: i64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    /// The newest modification, in microseconds since 1970.
    #[serde(rename = "modified")]
    pub max_mtime: Option<i64>,
    /// The newest change, in microseconds since 1970.
    #[serde(rename = "changed")]
    pub max_ctime: Option<i64>,
}

impl EntryTotals {
    /// Adds the sums in `other`.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.dirs += other.dirs;
        self.others += other.others;
        self.size = self.size.saturating_add(other.size);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.max_mtime = self.max_mtime.max(other.max_mtime);
        self.max_ctime = self.max_ctime.max(other.max_ctime);
    }

    fn count(&mut self, row: &EntryRow) {
        let regular = row.file_type == FileType::Regular;
        self.files += u64::from(regular);
        self.others += u64::from(!regular);
        if row.errno == 0 {
            self.size = self.size.saturating_add(row.size);
            self.blocks = self.blocks.saturating_add(row.blocks);
            self.max_mtime = self.max_mtime.max(row.mtime());
            self.max_ctime = self.max_ctime.max(row.ctime());
        }
    }
}

/// The optional columns of one row.
#[derive(Clone, Copy, Debug)]
struct OptionalRow {
    project: Option<u32>,
    xattrs_len: Option<u32>,
    acl: Option<bool>,
    ignored: Option<bool>,
    failed: OptionalErrors,
}

/// Rows of one directory, without its subdirectories.
#[derive(Debug, Default)]
pub struct RowChunk {
    rows: Vec<EntryRow>,
    /// For each row the name, then the target of a link, then the names of extended attributes.
    text: Vec<u8>,
    /// The optional columns of each row; empty if the scan has none.
    optional: Vec<OptionalRow>,
    /// The sums over the rows.
    pub sums: EntryTotals,
}

impl RowChunk {
    /// Makes room for `rows` more.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
        self.text.reserve(rows * 16);
    }

    /// Adds an entry. `link` is the target of a symbolic link.
    pub fn push(&mut self, name: &[u8], file_type: FileType, meta: Result<&Meta, Errno>, link: &[u8]) {
        // The kernel limits names to 255 bytes and link targets to 4095, so the lengths fit.
        self.push_row(EntryRow::new(file_type, meta), name, link);
    }

    /// Adds the optional columns of the entry that was pushed last. They have to be added for every
    /// entry of a chunk or for none.
    pub fn push_optional(&mut self, optional_values: &OptionalValues<'_>) {
        let OptionalValues { project, acl, ignored, failed, .. } = *optional_values;
        // The kernel limits a list of names to 64 KiB. A byte takes up to four in the text form.
        let xattrs_len = optional_values.xattrs.as_deref().and_then(|xattrs| xattrs.len().try_into().ok());
        if let (Some(xattrs), Some(_)) = (&optional_values.xattrs, xattrs_len) {
            self.text.extend_from_slice(xattrs.as_bytes());
        }
        self.optional.push(OptionalRow { project, xattrs_len, acl, ignored, failed });
    }

    /// Adds `row` and returns true, unless the name or the link is too long.
    pub fn push_row(&mut self, mut row: EntryRow, name: &[u8], link: &[u8]) -> bool {
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

    /// Replaces the device number `from` by `to`.
    pub fn renumber(&mut self, from: u64, to: u64) {
        self.rows.iter_mut().filter(|row| row.dev == from).for_each(|row| row.dev = to);
    }

    /// Replaces many device numbers at once, each of which is looked up once.
    pub fn renumber_all(&mut self, devices: &[(u64, u64)]) {
        if devices.iter().all(|(from, to)| from == to) {
            return;
        }
        for row in &mut self.rows {
            let found = devices.iter().find(|(from, _)| *from == row.dev);
            row.dev = found.map_or(row.dev, |(_, to)| *to);
        }
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of bytes of names, link targets and lists of extended attributes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the bytes of memory that the buffers take.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<EntryRow>()
            + self.text.capacity()
            + self.optional.capacity() * size_of::<OptionalRow>()
    }

    /// Iterates over the rows with their names and link targets.
    pub fn iter(&self) -> impl Iterator<Item = (&EntryRow, &[u8], &[u8])> {
        self.iter_all().map(|(row, name, link, _)| (row, name, link))
    }

    /// Iterates over the rows with names, link targets and optional columns.
    pub fn iter_all(&self) -> impl Iterator<Item = (&EntryRow, &[u8], &[u8], Option<OptionalValues<'_>>)> {
        let mut text = self.text.as_slice();
        self.rows.iter().enumerate().map(move |(at, row)| {
            let (name, rest) = text.split_at(usize::from(row.name_len));
            let (link, rest) = rest.split_at(usize::from(row.link_len));
            text = rest;
            let optional_values = self.optional.get(at).map(|optional| {
                let xattrs = optional.xattrs_len.map(|len| {
                    let (xattrs, rest) = text.split_at(len as usize);
                    text = rest;
                    Cow::Borrowed(std::str::from_utf8(xattrs).unwrap_or_default())
                });
                OptionalValues {
                    project: optional.project,
                    xattrs,
                    acl: optional.acl,
                    ignored: optional.ignored,
                    failed: optional.failed,
                }
            });
            (row, name, link, optional_values)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_with_their_names() {
        let mut chunk = RowChunk::default();
        let meta =
            Meta { size: 7, blocks: 8, mtime: FileTime { sec: -1, nsec: 999_999_999 }, ..Meta::default() };
        chunk.push(b"a", FileType::Regular, Ok(&meta), b"");
        chunk.push(b"link", FileType::Symlink, Ok(&meta), b"to");
        chunk.push(b"gone", FileType::Regular, Err(Errno::NOENT), b"");
        let found: Vec<_> = chunk.iter().map(|(row, name, link)| (row.errno, name, link)).collect();
        assert_eq!(found, [(0, &b"a"[..], &b""[..]), (0, b"link", b"to"), (2, b"gone", b"")]);
        let sums = EntryTotals { files: 2, others: 1, size: 14, blocks: 16, ..chunk.sums };
        assert_eq!(chunk.sums, sums);
        assert_eq!(chunk.sums.max_mtime, Some(-1));
    }

    #[test]
    fn optional_values_come_out_with_their_row() {
        let mut chunk = RowChunk::default();
        let optional_values = [
            OptionalValues { project: Some(7), xattrs: Some("user.a".into()), ..OptionalValues::default() },
            OptionalValues {
                acl: Some(true),
                failed: OptionalErrors { project: 5, xattrs: 0 },
                ..OptionalValues::default()
            },
            OptionalValues { xattrs: Some("".into()), ignored: Some(true), ..OptionalValues::default() },
        ];
        for (name, optional_values) in [b"a", b"b", b"c"].into_iter().zip(&optional_values) {
            chunk.push(name, FileType::Symlink, Ok(&Meta::default()), b"to");
            chunk.push_optional(optional_values);
        }
        let found: Vec<_> = chunk.iter_all().map(|(_, name, link, values)| (name, link, values)).collect();
        let [a, b, c] = optional_values;
        let expected = [(&b"a"[..], a), (b"b", b), (b"c", c)]
            .map(|(name, optional_values)| (name, &b"to"[..], Some(optional_values)));
        assert_eq!(found, expected);
    }

    #[test]
    fn times_out_of_range_become_an_end_of_the_range() {
        assert_eq!(micros(FileTime { sec: 1, nsec: 1_234_567 }), (1_001_234, 567));
        assert_eq!(micros(FileTime { sec: -1, nsec: 999_999_999 }), (-1, 999));
        assert_eq!(micros(FileTime { sec: i64::MAX, nsec: 0 }).0, i64::MAX);
        assert_eq!(micros(FileTime { sec: i64::MIN, nsec: 0 }).0, i64::MIN + 1);
    }

    #[test]
    fn a_time_beyond_the_range_is_known_to_be_one() {
        let row = |sec| {
            EntryRow::new(
                FileType::Regular,
                Ok(&Meta { ctime: FileTime { sec, nsec: 0 }, ..Meta::default() }),
            )
        };
        assert!(!row(0).is_out_of_range() && !row(9_000_000_000_000).is_out_of_range());
        assert!(row(10_000_000_000_000).is_out_of_range() && row(i64::MIN).is_out_of_range());
        let btime = Meta { btime: Some(FileTime { sec: i64::MAX, nsec: 0 }), ..Meta::default() };
        assert!(EntryRow::new(FileType::Regular, Ok(&btime)).is_out_of_range());
        assert!(!EntryRow::new(FileType::Regular, Err(Errno::IO)).is_out_of_range());
    }
}
