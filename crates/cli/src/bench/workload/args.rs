//! The arguments of `fathom bench WORKLOAD`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fathom_bench::fixture::CacheState;
use fathom_bench::{ArmNumbers, Workload};
use fathom_io::Model;
use fathom_text::nearest::nearest;
use fathom_text::quote::{Charset, quote};

use crate::bench::measuring::{BLOCKS, RunArgs};
use crate::bench::reports::{ReportTargets, TargetOption};
use crate::bench::table::{BENCH, BenchOption, CACHE_WORDS, WAIT_WORDS};
use crate::bench::values;
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The values of `--lang`, besides `all`.
const LANGS: [&str; 11] =
    ["rust", "bun", "c", "cpp", "deno", "go", "java", "node", "python", "rust-crates", "zig"];
/// The maximum number of files in a tree.
const FILES_MAX: u64 = 100_000_000;
/// The default number of files in a tree.
const FILES: u64 = 100_000;
/// The maximum number of messages in a backlog.
const BACKLOG_MAX: usize = 1 << 30;
/// The percentage of blocks that `mixed` reads by default.
const READ_PERCENT: u8 = 70;
/// The maximum number of requests a second.
const RATE_MAX: u32 = 10_000_000;

/// The arguments of a measurement.
#[derive(Clone, Debug)]
pub(super) struct BenchArgs {
    pub(super) workload: Workload,
    pub(super) models: Vec<Model>,
    pub(super) langs: Vec<String>,
    pub(super) numbers: ArmNumbers,
    pub(super) size: u64,
    /// Whether the size was given.
    pub(super) has_size: bool,
    pub(super) block: usize,
    pub(super) files: u64,
    pub(super) direct: bool,
    pub(super) sync: bool,
    /// The percentage of blocks that `mixed` reads.
    pub(super) read_percent: u8,
    /// Requests a second of `serve`; 0 without a rate.
    pub(super) rate: u32,
    /// In the order in which they are run.
    pub(super) caches: Vec<CacheState>,
    pub(super) blocks: u32,
    /// The time within which to answer.
    pub(super) time: Option<Duration>,
    pub(super) seed: Option<u64>,
    pub(super) path: PathBuf,
    /// A file or a tree of the user's own, which is only read. Then `path` is the same.
    pub(super) own: Option<PathBuf>,
    pub(super) targets: ReportTargets,
}

/// Parses the command line behind `fathom bench`. Error messages do not contain the program name.
pub(super) fn parse(words: Vec<OsString>, charset: Charset) -> Result<BenchArgs, ArgsEnd> {
    let mut parser = BenchParser::default();
    let operands =
        cmdline::parse(&BENCH, words.into_iter(), charset, |key, value| parser.apply(key, &value))?;
    let mut operands = operands.into_iter();
    let word =
        operands.next().ok_or_else(|| b"missing operand: a workload, or advise, run or compare".to_vec())?;
    let workload = workload(&word, charset)?;
    no_more(operands, charset)?;
    Ok(parser.finish(workload)?)
}

fn workload(word: &OsString, charset: Charset) -> Result<Workload, Vec<u8>> {
    let name = word.to_str().unwrap_or_default();
    if ["advise", "run", "compare"].contains(&name) {
        return Err(format!("'{name}' must come before its options: fathom bench {name}").into_bytes());
    }
    Workload::named(name).ok_or_else(|| {
        let quoted = |word: &[u8]| quote(word, charset);
        let unknown = [b"unknown workload ", &quoted(word.as_encoded_bytes())[..]].concat();
        match nearest(name, BENCH.commands, |row| row.0) {
            Some((meant, _)) => [&unknown[..], b", did you mean ", &quoted(meant.as_bytes()), b"?"].concat(),
            None => unknown,
        }
    })
}

/// The options parsed so far.
#[derive(Default)]
struct BenchParser {
    /// The options in the order of the command line, with their spellings.
    given: Vec<(BenchOption, String)>,
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
    run: RunArgs,
    path: Option<PathBuf>,
    own: Option<PathBuf>,
    targets: ReportTargets,
}

