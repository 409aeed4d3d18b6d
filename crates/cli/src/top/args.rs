//! The arguments of `fathom top`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::top::{ReportKind, ReportOptions};
use fathom_text::quote::{Charset, quote};

use super::table::{BY_WORDS, FLAGS, TopOption};
use crate::shared::getopt::{Getopt, OperandOrder, ParsedOption};
use crate::shared::value;

/// The default number of lines.
const LINES: usize = 20;

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum TopAction {
    Help,
    Version,
    Top(TopArgs),
}

/// The arguments of a report.
#[derive(Debug)]
pub(crate) struct TopArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: ReportOptions,
    pub(crate) json: bool,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<TopAction, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, OperandOrder::Permute);
    let mut parser = TopParser { by: ReportKind::Dir, lines: None, below: None, json: false };
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            TopOption::Help => return Ok(TopAction::Help),
            TopOption::Version => return Ok(TopAction::Version),
            key => parser.apply(key, option, charset)?,
        }
    }
    parser.finish(getopt.into_operands(), charset).map(TopAction::Top)
}

/// The options parsed so far.
struct TopParser {
    by: ReportKind,
    lines: Option<NonZeroU64>,
    below: Option<Vec<u8>>,
    json: bool,
}

impl TopParser {
    fn apply(
        &mut self,
        key: TopOption,
        option: ParsedOption<TopOption>,
        charset: Charset,
    ) -> Result<(), Vec<u8>> {
        let value = option.value.unwrap_or_default();
        let refused = |refusal: value::ValueError| refusal.message(&option.spelling, &value, charset);
        match key {
            TopOption::By => self.by = by(&value).map_err(refused)?,
            TopOption::Lines => self.lines = Some(value::count(&value).map_err(refused)?),
            TopOption::Below if value.is_empty() => return Err(b"invalid zero-length file name".to_vec()),
            TopOption::Below => self.below = Some(value),
            TopOption::Json => self.json = true,
            TopOption::Help | TopOption::Version => {}
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<TopArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: the inventory".to_vec())?;
        if let Some(more) = operands.next() {
            return Err([b"extra operand ", &quote(more.as_encoded_bytes(), charset)[..]].concat());
        }
        let all = matches!(self.by, ReportKind::Age | ReportKind::Size | ReportKind::Depth);
        let count = match self.lines {
            Some(lines) => usize::try_from(lines.get()).unwrap_or(usize::MAX),
            None => {
                if all {
                    usize::MAX
                } else {
                    LINES
                }
            }
        };
        let ask = ReportOptions { by: self.by, count, below: self.below, now: now() };
        Ok(TopArgs { inventory: inventory.into(), ask, json: self.json })
    }
}

/// Parses the value of `--by`.
fn by(word: &[u8]) -> Result<ReportKind, value::ValueError> {
    use ReportKind::{Age, Depth, Dir, Ext, File, Group, Size, Type, User};
    value::one_of(word, BY_WORDS, &[Dir, File, User, Group, Ext, Age, Size, Type, Depth])
}

/// Returns the current time in microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
