//! From a command line to what a run of `fathom scan` needs, or to what it has to say instead. Prints nothing.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fathom_du::exclude;
use fathom_inventory::estimate::{Budget, Survey};
use fathom_inventory::scan::{LeftOut, Scan};
use fathom_inventory::store::Also;
use fathom_text::duration;
use fathom_text::quote::{Charset, quote, quoteaf};
use fathom_walk::{Choice, Leaps};

use super::table::{FLAGS, Key};
use crate::du::extra::{self, When};
use crate::getent;
use crate::getopt::{Getopt, Match, Order};
use crate::output::reason;

/// Entries between two points to go on from: a few seconds' worth on a disk.
const CHECKPOINT_ENTRIES: u64 = 1_000_000;

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Scan(Box<ScanArgs>),
    Estimate(Box<EstimateArgs>),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct ScanArgs {
    pub(crate) scan: Scan,
    pub(crate) output: PathBuf,
    pub(crate) resume: bool,
    pub(crate) stats: bool,
    pub(crate) progress: When,
}

/// Everything an estimate needs.
#[derive(Debug)]
pub(crate) struct EstimateArgs {
    pub(crate) survey: Survey,
    pub(crate) json: bool,
    pub(crate) stats: bool,
    pub(crate) progress: When,
}

/// The largest subtrees that an estimate tells of.
const LARGEST: usize = 10;

/// Reads the command line `words`, without the program's and the command's name. A message is without the program's name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<Asked, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Order::Permute);
    let mut reader = Reader::new();
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            key => reader.take(key, option, charset)?,
        }
    }
    reader.finish(getopt.into_operands())
}

/// What is known so far.
struct Reader {
    scan: Scan,
    output: Option<PathBuf>,
    resume: bool,
    estimate: Option<Duration>,
    json: bool,
    /// The first option that is for inventories alone.
    inventory_only: Option<String>,
    stats: bool,
    progress: When,
}

