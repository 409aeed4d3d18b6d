//! The arguments of `fathom bench`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fathom_bench::fixture::CacheState;
use fathom_bench::{ArmNumbers, Workload};
use fathom_io::Model;
use fathom_text::quote::{Charset, quote};
use fathom_text::{duration, number};

use super::table::{BENCH, BenchOption, CACHE_WORDS, WAIT_WORDS};
use crate::shared::cmdline::{self, ArgsEnd, EMPTY_NAME, OptionValue, no_more};
use crate::shared::value;

/// The values of `--lang`, besides `all`.
const LANGS: [&str; 11] =
    ["rust", "bun", "c", "cpp", "deno", "go", "java", "node", "python", "rust-crates", "zig"];
/// The value of `--csv` for the columns of io-playground.
const PLAIN: &[u8] = b"plain";
/// The maximum file size, a limit of file offsets.
const SIZE_MAX: i128 = i64::MAX as i128;
/// The maximum number of files in a tree.
const FILES_MAX: u64 = 100_000_000;
/// The default number of repetitions of a validation.
const BLOCKS_VALIDATE: u32 = 7;
/// The maximum number of repetitions.
const BLOCKS_MAX: u64 = 10_000;

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum BenchAction {
    Bench(Box<BenchArgs>),
    Compare(CompareArgs),
    Advise(AdviseArgs),
}

/// The destination of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    Output,
    File(PathBuf),
}

/// The arguments of a measurement.
#[derive(Debug)]
pub(crate) struct BenchArgs {
    pub(crate) deed: Workload,
    pub(crate) models: Vec<Model>,
    pub(crate) langs: Vec<String>,
    pub(crate) numbers: ArmNumbers,
    pub(crate) size: u64,
    pub(crate) block: usize,
    pub(crate) files: u64,
    pub(crate) direct: bool,
    pub(crate) sync: bool,
    /// In the order in which they are run.
    pub(crate) caches: Vec<CacheState>,
    pub(crate) blocks: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) path: PathBuf,
    pub(crate) csv: Option<ReportTarget>,
    /// Whether the CSV has the three columns of io-playground.
    pub(crate) csv_is_plain: bool,
    pub(crate) json: Option<ReportTarget>,
    pub(crate) html: Option<PathBuf>,
    /// Whether tables are Markdown.
    pub(crate) markdown: bool,
}

/// The arguments of `advise`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdviseArgs {
    pub(crate) path: PathBuf,
    pub(crate) seed: Option<u64>,
    /// The profile to write: the default one, or this file.
    pub(crate) save: Option<ReportTarget>,
    /// Repetitions of the validation; `None` for no validation.
    pub(crate) validate: Option<u32>,
    /// Whether to do a fraction of the work only.
    pub(crate) quick: bool,
    /// The time within which to answer.
    pub(crate) time: Option<Duration>,
    pub(crate) csv: Option<ReportTarget>,
    pub(crate) json: Option<ReportTarget>,
    pub(crate) html: Option<PathBuf>,
}

