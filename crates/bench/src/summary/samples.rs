//! The samples of a cell by arm and block.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::stats::median;
use crate::{ArmName, Row};

/// The logarithm of a ratio for each block in which both samples are counted.
pub(super) type LogRatios = Vec<Option<f64>>;

/// The samples of a cell.
pub(super) struct CellSamples<'a> {
    /// Number of blocks with a counted sample.
    pub(super) blocks: usize,
    pub(super) arms: Vec<ArmSamples<'a>>,
}

/// The samples of an arm.
pub(super) struct ArmSamples<'a> {
    pub(super) name: ArmName,
    /// The first sample, for the parameters, which are the same in all of them.
    pub(super) first: &'a Row,
    /// The counted samples.
    pub(super) rows: Vec<&'a Row>,
    /// [`Row::compared_s`] of the counted sample of each block.
    pub(super) seconds: Vec<Option<f64>>,
    pub(super) discarded: u32,
}

impl<'a> CellSamples<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let blocks: BTreeSet<u32> = rows.iter().filter(|row| counts(row)).map(|row| row.block).collect();
        let indexes: BTreeMap<u32, usize> = blocks.iter().copied().zip(0..).collect();
        let mut by_arm: BTreeMap<ArmName, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_arm.entry(ArmName::of(row)).or_default().push(row);
        }
        let arms =
            by_arm.into_iter().filter_map(|(name, rows)| ArmSamples::of(name, &rows, &indexes)).collect();
        Self { blocks: blocks.len(), arms }
    }
}

impl<'a> ArmSamples<'a> {
    fn of(name: ArmName, all: &[&'a Row], indexes: &BTreeMap<u32, usize>) -> Option<Self> {
        let first = *all.first()?;
        let rows: Vec<&Row> = all.iter().copied().filter(|row| counts(row)).collect();
        let mut seconds = vec![None; indexes.len()];
        for row in &rows {
            seconds[indexes[&row.block]] = Some(row.compared_s());
        }
        let discarded = (all.len() - rows.len()) as u32;
        Some(Self { name, first, rows, seconds, discarded })
    }

    /// Returns the sort key: the median of the seconds, or infinity without a counted sample.
    pub(super) fn sort_key(&self) -> f64 {
        let known: Vec<f64> = self.seconds.iter().flatten().copied().collect();
        median(&known).unwrap_or(f64::INFINITY)
    }

    pub(super) fn by_name(&self, other: &Self) -> Ordering {
        let key = |arm: &Self| (arm.name.method.clone(), arm.name.lang.clone());
        key(self).cmp(&key(other))
    }

    pub(super) fn log_ratios_to(&self, other: &Self) -> LogRatios {
        let pairs = self.seconds.iter().zip(&other.seconds);
        pairs.map(|(own, other)| Some((own.as_ref()? / other.as_ref()?).ln())).collect()
    }
}

/// Returns whether a sample is counted. A time of zero, infinity or NaN has no usable ratio.
pub(super) fn counts(row: &Row) -> bool {
    row.discarded.is_empty() && row.compared_s().is_finite() && row.compared_s() > 0.0
}
