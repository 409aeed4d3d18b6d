//! Sets of file types, parsed from their letters.

use fathom_text::quote::{Charset, quote};
use fathom_walk::FileType;

use crate::entry::type_letter;

const ALL: [FileType; 7] = [
    FileType::Regular,
    FileType::Directory,
    FileType::Symlink,
    FileType::Fifo,
    FileType::Socket,
    FileType::Char,
    FileType::Block,
];

/// A set of file types with one or more members.
///
/// ```
/// use fathom_inventory::filter::TypeSet;
/// use fathom_walk::FileType;
///
/// let types = TypeSet::parse(b"f,l").unwrap();
/// assert!(types.contains(FileType::Symlink) && !types.contains(FileType::Directory));
/// assert!(TypeSet::parse(b"x").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u8);

/// The part of a list that is not the letter of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError(Vec<u8>);

impl TypeError {
    /// Returns the text of the message, without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        [b"invalid type ", &quote(&self.0, charset)[..], b": one of f, d, l, p, s, c, b"].concat()
    }
}

impl TypeSet {
    /// Parses letters separated by commas: `f`, `f,d`.
    ///
    /// # Errors
    /// The first part of the list that is not the letter of a type.
    pub fn parse(list: &[u8]) -> Result<TypeSet, TypeError> {
        let mut types = TypeSet(0);
        for part in list.split(|byte| *byte == b',') {
            let found = ALL.into_iter().find(|known| part == [type_letter(*known)]);
            let found = found.ok_or_else(|| TypeError(part.to_vec()))?;
            types.0 |= bit(found);
        }
        Ok(types)
    }

    /// Returns whether the set has this type. It never has `Unknown`.
    #[must_use]
    pub fn contains(self, file_type: FileType) -> bool {
        self.0 & bit(file_type) != 0
    }

    /// Returns the types of either set.
    #[must_use]
    pub fn union(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }
}

fn bit(file_type: FileType) -> u8 {
    match file_type {
        FileType::Unknown => 0,
        FileType::Regular => 1,
        FileType::Directory => 2,
        FileType::Symlink => 4,
        FileType::Fifo => 8,
        FileType::Socket => 16,
        FileType::Char => 32,
        FileType::Block => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_letter_is_its_type() {
        for (letter, expected) in b"fdlpscb".iter().zip(ALL) {
            let types = TypeSet::parse(&[*letter]).unwrap();
            assert!(ALL.into_iter().all(|other| types.contains(other) == (other == expected)));
            assert!(!types.contains(FileType::Unknown));
        }
        let all = TypeSet::parse(b"f,d,l,p,s,c,b,f").unwrap();
        assert!(ALL.into_iter().all(|known| all.contains(known)));
    }

    #[test]
    fn an_unknown_letter_is_named_in_the_error() {
        for (list, part) in
            [("q", "q"), ("", ""), ("f,", ""), (",f", ""), ("fd", "fd"), ("f, d", " d"), ("U", "U")]
        {
            let message = TypeSet::parse(list.as_bytes()).unwrap_err().message(Charset::Ascii);
            let expected = format!("invalid type '{part}': one of f, d, l, p, s, c, b");
            assert_eq!(String::from_utf8(message).unwrap(), expected, "{list}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_are_types_or_refused(list in any::<Vec<u8>>()) {
            if let Err(error) = TypeSet::parse(&list) {
                prop_assert!(error.message(Charset::Utf8).starts_with(b"invalid type "));
            }
        }
    }
}
