//! How much groups of entries have grown between two inventories: by owner, extension or type.

use std::collections::HashMap;

use fathom_inventory::store::Inventory;
use fathom_questions::diff::Sides;
use fathom_questions::top::{
    GroupKey, QueryError, ReportKind, ReportOptions, ReportRow, UsageReport, UsageSum, report,
};

/// The growth of a group of entries. Negative values say that it has shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupGrowth {
    /// The property that the entries share.
    pub key: GroupKey,
    /// The text of the group, as [`GroupKey`] says.
    pub text: Vec<u8>,
    /// The growth in allocated bytes.
    pub allocated: i64,
    /// The growth in apparent size, in bytes.
    pub apparent: i64,
    /// The growth in the number of entries.
    pub entries: i64,
}

/// A report of the growth of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupGrowthReport {
    /// The groups that grew, the largest growth first.
    pub rows: Vec<GroupGrowth>,
    /// The growth of everything.
    pub total: GroupGrowth,
}

/// Reports the `count` groups that grew most, of the groups by which [`fathom_questions::top`]
/// reports `by`. Everything in both inventories is counted, so they should be of the same trees, as
/// [`fathom_questions::diff::unmatched`] tells.
///
/// # Errors
/// If an inventory is damaged.
///
/// ```
/// use fathom_questions::diff::Sides;
/// use fathom_scans::history::group_growth;
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::top::ReportKind;
///
/// let temp = tempfile::tempdir()?;
/// let [old, new] = ["old.inv", "new.inv"].map(|name| temp.path().join(name));
/// scan(&Scan { roots: vec![c"src/store".into()], ..Scan::default() }, &old, &mut ())?;
/// scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &new, &mut ())?;
/// let (old, new) = (Inventory::open(&old)?, Inventory::open(&new)?);
/// let report = group_growth(&Sides { old: &old, new: &new }, ReportKind::Ext, 5)?;
/// assert_eq!(report.rows[0].text, b"rs");
/// assert!(report.rows[0].apparent > 0 && report.rows[0].apparent <= report.total.apparent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn group_growth(
    inventories: &Sides<&Inventory>,
    by: ReportKind,
    count: usize,
) -> Result<GroupGrowthReport, QueryError> {
    let options = ReportOptions { by, count: usize::MAX, below: None, now: 0 };
    let Sides { old, new } = inventories.both(|_, inventory| report(inventory, &options))?;
    let total = growth(GroupKey::Path, Vec::new(), &old.total, &new.total);
    let mut rows: Vec<_> = growths(old, new).filter(|row| row.allocated > 0).collect();
    rows.sort_by(|one, two| {
        (two.allocated, two.apparent)
            .cmp(&(one.allocated, one.apparent))
            .then((one.key, &one.text).cmp(&(two.key, &two.text)))
    });
    rows.truncate(count);
    Ok(GroupGrowthReport { rows, total })
}

/// Returns the growth of each group of the new inventory, and of those that only the old one has.
fn growths(old: UsageReport, new: UsageReport) -> impl Iterator<Item = GroupGrowth> {
    // The name of an owner may have changed; its number is in the key.
    let key = |row: &ReportRow| {
        (row.key, if row.key == GroupKey::Extension { row.text.clone() } else { Vec::new() })
    };
    let mut before: HashMap<_, _> = old.rows.into_iter().map(|row| (key(&row), row)).collect();
    let mut rows: Vec<_> = Vec::with_capacity(new.rows.len());
    for row in new.rows {
        let then = before.remove(&key(&row)).map_or_else(UsageSum::default, |row| row.sum);
        rows.push(growth(row.key, row.text, &then, &row.sum));
    }
    let gone = before.into_values().map(|row| growth(row.key, row.text, &row.sum, &UsageSum::default()));
    rows.into_iter().chain(gone)
}

fn growth(key: GroupKey, text: Vec<u8>, old: &UsageSum, new: &UsageSum) -> GroupGrowth {
    let [allocated, apparent, entries] = new.growth_since(old);
    GroupGrowth { key, text, allocated, apparent, entries }
}
