//! The arguments of `fathom scan`: parses and checks the command line. Prints nothing.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use fathom_inventory::store::OptionalColumns;
use fathom_scans::estimate::{Budget, Survey};
use fathom_scans::history::Retention;
use fathom_scans::scan::{Exclusions, Scan};
use fathom_text::quote::{Charset, quote};
use fathom_walk::Model;

use super::keep::KeepArgs;
use super::stream::STANDARD_OUTPUT;
use super::table::{SCAN, ScanOption};
use crate::shared::cmdline::{self, ArgsEnd, EMPTY_NAME, OptionValue};
use crate::shared::getent;
use crate::shared::patterns;
use crate::shared::value::{self, ShowWhen};

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum ScanAction {
    Scan(Box<ScanArgs>),
    Estimate(Box<EstimateArgs>),
    Keep(Box<KeepArgs>),
}

/// The arguments of a scan.
#[derive(Debug)]
pub(crate) struct ScanArgs {
    pub(crate) scan: Scan,
    pub(crate) output: PathBuf,
    pub(crate) resume: bool,
    pub(crate) stats: bool,
    pub(crate) progress: ShowWhen,
}

/// The arguments of an estimate.
#[derive(Debug)]
pub(crate) struct EstimateArgs {
    pub(crate) survey: Survey,
    pub(crate) json: bool,
    pub(crate) stats: bool,
    pub(crate) progress: ShowWhen,
}

/// The number of largest subtrees in an estimate.
const LARGEST: usize = 10;

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<ScanAction, ArgsEnd> {
    let mut parser = ScanParser::new();
    let operands = cmdline::parse(&SCAN, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands)?)
}

/// The options parsed so far.
struct ScanParser {
    scan: Scan,
    output: Option<PathBuf>,
    keep: Option<PathBuf>,
    retention: Retention,
    only_changed: bool,
    resume: bool,
    estimate: Option<Duration>,
    json: bool,
    /// The first option that applies to inventories only.
    inventory_only: Option<String>,
    stats: bool,
    progress: ShowWhen,
}

impl ScanParser {
    fn new() -> Self {
        let scan = Scan {
            selector: super::select::selector,
            owners: getent::owners(),
            #[cfg(debug_assertions)]
            clock: crate::fault::clock(),
            ..Scan::default()
        };
        Self {
            scan,
            output: None,
            keep: None,
            retention: Retention::default(),
            only_changed: false,
            resume: false,
            estimate: None,
            json: false,
            inventory_only: None,
            stats: false,
            progress: ShowWhen::Auto,
        }
    }

    fn apply(&mut self, key: ScanOption, option: OptionValue) -> Result<(), Vec<u8>> {
        let charset = option.charset;
        if matches!(
            key,
            ScanOption::Output
                | ScanOption::Keep
                | ScanOption::Mode
                | ScanOption::Resume
                | ScanOption::Since
                | ScanOption::Deadline
                | ScanOption::Checkpoint
        ) || matches!(
            key,
            ScanOption::Also
                | ScanOption::Exclude
                | ScanOption::ExcludeFrom
                | ScanOption::MaxDepth
                | ScanOption::IgnoreVcs
        ) {
            self.inventory_only.get_or_insert_with(|| option.spelling.clone());
        }
        match key {
            ScanOption::Output => self.output = Some(OsString::from_vec(option.into_bytes()).into()),
            ScanOption::Keep => self.keep = Some(option.path()?),
            ScanOption::OnlyChanged => self.only_changed = true,
            ScanOption::KeepLast => self.retention.last = option.read(value::count)?.get(),
            ScanOption::KeepDaily => self.retention.daily = option.read(value::count)?.get(),
            ScanOption::KeepWeekly => self.retention.weekly = option.read(value::count)?.get(),
            ScanOption::KeepMonthly => self.retention.monthly = option.read(value::count)?.get(),
            ScanOption::Mode => self.scan.mode = Some(mode(option.bytes(), charset)?),
            ScanOption::OneFileSystem => self.scan.one_file_system = true,
            ScanOption::Exclude => self.scan.exclusions.patterns.push(option.into_bytes()),
            ScanOption::ExcludeFrom => {
                self.scan.exclusions.patterns.extend(patterns::read(&option.into_bytes(), charset)?)
            }
            ScanOption::MaxDepth => {
                let depth = whole(&option)?;
                self.scan.exclusions.max_depth = Some(usize::try_from(depth).unwrap_or(usize::MAX));
            }
            ScanOption::Also => {
                self.scan.optional_columns = self.scan.optional_columns.union(also(option.bytes(), charset)?)
            }
            ScanOption::IgnoreVcs => self.scan.exclusions.ignores_vcs = true,
            ScanOption::Deadline => self.scan.deadline = Some(option.time()?),
            ScanOption::Estimate => self.estimate = Some(option.time()?),
            ScanOption::Json => self.json = true,
            ScanOption::Resume => self.resume = true,
            ScanOption::Since => self.scan.since = Some(OsString::from_vec(option.into_bytes()).into()),
            ScanOption::Rate => self.scan.rate = Some(number(&option)?),
            ScanOption::Checkpoint => self.scan.checkpoint_entries = number(&option)?,
            ScanOption::MaxInFlight => {
                let max = number(&option)?;
                self.scan.in_flight_max = Some(usize::try_from(max).unwrap_or(usize::MAX));
            }
            ScanOption::Stats => self.stats = true,
            ScanOption::Progress => self.progress = option.progress()?,
            ScanOption::Io => self.scan.model = option.read(value::model)?,
            ScanOption::Threads => self.scan.threads = Some(option.read(value::threads)?.get()),
        }
        Ok(())
    }

