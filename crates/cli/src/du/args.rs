//! From a command line and an environment to what a run of `fathom du` needs, or to what it has to say
//! instead. Owns the order in which GNU du looks at things, since the first mistake it meets decides what is
//! printed; the words for a value's mistakes belong to the value's own parser. Reads pattern files; prints
//! nothing, ends nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fathom_du::exclude::Exclude;
use fathom_du::options::{Follow, Format, Links, Measure, Options};
use fathom_du::threshold::Threshold;
use fathom_text::human::BlockSize;
use fathom_text::number;
use fathom_text::quote::{Charset, quote, quotef};
use fathom_text::time::{TimeField, TimeStyle, Zone};

use super::extra::{self, Extra, Refusal, View};
use super::table::{FLAGS, Key};
use crate::flag::Scope;
use crate::getopt::{Getopt, Match, Order};

/// Who is asked, and how it talks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name messages begin with: `fathom du`, or the program's name as it was typed.
    pub(crate) name: Vec<u8>,
    /// Whether fathom's additions exist.
    pub(crate) scope: Scope,
    /// The characters of messages and patterns.
    pub(crate) charset: Charset,
}

/// Reads a variable of the environment.
pub(crate) type Env<'e> = &'e dyn Fn(&str) -> Option<Vec<u8>>;

/// What a command line comes to. Whatever that is, `stderr` is printed first.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Complete lines: warnings, or why there is nothing to run.
    pub(crate) stderr: Vec<u8>,
    /// What is to be done.
    pub(crate) parsed: Parsed,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Measure.
    Run(Box<DuArgs>),
    /// Print the help text and end with status 0.
    Help,
    /// Print the version and end with status 0.
    Version,
    /// End with status 1.
    Fail,
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct DuArgs {
    /// What is measured.
    pub(crate) options: Options,
    /// How lines look.
    pub(crate) format: Format,
    /// Whether an option, not the environment or a default, chose the unit of sizes.
    pub(crate) unit_chosen: bool,
    /// What is measured of the file system.
    pub(crate) operands: Operands,
    /// What GNU du does not know.
    pub(crate) extra: Extra,
}

/// Where the operands are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Here; none only for all of an inventory.
    Listed(Vec<OsString>),
    /// In this file, each ended by a NUL byte; `-` is standard input.
    Files0From(OsString),
}

/// Reads the command line `words`, without the program's name.
pub(crate) fn parse(caller: &Caller, words: impl Iterator<Item = OsString>, env: Env<'_>) -> Outcome {
    let mut reader = Reader::new(caller, env);
    let read = reader.read(words);
    if let Err(Stop::Fatal(text) | Stop::Usage(text)) = &read {
        reader.message(text);
    }
    if let Err(Stop::Usage(_) | Stop::Mistakes) = &read {
        reader.stderr.extend([b"Try '", &caller.name[..], b" --help' for more information.\n"].concat());
    }
    let parsed = match read {
        Ok(args) => Parsed::Run(Box::new(args)),
        Err(Stop::Help) => Parsed::Help,
        Err(Stop::Version) => Parsed::Version,
        Err(Stop::Fatal(_) | Stop::Usage(_) | Stop::Mistakes) => Parsed::Fail,
    };
    Outcome { stderr: reader.stderr, parsed }
}

/// Why reading ends before there is something to run.
enum Stop {
    Help,
    Version,
    /// This message ends it.
    Fatal(Vec<u8>),
    /// This message ends it, and a hint at the help follows.
    Usage(Vec<u8>),
    /// The messages are out; the hint follows.
    Mistakes,
}

/// What is known so far.
struct Reader<'c> {
    caller: &'c Caller,
    env: Env<'c>,
    order: Order,
    stderr: Vec<u8>,
    /// A mistake was met that does not keep GNU from reading on.
    mistaken: bool,
    options: Options,
    block_size: Option<BlockSize>,
    apparent: bool,
    inodes: bool,
    summarize: bool,
    depth: Option<i64>,
    time_style: Option<Vec<u8>>,
    terminator: u8,
    files0_from: Option<OsString>,
    extra: Extra,
}

impl<'c> Reader<'c> {
    fn new(caller: &'c Caller, env: Env<'c>) -> Self {
        let posix = env("POSIXLY_CORRECT").is_some();
        Reader {
            caller,
            env,
            order: if posix { Order::OperandsLast } else { Order::Permute },
            stderr: Vec::new(),
            mistaken: false,
            options: Options { exclude: Exclude::new(caller.charset, posix), ..Options::default() },
            block_size: None,
            apparent: false,
            inodes: false,
            summarize: false,
            depth: None,
            time_style: None,
            terminator: b'\n',
            files0_from: None,
            extra: Extra::new(caller.scope),
        }
    }

