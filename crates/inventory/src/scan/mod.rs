//! Scans trees into an inventory: workers make rows of what they find, the calling thread puts
//! directories and their sums together in the order of the walk, and another thread writes. Where
//! no threads can be started, the calling thread does all of it.

mod consume;
mod journal;
mod lock;
mod pace;
mod part;
mod past;
mod select;
mod visit;

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_walk::{Choice, Errno, Fields, Follow, Leaps, Options, Progress, Summary, run};

use crate::Owners;
use crate::fault::point;
use crate::store::{
    Also, ByDir, Completeness, Error, Manifest, Op, Root, Since, VERSION, Writer, check_files,
};
pub(crate) use consume::TIME;
use consume::Taker;
use journal::Journal;
pub(crate) use lock::{BUSY, Lock};
pub(crate) use pace::Pace;
use part::{Left, Part};
pub(crate) use part::{make, part_of, publish};
use past::Past;
pub use select::{LeftOut, Selection, Selector};
use visit::{Known, Maker};

/// Options in a manifest that say what was left out: [`Scan::options`] has them.
pub const LEFT_OUT: [&str; 3] = ["exclude", "ignore-vcs", "max-depth"];

/// What to scan, and how.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The trees.
    pub roots: Vec<CString>,
    /// The I/O model.
    pub choice: Choice,
    /// This many workers, whatever the model would have.
    pub threads: Option<usize>,
    /// What is known beforehand of devices.
    pub leaps: Leaps,
    /// No more directories under way at once than this.
    pub in_flight_max: Option<usize>,
    /// Look at no more than so many entries a second.
    pub rate: Option<u64>,
    /// Leave out what is on other filesystems than its root.
    pub one_file_system: bool,
    /// Leave out this as well.
    pub left_out: LeftOut,
    /// Decides on that.
    pub selector: Selector,
    /// Columns that take system calls of their own.
    pub also: Also,
    /// Names of owners.
    pub owners: Owners,
    /// End after this time with what there is.
    pub deadline: Option<Duration>,
    /// An earlier inventory: what is in a directory that has not changed since is taken from it.
    pub since: Option<PathBuf>,
    /// Entries after which what there is is put on the disk for good, for another run to go on from there.
    pub checkpoint_entries: u64,
    /// Permission bits of its files, where others than their owner may read it.
    pub mode: Option<u32>,
    /// What was asked for, for the manifest.
    pub options: BTreeMap<String, String>,
    /// End soon with what there is, once this is set.
    pub stop: Arc<AtomicBool>,
}

/// A failed operation on an entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The operation that failed: `access`, `read`, `record a time of`, `read the project of` or `list
    /// the extended attributes of`.
    pub deed: &'static str,
    /// What it is about.
    pub path: Vec<u8>,
    /// Why.
    pub errno: Errno,
}

/// How a scan went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The manifest written.
    pub manifest: Manifest,
    /// How the walk went.
    pub summary: Summary,
}

/// Whoever wants to know of a scan while it runs.
pub trait Watch {
    /// Called every few milliseconds.
    fn progress(&mut self, progress: Progress);
    /// Something could not be read.
    fn problem(&mut self, problem: &Problem);
    /// Something is wrong that takes nothing from the inventory.
    fn warning(&mut self, _message: &[u8]) {}
}

/// Scans into the new directory `out`.
///
/// # Errors
/// If there is an `out`, or a `.part` of it that another scan has written to or is writing to, if
/// either cannot be made or written, or if the walk cannot start. What goes wrong within the trees
/// is in the inventory.
pub fn scan(scan: &Scan, out: &Path, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    part::free(out)?;
    let (journal, past) = beginning(scan)?;
    let part = Part::begin(out, watch)?;
    begin(scan, journal, past, part, watch)
}

/// Goes on with the scan that was to make `out` and was ended, be it by its deadline or by a loss
/// of power. The roots, and whether it stays on one filesystem, are those of the earlier run. Where
/// there is nothing to go on with, begins one of the roots of `scan`.
///
/// # Errors
/// As [`scan()`]; if there is nothing to go on with and `scan` has no roots; or if it has others
/// than were begun with.
pub fn resume(scan: &Scan, out: &Path, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let Some(part) = Part::reopen(out, watch)? else {
        let (journal, past) = beginning_at(scan, out)?;
        let part = Part::begin(out, watch)?;
        return begin(scan, journal, past, part, watch);
    };
    match part.left()? {
        Left::Whole(manifest) => {
            let mode = scan.mode.or_else(|| Journal::read(part.directory()).ok()?.mode);
            part.publish(&manifest, mode)?;
            Ok(Outcome { manifest: *manifest, summary: Summary { complete: true, ..Summary::default() } })
        }
        Left::Nothing => {
            let (journal, past) = beginning_at(scan, part.directory())?;
            begin(scan, journal, past, part, watch)
        }
        Left::Journal(journal) => go_on_from(scan, *journal, part, watch),
    }
}

/// The data of an earlier inventory that the walk uses; `None` without one.
type Earlier = Option<(Past, ByDir)>;

/// The journal of a scan that is to begin, and what the earlier inventory has, if there is to be
/// one.
fn beginning(scan: &Scan) -> Result<(Journal, Earlier), Error> {
    let journal = Journal::new(scan, seconds(SystemTime::now()))?;
    let past = past(&journal)?;
    Ok((journal, past))
}

fn beginning_at(scan: &Scan, path: &Path) -> Result<(Journal, Earlier), Error> {
    if scan.roots.is_empty() {
        return Err(Error::new(
            Op::Resume,
            path,
            "there is nothing to go on with, and no operand to begin with",
        ));
    }
    beginning(scan)
}

