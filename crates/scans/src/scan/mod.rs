//! Scans trees into an inventory: workers convert entries to rows, the calling thread puts
//! directories and their sums together in the order of the walk, and another thread writes. Where
//! no threads can be started, the calling thread does all of it.

mod consumer;
mod cut;
mod earlier;
mod journal;
mod lock;
mod long_path;
mod part_dir;
mod rate_limit;
mod root;
mod selection;
mod visitor;

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_walk::fault::point;
use fathom_walk::{
    Clock, ConcurrencyHints, Errno, Fields, Filesystem, Model, Options, Progress, Summary, persistent_id, run,
};

use consumer::{ConsumerEnd, ScanConsumer};
pub(crate) use cut::{Cut, CutOptions, RootSpan, Slice, UnitRoot};
use earlier::EarlierDirs;
use fathom_inventory::Owners;
use fathom_inventory::store::{
    BatchWriter, Completeness, EntriesByDir, Error, Manifest, ManifestRoot, Op, OptionalColumns,
    ReuseSummary, VERSION, check_files,
};
use journal::Journal;
pub(crate) use journal::{from_hex, hex};
pub(crate) use lock::{BUSY, Lock};
use part_dir::{PartDir, PartState};
pub(crate) use part_dir::{create_part_dir, directory_mode, part_path, publish};
pub(crate) use rate_limit::RateLimiter;
pub use root::absolute;
pub(crate) use root::split_parents;
pub use selection::{Exclusions, MarkFn, Selection, SelectionFn};
use visitor::{RowVisitor, WrittenNames};

/// The options in a manifest that say what was excluded, from [`Scan::options`].
pub const EXCLUSION_OPTIONS: [&str; 3] = ["exclude", "ignore-vcs", "max-depth"];
/// The files of a scan that the manifest does not list.
pub(crate) const SCAN_FILES: [&str; 3] = [lock::NAME, journal::NAME, journal::NEW];
/// Entries between two checkpoints: a few seconds of work on a disk.
const CHECKPOINT_ENTRIES: u64 = 1_000_000;

/// The options of a scan. By default, a scan has no roots and no limits, and records no names of
/// owners.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The roots of the trees.
    pub roots: Vec<CString>,
    /// The I/O model.
    pub model: Model,
    /// The number of workers; the model decides if it is `None`.
    pub threads: Option<usize>,
    /// Hints on devices from earlier measurements.
    pub hints: ConcurrencyHints,
    /// Most directories that are read at once.
    pub in_flight_max: Option<usize>,
    /// Most entries that are examined in a second.
    pub rate: Option<u64>,
    /// Whether directories on other filesystems than their root's are left out.
    pub one_file_system: bool,
    /// The entries that are left out.
    pub exclusions: Exclusions,
    /// Creates the selection that applies `exclusions`.
    pub selector: SelectionFn,
    /// The optional columns.
    pub optional_columns: OptionalColumns,
    /// The names of owners.
    pub owners: Owners,
    /// The time after which the scan ends, with an incomplete inventory.
    pub deadline: Option<Duration>,
    /// The clock of the deadline, of checkpoints, and of the rate.
    pub clock: Clock,
    /// The path of an earlier inventory, from which the entries of unchanged directories are
    /// copied.
    pub since: Option<PathBuf>,
    /// The number of entries after which a checkpoint is written, from which another run can
    /// resume.
    pub checkpoint_entries: u64,
    /// Permission bits of the files of the finished inventory; `None` lets only the owner read it.
    pub mode: Option<u32>,
    /// The options as the user gave them, for the manifest.
    pub options: BTreeMap<String, String>,
    /// Ends the scan early, with an incomplete inventory, when it is set.
    pub stop: Arc<AtomicBool>,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            model: Model::default(),
            threads: None,
            hints: ConcurrencyHints::default(),
            in_flight_max: None,
            rate: None,
            one_file_system: false,
            exclusions: Exclusions::default(),
            selector: |_, _| None,
            optional_columns: OptionalColumns::default(),
            owners: Owners::default(),
            deadline: None,
            clock: Clock::default(),
            since: None,
            checkpoint_entries: CHECKPOINT_ENTRIES,
            mode: None,
            options: BTreeMap::new(),
            stop: Arc::default(),
        }
    }
}

