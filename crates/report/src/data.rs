//! The data of a page as JSON. Every list and every text is bounded, so the page is.

use std::collections::HashMap;

use fathom_inventory::store::{Inventory, Manifest};
use fathom_questions::top::outline::Outline;
use fathom_questions::top::{
    AGE_LABELS, GroupKey, QueryError, ReportKind, ReportOptions, ReportRow, SIZE_LABELS, UsageReport,
    UsageSum, report,
};

use crate::errors::ErrorSummary;
use crate::growth::Growth;
use crate::json::JsonText;
use crate::nodes::{self, NodesByPath};
use crate::{TOTALS, kinds, totals_of};

/// The most rows of a table.
const ROWS_MAX: usize = 50;
/// The most roots in the title, and options of the scan.
const ROOTS_MAX: usize = 8;
const OPTIONS_MAX: usize = 40;
/// The most bytes of a path, and of another text.
const PATH_BYTES_MAX: usize = 1_000;
const TEXT_BYTES_MAX: usize = 300;

/// The largest directories and files, which need not be nodes of the map.
pub(crate) struct LargestRows {
    dirs: UsageReport,
    files: UsageReport,
}

impl LargestRows {
    pub(crate) fn read(inventory: &Inventory, now: i64) -> Result<Self, QueryError> {
        let largest = |by| report(inventory, &ReportOptions { by, count: ROWS_MAX, below: None, now });
        Ok(Self { dirs: largest(ReportKind::Dir)?, files: largest(ReportKind::File)? })
    }
}

/// Everything that a page shows.
pub(crate) struct PageData<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) outline: Outline,
    pub(crate) totals: Vec<UsageReport>,
    pub(crate) largest: LargestRows,
    pub(crate) growth: Option<Growth>,
    pub(crate) errors: ErrorSummary,
    pub(crate) fetches: Option<&'a str>,
}

impl PageData<'_> {
    pub(crate) fn json(&self) -> String {
        let mut json = JsonText::default();
        json.object(|json| {
            json.key("maker").text(concat!("fathom ", env!("CARGO_PKG_VERSION")).as_bytes());
            write_manifest(self.inventory.manifest(), json);
            match self.fetches {
                Some(name) => json.key("fetches").text(name.as_bytes()),
                None => json.key("fetches").null(),
            }
            json.key("total").numbers(numbers(&self.outline.total));
            match &self.outline.ignored {
                Some(sum) => json.key("ignored").numbers(numbers(sum)),
                None => json.key("ignored").null(),
            }
            json.key("kinds").array(kinds::LABELS, |json, label| json.text(label.as_bytes()));
            json.key("ages").array(AGE_LABELS, |json, label| json.text(label.as_bytes()));
            json.key("by").object(|json| self.write_totals(json));
            json.key("ownerIds").numbers(self.owners().map(|id| id.map_or(-1, i64::from)));
            nodes::write(&self.outline, &self.owner_rows(), self.fetches.is_some(), json.key("nodes"));
            let nodes = NodesByPath::new(&self.outline);
            for (name, report) in [("topDirs", &self.largest.dirs), ("topFiles", &self.largest.files)] {
                json.key(name).array(&report.rows, |json, row| write_largest(row, &nodes, json));
            }
            self.errors.write(json.key("errors"));
            match &self.growth {
                Some(growth) => growth.write(&nodes, json.key("growth")),
                None => json.key("growth").null(),
            }
        });
        json.into_string()
    }

    /// Writes the totals by owner, extension, kind, age and size.
    fn write_totals(&self, json: &mut JsonText) {
        for by in TOTALS {
            let rows = totals_of(&self.totals, by).rows.iter().take(ROWS_MAX);
            json.key(by.word()).array(rows, |json, row| write_row(&label(row), &row.sum, json));
        }
        json.key("kind").array(self.kinds(), |json, (label, sum)| write_row(label.as_bytes(), &sum, json));
    }

    /// Returns the rows of the table of owners by owner.
    fn owner_rows(&self) -> HashMap<u32, usize> {
        self.owners().enumerate().filter_map(|(at, id)| Some((id?, at))).collect()
    }

    /// Iterates over the owners in the rows of their table.
    fn owners(&self) -> impl Iterator<Item = Option<u32>> {
        let rows = totals_of(&self.totals, ReportKind::User).rows.iter().take(ROWS_MAX);
        rows.map(|row| if let GroupKey::Id(id) = row.key { Some(id) } else { None })
    }

    /// Returns the totals by kind, the largest first, then the total of directories.
    fn kinds(&self) -> Vec<(&'static str, UsageSum)> {
        let mut sums: Vec<_> = kinds::LABELS.into_iter().zip(self.outline.kinds).collect();
        let by_extension = &totals_of(&self.totals, ReportKind::Ext).rows;
        let dirs = by_extension.iter().find(|row| matches!(row.key, GroupKey::Directory));
        let dirs = dirs.map(|row| row.sum).unwrap_or_default();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.allocated));
        sums.push(("Directories", dirs));
        sums.retain(|(_, sum)| sum.entries > 0);
        sums
    }
}

