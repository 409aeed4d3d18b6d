//! Advice on machines that are made up: what their arms take is known, so it is known what the advice should be.

use std::collections::BTreeMap;
use std::time::Duration;

use fathom_bench::advise::{Advice, Ask, Bench, End, Nops, Probe, Strategy, advise, text, validate};
use fathom_bench::arms::Arm;
use fathom_bench::lab::{Cache, Cell};
use fathom_bench::runner::{self, Outcome};
use fathom_bench::sample::Deed;
use fathom_bench::stats::Random;
use fathom_bench::{Error, Op, Row, Run};

/// Workloads by states of the cache.
const QUESTIONS: usize = 15;

/// A machine on which an operation of an arm takes so many microseconds.
struct Machine {
    us: fn(&Cell, &Arm) -> f64,
    random: Random,
    stays_warm: Option<String>,
    /// What goes wrong in a cell, if anything does.
    fails: fn(&Cell) -> Option<Error>,
    /// Samples after which somebody wants no more.
    patience: usize,
    /// Samples made, by cell and arm.
    made: BTreeMap<(String, String), u32>,
}

impl Machine {
    fn new(us: fn(&Cell, &Arm) -> f64) -> Self {
        let (random, made) = (Random::part(1, 1), BTreeMap::new());
        Self { us, random, stays_warm: None, fails: |_| None, patience: usize::MAX, made }
    }

    fn sample(&mut self, cell: &Cell, arm: &Arm, name: &str, block: u32) -> Row {
        *self.made.entry((cell.label(), arm.name.clone())).or_default() += 1;
        // Two per cent of noise.
        let noise = 0.98 + 0.04 * (self.random.below(1000) as f64 / 1000.0);
        let (us, ops) = ((self.us)(cell, arm) * noise, 1000);
        // A tenth of a millisecond and more is a wait.
        let cpu_us = if us > 50.0 { 5.0 } else { us };
        Row {
            workload: cell.deed.name().to_owned(),
            lang: "rust".to_owned(),
            method: name.to_owned(),
            model: arm.model.to_owned(),
            threads: arm.threads as u32,
            depth: arm.depth as u32,
            cache: cell.cache.name().to_owned(),
            block,
            seconds: us * ops as f64 / 1e6,
            cpu_s: cpu_us * ops as f64 / 1e6,
            ops,
            ops_per_s: 1e6 / us,
            verified: true,
            ..Row::default()
        }
    }

    fn samples(&self) -> u32 {
        self.made.values().sum()
    }
}

impl Bench for Machine {
    fn probe(&mut self) -> Probe {
        let nops = Nops { inline_us: 0.3, handed_over_us: 9.0, handed_over_deep_us: 2.0 };
        Probe {
            cpus: 2,
            nops: Some(nops),
            writes_are_handed_over: Some(true),
            stays_warm: self.stays_warm.clone(),
        }
    }

    fn measure(&mut self, cell: &Cell, arms: &[Arm], blocks: u32, _seed: u64) -> Result<Outcome, Error> {
        let mut outcome =
            Outcome { rows: Vec::new(), unavailable: Vec::new(), blocks, end: runner::End::Complete };
        if let Some(error) = (self.fails)(cell) {
            outcome.end = runner::End::Failed(error);
            return Ok(outcome);
        }
        for block in 1..=blocks {
            let again = format!("{} (again)", arms[0].name);
            let named = arms.iter().map(|arm| (arm, arm.name.clone())).chain([(&arms[0], again)]);
            for (arm, name) in named {
                if self.samples() as usize >= self.patience {
                    outcome.end = runner::End::Interrupted;
                    return Ok(outcome);
                }
                outcome.rows.push(self.sample(cell, arm, &name, block));
            }
        }
        Ok(outcome)
    }
}

