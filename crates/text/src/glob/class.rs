//! Character classes by name (`[:alpha:]`), as glibc's locales define them from Unicode's properties. The standard
//! library's tables answer for letters and their case; what they leave out is written down here.

/// A named class of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
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

impl Class {
    /// The class called `name`.
    pub(super) fn named(name: &str) -> Option<Class> {
        Some(match name {
            "alnum" => Class::Alnum,
            "alpha" => Class::Alpha,
            "blank" => Class::Blank,
            "cntrl" => Class::Cntrl,
            "digit" => Class::Digit,
            "graph" => Class::Graph,
            "lower" => Class::Lower,
            "print" => Class::Print,
            "punct" => Class::Punct,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "xdigit" => Class::Xdigit,
            _ => return None,
        })
    }

    /// Whether `c` belongs to the class in a UTF-8 locale.
    pub(super) fn contains(self, c: char) -> bool {
        if c.is_ascii() {
            return self.contains_byte(c as u8);
        }
        match self {
            Class::Alnum | Class::Alpha => is_alpha(c),
            Class::Blank => is_space(c) && !matches!(c, '\u{2028}' | '\u{2029}'),
            Class::Cntrl => c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
            Class::Digit | Class::Xdigit => false,
            Class::Graph => is_graph(c),
            Class::Lower => c.is_lowercase() || is_changed(c, c.to_uppercase()),
            Class::Print => crate::quote::is_printable(c),
            Class::Punct => is_graph(c) && !is_alpha(c),
            Class::Space => is_space(c),
            Class::Upper => c.is_uppercase() || is_changed(c, c.to_lowercase()),
        }
    }

    /// Whether a byte belongs to the class by itself: none above 0x7f does.
    pub(super) fn contains_byte(self, byte: u8) -> bool {
        match self {
            Class::Alnum => byte.is_ascii_alphanumeric(),
            Class::Alpha => byte.is_ascii_alphabetic(),
            Class::Blank => matches!(byte, b' ' | b'\t'),
            Class::Cntrl => byte.is_ascii_control(),
            Class::Digit => byte.is_ascii_digit(),
            Class::Graph => byte.is_ascii_graphic(),
            Class::Lower => byte.is_ascii_lowercase(),
            Class::Print => byte.is_ascii_graphic() || byte == b' ',
            Class::Punct => byte.is_ascii_punctuation(),
            Class::Space => super::is_ascii_space(byte),
            Class::Upper => byte.is_ascii_uppercase(),
            Class::Xdigit => byte.is_ascii_hexdigit(),
        }
    }
}

/// Digits of other scripts count as letters: C reserves the class of digits for 0 to 9.
fn is_alpha(c: char) -> bool {
    c.is_alphabetic() || is_decimal_digit(c)
}

/// White space at which a line may be broken.
fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}')
}

fn is_graph(c: char) -> bool {
    crate::quote::is_printable(c) && !is_space(c)
}

/// Whether the other case is one other character.
fn is_changed(c: char, mut other: impl Iterator<Item = char>) -> bool {
    other.next() != Some(c) && other.next().is_none()
}

fn is_decimal_digit(c: char) -> bool {
    let c = u32::from(c);
    let run = ZEROS.partition_point(|&zero| zero <= c);
    run > 0 && c - ZEROS[run - 1] < 10
}

/// The zeros of general category Nd outside ASCII; nine more digits follow each.
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

    /// The names of the classes `c` is in.
    fn classes(c: char) -> String {
        let names = ALL.iter().filter(|name| Class::named(name).unwrap().contains(c));
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