impl BenchParser {
    fn apply(&mut self, key: BenchOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        match key {
            BenchOption::Run(key) => self.run.apply(key, option)?,
            BenchOption::Report(TargetOption::Csv) => self.targets.apply_csv(option)?,
            BenchOption::Report(key) => self.targets.apply(key, option)?,
            BenchOption::Models => self.models = models(option)?,
            BenchOption::Lang => self.langs = langs(option)?,
            BenchOption::Threads => self.numbers.threads = values::numbers(option, Model::COUNT_MAX)?,
            BenchOption::Depth => self.numbers.depths = values::numbers(option, Model::COUNT_MAX)?,
            BenchOption::Batch => self.numbers.batches = values::numbers(option, Model::COUNT_MAX)?,
            BenchOption::Backlog => self.numbers.backlogs = values::numbers(option, BACKLOG_MAX)?,
            BenchOption::Wait => {
                let spins = |word: &[u8]| value::one_of(word, WAIT_WORDS, &[false, true]);
                self.numbers.spins = option.read(spins)?;
            }
            BenchOption::Size => self.size = Some(option.size()?),
            BenchOption::Block => self.block = Some(option.size()?),
            BenchOption::Files => self.files = Some(option.size()?),
            BenchOption::Direct => self.direct = true,
            BenchOption::Sync => self.sync = true,
            BenchOption::Read => self.read_percent = Some(values::whole_percent(option)?),
            BenchOption::Rate => self.rate = Some(rate(option)?),
            BenchOption::Cache => {
                let cache =
                    |word: &[u8]| value::one_of(word, CACHE_WORDS, &[CacheState::Warm, CacheState::Cold]);
                self.cache = Some(option.read(cache)?);
            }
            BenchOption::Path => self.path = Some(values::path(option.bytes())?),
            BenchOption::Tree | BenchOption::File => self.own = Some(values::path(option.bytes())?),
        }
        self.given.push((key, option.spelling.clone()));
        Ok(())
    }

    /// Checks the options for `workload`, and fills in its defaults.
    fn finish(self, workload: Workload) -> Result<BenchArgs, Vec<u8>> {
        if let Some((key, spelling)) = self.given.iter().find(|(key, _)| !key.is_for(workload)) {
            return Err(not_for(*key, spelling, workload).into_bytes());
        }
        self.check_own()?;
        self.targets.check()?;
        let block = self.block.unwrap_or(default_block(workload));
        let all = if self.own.is_some() { u64::MAX } else { default_size(workload) };
        let size = self.size.unwrap_or(all);
        let is_aligned = (self.own.is_some() || size.is_multiple_of(512)) && block.is_multiple_of(512);
        if self.direct && !is_aligned {
            return Err(b"with --direct, --size and --block must be multiples of 512".to_vec());
        }
        Ok(BenchArgs {
            workload,
            caches: self.caches(workload),
            models: self.models,
            langs: self.langs,
            numbers: self.numbers,
            size,
            has_size: self.size.is_some(),
            block: usize::try_from(block).map_err(|_| b"--block is too large".to_vec())?,
            files: self.files.unwrap_or(FILES).min(FILES_MAX),
            direct: self.direct,
            sync: self.sync,
            read_percent: self.read_percent.unwrap_or(READ_PERCENT),
            rate: self.rate.unwrap_or_default(),
            blocks: self.run.blocks.unwrap_or(BLOCKS),
            time: self.run.time,
            seed: self.run.seed,
            path: self.own.clone().or(self.path).unwrap_or_else(|| PathBuf::from(".")),
            own: self.own,
            targets: self.targets,
        })
    }

    fn caches(&self, workload: Workload) -> Vec<CacheState> {
        match self.cache {
            // For a copy, the written data matter more than the cache state of the source.
            None if workload == Workload::Copy => vec![CacheState::Warm],
            _ if !workload.reads() || self.direct => vec![CacheState::Any],
            None => vec![CacheState::Warm, CacheState::Cold],
            Some(cache) => vec![cache],
        }
    }

