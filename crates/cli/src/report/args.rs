//! The arguments of `fathom report`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_text::quote::{Charset, quote};

use super::table::{REPORT, ReportOption};
use crate::shared::cmdline::{self, ArgsEnd, no_more};

/// The arguments of a page.
#[derive(Debug)]
pub(crate) struct ReportArgs {
    pub(crate) inventory: PathBuf,
    /// The earlier inventory.
    pub(crate) since: Option<PathBuf>,
    /// The file to write; `None` for standard output.
    pub(crate) output: Option<PathBuf>,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ReportArgs, ArgsEnd> {
    let (mut output, mut since) = (None, None);
    let operands = cmdline::parse(&REPORT, words, charset, |key, option| {
        match key {
            ReportOption::Output => output = Some(option.path()?),
            ReportOption::Since => since = Some(option.path()?),
        }
        Ok(())
    })?;
    Ok(finish(output, since, operands, charset)?)
}

fn finish(
    output: Option<PathBuf>,
    since: Option<PathBuf>,
    operands: Vec<OsString>,
    charset: Charset,
) -> Result<ReportArgs, Vec<u8>> {
    let mut operands = operands.into_iter();
    let inventory = operands.next().ok_or_else(|| b"missing operand: INVENTORY".to_vec())?;
    no_more(operands, charset)?;
    let output = output.ok_or_else(|| b"missing option: -o FILE, or -o - for standard output".to_vec())?;
    let output = Some(output).filter(|path| path.as_os_str() != "-");
    if let Some(path) = output.as_ref().filter(|path| path.file_name().is_none()) {
        let path = quote(path.as_os_str().as_encoded_bytes(), charset);
        return Err([&path[..], b" is not a valid file name"].concat());
    }
    Ok(ReportArgs { inventory: inventory.into(), since, output })
}
