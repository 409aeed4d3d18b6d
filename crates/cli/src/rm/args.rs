//! The arguments of `fathom rm`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_text::quote::Charset;
use fathom_walk::Model;

use super::table::{RM, RmOption};
use crate::shared::cmdline::{self, ArgsEnd, EMPTY_NAME, OptionValue};
use crate::shared::value::{self, ShowWhen};

/// The source of the paths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathSource {
    /// The operands.
    Operands(Vec<PathBuf>),
    /// A file; `-` is standard input.
    From0(PathBuf),
}

/// The arguments of a removal.
#[derive(Debug)]
pub(crate) struct RmArgs {
    pub(crate) paths: PathSource,
    pub(crate) recursive: bool,
    pub(crate) trash: bool,
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
    pub(crate) verbose: bool,
    pub(crate) log: Option<PathBuf>,
    pub(crate) progress: ShowWhen,
    pub(crate) model: Model,
    pub(crate) threads: Option<usize>,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<RmArgs, ArgsEnd> {
    let mut args = RmArgs {
        paths: PathSource::Operands(Vec::new()),
        recursive: false,
        trash: false,
        dry_run: false,
        force: false,
        verbose: false,
        log: None,
        progress: ShowWhen::Auto,
        model: Model::Auto,
        threads: None,
    };
    let operands = cmdline::parse(&RM, words, charset, |key, value| args.apply(key, value))?;
    Ok(args.finish(operands)?)
}

impl RmArgs {
    fn apply(&mut self, key: RmOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            RmOption::Recursive => self.recursive = true,
            RmOption::From0 => self.paths = PathSource::From0(option.path()?),
            RmOption::Trash => self.trash = true,
            RmOption::DryRun => self.dry_run = true,
            RmOption::Force => self.force = true,
            RmOption::Verbose => self.verbose = true,
            RmOption::Log => self.log = Some(option.path()?),
            RmOption::Progress => self.progress = option.progress()?,
            RmOption::Io => self.model = option.read(value::model)?,
            RmOption::Threads => self.threads = Some(option.read(value::threads)?.get()),
        }
        Ok(())
    }

    fn finish(mut self, operands: Vec<OsString>) -> Result<Self, Vec<u8>> {
        match &self.paths {
            PathSource::From0(_) if !operands.is_empty() => {
                return Err(b"a PATH cannot be combined with --from0".to_vec());
            }
            PathSource::From0(_) => {}
            PathSource::Operands(_) => {
                if operands.is_empty() && !self.force {
                    return Err(b"missing operand".to_vec());
                }
                if operands.iter().any(|operand| operand.is_empty()) {
                    return Err(EMPTY_NAME.to_vec());
                }
                self.paths = PathSource::Operands(operands.into_iter().map(PathBuf::from).collect());
            }
        }
        Ok(self)
    }
}
