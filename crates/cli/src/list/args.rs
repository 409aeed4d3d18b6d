//! From a command line to what a run of `fathom list` needs, or to what it has to say instead. Prints nothing.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::Owners;
use fathom_inventory::filter::{FORMS, Filter, SizeTest, Types, When, WhenError};
use fathom_inventory::format::Format;
use fathom_inventory::json::Writer;
use fathom_text::quote::{Charset, NameStyle, quote, quoteaf};
use fathom_text::time::Zone;
use fathom_text::words;
use fathom_walk::{Choice, Fields, Follow, Stamp};

use super::lookup::Places;
use super::operands::Operands;
use super::plan::{Plan, Problem, Shape};
use super::table::{FLAGS, Key};
use super::vcs::Vcs;
use crate::du::extra::{self, When as Show};
use crate::getent;
use crate::getopt::{Getopt, Match, Order as Words};
use crate::output::stdout_is_terminal;

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    List(Box<ListArgs>),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct ListArgs {
    pub(crate) plan: Plan,
    pub(crate) operands: Operands,
    pub(crate) in_order: bool,
    pub(crate) stats: bool,
    pub(crate) progress: Show,
    pub(crate) model: Choice,
    pub(crate) threads: Option<usize>,
    /// Of the format; for standard error.
    pub(crate) warnings: Vec<Vec<u8>>,
    /// Known before the walk.
    pub(crate) problems: Vec<Problem>,
    /// The inventory that is listed instead of the file system.
    pub(crate) from: Option<PathBuf>,
    /// Operands were given.
    pub(crate) is_of_operands: bool,
}

/// Reads the command line `words`, without the program's and the command's name. A message is without the program's name.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    charset: Charset,
    env: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Result<Asked, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Words::Permute).with_foreign(FOREIGN);
    let mut reader = Reader::new(charset, Zone::from_env(env));
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            key => reader.take(key, option)?,
        }
    }
    reader.finish(getopt.into_operands()).map(|args| Asked::List(Box::new(args)))
}

/// Words of find(1) that are no bundles of letters here, and what is meant.
const FOREIGN: &[(&str, &str)] = &[
    ("-name", "--name"),
    ("-type", "--type"),
    ("-size", "--size"),
    ("-newer", "--newer"),
    ("-regex", "--regex"),
    ("-maxdepth", "--max-depth"),
    ("-mindepth", "--min-depth"),
    ("-prune", "--prune"),
    ("-xdev", "--one-file-system"),
    ("-mount", "--one-file-system"),
    ("-follow", "--dereference"),
    ("-printf", "--format"),
    ("-print0", "--null"),
];

/// What is known so far.
struct Reader {
    charset: Charset,
    zone: Zone,
    now: Stamp,
    filter: Filter,
    pruned: Option<Filter>,
    format: Option<Format>,
    warnings: Vec<Vec<u8>>,
    json: bool,
    count: bool,
    terminator: u8,
    skips_hidden: bool,
    ignores_vcs: bool,
    one_file_system: bool,
    dereference: bool,
    in_order: bool,
    stats: bool,
    progress: Show,
    model: Choice,
    threads: Option<usize>,
    from: Option<PathBuf>,
}

