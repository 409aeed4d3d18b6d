//! A batch of directory entries in one arena, without a heap object for each entry. It is in `sys`
//! because names are converted to C strings without a scan for the NUL, which is `unsafe`.

use std::ffi::CStr;
use std::ops::Range;

use crate::{Errno, FileType};

/// An entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Name of the entry.
    pub name: &'a CStr,
    /// Inode number in the dirent. For a mount point, the number of the directory underneath.
    pub ino: u64,
    /// File type in the dirent.
    pub file_type: FileType,
    /// Whether [`MetadataModel::stat`](crate::MetadataModel::stat) reads the metadata of this
    /// entry.
    pub stat: bool,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    ino: u64,
    start: u32,
    /// Length with the terminating NUL.
    len: u16,
    file_type: FileType,
    stat: bool,
}

/// Returns the record of a name of `len` bytes at `start`, including its NUL.
#[inline]
fn record(start: usize, len: usize, ino: u64, file_type: FileType) -> Result<Record, Errno> {
    let start = u32::try_from(start).map_err(|_| Errno::OVERFLOW)?;
    let len = u16::try_from(len).map_err(|_| Errno::NAMETOOLONG)?;
    Ok(Record { ino, start, len, file_type, stat: true })
}

fn name<'a>(bytes: &'a [u8], record: &Record) -> &'a CStr {
    let start = record.start as usize;
    let name = &bytes[start..start + usize::from(record.len)];
    // SAFETY: each record refers to a whole C string in the bytes: `push_with_nul` appends the
    // bytes of a `CStr`, `push_field` appends up to the first NUL and cuts off everything behind
    // it. Bytes never change after that. `sort_by_inode` moves whole names and updates their
    // records, and `clear` removes bytes and records together.
    unsafe { CStr::from_bytes_with_nul_unchecked(name) }
}

/// Appends `field` up to and including its first NUL. Returns the length of the name before the
/// NUL. If `field` has no NUL, or a slash before it, leaves `bytes` unchanged and returns `None`.
///
/// Processes eight bytes at a time and reads each once, because listing a cached directory spends
/// most of its time here.
fn append_name(bytes: &mut Vec<u8>, field: &[u8]) -> Option<usize> {
    let start = bytes.len();
    let (words, rest) = field.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        bytes.extend_from_slice(word);
        if let Some(at) = nul_or_slash_in(*word) {
            return end_name(bytes, start, 8 * index + at);
        }
    }
    let found = match field.last_chunk::<8>() {
        // The loop has already appended the first bytes of this chunk: none is NUL or a slash.
        Some(last) => {
            let done = field.len() - 8;
            bytes.truncate(start + done);
            bytes.extend_from_slice(last);
            nul_or_slash_in(*last).map(|at| done + at)
        }
        None => {
            bytes.extend_from_slice(rest);
            rest.iter().position(|byte| matches!(byte, 0 | b'/'))
        }
    };
    match found {
        Some(at) => end_name(bytes, start, at),
        None => {
            bytes.truncate(start);
            None
        }
    }
}

/// Truncates `bytes` after the name of `len` bytes at `start` and its NUL. If a slash follows the
/// name in place of the NUL, removes the name as well.
#[inline]
fn end_name(bytes: &mut Vec<u8>, start: usize, len: usize) -> Option<usize> {
    let is_name = bytes[start + len] == 0;
    bytes.truncate(if is_name { start + len + 1 } else { start });
    is_name.then_some(len)
}

/// Returns the index of the first byte of `word` that is NUL or a slash.
#[inline]
fn nul_or_slash_in(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    const SLASHES: u64 = u64::from_le_bytes([b'/'; 8]);
    // Sets the high bit of each zero byte. A borrow may also set it in bytes after the first zero
    // byte, so only the lowest bit set is exact.
    let zeroes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let word = u64::from_le_bytes(word);
    let found = zeroes(word) | zeroes(word ^ SLASHES);
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// A batch of names from one directory, in the order of the directory until it is sorted.
///
/// ```
/// use fathom_io::{FileType, Names};
///
/// let mut names = Names::new();
/// names.push(c"src", 12, FileType::Directory)?;
/// names.push(c"README.md", 11, FileType::Regular)?;
/// names.sort_by_inode();
/// names.skip_stat(FileType::Directory);
/// let found: Vec<_> = names.iter().map(|name| (name.name, name.stat)).collect();
/// assert_eq!(found, [(c"README.md", true), (c"src", false)]);
/// # Ok::<(), fathom_io::Errno>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Names {
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// Directory position after this batch (`d_off` of its last entry).
    pub(crate) cookie: u64,
    /// The cookie after the last entry of a directory, if the filesystem has a fixed one.
    end: Option<u64>,
}