impl Reader {
    fn new() -> Self {
        let scan = Scan {
            roots: Vec::new(),
            choice: Choice::Auto,
            threads: None,
            leaps: Leaps::default(),
            in_flight_max: None,
            rate: None,
            one_file_system: false,
            left_out: LeftOut::default(),
            also: Also::default(),
            selector: super::select::selector,
            owners: getent::owners(),
            deadline: None,
            since: None,
            checkpoint_entries: CHECKPOINT_ENTRIES,
            mode: None,
            options: BTreeMap::new(),
            stop: Arc::default(),
        };
        Self {
            scan,
            output: None,
            resume: false,
            estimate: None,
            json: false,
            inventory_only: None,
            stats: false,
            progress: When::Auto,
        }
    }

    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let spelling = option.spelling;
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&spelling, &value, charset);
        if matches!(key, Key::Output | Key::Mode | Key::Resume | Key::Since | Key::Deadline | Key::Checkpoint)
            || matches!(key, Key::Also | Key::Exclude | Key::ExcludeFrom | Key::MaxDepth | Key::IgnoreVcs)
        {
            self.inventory_only.get_or_insert_with(|| spelling.clone());
        }
        match key {
            Key::Output => self.output = Some(OsString::from_vec(value).into()),
            Key::Mode => self.scan.mode = Some(mode(&value, charset)?),
            Key::OneFileSystem => self.scan.one_file_system = true,
            Key::Exclude => self.scan.left_out.patterns.push(value),
            Key::ExcludeFrom => self.scan.left_out.patterns.extend(patterns(value, charset)?),
            Key::MaxDepth => {
                let depth = whole(&value, &spelling, charset)?;
                self.scan.left_out.max_depth = Some(usize::try_from(depth).unwrap_or(usize::MAX));
            }
            Key::Also => self.scan.also = self.scan.also.union(also(&value, charset)?),
            Key::IgnoreVcs => self.scan.left_out.ignores_vcs = true,
            Key::Deadline => self.scan.deadline = Some(time(&value, "--deadline", charset)?),
            Key::Estimate => self.estimate = Some(time(&value, "--estimate", charset)?),
            Key::Json => self.json = true,
            Key::Resume => self.resume = true,
            Key::Since => self.scan.since = Some(OsString::from_vec(value).into()),
            Key::Rate => self.scan.rate = Some(number(&value, &spelling, charset)?),
            Key::Checkpoint => self.scan.checkpoint_entries = number(&value, &spelling, charset)?,
            Key::MaxInFlight => {
                let max = number(&value, &spelling, charset)?;
                self.scan.in_flight_max = Some(usize::try_from(max).unwrap_or(usize::MAX));
            }
            Key::Stats => self.stats = true,
            Key::Progress if value.is_empty() => self.progress = When::Always,
            Key::Progress => self.progress = extra::when(&value).map_err(refused)?,
            Key::Io => self.scan.choice = extra::model(&value).map_err(refused)?,
            Key::Threads => self.scan.threads = Some(extra::threads(&value).map_err(refused)?.get()),
            Key::Help | Key::Version => {}
        }
        Ok(())
    }

    fn finish(mut self, operands: Vec<OsString>) -> Result<Asked, Vec<u8>> {
        if operands.is_empty() && !self.resume {
            return Err(b"missing operand: what to scan".to_vec());
        }
        if self.scan.in_flight_max.is_some() && !is_blocking(self.scan.choice) {
            return Err(b"--max-in-flight is for the I/O models sync, threads and auto".to_vec());
        }
        let path =
            |word: &OsString| CString::new(word.clone().into_vec()).ok().filter(|path| !path.is_empty());
        let roots = operands.iter().map(path).collect::<Option<_>>();
        self.scan.roots = roots.ok_or_else(|| b"invalid zero-length file name".to_vec())?;
        match self.estimate {
            Some(time) => self.into_estimate(time),
            None => self.into_scan(),
        }
    }

    fn into_estimate(self, time: Duration) -> Result<Asked, Vec<u8>> {
        if let Some(option) = self.inventory_only {
            return Err(
                [b"--estimate makes no inventory: ", option.as_bytes(), b" does not go with it"].concat()
            );
        }
        let Self { scan, json, stats, progress, .. } = self;
        let survey = Survey {
            roots: scan.roots,
            budget: Budget::Time(time),
            choice: scan.choice,
            threads: scan.threads,
            leaps: scan.leaps,
            in_flight_max: scan.in_flight_max,
            rate: scan.rate,
            one_file_system: scan.one_file_system,
            largest: LARGEST,
            // Another run is to be another sample.
            seed: RandomState::new().hash_one(0),
            stop: scan.stop,
        };
        Ok(Asked::Estimate(Box::new(EstimateArgs { survey, json, stats, progress })))
    }

    fn into_scan(mut self) -> Result<Asked, Vec<u8>> {
        if self.json {
            return Err(b"--json goes with --estimate".to_vec());
        }
        let output = self.output.filter(|output| output.file_name().is_some());
        let output = output.ok_or_else(|| b"missing the name of the inventory (-o INVENTORY)".to_vec())?;
        let left_out = &self.scan.left_out;
        if self.resume && *left_out != LeftOut::default() {
            return Err(b"--resume takes no exclusions: they are those of the earlier scan".to_vec());
        }
        if self.scan.since.is_some() && (left_out.ignores_vcs || left_out.max_depth.is_some()) {
            return Err(b"--since goes with neither --ignore-vcs nor --max-depth".to_vec());
        }
        self.scan.options = options(&self.scan);
        let Self { scan, resume, stats, progress, .. } = self;
        Ok(Asked::Scan(Box::new(ScanArgs { scan, output, resume, stats, progress })))
    }
}

fn time(value: &[u8], option: &str, charset: Charset) -> Result<Duration, Vec<u8>> {
    let forms = duration::FORMS.as_bytes();
    let message = || {
        [b"invalid time ", &quote(value, charset)[..], b" for '", option.as_bytes(), b"': ", forms].concat()
    };
    duration::parse_or_seconds(value).map_err(|_| message())
}

