//! Sensitivity of the verdicts: the share of cache misses, the storage latency, the file size and
//! the number of processors at which another arm would be better. Each threshold is computed from
//! this machine's measurements.

use fathom_io::Model;

use super::cells::READ_BYTES;
use super::costs::CostConstants;
use super::verdict::Verdict;
use crate::arms::BASELINE;
use crate::report::significant;

/// A hand-off that costs at most this fraction of the work is negligible.
const SMALL_SHARE: f64 = 0.05;
/// The lowest miss rate that the text prints as a number. Below it, any miss changes the verdict.
const SHARE_MIN: f64 = 0.001;
/// A pool does not pay if its waits overlap by less than this factor.
const OVERLAP_MIN: f64 = 1.5;

/// Returns one sentence for each condition that would change `verdicts`.
pub(super) fn sensitivity(constants: &CostConstants, verdicts: &[Verdict]) -> Vec<String> {
    let mut found: Vec<String> = pairs(verdicts).filter_map(|(warm, cold)| misses(warm, cold)).collect();
    found.extend(latency(constants));
    found.extend(size(constants, verdicts));
    found.extend(processors(constants, verdicts));
    found.extend(polling(constants));
    found
}

/// Pairs the warm and the cold verdict of each workload.
fn pairs(verdicts: &[Verdict]) -> impl Iterator<Item = (&Verdict, &Verdict)> {
    let warm = verdicts.iter().filter(|verdict| verdict.cache == "warm");
    warm.filter_map(|warm| {
        let is_its_cold = |cold: &&Verdict| cold.workload == warm.workload && cold.cache == "cold";
        Some((warm, verdicts.iter().find(is_its_cold)?))
    })
}

/// Computes the miss rate above which the arm that is best for cold files is the better choice;
/// `None` if both verdicts name the same arm.
fn misses(warm: &Verdict, cold: &Verdict) -> Option<String> {
    if warm.method == cold.method {
        return None;
    }
    let us = |verdict: &Verdict, method: &str| {
        let found = verdict.candidates.iter().find(|candidate| candidate.method == method)?;
        found.measured_us.or(found.predicted_us)
    };
    let loss = us(warm, &cold.method)? - us(warm, &warm.method)?;
    let gain = us(cold, &warm.method)? - us(cold, &cold.method)?;
    let share = loss.max(0.0) / (loss.max(0.0) + gain);
    let part = match share > SHARE_MIN {
        true => format!("more than {} %", significant(share * 100.0, 2)),
        false => "any".to_owned(),
    };
    let (workload, instead, usual) = (&warm.workload, &cold.method, &warm.method);
    (gain > 0.0)
        .then(|| format!("{part} of the data of {workload} is not cached: {instead} instead of {usual}"))
}

/// Computes the latency above which handing a read to a pool pays. The hand-off counts with its CPU
/// time only, because hand-offs of concurrent reads overlap.
fn latency(constants: &CostConstants) -> Option<String> {
    let hop_us = constants.warm("pool=32")?.cpu_us - constants.warm(BASELINE)?.cpu_us;
    let overlap = constants.overlap(false, 32)?;
    let from_us = hop_us / (1.0 - 1.0 / overlap);
    (hop_us > 0.0 && overlap > OVERLAP_MIN).then(|| {
        format!(
            "reads wait for more than {} us on average: hand them to a pool of 32 threads (a hand-off takes {} us of CPU time here)",
            significant(from_us, 2),
            significant(hop_us, 2)
        )
    })
}

/// Computes the file size above which the cost of a hand-off is negligible.
fn size(constants: &CostConstants, verdicts: &[Verdict]) -> Option<String> {
    let hop_us = constants.overhead_us("pool=1")?;
    let read = verdicts.iter().find(|verdict| verdict.workload == "read" && verdict.cache == "warm")?;
    let blocking = read.candidates.iter().find(|one| one.method == BASELINE)?.measured_us?;
    let bytes_per_us = READ_BYTES as f64 / blocking;
    let from_kib = hop_us / SMALL_SHARE * bytes_per_us / 1024.0;
    (hop_us > 0.0).then(|| {
        format!(
            "cached files are larger than {} KiB: one hand-off per file costs less than {} %, and does not matter",
            significant(from_kib, 2),
            SMALL_SHARE * 100.0
        )
    })
}

/// Reports workloads for which threads win on a warm cache: their gain comes from the number of
/// processors.
fn processors(constants: &CostConstants, verdicts: &[Verdict]) -> Option<String> {
    let is_theirs = |verdict: &&Verdict| verdict.cache != "cold" && verdict.is_of(Model::Threads(None));
    let titles: Vec<String> = verdicts.iter().filter(is_theirs).map(Verdict::title).collect();
    let gain = 1.0 / constants.parallel()?;
    (!titles.is_empty() && constants.cpus > 1 && gain > 1.0 + SMALL_SHARE).then(|| {
        format!(
            "there is one CPU instead of {}: blocking calls for {} (more CPUs make threads faster here, random reads {} times)",
            constants.cpus,
            titles.join("; "),
            significant(gain, 2)
        )
    })
}

/// Reports that SQPOLL is no candidate on a machine with few processors.
fn polling(constants: &CostConstants) -> Option<String> {
    (constants.cpus <= 2 && constants.nops.is_some()).then(|| {
        "there are more than two CPUs: a ring that the kernel polls (SQPOLL) would be tried; here it would take a CPU from the work".to_owned()
    })
}

/// Returns the number of threads for a walk whose calls wait for the storage; `None` if the walk's
/// own adaptation is as good.
pub(super) fn walk_in_flight(constants: &CostConstants, verdicts: &[Verdict]) -> Option<u32> {
    let is_cold = |verdict: &&Verdict| verdict.cache == "cold" && verdict.workload == "stat";
    if let Some(cold) = verdicts.iter().find(is_cold) {
        return cold.is_of(Model::Threads(None)).then_some(cold.threads);
    }
    // The smallest number of threads within 10 % of the best time.
    let of_threads = constants.direct_read.iter().filter(|cost| cost.is_of(Model::Threads(None)));
    let best = of_threads.clone().map(|cost| cost.wall_us).min_by(f64::total_cmp)?;
    let enough = of_threads.filter(|cost| cost.wall_us <= best * (1.0 + 2.0 * SMALL_SHARE));
    enough.map(|cost| cost.in_flight).min()
}
