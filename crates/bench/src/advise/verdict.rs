//! The verdict on a cell: the simplest of the arms that are not shown to be slower than the best.

use fathom_io::Model;
use serde::{Deserialize, Serialize};

use crate::report::{CellFinding, baseline_of};
use crate::summary::MARGIN;
use crate::{ArmSummary, Interval, Noise};

/// The largest share by which the advised arm may be slower than the fastest if both are of one
/// model. Arms that are closer change places from one run to the next, and so would the advice.
const GOOD: f64 = 0.15;
/// The same for an arm of a simpler model, which has another cost in each call: less of a
/// difference is by chance.
const GOOD_SIMPLER: f64 = 0.12;
/// The same for an arm that its own interval shows to be slower than the fastest.
const GOOD_SLOWER: f64 = 0.05;
/// Operations in flight below which an arm is not preferred: a few idle threads cost less than a
/// slower moment of a device, or two threads that begin on one processor.
const IN_FLIGHT_MIN: u32 = 8;

/// An arm of a cell with its predicted and its measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The name of the arm.
    pub method: String,
    /// Predicted microseconds of one operation; `None` if the cost model does not apply.
    pub predicted_us: Option<f64>,
    /// Measured microseconds of one operation; `None` if the prediction ruled the arm out.
    pub measured_us: Option<f64>,
}

/// The advice for one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The label of the cell.
    pub cell: String,
    /// See [`crate::Row::workload`].
    pub workload: String,
    /// See [`crate::Row::cache`].
    pub cache: String,
    /// The share of its operations that the cell had: less than 1 if the device is slow.
    #[serde(default)]
    pub operations_share: f64,
    /// The advised arm.
    pub method: String,
    /// The I/O model of the arm.
    pub model: String,
    /// Threads of the arm.
    pub threads: u32,
    /// Operations each thread keeps in flight.
    pub depth: u32,
    /// Time divided by the time of blocking calls; `None` if the arm is blocking calls.
    pub ratio: Option<Interval>,
    /// Time divided by the time of the fastest arm; `None` if the arm is the fastest.
    pub ratio_to_best: Option<Interval>,
    /// Arms that are not shown to be slower than the fastest by more than the margin, the fastest
    /// first.
    pub among_best: Vec<String>,
    /// Whether any arm was measured or predicted to be slower than the fastest by more than the
    /// margin.
    pub matters: bool,
    /// All candidate arms.
    pub candidates: Vec<Candidate>,
}

impl Verdict {
    /// Returns whether the advised arm has this model.
    pub(super) fn is_of(&self, model: Model) -> bool {
        self.model == model.name()
    }

    /// Returns workload and cache state, as in `random-read, cold`.
    #[must_use]
    pub fn title(&self) -> String {
        match self.cache.as_str() {
            "none" => self.workload.clone(),
            cache => format!("{}, {cache}", self.workload),
        }
    }
}

