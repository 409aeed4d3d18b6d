//! The arguments of `fathom query`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fathom_text::quote::Charset;

use super::table::{FLAGS, FORMAT_WORDS, QueryOption};
use crate::shared::getopt::{Getopt, OperandOrder};
use crate::shared::value;

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum QueryAction {
    Help,
    Version,
    Query(QueryArgs),
}

/// The arguments of a query.
#[derive(Debug)]
pub(crate) struct QueryArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) source: QuerySource,
    pub(crate) format: AnswerFormat,
}

/// The place of the query's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuerySource {
    /// The command line.
    Text(Vec<u8>),
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// The format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    /// DuckDB's own table, for people.
    Table,
    /// A header line, and a line for each row.
    Csv,
    /// One array of objects.
    Json,
    /// One object per line.
    JsonLines,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<QueryAction, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, OperandOrder::Permute);
    let (mut format, mut file) = (AnswerFormat::Table, None);
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        let value = option.value.unwrap_or_default();
        match option.flag.key {
            QueryOption::Help => return Ok(QueryAction::Help),
            QueryOption::Version => return Ok(QueryAction::Version),
            QueryOption::Json => format = AnswerFormat::Json,
            QueryOption::File => file = Some(value),
            QueryOption::Format => {
                format = self::format(&value)
                    .map_err(|refusal| refusal.message(&option.spelling, &value, charset))?;
            }
        }
    }
    finish(getopt.into_operands(), file, format).map(QueryAction::Query)
}

fn format(word: &[u8]) -> Result<AnswerFormat, value::ValueError> {
    value::one_of(
        word,
        FORMAT_WORDS,
        &[AnswerFormat::Table, AnswerFormat::Csv, AnswerFormat::Json, AnswerFormat::JsonLines],
    )
}

fn finish(
    operands: Vec<OsString>,
    file: Option<Vec<u8>>,
    format: AnswerFormat,
) -> Result<QueryArgs, Vec<u8>> {
    let mut operands = operands.into_iter();
    let inventory = operands.next().filter(|operand| !operand.is_empty());
    let inventory = inventory.ok_or_else(|| b"missing operand: the inventory".to_vec())?.into();
    let source = match (file, operands.next()) {
        (Some(file), None) => source(file, |file| QuerySource::File(OsString::from_vec(file).into())),
        (None, Some(text)) => source(text.into_vec(), QuerySource::Text),
        (None, None) => return Err(b"missing operand: the query".to_vec()),
        (Some(_), Some(extra)) => return Err(unexpected(&extra)),
    };
    match operands.next() {
        Some(extra) => Err(unexpected(&extra)),
        None => Ok(QueryArgs { inventory, source, format }),
    }
}

fn source(word: Vec<u8>, otherwise: impl FnOnce(Vec<u8>) -> QuerySource) -> QuerySource {
    if word == b"-" { QuerySource::Stdin } else { otherwise(word) }
}

fn unexpected(word: &OsString) -> Vec<u8> {
    [b"extra operand '", word.as_bytes(), b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<QueryArgs, String> {
        match parse(line.iter().map(OsString::from), Charset::Utf8) {
            Ok(QueryAction::Query(args)) => Ok(args),
            Ok(other) => Err(format!("{other:?}")),
            Err(message) => Err(String::from_utf8_lossy(&message).into_owned()),
        }
    }

    #[test]
    fn the_query_is_an_operand_a_file_or_standard_input() {
        let source = |line: &[&str]| read(line).map(|args| args.source);
        assert_eq!(source(&["i", "SELECT 1"]), Ok(QuerySource::Text(b"SELECT 1".to_vec())));
        assert_eq!(source(&["i", "-"]), Ok(QuerySource::Stdin));
        assert_eq!(source(&["-f", "-", "i"]), Ok(QuerySource::Stdin));
        assert_eq!(source(&["i", "--file=q.sql"]), Ok(QuerySource::File("q.sql".into())));
    }

    #[test]
    fn json_is_a_format_and_the_beginning_of_another() {
        let format = |line: &[&str]| read(&[&["i", "q"], line].concat()).map(|args| args.format);
        assert_eq!(format(&[]), Ok(AnswerFormat::Table));
        assert_eq!(format(&["--json"]), Ok(AnswerFormat::Json));
        assert_eq!(format(&["--format", "json"]), Ok(AnswerFormat::Json));
        assert_eq!(format(&["--format=jsonl"]), Ok(AnswerFormat::JsonLines));
        assert_eq!(format(&["--format=c"]), Ok(AnswerFormat::Csv));
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
