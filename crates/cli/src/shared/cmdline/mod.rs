//! Command lines, for all programs of this crate: tables of options, their parser, help texts, exit
//! statuses, and the standard streams. [`parse`] is the loop over the options of every command.

pub(crate) mod description;
pub(crate) mod exit;
pub(crate) mod flag;
pub(crate) mod getopt;
pub(crate) mod help;
pub(crate) mod model_text;
pub(crate) mod output;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_text::quote::{Charset, quote};

use description::Command;
use flag::{FlagKey, Scope};
use getopt::{Getopt, GetoptError, OperandOrder};

/// A text that a command line requests instead of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Information {
    Help,
    Version,
}

/// The reason why a command line requests no run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgsEnd {
    /// Only a text is requested.
    Information(Information),
    /// The command line is invalid. The message does not contain the program name.
    Misuse(Vec<u8>),
}

impl From<Information> for ArgsEnd {
    fn from(information: Information) -> Self {
        ArgsEnd::Information(information)
    }
}

impl From<Vec<u8>> for ArgsEnd {
    fn from(message: Vec<u8>) -> Self {
        ArgsEnd::Misuse(message)
    }
}

impl ArgsEnd {
    /// Prints the requested text, or the error. Returns the exit status.
    pub(crate) fn answer<K: Copy>(self, command: &Command<K>) -> u8 {
        let name = command.name;
        match self {
            ArgsEnd::Information(Information::Help) => {
                output::print(name, &help::render(command, name, Scope::Full))
            }
            ArgsEnd::Information(Information::Version) => output::print(name, &help::version(name)),
            ArgsEnd::Misuse(message) => {
                output::print_usage_error(name, &message);
                exit::MISUSED
            }
        }
    }
}

/// An option's value as it was typed, and the spelling of the option for messages.
#[derive(Debug)]
pub(crate) struct OptionValue {
    /// `-d`, or `--max-depth` even if it was abbreviated.
    pub(crate) spelling: String,
    /// The value, if the option takes one and has it.
    pub(crate) given: Option<Vec<u8>>,
    /// The charset of messages.
    pub(crate) charset: Charset,
}

impl OptionValue {
    /// Returns the value; empty if there is none.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.given.as_deref().unwrap_or_default()
    }

    /// Returns the value; empty if there is none.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.given.unwrap_or_default()
    }

    /// Returns the message about a value that is no `kind`. `why` may be empty.
    pub(crate) fn refuse(&self, kind: &[u8], why: &[u8]) -> Vec<u8> {
        let quoted = |text: &[u8]| quote(text, self.charset);
        let (value, spelling) = (quoted(self.bytes()), quoted(self.spelling.as_bytes()));
        let colon: &[u8] = if why.is_empty() { b"" } else { b": " };
        [b"invalid ", kind, b" ", &value, b" for ", &spelling, colon, why].concat()
    }

    /// Returns the value as the bytes of a path.
    ///
    /// # Errors
    /// Returns a message for an empty value.
    pub(crate) fn path_bytes(self) -> Result<Vec<u8>, Vec<u8>> {
        Some(self.into_bytes()).filter(|path| !path.is_empty()).ok_or_else(|| EMPTY_NAME.to_vec())
    }

    /// Returns the value as a path.
    ///
    /// # Errors
    /// Returns a message for an empty value.
    pub(crate) fn path(self) -> Result<PathBuf, Vec<u8>> {
        self.path_bytes().map(|path| OsString::from_vec(path).into())
    }
}

/// GNU's message about an empty path.
pub(crate) const EMPTY_NAME: &[u8] = b"invalid zero-length file name";

/// Passes each option of a command line to `apply`, and returns the operands. The first error ends
/// the parsing.
///
/// # Errors
/// Returns the requested text, or the message of an invalid command line.
pub(crate) fn parse<K: Copy>(
    command: &Command<K>,
    words: impl Iterator<Item = OsString>,
    charset: Charset,
    apply: impl FnMut(K, OptionValue) -> Result<(), Vec<u8>>,
) -> Result<Vec<OsString>, ArgsEnd> {
    parse_from(Getopt::new(command.flags.iter(), words, OperandOrder::Permute), charset, apply)
}

/// Does the same as [`parse`] with a parser that has rules of its own.
///
/// # Errors
/// Returns the requested text, or the message of an invalid command line.
pub(crate) fn parse_from<K: Copy>(
    getopt: Getopt<K>,
    charset: Charset,
    mut apply: impl FnMut(K, OptionValue) -> Result<(), Vec<u8>>,
) -> Result<Vec<OsString>, ArgsEnd> {
    each(getopt, charset, |step| {
        let (flag, value) = step.map_err(|error| error.message())?;
        Ok(apply(flag, value)?)
    })
}

/// Passes each option or error of a command line to `step`, until `step` fails. Returns the
/// operands.
///
/// # Errors
/// Returns the requested text, or the error of `step`.
pub(crate) fn each<K: Copy, E: From<Information>>(
    mut getopt: Getopt<K>,
    charset: Charset,
    mut step: impl FnMut(Result<(K, OptionValue), GetoptError>) -> Result<(), E>,
) -> Result<Vec<OsString>, E> {
    for parsed in getopt.by_ref() {
        let option = match parsed {
            Ok(option) => option,
            Err(error) => {
                step(Err(error))?;
                continue;
            }
        };
        let key = match option.flag.key {
            FlagKey::Help => return Err(Information::Help.into()),
            FlagKey::Version => return Err(Information::Version.into()),
            FlagKey::Own(key) => key,
        };
        step(Ok((key, OptionValue { spelling: option.spelling, given: option.value, charset })))?;
    }
    Ok(getopt.into_operands())
}

/// Refuses any further operand.
///
/// # Errors
/// Returns a message that names the operand.
pub(crate) fn no_more(operands: impl IntoIterator<Item = OsString>, charset: Charset) -> Result<(), Vec<u8>> {
    match operands.into_iter().next() {
        Some(extra) => Err([b"extra operand ", &quote(extra.as_encoded_bytes(), charset)[..]].concat()),
        None => Ok(()),
    }
}
