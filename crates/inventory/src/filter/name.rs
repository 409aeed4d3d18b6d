//! Wildcard patterns for names. A pattern that only compares a name, its end or its beginning, as
//! most do, is not matched as a pattern.

use fathom_text::glob::Glob;
use fathom_text::quote::Charset;

/// A wildcard pattern for a name.
#[derive(Clone, Debug)]
pub(super) enum NamePattern {
    /// A pattern without wildcards.
    Whole(Vec<u8>),
    /// A `*`, followed by text without wildcards.
    End(Vec<u8>),
    /// Text without wildcards, followed by a `*`.
    Start(Vec<u8>),
    Glob(Glob),
}

impl NamePattern {
    /// Compiles a pattern in which the backslash is the escape character. Every pattern is valid;
    /// some match nothing.
    pub(super) fn new(pattern: &[u8], charset: Charset) -> NamePattern {
        let end = || pattern.strip_prefix(b"*").and_then(literal).map(NamePattern::End);
        // A pattern that ends in an escaped star leaves a backslash at the end, which `literal`
        // refuses.
        let start = || pattern.strip_suffix(b"*").and_then(literal).map(NamePattern::Start);
        let simple = literal(pattern).map(NamePattern::Whole).or_else(end).or_else(start);
        simple.unwrap_or_else(|| NamePattern::Glob(Glob::new(pattern, charset, false)))
    }

    /// Returns whether all of `name` matches. A dot at the beginning is not special.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self {
            NamePattern::Whole(text) => name == text,
            NamePattern::End(text) => name.ends_with(text),
            NamePattern::Start(text) => name.starts_with(text),
            NamePattern::Glob(glob) => glob.matches(name),
        }
    }
}

/// Returns the only text that `pattern` matches, if it has no wildcards.
fn literal(pattern: &[u8]) -> Option<Vec<u8>> {
    let (mut text, mut bytes) = (Vec::with_capacity(pattern.len()), pattern.iter());
    while let Some(&byte) = bytes.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            b'\\' => text.push(*bytes.next()?),
            _ => text.push(byte),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_without_wildcards_are_compared() {
        for (pattern, text) in [("", ""), ("a.b", "a.b"), ("a\\*\\\\", "a*\\"), ("\\a", "a"), ("é", "é")] {
            assert_eq!(literal(pattern.as_bytes()).as_deref(), Some(text.as_bytes()), "{pattern}");
        }
        for pattern in ["*", "a?", "[a]", "[", "a\\"] {
            assert_eq!(literal(pattern.as_bytes()), None, "{pattern}");
        }
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let parts: [&[u8]; 12] =
            [b"a", b"b", b".", b"*", b"?", b"[", b"]", b"\\", b"\xc3", b"\xa9", "é".as_bytes(), b"\xff"];
        let part = proptest::sample::select(parts.to_vec());
        proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4000))]

        #[test]
        fn short_cuts_match_what_the_pattern_matches(pattern in piece(), name in piece(), utf8 in any::<bool>()) {
            let charset = if utf8 { Charset::Utf8 } else { Charset::Ascii };
            let expected = Glob::new(&pattern, charset, false).matches(&name);
            prop_assert_eq!(NamePattern::new(&pattern, charset).matches(&name), expected);
        }

        #[test]
        fn any_bytes_are_a_pattern(pattern in any::<Vec<u8>>(), name in any::<Vec<u8>>()) {
            NamePattern::new(&pattern, Charset::Utf8).matches(&name);
        }
    }
}
