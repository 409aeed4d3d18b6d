//! Wildcard patterns, matched like glibc's fnmatch(3) without flags, including its treatment of
//! brackets that are not closed or that name no class. Backtracking is bounded to the latest `*`,
//! so no pattern takes exponential time.

mod bracket;
mod chars;
mod class;

use self::bracket::Lookup;
use self::chars::Chars;
use crate::quote::Charset;

/// A compiled wildcard pattern with `*`, `?` or bracket expressions.
///
/// ```
/// use fathom_text::glob::Glob;
/// use fathom_text::quote::Charset;
///
/// let glob = Glob::new(b"*.[ch]", Charset::Utf8, false);
/// assert!(glob.matches(b"a.c") && glob.matches(b"dir/a.h") && !glob.matches(b"a.cc"));
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    bytes: Pattern,
    /// The pattern decoded into characters. Set if the charset is multibyte and the pattern is
    /// valid in it.
    chars: Option<Pattern>,
    is_ascii: bool,
}

/// A pattern as a sequence of symbols, which are bytes or characters. A symbol is a `u32` because
/// glibc decodes UTF-8 beyond the end of Unicode.
#[derive(Clone, Debug)]
struct Pattern {
    symbols: Vec<u32>,
    caret_negates: bool,
    in_chars: bool,
}

impl Glob {
    /// Compiles `pattern` for text in `charset`. With `posixly_correct`, `[^a]` does not negate.
    pub fn new(pattern: &[u8], charset: Charset, posixly_correct: bool) -> Glob {
        let caret_negates = !posixly_correct;
        let symbols = pattern.iter().copied().map(u32::from).collect();
        let bytes = Pattern { symbols, caret_negates, in_chars: false };
        let chars = match charset {
            Charset::Ascii => None,
            Charset::Utf8 => Chars(pattern).collect::<Option<Vec<u32>>>(),
        };
        let chars = chars.map(|symbols| Pattern { symbols, caret_negates, in_chars: true });
        Glob { bytes, chars, is_ascii: pattern.is_ascii() }
    }

    /// Returns whether all of `text` matches, character by character or byte by byte. Text that is
    /// invalid in the charset is matched by bytes only.
    pub fn matches(&self, text: &[u8]) -> bool {
        if let Some(pattern) = &self.chars
            && !(self.is_ascii && text.is_ascii())
            && Chars(text).all(|c| c.is_some())
            && pattern.matches(Chars(text).flatten())
        {
            return true;
        }
        self.bytes.matches(text.iter().copied().map(u32::from))
    }

    /// Returns whether the pattern consists of leading and trailing `*`s around symbols that match
    /// one character each and never a slash. Such a pattern matches a suffix of `dir/name` only if
    /// it matches `name` or a suffix of `dir`.
    pub fn depends_on_name_only(&self) -> bool {
        self.bytes.has_stars_at_its_ends_only()
            && self.chars.as_ref().is_none_or(Pattern::has_stars_at_its_ends_only)
    }
}

/// Returns whether `byte` is ASCII white space, including the vertical tab.
pub fn is_ascii_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

const STAR: u32 = b'*' as u32;
const ANY: u32 = b'?' as u32;
const SLASH: u32 = b'/' as u32;
const OPEN: u32 = b'[' as u32;
const BACKSLASH: u32 = b'\\' as u32;

impl Pattern {
    /// Matches greedily with one backtracking point: if the pattern behind a `*` fails, that `*`
    /// consumes one symbol more. Earlier `*`s are never retried, because the latest one can consume
    /// everything that they could.
    fn matches(&self, text: impl Iterator<Item = u32> + Clone) -> bool {
        let (mut at, mut rest) = (0, text);
        let mut last_star = None;
        loop {
            if self.get(at) == Some(STAR) {
                at += 1;
                last_star = Some((at, rest.clone()));
                continue;
            }
            let Some(symbol) = rest.next() else {
                return at == self.symbols.len();
            };
            if let Some(next) = self.match_one(at, symbol) {
                at = next;
                continue;
            }
            let Some((after, from)) = &mut last_star else { return false };
            // A symbol is left to consume: at least the one that just failed to match.
            from.next();
            (at, rest) = (*after, from.clone());
        }
    }

    fn get(&self, at: usize) -> Option<u32> {
        self.symbols.get(at).copied()
    }

    /// Matches `symbol` against the pattern element at `at` and returns the position of the next
    /// element. A backslash at the end of the pattern matches nothing.
    fn match_one(&self, at: usize, symbol: u32) -> Option<usize> {
        let expected = self.get(at)?;
        match expected {
            ANY => Some(at + 1),
            BACKSLASH => (self.get(at + 1)? == symbol).then_some(at + 2),
            OPEN => self.match_bracket(at + 1, symbol),
            _ => (expected == symbol).then_some(at + 1),
        }
    }

