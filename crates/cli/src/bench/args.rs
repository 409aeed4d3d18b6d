//! The arguments of `fathom bench`: parses and checks the command line. Prints nothing.

mod commands;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fathom_bench::commands::CommandRules;
use fathom_bench::fixture::CacheState;
use fathom_bench::{ArmNumbers, Workload};
use fathom_io::Model;
use fathom_text::quote::{Charset, quote};
use fathom_text::{duration, number};

pub(crate) use commands::{CommandsArgs, SameOutput};

use super::table::{BENCH, BenchOption, CACHE_WORDS, OUTPUT_WORDS, SAME_OUTPUT_WORDS, WAIT_WORDS};
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
/// The maximum number of messages in a backlog.
const BACKLOG_MAX: usize = 1 << 30;
/// The default number of repetitions of a validation.
const BLOCKS_VALIDATE: u32 = 7;
/// The percentage of blocks that `mixed` reads by default.
const READ_PERCENT: u8 = 70;
/// The maximum number of requests a second.
const RATE_MAX: u32 = 10_000_000;
/// The maximum number of repetitions.
const BLOCKS_MAX: u64 = 10_000;

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum BenchAction {
    Bench(Box<BenchArgs>),
    Commands(CommandsArgs),
    Compare(CompareArgs),
    Advise(AdviseArgs),
}

/// The destination of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    Output,
    File(PathBuf),
}

/// The destinations of the reports of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportTargets {
    pub(crate) csv: Option<ReportTarget>,
    /// Whether the CSV has the three columns of io-playground.
    pub(crate) csv_is_plain: bool,
    pub(crate) json: Option<ReportTarget>,
    pub(crate) html: Option<PathBuf>,
    /// Whether tables are Markdown.
    pub(crate) markdown: bool,
}

impl ReportTargets {
    fn set_csv(&mut self, target: ReportTarget, is_plain: bool) {
        (self.csv, self.csv_is_plain) = (Some(target), is_plain);
    }

    fn check(&self) -> Result<(), Vec<u8>> {
        if self.csv == Some(ReportTarget::Output) && self.json == Some(ReportTarget::Output) {
            return Err(b"--csv and --json cannot both go to standard output".to_vec());
        }
        Ok(())
    }
}

