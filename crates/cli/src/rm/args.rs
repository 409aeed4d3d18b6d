//! The arguments of `fathom rm`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
    /// A file of paths.
    From0(PathList),
}

/// A file of paths, each ended by a NUL byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathList {
    /// The file; `-` is standard input.
    pub(crate) file: PathBuf,
    /// The directory with which each path begins; `None` for any directory.
    pub(crate) root: Option<PathBuf>,
    /// Whether the inode that was listed stands before each path.
    pub(crate) has_ids: bool,
}

impl PathList {
    /// Returns whether standard input has the paths.
    pub(crate) fn is_standard_input(&self) -> bool {
        self.file == Path::new("-")
    }
}

/// The arguments of a removal.
#[derive(Debug)]
pub(crate) struct RmArgs {
    pub(crate) paths: PathSource,
    root: Option<PathBuf>,
    has_ids: bool,
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
        root: None,
        has_ids: false,
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
            RmOption::From0 => {
                self.paths = PathSource::From0(PathList { file: option.path()?, ..PathList::default() });
            }
            RmOption::Root => self.root = Some(option.path()?),
            RmOption::Ids => self.has_ids = true,
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
        match &mut self.paths {
            PathSource::From0(_) if !operands.is_empty() => {
                return Err(b"PATH cannot be combined with --from0".to_vec());
            }
            PathSource::From0(list) => (list.root, list.has_ids) = (self.root.take(), self.has_ids),
            PathSource::Operands(_) => {
                if self.root.is_some() || self.has_ids {
                    return Err(b"--root and --ids require --from0".to_vec());
                }
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
