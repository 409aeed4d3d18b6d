//! A set of types, from their letters.

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

/// Types of files, one or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

/// What in the list is no type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError(Vec<u8>);

impl TypeError {
    /// The message's text without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        [b"invalid type ", &quote(&self.0, charset)[..], b": one of f, d, l, p, s, c, b"].concat()
    }
}

impl Types {
    /// Reads letters with commas between: `f`, `f,d`.
    ///
    /// # Errors
    /// Anything else, by its first part that is no letter of a type.
    pub fn parse(list: &[u8]) -> Result<Types, TypeError> {
        let mut types = Types(0);
        for part in list.split(|byte| *byte == b',') {
            let found = ALL.into_iter().find(|known| part == [type_letter(*known)]);
            let found = found.ok_or_else(|| TypeError(part.to_vec()))?;
            types.0 |= bit(found);
        }
        Ok(types)
    }

    /// Whether a file of this type belongs to the set; an unknown one does not.
    #[must_use]
    pub fn has(self, file_type: FileType) -> bool {
        self.0 & bit(file_type) != 0
    }

    /// Either of both sets.
    #[must_use]
    pub fn and(self, other: Types) -> Types {
        Types(self.0 | other.0)
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
            let types = Types::parse(&[*letter]).unwrap();
            assert!(ALL.into_iter().all(|other| types.has(other) == (other == expected)));
            assert!(!types.has(FileType::Unknown));
        }
        let all = Types::parse(b"f,d,l,p,s,c,b,f").unwrap();
        assert!(ALL.into_iter().all(|known| all.has(known)));
    }

    #[test]
    fn what_is_no_letter_is_named() {
        for (list, part) in
            [("q", "q"), ("", ""), ("f,", ""), (",f", ""), ("fd", "fd"), ("f, d", " d"), ("U", "U")]
        {
            let message = Types::parse(list.as_bytes()).unwrap_err().message(Charset::Ascii);
            let expected = format!("invalid type '{part}': one of f, d, l, p, s, c, b");
            assert_eq!(String::from_utf8(message).unwrap(), expected, "{list}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_types_or_refused(list in any::<Vec<u8>>()) {
            if let Err(error) = Types::parse(&list) {
                prop_assert!(error.message(Charset::Utf8).starts_with(b"invalid type "));
            }
        }
    }
}
