//! The arguments of `fathom top`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use fathom_questions::top::{ReportKind, ReportOptions};
use fathom_text::quote::Charset;

use super::table::{BY_WORDS, TOP, TopOption};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::inventory::now_us;
use crate::shared::value;

/// The default number of lines.
const LINES: usize = 20;

/// The arguments of a report.
#[derive(Debug)]
pub(crate) struct TopArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: ReportOptions,
    pub(crate) json: bool,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<TopArgs, ArgsEnd> {
    let mut parser = TopParser { by: ReportKind::Dir, lines: None, below: None, json: false };
    let operands = cmdline::parse(&TOP, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
struct TopParser {
    by: ReportKind,
    lines: Option<NonZeroU64>,
    below: Option<Vec<u8>>,
    json: bool,
}

impl TopParser {
    fn apply(&mut self, key: TopOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            TopOption::By => self.by = option.read(by)?,
            TopOption::Lines => self.lines = Some(option.read(value::count)?),
            TopOption::Below => self.below = Some(option.path_bytes()?),
            TopOption::Json => self.json = true,
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<TopArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: INVENTORY".to_vec())?;
        no_more(operands, charset)?;
        let count = match self.lines {
            Some(lines) => usize::try_from(lines.get()).unwrap_or(usize::MAX),
            None if self.by.is_ordered() => usize::MAX,
            None => LINES,
        };
        let ask = ReportOptions { by: self.by, count, below: self.below, now: now_us() };
        Ok(TopArgs { inventory: inventory.into(), ask, json: self.json })
    }
}

/// Parses the value of `--by`.
fn by(word: &[u8]) -> Result<ReportKind, value::ValueError> {
    value::one_of(word, BY_WORDS, &ReportKind::ALL)
}
