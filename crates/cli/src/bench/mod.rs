//! `fathom bench`: four commands with their own options. Chooses one of them.

pub(crate) mod advise;
pub(crate) mod commands;
pub(crate) mod compare;
mod measuring;
mod reports;
mod sample;
pub(crate) mod table;
mod values;
mod workload;

use std::ffi::{OsStr, OsString};

/// The program's name in messages.
const NAME: &str = table::BENCH.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let command = command_line(&words);
    let word = words.first().and_then(|word| word.to_str());
    let rest = || words[1..].to_vec();
    match word {
        Some("sample") => sample::main(&words[1..]),
        Some("advise") => advise::main(rest(), command),
        Some("run") => commands::main(rest(), command),
        Some("compare") => compare::main(rest()),
        _ => workload::main(words, command),
    }
}

/// Returns the command line, quoted for a shell.
fn command_line(words: &[OsString]) -> String {
    format!("{NAME} {}", shell_words(words.iter().map(OsString::as_os_str)))
}

/// Joins `words`, quoted for a shell.
fn shell_words<'a>(words: impl Iterator<Item = &'a OsStr>) -> String {
    let plain = |word: &OsStr| {
        let text = word.to_string_lossy();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
        if !text.is_empty() && text.chars().all(safe) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    };
    words.map(plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_text::quote::Charset;

    use crate::shared::cmdline::ArgsEnd;

    /// Parses `line` by `parse`. Returns the message of a wrong command line.
    pub(super) fn parsed<T>(
        line: &str,
        parse: fn(Vec<OsString>, Charset) -> Result<T, ArgsEnd>,
    ) -> Result<T, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        parse(words, Charset::Ascii).map_err(|end| match end {
            ArgsEnd::Misuse(message) => String::from_utf8_lossy(&message).into_owned(),
            ArgsEnd::Information(information) => format!("{information:?}"),
        })
    }
}
