//! The arguments of `fathom explore`: parses and checks the command line. Prints nothing.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_explore::arrange::{Arrangement, SortKey};
use fathom_text::quote::Charset;
use fathom_walk::Model;

use super::remote::{RemoteTree, SSH};
use super::table::{EXPLORE, ExploreOption, SORT_WORDS};
use crate::shared::cmdline::{self, ArgsEnd, EMPTY_NAME, OptionValue};
use crate::shared::{patterns, value};

/// The arguments of a session.
#[derive(Debug)]
pub(crate) struct ExploreArgs {
    /// The trees, or one inventory.
    pub(crate) paths: Vec<CString>,
    pub(crate) since: Option<PathBuf>,
    /// A tree on another machine, in place of `paths`.
    pub(crate) remote: Option<RemoteTree>,
    /// The command that runs a program there.
    pub(crate) ssh: OsString,
    pub(crate) one_file_system: bool,
    /// The patterns of names and paths that are left out.
    pub(crate) excluded: Vec<Vec<u8>>,
    /// Whether sizes are in powers of 1000.
    pub(crate) uses_si: bool,
    pub(crate) model: Model,
    pub(crate) threads: Option<usize>,
    pub(crate) arrangement: Arrangement,
    pub(crate) uses_mouse: bool,
    pub(crate) prints_marks: bool,
    pub(crate) is_read_only: bool,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ExploreArgs, ArgsEnd> {
    let mut args = ExploreArgs {
        paths: Vec::new(),
        since: None,
        remote: None,
        ssh: SSH.into(),
        one_file_system: false,
        excluded: Vec::new(),
        uses_si: false,
        model: Model::Auto,
        threads: None,
        arrangement: Arrangement::default(),
        uses_mouse: true,
        prints_marks: false,
        is_read_only: false,
    };
    let operands = cmdline::parse(&EXPLORE, words, charset, |key, value| args.apply(key, value, charset))?;
    if args.remote.is_some() && !operands.is_empty() {
        return Err(b"--remote HOST:PATH cannot be combined with PATH or INVENTORY".to_vec().into());
    }
    args.paths = paths(operands)?;
    Ok(args)
}

impl ExploreArgs {
    fn apply(&mut self, key: ExploreOption, option: OptionValue, charset: Charset) -> Result<(), Vec<u8>> {
        match key {
            ExploreOption::Since => self.since = Some(option.path()?),
            ExploreOption::Remote => self.remote = Some(RemoteTree::parse(option.bytes())?),
            ExploreOption::Ssh => self.ssh = OsString::from_vec(option.into_bytes()),
            ExploreOption::OneFileSystem => self.one_file_system = true,
            ExploreOption::Exclude => self.excluded.push(option.into_bytes()),
            ExploreOption::ExcludeFrom => {
                self.excluded.extend(patterns::read(&option.into_bytes(), charset)?)
            }
            ExploreOption::Si => self.uses_si = true,
            ExploreOption::ApparentSize => self.arrangement.apparent = true,
            ExploreOption::Sort => self.arrangement.sort = option.read(sort)?,
            ExploreOption::NoMouse => self.uses_mouse = false,
            ExploreOption::PrintMarked => self.prints_marks = true,
            ExploreOption::ReadOnly => self.is_read_only = true,
            ExploreOption::Io => self.model = option.read(value::model)?,
            ExploreOption::Threads => self.threads = Some(option.read(value::threads)?.get()),
        }
        Ok(())
    }
}

/// Parses the value of `--sort`.
fn sort(word: &[u8]) -> Result<SortKey, value::ValueError> {
    use SortKey::{Count, Growth, Mtime, Name, Size};
    value::one_of(word, SORT_WORDS, &[Size, Name, Count, Mtime, Growth])
}

/// Returns the operands as paths; the current directory if there are none.
fn paths(operands: Vec<OsString>) -> Result<Vec<CString>, Vec<u8>> {
    if operands.is_empty() {
        return Ok(vec![c".".to_owned()]);
    }
    let path = |word: OsString| CString::new(word.into_vec()).ok().filter(|path| !path.is_empty());
    operands.into_iter().map(path).collect::<Option<_>>().ok_or_else(|| EMPTY_NAME.to_vec())
}