    fn has_stars_at_its_ends_only(&self) -> bool {
        let mut at = self.symbols.iter().take_while(|&&symbol| symbol == STAR).count();
        while let Some(first) = self.get(at) {
            if first == STAR {
                return self.symbols[at..].iter().all(|&symbol| symbol == STAR);
            }
            at = match first {
                OPEN => match self.find(at + 1, SLASH) {
                    Ok(Lookup::Missing(end)) if self.is_plain_list(at + 1, end) => end,
                    _ => return false,
                },
                _ if self.match_one(at, SLASH).is_some() => return false,
                BACKSLASH => at + 2,
                _ => at + 1,
            };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &[u8]) -> bool {
        Glob::new(pattern.as_bytes(), Charset::Utf8, false).matches(text)
    }

    #[test]
    fn brackets_hold_ranges_classes_and_quoted_symbols() {
        let table = [
            ("[a-c]", "b", "d"),
            ("[!a-c]", "d", "b"),
            ("[^a-c]", "d", "b"),
            ("[]a]", "]", "b"),
            ("[!]a]", "b", "]"),
            ("[a-]", "-", "b"),
            ("[-a]", "-", "b"),
            ("[\\]a]", "]", "\\"),
            ("[a\\-c]", "-", "b"),
            ("[[:digit:]x]", "7", "y"),
            ("[[=a=]]", "a", "="),
            ("[[.-.]]", "-", "."),
            ("[[.a.]-c]", "b", "d"),
        ];
        for (pattern, yes, no) in table {
            assert!(matches(pattern, yes.as_bytes()), "{pattern} {yes}");
            assert!(!matches(pattern, no.as_bytes()), "{pattern} {no}");
        }
        assert!(["a", "m", "z", "-"].iter().all(|text| !matches("[z-a]", text.as_bytes())));
    }

    #[test]
    fn broken_brackets_stand_for_themselves_or_match_nothing() {
        assert!(matches("[a", b"[a") && !matches("[a", b"a"));
        assert!(matches("[*[", b"[[") && matches("[[:alpha:]", b"[a"));
        assert!(
            matches("[[:zzz:]]", b"[]") && matches("[[:zzz:]]", b"z]"),
            "no class name: a list of [ : z, then ]"
        );
        assert!(!matches("[![:nope:]]", b"a") && !matches("[![.ab.]]", b"c"), "malformed, so nothing at all");
        assert!(!matches("[[.a.]-]", b"a") && matches("[[.a.]-]", b"-"));
        assert!(!matches("*\\", b"\\") && !matches("[a\\", b"[a\\"));
    }

    #[test]
    fn a_character_of_several_bytes_is_one_or_as_many_as_it_has() {
        assert!(
            matches("?", "é".as_bytes()) && matches("??", "é".as_bytes()) && !matches("???", "é".as_bytes())
        );
        assert!(matches("[à-ï]", "é".as_bytes()) && !matches("[à-ï]", "ñ".as_bytes()));
        assert!(matches("[[:upper:]]", "É".as_bytes()) && !matches("[[:upper:]]", "é".as_bytes()));
        assert!(!Glob::new(b"?", Charset::Ascii, false).matches("é".as_bytes()));
    }

    #[test]
    fn invalid_text_is_matched_by_bytes() {
        assert!(matches("?", b"\xff") && matches("??\u{e9}", b"\xffx\xc3\xa9"));
        assert!(matches("[é]", b"\xc3") && !matches("[[:alpha:]]", b"\xe9"));
        assert!(Glob::new(b"\xc3?", Charset::Utf8, false).matches("é".as_bytes()));
    }

    #[test]
    fn characters_beyond_unicode_count_as_one() {
        for text in [&b"\xf4\x90\x80\x80"[..], b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"] {
            assert!(matches("?", text), "{}", text.escape_ascii());
        }
        for text in [&b"\xed\xa0\x80"[..], b"\xc0\x80", b"\xf0\x80\x80\x80", b"\xe2\x82"] {
            assert!(!matches("?", text), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_caret_negates_unless_posix_is_asked_for() {
        let posix = Glob::new(b"[^a]", Charset::Utf8, true);
        assert!(posix.matches(b"a") && posix.matches(b"^") && !posix.matches(b"b"));
        assert!(!matches("[^a]", b"a") && matches("[^a]", b"b"));
    }

    #[test]
    fn stars_take_what_the_rest_leaves() {
        assert!(matches("a*b*c", b"a/xb.bc") && !matches("a*b*c", b"acb"));
        assert!(matches("*ab", b"aab") && matches("**", b"") && matches("*?", b"a") && !matches("*?", b""));
    }
}