/// Decides between `arms`, which are sorted by time; returns `None` if no sample is counted. If one
/// of them is found to be faster than the baseline, then among the arms that are nearly as fast as
/// the fastest, not shown to be slower, and shown to be faster than the baseline, the simplest
/// model wins, then the arm with the fewest operations in flight, at least eight if any has as
/// many. Otherwise the baseline wins: a gain that may be none is no reason to change.
pub(super) fn verdict(
    arms: &[ArmSummary],
    noise: Option<&Noise>,
    candidates: Vec<Candidate>,
) -> Option<Verdict> {
    let counted: Vec<&ArmSummary> = arms.iter().filter(|arm| arm.runs > 0).collect();
    let margin = noise.map_or(MARGIN, |noise| noise.floor.max(MARGIN));
    let within =
        |arm: &ArmSummary, margin: f64| arm.ratio_to_best.is_none_or(|ratio| ratio.median <= 1.0 + margin);
    // An arm that was not measured was predicted to be much slower.
    let is_ruled_out = |one: &Candidate| one.measured_us.is_none() && one.predicted_us.is_some();
    let matters = counted.iter().any(|arm| !within(arm, margin)) || candidates.iter().any(is_ruled_out);
    let fastest = counted.iter().find(|arm| arm.ratio_to_best.is_none());
    let is_slower = |arm: &ArmSummary| arm.ratio_to_best.is_some_and(|ratio| ratio.low > 1.0);
    let is_good = |arm: &ArmSummary| match matters {
        true if is_slower(arm) => within(arm, GOOD_SLOWER),
        true if fastest.is_some_and(|fastest| fastest.model == arm.model) => within(arm, GOOD),
        true => within(arm, GOOD_SIMPLER),
        false => within(arm, margin),
    };
    let good = counted.iter().filter(|arm| arm.among_best && is_good(arm));
    let baseline = baseline_of(&counted);
    let gains = good.filter(|arm| arm.ratio.is_none_or(|ratio| ratio.high < 1.0));
    let simplest = gains.min_by_key(|arm| {
        let in_flight = arm.threads * arm.depth;
        (complexity(&arm.model), in_flight < IN_FLIGHT_MIN, in_flight)
    });
    let is_faster = matches!(CellFinding::of(arms, noise), CellFinding::Faster(_));
    let pick = simplest.filter(|_| is_faster).copied().or(baseline)?;
    let among_best = counted.iter().filter(|arm| arm.among_best).map(|arm| arm.method.clone()).collect();
    Some(Verdict {
        operations_share: 1.0,
        cell: pick.cell.clone(),
        workload: String::new(),
        cache: pick.cache.clone(),
        method: pick.method.clone(),
        model: pick.model.clone(),
        threads: pick.threads,
        depth: pick.depth,
        ratio: pick.ratio,
        ratio_to_best: pick.ratio_to_best,
        among_best,
        matters,
        candidates,
    })
}

/// Returns the rank of a model in a run, which may be of another version.
fn complexity(model: &str) -> u8 {
    Model::named(model).map_or(u8::MAX, Model::complexity)
}

/// Summarises `verdicts` in one sentence.
#[must_use]
pub fn sentence(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return "No question was answered.".to_owned();
    }
    if verdicts.iter().all(|verdict| is_plain(verdict) && !verdict.matters) {
        return "Tie: keep blocking calls; no model is faster here.".to_owned();
    }
    let mut groups: Vec<(String, Vec<&Verdict>)> = Vec::new();
    for verdict in verdicts {
        let words = words(verdict);
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, group)) => group.push(verdict),
            None => groups.push((words, vec![verdict])),
        }
    }
    groups.sort_by_key(|(_, group)| (!is_plain(group[0]), std::cmp::Reverse(group.len())));
    let parts: Vec<String> = groups.iter().map(|(words, group)| part(words, group)).collect();
    format!("Use {}.", parts.join("; "))
}

fn is_plain(verdict: &Verdict) -> bool {
    verdict.is_of(Model::Sync)
}

/// Formats one clause, as in
/// `32 threads for cold random-read and cold stat (up to 6.3 times as fast as blocking calls)`.
fn part(words: &str, group: &[&Verdict]) -> String {
    let titles: Vec<String> = group.iter().map(|verdict| phrase(verdict)).collect();
    let gain = group.iter().filter_map(|verdict| verdict.ratio).map(|ratio| 1.0 / ratio.median);
    let gain = gain.max_by(f64::total_cmp).filter(|gain| *gain > 1.0 + MARGIN);
    let more = if group.len() > 1 { "up to " } else { "" };
    let gain = gain.map_or(String::new(), |gain| {
        format!(" ({more}{} times as fast as blocking calls)", crate::report::significant(gain, 2))
    });
    format!("{words} for {}{gain}", listed(&titles))
}

fn phrase(verdict: &Verdict) -> String {
    match verdict.cache.as_str() {
        "none" => verdict.workload.clone(),
        cache => format!("{cache} {}", verdict.workload),
    }
}

fn listed(titles: &[String]) -> String {
    match titles {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => titles.concat(),
    }
}

