//! The arguments of `fathom list`: parses and checks the command line. Prints nothing.

use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::Owners;
use fathom_inventory::filter::{FORMS, Filter, PointInTime, SizeTest, TimeError, TypeSet};
use fathom_inventory::format::PrintFormat;
use fathom_questions::json::JsonWriter;
use fathom_text::quote::{Charset, NameStyle, quoteaf};
use fathom_text::strerror;
use fathom_text::time::Zone;
use fathom_walk::{Fields, FileTime, Follow, Model};

use super::lookup::LookupContext;
use super::operands::RootList;
use super::plan::{LineFormat, ListProblem, Plan};
use super::table::{LIST, ListOption, ORDER_WORDS};
use super::vcs::VcsIgnores;
use crate::shared::cmdline::{self, ArgsEnd, EMPTY_NAME, OptionValue};
use crate::shared::getent;
use crate::shared::getopt::{Getopt, OperandOrder};
use crate::shared::output::stdout_is_terminal;
use crate::shared::value::{self, ShowWhen};

/// The arguments of a listing.
#[derive(Debug)]
pub(crate) struct ListArgs {
    pub(crate) plan: Plan,
    pub(crate) operands: RootList,
    pub(crate) in_order: bool,
    pub(crate) stats: bool,
    pub(crate) progress: ShowWhen,
    pub(crate) model: Model,
    pub(crate) threads: Option<usize>,
    /// Warnings about the format, for standard error.
    pub(crate) warnings: Vec<Vec<u8>>,
    /// Problems found before the walk.
    pub(crate) problems: Vec<ListProblem>,
    /// The inventory to list instead of the filesystem.
    pub(crate) from: Option<PathBuf>,
    /// Whether operands were given.
    pub(crate) is_of_operands: bool,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    charset: Charset,
    env: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Result<ListArgs, ArgsEnd> {
    let getopt = Getopt::new(LIST.flags.iter(), words, OperandOrder::Permute).with_foreign(FOREIGN);
    let mut parser = ListParser::new(charset, Zone::from_env(env));
    let operands = cmdline::parse_from(getopt, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands)?)
}

