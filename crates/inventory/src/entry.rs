//! An entry as it is printed, and the interface for values that take further system calls.

use fathom_walk::{FileType, Meta};

/// An entry of the walk, in borrowed parts: the path is joined only where it is printed.
///
/// ```
/// use fathom_inventory::{Entry, type_letter};
/// use fathom_walk::FileType;
///
/// let file_type = FileType::Fifo;
/// let entry = Entry { dir: b"a/", name: b"b", root_len: 2, depth: 1, file_type, meta: None };
/// let mut path = Vec::new();
/// entry.write_path(&mut path);
/// assert_eq!((&path[..], type_letter(entry.file_type())), (&b"a/b"[..], b'p'));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The path of its directory, as it is reported; empty for a starting point.
    pub dir: &'a [u8],
    /// The name in that directory; for a starting point, the whole path as it was given.
    pub name: &'a [u8],
    /// The number of bytes at the beginning of the path that are the starting point.
    pub root_len: usize,
    /// The number of levels below the starting point, which has depth 0.
    pub depth: usize,
    /// The file type, if the directory says it.
    pub file_type: FileType,
    /// The metadata, if it was requested and is known.
    pub meta: Option<&'a Meta>,
}

impl Entry<'_> {
    /// Appends the path.
    pub fn write_path(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.dir);
        if !self.dir.is_empty() && !self.dir.ends_with(b"/") {
            out.push(b'/');
        }
        out.extend_from_slice(self.name);
    }

    /// Returns the file type: from the directory, otherwise from the metadata.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        match (self.file_type, self.meta) {
            (FileType::Unknown, Some(meta)) => meta.file_type(),
            (known, _) => known,
        }
    }
}

/// Returns the letter of a file type: `f d l p s c b`, or `U` where the type is unknown.
#[must_use]
pub fn type_letter(file_type: FileType) -> u8 {
    match file_type {
        FileType::Regular => b'f',
        FileType::Directory => b'd',
        FileType::Symlink => b'l',
        FileType::Fifo => b'p',
        FileType::Socket => b's',
        FileType::Char => b'c',
        FileType::Block => b'b',
        FileType::Unknown => b'U',
    }
}

/// Returns the file type that [`type_letter`] writes as this letter; `Unknown` for any other text.
pub fn type_of(letter: &[u8]) -> FileType {
    use FileType::{Block, Char, Directory, Fifo, Regular, Socket, Symlink};
    let known = [Regular, Directory, Symlink, Fifo, Socket, Char, Block];
    known.into_iter().find(|known| [type_letter(*known)] == letter).unwrap_or(FileType::Unknown)
}

/// The file that a symbolic link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkTarget {
    /// A file of this type.
    Type(FileType),
    /// No file (`ENOENT`, `ENOTDIR`).
    Missing,
    /// A loop of links (`ELOOP`).
    Loop,
    /// An unknown file: the lookup failed for another reason.
    Unknown,
}

/// Values that take a further system call for each entry. Where a lookup fails, nothing is printed;
/// an implementation that is to report failures has to record them.
pub trait Lookup {
    /// Returns the target of the symbolic link `entry`, as text.
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }

    /// Returns the file that the symbolic link `entry` leads to.
    fn target(&mut self, entry: &Entry<'_>) -> LinkTarget {
        let _ = entry;
        LinkTarget::Unknown
    }

    /// Returns the type of the filesystem that has `entry`, such as `ext4`.
    fn filesystem(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }

    /// Returns whether the directory `entry` has no entries; `None` if that is unknown.
    fn is_empty_dir(&mut self, entry: &Entry<'_>) -> Option<bool> {
        let _ = entry;
        None
    }

    /// Returns the security context of `entry`.
    fn context(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }
}

/// Looks up nothing.
impl Lookup for () {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_types_again() {
        let back = |letter: &u8| type_letter(type_of(&[*letter]));
        assert_eq!(b"fdlpscbU?".iter().map(back).collect::<Vec<_>>(), b"fdlpscbUU");
        assert_eq!([type_of(b""), type_of(b"ff")], [FileType::Unknown; 2]);
    }

    #[test]
    fn a_path_has_one_slash_more_than_its_directory_unless_that_ends_in_one() {
        let path = |dir: &[u8], name: &[u8]| {
            let entry = Entry { dir, name, root_len: 0, depth: 1, file_type: FileType::Unknown, meta: None };
            let mut out = Vec::new();
            entry.write_path(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(path(b"", b"a/"), "a/");
        assert_eq!(path(b"a", b"b"), "a/b");
        assert_eq!(path(b"a//", b"b"), "a//b");
        assert_eq!(path(b"/", b"b"), "/b");
    }
}