/// The arguments of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct BenchArgs {
    pub(crate) workload: Workload,
    pub(crate) models: Vec<Model>,
    pub(crate) langs: Vec<String>,
    pub(crate) numbers: ArmNumbers,
    pub(crate) size: u64,
    /// Whether the size was given.
    pub(crate) has_size: bool,
    pub(crate) block: usize,
    pub(crate) files: u64,
    pub(crate) direct: bool,
    pub(crate) sync: bool,
    /// The percentage of blocks that `mixed` reads.
    pub(crate) read_percent: u8,
    /// Requests a second of `serve`; 0 without a rate.
    pub(crate) rate: u32,
    /// In the order in which they are run.
    pub(crate) caches: Vec<CacheState>,
    pub(crate) blocks: u32,
    /// The time within which to answer.
    pub(crate) time: Option<Duration>,
    pub(crate) seed: Option<u64>,
    pub(crate) path: PathBuf,
    /// A file or a tree of the user's own, which is only read. Then `path` is the same.
    pub(crate) own: Option<PathBuf>,
    pub(crate) targets: ReportTargets,
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
    let (words, rest) = commands::split(words.collect());
    let operands = cmdline::parse(&BENCH, words.into_iter(), charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, rest, charset)?)
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
    read_percent: Option<u8>,
    rate: Option<u32>,
    cache: Option<CacheState>,
    blocks: Option<u32>,
    seed: Option<u64>,
    path: Option<PathBuf>,
    own_tree: Option<PathBuf>,
    own_file: Option<PathBuf>,
    save: Option<ReportTarget>,
    validate: bool,
    quick: bool,
    time: Option<Duration>,
    targets: ReportTargets,
    fail_above: Option<f64>,
    names: Vec<String>,
    prepare: Vec<OsString>,
    rules: CommandRules,
    same_output: SameOutput,
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
            BenchOption::Backlog => self.numbers.backlogs = backlogs(value, name, charset)?,
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
            BenchOption::Read => self.read_percent = Some(share_of_reads(value, name, charset)?),
            BenchOption::Rate => self.rate = Some(rate(&option)?),
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
            BenchOption::Tree => self.own_tree = Some(path()?),
            BenchOption::File => self.own_file = Some(path()?),
            BenchOption::Save => self.save = Some(target()?),
            BenchOption::Validate => self.validate = true,
            BenchOption::Quick => self.quick = true,
            BenchOption::Time => self.time = Some(time(&option)?),
            BenchOption::Csv => match value.strip_prefix(PLAIN).filter(|_| given) {
                Some(b"") => self.targets.set_csv(ReportTarget::Output, true),
                Some([b':', file @ ..]) => {
                    self.targets.set_csv(ReportTarget::File(self::path(file)?), true);
                }
                _ => self.targets.set_csv(target()?, false),
            },
            BenchOption::Markdown => self.targets.markdown = true,
            BenchOption::FailAbove => self.fail_above = Some(percent(value, name, charset)?),
            BenchOption::Json => self.targets.json = Some(target()?),
            BenchOption::Html => self.targets.html = Some(path()?),
            BenchOption::Name => self.names.push(String::from_utf8_lossy(value).into_owned()),
            BenchOption::Prepare => self.prepare.push(os_string(value)),
            BenchOption::Output => {
                let discards = |word: &[u8]| value::one_of(word, OUTPUT_WORDS, &[false, true]);
                self.rules.discards_output = option.read(discards)?;
            }
            BenchOption::IgnoreFailure => self.rules.ignores_failure = true,
            BenchOption::SameOutput if !given => self.same_output = SameOutput::Bytes,
            BenchOption::SameOutput => {
                let rules = [SameOutput::Bytes, SameOutput::Lines];
                self.same_output = option.read(|word| value::one_of(word, SAME_OUTPUT_WORDS, &rules))?;
            }
        }
        Ok(())
    }

    /// `rest` follows a `--`.
    fn finish(
        self,
        operands: Vec<OsString>,
        rest: Option<Vec<OsString>>,
        charset: Charset,
    ) -> Result<BenchAction, Vec<u8>> {
        if operands.first().is_some_and(|word| word == "run") {
            no_more(operands.into_iter().skip(1), charset)?;
            return self.commands(rest).map(BenchAction::Commands);
        }
        self.refuse(&self.of_commands(), "this workload, but for run")?;
        let mut operands = operands.into_iter().chain(rest.unwrap_or_default());
        let workload = operands.next().ok_or_else(|| b"missing operand: the workload".to_vec())?;
        if workload == "compare" {
            let of_a_run = vec![
                (
                    self.path.is_some() || self.blocks.is_some() || self.seed.is_some(),
                    "--path, --blocks or --seed",
                ),
                (self.targets.csv.is_some() || self.targets.html.is_some(), "--csv or --html"),
                (
                    self.validate || self.quick || self.time.is_some() || self.save.is_some(),
                    "an option of advise",
                ),
            ];
            self.refuse(&[self.of_one_workload(), of_a_run].concat(), "compare, which reads saved runs")?;
            let mut run =
                || operands.next().map(PathBuf::from).ok_or_else(|| b"missing operand: two runs".to_vec());
            let (old, new) = (run()?, run()?);
            let (markdown, fail_above) = (self.targets.markdown, self.fail_above);
            let compared = CompareArgs { old, new, json: self.targets.json, markdown, fail_above };
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
        let named = workload.to_str().and_then(Workload::named);
        let workload = named.ok_or_else(|| {
            [b"unknown workload ", &quote(workload.as_encoded_bytes(), charset)[..]].concat()
        })?;
        no_more(operands, charset)?;
        self.bench(workload).map(|args| BenchAction::Bench(Box::new(args)))
    }

    /// Refuses the first of `options` that is given; `others` are those it is not for.
    fn refuse(&self, options: &[(bool, &str)], others: &str) -> Result<(), Vec<u8>> {
        match options.iter().find(|(given, _)| *given) {
            Some((_, name)) => Err(format!("{name} is not for {others}").into_bytes()),
            None => Ok(()),
        }
    }

    /// Returns the options for `run` alone, each with whether it is given.
    fn of_commands(&self) -> Vec<(bool, &'static str)> {
        vec![
            (!self.names.is_empty(), "--name"),
            (!self.prepare.is_empty(), "--prepare"),
            (self.rules.discards_output, "--output"),
            (self.rules.ignores_failure, "--ignore-failure"),
            (self.same_output != SameOutput::Noted, "--same-output"),
        ]
    }

    /// Returns the options for `advise` or `compare` alone, each with whether it is given.
    fn of_advice(&self) -> Vec<(bool, &'static str)> {
        vec![
            (self.validate, "--validate"),
            (self.quick, "--quick"),
            (self.save.is_some(), "--save"),
            (self.path.is_some(), "--path"),
            (self.fail_above.is_some(), "--fail-above"),
        ]
    }

    /// Returns the options for one workload, each with whether it is given.
    fn of_one_workload(&self) -> Vec<(bool, &'static str)> {
        vec![
            (!self.models.is_empty(), "--models"),
            (!self.langs.is_empty(), "--lang"),
            (self.numbers.is_given(), "--threads, --depth, --batch or --wait"),
            (self.size.is_some(), "--size"),
            (self.block.is_some(), "--block"),
            (self.files.is_some(), "--files"),
            (self.direct, "--direct"),
            (self.sync, "--sync"),
            (self.read_percent.is_some(), "--read"),
            (self.rate.is_some(), "--rate"),
            (self.cache.is_some(), "--cache"),
            (self.own_tree.is_some(), "--tree"),
            (self.own_file.is_some(), "--file"),
        ]
    }

    fn advise(self, place: Option<PathBuf>) -> Result<AdviseArgs, Vec<u8>> {
        let of_a_run = vec![
            (self.blocks.is_some() && !self.validate, "--blocks"),
            (self.targets.csv_is_plain, "--csv=plain"),
            (self.targets.markdown, "--markdown"),
        ];
        self.refuse(&[self.of_one_workload(), of_a_run].concat(), "advise, which asks about all workloads")?;
        self.targets.check()?;
        Ok(AdviseArgs {
            path: place.or(self.path).unwrap_or_else(|| PathBuf::from(".")),
            seed: self.seed,
            save: self.save,
            validate: self.validate.then(|| self.blocks.unwrap_or(BLOCKS_VALIDATE)),
            quick: self.quick,
            time: self.time,
            csv: self.targets.csv,
            json: self.targets.json,
            html: self.targets.html,
        })
    }

    fn bench(self, workload: Workload) -> Result<BenchArgs, Vec<u8>> {
        if self.validate || self.quick || self.save.is_some() {
            return Err(b"--validate, --quick and --save are for advise".to_vec());
        }
        if !workload.reads() && self.cache.is_some() {
            return Err(b"--cache is for workloads that read".to_vec());
        }
        if workload != Workload::Mixed && self.read_percent.is_some() {
            return Err(b"--read is for mixed".to_vec());
        }
        if workload != Workload::Serve && self.rate.is_some() {
            return Err(b"--rate is for serve".to_vec());
        }
        let has_one_file = !workload.is_of_small_files() && workload != Workload::Copy;
        let in_rust_alone = !has_one_file || workload.overwrites();
        if in_rust_alone && !self.langs.is_empty() {
            return Err(b"--lang is not for this workload".to_vec());
        }
        if (!has_one_file || workload.is_of_tree()) && (self.direct || self.sync) {
            return Err(b"--direct and --sync are not for this workload".to_vec());
        }
        if self.numbers.is_given()
            && matches!(workload, Workload::AppendSync | Workload::Copy | Workload::Serve)
        {
            return Err(b"--threads, --depth, --batch and --wait are not for this workload".to_vec());
        }
        if !workload.is_of_tree() && !self.numbers.backlogs.is_empty() {
            return Err(b"--backlog is for walk and stat".to_vec());
        }
        let has_own_batches = workload.is_of_tree() || workload.is_of_small_files();
        if has_own_batches && (!self.numbers.batches.is_empty() || self.numbers.spins) {
            return Err(b"--batch and --wait=spin are not for this workload".to_vec());
        }
        let own = self.own_data(workload)?;
        self.targets.check()?;
        let block = self.block.unwrap_or(default_block(workload));
        let all = if own.is_some() { u64::MAX } else { default_size(workload) };
        let size = self.size.unwrap_or(all);
        if self.direct && !((own.is_some() || size.is_multiple_of(512)) && block.is_multiple_of(512)) {
            return Err(b"with --direct, --size and --block must be multiples of 512".to_vec());
        }
        let caches = match self.cache {
            // For a copy, the written data matter more than the cache state of the source.
            None if workload == Workload::Copy => vec![CacheState::Warm],
            _ if !workload.reads() || self.direct => vec![CacheState::Any],
            None => vec![CacheState::Warm, CacheState::Cold],
            Some(cache) => vec![cache],
        };
        Ok(BenchArgs {
            workload,
            models: self.models,
            langs: self.langs,
            numbers: self.numbers,
            size,
            has_size: self.size.is_some(),
            block: usize::try_from(block).map_err(|_| b"--block is too large".to_vec())?,
            files: self.files.unwrap_or(100_000).min(FILES_MAX),
            direct: self.direct,
            sync: self.sync,
            read_percent: self.read_percent.unwrap_or(READ_PERCENT),
            rate: self.rate.unwrap_or_default(),
            caches,
            blocks: self.blocks.unwrap_or(10),
            time: self.time,
            seed: self.seed,
            path: own.clone().or(self.path).unwrap_or_else(|| PathBuf::from(".")),
            own,
            targets: self.targets,
        })
    }
}

