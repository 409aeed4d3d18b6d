//! Regular expressions that have to match a whole path.

use fathom_text::quote::{Charset, quote};
use regex::bytes::{Regex, RegexBuilder};

/// An expression that matches a path as a whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct PathRegex {
    main: Regex,
    /// The same expression over bytes, for paths that are not valid in a multibyte charset. Not
    /// every expression can be compiled this way.
    bytes: Option<Regex>,
}

/// The error of an expression that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    expression: Vec<u8>,
    cause: String,
}

impl RegexError {
    /// Returns the text of the message, without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        let cause = self.cause.as_bytes();
        [b"invalid regular expression ", &quote(&self.expression, charset)[..], b": ", cause].concat()
    }
}

impl PathRegex {
    /// Compiles `expression`. In it, `.` matches a line break as well, since names may contain one.
    pub(super) fn new(expression: &[u8], charset: Charset) -> Result<PathRegex, RegexError> {
        let refuse = |cause| RegexError { expression: expression.to_vec(), cause };
        let compile = |text: &str, unicode| anchored(text, unicode).map_err(|error| refuse(cause(&error)));
        let text = std::str::from_utf8(expression);
        match charset {
            Charset::Ascii => Ok(PathRegex { main: compile(&bytewise(expression), false)?, bytes: None }),
            Charset::Utf8 => {
                let text = text.map_err(|_| refuse("not UTF-8".to_owned()))?;
                Ok(PathRegex { main: compile(text, true)?, bytes: compile(text, false).ok() })
            }
        }
    }

    /// Returns whether all of `path` matches: by characters, or, where it is not valid text, by
    /// bytes.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let by_bytes = |bytes: &Regex| std::str::from_utf8(path).is_err() && bytes.is_match(path);
        self.main.is_match(path) || self.bytes.as_ref().is_some_and(by_bytes)
    }
}

/// Returns the expression with escapes for bytes above 0x7f, each of which is a character in the C
/// locale.
fn bytewise(expression: &[u8]) -> String {
    let escaped =
        |byte: &u8| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("\\x{byte:02x}") };
    expression.iter().map(escaped).collect()
}

/// Compiles the expression with an anchor at both ends. It is compiled alone first, or `a)(?:b`
/// would become a valid expression.
fn anchored(text: &str, unicode: bool) -> Result<Regex, regex::Error> {
    let compile = |text: &str| RegexBuilder::new(text).unicode(unicode).dot_matches_new_line(true).build();
    compile(text)?;
    // A comment at its end (`(?x)a # b`) would swallow the closing anchor on the same line.
    compile(&format!(r"\A(?:{text})\z")).or_else(|_| compile(&format!("\\A(?:{text}\n)\\z")))
}

/// Returns the cause of an error, in one line.
fn cause(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(expression: &str, path: &[u8]) -> bool {
        PathRegex::new(expression.as_bytes(), Charset::Utf8).unwrap().matches(path)
    }

    #[test]
    fn the_whole_path_must_match() {
        assert!(matches("a", b"a") && !matches("a", b"ba") && !matches("a", b"ab") && !matches("a", b"a\n"));
        assert!(matches("a|ab", b"ab") && matches("a|b", b"b") && !matches("a|b", b"ab"));
        assert!(matches("", b"") && !matches("", b"a"));
        assert!(matches("(?m)^a$", b"a") && !matches("(?m)^a$", b"a\na"));
        assert!(matches("a.b", b"a\nb") && !matches("(?-s)a.b", b"a\nb"));
        assert!(matches("(?x)a # b", b"a") && !matches("(?x)a # b", b"ab"));
        assert!(matches("a # b", b"a # b") && !matches("(?x)a # b", b"a\n"));
    }

    #[test]
    fn characters_are_the_charsets_and_invalid_text_is_bytes() {
        assert!(matches("a.", "aé".as_bytes()) && !matches("a..", "aé".as_bytes()));
        assert!(matches(".*\\.txt", b"\xff.txt") && matches("..é", b"\xff\xfe\xc3\xa9"));
        assert!(!matches("\\p{L}", b"\xff"));
        let ascii = PathRegex::new(b"a..", Charset::Ascii).unwrap();
        assert!(ascii.matches("aé".as_bytes()));
        let ascii = |expression: &[u8], path: &[u8]| {
            PathRegex::new(expression, Charset::Ascii).unwrap().matches(path)
        };
        assert!(ascii("[é]{2}".as_bytes(), "é".as_bytes()) && !ascii("[é]".as_bytes(), "é".as_bytes()));
        assert!(ascii("é+".as_bytes(), "é".as_bytes()) && ascii(b"a\xff*", b"a\xff\xff"));
    }

    #[test]
    fn a_bad_expression_is_refused_with_its_cause() {
        let table = [
            ("(", "unclosed group"),
            ("a)(?:b", "unopened group"),
            ("*", "repetition operator missing expression"),
            ("\\", "incomplete escape sequence, reached end of pattern prematurely"),
            ("(?:a{1000}){1000}{1000}", "Compiled regex exceeds size limit of 10485760 bytes."),
        ];
        for (expression, cause) in table {
            let message =
                PathRegex::new(expression.as_bytes(), Charset::Ascii).unwrap_err().message(Charset::Ascii);
            let quoted = String::from_utf8(quote(expression.as_bytes(), Charset::Ascii)).unwrap();
            let expected = format!("invalid regular expression {quoted}: {cause}");
            assert_eq!(String::from_utf8(message).unwrap(), expected);
        }
        let error = PathRegex::new(b"\xff", Charset::Utf8).unwrap_err();
        assert_eq!(error.message(Charset::Ascii), b"invalid regular expression '\\377': not UTF-8");
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_are_an_expression_or_refused(
            expression in prop_oneof![any::<Vec<u8>>(), "[a-c()\\[\\]*+?|{},^$.\\\\#x-]{0,8}".prop_map(String::into_bytes)],
            path in any::<Vec<u8>>(),
        ) {
            if let Ok(whole) = PathRegex::new(&expression, Charset::Utf8) {
                whole.matches(&path);
            }
        }
    }
}
