//! The growth of directories since an earlier inventory.

use std::path::PathBuf;

use fathom_inventory::store::Inventory;
use fathom_questions::diff::{DiffOptions, DirGrowth, GrowthReport, Sides, growth};
use fathom_questions::top::QueryError;

use crate::json::JsonText;
use crate::nodes::NodesByPath;

/// The most directories whose growth is read.
const DIRS_MAX: usize = 20_000;
/// The most rows of the table.
const ROWS_MAX: usize = 50;
/// The most trees that are named because only one of the inventories has them.
const UNMATCHED_MAX: usize = 5;
/// The most bytes of a path.
const PATH_BYTES_MAX: usize = 1_000;
/// The most bytes that the growth of a node takes, with commas.
pub(crate) const NODE_BYTES_MAX: usize = 6 + 21;

/// The growth since an earlier inventory.
pub(crate) struct Growth {
    report: GrowthReport,
    /// The end of the earlier scan, in seconds since 1970.
    since: i64,
}

impl Growth {
    pub(crate) fn read(old: &Inventory, new: &Inventory) -> Result<Self, QueryError> {
        // Growth is computed in memory: no file is written.
        let options = DiffOptions { below: None, scratch: PathBuf::new() };
        let report = growth(&Sides { old, new }, &options, DIRS_MAX)?;
        Ok(Self { report, since: old.manifest().end })
    }

    pub(crate) fn write(&self, nodes: &NodesByPath<'_>, json: &mut JsonText) {
        let found: Vec<_> = self.report.rows.iter().map(|row| (row, nodes.find(&row.path))).collect();
        json.object(|json| {
            json.key("since").number(self.since);
            let total = &self.report.total;
            json.key("total").numbers([total.allocated, total.apparent, total.entries]);
            json.key("rows")
                .array(found.iter().take(ROWS_MAX), |json, (row, node)| write_row(row, *node, json));
            let pairs = found.iter().filter_map(|(row, node)| Some(((*node)?, row.allocated)));
            json.key("nodes").array(pairs, |json, (node, allocated)| {
                json.number(node);
                json.number(allocated);
            });
            json.key("unmatched").object(|json| {
                let unmatched = &self.report.unmatched;
                for (name, paths) in [("old", &unmatched.old), ("new", &unmatched.new)] {
                    json.key(name).array(paths.iter().take(UNMATCHED_MAX), |json, path| {
                        json.short_text(path, PATH_BYTES_MAX);
                    });
                }
            });
        });
    }
}

/// Writes the path, the node, the growth, and whether everything below is known.
fn write_row(row: &DirGrowth, node: Option<usize>, json: &mut JsonText) {
    json.array([()], |json, ()| {
        json.short_text(&row.path, PATH_BYTES_MAX);
        json.number(node.map_or(-1, |node| i64::try_from(node).unwrap_or(-1)));
        json.number(row.allocated);
        json.number(row.apparent);
        json.number(row.entries);
        json.number(row.complete);
    });
}
