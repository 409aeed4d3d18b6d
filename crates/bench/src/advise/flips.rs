//! What would make the answer another one: misses, slower storage, larger files, fewer processors. Each is computed from what was
//! measured here, and is said with its number.

use super::constants::Constants;
use super::question::READ_BYTES;
use super::verdict::Verdict;
use crate::report::significant;

/// A hand-off that is this part of the work, or less, does not matter.
const SMALL_SHARE: f64 = 0.05;
/// Of misses, this share is met in any work.
const SHARE_MIN: f64 = 0.001;
/// Waits that overlap less than this are not worth a pool.
const OVERLAP_MIN: f64 = 1.5;

/// Sentences, each about something that would change `verdicts`.
pub(super) fn flips(constants: &Constants, verdicts: &[Verdict]) -> Vec<String> {
    let mut found: Vec<String> = pairs(verdicts).filter_map(|(warm, cold)| misses(warm, cold)).collect();
    found.extend(latency(constants));
    found.extend(size(constants, verdicts));
    found.extend(processors(constants, verdicts));
    found.extend(polling(constants));
    found
}

/// The verdicts on the same workload, warm and cold.
fn pairs(verdicts: &[Verdict]) -> impl Iterator<Item = (&Verdict, &Verdict)> {
    let warm = verdicts.iter().filter(|verdict| verdict.cache == "warm");
    warm.filter_map(|warm| {
        let is_its_cold = |cold: &&Verdict| cold.workload == warm.workload && cold.cache == "cold";
        Some((warm, verdicts.iter().find(is_its_cold)?))
    })
}

/// From which share of misses the answer for cold files is the better one, if it is another.
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
        true => format!("more than {} % of it", significant(share * 100.0, 2)),
        false => "any of it".to_owned(),
    };
    let (workload, instead, usual) = (&warm.workload, &cold.method, &warm.method);
    (gain > 0.0).then(|| format!("{workload}: where {part} is not cached, {instead} instead of {usual}"))
}

/// From which latency on a hand-off to a pool pays for waits that overlap. It costs its processor time: hand-offs overlap, too.
fn latency(constants: &Constants) -> Option<String> {
    let hop_us = constants.warm("pool_32")?.cpu_us - constants.warm("blocking")?.cpu_us;
    let overlap = constants.overlap(false, 32)?;
    let from_us = hop_us / (1.0 - 1.0 / overlap);
    (hop_us > 0.0 && overlap > OVERLAP_MIN).then(|| {
        format!(
            "reads that wait for more than {} us in the mean: hand them to a pool of 32 threads (a hand-off takes {} us of processor time here)",
            significant(from_us, 2),
            significant(hop_us, 2)
        )
    })
}

/// From which size on it does not matter that reads are handed over.
fn size(constants: &Constants, verdicts: &[Verdict]) -> Option<String> {
    let hop_us = constants.overhead_us("pool_1")?;
    let read = verdicts.iter().find(|verdict| verdict.workload == "read" && verdict.cache == "warm")?;
    let blocking = read.candidates.iter().find(|one| one.method == "blocking")?.measured_us?;
    let bytes_per_us = READ_BYTES as f64 / blocking;
    let from_kib = hop_us / SMALL_SHARE * bytes_per_us / 1024.0;
    (hop_us > 0.0).then(|| {
        format!(
            "cached files of more than {} KiB read in one go: a hand-off a file to a pool is less than {} % of it, and does not matter",
            significant(from_kib, 2),
            SMALL_SHARE * 100.0
        )
    })
}

/// What threads gain on a warm cache, they gain by processors.
fn processors(constants: &Constants, verdicts: &[Verdict]) -> Option<String> {
    let is_theirs = |verdict: &&Verdict| verdict.cache != "cold" && verdict.model == "threads";
    let titles: Vec<String> = verdicts.iter().filter(is_theirs).map(Verdict::title).collect();
    let gain = 1.0 / constants.parallel()?;
    (!titles.is_empty() && constants.cpus > 1 && gain > 1.0 + SMALL_SHARE).then(|| {
        format!(
            "one processor instead of {}: blocking calls for {} (threads gain by processors here, random reads {} times)",
            constants.cpus,
            titles.join("; "),
            significant(gain, 2)
        )
    })
}

/// Polling is no candidate here, and why.
fn polling(constants: &Constants) -> Option<String> {
    (constants.cpus <= 2 && constants.nops.is_some()).then(|| {
        "more than two processors: a ring that the kernel polls (SQPOLL) would be tried; here it takes one from the work".to_owned()
    })
}

/// How many threads a walk should have once it has to wait for the storage; `None` if those it chooses by itself are as good.
pub(super) fn walk_in_flight(constants: &Constants, verdicts: &[Verdict]) -> Option<u32> {
    let is_cold = |verdict: &&Verdict| verdict.cache == "cold" && verdict.workload == "stat";
    if let Some(cold) = verdicts.iter().find(is_cold) {
        return (cold.model == "threads").then_some(cold.threads);
    }
    // The fewest threads with nearly all there is to gain.
    let of_threads = constants.direct_read.iter().filter(|cost| cost.model == "threads");
    let best = of_threads.clone().map(|cost| cost.wall_us).min_by(f64::total_cmp)?;
    let enough = of_threads.filter(|cost| cost.wall_us <= best * (1.0 + 2.0 * SMALL_SHARE));
    enough.map(|cost| cost.in_flight).min()
}