/// A failed operation on an entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The operation that failed: `access`, `read`, `record a time of`, `read the project of` or
    /// `list the extended attributes of`.
    pub operation: &'static str,
    /// The path of the entry.
    pub path: Vec<u8>,
    /// The cause.
    pub errno: Errno,
}

/// The result of a scan.
#[derive(Clone, Debug)]
pub struct ScanOutcome {
    /// The manifest that was written.
    pub manifest: Manifest,
    /// The summary of the walk.
    pub summary: Summary,
}

/// Observes a scan while it runs.
pub trait Observer {
    /// Reports progress. Called every few milliseconds.
    fn progress(&mut self, progress: Progress);
    /// Reports an entry or a directory that could not be read.
    fn problem(&mut self, problem: &Problem);
    /// Reports a warning, which does not affect the inventory.
    fn warning(&mut self, _message: &[u8]) {}
}

/// Ignores everything. The inventory has all problems, in its table `errors`.
impl Observer for () {
    fn progress(&mut self, _progress: Progress) {}
    fn problem(&mut self, _problem: &Problem) {}
}

/// Scans into the new directory `out`.
///
/// # Errors
/// If `out` exists, or a `.part` of it that another scan has written to or is writing to, if either
/// cannot be created or written, or if the walk cannot start. Errors within the trees are recorded
/// in the inventory.
///
/// ```
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
///
/// let temp = tempfile::tempdir()?;
/// let out = temp.path().join("src.inv");
/// let options = Scan { roots: vec![c"src".into(), c"missing".into()], ..Scan::default() };
/// let outcome = scan(&options, &out, &mut ())?;
/// assert!(outcome.summary.complete);
/// assert_eq!(outcome.manifest.completeness.missing_roots, 1);
/// assert_eq!(Inventory::open(&out)?.manifest().entries, outcome.manifest.entries);
/// // A second scan does not replace it.
/// assert!(scan(&options, &out, &mut ()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scan(scan: &Scan, out: &Path, observer: &mut dyn Observer) -> Result<ScanOutcome, Error> {
    part_dir::check_absent(out)?;
    let (journal, earlier) = new_journal(scan)?;
    let part = PartDir::begin(out, observer)?;
    begin_scan(scan, journal, earlier, part, observer)
}

/// Resumes the scan into `out` that was ended before, be it by its deadline or by a loss of power.
/// The roots, and whether it stays on one filesystem, are taken from the earlier run. If there is
/// nothing to resume, begins a scan of the roots of `scan`.
///
/// # Errors
/// As [`scan()`]; if there is nothing to resume and `scan` has no roots; or if it contradicts the
/// options of the earlier run.
///
/// ```
/// use fathom_scans::scan::{Scan, resume, scan};
///
/// let temp = tempfile::tempdir()?;
/// let out = temp.path().join("src.inv");
/// let stop = std::sync::Arc::new(true.into());
/// let options = Scan { roots: vec![c"src".into()], stop, ..Scan::default() };
/// assert!(!scan(&options, &out, &mut ())?.summary.complete);
/// // The roots are in the inventory.
/// let outcome = resume(&Scan::default(), &out, &mut ())?;
/// assert!(outcome.summary.complete && outcome.manifest.entries > 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resume(scan: &Scan, out: &Path, observer: &mut dyn Observer) -> Result<ScanOutcome, Error> {
    let Some(part) = PartDir::reopen(out, observer)? else {
        let (journal, earlier) = new_journal_at(scan, out)?;
        let part = PartDir::begin(out, observer)?;
        return begin_scan(scan, journal, earlier, part, observer);
    };
    match part.state()? {
        PartState::Whole(manifest) => {
            let mode = scan.mode.or_else(|| Journal::read(part.directory()).ok()?.mode);
            part.publish(&manifest, mode)?;
            Ok(ScanOutcome { manifest: *manifest, summary: Summary { complete: true, ..Summary::default() } })
        }
        PartState::Nothing => {
            let (journal, earlier) = new_journal_at(scan, part.directory())?;
            begin_scan(scan, journal, earlier, part, observer)
        }
        PartState::Journal(journal) => resume_scan(scan, *journal, part, observer),
    }
}