    /// Messages come in the order of these steps, which is GNU's.
    fn read(&mut self, words: impl Iterator<Item = OsString>) -> Result<DuArgs, Stop> {
        let flags = FLAGS.iter().filter(|flag| self.caller.scope.covers(flag));
        let mut getopt = Getopt::new(flags, words, self.order);
        for step in getopt.by_ref() {
            match step {
                Ok(found) => self.apply(found)?,
                Err(misuse) => self.mistake(&misuse.message()),
            }
        }
        if self.mistaken {
            return Err(Stop::Mistakes);
        }
        self.settle_depth()?;
        self.settle_measure();
        let time_style = self.settle_time_style()?;
        let operands = self.settle_operands(getopt.into_operands())?;
        let block_size = self.block_size.unwrap_or_else(|| BlockSize::from_env(self.env));
        Ok(DuArgs {
            options: std::mem::take(&mut self.options),
            format: Format { block_size, time_style, terminator: self.terminator },
            unit_chosen: self.block_size.is_some(),
            operands,
            extra: self.extra.clone(),
        })
    }

    fn apply(&mut self, found: Match<Key>) -> Result<(), Stop> {
        let key = found.flag.key;
        match (key, found.value) {
            (Key::Help, _) => Err(Stop::Help),
            (Key::Version, _) => Err(Stop::Version),
            (Key::Tree, _) => self.choose_view(View::Tree),
            (_, Some(value)) if found.flag.added => self.apply_added(key, &found.spelling, &value),
            (_, Some(value)) => self.apply_value(key, &found.spelling, value),
            (_, None) => {
                self.switch(key);
                Ok(())
            }
        }
    }

    fn switch(&mut self, key: Key) {
        let options = &mut self.options;
        match key {
            Key::All => options.all = true,
            Key::ApparentSize => self.apparent = true,
            Key::Bytes => (self.apparent, self.block_size) = (true, Some(BlockSize::BYTES)),
            Key::CountLinks => options.links = Links::EachTime,
            Key::Dereference => options.follow = Follow::Always,
            Key::DereferenceArgs => options.follow = Follow::Operands,
            Key::NoDereference => options.follow = Follow::Never,
            Key::HumanReadable => self.block_size = Some(BlockSize::HUMAN),
            Key::Si => self.block_size = Some(BlockSize::SI),
            Key::Kibibytes => self.block_size = Some(BlockSize::KIBIBYTES),
            Key::Mebibytes => self.block_size = Some(BlockSize::MEBIBYTES),
            Key::Inodes => self.inodes = true,
            Key::Null => self.terminator = b'\0',
            Key::OneFileSystem => options.one_file_system = true,
            Key::SeparateDirs => options.separate_dirs = true,
            Key::Summarize => self.summarize = true,
            Key::Total => options.total = true,
            Key::Time => options.time = Some(TimeField::Modified),
            Key::Json => self.extra.json = true,
            Key::Progress => self.extra.progress = extra::When::Always,
            Key::Verbose => self.extra.verbose = true,
            _ => unreachable!("{key:?} never comes without a value, or does not get here"),
        }
    }

    fn apply_value(&mut self, key: Key, spelling: &str, value: Vec<u8>) -> Result<(), Stop> {
        match key {
            Key::BlockSize => {
                let block_size = BlockSize::parse(&value);
                self.block_size =
                    Some(block_size.map_err(|error| Stop::Fatal(error.message(spelling, &value)))?);
            }
            Key::Threshold => {
                let threshold = Threshold::parse(&value);
                self.options.threshold =
                    Some(threshold.map_err(|error| Stop::Fatal(error.message(spelling, &value)))?);
            }
            Key::Time => {
                let field = TimeField::parse(&value);
                self.options.time =
                    Some(field.map_err(|error| Stop::Usage(error.message(self.caller.charset)))?);
            }
            Key::MaxDepth => self.read_depth(&value),
            Key::Exclude => self.options.exclude.add(&value),
            Key::ExcludeFrom => self.read_patterns(&value),
            Key::Files0From => self.files0_from = Some(OsString::from_vec(value)),
            Key::TimeStyle => self.time_style = Some(value),
            _ => unreachable!("{key:?} takes no value"),
        }
        Ok(())
    }

    fn apply_added(&mut self, key: Key, spelling: &str, value: &[u8]) -> Result<(), Stop> {
        let charset = self.caller.charset;
        let usage = |refusal: Refusal| Stop::Usage(refusal.message(spelling, value, charset));
        match key {
            Key::Top => self.choose_view(View::Top(extra::top(value).map_err(usage)?))?,
            Key::By => self.choose_view(View::By(extra::property(value).map_err(usage)?))?,
            Key::From => self.extra.from = Some(OsStr::from_bytes(value).into()),
            Key::Color => self.extra.color = extra::when(value).map_err(usage)?,
            Key::Progress => self.extra.progress = extra::when(value).map_err(usage)?,
            Key::Io => self.extra.model = extra::model(value).map_err(usage)?,
            Key::Threads => self.extra.threads = Some(extra::threads(value).map_err(usage)?),
            _ => unreachable!("{key:?} takes no value"),
        }
        Ok(())
    }

