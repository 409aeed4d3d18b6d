//! The arguments of `fathom export`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_inventory::export::{ExportFormat, ExportOptions};
use fathom_text::quote::{Charset, quote};

use super::table::{EXPORT, ExportOption, FORMAT_WORDS};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

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
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ExportArgs, ArgsEnd> {
    let mut parser = ExportParser::default();
    let operands = cmdline::parse(&EXPORT, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
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
    fn apply(&mut self, key: ExportOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            ExportOption::To => self.format = Some(option.read(format)?),
            ExportOption::GuardFormulas => self.guards_formulas = true,
            ExportOption::Below => self.below = Some(option.path_bytes()?),
            ExportOption::Output => {
                let charset = option.charset;
                let path = option.path()?;
                if path.file_name().is_none() {
                    let path = quote(path.as_os_str().as_encoded_bytes(), charset);
                    return Err([&path[..], b" cannot be the name of a file"].concat());
                }
                self.output = Some(path);
            }
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<ExportArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: the inventory".to_vec())?;
        no_more(operands, charset)?;
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
