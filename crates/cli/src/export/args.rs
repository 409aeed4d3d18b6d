//! The arguments of `fathom export`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_questions::export::{ExportFormat, ExportOptions, PrometheusOptions};
use fathom_text::quote::{Charset, quote};

use super::table::{EXPORT, ExportOption, FORMAT_WORDS};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The request of an export.
#[derive(Debug)]
pub(crate) enum ExportAsk {
    /// The entries.
    Entries(ExportOptions),
    /// Sums.
    Prometheus(PrometheusOptions),
}

/// A value of `--to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportTarget {
    Entries(ExportFormat),
    Prometheus,
}

/// The deepest directories that may have series.
const DEPTH_MAX: u32 = 64;

/// The arguments of an export.
#[derive(Debug)]
pub(crate) struct ExportArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: ExportAsk,
    /// The file to create; `None` for standard output.
    pub(crate) output: Option<PathBuf>,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ExportArgs, ArgsEnd> {
    let mut parser = ExportParser::default();
    let operands = cmdline::parse(&EXPORT, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
#[derive(Default)]
struct ExportParser {
    target: Option<ExportTarget>,
    below: Option<Vec<u8>>,
    output: Option<PathBuf>,
    guards_formulas: bool,
    depth: Option<u32>,
    series_max: Option<usize>,
}

impl ExportParser {
    fn apply(&mut self, key: ExportOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            ExportOption::To => self.target = Some(option.read(target)?),
            ExportOption::Depth => {
                let depth = std::str::from_utf8(option.bytes()).ok().and_then(|text| text.parse().ok());
                let depth = depth.filter(|depth| *depth <= DEPTH_MAX);
                self.depth = Some(depth.ok_or_else(|| option.refuse(b"depth", b"0 to 64"))?);
            }
            ExportOption::MaxSeries => {
                let max = option.read(value::count)?.get();
                self.series_max = Some(usize::try_from(max).unwrap_or(usize::MAX));
            }
            ExportOption::GuardFormulas => self.guards_formulas = true,
            ExportOption::Below => self.below = Some(option.path_bytes()?),
            ExportOption::Output => {
                let charset = option.charset;
                let path = option.path()?;
                if path.as_os_str() == "-" {
                    self.output = None;
                    return Ok(());
                }
                if path.file_name().is_none() {
                    let path = quote(path.as_os_str().as_encoded_bytes(), charset);
                    return Err([&path[..], b" is not a valid file name"].concat());
                }
                self.output = Some(path);
            }
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<ExportArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: INVENTORY".to_vec())?;
        no_more(operands, charset)?;
        let Self { target, below, output, guards_formulas, depth, series_max } = self;
        let ask = match target.ok_or_else(|| b"missing option: --to FORMAT".to_vec())? {
            ExportTarget::Prometheus if below.is_some() || guards_formulas => {
                return Err(b"--to prometheus cannot be combined with --below or --guard-formulas".to_vec());
            }
            ExportTarget::Prometheus => {
                let default = PrometheusOptions::default();
                ExportAsk::Prometheus(PrometheusOptions {
                    depth: depth.unwrap_or(default.depth),
                    series_max: series_max.unwrap_or(default.series_max),
                })
            }
            ExportTarget::Entries(_) if depth.is_some() || series_max.is_some() => {
                return Err(b"--depth and --max-series require --to prometheus".to_vec());
            }
            ExportTarget::Entries(format) if guards_formulas && format != ExportFormat::Csv => {
                return Err(b"--guard-formulas requires --to csv".to_vec());
            }
            ExportTarget::Entries(format) => {
                ExportAsk::Entries(ExportOptions { format, guards_formulas, below })
            }
        };
        let is_stdout = |path: &PathBuf| matches!(ask, ExportAsk::Prometheus(_)) && path.as_os_str() == "-";
        let output = output.filter(|path| !is_stdout(path));
        Ok(ExportArgs { inventory: inventory.into(), ask, output })
    }
}

/// Parses the value of `--to`.
fn target(word: &[u8]) -> Result<ExportTarget, value::ValueError> {
    let [lines, csv, nul, ncdu, sql] = [
        ExportFormat::JsonLines,
        ExportFormat::Csv,
        ExportFormat::Nul,
        ExportFormat::Ncdu,
        ExportFormat::Sql,
    ]
    .map(ExportTarget::Entries);
    value::one_of(word, FORMAT_WORDS, &[lines, csv, nul, ncdu, sql, ExportTarget::Prometheus])
}