impl Names {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether the batch has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes all entries. Keeps the allocated memory up to 1 MiB of names.
    pub fn clear(&mut self) {
        const KEEP: usize = 1 << 20;
        self.records.clear();
        self.bytes.clear();
        self.cookie = 0;
        self.end = None;
        if self.bytes.capacity() > KEEP {
            *self = Self::default();
        }
    }

    /// Appends an entry. The name may be a path.
    ///
    /// # Errors
    /// ENAMETOOLONG for a name of 65,535 bytes or more: no system accepts a path of that length
    /// (`PATH_MAX`), and no dirent can have it (`d_reclen` has 16 bits). EOVERFLOW if the batch
    /// already has 4 GiB of names.
    pub fn push(&mut self, name: &CStr, ino: u64, file_type: FileType) -> Result<(), Errno> {
        self.push_with_nul(name.to_bytes_with_nul(), ino, file_type)
    }

    /// Reserves memory for the entries of `dirents_bytes` of dirents.
    pub(crate) fn reserve(&mut self, dirents_bytes: usize) {
        /// Size of a record with a name of one byte: header, name, NUL, and padding to a multiple
        /// of eight bytes (getdents64(2)).
        const DIRENT_BYTES_MIN: usize = 24;
        self.records.reserve(dirents_bytes / DIRENT_BYTES_MIN);
        self.bytes.reserve(dirents_bytes);
    }

    /// Appends an entry whose name is `field` up to its first NUL. Returns false if `field` has no
    /// NUL, or the name is empty or has a slash.
    #[inline]
    pub(crate) fn push_field(&mut self, field: &[u8], ino: u64, file_type: FileType) -> bool {
        let start = self.bytes.len();
        let record = append_name(&mut self.bytes, field)
            .filter(|len| *len > 0)
            .and_then(|len| record(start, len + 1, ino, file_type).ok());
        match record {
            Some(record) => self.records.push(record),
            None => self.bytes.truncate(start),
        }
        record.is_some()
    }

    /// Appends an entry whose `name` ends in its only NUL.
    fn push_with_nul(&mut self, name: &[u8], ino: u64, file_type: FileType) -> Result<(), Errno> {
        self.records.push(record(self.bytes.len(), name.len(), ino, file_type)?);
        self.bytes.extend_from_slice(name);
        Ok(())
    }

