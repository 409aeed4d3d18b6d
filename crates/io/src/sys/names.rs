//! A batch of directory entries in one arena: no heap object an entry. Here, among the system calls, because an entry is
//! handed to them without its name being measured once more.

use std::ffi::CStr;
use std::ops::Range;

use crate::FileType;

/// One entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The entry's name, without `.` and `..`.
    pub name: &'a CStr,
    /// Inode number the dirent gives; for a mount point, of the directory underneath.
    pub ino: u64,
    /// Type the dirent gives.
    pub file_type: FileType,
    /// Whether [`Model::stat`](crate::Model::stat) takes this entry's metadata.
    pub stat: bool,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    ino: u64,
    start: u32,
    /// With the closing NUL.
    len: u16,
    file_type: FileType,
    stat: bool,
}

fn name<'a>(bytes: &'a [u8], record: &Record) -> &'a CStr {
    let start = record.start as usize;
    let name = &bytes[start..start + usize::from(record.len)];
    // SAFETY: records are made by `push` alone, which appends a whole C string to the bytes and notes its place; bytes
    // never change after that, and go only together with all records (`clear`).
    unsafe { CStr::from_bytes_with_nul_unchecked(name) }
}

/// Names read from one directory, in the order read, until sorted.
#[derive(Clone, Debug, Default)]
pub struct Names {
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// Where reading goes on after this batch (`d_off` of its last entry).
    pub(crate) cookie: u64,
}

impl Names {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets the entries and keeps the memory, unless one huge directory made it big.
    pub fn clear(&mut self) {
        const KEEP: usize = 1 << 20;
        self.records.clear();
        self.bytes.clear();
        self.cookie = 0;
        if self.bytes.capacity() > KEEP {
            *self = Self::default();
        }
    }

    /// Appends an entry. `name` ends in its only NUL.
    ///
    /// # Panics
    /// If the batch exceeds 4 GiB of names or a name 64 KiB: the readers stop a batch far earlier.
    pub fn push(&mut self, name: &CStr, ino: u64, file_type: FileType) {
        let bytes = name.to_bytes_with_nul();
        self.records.push(Record {
            ino,
            start: u32::try_from(self.bytes.len()).expect("a batch holds at most 100,000 names of 256 bytes"),
            len: u16::try_from(bytes.len()).expect("d_reclen is 16 bits, so a name is shorter"),
            file_type,
            stat: true,
        });
        self.bytes.extend_from_slice(bytes);
    }

    /// Entry `index`.
    ///
    /// # Panics
    /// If there is no such entry.
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

    /// Entries `range`, in order.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = Name<'_>> {
        range.map(|index| self.get(index))
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = Name<'_>> {
        self.range(0..self.len())
    }

    /// Orders the entries by inode number, equal ones as they were read.
    pub fn sort_by_inode(&mut self) {
        self.records.sort_by_key(|record| record.ino);
    }

    /// Drops the entries `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(Name<'_>) -> bool) {
        let bytes = &self.bytes;
        self.records.retain(|record| {
            let name = name(bytes, record);
            keep(Name { name, ino: record.ino, file_type: record.file_type, stat: record.stat })
        });
    }

    /// Leaves the metadata of entries of type `file_type` out of [`Model::stat`](crate::Model::stat).
    pub fn skip_stat(&mut self, file_type: FileType) {
        for record in self.records.iter_mut().filter(|record| record.file_type == file_type) {
            record.stat = false;
        }
    }

    /// Where reading goes on after this batch; meaningful to the directory it was read from only.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Bytes of memory behind this batch.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.records.capacity() * size_of::<Record>()
    }
}