/// Returns a noun phrase for the advised arm.
pub(super) fn words(verdict: &Verdict) -> String {
    let in_flight = verdict.threads * verdict.depth;
    match Model::named(&verdict.model) {
        Some(Model::Sync) => "blocking calls".to_owned(),
        Some(Model::Threads(_)) if in_flight > 1 => format!("{in_flight} threads"),
        Some(Model::Threads(_)) => "blocking calls at explicit offsets".to_owned(),
        Some(Model::Pool) if in_flight > 1 => format!("a pool of {in_flight} threads"),
        Some(Model::Pool) => "a thread for the calls".to_owned(),
        Some(Model::Nowait) => format!("RWF_NOWAIT before a pool of {in_flight} threads"),
        Some(Model::Mmap) => "a memory map".to_owned(),
        Some(Model::Auto) => "fathom's --io auto".to_owned(),
        Some(Model::Uring(_) | Model::UringRegistered | Model::UringPolled) => {
            format!("io_uring with {in_flight} under way ({})", verdict.method)
        }
        Some(Model::CopyFileRange) => "copy_file_range".to_owned(),
        _ => verdict.method.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(method: &str, model: &str, to_best: Option<f64>, among_best: bool) -> ArmSummary {
        let interval = |median: f64| Interval { median, low: median * 0.85, high: median * 1.15 };
        ArmSummary {
            cell: "c".to_owned(),
            method: method.to_owned(),
            model: model.to_owned(),
            cache: "cold".to_owned(),
            runs: 6,
            ratio_to_best: to_best.map(interval),
            ratio: (model != "sync").then(|| interval(0.25)),
            among_best,
            ..ArmSummary::default()
        }
    }

    fn method_of(arms: &[ArmSummary]) -> Option<String> {
        verdict(arms, None, Vec::new()).map(|verdict| verdict.method)
    }

    #[test]
    fn the_simplest_of_the_best_is_advised() {
        let ring = arm("uring=32", "uring", None, true);
        let threads = arm("threads=8", "threads", Some(1.04), true);
        let blocking = arm("sync", "sync", Some(1.2), false);
        assert_eq!(
            method_of(&[ring.clone(), threads.clone(), blocking.clone()]),
            Some("threads=8".to_owned())
        );
        let slower = ArmSummary { among_best: false, ..threads };
        assert_eq!(method_of(&[ring.clone(), slower, blocking]), Some("uring=32".to_owned()));
        assert_eq!(method_of(&[ArmSummary { runs: 0, ..ring }]), None);
        assert_eq!(method_of(&[]), None);
    }

    #[test]
    fn a_gain_whose_interval_holds_one_is_not_advised() {
        let threads = arm("threads=8", "threads", None, true);
        let blocking = arm("sync", "sync", Some(1.2), false);
        let may_be_none = Interval { median: 0.827, low: 0.664, high: 1.25 };
        let unsure = ArmSummary { ratio: Some(may_be_none), ..threads.clone() };
        assert_eq!(method_of(&[unsure.clone(), blocking.clone()]), Some("sync".to_owned()));
        assert_eq!(method_of(&[threads.clone(), blocking]), Some("threads=8".to_owned()));
        // Blocking calls are shown to be slower than the rings, so the rings are advised.
        let slower = arm("sync", "sync", Some(1.4), false);
        let rings = arm("uring=32", "uring", Some(1.01), true);
        assert_eq!(method_of(&[unsure, rings, slower]), Some("uring=32".to_owned()));
    }

    #[test]
    fn close_arms_do_not_change_the_advice_from_run_to_run() {
        let threads = |method: &str, threads, to_best| ArmSummary {
            threads,
            depth: 1,
            ..arm(method, "threads", to_best, true)
        };
        let blocking = arm("sync", "sync", Some(1.6), false);
        let one = [threads("threads=32", 32, None), threads("threads=8", 8, Some(1.13)), blocking.clone()];
        let other = [threads("threads=8", 8, None), threads("threads=32", 32, Some(1.03)), blocking.clone()];
        assert_eq!(
            [method_of(&one), method_of(&other)],
            [Some("threads=8".to_owned()), Some("threads=8".to_owned())]
        );
        // Two threads are no reason to leave eight, unless they are faster by more.
        let two_and_eight =
            |eight| [threads("threads=2", 2, None), threads("threads=8", 8, Some(eight)), blocking.clone()];
        assert_eq!(method_of(&two_and_eight(1.13)), Some("threads=8".to_owned()));
        assert_eq!(method_of(&two_and_eight(1.2)), Some("threads=2".to_owned()));
    }

    #[test]
    fn a_simpler_model_is_advised_if_it_is_closer_than_another_number_of_threads() {
        let blocking = arm("sync", "sync", Some(1.6), false);
        let of = |method: &str, model: &str| {
            let ring = ArmSummary { threads: 1, depth: 64, ..arm("uring=64", "uring", None, true) };
            let other = ArmSummary { threads: 1, depth: 32, ..arm(method, model, Some(1.13), true) };
            method_of(&[ring, other, blocking.clone()])
        };
        assert_eq!(of("pool=32", "pool"), Some("uring=64".to_owned()));
        assert_eq!(of("uring=32", "uring"), Some("uring=32".to_owned()));
    }

    #[test]
    fn an_arm_that_is_shown_to_be_slower_is_advised_only_if_it_is_by_little() {
        let with = |median: f64, low: f64| {
            let ring = arm("uring=32", "uring", None, true);
            let to_best = Some(Interval { median, low, high: median + 0.03 });
            let threads = ArmSummary { ratio_to_best: to_best, ..arm("threads=8", "threads", None, true) };
            method_of(&[ring, threads, arm("sync", "sync", Some(1.6), false)])
        };
        assert_eq!(with(1.09, 1.04), Some("uring=32".to_owned()));
        assert_eq!(with(1.04, 1.01), Some("threads=8".to_owned()));
        assert_eq!(with(1.09, 0.99), Some("threads=8".to_owned()));
    }

    #[test]
    fn equal_arms_yield_no_material_difference() {
        let same = [arm("sync", "sync", None, true), arm("threads=8", "threads", Some(1.03), true)];
        let found = verdict(&same, None, Vec::new()).unwrap();
        assert!(!found.matters);
        assert_eq!(sentence(&[found]), "Tie: keep blocking calls; no model is faster here.");
        let noisy = Noise { floor: 0.3, ..Noise::default() };
        let arms = [arm("sync", "sync", None, true), arm("threads=8", "threads", Some(1.2), true)];
        assert!(!verdict(&arms, Some(&noisy), Vec::new()).unwrap().matters, "below the noise");
        assert!(verdict(&arms, None, Vec::new()).unwrap().matters);
    }

    #[test]
    fn the_sentence_names_what_to_use_for_what() {
        let of =
            |workload: &str, cache: &str, model: &str, method: &str, threads, ratio: Option<f64>| Verdict {
                workload: workload.to_owned(),
                cache: cache.to_owned(),
                model: model.to_owned(),
                method: method.to_owned(),
                threads,
                depth: 1,
                matters: true,
                ratio: ratio.map(|median| Interval { median, low: median, high: median }),
                ..Verdict::default()
            };
        let verdicts = [
            of("random-read", "cold", "threads", "threads=32", 32, Some(0.125)),
            of("write", "none", "sync", "sync", 1, None),
            of("stat", "cold", "threads", "threads=32", 32, Some(0.5)),
            of("read", "warm", "sync", "sync", 1, None),
            of("copy", "warm", "copy-file-range", "copy_file_range", 1, Some(0.75)),
        ];
        assert_eq!(
            sentence(&verdicts),
            "Use blocking calls for write and warm read; 32 threads for cold random-read and cold stat (up to 8.0 times as fast as \
             blocking calls); copy_file_range for warm copy (1.3 times as fast as blocking calls)."
        );
    }
}
