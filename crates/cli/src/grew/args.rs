//! The arguments of `fathom grew`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::filter::{FORMS_WITH_DAYS, PointInTime};
use fathom_questions::diff::Sides;
use fathom_questions::top::ReportKind;
use fathom_text::quote::Charset;
use fathom_text::time::Zone;
use fathom_walk::FileTime;

use super::limits::GrowthLimits;
use super::table::{BY_WORDS, GREW, GrewOption};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::locale::env;
use crate::shared::value;

/// The default number of lines.
const LINES: usize = 20;

/// The inventories that are compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GrewSource {
    /// Two of a store. The moment is in seconds since 1970.
    Store { directory: PathBuf, moment: Option<i64> },
    /// These two.
    Inventories(Sides<PathBuf>),
}

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrewBy {
    Dir,
    Owner,
    Ext,
    Type,
}

impl GrewBy {
    /// Returns the kind of the report that has such lines.
    pub(super) fn kind(self) -> ReportKind {
        match self {
            Self::Dir => ReportKind::Dir,
            Self::Owner => ReportKind::User,
            Self::Ext => ReportKind::Ext,
            Self::Type => ReportKind::Type,
        }
    }
}

/// The arguments of a report.
#[derive(Debug)]
pub(crate) struct GrewArgs {
    pub(crate) source: GrewSource,
    pub(crate) by: GrewBy,
    pub(crate) lines: usize,
    pub(crate) json: bool,
    pub(crate) limits: GrowthLimits,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<GrewArgs, ArgsEnd> {
    let mut parser = GrewParser {
        by: GrewBy::Dir,
        lines: None,
        moment: None,
        json: false,
        limits: GrowthLimits::default(),
    };
    let operands = cmdline::parse(&GREW, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
struct GrewParser {
    by: GrewBy,
    lines: Option<NonZeroU64>,
    moment: Option<i64>,
    json: bool,
    limits: GrowthLimits,
}

impl GrewParser {
    fn apply(&mut self, key: GrewOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            GrewOption::Since => self.moment = Some(moment(&option)?),
            GrewOption::By => {
                let by = [GrewBy::Dir, GrewBy::Owner, GrewBy::Ext, GrewBy::Type];
                self.by = option.read(|word| value::one_of(word, BY_WORDS, &by))?;
            }
            GrewOption::Lines => self.lines = Some(option.read(value::count)?),
            GrewOption::Json => self.json = true,
            GrewOption::FailIfGrew => self.limits.grew = Some(option.size()?),
            GrewOption::FailIfFullWithin => self.limits.full_within = Some(option.time()?),
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<GrewArgs, Vec<u8>> {
        let mut operands = operands.into_iter().map(PathBuf::from);
        let source = match (operands.next(), operands.next()) {
            (Some(_), Some(_)) if self.moment.is_some() => {
                return Err(b"--since requires a store: it cannot be combined with two inventories".to_vec());
            }
            (Some(old), Some(new)) => GrewSource::Inventories(Sides { old, new }),
            (directory, _) => {
                GrewSource::Store { directory: directory.unwrap_or_else(|| ".".into()), moment: self.moment }
            }
        };
        no_more(operands.map(PathBuf::into_os_string), charset)?;
        let lines = self.lines.map_or(LINES, |lines| usize::try_from(lines.get()).unwrap_or(usize::MAX));
        Ok(GrewArgs { source, by: self.by, lines, json: self.json, limits: self.limits })
    }
}

/// Parses the value of `--since`, in seconds since 1970.
fn moment(option: &OptionValue) -> Result<i64, Vec<u8>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now =
        FileTime { sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nsec: since.subsec_nanos() };
    let parsed = PointInTime::parse_with_days(option.bytes(), now, &Zone::from_env(env));
    parsed.map(|time| time.stamp().sec).map_err(|_| option.refuse(b"time", FORMS_WITH_DAYS.as_bytes()))
}
