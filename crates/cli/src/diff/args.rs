//! From a command line to what a run of `fathom diff` needs, or to what it has to say instead. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fathom_inventory::diff::{Ask, Sides, Verb};
use fathom_text::quote::{Charset, quote};

use super::table::{FLAGS, Key};
use crate::du::extra;
use crate::getopt::{Getopt, Match, Order};

/// Lines of `--dirs` where nobody says how many.
const LINES: usize = 20;
/// The values of `--only`, and what they stand for.
const KINDS: &[&str] = &["created", "removed", "modified", "renamed"];
const VERBS: [Verb; 4] = [Verb::Created, Verb::Removed, Verb::Modified, Verb::Renamed];

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Diff(DiffArgs),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct DiffArgs {
    pub(crate) inventories: Sides<PathBuf>,
    pub(crate) ask: Ask,
    pub(crate) only: Vec<Verb>,
    pub(crate) form: Form,
}

/// What is shown, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    /// Paths.
    Null,
    /// Into this new file, or to standard output.
    Parquet(Option<PathBuf>),
    /// So many lines about directories.
    Dirs {
        lines: usize,
        json: bool,
    },
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
    reader.finish(getopt.into_operands(), charset).map(Asked::Diff)
}

/// What is known so far.
#[derive(Default)]
struct Reader {
    only: Option<Vec<Verb>>,
    below: Option<Vec<u8>>,
    dirs: bool,
    lines: Option<NonZeroU64>,
    json: bool,
    null: bool,
    parquet: Option<PathBuf>,
}

impl Reader {
    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&option.spelling, &value, charset);
        match key {
            Key::Below | Key::Parquet if value.is_empty() => {
                return Err(b"invalid zero-length file name".to_vec());
            }
            Key::Only => {
                let verbs = value.split(|byte| *byte == b',').map(|word| extra::one_of(word, KINDS, &VERBS));
                self.only = Some(verbs.collect::<Result<_, _>>().map_err(refused)?);
            }
            Key::Below => self.below = Some(value),
            Key::Dirs => self.dirs = true,
            Key::Lines => self.lines = Some(extra::top(&value).map_err(refused)?),
            Key::Json => self.json = true,
            Key::Null => self.null = true,
            Key::Parquet => self.parquet = Some(OsString::from_vec(value).into()),
            Key::Help | Key::Version => {}
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<DiffArgs, Vec<u8>> {
        let form = self.form()?;
        let mut operands = operands.into_iter().map(PathBuf::from);
        let (Some(old), Some(new)) = (operands.next(), operands.next()) else {
            return Err(b"missing operand: two inventories are compared".to_vec());
        };
        if let Some(more) = operands.next() {
            return Err(
                [b"extra operand ", &quote(more.as_os_str().as_encoded_bytes(), charset)[..]].concat()
            );
        }
        let ask = Ask { below: self.below, scratch: std::env::temp_dir() };
        let only = self.only.unwrap_or_else(|| VERBS.to_vec());
        Ok(DiffArgs { inventories: Sides { old, new }, ask, only, form })
    }

    fn form(&self) -> Result<Form, Vec<u8>> {
        let refused = |what: &str| Err(what.as_bytes().to_vec());
        if usize::from(self.json) + usize::from(self.null) + usize::from(self.parquet.is_some()) > 1 {
            return refused("--json, --null and --parquet exclude one another");
        }
        match (self.dirs, self.lines, &self.parquet) {
            (true, ..) if self.null || self.parquet.is_some() || self.only.is_some() => {
                refused("--dirs is without --only, --null and --parquet: it shows no changes")
            }
            (true, lines, _) => {
                let lines = lines.map_or(LINES, |lines| usize::try_from(lines.get()).unwrap_or(usize::MAX));
                Ok(Form::Dirs { lines, json: self.json })
            }
            (false, Some(_), _) => refused("--lines is for --dirs"),
            (false, None, Some(file)) if file.as_os_str() == "-" => Ok(Form::Parquet(None)),
            (false, None, Some(file)) if file.file_name().is_none() => {
                refused("the file of --parquet has no name")
            }
            (false, None, Some(file)) => Ok(Form::Parquet(Some(file.clone()))),
            (false, None, None) if self.null => Ok(Form::Null),
            (false, None, None) => Ok(if self.json { Form::Json } else { Form::Text }),
        }
    }
}
