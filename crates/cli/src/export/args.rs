//! From a command line to what a run of `fathom export` needs, or to what it has to say instead. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_inventory::export::{Ask, Format};
use fathom_text::quote::{Charset, quote};

use super::table::{FLAGS, FORMAT_WORDS, Key};
use crate::du::extra;
use crate::getopt::{Getopt, Match, Order};

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Export(ExportArgs),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct ExportArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: Ask,
    /// The file to make; standard output without one.
    pub(crate) output: Option<PathBuf>,
}

/// Reads the command line `words`, without the program's and the command's name. A message is without the program's name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<Asked, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Order::Permute);
    let mut reader = Reader::default();
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            key => reader.take(key, option, charset)?,
        }
    }
    reader.finish(getopt.into_operands(), charset).map(Asked::Export)
}

/// What is known so far.
#[derive(Default)]
struct Reader {
    format: Option<Format>,
    below: Option<Vec<u8>>,
    output: Option<PathBuf>,
    guards_formulas: bool,
}

impl Reader {
    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&option.spelling, &value, charset);
        match key {
            Key::To => self.format = Some(format(&value).map_err(refused)?),
            Key::Below | Key::Output if value.is_empty() => {
                return Err(b"invalid zero-length file name".to_vec());
            }
            Key::GuardFormulas => self.guards_formulas = true,
            Key::Below => self.below = Some(value),
            Key::Output => {
                let path = PathBuf::from(OsString::from_vec(value));
                if path.file_name().is_none() {
                    let path = quote(path.as_os_str().as_encoded_bytes(), charset);
                    return Err([&path[..], b" cannot be the name of a file"].concat());
                }
                self.output = Some(path);
            }
            Key::Help | Key::Version => {}
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
        if self.guards_formulas && format != Format::Csv {
            return Err(b"--guard-formulas goes with --to csv".to_vec());
        }
        let ask = Ask { format, guards_formulas: self.guards_formulas, below: self.below };
        Ok(ExportArgs { inventory: inventory.into(), ask, output: self.output })
    }
}

/// The value of `--to`.
fn format(word: &[u8]) -> Result<Format, extra::Refusal> {
    use Format::{Csv, JsonLines, Ncdu, Nul, Sql};
    extra::one_of(word, FORMAT_WORDS, &[JsonLines, Csv, Nul, Ncdu, Sql])
}