/// Returns whether the scan into `directory` can be resumed.
pub(crate) fn has_journal(directory: &Path) -> bool {
    Journal::is_in(directory)
}

/// A scan that did not come to its end, as its journal has it.
#[derive(Debug)]
pub(crate) struct UnfinishedScan {
    pub(crate) host: String,
    pub(crate) roots: Vec<Vec<u8>>,
    pub(crate) options: BTreeMap<String, String>,
    /// Whether it copies unchanged directories from an earlier inventory.
    pub(crate) has_earlier: bool,
}

impl UnfinishedScan {
    /// Returns the scan that was making `directory`, if its journal can be read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let Journal { host, roots, options, since, .. } = Journal::read(directory).ok()?;
        Some(Self { host, roots, options, has_earlier: since.is_some() })
    }
}

/// The earlier inventory; `None` without `--since`.
pub(crate) type EarlierInventory = Option<(Arc<EarlierDirs>, EntriesByDir)>;

/// Returns the journal of a scan that begins, and the earlier inventory, if there is to be one.
fn new_journal(scan: &Scan) -> Result<(Journal, EarlierInventory), Error> {
    let journal = Journal::new(scan, seconds(SystemTime::now()))?;
    let earlier = read_earlier(&journal)?;
    Ok((journal, earlier))
}

fn new_journal_at(scan: &Scan, path: &Path) -> Result<(Journal, EarlierInventory), Error> {
    if scan.roots.is_empty() {
        return Err(Error::new(Op::Resume, path, "nothing to continue: give a PATH to start a scan"));
    }
    new_journal(scan)
}

/// Scans a unit into the new directory `out`: the roots of `cut`, until it is due. Returns what it
/// has left as well, and the earlier inventory for the next unit.
pub(crate) fn scan_unit(
    scan: &Scan,
    cut: CutOptions,
    earlier: EarlierInventory,
    out: &Path,
    observer: &mut dyn Observer,
) -> Result<(ScanOutcome, Cut, EarlierInventory), Error> {
    let journal = Journal::new(scan, seconds(SystemTime::now()))?;
    let part = PartDir::begin(out, observer)?;
    journal.write(part.directory())?;
    let (outcome, end) = run_scan(
        scan,
        journal,
        Vec::new(),
        earlier,
        Some(Cut::new(cut, scan.clock.clone())),
        part,
        observer,
    )?;
    let cut = end.0.ok_or_else(|| Error::new(Op::Walk, out, "the unit has no cut"))?;
    Ok((outcome, cut, end.1))
}

/// Reads the earlier inventory of `scan`, if there is to be one.
pub(crate) fn read_earlier_of(scan: &Scan) -> Result<EarlierInventory, Error> {
    read_earlier(&Journal::new(scan, 0)?)
}

/// Reads the earlier inventory, if there is to be one.
fn read_earlier(journal: &Journal) -> Result<EarlierInventory, Error> {
    let Some(path) = journal.since.as_deref() else { return Ok(None) };
    let path = Path::new(OsStr::from_bytes(path));
    let Manifest { options: then, optional_columns, .. } = Manifest::read(path)?;
    if !optional_columns.contains(journal.optional_columns) {
        return Err(Error::new(
            Op::Read,
            path,
            format!("it lacks columns of --also={}", journal.optional_columns),
        ));
    }
    if EXCLUSION_OPTIONS.iter().any(|option| then.get(*option) != journal.options.get(*option)) {
        return Err(Error::new(
            Op::Read,
            path,
            "it was made with other exclusions, which --since would report as changes",
        ));
    }
    let (dirs, by_dir) = EarlierDirs::read(path)?;
    Ok(Some((Arc::new(dirs), by_dir)))
}

