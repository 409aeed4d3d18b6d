//! What is known of one entry when it is printed, and how more is asked for.

use fathom_walk::{FileType, Meta, Stamp};

/// An entry of the walk, in borrowed parts: its path is put together only where it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The path of the directory it is in, as it is reported; empty for a starting point.
    pub dir: &'a [u8],
    /// Its name there; of a starting point, the whole path as it was given.
    pub name: &'a [u8],
    /// Bytes of the path, from its beginning, that are the starting point.
    pub root_len: usize,
    /// 0 for a starting point.
    pub depth: usize,
    /// What it is, if that is known.
    pub file_type: FileType,
    /// What is known of its inode, if anything was asked.
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

    /// Its type: from the directory, else from its metadata.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        match (self.file_type, self.meta) {
            (FileType::Unknown, Some(meta)) => meta.file_type(),
            (known, _) => known,
        }
    }
}

/// The letter of a type: `f d l p s c b`, or `U` where it is not known.
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

/// The type that [`type_letter`] has this letter for, as bytes of a file have it.
pub(crate) fn type_of(letter: &[u8]) -> FileType {
    use FileType::{Block, Char, Directory, Fifo, Regular, Socket, Symlink};
    let known = [Regular, Directory, Symlink, Fifo, Socket, Char, Block];
    known.into_iter().find(|known| [type_letter(*known)] == letter).unwrap_or(FileType::Unknown)
}

/// What a symbolic link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file of this type.
    Type(FileType),
    /// Nothing (`ENOENT`, `ENOTDIR`).
    Missing,
    /// Itself, over however many links (`ELOOP`).
    Loop,
    /// It could not be told.
    Unknown,
}

/// What takes a further system call for each entry. Without an answer, nothing is printed; a caller that wants to tell
/// the user about a failure keeps it.
pub trait Lookup {
    /// What the symbolic link `entry` holds.
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }

    /// What the symbolic link `entry` leads to.
    fn target(&mut self, entry: &Entry<'_>) -> Target {
        let _ = entry;
        Target::Unknown
    }

    /// The name of the type of the filesystem `entry` is on, such as `ext4`.
    fn filesystem(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }

    /// The security context of `entry`.
    fn context(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let _ = entry;
        None
    }

    /// When `entry` was made, where the filesystem keeps that.
    fn born(&mut self, entry: &Entry<'_>) -> Option<Stamp> {
        let _ = entry;
        None
    }
}

/// Knows nothing.
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