    /// Refuses options about files that are made, with data of the user's own.
    fn check_own(&self) -> Result<(), Vec<u8>> {
        let own = self.given.iter().find(|(key, _)| matches!(key, BenchOption::Tree | BenchOption::File));
        let makes = [BenchOption::Files, BenchOption::Path, BenchOption::Lang];
        let other = self.given.iter().find(|(key, _)| makes.contains(key));
        match (own, other) {
            (Some((_, own)), Some((key, other))) if *key != BenchOption::Lang || own == "--file" => {
                Err(format!("{other} applies to files that are created, and {own} creates none").into_bytes())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the message about an option without an effect on `workload`.
fn not_for(key: BenchOption, spelling: &str, workload: Workload) -> String {
    let names: Vec<_> =
        Workload::ALL.into_iter().filter(|other| key.is_for(*other)).map(Workload::name).collect();
    format!("{spelling} has no effect on {}, only on {}", workload.name(), names.join(", "))
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

/// Parses a number of requests a second.
fn rate(option: &OptionValue) -> Result<u32, Vec<u8>> {
    let count = option.read(value::count)?.get();
    let rate = u32::try_from(count).ok().filter(|rate| *rate <= RATE_MAX);
    rate.ok_or_else(|| format!("{} must be at most {RATE_MAX}", option.spelling).into_bytes())
}

fn models(option: &OptionValue) -> Result<Vec<Model>, Vec<u8>> {
    let names = values::list(option, &Model::ALL.map(Model::name))?;
    Ok(names.iter().filter_map(|name| Model::named(name)).collect())
}

fn langs(option: &OptionValue) -> Result<Vec<String>, Vec<u8>> {
    if option.bytes() == b"all" {
        return Ok(LANGS.map(str::to_owned).to_vec());
    }
    values::list(option, &LANGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::reports::ReportTarget;
    use crate::bench::tests::parsed;

    fn read(line: &str) -> Result<BenchArgs, String> {
        parsed(line, parse)
    }

    fn bench(line: &str) -> BenchArgs {
        read(line).unwrap_or_else(|cause| panic!("{line}: {cause}"))
    }

    #[test]
    fn the_defaults_are_the_published_protocol() {
        let args = bench("write");
        assert_eq!((args.size, args.block, args.direct, args.sync), (1 << 30, 4096, false, false));
        assert_eq!((args.workload, args.blocks, args.caches), (Workload::Write, 10, vec![CacheState::Any]));
        assert_eq!((bench("read").block, bench("random-read").block), (128 << 10, 4096));
        let args = bench("random-write");
        assert_eq!((args.size, args.block, args.caches), (256 << 20, 4096, vec![CacheState::Any]));
        let args = bench("mixed");
        assert_eq!((args.size, args.block, args.read_percent), (256 << 20, 4096, 70));
        assert_eq!((bench("mixed --read 5%").read_percent, bench("mixed --read=100").read_percent), (5, 100));
    }

    #[test]
    fn reading_is_both_warm_and_cold_unless_one_is_named() {
        assert_eq!(bench("read").caches, [CacheState::Warm, CacheState::Cold]);
        assert_eq!(bench("read --cache=cold").caches, [CacheState::Cold]);
        assert_eq!(bench("read --direct").caches, [CacheState::Any]);
        assert_eq!(bench("mixed").caches, [CacheState::Warm, CacheState::Cold]);
    }

    #[test]
    fn a_server_has_files_of_one_block_in_40_mib() {
        let args = bench("serve");
        assert_eq!((args.workload, args.size, args.block), (Workload::Serve, 40 << 20, 4096));
        assert_eq!(args.caches, [CacheState::Warm, CacheState::Cold]);
        assert_eq!((args.rate, bench("serve --rate 5000").rate), (0, 5000));
        assert_eq!(read("serve --rate 10000001").unwrap_err(), "--rate must be at most 10000000");
    }

    #[test]
    fn sizes_lists_and_targets_are_read() {
        let args = bench("write --size 64M --block=1kB --models uring,pool --lang c,zig --csv --json=x.json");
        assert_eq!((args.size, args.block), (64 << 20, 1000));
        assert_eq!(
            (args.models, args.langs),
            (vec![Model::Uring(None), Model::Pool], vec!["c".into(), "zig".into()])
        );
        let json = Some(ReportTarget::File("x.json".into()));
        assert_eq!((args.targets.csv, args.targets.json), (Some(ReportTarget::Output), json));
        let plain = bench("write --csv=plain:x").targets;
        assert_eq!((plain.csv, plain.csv_is_plain), (Some(ReportTarget::File("x".into())), true));
        assert!(!bench("write --csv=plain --csv=./plain").targets.csv_is_plain);
        assert_eq!(bench("write --lang all").langs.len(), 11);
    }

    #[test]
    fn each_option_has_an_effect_on_some_workload_and_is_refused_for_the_others() {
        for (line, said) in [
            (
                "write --cache warm",
                "--cache has no effect on write, only on read, random-read, mixed, walk, stat, small-files, serve, copy",
            ),
            ("random-write --cache cold", "--cache has no effect on random-write, "),
            ("random-write --lang c", "--lang has no effect on random-write, "),
            ("mixed --lang c", "--lang has no effect on mixed, "),
            (
                "copy --lang c",
                "--lang has no effect on copy, only on write, read, random-read, append-sync, walk, stat",
            ),
            ("random-read --read 50", "--read has no effect on random-read, only on mixed"),
            ("read --rate 5", "--rate has no effect on read, only on serve"),
            ("serve --direct", "--direct has no effect on serve, "),
            ("serve --threads 3", "--threads has no effect on serve, "),
            ("walk --batch 3", "--batch has no effect on walk, "),
            ("read --tree .", "--tree has no effect on read, only on walk, stat"),
        ] {
            let message = read(line).unwrap_err();
            assert!(message.starts_with(said), "{line}: {message}");
        }
        for option in BENCH.flags.iter().filter_map(crate::shared::flag::Flag::own_key) {
            assert!(Workload::ALL.iter().any(|workload| option.is_for(*workload)), "{option:?}");
        }
    }

    #[test]
    fn senseless_combinations_are_rejected() {
        for (line, said) in [
            ("", "missing operand: a workload, or advise, run or compare"),
            ("wirte", "unknown workload 'wirte', did you mean 'write'?"),
            ("adivse", "unknown workload 'adivse', did you mean 'advise'?"),
            ("nothing", "unknown workload 'nothing'"),
            ("write more", "extra operand 'more'"),
            ("write --size 0", "--size must be at least 1"),
            ("write --size x", "invalid --size argument 'x'"),
            ("write --block=5q", "invalid suffix in --block argument '5q'"),
            ("mixed --read 101", "invalid argument '101' for '--read': a percentage, from 0 to 100"),
            ("mixed --read 7.5", "invalid argument '7.5' for '--read': a percentage, from 0 to 100"),
            ("write --direct --block 1000", "with --direct, --size and --block must be multiples of 512"),
            ("write --csv --json", "--csv and --json cannot both go to standard output"),
            ("write --seed -1", "invalid --seed argument '-1'"),
            ("write --save", "unrecognized option '--save'"),
            ("write --prepare sync", "unrecognized option '--prepare'"),
            ("write -- --size", "extra operand '--size'"),
            ("--seed 1 advise", "'advise' must come before its options: fathom bench advise"),
            ("walk --tree . --files 3", "--files applies to files that are created, and --tree creates none"),
            ("walk --path . --tree .", "--path applies to files that are created, and --tree creates none"),
            ("read --file x --lang c", "--lang applies to files that are created, and --file creates none"),
        ] {
            let message = read(line).unwrap_err();
            assert!(message.starts_with(said), "{line}: {message}");
        }
        assert!(read("stat --tree . --lang c").is_ok());
        assert!(read("write --models uring,zfs").unwrap_err().contains("'zfs'"));
        assert!(read("write --blocks 0").unwrap_err().contains("at least 1"));
    }

    #[test]
    fn the_help_lists_every_workload() {
        let listed: Vec<_> = BENCH.commands.iter().skip(3).map(|(name, _)| *name).collect();
        assert_eq!(listed, Workload::ALL.map(Workload::name));
    }
}