fn begin_scan(
    scan: &Scan,
    journal: Journal,
    earlier: EarlierInventory,
    part: PartDir,
    observer: &mut dyn Observer,
) -> Result<ScanOutcome, Error> {
    // With a journal, the directory can be resumed from.
    journal.write(part.directory())?;
    run_scan(scan, journal, Vec::new(), earlier, None, part, observer).map(|(outcome, _)| outcome)
}

/// Resumes from a journal, after checking that all files it lists exist and are as they were
/// written.
fn resume_scan(
    scan: &Scan,
    journal: Journal,
    part: PartDir,
    observer: &mut dyn Observer,
) -> Result<ScanOutcome, Error> {
    let directory = part.directory();
    journal.check_options(scan, directory)?;
    check_files(directory, &journal.files)?;
    journal.remove_uncommitted(directory)?;
    point("part-cleaned");
    let roots = journal.roots.iter().map(|root| CString::new(root.as_slice())).collect::<Result<_, _>>();
    let roots = roots.map_err(|error| Error::new(Op::Read, directory, error))?;
    let (one_file_system, options) = (journal.one_file_system, journal.options.clone());
    let (exclusions, mode, optional_columns) =
        (journal.exclusions.clone(), scan.mode.or(journal.mode), journal.optional_columns);
    let scan = Scan { roots, one_file_system, options, exclusions, mode, optional_columns, ..scan.clone() };
    let written = journal.written_names(directory)?;
    let earlier = read_earlier(&journal)?;
    run_scan(&scan, journal, written, earlier, None, part, observer).map(|(outcome, _)| outcome)
}

fn run_scan(
    scan: &Scan,
    journal: Journal,
    written: Vec<WrittenNames>,
    earlier: EarlierInventory,
    cut: Option<Cut>,
    part: PartDir,
    observer: &mut dyn Observer,
) -> Result<(ScanOutcome, (Option<Cut>, EarlierInventory)), Error> {
    let directory = part.directory();
    let writer = BatchWriter::start(journal.segment_writer(directory.to_owned()));
    let progress = std::cell::Cell::new(Progress::default());
    let rate_limit = scan.rate.map(|rate| Arc::new(RateLimiter::new(rate, scan.clock.clone())));
    let selection = (scan.selector)(&scan.exclusions, scan.optional_columns.ignored);
    let visitor = RowVisitor {
        written,
        rate_limit: rate_limit.clone(),
        earlier: earlier.as_ref().map(|(earlier, _)| earlier.clone()),
        selection: selection.clone(),
        max_depth: scan.exclusions.max_depth,
        optional_columns: scan.optional_columns,
        slices: cut.as_ref().map(|cut| cut.options.slices_by_root()).unwrap_or_default(),
        is_cut_due: cut.as_ref().map(Cut::due_flag),
    };
    let opens = selection.as_ref().is_some_and(|selection| selection.inspects_directories());
    let options = walk_options(&journal, scan).inspect_directories(opens);
    let (start, since) = (journal.start, journal.since.clone());
    let made_in = cut.as_ref().map_or(directory, |cut| cut.options.part.as_path());
    let out_id = made_in.symlink_metadata().ok().map(|out| (out.dev(), out.ino()));
    let consumer = ScanConsumer::new(scan, journal, writer, observer, &progress, earlier);
    let mut consumer = consumer.with_rate_limit(rate_limit).excluding(out_id);
    (consumer.selection, consumer.cut) = (selection, cut);
    let ended = run(options, visitor, &mut consumer, &mut |now| progress.set(now));
    let complete = ended.as_ref().is_ok_and(|summary| summary.complete);
    let ConsumerEnd { written, counts, cut, earlier } = consumer.end(complete);
    // A write error causes the errors after it: report it first.
    let writer = written?;
    let summary = ended.map_err(|error| Error::new(Op::Walk, directory, error))?;
    let files = writer.finish(&scan.owners)?;
    point("tables-finished");
    let manifest = Manifest {
        format: VERSION,
        tool: concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned(),
        host: host(),
        roots: scan.roots.iter().map(local_root).collect(),
        options: scan.options.clone(),
        optional_columns: scan.optional_columns,
        start,
        end: seconds(SystemTime::now()),
        entries: counts.entries,
        completeness: Completeness { stopped: stopped(scan, &summary), ..counts.completeness },
        since: since.as_deref().map(|path| ReuseSummary {
            path: String::from_utf8_lossy(path).into_owned(),
            directories: counts.reused_directories,
            entries: counts.reused_entries,
        }),
        files,
    };
    manifest.write(directory)?;
    point("manifest-written");
    part.publish(&manifest, scan.mode)?;
    Ok((ScanOutcome { manifest, summary }, (cut, earlier)))
}