    /// Returns the entry `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Names::len`].
    #[must_use]
    pub fn get(&self, index: usize) -> Name<'_> {
        let record = &self.records[index];
        Name {
            name: name(&self.bytes, record),
            ino: record.ino,
            file_type: record.file_type,
            stat: record.stat,
        }
    }

    /// Iterates over the entries `range`, in order.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = Name<'_>> {
        range.map(|index| self.get(index))
    }

    /// Counts the entries in `range` that have this type.
    #[must_use]
    pub fn count_of(&self, range: Range<usize>, file_type: FileType) -> usize {
        self.records[range].iter().filter(|record| record.file_type == file_type).count()
    }

    /// Counts the entries in `range` whose metadata
    /// [`MetadataModel::stat`](crate::MetadataModel::stat) reads.
    #[must_use]
    pub fn count_stat(&self, range: Range<usize>) -> usize {
        self.records[range].iter().filter(|record| record.stat).count()
    }

    /// Iterates over all entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = Name<'_>> {
        self.range(0..self.len())
    }

    /// Sorts the entries by inode number, and equal ones by their order in the directory. Also
    /// moves the names into that order: the kernel reads them next, and names in random order would
    /// cost a cache miss each.
    pub fn sort_by_inode(&mut self) {
        self.records.sort_unstable_by_key(|record| (record.ino, record.start));
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for record in &mut self.records {
            let start = record.start as usize;
            // The total length is unchanged, so every start still fits 32 bits.
            record.start = bytes.len() as u32;
            bytes.extend_from_slice(&self.bytes[start..start + usize::from(record.len)]);
        }
        self.bytes = bytes;
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(Name<'_>) -> bool) {
        let bytes = &self.bytes;
        self.records.retain(|record| {
            let name = name(bytes, record);
            keep(Name { name, ino: record.ino, file_type: record.file_type, stat: record.stat })
        });
    }

    /// Excludes entries of type `file_type` from
    /// [`MetadataModel::stat`](crate::MetadataModel::stat).
    pub fn skip_stat(&mut self, file_type: FileType) {
        self.skip_stat_of(|found| found == file_type);
    }

    /// Excludes entries from [`MetadataModel::stat`](crate::MetadataModel::stat) if `skip` returns
    /// true for their type.
    pub fn skip_stat_of(&mut self, skip: impl Fn(FileType) -> bool) {
        self.records.iter_mut().for_each(|record| record.stat &= !skip(record.file_type));
    }

    /// Excludes entries from [`MetadataModel::stat`](crate::MetadataModel::stat) if `skip` returns
    /// true for them.
    pub fn skip_stat_if(&mut self, mut skip: impl FnMut(Name<'_>) -> bool) {
        let bytes = &self.bytes;
        for record in &mut self.records {
            let name = name(bytes, record);
            let skipped =
                skip(Name { name, ino: record.ino, file_type: record.file_type, stat: record.stat });
            record.stat &= !skipped;
        }
    }

    /// Returns the position after this batch, to be passed to [`sys::seek`](crate::sys::seek) on
    /// the same directory.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Sets the cookie at which the directory ends, until the batch is [cleared](Names::clear). See
    /// [`filesystem::end_cookie`](crate::filesystem::end_cookie).
    pub fn end_at(&mut self, cookie: Option<u64>) {
        self.end = cookie;
    }

    /// Returns whether the batch ends where its directory does. `false` if that is not known.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.end == Some(self.cookie)
    }

    /// Returns the bytes of heap memory that the batch occupies.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.records.capacity() * size_of::<Record>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends `field` to a buffer that is not empty. Returns the result and the bytes appended.
    fn appended(field: &[u8]) -> (Option<usize>, Vec<u8>) {
        let mut bytes = b"before\0".to_vec();
        let len = append_name(&mut bytes, field);
        (len, bytes.split_off(7))
    }

    #[test]
    fn append_name_finds_the_first_nul_or_slash_at_any_position() {
        for len in 0..40 {
            assert_eq!(appended(&vec![0x80; len]), (None, vec![]));
            assert_eq!(appended(&vec![1; len]), (None, vec![]), "0x01 is not zero");
            for at in 0..len {
                for (found, after) in [(0, b'/'), (b'/', 0), (0, 1), (b'/', b'0')] {
                    let mut field: Vec<u8> = (b'a'..).take(len).collect();
                    field[at] = found;
                    field[at + 1..].fill(after);
                    let expected =
                        if found == 0 { (Some(at), field[..=at].to_vec()) } else { (None, vec![]) };
                    assert_eq!(appended(&field), expected, "{field:?}");
                }
            }
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_refused_and_leaves_the_batch_unchanged() {
        let name = |len| std::ffi::CString::new(vec![b'x'; len]).unwrap();
        let mut names = Names::new();
        assert_eq!(names.push(&name(65_534), 1, FileType::Regular), Ok(()));
        for len in [65_535, 65_536, 1 << 20] {
            assert_eq!(names.push(&name(len), 1, FileType::Regular), Err(Errno::NAMETOOLONG));
            assert!(!names.push_field(name(len).as_bytes_with_nul(), 1, FileType::Regular));
        }
        assert_eq!(names.push(c"next", 1, FileType::Regular), Ok(()));
        let lens: Vec<_> = names.iter().map(|name| name.name.to_bytes().len()).collect();
        assert_eq!(lens, [65_534, 4]);
    }

    #[test]
    fn a_field_without_a_nul_or_with_a_slash_is_refused() {
        let mut names = Names::new();
        for field in [b"".as_slice(), b"\0", b"abc", b"a/b\0", b"/\0", b"0123456/\0", b"01234567"] {
            assert!(!names.push_field(field, 1, FileType::Regular), "{field:?}");
        }
        assert!(names.push_field(b"a\0/\0rest", 1, FileType::Regular));
        assert_eq!(names.iter().map(|name| name.name).collect::<Vec<_>>(), [c"a"]);
    }
}