impl BenchParser {
    /// Returns the file or the tree of the user's own that `workload` is to read.
    fn own_data(&self, workload: Workload) -> Result<Option<PathBuf>, Vec<u8>> {
        let reads_a_file = matches!(workload, Workload::Read | Workload::RandomRead);
        let senseless = [
            (self.own_tree.is_some() && !workload.is_of_tree(), "--tree is for walk and stat"),
            (self.own_file.is_some() && !reads_a_file, "--file is for read and random-read"),
            (
                self.own_tree.is_some() && self.files.is_some(),
                "--files is for a tree that is made, not for --tree",
            ),
            (
                self.own_file.is_some() && !self.langs.is_empty(),
                "--lang reads files that are made, not --file",
            ),
        ];
        if let Some((_, cause)) = senseless.iter().find(|(is_given, _)| *is_given) {
            return Err(cause.as_bytes().to_vec());
        }
        let own = self.own_tree.as_ref().or(self.own_file.as_ref()).cloned();
        if own.is_some() && self.path.is_some() {
            return Err(b"--path is for files that are made, not for --tree and --file".to_vec());
        }
        Ok(own)
    }
}

/// Sequential workloads use the buffer size of cat(1) and cp(1).
fn default_block(workload: Workload) -> u64 {
    if matches!(workload, Workload::Copy | Workload::Read) { 128 << 10 } else { 4096 }
}

