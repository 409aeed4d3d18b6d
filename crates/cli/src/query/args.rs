//! The arguments of `fathom query`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_text::quote::Charset;

use super::table::{FORMAT_WORDS, QUERY, QueryOption};
use crate::shared::cmdline::{self, ArgsEnd, no_more};
use crate::shared::value;

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
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<QueryArgs, ArgsEnd> {
    let (mut format, mut file) = (AnswerFormat::Table, None);
    let operands = cmdline::parse(&QUERY, words, charset, |key, option| {
        match key {
            QueryOption::Json => format = AnswerFormat::Json,
            QueryOption::File => file = Some(option.into_bytes()),
            QueryOption::Format => format = option.read(self::format)?,
        }
        Ok(())
    })?;
    Ok(finish(operands, file, format, charset)?)
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
    charset: Charset,
) -> Result<QueryArgs, Vec<u8>> {
    let mut operands = operands.into_iter();
    let inventory = operands.next().filter(|operand| !operand.is_empty());
    let inventory = inventory.ok_or_else(|| b"missing operand: INVENTORY".to_vec())?.into();
    let source = match file {
        Some(file) => source(file, |file| QuerySource::File(OsString::from_vec(file).into())),
        None => match operands.next() {
            Some(text) => source(text.into_vec(), QuerySource::Text),
            None => return Err(b"missing operand: SQL".to_vec()),
        },
    };
    no_more(operands, charset)?;
    Ok(QueryArgs { inventory, source, format })
}

fn source(word: Vec<u8>, otherwise: impl FnOnce(Vec<u8>) -> QuerySource) -> QuerySource {
    if word == b"-" { QuerySource::Stdin } else { otherwise(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<QueryArgs, String> {
        parse(line.iter().map(OsString::from), Charset::Ascii).map_err(|end| match end {
            ArgsEnd::Misuse(message) => String::from_utf8_lossy(&message).into_owned(),
            ArgsEnd::Information(information) => format!("{information:?}"),
        })
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
        assert_eq!(message(&[]), "missing operand: INVENTORY");
        assert_eq!(message(&["i"]), "missing operand: SQL");
        assert_eq!(message(&["i", "q", "r"]), "extra operand 'r'");
        assert_eq!(message(&["-f", "q", "i", "r"]), "extra operand 'r'");
    }
}