fn walk_options(journal: &Journal, scan: &Scan) -> Options {
    let fields = Fields::ALL.union(Fields::BIRTH).union(Fields::ATTRIBUTES);
    // Metadata in the cache of a network client may be older than the changes.
    let fields = if journal.since.is_some() { fields.union(Fields::FRESH) } else { fields };
    Options::default()
        .model(scan.model)
        .threads(scan.threads)
        .fields(fields)
        // Directories at the depth limit are not opened, so their metadata is requested by name.
        .stat_dirs(scan.exclusions.max_depth.is_some())
        .unordered_chunks(true)
        .workers_max(scan.in_flight_max)
        .hints(scan.hints.clone())
        .clock(scan.clock.clone())
}

fn stopped(scan: &Scan, summary: &Summary) -> Option<String> {
    let why = if scan.stop.load(Ordering::Relaxed) { "interrupted" } else { "deadline" };
    (!summary.complete).then(|| why.to_owned())
}

/// Returns a time in seconds since 1970, as manifests have it.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// assert_eq!(fathom_scans::scan::seconds(UNIX_EPOCH + Duration::from_secs(5)), 5);
/// ```
#[must_use]
pub fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}

/// Returns the name of this machine, as manifests have it.
///
/// ```
/// assert!(!fathom_scans::scan::host().is_empty());
/// ```
#[must_use]
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the root `path` of this machine, with its filesystem.
pub(crate) fn local_root(path: &CString) -> ManifestRoot {
    let local = Path::new(OsStr::from_bytes(path.to_bytes()));
    let filesystem = Filesystem::of(local).ok().and_then(|filesystem| filesystem.name);
    let absolute = local.is_relative().then(|| absolute(path).ok()).flatten();
    let (absolute, absolute_hex) = absolute.map(|path| text_and_hex(path.to_bytes())).unzip();
    ManifestRoot {
        absolute,
        absolute_hex: absolute_hex.flatten(),
        filesystem: filesystem.map(str::to_owned),
        filesystem_id: persistent_id(local).map(|id| format!("{id:016x}")),
        ..manifest_root(path)
    }
}

/// Returns the root `path`, perhaps of another machine.
pub(crate) fn manifest_root(path: &CString) -> ManifestRoot {
    let (path, path_hex) = text_and_hex(path.to_bytes());
    ManifestRoot { path, path_hex, ..ManifestRoot::default() }
}

/// Returns a path as text, and its bytes in hexadecimal if they are not UTF-8.
fn text_and_hex(bytes: &[u8]) -> (String, Option<String>) {
    use std::fmt::Write;
    let hex = std::str::from_utf8(bytes).is_err().then(|| {
        bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes what it is given");
            hex
        })
    });
    (String::from_utf8_lossy(bytes).into_owned(), hex)
}
