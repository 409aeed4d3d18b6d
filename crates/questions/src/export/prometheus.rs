//! Sums of an inventory in Prometheus's text format (version 0.0.4), for the textfile collector of
//! node_exporter: of everything, by owner, and by directory down to a depth. The number of series
//! is bounded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::top::dirs::DirSums;
use crate::top::links::HardLinks;
use crate::top::scope::Scope;
use crate::top::{GroupKey, QueryError, ReportKind, ReportOptions, UsageSum, report};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Draft, Error, Inventory, Manifest, PathColumns, Table};

/// The label value of everything that has no series of its own.
const OTHER: &str = "other";
/// Most bytes of the label that names the trees.
const TREES_BYTES_MAX: usize = 1024;
/// Directories that are held before all but the largest are added up.
const HELD_MAX: usize = 4096;
/// Permission bits of the file, which the collector has to read.
const MODE: u32 = 0o644;

/// The options of the numbers for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrometheusOptions {
    /// The depth of the deepest directories that have a series. A root has the depth 0.
    pub depth: u32,
    /// Most directories, and most owners, that have series of their own.
    pub series_max: usize,
}

impl Default for PrometheusOptions {
    /// The roots and the directories in them, at most 100.
    fn default() -> Self {
        Self { depth: 1, series_max: 100 }
    }
}

/// Returns the sums of an inventory as text. Each file counts once.
///
/// # Errors
/// If the inventory is damaged.
///
/// ```
/// use fathom_questions::export::{PrometheusOptions, prometheus};
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let text = prometheus(&Inventory::open(&out)?, &PrometheusOptions::default())?;
/// assert!(text.contains("# TYPE fathom_directory_bytes gauge\n"));
/// assert!(text.contains("{trees=\"src\",depth=\"1\",path=\"src/export\"} "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prometheus(inventory: &Inventory, options: &PrometheusOptions) -> Result<String, QueryError> {
    let manifest = inventory.manifest();
    let by_owner = ReportOptions { by: ReportKind::User, count: usize::MAX, below: None, now: 0 };
    let owners = report(inventory, &by_owner)?;
    let mut text = ExpositionText { trees: trees(manifest), text: String::new() };
    text.sums("fathom", "in all, each file counted once", &[(Vec::new(), owners.total)]);
    let mut sums = BoundedSums::new(options.series_max);
    for row in owners.rows {
        let name = match row.key {
            GroupKey::Id(id) if row.text.is_empty() => id.to_string(),
            GroupKey::Id(id) if row.text == OTHER.as_bytes() => format!("{OTHER}({id})"),
            GroupKey::Id(_) => label(&row.text),
            GroupKey::Other => OTHER.to_owned(),
            _ => "unknown".to_owned(),
        };
        sums.add(0, name, &row.sum);
    }
    let owners: Vec<_> =
        sums.finish().into_iter().map(|((_, name), sum)| (vec![("owner", name)], sum)).collect();
    text.sums("fathom_owner", "by owner", &owners);
    let dirs = directories(inventory, options)?.into_iter();
    let dirs: Vec<_> =
        dirs.map(|((depth, path), sum)| (vec![("depth", depth.to_string()), ("path", path)], sum)).collect();
    text.sums("fathom_directory", "at and below a directory", &dirs);
    text.completeness(manifest);
    Ok(text.text)
}

/// Replaces the file at `path` by one that others may read. At any moment there is either the old
/// file or the new one.
///
/// # Errors
/// If `path` is there and is no regular file, or if a file cannot be created in its directory,
/// written or renamed.
pub fn replace_public(path: &Path, text: &str) -> Result<(), Error> {
    // The collector reads files whose names end in `.prom`, so not the temporary one.
    let mut draft = Draft::create_with(path, MODE)?;
    draft.write(text.as_bytes()).map_err(|error| draft.cannot_write(error))?;
    draft.publish()
}

/// Returns the label that tells the series of an inventory from other series: its roots.
fn trees(manifest: &Manifest) -> String {
    let roots: Vec<_> = manifest.roots.iter().map(|root| label(&root.bytes())).collect();
    let mut trees = roots.join(" ");
    if trees.len() > TREES_BYTES_MAX {
        let end = (0..=TREES_BYTES_MAX).rfind(|at| trees.is_char_boundary(*at)).unwrap_or(0);
        trees.truncate(end);
    }
    trees
}

/// Returns text for a label value: control characters, and bytes that are not UTF-8, become `\xNN`.
fn label(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                let _ = write!(text, "\\x{:02x}", u32::from(character));
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns the sums of directories down to a depth, by depth and path.
fn directories(
    inventory: &Inventory,
    options: &PrometheusOptions,
) -> Result<BTreeMap<(u32, String), UsageSum>, Error> {
    let (links, scope) = (HardLinks::read_all(inventory)?, Scope::of_trees(inventory, &[])?);
    let (mut tally, mut sums) = (DirSums::new(&links, Span::ALL), BoundedSums::new(options.series_max));
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        let (ids, depths) = (group.numbers("dir_id")?, group.numbers("depth")?);
        let depth_of = |row: usize| u32::try_from(depths.or_zero()[row]).unwrap_or(u32::MAX);
        let wanted: Vec<_> = rows
            .into_iter()
            .filter(|dir| depth_of(dir.row) <= options.depth && !scope.is_repeated(ids.or_zero()[dir.row]))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let paths = PathColumns::read(group)?;
        for dir in wanted {
            // A path that is too long for the table is too long for a label.
            let path = paths.get(dir.row).map_or_else(|| OTHER.to_owned(), label);
            let path = if paths.get(dir.row) == Some(OTHER.as_bytes()) { format!("{OTHER}/") } else { path };
            sums.add(depth_of(dir.row), path, &dir.sum);
        }
        Ok(())
    })?;
    Ok(sums.finish())
}

