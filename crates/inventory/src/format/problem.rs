//! Errors and warnings about a format, and their messages.

use fathom_text::quote::{Charset, quote};

/// The reason why a format was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// A `%` at the end, perhaps with flags.
    Unfinished(Vec<u8>),
    /// `%{`, `%[` or `%(`, which find reserves for later use.
    Reserved(Vec<u8>),
    /// A width or precision that is too large.
    TooWide(Vec<u8>),
}

impl FormatError {
    /// Returns the text of the message, without the program's name.
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

/// Text that looks like a directive or an escape, is neither, and is printed as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatWarning {
    /// An unknown directive.
    Directive(Vec<u8>),
    /// An unknown escape.
    Escape(Vec<u8>),
    /// A directive for a time at the end of the format, without its second letter.
    NoTimeLetter(Vec<u8>),
}

impl FormatWarning {
    /// Returns the text of the message, without the program's name.
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