impl Reader {
    fn new(charset: Charset, zone: Zone) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            charset,
            zone,
            now: Stamp { sec: now.as_secs() as i64, nsec: now.subsec_nanos() },
            filter: Filter::default(),
            pruned: None,
            format: None,
            warnings: Vec::new(),
            json: false,
            count: false,
            terminator: b'\n',
            skips_hidden: false,
            ignores_vcs: false,
            one_file_system: false,
            dereference: false,
            in_order: true,
            stats: false,
            progress: Show::Auto,
            model: Choice::Auto,
            threads: None,
            from: None,
        }
    }

    fn take(&mut self, key: Key, option: Match<Key>) -> Result<(), Vec<u8>> {
        let charset = self.charset;
        let spelling = option.spelling;
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&spelling, &value, charset);
        match key {
            Key::Type => {
                self.filter.add_types(Types::parse(&value).map_err(|error| error.message(charset))?);
            }
            Key::Name => self.filter.add_name(&value, charset),
            Key::Regex => {
                self.filter.add_regex(&value, charset).map_err(|error| error.message(charset))?;
            }
            Key::Size => {
                self.filter.add_size(SizeTest::parse(&value).map_err(|error| error.message(charset))?);
            }
            Key::Newer => self.filter.set_newer(self.when(&value)?),
            Key::Older => self.filter.set_older(self.when(&value)?),
            Key::MinDepth => self.filter.set_min_depth(depth(&value, &spelling, charset)?),
            Key::MaxDepth => self.filter.set_max_depth(depth(&value, &spelling, charset)?),
            Key::From if value.is_empty() => return Err(b"invalid zero-length file name".to_vec()),
            Key::From => self.from = Some(OsString::from_vec(value).into()),
            Key::OneFileSystem => self.one_file_system = true,
            Key::Prune => self.pruned.get_or_insert_default().add_name(&value, charset),
            Key::Hidden => self.skips_hidden = false,
            Key::NoHidden => self.skips_hidden = true,
            Key::IgnoreVcs => self.ignores_vcs = true,
            Key::Dereference => self.dereference = true,
            Key::Null => self.terminator = 0,
            Key::Format => self.set_format(&value)?,
            Key::Json => self.json = true,
            Key::Order => self.in_order = extra::order(&value).map_err(refused)?,
            Key::Count => self.count = true,
            Key::Stats => self.stats = true,
            Key::Progress if value.is_empty() => self.progress = Show::Always,
            Key::Progress => self.progress = extra::when(&value).map_err(refused)?,
            Key::Io => self.model = extra::model(&value).map_err(refused)?,
            Key::Threads => self.threads = Some(extra::threads(&value).map_err(refused)?.get()),
            Key::Help | Key::Version => {}
        }
        Ok(())
    }

    fn set_format(&mut self, value: &[u8]) -> Result<(), Vec<u8>> {
        let format = Format::parse(value, &self.zone).map_err(|error| error.message(self.charset))?;
        self.warnings = format.warnings().iter().map(|warning| warning.message(self.charset)).collect();
        self.format = Some(format);
        Ok(())
    }

    /// A time, or that of a file.
    fn when(&self, value: &[u8]) -> Result<When, Vec<u8>> {
        let error = match When::parse(value, self.now, &self.zone) {
            Ok(when) => return Ok(when),
            Err(error) => error,
        };
        let path = CString::new(value).ok().filter(|_| matches!(error, WhenError::NotATime(_)));
        let Some(path) = path else { return Err(error.message(self.charset)) };
        match fathom_walk::meta(&path, Follow::Yes, Fields::TIMES) {
            Ok(meta) => Ok(When::at(meta.modified)),
            Err(errno) => {
                let path = quoteaf(value, self.charset);
                Err([
                    &path[..],
                    b" is no time, and no file that can be accessed: ",
                    &words(errno),
                    b"; ",
                    FORMS.as_bytes(),
                ]
                .concat())
            }
        }
    }

    fn finish(self, operands: Vec<OsString>) -> Result<ListArgs, Vec<u8>> {
        let shapes = [("--format", self.format.is_some()), ("--json", self.json), ("--count", self.count)];
        let mut asked = shapes.iter().filter(|shape| shape.1).map(|shape| shape.0);
        if let (Some(one), Some(other)) = (asked.next(), asked.next()) {
            return Err(format!("{one} and {other} exclude each other").into_bytes());
        }
        if self.from.is_some() && (self.dereference || self.ignores_vcs) {
            return Err(b"--from goes with neither --dereference nor --ignore-vcs".to_vec());
        }
        let is_of_operands = !operands.is_empty();
        let operands = Operands::new(operands).ok_or_else(|| b"invalid zero-length file name".to_vec())?;
        let needs_owners = self.format.as_ref().is_some_and(Format::needs_owners);
        let looks_up = self.format.is_some() || self.dereference;
        let style = |ends_in_nul| NameStyle::of(stdout_is_terminal(), ends_in_nul, self.charset);
        let shape = match self.format {
            Some(format) => Shape::Format(Box::new(format.with_names(style(false)))),
            None if self.json => Shape::Json(Box::new(Writer::new())),
            None if self.count => Shape::Count,
            None => Shape::Path(self.terminator, style(self.terminator == 0)),
        };
        let (vcs, problems) = self.ignores_vcs.then(Vcs::new).unzip();
        let plan = Plan {
            filter: self.filter,
            shape,
            pruned: self.pruned,
            skips_hidden: self.skips_hidden,
            vcs,
            one_file_system: self.one_file_system,
            dereference: self.dereference,
            places: if looks_up {
                Places::new(if self.dereference { Follow::Yes } else { Follow::No })
            } else {
                Places::default()
            },
            owners: if needs_owners { getent::owners() } else { Owners::default() },
            plain_end: None,
        };
        let Self { in_order, stats, progress, model, threads, warnings, from, .. } = self;
        let problems = problems.unwrap_or_default();
        Ok(ListArgs {
            plan: plan.settled(),
            operands,
            in_order,
            stats,
            progress,
            model,
            threads,
            warnings,
            problems,
            from,
            is_of_operands,
        })
    }
}

fn depth(value: &[u8], spelling: &str, charset: Charset) -> Result<usize, Vec<u8>> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        [
            b"invalid number of levels ",
            &quote(value, charset)[..],
            b" for ",
            &quote(spelling.as_bytes(), charset),
        ]
        .concat()
    })
}
