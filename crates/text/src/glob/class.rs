//! Named character classes (`[:alpha:]`) as glibc's locales define them from Unicode properties.
//! The standard library's tables cover letters and their case; the other properties are listed
//! here.

/// A named class of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharClass {
    Alnum,
    Alpha,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
}

impl CharClass {
    /// Returns the class with this name.
    pub(super) fn named(name: &str) -> Option<CharClass> {
        Some(match name {
            "alnum" => CharClass::Alnum,
            "alpha" => CharClass::Alpha,
            "blank" => CharClass::Blank,
            "cntrl" => CharClass::Cntrl,
            "digit" => CharClass::Digit,
            "graph" => CharClass::Graph,
            "lower" => CharClass::Lower,
            "print" => CharClass::Print,
            "punct" => CharClass::Punct,
            "space" => CharClass::Space,
            "upper" => CharClass::Upper,
            "xdigit" => CharClass::Xdigit,
            _ => return None,
        })
    }

    /// Returns whether `c` belongs to the class in a UTF-8 locale.
    pub(super) fn contains(self, c: char) -> bool {
        if c.is_ascii() {
            return self.contains_byte(c as u8);
        }
        match self {
            CharClass::Alnum | CharClass::Alpha => is_alpha(c),
            CharClass::Blank => is_space(c) && !matches!(c, '\u{2028}' | '\u{2029}'),
            CharClass::Cntrl => c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
            CharClass::Digit | CharClass::Xdigit => false,
            CharClass::Graph => is_graph(c),
            CharClass::Lower => c.is_lowercase() || is_changed(c, c.to_uppercase()),
            CharClass::Print => crate::quote::is_printable(c),
            CharClass::Punct => is_graph(c) && !is_alpha(c),
            CharClass::Space => is_space(c),
            CharClass::Upper => c.is_uppercase() || is_changed(c, c.to_lowercase()),
        }
    }

    /// Returns whether a single byte belongs to the class. Bytes above 0x7f belong to none.
    pub(super) fn contains_byte(self, byte: u8) -> bool {
        match self {
            CharClass::Alnum => byte.is_ascii_alphanumeric(),
            CharClass::Alpha => byte.is_ascii_alphabetic(),
            CharClass::Blank => matches!(byte, b' ' | b'\t'),
            CharClass::Cntrl => byte.is_ascii_control(),
            CharClass::Digit => byte.is_ascii_digit(),
            CharClass::Graph => byte.is_ascii_graphic(),
            CharClass::Lower => byte.is_ascii_lowercase(),
            CharClass::Print => byte.is_ascii_graphic() || byte == b' ',
            CharClass::Punct => byte.is_ascii_punctuation(),
            CharClass::Space => super::is_ascii_space(byte),
            CharClass::Upper => byte.is_ascii_uppercase(),
            CharClass::Xdigit => byte.is_ascii_hexdigit(),
        }
    }
}

/// Digits of other scripts count as letters: C reserves the digit class for 0 to 9.
fn is_alpha(c: char) -> bool {
    c.is_alphabetic() || is_decimal_digit(c)
}

/// White space that permits a line break; no-break spaces are excluded.
fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}')
}

fn is_graph(c: char) -> bool {
    crate::quote::is_printable(c) && !is_space(c)
}

/// Returns whether the case mapping of `c` is a single other character.
fn is_changed(c: char, mut other: impl Iterator<Item = char>) -> bool {
    other.next() != Some(c) && other.next().is_none()
}

fn is_decimal_digit(c: char) -> bool {
    let c = u32::from(c);
    let run = ZEROS.partition_point(|&zero| zero <= c);
    run > 0 && c - ZEROS[run - 1] < 10
}

/// The zero digits of general category Nd outside ASCII, sorted. Nine more digits follow each.
const ZEROS: [u32; 76] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
    0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730,
    0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11de0, 0x11f50, 0x16130, 0x16a60, 0x16ac0,
    0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0,
    0x1e5f1, 0x1e950, 0x1fbf0,
];

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 12] = [
        "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "xdigit",
    ];

    /// The names of the classes that contain `c`.
    fn classes(c: char) -> String {
        let names = ALL.iter().filter(|name| CharClass::named(name).unwrap().contains(c));
        names.copied().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn classes_beyond_ascii_follow_glibc() {
        let table = [
            ('é', "alnum alpha graph lower print"),
            ('É', "alnum alpha graph print upper"),
            ('ǅ', "alnum alpha graph lower print upper"),
            ('ß', "alnum alpha graph lower print"),
            ('ᾈ', "alnum alpha graph print upper"),
            ('中', "alnum alpha graph print"),
            ('٣', "alnum alpha graph print"),
            ('Ⅷ', "alnum alpha graph print upper"),
            ('½', "graph print punct"),
            ('²', "graph print punct"),
            ('€', "graph print punct"),
            ('\u{a0}', "graph print punct"),
            ('\u{3000}', "blank print space"),
            ('\u{85}', "cntrl"),
            ('\u{2028}', "cntrl space"),
            ('\u{378}', ""),
        ];
        table.iter().for_each(|(c, names)| assert_eq!(classes(*c), *names, "{}", c.escape_unicode()));
    }

    #[test]
    fn ascii_classes_follow_c() {
        assert_eq!(classes('a'), "alnum alpha graph lower print xdigit");
        assert_eq!(classes('7'), "alnum digit graph print xdigit");
        assert_eq!(classes(' '), "blank print space");
        assert_eq!(classes('\u{b}'), "cntrl space");
        assert_eq!(classes('_'), "graph print punct");
        assert_eq!(classes('\u{7f}'), "cntrl");
    }

    #[test]
    fn the_table_of_zeros_is_sorted_and_holds_digits_only() {
        assert!(ZEROS.windows(2).all(|pair| pair[0] + 10 <= pair[1]));
        for zero in ZEROS {
            let mut digits = (zero..zero + 10).map(|c| char::from_u32(c).unwrap());
            assert!(digits.all(|c| c.is_numeric() && !c.is_alphabetic()), "{zero:x}");
        }
    }
}
