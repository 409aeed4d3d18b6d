//! The arguments of `fathom du`: parses and checks the command line and the environment. Owns the
//! order of the checks, which is GNU du's, because the first error determines the messages. The
//! parsers of the values own the messages about values. Reads pattern files; prints nothing and
//! does not exit.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fathom_du::exclude::Exclude;
use fathom_du::options::{Follow, HardLinks, LineFormat, Measure, Options};
use fathom_du::threshold::Threshold;
use fathom_text::human::BlockSize;
use fathom_text::number;
use fathom_text::quote::{Charset, quote, quotef};
use fathom_text::time::{TimeField, TimeStyle, Zone};

use super::additions::{Additions, ViewKind, property};
use super::table::{DuOption, FLAGS};
use crate::shared::cmdline::{self, Information, OptionValue};
use crate::shared::flag::Scope;
use crate::shared::getopt::{Getopt, OperandOrder};
use crate::shared::input::standard_input;
use crate::shared::output::reason;
use crate::shared::value::{self, ShowWhen};

/// The name and the mode of operation of this invocation.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// The prefix of messages: `fathom du`, or the program name as it was typed.
    pub(crate) name: Vec<u8>,
    /// Whether fathom's additions exist.
    pub(crate) scope: Scope,
    /// The charset of messages and patterns.
    pub(crate) charset: Charset,
}

/// A lookup of environment variables.
pub(crate) type EnvLookup<'e> = &'e dyn Fn(&str) -> Option<Vec<u8>>;

/// The result of parsing a command line. `stderr` is printed first in all cases.
#[derive(Debug)]
pub(crate) struct ParseOutcome {
    /// Complete lines: warnings, or errors.
    pub(crate) stderr: Vec<u8>,
    /// The requested action.
    pub(crate) action: DuAction,
}

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum DuAction {
    /// Measure.
    Run(Box<DuArgs>),
    /// Print a text and exit with status 0.
    Inform(Information),
    /// Exit with status 1.
    Fail,
}

/// The arguments of a run.
#[derive(Debug)]
pub(crate) struct DuArgs {
    /// The measured quantity and the printed lines.
    pub(crate) options: Options,
    /// The format of lines.
    pub(crate) format: LineFormat,
    /// Whether an option chose the unit of sizes, not the environment or a default.
    pub(crate) unit_chosen: bool,
    /// The operands.
    pub(crate) operands: OperandSource,
    /// The options that GNU du does not have.
    pub(crate) extra: Additions,
}

/// The source of the operands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OperandSource {
    /// The command line. Empty only if a whole inventory is measured.
    Listed(Vec<OsString>),
    /// This file, in which a NUL byte ends each operand; `-` is standard input.
    Files0From(OsString),
}

/// Parses the command line `words`, without the program name.
pub(crate) fn parse(
    invocation: &Invocation,
    words: impl Iterator<Item = OsString>,
    env: EnvLookup<'_>,
) -> ParseOutcome {
    let mut parser = DuParser::new(invocation, env);
    let read = parser.read(words);
    if let Err(ParseEnd::Fatal(text) | ParseEnd::Usage(text)) = &read {
        parser.message(text);
    }
    if let Err(ParseEnd::Usage(_) | ParseEnd::Reported) = &read {
        parser.stderr.extend([b"Try '", &invocation.name[..], b" --help' for more information.\n"].concat());
    }
    let action = match read {
        Ok(args) => DuAction::Run(Box::new(args)),
        Err(ParseEnd::Inform(information)) => DuAction::Inform(information),
        Err(ParseEnd::Fatal(_) | ParseEnd::Usage(_) | ParseEnd::Reported) => DuAction::Fail,
    };
    ParseOutcome { stderr: parser.stderr, action }
}

/// The reason why parsing ends without a run.
enum ParseEnd {
    Inform(Information),
    /// An error with this message.
    Fatal(Vec<u8>),
    /// An error with this message and a reference to `--help`.
    Usage(Vec<u8>),
    /// Errors whose messages are already in `stderr`; a reference to `--help` follows.
    Reported,
}

impl From<Information> for ParseEnd {
    fn from(information: Information) -> Self {
        ParseEnd::Inform(information)
    }
}

/// The options parsed so far.
struct DuParser<'c> {
    invocation: &'c Invocation,
    env: EnvLookup<'c>,
    order: OperandOrder,
    stderr: Vec<u8>,
    /// Whether there was an error after which GNU du continues to parse.
    has_errors: bool,
    options: Options,
    block_size: Option<BlockSize>,
    apparent: bool,
    inodes: bool,
    summarize: bool,
    depth: Option<i64>,
    time_style: Option<Vec<u8>>,
    terminator: u8,
    files0_from: Option<OsString>,
    extra: Additions,
}

