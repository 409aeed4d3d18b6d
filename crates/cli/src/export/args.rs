//! The arguments of `fathom export`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_inventory::export::{ExportFormat, ExportOptions};
use fathom_text::quote::{Charset, quote};

use super::table::{ExportOption, FLAGS, FORMAT_WORDS};
use crate::shared::getopt::{Getopt, OperandOrder, ParsedOption};
use crate::shared::value;

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum ExportAction {
    Help,
    Version,
    Export(ExportArgs),
}

/// The arguments of an export.
#[derive(Debug)]
pub(crate) struct ExportArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: ExportOptions,
    /// The file to create; `None` for standard output.
    pub(crate) output: Option<PathBuf>,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    charset: Charset,
) -> Result<ExportAction, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, OperandOrder::Permute);
    let mut parser = ExportParser::default();
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            ExportOption::Help => return Ok(ExportAction::Help),
            ExportOption::Version => return Ok(ExportAction::Version),
            key => parser.apply(key, option, charset)?,
        }
    }
    parser.finish(getopt.into_operands(), charset).map(ExportAction::Export)
}

/// The options parsed so far.
#[derive(Default)]
struct ExportParser {
    format: Option<ExportFormat>,
    below: Option<Vec<u8>>,
    output: Option<PathBuf>,
    guards_formulas: bool,
}

impl ExportParser {
    fn apply(
        &mut self,
        key: ExportOption,
        option: ParsedOption<ExportOption>,
        charset: Charset,
    ) -> Result<(), Vec<u8>> {
        let value = option.value.unwrap_or_default();
        let refused = |refusal: value::ValueError| refusal.message(&option.spelling, &value, charset);
        match key {
            ExportOption::To => self.format = Some(format(&value).map_err(refused)?),
            ExportOption::Below | ExportOption::Output if value.is_empty() => {
                return Err(b"invalid zero-length file name".to_vec());
            }
            ExportOption::GuardFormulas => self.guards_formulas = true,
            ExportOption::Below => self.below = Some(value),
            ExportOption::Output => {
                let path = PathBuf::from(OsString::from_vec(value));
                if path.file_name().is_none() {
                    let path = quote(path.as_os_str().as_encoded_bytes(), charset);
                    return Err([&path[..], b" cannot be the name of a file"].concat());
                }
                self.output = Some(path);
            }
            ExportOption::Help | ExportOption::Version => {}
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<ExportArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: the inventory".to_vec())?;
        if let Some(more) = operands.next() {
            return Err([b"extra operand ", &quote(more.as_encoded_bytes(), charset)[..]].concat());
        }
        let format = self.format.ok_or_else(|| b"missing the format (--to FORMAT)".to_vec())?;
        if self.guards_formulas && format != ExportFormat::Csv {
            return Err(b"--guard-formulas goes with --to csv".to_vec());
        }
        let ask = ExportOptions { format, guards_formulas: self.guards_formulas, below: self.below };
        Ok(ExportArgs { inventory: inventory.into(), ask, output: self.output })
    }
}

/// Parses the value of `--to`.
fn format(word: &[u8]) -> Result<ExportFormat, value::ValueError> {
    use ExportFormat::{Csv, JsonLines, Ncdu, Nul, Sql};
    value::one_of(word, FORMAT_WORDS, &[JsonLines, Csv, Nul, Ncdu, Sql])
}
