//! What can be wrong with a format, and in what words that is said.

use fathom_text::quote::{Charset, quote};

/// Why a format was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// A `%`, perhaps with flags, that nothing follows.
    Unfinished(Vec<u8>),
    /// `%{`, `%[` or `%(`, which are kept for later.
    Reserved(Vec<u8>),
    /// A width or precision that is too large.
    TooWide(Vec<u8>),
}

impl FormatError {
    /// The message's text without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        let (text, after) = match self {
            FormatError::Unfinished(text) => (text, "at the end of the format: no letter follows"),
            FormatError::Reserved(text) => (text, "in the format: reserved for later use"),
            FormatError::TooWide(text) => (text, "in the format: wider than 65535"),
        };
        [&quote(text, charset), b" ".as_slice(), after.as_bytes()].concat()
    }
}

/// What is printed as it stands, though it looks like a directive or an escape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatWarning {
    /// A directive that there is not.
    Directive(Vec<u8>),
    /// An escape that there is not.
    Escape(Vec<u8>),
    /// A directive for a time at the end, without the letter for what of it.
    NoTimeLetter(Vec<u8>),
}

impl FormatWarning {
    /// The message's text without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        let (before, text) = match self {
            FormatWarning::Directive(text) => ("no such directive: ", text),
            FormatWarning::Escape(text) => ("no such escape: ", text),
            FormatWarning::NoTimeLetter(text) => ("directive without the letter of a time: ", text),
        };
        [before.as_bytes(), &quote(text, charset)].concat()
    }
}