/// What the earlier inventory has, if there is to be one.
fn past(journal: &Journal) -> Result<Earlier, Error> {
    let Some(path) = journal.since.as_deref() else { return Ok(None) };
    let path = Path::new(OsStr::from_bytes(path));
    let Manifest { options: then, also, .. } = Manifest::read(path)?;
    if !also.contains(journal.also) {
        return Err(Error::new(
            Op::Read,
            path,
            format!("--also asks for '{}', and it has not all of that", journal.also),
        ));
    }
    if LEFT_OUT.iter().any(|option| then.get(*option) != journal.options.get(*option)) {
        return Err(Error::new(
            Op::Read,
            path,
            "it was made with other exclusions, which --since cannot tell from changes",
        ));
    }
    Past::read(path).map(Some)
}

fn begin(
    scan: &Scan,
    journal: Journal,
    past: Earlier,
    part: Part,
    watch: &mut dyn Watch,
) -> Result<Outcome, Error> {
    // From now on there is something to go on from.
    journal.write(part.directory())?;
    go_on(scan, journal, (Vec::new(), past), part, watch)
}

/// Goes on from a journal, once all that it lists is known to be there.
fn go_on_from(scan: &Scan, journal: Journal, part: Part, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let directory = part.directory();
    journal.accepts(scan, directory)?;
    check_files(directory, &journal.files)?;
    journal.clean(directory)?;
    point("part-cleaned");
    let roots = journal.roots.iter().map(|root| CString::new(root.as_slice())).collect::<Result<_, _>>();
    let roots = roots.map_err(|error| Error::new(Op::Read, directory, error))?;
    let (one_file_system, options) = (journal.one_file_system, journal.options.clone());
    let (left_out, mode, also) = (journal.left_out.clone(), scan.mode.or(journal.mode), journal.also);
    let scan = Scan { roots, one_file_system, options, left_out, mode, also, ..scan.clone() };
    let known = journal.known(directory)?;
    let past = past(&journal)?;
    go_on(&scan, journal, (known, past), part, watch)
}

fn go_on(
    scan: &Scan,
    journal: Journal,
    (known, past): (Vec<Known>, Earlier),
    part: Part,
    watch: &mut dyn Watch,
) -> Result<Outcome, Error> {
    let directory = part.directory();
    let writer = Writer::start(journal.shelf(directory.to_owned()));
    let progress = std::cell::Cell::new(Progress::default());
    let past = past.map(|(past, by_dir)| (Arc::new(past), by_dir));
    let pace = scan.rate.map(|rate| Arc::new(Pace::new(rate)));
    let selection = (scan.selector)(&scan.left_out);
    let maker = Maker {
        known,
        pace: pace.clone(),
        past: past.as_ref().map(|(past, _)| past.clone()),
        selection: selection.clone(),
        max_depth: scan.left_out.max_depth,
        also: scan.also,
    };
    let opens = selection.as_ref().is_some_and(|selection| selection.looks_into_directories());
    let options = Options { whole: opens, ..walk_options(&journal, scan) };
    let (start, since) = (journal.start, journal.since.clone());
    let own = directory.symlink_metadata().ok().map(|own| (own.dev(), own.ino()));
    let taker = Taker::new(scan, journal, writer, (watch, &progress), past);
    let mut taker = taker.with_pace(pace).without(own);
    taker.selection = selection;
    let ended = run(options, maker, &mut taker, &mut |now| progress.set(now));
    let complete = ended.as_ref().is_ok_and(|summary| summary.complete);
    let (written, found) = taker.end(complete);
    // What could not be written is the cause of what follows.
    let shelf = written?;
    let summary = ended.map_err(|error| Error::new(Op::Walk, directory, error))?;
    let files = shelf.finish(&scan.owners)?;
    point("tables-finished");
    let manifest = Manifest {
        format: VERSION,
        tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: host(),
        roots: scan.roots.iter().map(root).collect(),
        options: scan.options.clone(),
        also: scan.also,
        start,
        end: seconds(SystemTime::now()),
        entries: found.entries,
        completeness: Completeness { stopped: stopped(scan, &summary), ..found.completeness },
        since: since.as_deref().map(|path| Since {
            path: String::from_utf8_lossy(path).into_owned(),
            directories: found.past_directories,
            entries: found.past_entries,
        }),
        files,
    };
    manifest.write(directory)?;
    point("manifest-written");
    part.publish(&manifest, scan.mode)?;
    Ok(Outcome { manifest, summary })
}

fn walk_options(journal: &Journal, scan: &Scan) -> Options {
    let fields = Fields::ALL.and(Fields::BIRTH).and(Fields::ATTRIBUTES);
    // A client's cache does not know what has changed.
    let fields = if journal.since.is_some() { fields.and(Fields::FRESH) } else { fields };
    Options {
        choice: scan.choice,
        threads: scan.threads,
        roots: Follow::No,
        links: Follow::No,
        fields,
        // Those at the last level are not opened.
        stat_dirs: scan.left_out.max_depth.is_some(),
        once: false,
        loose: true,
        whole: false,
        workers_max: scan.in_flight_max,
        fds_max: None,
        leaps: scan.leaps.clone(),
    }
}

fn stopped(scan: &Scan, summary: &Summary) -> Option<String> {
    let why = if scan.stop.load(Ordering::Relaxed) { "interrupted" } else { "deadline" };
    (!summary.complete).then(|| why.to_owned())
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn root(path: &CString) -> Root {
    use std::fmt::Write;
    let bytes = path.to_bytes();
    let hex = std::str::from_utf8(bytes).is_err().then(|| {
        bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes what it is given");
            hex
        })
    });
    Root { path: String::from_utf8_lossy(bytes).into_owned(), path_hex: hex, filesystem: None }
}