    fn finish(mut self, operands: Vec<OsString>) -> Result<ScanAction, Vec<u8>> {
        if operands.is_empty() && !self.resume {
            return Err(b"missing operand: PATH to scan".to_vec());
        }
        if self.scan.in_flight_max.is_some() && !is_blocking(self.scan.model) {
            return Err(b"--max-in-flight requires the I/O model sync, threads or auto".to_vec());
        }
        let path =
            |word: &OsString| CString::new(word.clone().into_vec()).ok().filter(|path| !path.is_empty());
        let roots = operands.iter().map(path).collect::<Option<_>>();
        self.scan.roots = roots.ok_or_else(|| EMPTY_NAME.to_vec())?;
        if self.keep.is_none() && (self.only_changed || !self.retention.is_empty()) {
            let options =
                b"--only-changed, --keep-last, --keep-daily, --keep-weekly and --keep-monthly require --keep";
            return Err(options.to_vec());
        }
        match self.estimate {
            Some(time) => self.into_estimate(time),
            None => self.into_scan(),
        }
    }

    fn into_estimate(self, time: Duration) -> Result<ScanAction, Vec<u8>> {
        if let Some(option) = self.inventory_only {
            return Err([b"--estimate cannot be combined with ", option.as_bytes()].concat());
        }
        let Self { scan, json, stats, progress, .. } = self;
        let survey = Survey {
            roots: scan.roots,
            budget: Budget::Time(time),
            model: scan.model,
            threads: scan.threads,
            hints: scan.hints,
            in_flight_max: scan.in_flight_max,
            rate: scan.rate,
            one_file_system: scan.one_file_system,
            largest: LARGEST,
            // Every run draws another sample.
            seed: RandomState::new().hash_one(0),
            clock: scan.clock,
            stop: scan.stop,
        };
        Ok(ScanAction::Estimate(Box::new(EstimateArgs { survey, json, stats, progress })))
    }

