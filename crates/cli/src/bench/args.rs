//! From a command line to what a run of `fathom bench` needs, or to what it has to say instead. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_bench::arms::MODELS;
use fathom_bench::lab::Cache;
use fathom_bench::sample::Deed;
use fathom_text::number;
use fathom_text::quote::{Charset, quote};

use super::table::{CACHE_WORDS, FLAGS, Key};
use crate::du::extra;
use crate::getopt::{Getopt, Match, Order};

/// The values of `--lang`, besides `all`.
const LANGS: [&str; 7] = ["rust", "c", "go", "java", "node", "python", "zig"];
/// Largest file: what an offset can say.
const SIZE_MAX: i128 = i64::MAX as i128;
/// Most files of a tree.
const FILES_MAX: u64 = 100_000_000;
/// Repetitions of a validation.
const BLOCKS_VALIDATE: u32 = 7;
/// Most repetitions.
const BLOCKS_MAX: u64 = 10_000;

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Bench(Box<BenchArgs>),
    Compare(CompareArgs),
    Advise(AdviseArgs),
}

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Output,
    File(PathBuf),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct BenchArgs {
    pub(crate) deed: Deed,
    pub(crate) models: Vec<String>,
    pub(crate) langs: Vec<String>,
    pub(crate) size: u64,
    pub(crate) block: usize,
    pub(crate) files: u64,
    pub(crate) direct: bool,
    pub(crate) sync: bool,
    /// In the order in which they are run.
    pub(crate) caches: Vec<Cache>,
    pub(crate) blocks: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) path: PathBuf,
    pub(crate) csv: Option<Target>,
    pub(crate) json: Option<Target>,
    pub(crate) html: Option<PathBuf>,
}

/// Where and how advice is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdviseArgs {
    pub(crate) path: PathBuf,
    pub(crate) seed: Option<u64>,
    /// The profile to write: the usual one, or this file.
    pub(crate) save: Option<Target>,
    /// Repetitions with what was not seen before; `None` if that is not wanted.
    pub(crate) validate: Option<u32>,
    /// Small work.
    pub(crate) quick: bool,
    pub(crate) csv: Option<Target>,
    pub(crate) json: Option<Target>,
    pub(crate) html: Option<PathBuf>,
}

/// Two runs to compare.
#[derive(Debug)]
pub(crate) struct CompareArgs {
    pub(crate) old: PathBuf,
    pub(crate) new: PathBuf,
    pub(crate) json: Option<Target>,
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
    reader.finish(getopt.into_operands(), charset)
}

/// What is known so far.
#[derive(Default)]
struct Reader {
    models: Vec<String>,
    langs: Vec<String>,
    size: Option<u64>,
    block: Option<u64>,
    files: Option<u64>,
    direct: bool,
    sync: bool,
    cache: Option<Cache>,
    blocks: Option<u32>,
    seed: Option<u64>,
    path: Option<PathBuf>,
    save: Option<Target>,
    validate: bool,
    quick: bool,
    csv: Option<Target>,
    json: Option<Target>,
    html: Option<PathBuf>,
}