    fn read_depth(&mut self, value: &[u8]) {
        match number::read_plain(value) {
            Ok(depth) => self.depth = Some(depth),
            Err(_) => {
                self.mistake(&[b"invalid maximum depth ", &quote(value, self.caller.charset)[..]].concat())
            }
        }
    }

    fn read_patterns(&mut self, path: &[u8]) {
        match read_file(OsStr::from_bytes(path)) {
            Ok(patterns) => self.options.exclude.add_file(&patterns),
            Err(error) => {
                let cause = reason(&error);
                self.mistake(&[&quotef(path, self.caller.charset)[..], b": ", cause.as_bytes()].concat());
            }
        }
    }

    fn choose_view(&mut self, view: View) -> Result<(), Stop> {
        let conflict =
            |before: &'static str| view.option().filter(|now| *now != before).map(|now| (before, now));
        if let Some((before, now)) = self.extra.view.option().and_then(conflict) {
            return Err(Stop::Usage(format!("cannot combine '{before}' and '{now}'").into_bytes()));
        }
        self.extra.view = view;
        Ok(())
    }

    fn settle_depth(&mut self) -> Result<(), Stop> {
        if self.summarize && self.options.all {
            return Err(Stop::Usage(b"cannot both summarize and show all entries".to_vec()));
        }
        match self.depth {
            Some(0) if self.summarize => {
                self.message(b"warning: summarizing is the same as using --max-depth=0");
            }
            Some(depth) if self.summarize => {
                let conflict = format!("warning: summarizing conflicts with --max-depth={depth}");
                return Err(Stop::Usage(conflict.into_bytes()));
            }
            _ => {}
        }
        // No level is below 0, and an operand has its line whatever the limit.
        let depth = if self.summarize { Some(0) } else { self.depth };
        self.options.depth_max = depth.map(|depth| u64::try_from(depth).unwrap_or(0));
        Ok(())
    }

    fn settle_measure(&mut self) {
        if self.inodes && self.apparent {
            self.message(b"warning: options --apparent-size and -b are ineffective with --inodes");
        }
        self.options.measure = match (self.inodes, self.apparent) {
            (true, _) => Measure::Inodes,
            (false, true) => Measure::Apparent,
            (false, false) => Measure::Usage,
        };
    }

    /// Nobody looks at the style, not even at a wrong one, as long as no times are asked for.
    fn settle_time_style(&mut self) -> Result<TimeStyle, Stop> {
        if self.options.time.is_none() {
            return Ok(TimeStyle::default());
        }
        let zone = Zone::from_env(self.env);
        let style = match self.time_style.take() {
            Some(style) => TimeStyle::parse(&style, zone),
            None => TimeStyle::from_env((self.env)("TIME_STYLE").as_deref(), zone),
        };
        style.map_err(|error| Stop::Usage(error.message(self.caller.charset)))
    }

    fn settle_operands(&mut self, listed: Vec<OsString>) -> Result<Operands, Stop> {
        match (self.files0_from.take(), listed.first()) {
            (Some(_), Some(extra)) => {
                let operand = quote(extra.as_bytes(), self.caller.charset);
                let hint = b"\nfile operands cannot be combined with --files0-from";
                Err(Stop::Usage([b"extra operand ", &operand[..], hint].concat()))
            }
            (Some(path), None) => Ok(Operands::Files0From(path)),
            (None, Some(_)) => Ok(Operands::Listed(listed)),
            (None, None) if self.extra.from.is_some() => Ok(Operands::Listed(Vec::new())),
            (None, None) => Ok(Operands::Listed(vec![OsString::from(".")])),
        }
    }

    fn message(&mut self, text: &[u8]) {
        self.stderr.extend([&self.caller.name[..], b": ", text, b"\n"].concat());
    }

    fn mistake(&mut self, text: &[u8]) {
        self.message(text);
        self.mistaken = true;
    }
}

fn read_file(path: &OsStr) -> io::Result<Vec<u8>> {
    if path != "-" {
        return std::fs::read(path);
    }
    if fathom_io::sys::stdin_was_closed() {
        return Err(fathom_io::Errno::BADF.into());
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map(|_| bytes)
}

/// The system's words for an error, without the number that Rust adds.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let suffix = error.raw_os_error().map(|code| format!(" (os error {code})"));
    suffix.and_then(|suffix| text.strip_suffix(&suffix).map(str::to_string)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