/// Options of find(1) that would parse as bundles of letters here, and the options that replace
/// them.
const FOREIGN: &[(&str, &str)] = &[
    ("-name", "--name"),
    ("-type", "--type"),
    ("-size", "--size"),
    ("-newer", "--newer"),
    ("-empty", "--empty"),
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

/// The options parsed so far.
struct ListParser {
    charset: Charset,
    zone: Zone,
    now: FileTime,
    filter: Filter,
    pruned: Option<Filter>,
    format: Option<PrintFormat>,
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
    progress: ShowWhen,
    model: Model,
    threads: Option<usize>,
    from: Option<PathBuf>,
}

impl ListParser {
    fn new(charset: Charset, zone: Zone) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            charset,
            zone,
            now: FileTime { sec: now.as_secs() as i64, nsec: now.subsec_nanos() },
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
            progress: ShowWhen::Auto,
            model: Model::Auto,
            threads: None,
            from: None,
        }
    }

    fn apply(&mut self, key: ListOption, option: OptionValue) -> Result<(), Vec<u8>> {
        let charset = self.charset;
        match key {
            ListOption::Type => {
                self.filter
                    .add_types(TypeSet::parse(option.bytes()).map_err(|error| error.message(charset))?);
            }
            ListOption::Name => self.filter.add_name(option.bytes(), charset),
            ListOption::Regex => {
                self.filter.add_regex(option.bytes(), charset).map_err(|error| error.message(charset))?;
            }
            ListOption::Size => {
                self.filter
                    .add_size(SizeTest::parse(option.bytes()).map_err(|error| error.message(charset))?);
            }
            ListOption::Newer => self.filter.set_newer(self.when(option.bytes())?),
            ListOption::Older => self.filter.set_older(self.when(option.bytes())?),
            ListOption::Empty => self.filter.set_only_empty(),
            ListOption::MinDepth => self.filter.set_min_depth(depth(&option)?),
            ListOption::MaxDepth => self.filter.set_max_depth(depth(&option)?),
            ListOption::From => self.from = Some(option.path()?),
            ListOption::OneFileSystem => self.one_file_system = true,
            ListOption::Prune => self.pruned.get_or_insert_default().add_name(option.bytes(), charset),
            ListOption::Hidden => self.skips_hidden = false,
            ListOption::NoHidden => self.skips_hidden = true,
            ListOption::IgnoreVcs => self.ignores_vcs = true,
            ListOption::Dereference => self.dereference = true,
            ListOption::Null => self.terminator = 0,
            ListOption::Ids => self.set_format(b"%D %i %C@ %p\\0")?,
            ListOption::Format => self.set_format(option.bytes())?,
            ListOption::Json => self.json = true,
            ListOption::Order => self.in_order = option.read(order)?,
            ListOption::Count => self.count = true,
            ListOption::Stats => self.stats = true,
            ListOption::Progress => self.progress = option.progress()?,
            ListOption::Io => self.model = option.read(value::model)?,
            ListOption::Threads => self.threads = Some(option.read(value::threads)?.get()),
        }
        Ok(())
    }

    fn set_format(&mut self, value: &[u8]) -> Result<(), Vec<u8>> {
        let format = PrintFormat::parse(value, &self.zone).map_err(|error| error.message(self.charset))?;
        self.warnings = format.warnings().iter().map(|warning| warning.message(self.charset)).collect();
        self.format = Some(format);
        Ok(())
    }

    /// Parses a time, or else takes the modification time of the file with that name.
    fn when(&self, value: &[u8]) -> Result<PointInTime, Vec<u8>> {
        let error = match PointInTime::parse(value, self.now, &self.zone) {
            Ok(when) => return Ok(when),
            Err(error) => error,
        };
        let path = CString::new(value).ok().filter(|_| matches!(error, TimeError::NotATime(_)));
        let Some(path) = path else { return Err(error.message(self.charset)) };
        match fathom_walk::meta(&path, Follow::Yes, Fields::TIMES) {
            Ok(meta) => Ok(PointInTime::at(meta.mtime)),
            Err(errno) => {
                let path = quoteaf(value, self.charset);
                Err([
                    &path[..],
                    b" is not a time, and cannot be accessed as a file: ",
                    &strerror(errno),
                    b"; ",
                    FORMS.as_bytes(),
                ]
                .concat())
            }
        }
    }

    fn finish(self, operands: Vec<OsString>) -> Result<ListArgs, Vec<u8>> {
        let formats = [("--format", self.format.is_some()), ("--json", self.json), ("--count", self.count)];
        let mut selected = formats.iter().filter(|format| format.1).map(|format| format.0);
        if let (Some(one), Some(other)) = (selected.next(), selected.next()) {
            return Err(format!("{one} and {other} cannot be combined").into_bytes());
        }
        if self.from.is_some() && (self.dereference || self.ignores_vcs) {
            return Err(b"--from cannot be combined with --dereference or --ignore-vcs".to_vec());
        }
        let is_of_operands = !operands.is_empty();
        let operands = RootList::new(operands).ok_or_else(|| EMPTY_NAME.to_vec())?;
        let needs_owners = self.format.as_ref().is_some_and(PrintFormat::needs_owners);
        let looks_up = self.format.is_some() || self.dereference || self.filter.needs_entry_counts();
        let style = |ends_in_nul| NameStyle::of(stdout_is_terminal(), ends_in_nul, self.charset);
        let format = match self.format {
            Some(format) => LineFormat::Format(Box::new(format.with_names(style(false)))),
            None if self.json => LineFormat::Json(Box::new(JsonWriter::new())),
            None if self.count => LineFormat::Count,
            None => LineFormat::Path(self.terminator, style(self.terminator == 0)),
        };
        let (vcs, problems) = self.ignores_vcs.then(VcsIgnores::new).unzip();
        let plan = Plan {
            filter: self.filter,
            format,
            pruned: self.pruned,
            skips_hidden: self.skips_hidden,
            vcs,
            one_file_system: self.one_file_system,
            dereference: self.dereference,
            lookup: if looks_up {
                LookupContext::new(if self.dereference { Follow::Yes } else { Follow::No })
            } else {
                LookupContext::default()
            },
            owners: if needs_owners { getent::owners() } else { Owners::default() },
            fast_path_terminator: None,
        };
        let Self { in_order, stats, progress, model, threads, warnings, from, .. } = self;
        let problems = problems.unwrap_or_default();
        Ok(ListArgs {
            plan: plan.with_fast_path(),
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

/// Parses the value of `--order`. Returns whether the output is ordered.
fn order(word: &[u8]) -> Result<bool, value::ValueError> {
    value::one_of(word, ORDER_WORDS, &[true, false])
}

fn depth(option: &OptionValue) -> Result<usize, Vec<u8>> {
    let digits = std::str::from_utf8(option.bytes()).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| option.refuse(b"number of levels", b""))
}
