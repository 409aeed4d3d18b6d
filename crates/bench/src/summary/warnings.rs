//! Warnings about the statistics of a cell.

use std::collections::BTreeMap;

use super::samples::{ArmSamples, counts};
use crate::{Interval, Noise, Row};

/// With fewer blocks, not even a difference that is the same in every block passes a sign test.
const BLOCKS_MIN: usize = 6;

/// Microseconds below which a random read cannot have come from a disk or a network, only from
/// memory.
const DISK_US: f64 = 20.0;

pub(super) fn of(
    blocks: usize,
    noise: Option<&Noise>,
    base: Option<&ArmSamples<'_>>,
    rows: &[Row],
) -> Vec<String> {
    let few = (blocks < BLOCKS_MIN)
        .then(|| format!("{blocks} blocks are too few to rank by: {BLOCKS_MIN} are the least, 20 are good"));
    let biased = noise.filter(|noise| excludes_one(&noise.ratio)).map(|noise| {
        let Interval { median, low, high } = noise.ratio;
        format!(
            "'{}' differs from its own copy: ratio {median:.3} [{low:.3}, {high:.3}]; do not believe small differences",
            noise.method
        )
    });
    let warm = base.and_then(|base| {
        let is_cold = base.first.workload == "random-read" && base.first.cache == "cold";
        base.median(|row| row.p50_us).filter(|_| is_cold).and_then(warm_on_the_host)
    });
    few.into_iter().chain(biased).chain(warm).chain(disturbed(rows)).collect()
}

/// Describes the use of the machine by others while `rows` were measured.
fn disturbed(rows: &[Row]) -> Option<String> {
    let counted = rows.iter().filter(|row| counts(row)).count();
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| counts(row) && !row.disturbed.is_empty()) {
        *causes.entry(&row.disturbed).or_default() += 1;
    }
    let samples = causes.values().sum::<usize>();
    let causes: Vec<_> = causes.into_iter().map(|(cause, count)| format!("{cause} ({count})")).collect();
    (samples > 0).then(|| {
        let causes = causes.join(", ");
        format!("others used the machine during {samples} of {counted} samples, which count: {causes}")
    })
}

/// Detects reads that are cold in the guest but served from the memory of the virtual machine's
/// host.
fn warm_on_the_host(median_us: f64) -> Option<String> {
    (median_us > 0.0 && median_us < DISK_US).then(|| {
        format!(
            "a cold read took {median_us:.0} us in the median, which no disk does: cold in the guest, warm on the host; this cell \
             says nothing about the disk"
        )
    })
}

fn excludes_one(interval: &Interval) -> bool {
    interval.low > 1.0 || interval.high < 1.0
}

#[cfg(test)]
mod tests {
    use crate::summary::summarise;
    use crate::{ArmName, Row};

    fn warnings(workload: &str, cache: &str, method: &str, p50_us: f64) -> Vec<String> {
        let row = |block| Row {
            lang: "rust".to_owned(),
            workload: workload.to_owned(),
            cache: cache.to_owned(),
            method: method.to_owned(),
            block,
            seconds: 1.0,
            p50_us: Some(p50_us),
            ..Row::default()
        };
        let rows: Vec<Row> = (1..=6).map(row).collect();
        summarise(&rows, "c", &ArmName::new("rust", "blocking"), 1).warnings
    }

    #[test]
    fn cold_reads_that_are_too_fast_for_a_disk_are_reported() {
        let said = warnings("random-read", "cold", "blocking", 7.0).concat();
        assert!(said.contains("took 7 us") && said.contains("warm on the host"), "{said}");
        for (workload, cache, method, p50_us) in [
            ("random-read", "cold", "blocking", 90.0),
            ("random-read", "warm", "blocking", 2.0),
            ("read", "cold", "blocking", 2.0),
            ("random-read", "cold", "iouring_32", 2.0),
        ] {
            assert_eq!(
                warnings(workload, cache, method, p50_us),
                [] as [&str; 0],
                "{workload} {cache} {method}"
            );
        }
    }
}
