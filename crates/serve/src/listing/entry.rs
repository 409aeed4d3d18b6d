//! One entry of a listing, and its address relative to its directory.

use fathom_io::{FileTime, FileType, Meta};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;

/// All characters but the unreserved ones of RFC 3986, section 2.3. HTML, shells and older servers
/// read others differently.
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// An entry that cannot be served: a socket, a pipe, a device.
    Other,
}

impl From<FileType> for EntryKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::Directory => Self::Directory,
            FileType::Regular => Self::File,
            _ => Self::Other,
        }
    }
}

/// One entry of a directory. For a symbolic link, all fields but the name describe the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingEntry {
    /// The name in the directory: any bytes but NUL and `/`.
    pub name: Vec<u8>,
    /// The type.
    pub kind: EntryKind,
    /// The length of a file in bytes; 0 for other types.
    pub bytes: u64,
    /// The mtime.
    pub mtime: FileTime,
}

impl ListingEntry {
    /// Creates the entry called `name`, with size and times of `meta`.
    pub(super) fn new(name: &[u8], meta: &Meta) -> Self {
        let kind = EntryKind::from(meta.file_type());
        let bytes = if kind == EntryKind::File { u64::try_from(meta.size).unwrap_or(0) } else { 0 };
        Self { name: name.to_vec(), kind, bytes, mtime: meta.mtime }
    }

    /// Returns the bytes of memory of the entry, with the allocator's overhead.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.name.capacity() + 16
    }

    /// Returns the address of the entry relative to its directory, which ends in a slash; `None` if
    /// it cannot be served. The address begins with `./`, as a name with a colon would otherwise be
    /// read as a scheme (RFC 3986, section 4.2).
    #[must_use]
    pub fn href(&self) -> Option<String> {
        let mut href = String::from("./");
        href.extend(percent_encode(&self.name, RESERVED));
        match self.kind {
            EntryKind::Directory => href.push('/'),
            EntryKind::File => {}
            EntryKind::Other => return None,
        }
        Some(href)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn href(name: &[u8], kind: EntryKind) -> Option<String> {
        ListingEntry { name: name.to_vec(), kind, bytes: 0, mtime: FileTime::default() }.href()
    }

    #[test]
    fn addresses_are_relative_and_encoded() {
        let table: [(&[u8], &str); 8] = [
            (b"a-b_c.d~e", "./a-b_c.d~e"),
            (b"javascript:alert(1)", "./javascript%3Aalert%281%29"),
            (b"%20 #[]{}?", "./%2520%20%23%5B%5D%7B%7D%3F"),
            (b"\"<script>'&", "./%22%3Cscript%3E%27%26"),
            (b"a\nb\\c", "./a%0Ab%5Cc"),
            ("\u{1f600}".as_bytes(), "./%F0%9F%98%80"),
            (b"\xff\x80", "./%FF%80"),
            (b"...", "./..."),
        ];
        for (name, expected) in table {
            assert_eq!(href(name, EntryKind::File).as_deref(), Some(expected));
            assert_eq!(href(name, EntryKind::Directory), Some(format!("{expected}/")));
            assert_eq!(href(name, EntryKind::Other), None);
        }
    }

    #[test]
    fn only_files_have_a_size() {
        let meta = |mode| Meta { mode, size: 7, ..Meta::default() };
        let table = [
            (0o100_644, EntryKind::File, 7),
            (0o040_755, EntryKind::Directory, 0),
            (0o010_644, EntryKind::Other, 0),
        ];
        for (mode, kind, bytes) in table {
            let entry = ListingEntry::new(b"x", &meta(mode));
            assert_eq!((entry.kind, entry.bytes), (kind, bytes), "{mode:o}");
        }
        assert_eq!(ListingEntry::new(b"x", &Meta { size: -1, ..meta(0o100_644) }).bytes, 0);
    }
}