/// The arguments of `compare`.
#[derive(Debug)]
pub(crate) struct CompareArgs {
    pub(crate) old: PathBuf,
    pub(crate) new: PathBuf,
    pub(crate) json: Option<ReportTarget>,
    pub(crate) markdown: bool,
    /// The share by which an arm may become slower.
    pub(crate) fail_above: Option<f64>,
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<BenchAction, ArgsEnd> {
    let mut parser = BenchParser::default();
    let operands = cmdline::parse(&BENCH, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
#[derive(Default)]
struct BenchParser {
    models: Vec<Model>,
    langs: Vec<String>,
    numbers: ArmNumbers,
    size: Option<u64>,
    block: Option<u64>,
    files: Option<u64>,
    direct: bool,
    sync: bool,
    cache: Option<CacheState>,
    blocks: Option<u32>,
    seed: Option<u64>,
    path: Option<PathBuf>,
    save: Option<ReportTarget>,
    validate: bool,
    quick: bool,
    time: Option<Duration>,
    csv: Option<ReportTarget>,
    csv_is_plain: bool,
    json: Option<ReportTarget>,
    html: Option<PathBuf>,
    markdown: bool,
    fail_above: Option<f64>,
}

impl BenchParser {
    fn apply(&mut self, key: BenchOption, option: OptionValue) -> Result<(), Vec<u8>> {
        let (given, charset) = (option.given.is_some(), option.charset);
        let value = option.bytes();
        let name = option.spelling.as_str();
        let path = || path(value);
        let target = || if given { path().map(ReportTarget::File) } else { Ok(ReportTarget::Output) };
        match key {
            BenchOption::Models => self.models = models(value, name, charset)?,
            BenchOption::Lang => self.langs = langs(value, name, charset)?,
            BenchOption::Threads => self.numbers.threads = counts(value, name, charset)?,
            BenchOption::Depth => self.numbers.depths = counts(value, name, charset)?,
            BenchOption::Batch => self.numbers.batches = counts(value, name, charset)?,
            BenchOption::Wait => {
                let spins = |word: &[u8]| value::one_of(word, WAIT_WORDS, &[false, true]);
                self.numbers.spins = option.read(spins)?;
            }
            BenchOption::Size => self.size = Some(size(value, name)?),
            BenchOption::Block => self.block = Some(size(value, name)?),
            BenchOption::Files => self.files = Some(size(value, name)?),
            BenchOption::Direct => self.direct = true,
            BenchOption::Sync => self.sync = true,
            BenchOption::Cache => {
                let cache =
                    |word: &[u8]| value::one_of(word, CACHE_WORDS, &[CacheState::Warm, CacheState::Cold]);
                self.cache = Some(option.read(cache)?);
            }
            BenchOption::Blocks => {
                let count = option.read(value::count)?.get();
                self.blocks = u32::try_from(count.min(BLOCKS_MAX)).ok();
            }
            BenchOption::Seed => self.seed = Some(whole(value, name)?),
            BenchOption::Path => self.path = Some(path()?),
            BenchOption::Save => self.save = Some(target()?),
            BenchOption::Validate => self.validate = true,
            BenchOption::Quick => self.quick = true,
            BenchOption::Time => self.time = Some(time(&option)?),
            BenchOption::Csv => match value.strip_prefix(PLAIN).filter(|_| given) {
                Some(b"") => (self.csv, self.csv_is_plain) = (Some(ReportTarget::Output), true),
                Some([b':', file @ ..]) => {
                    (self.csv, self.csv_is_plain) = (Some(ReportTarget::File(self::path(file)?)), true);
                }
                _ => (self.csv, self.csv_is_plain) = (Some(target()?), false),
            },
            BenchOption::Markdown => self.markdown = true,
            BenchOption::FailAbove => self.fail_above = Some(percent(value, name, charset)?),
            BenchOption::Json => self.json = Some(target()?),
            BenchOption::Html => self.html = Some(path()?),
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<BenchAction, Vec<u8>> {
        let mut operands = operands.into_iter();
        let workload = operands.next().ok_or_else(|| b"missing operand: the workload".to_vec())?;
        if workload == "compare" {
            let mut run =
                || operands.next().map(PathBuf::from).ok_or_else(|| b"missing operand: two runs".to_vec());
            let (old, new) = (run()?, run()?);
            let (markdown, fail_above) = (self.markdown, self.fail_above);
            let compared = CompareArgs { old, new, json: self.json, markdown, fail_above };
            no_more(operands, charset)?;
            return Ok(BenchAction::Compare(compared));
        }
        if self.fail_above.is_some() {
            return Err(b"--fail-above is for compare".to_vec());
        }
        if workload == "advise" {
            let place = operands.next().map(PathBuf::from);
            no_more(operands, charset)?;
            return self.advise(place).map(BenchAction::Advise);
        }
        let deed = workload.to_str().and_then(Workload::named);
        let deed = deed.ok_or_else(|| {
            [b"unknown workload ", &quote(workload.as_encoded_bytes(), charset)[..]].concat()
        })?;
        no_more(operands, charset)?;
        self.bench(deed).map(|args| BenchAction::Bench(Box::new(args)))
    }

    fn advise(self, place: Option<PathBuf>) -> Result<AdviseArgs, Vec<u8>> {
        let of_one_workload = [
            (!self.models.is_empty(), "--models"),
            (!self.langs.is_empty(), "--lang"),
            (self.numbers.is_given(), "--threads, --depth, --batch or --wait"),
            (self.size.is_some(), "--size"),
            (self.block.is_some(), "--block"),
            (self.files.is_some(), "--files"),
            (self.direct, "--direct"),
            (self.sync, "--sync"),
            (self.cache.is_some(), "--cache"),
            (self.blocks.is_some() && !self.validate, "--blocks"),
            (self.csv_is_plain, "--csv=plain"),
            (self.markdown, "--markdown"),
        ];
        if let Some((_, name)) = of_one_workload.iter().find(|(given, _)| *given) {
            return Err(format!("{name} is not for advise, which asks about all workloads").into_bytes());
        }
        if self.quick && self.time.is_some() {
            return Err(b"--quick and --time are two ways of asking for less: one of them".to_vec());
        }
        self.check_outputs()?;
        Ok(AdviseArgs {
            path: place.or(self.path).unwrap_or_else(|| PathBuf::from(".")),
            seed: self.seed,
            save: self.save,
            validate: self.validate.then(|| self.blocks.unwrap_or(BLOCKS_VALIDATE)),
            quick: self.quick,
            time: self.time,
            csv: self.csv,
            json: self.json,
            html: self.html,
        })
    }

    fn check_outputs(&self) -> Result<(), Vec<u8>> {
        if self.csv == Some(ReportTarget::Output) && self.json == Some(ReportTarget::Output) {
            return Err(b"--csv and --json cannot both go to standard output".to_vec());
        }
        Ok(())
    }

    fn bench(self, deed: Workload) -> Result<BenchArgs, Vec<u8>> {
        if self.validate || self.quick || self.time.is_some() || self.save.is_some() {
            return Err(b"--validate, --quick, --time and --save are for advise".to_vec());
        }
        if deed.writes() && self.cache.is_some() {
            return Err(b"--cache is for workloads that read".to_vec());
        }
        let in_rust_alone = deed.is_of_small_files() || deed == Workload::Copy;
        if in_rust_alone && !self.langs.is_empty() {
            return Err(b"--lang is not for this workload".to_vec());
        }
        if (in_rust_alone || deed.is_of_tree()) && (self.direct || self.sync) {
            return Err(b"--direct and --sync are not for this workload".to_vec());
        }
        if self.numbers.is_given() && matches!(deed, Workload::AppendSync | Workload::Copy | Workload::Serve)
        {
            return Err(b"--threads, --depth, --batch and --wait are not for this workload".to_vec());
        }
        self.check_outputs()?;
        let block = self.block.unwrap_or(default_block(deed));
        let size = self.size.unwrap_or(default_size(deed));
        if self.direct && !(size.is_multiple_of(512) && block.is_multiple_of(512)) {
            return Err(b"with --direct, --size and --block must be multiples of 512".to_vec());
        }
        let caches = match self.cache {
            // For a copy, the written data matter more than the cache state of the source.
            None if deed == Workload::Copy => vec![CacheState::Warm],
            _ if deed.writes() || self.direct => vec![CacheState::Any],
            None => vec![CacheState::Warm, CacheState::Cold],
            Some(cache) => vec![cache],
        };
        Ok(BenchArgs {
            deed,
            models: self.models,
            langs: self.langs,
            numbers: self.numbers,
            size,
            block: usize::try_from(block).map_err(|_| b"--block is too large".to_vec())?,
            files: self.files.unwrap_or(100_000).min(FILES_MAX),
            direct: self.direct,
            sync: self.sync,
            caches,
            blocks: self.blocks.unwrap_or(10),
            seed: self.seed,
            path: self.path.unwrap_or_else(|| PathBuf::from(".")),
            csv: self.csv,
            csv_is_plain: self.csv_is_plain,
            json: self.json,
            html: self.html,
            markdown: self.markdown,
        })
    }
}

/// Sequential workloads use the buffer size of cat(1) and cp(1).
fn default_block(deed: Workload) -> u64 {
    if matches!(deed, Workload::Copy | Workload::Read) { 128 << 10 } else { 4096 }
}

/// `append-sync` gets a small file, because each of its syncs waits for the disk.
fn default_size(deed: Workload) -> u64 {
    match deed {
        Workload::AppendSync => 4 << 20,
        Workload::RandomRead => 256 << 20,
        Workload::SmallFiles | Workload::Serve => 40 << 20,
        Workload::Copy => 256 << 20,
        Workload::Write | Workload::Read | Workload::Walk | Workload::Stat => 1 << 30,
    }
}

fn path(value: &[u8]) -> Result<PathBuf, Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;
    if value.is_empty() { Err(EMPTY_NAME.to_vec()) } else { Ok(OsString::from_vec(value.to_vec()).into()) }
}

fn size(value: &[u8], name: &str) -> Result<u64, Vec<u8>> {
    let reading = number::read(value, 0, SIZE_MAX, number::SIZE_UNITS);
    match (reading.error, u64::try_from(reading.value)) {
        (None, Ok(0)) => Err([name.as_bytes(), b" must be at least 1"].concat()),
        (None, Ok(size)) => Ok(size),
        (error, _) => Err(error.unwrap_or(number::NumberError::Invalid).message(name, value)),
    }
}

fn time(option: &OptionValue) -> Result<Duration, Vec<u8>> {
    let time = duration::parse_or_seconds(option.bytes()).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| option.refuse(b"time", duration::FORMS.as_bytes()))
}

/// Parses a percentage, with or without its sign, and returns the share.
fn percent(value: &[u8], name: &str, charset: Charset) -> Result<f64, Vec<u8>> {
    let text = std::str::from_utf8(value).ok().map(|text| text.strip_suffix('%').unwrap_or(text));
    let number = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let share = number.and_then(|text| text.parse::<f64>().ok()).map(|percent| percent / 100.0);
    share.filter(|share| share.is_finite()).ok_or_else(|| {
        let given = quote(value, charset);
        [b"invalid argument ", &given[..], b" for '", name.as_bytes(), b"': a percentage, such as 5%"]
            .concat()
    })
}

fn whole(value: &[u8], name: &str) -> Result<u64, Vec<u8>> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| number::NumberError::Invalid.message(name, value))
}

/// Parses words separated by commas, each one of `valid`.
fn list(value: &[u8], valid: &[&str], name: &str, charset: Charset) -> Result<Vec<String>, Vec<u8>> {
    let words = value.split(|byte| *byte == b',');
    let known = |word: &[u8]| {
        let found = valid.iter().find(|valid| valid.as_bytes() == word).map(|valid| (*valid).to_owned());
        let refused = || {
            let parts =
                [b"invalid argument ", &quote(word, charset)[..], b" for ", &quote(name.as_bytes(), charset)];
            [&parts.concat()[..], b"\nValid arguments are: ", valid.join(", ").as_bytes()].concat()
        };
        found.ok_or_else(refused)
    };
    words.map(known).collect()
}

/// Parses numbers of threads or operations, separated by commas.
fn counts(value: &[u8], name: &str, charset: Charset) -> Result<Vec<u32>, Vec<u8>> {
    let words = value.split(|byte| *byte == b',');
    let count = |word: &[u8]| {
        let number = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
        let number = number.and_then(|word| word.parse::<u32>().ok());
        number.filter(|number| (1..=Model::COUNT_MAX).contains(&(*number as usize))).ok_or_else(|| {
            let most = Model::COUNT_MAX.to_string();
            let given = quote(word, charset);
            [b"invalid number ", &given[..], b" for '", name.as_bytes(), b"': from 1 to ", most.as_bytes()]
                .concat()
        })
    };
    words.map(count).collect()
}

fn models(value: &[u8], name: &str, charset: Charset) -> Result<Vec<Model>, Vec<u8>> {
    let names = list(value, &Model::ALL.map(Model::name), name, charset)?;
    Ok(names.iter().filter_map(|name| Model::named(name)).collect())
}

fn langs(value: &[u8], name: &str, charset: Charset) -> Result<Vec<String>, Vec<u8>> {
    if value == b"all" {
        return Ok(LANGS.map(str::to_owned).to_vec());
    }
    list(value, &LANGS, name, charset)
}

#[cfg(test)]
mod tests;
