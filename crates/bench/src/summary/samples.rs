//! Samples by arm and block.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::stats::median;
use crate::{ArmName, Row};

/// Of each block, the logarithm of a ratio, where both samples count.
pub(super) type Logs = Vec<Option<f64>>;

/// Those of a cell.
pub(super) struct Samples<'a> {
    /// Blocks with a sample that counts.
    pub(super) blocks: usize,
    pub(super) arms: Vec<Arm<'a>>,
}

/// Those of an arm.
pub(super) struct Arm<'a> {
    pub(super) name: ArmName,
    /// Any of them: parameters are the same in all.
    pub(super) first: &'a Row,
    /// Those that count.
    pub(super) rows: Vec<&'a Row>,
    /// Of each block, how long its sample took, if one counts.
    pub(super) seconds: Vec<Option<f64>>,
    pub(super) discarded: u32,
}

impl<'a> Samples<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let blocks: BTreeSet<u32> = rows.iter().filter(|row| counts(row)).map(|row| row.block).collect();
        let indexes: BTreeMap<u32, usize> = blocks.iter().copied().zip(0..).collect();
        let mut by_arm: BTreeMap<ArmName, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_arm.entry(ArmName::of(row)).or_default().push(row);
        }
        let arms = by_arm.into_iter().filter_map(|(name, rows)| Arm::of(name, &rows, &indexes)).collect();
        Self { blocks: blocks.len(), arms }
    }
}

impl<'a> Arm<'a> {
    fn of(name: ArmName, all: &[&'a Row], indexes: &BTreeMap<u32, usize>) -> Option<Self> {
        let first = *all.first()?;
        let rows: Vec<&Row> = all.iter().copied().filter(|row| counts(row)).collect();
        let mut seconds = vec![None; indexes.len()];
        for row in &rows {
            seconds[indexes[&row.block]] = Some(row.seconds);
        }
        let discarded = (all.len() - rows.len()) as u32;
        Some(Self { name, first, rows, seconds, discarded })
    }

    /// What arms are sorted by: the median of the seconds, and last those without.
    pub(super) fn rank(&self) -> f64 {
        let known: Vec<f64> = self.seconds.iter().flatten().copied().collect();
        median(&known).unwrap_or(f64::INFINITY)
    }

    pub(super) fn by_name(&self, other: &Self) -> Ordering {
        let key = |arm: &Self| (arm.name.method.clone(), arm.name.lang.clone());
        key(self).cmp(&key(other))
    }

    pub(super) fn logs_to(&self, other: &Self) -> Logs {
        let pairs = self.seconds.iter().zip(&other.seconds);
        pairs.map(|(own, other)| Some((own.as_ref()? / other.as_ref()?).ln())).collect()
    }
}

/// Whether a sample counts. One that took no time, or none that is a number, has no ratio to anything.
fn counts(row: &Row) -> bool {
    row.discarded.is_empty() && row.seconds.is_finite() && row.seconds > 0.0
}
