//! One entry of a listing, and the address it has relative to its directory.

use fathom_io::{FileType, Meta, Stamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;

/// All but RFC 3986's unreserved characters (section 2.3): what else a path may hold unescaped is read differently by HTML, shells and
/// older servers.
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// What is there but cannot be served: a socket, a pipe, a device.
    Other,
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::Directory => Self::Directory,
            FileType::Regular => Self::File,
            _ => Self::Other,
        }
    }
}

/// One entry of a directory; for a symbolic link, all but the name is of what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As the directory has it: any bytes but NUL and `/`.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Length of a file; 0 of anything else.
    pub bytes: u64,
    /// Time of the last change of the contents.
    pub mtime: Stamp,
}

impl Entry {
    /// The entry called `name`, with size and times of `meta`.
    pub(super) fn new(name: &[u8], meta: &Meta) -> Self {
        let kind = Kind::from(meta.file_type());
        let bytes = if kind == Kind::File { u64::try_from(meta.size).unwrap_or(0) } else { 0 };
        Self { name: name.to_vec(), kind, bytes, mtime: meta.modified }
    }

    /// Bytes of memory it takes, with its place in the allocator.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.name.capacity() + 16
    }

    /// The entry's address relative to its directory's, which ends in a slash; none for what cannot be served. It begins with `./`,
    /// for a name with a colon would be read as a scheme (RFC 3986, section 4.2).
    #[must_use]
    pub fn href(&self) -> Option<String> {
        let mut href = String::from("./");
        href.extend(percent_encode(&self.name, RESERVED));
        match self.kind {
            Kind::Directory => href.push('/'),
            Kind::File => {}
            Kind::Other => return None,
        }
        Some(href)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn href(name: &[u8], kind: Kind) -> Option<String> {
        Entry { name: name.to_vec(), kind, bytes: 0, mtime: Stamp::default() }.href()
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
            assert_eq!(href(name, Kind::File).as_deref(), Some(expected));
            assert_eq!(href(name, Kind::Directory), Some(format!("{expected}/")));
            assert_eq!(href(name, Kind::Other), None);
        }
    }

    #[test]
    fn only_files_have_a_size() {
        let meta = |mode| Meta { mode, size: 7, ..Meta::default() };
        let table =
            [(0o100_644, Kind::File, 7), (0o040_755, Kind::Directory, 0), (0o010_644, Kind::Other, 0)];
        for (mode, kind, bytes) in table {
            let entry = Entry::new(b"x", &meta(mode));
            assert_eq!((entry.kind, entry.bytes), (kind, bytes), "{mode:o}");
        }
        assert_eq!(Entry::new(b"x", &Meta { size: -1, ..meta(0o100_644) }).bytes, 0);
    }
}