/// Permission bits of files, in octal: their owner may read and write them in any case. The execute
/// bits say nothing here.
fn mode(value: &[u8], charset: Charset) -> Result<u32, Vec<u8>> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let mode = digits.and_then(|text| u32::from_str_radix(text, 8).ok());
    let mode = mode.filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600);
    let message = || {
        let why = b": three octal digits, the first of them 6 or 7, such as 640";
        [b"invalid mode ", &quote(value, charset)[..], b" for '--mode'", why].concat()
    };
    mode.map(|mode| mode & 0o666).ok_or_else(message)
}

/// Names of columns, separated by commas.
fn also(value: &[u8], charset: Charset) -> Result<Also, Vec<u8>> {
    let parsed =
        std::str::from_utf8(value).ok().filter(|text| !text.is_empty()).and_then(|text| text.parse().ok());
    let message = || {
        let known = Also::NAMES.join(", ");
        let why = format!(" for '--also': columns are {known}, separated by commas").into_bytes();
        [b"invalid argument ", &quote(value, charset)[..], &why].concat()
    };
    parsed.ok_or_else(message)
}

/// Whether each worker has one call under way at a time.
fn is_blocking(choice: Choice) -> bool {
    matches!(choice, Choice::Sync | Choice::Threads(_) | Choice::Auto)
}

/// A number above 0.
fn number(value: &[u8], spelling: &str, charset: Charset) -> Result<u64, Vec<u8>> {
    match whole(value, spelling, charset) {
        Ok(0) => Err(invalid(value, spelling, charset)),
        number => number,
    }
}

fn whole(value: &[u8], spelling: &str, charset: Charset) -> Result<u64, Vec<u8>> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| invalid(value, spelling, charset))
}

fn invalid(value: &[u8], spelling: &str, charset: Charset) -> Vec<u8> {
    let (value, spelling) = (quote(value, charset), quote(spelling.as_bytes(), charset));
    [b"invalid number ", &value[..], b" for ", &spelling[..]].concat()
}

/// The patterns in a file; `-` is standard input.
fn patterns(path: Vec<u8>, charset: Charset) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut text = Vec::new();
    let read = match path.as_slice() {
        b"-" => std::io::stdin().lock().read_to_end(&mut text),
        path => File::open(OsStr::from_bytes(path)).and_then(|mut file| file.read_to_end(&mut text)),
    };
    match read {
        Ok(_) => Ok(exclude::patterns(&text).map(<[u8]>::to_vec).collect()),
        Err(error) => Err([b"cannot read ", &quoteaf(&path, charset)[..], b": ", &reason(&error)].concat()),
    }
}

/// What the manifest says of the options.
fn options(scan: &Scan) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        ("io".to_owned(), scan.choice.to_string()),
        ("one-file-system".to_owned(), scan.one_file_system.to_string()),
    ]);
    options.extend(scan.threads.map(|threads| ("threads".to_owned(), threads.to_string())));
    options.extend((!scan.also.is_empty()).then(|| ("also".to_owned(), scan.also.to_string())));
    options.extend(scan.rate.map(|rate| ("rate".to_owned(), rate.to_string())));
    options.extend(scan.in_flight_max.map(|max| ("max-in-flight".to_owned(), max.to_string())));
    let LeftOut { patterns, ignores_vcs, max_depth } = &scan.left_out;
    let patterns: Vec<_> = patterns.iter().map(|pattern| String::from_utf8_lossy(pattern)).collect();
    options.extend((!patterns.is_empty()).then(|| ("exclude".to_owned(), patterns.join("\n"))));
    options.extend(ignores_vcs.then(|| ("ignore-vcs".to_owned(), true.to_string())));
    options.extend(max_depth.map(|depth| ("max-depth".to_owned(), depth.to_string())));
    options
        .extend(scan.deadline.map(|deadline| ("deadline_s".to_owned(), deadline.as_secs_f64().to_string())));
    options
}