impl<'c> DuParser<'c> {
    fn new(invocation: &'c Invocation, env: EnvLookup<'c>) -> Self {
        let posix = env("POSIXLY_CORRECT").is_some();
        DuParser {
            invocation,
            env,
            order: if posix { OperandOrder::RequireOrder } else { OperandOrder::Permute },
            stderr: Vec::new(),
            has_errors: false,
            options: Options { exclude: Exclude::new(invocation.charset, posix), ..Options::default() },
            block_size: None,
            apparent: false,
            inodes: false,
            summarize: false,
            depth: None,
            time_style: None,
            terminator: b'\n',
            files0_from: None,
            extra: Additions::new(invocation.scope),
        }
    }

    /// Parses and checks everything. The order of these steps is GNU du's and determines the order
    /// of messages.
    fn read(&mut self, words: impl Iterator<Item = OsString>) -> Result<DuArgs, ParseEnd> {
        let flags = FLAGS.iter().filter(|flag| self.invocation.scope.covers(flag));
        let getopt = Getopt::new(flags, words, self.order);
        let getopt = match self.invocation.scope {
            Scope::Full => getopt,
            Scope::Original => getopt.without_suggestions(),
        };
        let operands = cmdline::each(getopt, self.invocation.charset, |step| match step {
            Ok((key, option)) => self.apply(key, option),
            Err(misuse) => {
                self.record_error(&misuse.message());
                Ok(())
            }
        })?;
        if self.has_errors {
            return Err(ParseEnd::Reported);
        }
        self.resolve_depth()?;
        self.resolve_measure();
        let time_style = self.resolve_time_style()?;
        let operands = self.resolve_operands(operands)?;
        let block_size = self.block_size.unwrap_or_else(|| BlockSize::from_env(self.env));
        Ok(DuArgs {
            options: std::mem::take(&mut self.options),
            format: LineFormat { block_size, time_style, terminator: self.terminator },
            unit_chosen: self.block_size.is_some(),
            operands,
            extra: self.extra.clone(),
        })
    }

    fn apply(&mut self, key: DuOption, option: OptionValue) -> Result<(), ParseEnd> {
        if option.given.is_none() {
            return self.switch(key);
        }
        match key {
            DuOption::Top
            | DuOption::By
            | DuOption::From
            | DuOption::Color
            | DuOption::Progress
            | DuOption::Io
            | DuOption::Threads => self.apply_added(key, option),
            _ => self.apply_value(key, option),
        }
    }

    fn switch(&mut self, key: DuOption) -> Result<(), ParseEnd> {
        let options = &mut self.options;
        match key {
            DuOption::Tree => self.choose_view(ViewKind::Tree)?,
            DuOption::All => options.all = true,
            DuOption::ApparentSize => self.apparent = true,
            DuOption::Bytes => (self.apparent, self.block_size) = (true, Some(BlockSize::BYTES)),
            DuOption::CountLinks => options.links = HardLinks::EachTime,
            DuOption::Dereference => options.follow = Follow::Always,
            DuOption::DereferenceArgs => options.follow = Follow::Operands,
            DuOption::NoDereference => options.follow = Follow::Never,
            DuOption::HumanReadable => self.block_size = Some(BlockSize::HUMAN),
            DuOption::Si => self.block_size = Some(BlockSize::SI),
            DuOption::Kibibytes => self.block_size = Some(BlockSize::KIBIBYTES),
            DuOption::Mebibytes => self.block_size = Some(BlockSize::MEBIBYTES),
            DuOption::Inodes => self.inodes = true,
            DuOption::Null => self.terminator = b'\0',
            DuOption::OneFileSystem => options.one_file_system = true,
            DuOption::SeparateDirs => options.separate_dirs = true,
            DuOption::Summarize => self.summarize = true,
            DuOption::Total => options.total = true,
            DuOption::Time => options.time = Some(TimeField::Mtime),
            DuOption::Json => self.extra.json = true,
            DuOption::Progress => self.extra.progress = ShowWhen::Always,
            DuOption::Verbose => self.extra.verbose = true,
            _ => unreachable!("{key:?} never comes without a value"),
        }
        Ok(())
    }

    fn apply_value(&mut self, key: DuOption, option: OptionValue) -> Result<(), ParseEnd> {
        let spelling = option.spelling.clone();
        let value = option.into_bytes();
        match key {
            DuOption::BlockSize => {
                let block_size = BlockSize::parse(&value);
                self.block_size =
                    Some(block_size.map_err(|error| ParseEnd::Fatal(error.message(&spelling, &value)))?);
            }
            DuOption::Threshold => {
                let threshold = Threshold::parse(&value);
                self.options.threshold =
                    Some(threshold.map_err(|error| ParseEnd::Fatal(error.message(&spelling, &value)))?);
            }
            DuOption::Time => {
                let field = TimeField::parse(&value);
                self.options.time =
                    Some(field.map_err(|error| ParseEnd::Usage(error.message(self.invocation.charset)))?);
            }
            DuOption::MaxDepth => self.read_depth(&value),
            DuOption::Exclude => self.options.exclude.add(&value),
            DuOption::ExcludeFrom => self.read_patterns(&value),
            DuOption::Files0From => self.files0_from = Some(OsString::from_vec(value)),
            DuOption::TimeStyle => self.time_style = Some(value),
            _ => unreachable!("{key:?} takes no value"),
        }
        Ok(())
    }

