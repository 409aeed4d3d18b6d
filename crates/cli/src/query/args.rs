//! From a command line to what a run of `fathom query` needs, or to what it has to say instead. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fathom_text::quote::Charset;

use super::table::{FLAGS, FORMAT_WORDS, Key};
use crate::du::extra;
use crate::getopt::{Getopt, Order};

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Query(QueryArgs),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct QueryArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) source: Source,
    pub(crate) format: Format,
}

/// Where the query stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// On the command line.
    Text(Vec<u8>),
    /// In a file.
    File(PathBuf),
    /// On standard input.
    Stdin,
}

/// What the answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// DuckDB's own, for people.
    Table,
    /// A line of names, and one for each row.
    Csv,
    /// An array of objects.
    Json,
    /// An object a line.
    JsonLines,
}

/// Reads the command line `words`, without the program's and the command's name. A message is without the program's name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<Asked, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Order::Permute);
    let (mut format, mut file) = (Format::Table, None);
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        let value = option.value.unwrap_or_default();
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            Key::Json => format = Format::Json,
            Key::File => file = Some(value),
            Key::Format => {
                format = self::format(&value)
                    .map_err(|refusal| refusal.message(&option.spelling, &value, charset))?;
            }
        }
    }
    finish(getopt.into_operands(), file, format).map(Asked::Query)
}

fn format(word: &[u8]) -> Result<Format, extra::Refusal> {
    extra::one_of(word, FORMAT_WORDS, &[Format::Table, Format::Csv, Format::Json, Format::JsonLines])
}

fn finish(operands: Vec<OsString>, file: Option<Vec<u8>>, format: Format) -> Result<QueryArgs, Vec<u8>> {
    let mut operands = operands.into_iter();
    let inventory = operands.next().filter(|operand| !operand.is_empty());
    let inventory = inventory.ok_or_else(|| b"missing operand: the inventory".to_vec())?.into();
    let source = match (file, operands.next()) {
        (Some(file), None) => source(file, |file| Source::File(OsString::from_vec(file).into())),
        (None, Some(text)) => source(text.into_vec(), Source::Text),
        (None, None) => return Err(b"missing operand: the query".to_vec()),
        (Some(_), Some(extra)) => return Err(unexpected(&extra)),
    };
    match operands.next() {
        Some(extra) => Err(unexpected(&extra)),
        None => Ok(QueryArgs { inventory, source, format }),
    }
}

fn source(word: Vec<u8>, otherwise: impl FnOnce(Vec<u8>) -> Source) -> Source {
    if word == b"-" { Source::Stdin } else { otherwise(word) }
}

fn unexpected(word: &OsString) -> Vec<u8> {
    [b"extra operand '", word.as_bytes(), b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<QueryArgs, String> {
        match parse(line.iter().map(OsString::from), Charset::Utf8) {
            Ok(Asked::Query(args)) => Ok(args),
            Ok(other) => Err(format!("{other:?}")),
            Err(message) => Err(String::from_utf8_lossy(&message).into_owned()),
        }
    }

    #[test]
    fn the_query_is_an_operand_a_file_or_standard_input() {
        let source = |line: &[&str]| read(line).map(|args| args.source);
        assert_eq!(source(&["i", "SELECT 1"]), Ok(Source::Text(b"SELECT 1".to_vec())));
        assert_eq!(source(&["i", "-"]), Ok(Source::Stdin));
        assert_eq!(source(&["-f", "-", "i"]), Ok(Source::Stdin));
        assert_eq!(source(&["i", "--file=q.sql"]), Ok(Source::File("q.sql".into())));
    }

    #[test]
    fn json_is_a_format_and_the_beginning_of_another() {
        let format = |line: &[&str]| read(&[&["i", "q"], line].concat()).map(|args| args.format);
        assert_eq!(format(&[]), Ok(Format::Table));
        assert_eq!(format(&["--json"]), Ok(Format::Json));
        assert_eq!(format(&["--format", "json"]), Ok(Format::Json));
        assert_eq!(format(&["--format=jsonl"]), Ok(Format::JsonLines));
        assert_eq!(format(&["--format=c"]), Ok(Format::Csv));
        assert!(format(&["--format=x"]).is_err_and(|message| message.contains("--format")));
    }

    #[test]
    fn one_inventory_and_one_query() {
        let message = |line: &[&str]| read(line).expect_err("it is refused");
        assert_eq!(message(&[]), "missing operand: the inventory");
        assert_eq!(message(&["i"]), "missing operand: the query");
        assert_eq!(message(&["i", "q", "r"]), "extra operand 'r'");
        assert_eq!(message(&["-f", "q", "i", "r"]), "extra operand 'r'");
    }
}
