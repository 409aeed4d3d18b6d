//! The limits of `--fail-if-grew` and `--fail-if-full-within`, for scripts that alert.

use std::time::Duration;

use fathom_text::human::BlockSize;

use super::measure::{DAY_SEC, GrowthMeasure};

/// Limits of growth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GrowthLimits {
    /// Bytes by which the trees may not have grown.
    pub(super) grew: Option<u64>,
    /// The time within which the filesystem may not be full at this rate.
    pub(super) full_within: Option<Duration>,
}

/// Whether the limits are reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LimitCheck {
    /// A sentence for each limit that is reached.
    pub(super) reached: Vec<String>,
    /// Why a limit could not be checked.
    pub(super) unknown: Option<String>,
}

impl GrowthLimits {
    /// Compares a growth with the limits.
    pub(super) fn check(&self, measure: &GrowthMeasure) -> LimitCheck {
        let mut check = LimitCheck::default();
        if let Some(limit) = self.grew {
            let grown = u64::try_from(measure.total.allocated).unwrap_or(0);
            if grown >= limit {
                let [grown, limit] = [grown, limit].map(|bytes| BlockSize::HUMAN.text(bytes));
                check.reached.push(format!("grew by {grown}, at least {limit}"));
            }
        }
        if let Some(limit) = self.full_within {
            check_space(limit, measure, &mut check);
        }
        check
    }
}

/// Checks whether the filesystem will be full within `limit`.
fn check_space(limit: Duration, measure: &GrowthMeasure, check: &mut LimitCheck) {
    let space = match &measure.space {
        Ok(space) => space,
        Err(why) => return check.unknown = Some((*why).to_owned()),
    };
    if space.available == 0 {
        return check.reached.push("the file system is full".to_owned());
    }
    if measure.per_day(0).is_none() {
        return check.unknown = Some("the scans are less than an hour apart".to_owned());
    }
    let limit_days = limit.as_secs_f64() / DAY_SEC;
    if let Some(days) = measure.days_until_full().filter(|days| *days <= limit_days) {
        check.reached.push(format!("the file system will be full in {days:.1} days"));
    }
}