fn numbers(sum: &UsageSum) -> [u64; 3] {
    [sum.allocated, sum.apparent, sum.entries]
}

/// Writes the path, the node of the directory or of the file's directory, and the sums.
fn write_largest(row: &ReportRow, nodes: &NodesByPath<'_>, json: &mut JsonText) {
    let path = &row.text;
    let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let node = nodes.find(path).or_else(|| nodes.find(&path[..slash.max(1).min(path.len())]));
    json.array([()], |json, ()| {
        json.short_text(path, PATH_BYTES_MAX);
        json.number(node.map_or(-1, |node| i64::try_from(node).unwrap_or(-1)));
        numbers(&row.sum).into_iter().for_each(|number| json.number(number));
    });
}

fn write_row(label: &[u8], sum: &UsageSum, json: &mut JsonText) {
    json.array([()], |json, ()| {
        json.short_text(label, TEXT_BYTES_MAX);
        numbers(sum).into_iter().for_each(|number| json.number(number));
    });
}

/// Returns the label of a row as `fathom top` prints it.
fn label(row: &ReportRow) -> Vec<u8> {
    let class = |labels: &[&str], at: usize| labels.get(at).copied().unwrap_or("(unknown)").into();
    match row.key {
        GroupKey::Id(id) if row.text.is_empty() => id.to_string().into_bytes(),
        GroupKey::NoExtension => b"(none)".to_vec(),
        GroupKey::Directory => b"(directory)".to_vec(),
        GroupKey::Other => b"(other)".to_vec(),
        GroupKey::Unknown => b"(unknown)".to_vec(),
        GroupKey::Age(at) => class(&AGE_LABELS, at),
        GroupKey::Size(at) => class(&SIZE_LABELS, at),
        GroupKey::Path | GroupKey::Extension | GroupKey::Id(_) | GroupKey::Type(_) | GroupKey::Depth(_) => {
            row.text.clone()
        }
    }
}

fn write_manifest(manifest: &Manifest, json: &mut JsonText) {
    json.key("tool").short_text(manifest.tool.as_bytes(), TEXT_BYTES_MAX);
    json.key("host").short_text(manifest.host.as_bytes(), TEXT_BYTES_MAX);
    json.key("roots").number(manifest.roots.len());
    json.key("title").array(manifest.roots.iter().take(ROOTS_MAX), |json, root| {
        json.short_text(&root.bytes(), PATH_BYTES_MAX);
    });
    json.key("start").number(manifest.start);
    json.key("end").number(manifest.end);
    json.key("options").array(manifest.options.iter().take(OPTIONS_MAX), |json, (name, value)| {
        json.array([name, value], |json, text| json.short_text(text.as_bytes(), TEXT_BYTES_MAX));
    });
    let reused = manifest.since.as_ref();
    json.key("reused").array(reused, |json, since| {
        json.short_text(since.path.as_bytes(), PATH_BYTES_MAX);
        json.number(since.directories);
        json.number(since.entries);
    });
    let found = &manifest.completeness;
    json.key("complete").number(found.is_complete());
    let ratio = found.ratio().map(|ratio| format!("{:.4} % of the directories", ratio * 100.0));
    match ratio {
        Some(ratio) => json.key("ratio").text(ratio.as_bytes()),
        None => json.key("ratio").null(),
    }
    json.key("completeness").object(|json| {
        for (name, number) in [
            ("complete", found.complete),
            ("partial", found.partial),
            ("failed", found.failed),
            ("skipped", found.skipped),
            ("unknown_entries", found.unknown_entries),
            ("unknown_values", found.unknown_values),
            ("missing_roots", found.missing_roots),
            ("clamped_times", found.clamped_times),
        ] {
            json.key(name).number(number);
        }
        let stopped = found.stopped.as_deref().unwrap_or_default();
        json.key("stopped").short_text(stopped.as_bytes(), TEXT_BYTES_MAX);
    });
}
