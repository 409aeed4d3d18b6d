//! From a command line to what a run of `fathom scan` needs, or to what it has to say instead. Prints nothing.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_inventory::filter::period;
use fathom_inventory::scan::Scan;
use fathom_text::quote::{Charset, quote};
use fathom_walk::Choice;

use super::table::{FLAGS, Key};
use crate::du::extra::{self, When};
use crate::getopt::{Getopt, Match, Order};

/// Entries between two points to go on from: a few seconds' worth on a disk.
const CHECKPOINT_ENTRIES: u64 = 1_000_000;

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Scan(Box<ScanArgs>),
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
    reader.finish(getopt.into_operands()).map(|args| Asked::Scan(Box::new(args)))
}

/// What is known so far.
struct Reader {
    scan: Scan,
    output: Option<PathBuf>,
    resume: bool,
    stats: bool,
    progress: When,
}

impl Reader {
    fn new() -> Self {
        let scan = Scan {
            roots: Vec::new(),
            choice: Choice::Auto,
            threads: None,
            in_flight_max: None,
            rate: None,
            one_file_system: false,
            deadline: None,
            since: None,
            checkpoint_entries: CHECKPOINT_ENTRIES,
            options: BTreeMap::new(),
            stop: Arc::default(),
        };
        Self { scan, output: None, resume: false, stats: false, progress: When::Auto }
    }

    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let spelling = option.spelling;
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&spelling, &value, charset);
        match key {
            Key::Output => self.output = Some(OsString::from_vec(value).into()),
            Key::OneFileSystem => self.scan.one_file_system = true,
            Key::Deadline => {
                let deadline = period(&value).ok_or_else(|| {
                    [b"invalid time ", &quote(&value, charset)[..], b" for '--deadline'"].concat()
                })?;
                self.scan.deadline = Some(deadline);
            }
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

    fn finish(mut self, operands: Vec<OsString>) -> Result<ScanArgs, Vec<u8>> {
        let output = self.output.filter(|output| output.file_name().is_some());
        let output = output.ok_or_else(|| b"missing the name of the inventory (-o INVENTORY)".to_vec())?;
        match (operands.is_empty(), self.resume) {
            (true, false) => return Err(b"missing operand: what to scan".to_vec()),
            (false, true) => {
                return Err(b"--resume takes no operands: they are those of the earlier scan".to_vec());
            }
            (true, true) if self.scan.since.is_some() => {
                return Err(b"--resume takes no --since: it is that of the earlier scan".to_vec());
            }
            _ => {}
        }
        if self.scan.in_flight_max.is_some() && !is_blocking(self.scan.choice) {
            return Err(b"--max-in-flight is for the I/O models sync, threads and auto".to_vec());
        }
        let path = |word: OsString| CString::new(word.into_vec()).ok().filter(|path| !path.is_empty());
        let roots = operands.into_iter().map(path).collect::<Option<_>>();
        self.scan.roots = roots.ok_or_else(|| b"invalid zero-length file name".to_vec())?;
        self.scan.options = options(&self.scan);
        let Self { scan, resume, stats, progress, .. } = self;
        Ok(ScanArgs { scan, output, resume, stats, progress })
    }
}

/// Whether each worker has one call under way at a time.
fn is_blocking(choice: Choice) -> bool {
    matches!(choice, Choice::Sync | Choice::Threads(_) | Choice::Auto)
}

fn number(value: &[u8], spelling: &str, charset: Charset) -> Result<u64, Vec<u8>> {
    let number =
        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| {
        let (value, spelling) = (quote(value, charset), quote(spelling.as_bytes(), charset));
        [b"invalid number ", &value[..], b" for ", &spelling[..]].concat()
    })
}

/// What the manifest says of the options.
fn options(scan: &Scan) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        ("io".to_owned(), scan.choice.to_string()),
        ("one-file-system".to_owned(), scan.one_file_system.to_string()),
    ]);
    options.extend(scan.threads.map(|threads| ("threads".to_owned(), threads.to_string())));
    options.extend(scan.rate.map(|rate| ("rate".to_owned(), rate.to_string())));
    options.extend(scan.in_flight_max.map(|max| ("max-in-flight".to_owned(), max.to_string())));
    options.extend(scan.deadline.map(|deadline| ("deadline_s".to_owned(), deadline.as_secs().to_string())));
    options
}