/// A disk that answers in 100 us, 16 at a time, and hand-offs of 5 us; calls take 1 us.
fn usual(cell: &Cell, arm: &Arm) -> f64 {
    let depth = (arm.threads * arm.depth) as f64;
    let hop = match arm.model {
        "pool" | "nowait" => 5.0,
        "tokio" | "async-seq" | "async-par" => 20.0,
        "uring" | "uring-registered" if cell.deed.writes() || cell.deed == Deed::Stat => 9.0 / depth.min(4.0),
        _ => 0.2,
    };
    let waits = cell.cache == Cache::Cold || cell.direct || cell.deed == Deed::AppendSync;
    let busy = match arm.model {
        "blocking" | "sync" => 1.0,
        "threads" if !cell.deed.writes() && arm.threads > 1 => 0.6,
        _ => 1.0 + hop,
    };
    if waits { busy + 100.0 / depth.min(16.0) } else { busy }
}

fn ask(machine: &mut Machine) -> (Advice, End) {
    advise(&Ask { seed: 3, scale: 1.0, time: Duration::ZERO }, Run::default(), machine)
}

fn unseen() -> Ask {
    Ask { seed: 77, scale: 1.0, time: Duration::ZERO }
}

fn method(advice: &Advice, workload: &str, cache: &str) -> String {
    let verdict = advice.verdicts.iter().find(|one| one.workload == workload && one.cache == cache);
    verdict.unwrap_or_else(|| panic!("{workload} {cache}")).method.clone()
}

#[test]
fn advises_what_is_fastest_and_simplest() {
    let mut machine = Machine::new(usual);
    let (advice, end) = ask(&mut machine);
    assert!(matches!(end, End::Complete), "{end:?}");
    assert_eq!(advice.verdicts.len(), QUESTIONS);
    assert_eq!(method(&advice, "random-read", "warm"), "8_threads_pread");
    assert_eq!(method(&advice, "random-read", "cold"), "32_threads_pread");
    assert_eq!(method(&advice, "stat", "warm"), "2_threads", "the fewest of those that are as good");
    assert_eq!(method(&advice, "stat", "cold"), "32_threads");
    assert_eq!(method(&advice, "append-sync", "none"), "blocking");
    assert_eq!(method(&advice, "write", "none"), "blocking");
    assert_eq!(advice.walk_in_flight, Some(32));
    assert!(advice.sentence.starts_with("Use blocking calls for "), "{}", advice.sentence);
    assert!(advice.flips.iter().any(|flip| flip.starts_with("stat: where ")), "{:?}", advice.flips);
}

#[test]
fn what_a_prediction_rules_out_is_not_measured() {
    let mut machine = Machine::new(usual);
    let (advice, _) = ask(&mut machine);
    let cold = advice.verdicts.iter().find(|one| one.workload == "stat" && one.cache == "cold").unwrap();
    let of = |method: &str| cold.candidates.iter().find(|one| one.method == method).unwrap();
    assert_eq!(of("async_seq").measured_us, None);
    assert!(of("async_seq").predicted_us.unwrap() > 100.0);
    assert!(of("32_threads").measured_us.is_some());
    let made = |cell: &str, arm: &str| machine.made.get(&(cell.to_owned(), arm.to_owned())).copied();
    assert_eq!(made(&cold.cell, "async_seq"), None);
    // Three blocks, and three more of those that were not beaten in them.
    assert_eq!(made(&cold.cell, "32_threads"), Some(6));
    assert_eq!(made(&cold.cell, "8_threads"), None, "no rival of 32");
}

#[test]
fn more_time_is_used_for_more_blocks_and_never_without_end() {
    let mut machine = Machine::new(usual);
    let ask = Ask { seed: 3, scale: 1.0, time: Duration::from_secs(3600) };
    let (advice, _) = advise(&ask, Run::default(), &mut machine);
    let most = machine.made.values().max();
    // Of the baseline, which is measured twice a block: 3 blocks for the constants, and 15.
    assert_eq!(most, Some(&36));
    assert_eq!(advice.verdicts.len(), QUESTIONS);
}

#[test]
fn no_difference_is_said() {
    let (advice, end) = ask(&mut Machine::new(|_, _| 100.0));
    assert!(matches!(end, End::Complete));
    assert_eq!(advice.sentence, "No material difference: keep what you have.");
    assert!(advice.verdicts.iter().all(|verdict| !verdict.matters && verdict.ratio.is_none()));
    assert!(text(&advice).contains("anything: no material difference"));
}

