//! Keyword arguments of options, which may be abbreviated to any prefix with a single meaning, and
//! the error message that lists the valid keywords.

use crate::quote::{Charset, quote};

/// A keyword and its value. Several keywords may have the same value.
pub(crate) type Keyword<T> = (&'static str, T);

/// Looks up the value of `word`. A complete keyword takes precedence over longer keywords that
/// start with it.
pub(crate) fn lookup<T: Copy + PartialEq>(word: &[u8], keywords: &[Keyword<T>]) -> Result<T, Ambiguity> {
    let bytes = |keyword: &Keyword<T>| keyword.0.as_bytes();
    if let Some((_, meaning)) = keywords.iter().find(|k| bytes(k) == word) {
        return Ok(*meaning);
    }
    let mut meanings = keywords.iter().filter(|k| bytes(k).starts_with(word)).map(|(_, meaning)| *meaning);
    let first = meanings.next().ok_or(Ambiguity::None)?;
    if meanings.all(|meaning| meaning == first) { Ok(first) } else { Err(Ambiguity::Several) }
}

/// The number of values that match a rejected word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ambiguity {
    None,
    Several,
}

/// The error for an unknown or ambiguous keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeywordError {
    pub(crate) word: Vec<u8>,
    pub(crate) ambiguity: Ambiguity,
    pub(crate) context: &'static str,
    pub(crate) valid: ValidWords,
}

/// The layout of the list of valid keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidWords {
    /// Each keyword is quoted like the other words of the message. The keywords of one line are
    /// synonyms.
    Quoted(&'static [&'static [&'static str]]),
    /// Lines printed verbatim.
    Plain(&'static [&'static str]),
}

impl KeywordError {
    /// Returns the lines of the message, without the program name and without the last newline. The
    /// caller adds the reference to `--help`.
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        let kind: &[u8] = match self.ambiguity {
            Ambiguity::None => b"invalid",
            Ambiguity::Several => b"ambiguous",
        };
        let mut out = [kind, b" argument ", &quote(&self.word, charset), b" for "].concat();
        out.extend(quote(self.context.as_bytes(), charset));
        out.extend(b"\nValid arguments are:");
        match self.valid {
            ValidWords::Plain(lines) => {
                lines.iter().for_each(|line| out.extend([b"\n  - ", line.as_bytes()].concat()))
            }
            ValidWords::Quoted(lines) => {
                for words in lines {
                    let quoted: Vec<Vec<u8>> =
                        words.iter().map(|word| quote(word.as_bytes(), charset)).collect();
                    out.extend([b"\n  - ".to_vec(), quoted.join(&b", "[..])].concat());
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [Keyword<u8>; 4] = [("iso", 1), ("isolated", 2), ("long", 3), ("longer", 3)];

    #[test]
    fn words_may_be_shortened_while_one_meaning_is_left() {
        assert_eq!(lookup(b"isol", &WORDS), Ok(2));
        assert_eq!(lookup(b"lo", &WORDS), Ok(3));
        assert_eq!(lookup(b"is", &WORDS), Err(Ambiguity::Several));
        assert_eq!(lookup(b"", &WORDS), Err(Ambiguity::Several));
        assert_eq!(lookup(b"isox", &WORDS), Err(Ambiguity::None));
        assert_eq!(lookup(b"isolatedx", &WORDS), Err(Ambiguity::None));
    }

    #[test]
    fn a_word_in_full_is_never_ambiguous() {
        assert_eq!(lookup(b"iso", &WORDS), Ok(1));
    }

    #[test]
    fn both_kinds_of_list() {
        let mut error = KeywordError {
            word: b"a\n".to_vec(),
            ambiguity: Ambiguity::None,
            context: "--x",
            valid: ValidWords::Quoted(&[&["a", "b"], &["c"]]),
        };
        let text = "invalid argument ‘a\\n’ for ‘--x’\nValid arguments are:\n  - ‘a’, ‘b’\n  - ‘c’";
        assert_eq!(error.message(Charset::Utf8), text.as_bytes());
        error.valid = ValidWords::Plain(&["a", "+b 'c'"]);
        error.ambiguity = Ambiguity::Several;
        let text = "ambiguous argument 'a\\n' for '--x'\nValid arguments are:\n  - a\n  - +b 'c'";
        assert_eq!(error.message(Charset::Ascii), text.as_bytes());
    }
}