/// The largest sums; the others are added up for each depth.
struct BoundedSums {
    max: usize,
    held: BTreeMap<(u32, String), UsageSum>,
}

impl BoundedSums {
    fn new(max: usize) -> Self {
        Self { max, held: BTreeMap::new() }
    }

    /// Adds to the sum of a label. Two owners may have one name, and two trees one path.
    fn add(&mut self, depth: u32, name: String, sum: &UsageSum) {
        self.held.entry((depth, name)).or_default().add(sum);
        if self.held.len() >= self.max.saturating_mul(2).max(HELD_MAX) {
            self.fold();
        }
    }

    /// Adds up all but the largest. Of equal sums those at smaller depths are kept, and then the
    /// first by name.
    fn fold(&mut self) {
        let is_rest = |key: &(u32, String)| key.1 == OTHER;
        let mut order: Vec<_> = self.held.iter().filter(|(key, _)| !is_rest(key)).collect();
        if order.len() <= self.max {
            return;
        }
        order.sort_by(|(one, left), (two, right)| (right.allocated, *one).cmp(&(left.allocated, *two)));
        let rest: Vec<_> = order[self.max..].iter().map(|(key, _)| (*key).clone()).collect();
        for key in rest {
            let depth = key.0;
            if let Some(sum) = self.held.remove(&key) {
                self.held.entry((depth, OTHER.to_owned())).or_default().add(&sum);
            }
        }
    }

    fn finish(mut self) -> BTreeMap<(u32, String), UsageSum> {
        self.fold();
        self.held
    }
}

/// Labels and a sum.
type LabelledSum = (Vec<(&'static str, String)>, UsageSum);

/// A text in the exposition format.
struct ExpositionText {
    trees: String,
    text: String,
}

impl ExpositionText {
    /// Begins a metric.
    fn metric(&mut self, name: &str, help: &str) {
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    }

    /// Adds a sample of the metric that was begun last.
    fn sample(&mut self, name: &str, labels: &[(&'static str, String)], value: impl std::fmt::Display) {
        let _ = write!(self.text, "{name}{{trees=\"{}\"", escaped(&self.trees));
        for (label, value) in labels {
            let _ = write!(self.text, ",{label}=\"{}\"", escaped(value));
        }
        let _ = writeln!(self.text, "}} {value}");
    }

    /// Adds the three metrics of sums.
    fn sums(&mut self, prefix: &str, what: &str, sums: &[LabelledSum]) {
        type Value = fn(&UsageSum) -> u64;
        let metrics: [(&str, String, Value); 3] = [
            ("bytes", format!("Allocated bytes {what}."), |sum| sum.allocated),
            ("apparent_bytes", format!("Apparent size in bytes {what}."), |sum| sum.apparent),
            ("entries", format!("Number of entries {what}."), |sum| sum.entries),
        ];
        for (name, help, value) in metrics {
            let name = format!("{prefix}_{name}");
            self.metric(&name, &help);
            for (labels, sum) in sums {
                self.sample(&name, labels, value(sum));
            }
        }
    }

    /// Adds the metrics that say how far the others can be trusted.
    fn completeness(&mut self, manifest: &Manifest) {
        let found = &manifest.completeness;
        self.metric("fathom_directories", "Number of directories by state.");
        let states = [
            ("complete", found.complete),
            ("partial", found.partial),
            ("failed", found.failed),
            ("skipped", found.skipped),
        ];
        for (state, count) in states {
            self.sample("fathom_directories", &[("state", state.to_owned())], count);
        }
        let errors: u64 = manifest
            .files
            .iter()
            .filter(|file| file.table == Table::Errors.name())
            .map(|file| file.rows)
            .sum();
        self.metric("fathom_errors", "Number of operations of the scan that failed.");
        self.sample("fathom_errors", &[], errors);
        self.metric("fathom_complete_ratio", "Share of the directories that are complete.");
        self.sample("fathom_complete_ratio", &[], found.ratio().unwrap_or(1.0));
        self.metric("fathom_complete", "Whether the inventory is complete.");
        self.sample("fathom_complete", &[], u8::from(found.is_complete()));
        self.metric("fathom_scan_end_timestamp_seconds", "Time at which the scan ended.");
        self.sample("fathom_scan_end_timestamp_seconds", &[], manifest.end);
        self.metric("fathom_scan_duration_seconds", "Time that the scan took.");
        self.sample("fathom_scan_duration_seconds", &[], manifest.end.saturating_sub(manifest.start).max(0));
    }
}

/// Escapes a label value as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