/// `append-sync` gets a small file, because each of its syncs waits for the disk.
fn default_size(workload: Workload) -> u64 {
    match workload {
        Workload::AppendSync => 4 << 20,
        Workload::RandomRead | Workload::RandomWrite | Workload::Mixed | Workload::Copy => 256 << 20,
        Workload::SmallFiles | Workload::Serve => 40 << 20,
        Workload::Write | Workload::Read | Workload::Walk | Workload::Stat => 1 << 30,
    }
}

fn path(value: &[u8]) -> Result<PathBuf, Vec<u8>> {
    if value.is_empty() { Err(EMPTY_NAME.to_vec()) } else { Ok(os_string(value).into()) }
}

fn os_string(value: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(value.to_vec())
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

/// Parses a number of requests a second.
fn rate(option: &OptionValue) -> Result<u32, Vec<u8>> {
    let count = option.read(value::count)?.get();
    let rate = u32::try_from(count).ok().filter(|rate| *rate <= RATE_MAX);
    rate.ok_or_else(|| format!("{} is at most {RATE_MAX}", option.spelling).into_bytes())
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

/// Parses a percentage of the blocks, with or without its sign.
fn share_of_reads(value: &[u8], name: &str, charset: Charset) -> Result<u8, Vec<u8>> {
    let digits = value.strip_suffix(b"%").unwrap_or(value);
    let percent = whole(digits, name).ok().filter(|percent| *percent <= 100);
    percent.and_then(|percent| u8::try_from(percent).ok()).ok_or_else(|| {
        let given = quote(value, charset);
        [b"invalid argument ", &given[..], b" for '", name.as_bytes(), b"': a percentage, from 0 to 100"]
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
    numbers_up_to(Model::COUNT_MAX, value, name, charset)
}

/// Parses numbers of messages, separated by commas.
fn backlogs(value: &[u8], name: &str, charset: Charset) -> Result<Vec<u32>, Vec<u8>> {
    numbers_up_to(BACKLOG_MAX, value, name, charset)
}

fn numbers_up_to(most: usize, value: &[u8], name: &str, charset: Charset) -> Result<Vec<u32>, Vec<u8>> {
    let words = value.split(|byte| *byte == b',');
    let count = |word: &[u8]| {
        let number = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
        let number = number.and_then(|word| word.parse::<u32>().ok());
        number.filter(|number| (1..=most).contains(&(*number as usize))).ok_or_else(|| {
            let most = most.to_string();
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
