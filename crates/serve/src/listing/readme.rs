//! The README of a directory.

use super::entry::EntryKind;
use super::read::Listing;

/// Names of READMEs in lower case, in order of preference.
const NAMES: [&[u8]; 5] = [b"readme.md", b"readme", b"readme.txt", b"readme.markdown", b"readme.rst"];

/// A README, or the beginning of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readme {
    /// The file's name.
    pub name: Vec<u8>,
    /// The content, at most [`Readme::BYTES_MAX`] bytes.
    pub text: Vec<u8>,
    /// Whether the file is longer.
    pub is_cut: bool,
}

impl Readme {
    /// The maximum bytes that are shown.
    pub const BYTES_MAX: usize = 64 << 10;

    /// Returns the README called `name` that begins with `bytes`; `None` if it is binary.
    #[must_use]
    pub fn new(name: &[u8], mut bytes: Vec<u8>) -> Option<Self> {
        let is_cut = bytes.len() > Self::BYTES_MAX;
        bytes.truncate(Self::BYTES_MAX);
        if is_cut
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // Drop an incomplete character at the cut.
            bytes.truncate(error.valid_up_to());
        }
        (!bytes.contains(&0)).then(|| Self { name: name.to_vec(), text: bytes, is_cut })
    }
}

impl Listing {
    /// Returns the name of the listing's README.
    #[must_use]
    pub fn readme(&self) -> Option<&[u8]> {
        let rank = |name: &[u8]| NAMES.iter().position(|known| name.eq_ignore_ascii_case(known));
        let files = self.entries.iter().filter(|entry| entry.kind == EntryKind::File && entry.bytes > 0);
        let found = files.filter_map(|entry| Some((rank(&entry.name)?, &entry.name)));
        found.min().map(|(_, name)| name.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use fathom_io::FileTime;

    use super::super::ListingEntry;
    use super::*;

    #[test]
    fn the_best_name_of_a_file_counts() {
        let entry = |name: &str, kind, bytes| ListingEntry {
            name: name.into(),
            kind,
            bytes,
            mtime: FileTime::default(),
        };
        let readme = |entries: &[ListingEntry]| {
            let listing = Listing { entries: entries.to_vec(), complete: true };
            listing.readme().map(|name| String::from_utf8(name.to_vec()).unwrap())
        };
        let all = [
            entry("README.rst", EntryKind::File, 1),
            entry("readme.md", EntryKind::Directory, 0),
            entry("ReadMe", EntryKind::File, 1),
            entry("README.md", EntryKind::File, 0),
            entry("x-readme", EntryKind::File, 1),
        ];
        assert_eq!(readme(&all).as_deref(), Some("ReadMe"));
        assert_eq!(readme(&all[3..]), None, "empty, or called otherwise");
    }

    #[test]
    fn a_long_readme_is_cut_between_characters_and_a_binary_one_is_none() {
        let long = "\u{20ac}".repeat(Readme::BYTES_MAX);
        let readme = Readme::new(b"README", long.into_bytes()).unwrap();
        assert!(readme.is_cut && readme.text.len() <= Readme::BYTES_MAX);
        assert!(std::str::from_utf8(&readme.text).is_ok());
        assert!(!Readme::new(b"README", b"a\xff".to_vec()).unwrap().is_cut);
        assert_eq!(Readme::new(b"README", b"a\0b".to_vec()), None);
    }
}
