//! Scans trees into an inventory: workers make rows of what they find, the calling thread puts directories and their sums
//! together in the order of the walk, and a third thread writes.

mod consume;
mod journal;
mod pace;
mod past;
mod visit;

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_walk::{Choice, Errno, Fields, Follow, Leaps, Options, Progress, Summary, run};

use crate::Owners;
use crate::store::{ByDir, Completeness, Error, Manifest, Op, Root, Since, VERSION, Writer};
use consume::Taker;
use journal::Journal;
pub(crate) use pace::Pace;
use past::Past;
use visit::{Known, Maker};

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
    /// End after this time with what there is.
    pub deadline: Option<Duration>,
    /// An earlier inventory: what is in a directory that has not changed since is taken from it.
    pub since: Option<PathBuf>,
    /// Entries after which what there is is put on the disk for good, for another run to go on from there.
    pub checkpoint_entries: u64,
    /// What was asked for, for the manifest.
    pub options: BTreeMap<String, String>,
    /// End soon with what there is, once this is set.
    pub stop: Arc<AtomicBool>,
}

/// What went wrong with something in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What could not be done with it: `access`, `read` or `stat`.
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
}

/// Scans into the new directory `out`.
///
/// # Errors
/// If `out` or its `.part` exists, or cannot be made or written, or if the walk cannot start. What goes wrong within the
/// trees is in the inventory.
pub fn scan(scan: &Scan, out: &Path, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let part = part_of(out);
    for taken in [out, &part] {
        if taken.symlink_metadata().is_ok() {
            return Err(Error::new(Op::Create, taken, std::io::Error::from(Errno::EXIST)));
        }
    }
    let journal = Journal::new(scan, seconds(SystemTime::now()))?;
    let past = past(&journal)?;
    fs::create_dir(&part).map_err(|error| Error::new(Op::Create, &part, error))?;
    // From now on there is something to go on from.
    journal.write(&part)?;
    go_on(scan, &journal, (Vec::new(), past), out, watch)
}

/// Goes on with the scan that was to make `out` and was ended, be it by its deadline or by a loss of power. The roots, and whether
/// it stays on one filesystem, are those of the earlier run.
///
/// # Errors
/// As [`scan`]; and if there is nothing to go on with.
pub fn resume(scan: &Scan, out: &Path, watch: &mut dyn Watch) -> Result<Outcome, Error> {
    let part = part_of(out);
    if !Journal::is_in(&part) {
        if Manifest::read(out)?.completeness.stopped.is_none() {
            return Err(Error::new(Op::Resume, out, "the scan came to its end"));
        }
        fs::rename(out, &part).map_err(|error| Error::new(Op::Rename, out, error))?;
    }
    let journal = Journal::read(&part)?;
    journal.clean(&part)?;
    let roots = journal.roots.iter().map(|root| CString::new(root.as_slice())).collect::<Result<_, _>>();
    let roots = roots.map_err(|error| Error::new(Op::Read, &part, error))?;
    let (one_file_system, options) = (journal.one_file_system, journal.options.clone());
    let scan = Scan { roots, one_file_system, options, ..scan.clone() };
    let known = journal.known(&part)?;
    let past = past(&journal)?;
    go_on(&scan, &journal, (known, past), out, watch)
}

/// What the earlier inventory has, if there is to be one.
fn past(journal: &Journal) -> Result<Option<(Past, ByDir)>, Error> {
    journal.since.as_deref().map(|path| Past::read(Path::new(OsStr::from_bytes(path)))).transpose()
}

fn go_on(
    scan: &Scan,
    journal: &Journal,
    (known, past): (Vec<Known>, Option<(Past, ByDir)>),
    out: &Path,
    watch: &mut dyn Watch,
) -> Result<Outcome, Error> {
    let part = part_of(out);
    let writer = Writer::start(journal.shelf(part.clone()))?;
    let progress = std::cell::Cell::new(Progress::default());
    let past = past.map(|(past, by_dir)| (Arc::new(past), by_dir));
    let maker =
        Maker { known, pace: scan.rate.map(Pace::new), past: past.as_ref().map(|(past, _)| past.clone()) };
    let mut taker = Taker::new(scan, journal, writer, (watch, &progress), past);
    let ended = run(walk_options(journal, scan), maker, &mut taker, &mut |now| progress.set(now));
    let complete = ended.as_ref().is_ok_and(|summary| summary.complete);
    let (written, found) = taker.end(complete);
    // What could not be written is the cause of what follows.
    let shelf = written?;
    let summary = ended.map_err(|error| Error::new(Op::Walk, out, error))?;
    let files = shelf.finish(&Owners::read())?;
    let manifest = Manifest {
        format: VERSION,
        tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: host(),
        roots: scan.roots.iter().map(root).collect(),
        options: scan.options.clone(),
        start: journal.start,
        end: seconds(SystemTime::now()),
        entries: found.entries,
        completeness: Completeness { stopped: stopped(scan, &summary), ..found.completeness },
        since: journal.since.as_deref().map(|path| Since {
            path: String::from_utf8_lossy(path).into_owned(),
            directories: found.past_directories,
            entries: found.past_entries,
        }),
        files,
    };
    manifest.write(&part)?;
    if complete {
        Journal::remove(&part)?;
    }
    publish(&part, out)?;
    Ok(Outcome { manifest, summary })
}

/// The name of an inventory while it is made.
fn part_of(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    out.with_file_name(name)
}

fn walk_options(journal: &Journal, scan: &Scan) -> Options {
    let fields = Fields::ALL.and(Fields::BIRTH);
    // A client's cache does not know what has changed.
    let fields = if journal.since.is_some() { fields.and(Fields::FRESH) } else { fields };
    Options {
        choice: scan.choice,
        threads: scan.threads,
        roots: Follow::No,
        links: Follow::No,
        fields,
        stat_dirs: false,
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

/// Gives the inventory its name, once the disk has all of it.
fn publish(part: &Path, out: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(Op::Rename, part, error);
    let sync = |directory: &Path| File::open(directory).and_then(|directory| directory.sync_all());
    sync(part).map_err(failed)?;
    if out.symlink_metadata().is_ok() {
        return Err(failed(Errno::EXIST.into()));
    }
    fs::rename(part, out).map_err(failed)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(parent).map_err(failed)
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