impl Reader {
    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let given = option.value.is_some();
        let value = option.value.unwrap_or_default();
        let name = option.spelling.as_str();
        let path = || path(&value);
        let target = || if given { path().map(Target::File) } else { Ok(Target::Output) };
        match key {
            Key::Models => self.models = list(&value, &MODELS, name, charset)?,
            Key::Lang => self.langs = langs(&value, name, charset)?,
            Key::Size => self.size = Some(size(&value, name)?),
            Key::Block => self.block = Some(size(&value, name)?),
            Key::Files => self.files = Some(size(&value, name)?),
            Key::Direct => self.direct = true,
            Key::Sync => self.sync = true,
            Key::Cache => {
                let cache = extra::one_of(&value, CACHE_WORDS, &[Cache::Warm, Cache::Cold]);
                self.cache = Some(cache.map_err(|refusal| refusal.message(name, &value, charset))?);
            }
            Key::Blocks => {
                let count =
                    extra::top(&value).map_err(|refusal| refusal.message(name, &value, charset))?.get();
                self.blocks = u32::try_from(count.min(BLOCKS_MAX)).ok();
            }
            Key::Seed => self.seed = Some(whole(&value, name)?),
            Key::Path => self.path = Some(path()?),
            Key::Save => self.save = Some(target()?),
            Key::Validate => self.validate = true,
            Key::Quick => self.quick = true,
            Key::Csv => self.csv = Some(target()?),
            Key::Json => self.json = Some(target()?),
            Key::Html => self.html = Some(path()?),
            Key::Help | Key::Version => {}
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<Asked, Vec<u8>> {
        let mut operands = operands.into_iter();
        let workload = operands.next().ok_or_else(|| b"missing operand: the workload".to_vec())?;
        if workload == "compare" {
            let mut run =
                || operands.next().map(PathBuf::from).ok_or_else(|| b"missing operand: two runs".to_vec());
            let compared = CompareArgs { old: run()?, new: run()?, json: self.json };
            no_more(operands, charset)?;
            return Ok(Asked::Compare(compared));
        }
        if workload == "advise" {
            let place = operands.next().map(PathBuf::from);
            no_more(operands, charset)?;
            return self.advise(place).map(Asked::Advise);
        }
        let deed = workload.to_str().and_then(Deed::named);
        let deed = deed.ok_or_else(|| {
            [b"unknown workload ", &quote(workload.as_encoded_bytes(), charset)[..]].concat()
        })?;
        no_more(operands, charset)?;
        self.bench(deed).map(|args| Asked::Bench(Box::new(args)))
    }

    fn advise(self, place: Option<PathBuf>) -> Result<AdviseArgs, Vec<u8>> {
        let of_one_workload = [
            (!self.models.is_empty(), "--models"),
            (!self.langs.is_empty(), "--lang"),
            (self.size.is_some(), "--size"),
            (self.block.is_some(), "--block"),
            (self.files.is_some(), "--files"),
            (self.direct, "--direct"),
            (self.sync, "--sync"),
            (self.cache.is_some(), "--cache"),
            (self.blocks.is_some() && !self.validate, "--blocks"),
        ];
        if let Some((_, name)) = of_one_workload.iter().find(|(given, _)| *given) {
            return Err(format!("{name} is not for advise, which asks about all workloads").into_bytes());
        }
        self.one_on_output()?;
        Ok(AdviseArgs {
            path: place.or(self.path).unwrap_or_else(|| PathBuf::from(".")),
            seed: self.seed,
            save: self.save,
            validate: self.validate.then(|| self.blocks.unwrap_or(BLOCKS_VALIDATE)),
            quick: self.quick,
            csv: self.csv,
            json: self.json,
            html: self.html,
        })
    }

    fn one_on_output(&self) -> Result<(), Vec<u8>> {
        if self.csv == Some(Target::Output) && self.json == Some(Target::Output) {
            return Err(b"--csv and --json cannot both go to standard output".to_vec());
        }
        Ok(())
    }

    fn bench(self, deed: Deed) -> Result<BenchArgs, Vec<u8>> {
        if self.validate || self.quick || self.save.is_some() {
            return Err(b"--validate, --quick and --save are for advise".to_vec());
        }
        if deed.writes() && self.cache.is_some() {
            return Err(b"--cache is for workloads that read".to_vec());
        }
        let plain = deed.is_of_tree() || deed.is_of_small_files() || deed == Deed::Copy;
        if plain && (self.direct || self.sync || !self.langs.is_empty()) {
            return Err(b"--direct, --sync and --lang are not for this workload".to_vec());
        }
        self.one_on_output()?;
        let block = self.block.unwrap_or(default_block(deed));
        let size = self.size.unwrap_or(default_size(deed));
        if self.direct && !(size.is_multiple_of(512) && block.is_multiple_of(512)) {
            return Err(b"with --direct, --size and --block must be multiples of 512".to_vec());
        }
        let caches = match self.cache {
            // What is written makes more of a difference than where it is read from.
            None if deed == Deed::Copy => vec![Cache::Warm],
            _ if deed.writes() || self.direct => vec![Cache::Any],
            None => vec![Cache::Warm, Cache::Cold],
            Some(cache) => vec![cache],
        };
        Ok(BenchArgs {
            deed,
            models: self.models,
            langs: self.langs,
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
            json: self.json,
            html: self.html,
        })
    }
}

/// Of one file after the other, as much as cat(1) and cp(1) take at once.
fn default_block(deed: Deed) -> u64 {
    if matches!(deed, Deed::Copy | Deed::Read) { 128 << 10 } else { 4096 }
}

/// Each sync of `append-sync` waits for the disk.
fn default_size(deed: Deed) -> u64 {
    match deed {
        Deed::AppendSync => 4 << 20,
        Deed::RandomRead => 256 << 20,
        Deed::SmallFiles | Deed::Serve => 40 << 20,
        Deed::Copy => 256 << 20,
        Deed::Write | Deed::Read | Deed::Walk | Deed::Stat => 1 << 30,
    }
}

fn no_more(mut operands: impl Iterator<Item = OsString>, charset: Charset) -> Result<(), Vec<u8>> {
    match operands.next() {
        Some(more) => Err([b"extra operand ", &quote(more.as_encoded_bytes(), charset)[..]].concat()),
        None => Ok(()),
    }
}

fn path(value: &[u8]) -> Result<PathBuf, Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;
    if value.is_empty() {
        Err(b"invalid zero-length file name".to_vec())
    } else {
        Ok(OsString::from_vec(value.to_vec()).into())
    }
}

fn size(value: &[u8], name: &str) -> Result<u64, Vec<u8>> {
    let reading = number::read(value, 0, SIZE_MAX, b"kKmMGTPE");
    match (reading.error, u64::try_from(reading.value)) {
        (None, Ok(0)) => Err([name.as_bytes(), b" must be at least 1"].concat()),
        (None, Ok(size)) => Ok(size),
        (error, _) => Err(error.unwrap_or(number::NumberError::Invalid).message(name, value)),
    }
}

fn whole(value: &[u8], name: &str) -> Result<u64, Vec<u8>> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| number::NumberError::Invalid.message(name, value))
}

/// Words separated by commas, each one of `valid`.
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

fn langs(value: &[u8], name: &str, charset: Charset) -> Result<Vec<String>, Vec<u8>> {
    if value == b"all" {
        return Ok(LANGS.map(str::to_owned).to_vec());
    }
    list(value, &LANGS, name, charset)
}

#[cfg(test)]
mod tests;