#[test]
fn what_cannot_be_asked_is_left_out_and_said() {
    let mut machine = Machine::new(usual);
    machine.stays_warm = Some("only root can".to_owned());
    machine.fails =
        |cell| (cell.direct || cell.deed == Deed::Copy).then(|| Error::new(Op::Execute, "x", "EINVAL"));
    let (advice, end) = ask(&mut machine);
    assert!(matches!(end, End::Complete));
    let left_out: Vec<&str> = advice.left_out.iter().map(|left| left.reason.as_str()).collect();
    let cold = ["only root can"; 4];
    assert_eq!(
        left_out,
        [&["cannot execute 'x': EINVAL"][..], &cold, &["cannot execute 'x': EINVAL"]].concat()
    );
    assert_eq!(advice.verdicts.len(), QUESTIONS - 4 - 1);
    assert!(text(&advice).contains("  stat 50000 files, cold: only root can\n"));
    // With no depth known, everything that may be the best is measured.
    assert_eq!(method(&advice, "random-read", "cold"), "32_threads_pread");
}

#[test]
fn wrong_data_ends_it() {
    let mut machine = Machine::new(usual);
    machine.fails = |cell| (cell.deed == Deed::Write).then(|| Error::new(Op::Verify, "x", "byte 7"));
    let (advice, end) = ask(&mut machine);
    assert!(
        matches!(&end, End::Failed(error) if error.to_string() == "cannot verify 'x': byte 7"),
        "{end:?}"
    );
    assert!(!advice.run.rows.is_empty(), "what was measured before is kept");
}

#[test]
fn an_interrupted_advice_has_what_is_known() {
    let all = {
        let mut machine = Machine::new(usual);
        ask(&mut machine);
        machine.samples() as usize
    };
    let mut machine = Machine::new(usual);
    machine.patience = all / 2;
    let (advice, end) = ask(&mut machine);
    assert!(matches!(end, End::Interrupted));
    assert!((1..QUESTIONS).contains(&advice.verdicts.len()), "{}", advice.verdicts.len());
    assert!(text(&advice).contains("a cached read of 4 KiB"));
    let mut machine = Machine::new(usual);
    machine.patience = 10;
    assert_eq!(ask(&mut machine).0.sentence, "No question was answered.");
}

#[test]
fn validation_tells_good_advice_from_fixed_choices() {
    let mut machine = Machine::new(usual);
    let (advice, _) = ask(&mut machine);
    let (validation, end) = validate(&advice.verdicts, &unseen(), 5, &mut machine);
    assert!(matches!(end, End::Complete));
    assert_eq!(validation.regrets.len(), 2 * QUESTIONS * Strategy::ALL.len());
    let worst = |strategy| validation.worst(strategy).unwrap();
    assert!(worst(Strategy::Advice) < 0.06, "{}", worst(Strategy::Advice));
    assert!(worst(Strategy::AlwaysBlocking) > 5.0);
    assert!(worst(Strategy::AlwaysUring) > 1.0, "writes are handed over");
    assert!(validation.median(Strategy::Advice) <= validation.median(Strategy::AlwaysThreads));
    let poor = advice
        .verdicts
        .iter()
        .map(|verdict| fathom_bench::advise::Verdict { method: "blocking".to_owned(), ..verdict.clone() });
    let (poor, _) = validate(&poor.collect::<Vec<_>>(), &unseen(), 3, &mut machine);
    assert_eq!(poor.worst(Strategy::Advice), poor.worst(Strategy::AlwaysBlocking));
}

#[test]
fn advice_is_the_same_for_the_same_numbers_and_survives_json() {
    let once = ask(&mut Machine::new(usual)).0;
    assert!(once == ask(&mut Machine::new(usual)).0);
    let json = serde_json::to_string(&once).unwrap();
    let read: Advice = serde_json::from_str(&json).unwrap();
    assert_eq!((&read.sentence, &read.flips), (&once.sentence, &once.flips));
    assert_eq!(read.run.rows.len(), once.run.rows.len());
}