    fn apply_added(&mut self, key: DuOption, option: OptionValue) -> Result<(), ParseEnd> {
        let usage = ParseEnd::Usage;
        match key {
            DuOption::Top => {
                self.choose_view(ViewKind::Top(option.read(value::count).map_err(usage)?))?;
            }
            DuOption::By => self.choose_view(ViewKind::By(option.read(property).map_err(usage)?))?,
            DuOption::From => self.extra.from = Some(OsString::from_vec(option.into_bytes()).into()),
            DuOption::Color => self.extra.color = option.read(value::when).map_err(usage)?,
            DuOption::Progress => self.extra.progress = option.read(value::when).map_err(usage)?,
            DuOption::Io => self.extra.model = option.read(value::model).map_err(usage)?,
            DuOption::Threads => self.extra.threads = Some(option.read(value::threads).map_err(usage)?),
            _ => unreachable!("{key:?} takes no value"),
        }
        Ok(())
    }

    fn read_depth(&mut self, value: &[u8]) {
        match number::read_plain(value) {
            Ok(depth) => self.depth = Some(depth),
            Err(_) => self.record_error(
                &[b"invalid maximum depth ", &quote(value, self.invocation.charset)[..]].concat(),
            ),
        }
    }

    fn read_patterns(&mut self, path: &[u8]) {
        match read_file(OsStr::from_bytes(path)) {
            Ok(patterns) => self.options.exclude.add_file(&patterns),
            Err(error) => {
                let path = quotef(path, self.invocation.charset);
                self.record_error(&[&path[..], b": ", &reason(&error)].concat());
            }
        }
    }

    fn choose_view(&mut self, view: ViewKind) -> Result<(), ParseEnd> {
        let conflict =
            |before: &'static str| view.option().filter(|now| *now != before).map(|now| (before, now));
        if let Some((before, now)) = self.extra.view.option().and_then(conflict) {
            return Err(ParseEnd::Usage(format!("cannot combine '{before}' and '{now}'").into_bytes()));
        }
        self.extra.view = view;
        Ok(())
    }

    fn resolve_depth(&mut self) -> Result<(), ParseEnd> {
        if self.summarize && self.options.all {
            return Err(ParseEnd::Usage(b"cannot both summarize and show all entries".to_vec()));
        }
        match self.depth {
            Some(0) if self.summarize => {
                self.message(b"warning: summarizing is the same as using --max-depth=0");
            }
            Some(depth) if self.summarize => {
                let conflict = format!("warning: summarizing conflicts with --max-depth={depth}");
                return Err(ParseEnd::Usage(conflict.into_bytes()));
            }
            _ => {}
        }
        // A negative depth acts like 0: an operand always has a line.
        let depth = if self.summarize { Some(0) } else { self.depth };
        self.options.depth_max = depth.map(|depth| u64::try_from(depth).unwrap_or(0));
        Ok(())
    }

    fn resolve_measure(&mut self) {
        if self.inodes && self.apparent {
            self.message(b"warning: options --apparent-size and -b are ineffective with --inodes");
        }
        self.options.measure = match (self.inodes, self.apparent) {
            (true, _) => Measure::Inodes,
            (false, true) => Measure::Apparent,
            (false, false) => Measure::Usage,
        };
    }

    /// Parses the time style. Like GNU du, ignores even an invalid style if no times are printed.
    fn resolve_time_style(&mut self) -> Result<TimeStyle, ParseEnd> {
        if self.options.time.is_none() {
            return Ok(TimeStyle::default());
        }
        let zone = Zone::from_env(self.env);
        let style = match self.time_style.take() {
            Some(style) => TimeStyle::parse(&style, zone),
            None => TimeStyle::from_env((self.env)("TIME_STYLE").as_deref(), zone),
        };
        style.map_err(|error| ParseEnd::Usage(error.message(self.invocation.charset)))
    }

    fn resolve_operands(&mut self, listed: Vec<OsString>) -> Result<OperandSource, ParseEnd> {
        match (self.files0_from.take(), listed.first()) {
            (Some(_), Some(extra)) => {
                let operand = quote(extra.as_bytes(), self.invocation.charset);
                let hint = b"\nfile operands cannot be combined with --files0-from";
                Err(ParseEnd::Usage([b"extra operand ", &operand[..], hint].concat()))
            }
            (Some(path), None) => Ok(OperandSource::Files0From(path)),
            (None, Some(_)) => Ok(OperandSource::Listed(listed)),
            (None, None) if self.extra.from.is_some() => Ok(OperandSource::Listed(Vec::new())),
            (None, None) => Ok(OperandSource::Listed(vec![OsString::from(".")])),
        }
    }

    fn message(&mut self, text: &[u8]) {
        self.stderr.extend([&self.invocation.name[..], b": ", text, b"\n"].concat());
    }

    fn record_error(&mut self, text: &[u8]) {
        self.message(text);
        self.has_errors = true;
    }
}

fn read_file(path: &OsStr) -> io::Result<Vec<u8>> {
    if path != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    standard_input()?.read_to_end(&mut bytes).map(|_| bytes)
}

#[cfg(test)]
mod tests;