    fn into_scan(mut self) -> Result<ScanAction, Vec<u8>> {
        if self.json {
            return Err(b"--json requires --estimate".to_vec());
        }
        if self.keep.is_some() && (self.output.is_some() || self.scan.since.is_some()) {
            return Err(b"--keep cannot be combined with -o or --since: it chooses both".to_vec());
        }
        let is_stream = self.output.as_ref().is_some_and(|output| output.as_os_str() == STANDARD_OUTPUT);
        let output = self.keep.clone().or(self.output.filter(|output| output.file_name().is_some()));
        let output = output.ok_or_else(|| b"missing option: -o INVENTORY or --keep DIR".to_vec())?;
        if self.resume && is_stream {
            return Err(b"--resume cannot be combined with '-o -'".to_vec());
        }
        let exclusions = &self.scan.exclusions;
        if self.resume && *exclusions != Exclusions::default() {
            return Err(
                b"--resume cannot be combined with exclusions: it uses those of the earlier scan".to_vec()
            );
        }
        if self.scan.since.is_some() && (exclusions.ignores_vcs || exclusions.max_depth.is_some()) {
            return Err(b"--since cannot be combined with --ignore-vcs or --max-depth".to_vec());
        }
        if self.scan.optional_columns.ignored && (exclusions.ignores_vcs || self.scan.since.is_some()) {
            return Err(b"--also ignored cannot be combined with --ignore-vcs or --since".to_vec());
        }
        self.scan.options = options(&self.scan);
        let Self { scan, resume, stats, progress, keep, only_changed, retention, .. } = self;
        let scan = ScanArgs { scan, output, resume, stats, progress };
        Ok(match keep {
            Some(store) => ScanAction::Keep(Box::new(KeepArgs { scan, store, only_changed, retention })),
            None => ScanAction::Scan(Box::new(scan)),
        })
    }
}

/// Parses the permission bits of files, in octal. The owner's read and write bits must be set, and
/// not everybody may write; execute bits are ignored.
fn mode(value: &[u8], charset: Charset) -> Result<u32, Vec<u8>> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let mode = digits.and_then(|text| u32::from_str_radix(text, 8).ok());
    let mode = mode.filter(|mode| *mode <= 0o777 && mode & 0o602 == 0o600);
    let message = || {
        let why = b": three octal digits, the first of them 6 or 7, the last 0, 4 or 5, such as 640";
        [b"invalid mode ", &quote(value, charset)[..], b" for '--mode'", why].concat()
    };
    mode.map(|mode| mode & 0o666).ok_or_else(message)
}

/// Parses names of columns, separated by commas.
fn also(value: &[u8], charset: Charset) -> Result<OptionalColumns, Vec<u8>> {
    let parsed =
        std::str::from_utf8(value).ok().filter(|text| !text.is_empty()).and_then(|text| text.parse().ok());
    let message = || {
        let known = OptionalColumns::NAMES.join(", ");
        let why = format!(" for '--also': columns are {known}, separated by commas").into_bytes();
        [b"invalid argument ", &quote(value, charset)[..], &why].concat()
    };
    parsed.ok_or_else(message)
}

/// Returns whether each worker of the model has at most one call in flight.
fn is_blocking(model: Model) -> bool {
    matches!(model, Model::Sync | Model::Threads(_) | Model::Auto)
}

/// Parses a positive number.
fn number(option: &OptionValue) -> Result<u64, Vec<u8>> {
    match whole(option) {
        Ok(0) => Err(option.refuse(b"number", b"")),
        number => number,
    }
}

fn whole(option: &OptionValue) -> Result<u64, Vec<u8>> {
    let number = std::str::from_utf8(option.bytes()).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| option.refuse(b"number", b""))
}

/// Returns the options as recorded in the manifest.
fn options(scan: &Scan) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        ("io".to_owned(), scan.model.to_string()),
        ("one-file-system".to_owned(), scan.one_file_system.to_string()),
    ]);
    options.extend(scan.threads.map(|threads| ("threads".to_owned(), threads.to_string())));
    options.extend(
        (!scan.optional_columns.is_empty()).then(|| ("also".to_owned(), scan.optional_columns.to_string())),
    );
    options.extend(scan.rate.map(|rate| ("rate".to_owned(), rate.to_string())));
    options.extend(scan.in_flight_max.map(|max| ("max-in-flight".to_owned(), max.to_string())));
    let Exclusions { patterns, ignores_vcs, max_depth } = &scan.exclusions;
    let patterns: Vec<_> = patterns.iter().map(|pattern| String::from_utf8_lossy(pattern)).collect();
    options.extend((!patterns.is_empty()).then(|| ("exclude".to_owned(), patterns.join("\n"))));
    options.extend(ignores_vcs.then(|| ("ignore-vcs".to_owned(), true.to_string())));
    options.extend(max_depth.map(|depth| ("max-depth".to_owned(), depth.to_string())));
    options
        .extend(scan.deadline.map(|deadline| ("deadline_s".to_owned(), deadline.as_secs_f64().to_string())));
    options
}
