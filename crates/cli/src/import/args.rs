//! The arguments of `fathom import`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_scans::import::{DuOutput, ImportFormat};
use fathom_text::number::{SIZE_UNITS, read};
use fathom_text::quote::Charset;

use super::table::{FROM_WORDS, IMPORT, ImportOption};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The arguments of an import.
#[derive(Debug)]
pub(crate) struct ImportArgs {
    pub(crate) format: ImportFormat,
    /// The file to read; `None` for standard input.
    pub(crate) input: Option<PathBuf>,
    pub(crate) output: PathBuf,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ImportArgs, ArgsEnd> {
    let mut parser = ImportParser::default();
    let operands = cmdline::parse(&IMPORT, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
#[derive(Default)]
struct ImportParser {
    format: Option<ImportFormat>,
    output: Option<PathBuf>,
    du: DuOutput,
}

impl ImportParser {
    fn apply(&mut self, key: ImportOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            ImportOption::From => {
                let formats = [ImportFormat::Ncdu, ImportFormat::Gdu, ImportFormat::Du(DuOutput::default())];
                self.format = Some(option.read(|word| value::one_of(word, FROM_WORDS, &formats))?);
            }
            ImportOption::Output => self.output = Some(option.path()?),
            ImportOption::Bytes => self.du.apparent = true,
            ImportOption::BlockSize => self.du.block_bytes = block_size(&option)?,
            ImportOption::OnlyDirs => self.du.only_directories = true,
            ImportOption::Total => self.du.has_total = true,
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<ImportArgs, Vec<u8>> {
        let Self { format, output, du } = self;
        let mut operands = operands.into_iter();
        let input = operands.next().ok_or_else(|| b"missing operand: FILE to import".to_vec())?;
        no_more(operands, charset)?;
        let format = match format.ok_or_else(|| b"missing option: --from PROGRAM".to_vec())? {
            ImportFormat::Du(_) => ImportFormat::Du(du),
            _ if du != DuOutput::default() => {
                return Err(b"--bytes, --block-size, --only-dirs and --total require --from du".to_vec());
            }
            other => other,
        };
        let output = output.filter(|output| output.file_name().is_some());
        let output = output.ok_or_else(|| b"missing option: -o INVENTORY".to_vec())?;
        let input = Some(PathBuf::from(input)).filter(|input| input.as_os_str() != "-");
        Ok(ImportArgs { format, input, output })
    }
}

/// Parses a size that is not 0.
fn block_size(option: &OptionValue) -> Result<u64, Vec<u8>> {
    let size = read(option.bytes(), 0, u64::MAX.into(), SIZE_UNITS);
    let bytes = u64::try_from(size.value).ok().filter(|bytes| size.error.is_none() && *bytes > 0);
    bytes.ok_or_else(|| option.refuse(b"size", b""))
}
