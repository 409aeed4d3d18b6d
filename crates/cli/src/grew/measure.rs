//! The growth between two inventories: of each line, of everything, a day, and until the filesystem
//! is full.

use fathom_inventory::store::Inventory;
use fathom_questions::diff::{DiffOptions, DirGrowth, Sides, grown};
use fathom_questions::top::{GroupKey, QueryError, ReportKind};
use fathom_scans::history::{FilesystemSpace, GroupGrowth, free_space, group_growth};

use super::args::GrewBy;

pub(super) const DAY_SEC: f64 = 86_400.0;
const HOUR_SEC: f64 = 3600.0;

/// The growth of what a line is about.
pub(super) struct GrowthLine {
    pub(super) key: GroupKey,
    /// The path of a directory, or the text of the group.
    pub(super) text: Vec<u8>,
    pub(super) allocated: i64,
    pub(super) apparent: i64,
    pub(super) entries: i64,
    /// Whether both inventories have everything that belongs to it.
    pub(super) complete: bool,
}

/// The growth between two inventories.
pub(super) struct GrowthMeasure {
    pub(super) by: GrewBy,
    pub(super) rows: Vec<GrowthLine>,
    pub(super) total: GrowthLine,
    /// The trees that only one of the inventories has.
    pub(super) unmatched: Vec<Vec<u8>>,
    /// The starts of the scans, in seconds since 1970.
    pub(super) times: Sides<i64>,
    /// The space of the filesystem, or why it is unknown.
    pub(super) space: Result<FilesystemSpace, &'static str>,
    /// Whether both inventories are complete.
    pub(super) complete: bool,
}

impl GrowthMeasure {
    pub(super) fn of(inventories: &Sides<&Inventory>, by: GrewBy, lines: usize) -> Result<Self, QueryError> {
        let start = |inventory: &Inventory| inventory.manifest().start;
        let is_complete = |inventory: &Inventory| inventory.manifest().completeness.is_complete();
        let Sides { old, new } = inventories;
        let times = Sides { old: start(old), new: start(new) };
        let (rows, total, unmatched) = match by {
            GrewBy::Dir => dirs(inventories, lines)?,
            by => groups(inventories, by.kind(), lines)?,
        };
        let complete = is_complete(old) && is_complete(new) && unmatched.is_empty();
        Ok(Self { by, rows, total, unmatched, times, space: free_space(inventories)?, complete })
    }

    /// Returns the days between the scans.
    pub(super) fn days(&self) -> f64 {
        self.times.new.saturating_sub(self.times.old) as f64 / DAY_SEC
    }

    /// Returns what a growth is a day; `None` if the second scan did not begin an hour after the
    /// first: the rate of a moment says nothing about a day.
    pub(super) fn per_day(&self, bytes: i64) -> Option<f64> {
        let days = self.days();
        (days * DAY_SEC >= HOUR_SEC).then(|| bytes as f64 / days)
    }

    /// Returns the days until the filesystem is full at this rate; `None` if it is unknown or
    /// nothing grows.
    pub(super) fn days_until_full(&self) -> Option<f64> {
        let rate = self.per_day(self.total.allocated).filter(|rate| *rate > 0.0)?;
        self.space.as_ref().ok().map(|space| space.available as f64 / rate)
    }
}

/// The lines, the total, and the trees that are not compared.
type Measured = (Vec<GrowthLine>, GrowthLine, Vec<Vec<u8>>);

fn dirs(inventories: &Sides<&Inventory>, lines: usize) -> Result<Measured, QueryError> {
    let options = DiffOptions { below: None, scratch: std::env::temp_dir() };
    let report = grown(inventories, &options, lines)?;
    let line = |row: DirGrowth| GrowthLine {
        key: GroupKey::Path,
        text: row.path,
        allocated: row.allocated,
        apparent: row.apparent,
        entries: row.entries,
        complete: row.complete,
    };
    let unmatched = [report.unmatched.old, report.unmatched.new].concat();
    Ok((report.rows.into_iter().map(line).collect(), line(report.total), unmatched))
}

fn groups(inventories: &Sides<&Inventory>, by: ReportKind, lines: usize) -> Result<Measured, QueryError> {
    let report = group_growth(inventories, by, lines)?;
    let line = |row: GroupGrowth| GrowthLine {
        key: row.key,
        text: row.text,
        allocated: row.allocated,
        apparent: row.apparent,
        entries: row.entries,
        complete: true,
    };
    Ok((report.rows.into_iter().map(line).collect(), line(report.total), Vec::new()))
}
