//! The arguments of `fathom diff`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use fathom_questions::diff::{ChangeKind, DiffOptions, Sides};
use fathom_text::quote::Charset;

use super::table::{DIFF, DiffOption};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The default number of lines of `--dirs`.
const LINES: usize = 20;
/// The values of `--only`, and the changes they select.
const KINDS: &[&str] = &["created", "removed", "modified", "renamed"];
const VERBS: [ChangeKind; 4] =
    [ChangeKind::Created, ChangeKind::Removed, ChangeKind::Modified, ChangeKind::Renamed];

/// The arguments of a comparison.
#[derive(Debug)]
pub(crate) struct DiffArgs {
    pub(crate) inventories: Sides<PathBuf>,
    pub(crate) ask: DiffOptions,
    pub(crate) only: Vec<ChangeKind>,
    pub(crate) form: DiffForm,
}

/// The format of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiffForm {
    Text,
    Json,
    /// Paths with NUL terminators.
    Null,
    /// A new Parquet file, or standard output.
    Parquet(Option<PathBuf>),
    /// At most this many lines about directories.
    Dirs {
        lines: usize,
        json: bool,
    },
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<DiffArgs, ArgsEnd> {
    let mut parser = DiffParser::default();
    let operands = cmdline::parse(&DIFF, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
#[derive(Default)]
struct DiffParser {
    only: Option<Vec<ChangeKind>>,
    below: Option<Vec<u8>>,
    dirs: bool,
    lines: Option<NonZeroU64>,
    json: bool,
    null: bool,
    parquet: Option<PathBuf>,
}

impl DiffParser {
    fn apply(&mut self, key: DiffOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            DiffOption::Only => {
                let verbs = |words: &[u8]| {
                    words.split(|byte| *byte == b',').map(|word| value::one_of(word, KINDS, &VERBS)).collect()
                };
                self.only = Some(option.read(verbs)?);
            }
            DiffOption::Below => self.below = Some(option.path_bytes()?),
            DiffOption::Dirs => self.dirs = true,
            DiffOption::Lines => self.lines = Some(option.read(value::count)?),
            DiffOption::Json => self.json = true,
            DiffOption::Null => self.null = true,
            DiffOption::Parquet => self.parquet = Some(option.path()?),
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<DiffArgs, Vec<u8>> {
        let form = self.form()?;
        let mut operands = operands.into_iter();
        let (Some(old), Some(new)) = (operands.next(), operands.next()) else {
            return Err(b"missing operand: two inventories to compare".to_vec());
        };
        no_more(operands, charset)?;
        let ask = DiffOptions { below: self.below, scratch: std::env::temp_dir() };
        let only = self.only.unwrap_or_else(|| VERBS.to_vec());
        Ok(DiffArgs { inventories: Sides { old: old.into(), new: new.into() }, ask, only, form })
    }

    fn form(&self) -> Result<DiffForm, Vec<u8>> {
        let refused = |what: &str| Err(what.as_bytes().to_vec());
        if usize::from(self.json) + usize::from(self.null) + usize::from(self.parquet.is_some()) > 1 {
            return refused("--json, --null and --parquet cannot be combined");
        }
        match (self.dirs, self.lines, &self.parquet) {
            (true, ..) if self.null || self.parquet.is_some() || self.only.is_some() => {
                refused("--dirs cannot be combined with --only, --null or --parquet")
            }
            (true, lines, _) => {
                let lines = lines.map_or(LINES, |lines| usize::try_from(lines.get()).unwrap_or(usize::MAX));
                Ok(DiffForm::Dirs { lines, json: self.json })
            }
            (false, Some(_), _) => refused("--lines requires --dirs"),
            (false, None, Some(file)) if file.as_os_str() == "-" => Ok(DiffForm::Parquet(None)),
            (false, None, Some(file)) if file.file_name().is_none() => {
                refused("--parquet requires the name of a file")
            }
            (false, None, Some(file)) => Ok(DiffForm::Parquet(Some(file.clone()))),
            (false, None, None) if self.null => Ok(DiffForm::Null),
            (false, None, None) => Ok(if self.json { DiffForm::Json } else { DiffForm::Text }),
        }
    }
}
