//! Advice on simulated machines. The time of every arm is given, so the expected advice is known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fathom_bench::Workload;
use fathom_bench::advise::{
    Advice, AdviceEnd, AdviceOptions, HostProbe, NopCosts, SampleSource, Strategy, Verdict, advise, text,
    validate,
};
use fathom_bench::arms::Arm;
use fathom_bench::fixture::{CacheState, Cell};
use fathom_bench::runner::{self, RunOutcome};
use fathom_bench::stats::Random;
use fathom_bench::{Error, Op, Row, Run};

/// More than any of these runs takes by its clock.
const TIME_MAX: Duration = Duration::from_secs(7200);
/// Number of cells of an advice run.
const CELLS: usize = 15;

/// A simulated machine. `us` gives the microseconds of an operation of an arm.
struct Machine {
    /// The clock, which moves by this for each sample, so that the machine's load has no effect on
    /// the advice.
    now: Instant,
    sample_takes: Duration,
    /// Whether samples have the operations of their cells, and take that time by the clock, too.
    is_sized: bool,
    us: fn(&Cell, &Arm) -> f64,
    /// The share by which a sample may take more or less time.
    noise: f64,
    stays_warm: Option<String>,
    /// The error that a cell fails with, if any.
    fails: fn(&Cell) -> Option<Error>,
    /// Number of samples after which the run is interrupted.
    samples_max: usize,
    /// Number of samples by cell and arm.
    samples: BTreeMap<(String, String), u32>,
    load: f64,
}

impl Machine {
    fn new(us: fn(&Cell, &Arm) -> f64) -> Self {
        Self {
            now: Instant::now(),
            sample_takes: Duration::ZERO,
            is_sized: false,
            us,
            noise: 0.02,
            stays_warm: None,
            fails: |_| None,
            samples_max: usize::MAX,
            samples: BTreeMap::new(),
            load: 0.1,
        }
    }

    fn sample(&mut self, cell: &Cell, arm: &Arm, name: &str, block: u32, seed: u64) -> Row {
        *self.samples.entry((cell.label(), arm.name.clone())).or_default() += 1;
        self.now += self.sample_takes;
        let mut random = Random::substream(seed, stream(&format!("{} {name} {block}", cell.label())));
        let noise = 1.0 + self.noise * (random.below(1000) as f64 / 500.0 - 1.0);
        let (us, ops) = ((self.us)(cell, arm) * noise, if self.is_sized { operations(cell) } else { 1000 });
        if self.is_sized {
            self.now += Duration::from_secs_f64(us * ops as f64 / 1e6);
        }
        // An operation of more than 50 us waits for the storage for all but 5 us.
        let cpu_us = if us > 50.0 { 5.0 } else { us };
        Row {
            workload: cell.workload.name().to_owned(),
            lang: "rust".to_owned(),
            method: name.to_owned(),
            model: arm.model_name().to_owned(),
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
        self.samples.values().sum()
    }
}

impl SampleSource for Machine {
    fn now(&self) -> Instant {
        self.now
    }

    fn probe(&mut self) -> HostProbe {
        let nops = NopCosts { inline_us: 0.3, handed_over_us: 9.0, handed_over_deep_us: 2.0 };
        HostProbe { cpus: 2, nops: Some(nops), writes_are_handed_over: Some(true), load: Some(self.load) }
    }

    fn is_stopped(&mut self) -> bool {
        self.samples() as usize >= self.samples_max
    }

    fn stays_warm(&self, cell: &Cell) -> Option<String> {
        let is_file = matches!(cell.workload, Workload::Read | Workload::RandomRead);
        self.stays_warm.clone().filter(|_| cell.cache == CacheState::Cold && !is_file)
    }

    fn measure(
        &mut self,
        cell: &Cell,
        arms: &[Arm],
        blocks: u32,
        seed: u64,
        end: Option<Instant>,
    ) -> Result<RunOutcome, Error> {
        let mut outcome =
            RunOutcome { rows: Vec::new(), unavailable: Vec::new(), blocks, end: runner::RunEnd::Complete };
        if let Some(error) = (self.fails)(cell) {
            outcome.end = runner::RunEnd::Failed(error);
            return Ok(outcome);
        }
        for block in 1..=blocks {
            let again = format!("{} (again)", arms[0].name);
            let named = arms.iter().map(|arm| (arm, arm.name.clone())).chain([(&arms[0], again)]);
            for (arm, name) in named {
                if self.samples() as usize >= self.samples_max || end.is_some_and(|end| self.now >= end) {
                    outcome.end = runner::RunEnd::Interrupted;
                    return Ok(outcome);
                }
                outcome.rows.push(self.sample(cell, arm, &name, block, seed));
            }
        }
        Ok(outcome)
    }
}

/// Returns the number of a stream of random numbers, so that the noise of a sample does not depend
/// on which other arms there are (FNV-1a).
fn stream(name: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

fn operations(cell: &Cell) -> u64 {
    if cell.workload.is_of_tree() { cell.files } else { cell.size.div_ceil(cell.block as u64) }
}

/// The disk answers in 100 us and serves 16 requests in parallel; a hand-off costs 5 us, a call 1
/// us.
fn usual(cell: &Cell, arm: &Arm) -> f64 {
    let depth = (arm.threads * arm.depth) as f64;
    let hop = match arm.model_name() {
        "pool" | "nowait" => 5.0,
        "tokio" | "async-seq" | "async-par" => 20.0,
        "uring" | "uring-registered" if cell.workload.writes() || cell.workload == Workload::Stat => {
            9.0 / depth.min(4.0)
        }
        _ => 0.2,
    };
    let waits = cell.cache == CacheState::Cold || cell.direct || cell.workload == Workload::AppendSync;
    let busy = match arm.model_name() {
        "sync" => 1.0,
        "threads" if !cell.workload.writes() && arm.threads > 1 => 0.6,
        _ => 1.0 + hop,
    };
    if waits { busy + 100.0 / depth.min(16.0) } else { busy }
}

fn advise_on(machine: &mut Machine) -> (Advice, AdviceEnd) {
    advise(
        &AdviceOptions {
            seed: 3,
            scale: 1.0,
            time: Duration::ZERO,
            time_max: TIME_MAX,
            limit: Duration::MAX,
            first_limit: Duration::MAX,
        },
        Run::default(),
        machine,
    )
}

fn unseen() -> AdviceOptions {
    AdviceOptions {
        seed: 77,
        scale: 1.0,
        time: Duration::ZERO,
        time_max: TIME_MAX,
        limit: Duration::MAX,
        first_limit: Duration::MAX,
    }
}

fn method(advice: &Advice, workload: &str, cache: &str) -> String {
    let verdict = advice.verdicts.iter().find(|one| one.workload == workload && one.cache == cache);
    verdict.unwrap_or_else(|| panic!("{workload} {cache}")).method.clone()
}

#[test]
fn advises_what_is_fastest_and_simplest() {
    let mut machine = Machine::new(usual);
    let (advice, end) = advise_on(&mut machine);
    assert!(matches!(end, AdviceEnd::Complete), "{end:?}");
    assert_eq!(advice.verdicts.len(), CELLS);
    assert_eq!(method(&advice, "random-read", "warm"), "threads=8");
    assert_eq!(method(&advice, "random-read", "cold"), "threads=32");
    assert_eq!(
        method(&advice, "stat", "warm"),
        "threads=8",
        "the fewest from eight of those that are as good"
    );
    assert_eq!(method(&advice, "stat", "cold"), "threads=32");
    assert_eq!(method(&advice, "append-sync", "none"), "sync");
    assert_eq!(method(&advice, "write", "none"), "sync");
    assert_eq!(advice.walk_in_flight, Some(32));
    assert!(advice.sentence.starts_with("Use blocking calls for "), "{}", advice.sentence);
    assert!(
        advice
            .sensitivity
            .iter()
            .any(|sentence| sentence.contains(" of the data of stat is not cached: threads=32 instead of ")),
        "{:?}",
        advice.sensitivity
    );
}

#[test]
fn what_a_prediction_rules_out_is_not_measured() {
    let mut machine = Machine::new(usual);
    let (advice, _) = advise_on(&mut machine);
    let cold = advice.verdicts.iter().find(|one| one.workload == "stat" && one.cache == "cold").unwrap();
    let of = |method: &str| cold.candidates.iter().find(|one| one.method == method).unwrap();
    assert_eq!(of("async-seq").measured_us, None);
    assert!(of("async-seq").predicted_us.unwrap() > 100.0);
    assert!(of("threads=32").measured_us.is_some());
    let samples = |cell: &str, arm: &str| machine.samples.get(&(cell.to_owned(), arm.to_owned())).copied();
    assert_eq!(samples(&cold.cell, "async-seq"), None);
    // Three blocks of the first round, and three of the second for an unbeaten arm.
    assert_eq!(samples(&cold.cell, "threads=32"), Some(6));
    assert_eq!(samples(&cold.cell, "threads=8"), Some(3), "beaten in the first round");
    assert_eq!(samples(&cold.cell, "threads=2"), None, "no rival of 32");
}

#[test]
fn more_time_is_used_for_more_blocks_and_never_without_end() {
    let mut machine = Machine::new(usual);
    let ask = AdviceOptions {
        seed: 3,
        scale: 1.0,
        time: Duration::from_secs(3600),
        time_max: TIME_MAX,
        limit: Duration::MAX,
        first_limit: Duration::MAX,
    };
    let (advice, _) = advise(&ask, Run::default(), &mut machine);
    let most = machine.samples.values().max();
    // The baseline runs twice in each block: 3 blocks for its cost, and 15 for the decision.
    assert_eq!(most, Some(&36));
    assert_eq!(advice.verdicts.len(), CELLS);
}

#[test]
fn a_gain_that_the_noise_of_few_blocks_hides_is_measured_once_more() {
    let mut machine = Machine { noise: 0.65, ..Machine::new(usual) };
    // With the noise of this seed, 15 blocks do not show that walks gain from threads.
    let ask = AdviceOptions { seed: 7, time: Duration::from_secs(3600), ..unseen() };
    let (advice, _) = advise(&ask, Run::default(), &mut machine);
    assert_eq!(method(&advice, "walk", "warm"), "threads=8");
    // 12 further blocks, in each of which the baseline runs twice; 36 samples without them.
    let is_of_walk = |(cell, _): &&(String, String)| cell.starts_with("walk ") && cell.ends_with(", warm");
    let walks = machine.samples.iter().filter(|(key, _)| is_of_walk(key)).map(|(_, count)| *count);
    assert_eq!(walks.max(), Some(60), "{:?}", machine.samples);
}

#[test]
fn no_difference_is_reported() {
    let (advice, end) = advise_on(&mut Machine::new(|_, _| 100.0));
    assert!(matches!(end, AdviceEnd::Complete));
    assert_eq!(advice.sentence, "Tie: keep blocking calls; no model is faster here.");
    assert!(advice.verdicts.iter().all(|verdict| !verdict.matters && verdict.ratio.is_none()));
    assert!(text(&advice).contains("all others"));
}

#[test]
fn cells_that_cannot_be_measured_are_listed() {
    let mut machine = Machine::new(usual);
    machine.stays_warm = Some("only root can".to_owned());
    machine.fails = |cell| {
        (cell.direct || cell.workload == Workload::Copy).then(|| Error::new(Op::Execute, "x", "EINVAL"))
    };
    let (advice, end) = advise_on(&mut machine);
    assert!(matches!(end, AdviceEnd::Complete));
    let left_out: Vec<&str> = advice.left_out.iter().map(|left| left.reason.as_str()).collect();
    let cold = ["only root can"; 4];
    assert_eq!(
        left_out,
        [&["cannot execute 'x': EINVAL"][..], &cold, &["cannot execute 'x': EINVAL"]].concat()
    );
    assert_eq!(advice.verdicts.len(), CELLS - 4 - 1);
    assert!(text(&advice).contains("  stat 50000 files, cold: only root can\n"));
    // Without measurements by depth there are no predictions, so all candidates are measured.
    assert_eq!(method(&advice, "random-read", "cold"), "threads=32");
}

/// On a loaded machine no question was answered: the time went to what all of them need first.
#[test]
fn the_most_valuable_questions_are_answered_first() {
    let mut machine = Machine::new(usual);
    machine.sample_takes = Duration::from_secs(1);
    let ask = AdviceOptions {
        seed: 3,
        scale: 1.0,
        time: Duration::ZERO,
        time_max: Duration::from_secs(180),
        limit: Duration::MAX,
        first_limit: Duration::MAX,
    };
    let (advice, end) = advise(&ask, Run::default(), &mut machine);
    assert!(matches!(end, AdviceEnd::Complete));
    let answered: Vec<String> = advice.verdicts.iter().map(Verdict::title).collect();
    assert_eq!(answered[0], "stat, cold");
    assert!(advice.verdicts.len() < CELLS, "{answered:?}");
    assert_eq!(advice.left_out.len(), CELLS - advice.verdicts.len());
    assert!(advice.left_out.iter().all(|left| left.reason == "not measured: out of time"));
    // Even a run without time answers one.
    machine.sample_takes = Duration::from_secs(1000);
    assert_eq!(advise(&ask, Run::default(), &mut machine).0.verdicts.len(), 1);
}

/// Once, the first line was about du, list and scan, from 1 of 15 answers, and said nothing of the
/// load.
#[test]
fn a_machine_in_use_is_said_first_and_half_an_answer_is_none() {
    let mut machine = Machine::new(usual);
    (machine.sample_takes, machine.load) = (Duration::from_secs(1), 22.3);
    let [ask, unlimited] = [250, 100_000].map(|seconds| AdviceOptions {
        seed: 3,
        scale: 1.0,
        time: Duration::ZERO,
        time_max: TIME_MAX,
        limit: Duration::from_secs(seconds),
        first_limit: Duration::from_secs(seconds),
    });
    let begun = machine.now;
    let (advice, end) = advise(&ask, Run::default(), &mut machine);
    assert!(matches!(end, AdviceEnd::Complete), "{end:?}");
    assert!(machine.now - begun <= Duration::from_secs(251), "no sample begins after the limit");
    let (answered, left_out) = (advice.verdicts.len(), advice.left_out.len());
    assert!((1..CELLS).contains(&answered) && answered + left_out == CELLS, "{answered} {left_out}");
    let text = fathom_bench::advise::text(&advice);
    let first =
        format!("The machine is in use (load 22.3 on 2 CPUs): {left_out} of 15 questions have no answer.\n");
    assert!(text.starts_with(&first), "{text}");
    let is_open = |workload: &str| advice.left_out.iter().any(|left| left.cell.starts_with(workload));
    assert_eq!(advice.commands.iter().any(|line| line.starts_with("du, ")), !is_open("stat "));
    let second = Duration::from_secs(1);
    let none = AdviceOptions { limit: second, first_limit: second, ..ask.clone() };
    assert_eq!(advise(&none, Run::default(), &mut machine).0.verdicts.len(), 0);
    let one = AdviceOptions { first_limit: ask.limit, ..none };
    assert_eq!(advise(&one, Run::default(), &mut machine).0.verdicts.len(), 1);
    // Numbers that are all noise are no answer either.
    let mut machine = Machine::new(usual);
    machine.noise = 0.9;
    let advice = advise(&unlimited, Run::default(), &mut machine).0;
    let noisy = advice.left_out.iter().filter(|left| left.reason.contains("differ by up to")).count();
    assert!(noisy > 0 && advice.verdicts.len() == CELLS - noisy, "{:?}", advice.left_out);
    assert!(!fathom_bench::advise::text(&advice).contains("in use"));
}

/// A cold question on a slow device took the time of all others: 6 of 15 were answered.
#[test]
fn a_slow_device_gets_fewer_operations_so_that_all_questions_are_answered() {
    let slow: fn(&Cell, &Arm) -> f64 = |cell, arm| {
        let waits = cell.cache == CacheState::Cold || cell.direct || cell.workload == Workload::AppendSync;
        usual(cell, arm) * if waits { 10.0 } else { 1.0 }
    };
    let ask = AdviceOptions {
        seed: 3,
        scale: 1.0,
        time: Duration::from_secs(120),
        time_max: Duration::from_secs(165),
        limit: Duration::MAX,
        first_limit: Duration::MAX,
    };
    let mut machine = Machine::new(slow);
    (machine.is_sized, machine.sample_takes) = (true, Duration::from_millis(20));
    let begun = machine.now;
    let (advice, end) = advise(&ask, Run::default(), &mut machine);
    assert!(matches!(end, AdviceEnd::Complete));
    assert_eq!(advice.verdicts.len(), CELLS, "{:?}", advice.left_out);
    let took = machine.now - begun;
    assert!(took < Duration::from_secs(180), "{took:?}");
    let share = |workload, cache| {
        let of = |one: &&Verdict| one.workload == workload && one.cache == cache;
        advice.verdicts.iter().find(of).unwrap().operations_share
    };
    assert!(share("stat", "cold") < 0.1 && share("stat", "warm") == 1.0);
    // Both use the same files.
    assert_eq!(share("stat", "cold"), share("walk", "cold"));
    let mut machine = Machine::new(|_, _| 0.5);
    machine.is_sized = true;
    let (advice, _) = advise(&ask, Run::default(), &mut machine);
    assert!(advice.verdicts.iter().all(|verdict| verdict.operations_share == 1.0));
}

#[test]
fn wrong_data_ends_the_advice_run() {
    let mut machine = Machine::new(usual);
    machine.fails = |cell| (cell.workload == Workload::Write).then(|| Error::new(Op::Verify, "x", "byte 7"));
    let (advice, end) = advise_on(&mut machine);
    assert!(
        matches!(&end, AdviceEnd::Failed(error) if error.to_string() == "cannot verify 'x': byte 7"),
        "{end:?}"
    );
    assert!(!advice.run.rows.is_empty(), "what was measured before is kept");
}

#[test]
fn an_interrupted_advice_has_what_is_known() {
    let all = {
        let mut machine = Machine::new(usual);
        advise_on(&mut machine);
        machine.samples() as usize
    };
    let mut machine = Machine::new(usual);
    machine.samples_max = all / 2;
    let (advice, end) = advise_on(&mut machine);
    assert!(matches!(end, AdviceEnd::Interrupted));
    assert!((1..CELLS).contains(&advice.verdicts.len()), "{}", advice.verdicts.len());
    assert!(text(&advice).contains("a cached read of 4 KiB"));
    let mut machine = Machine::new(usual);
    machine.samples_max = 10;
    assert_eq!(advise_on(&mut machine).0.sentence, "No question was answered.");
}

#[test]
fn validation_tells_good_advice_from_fixed_choices() {
    let mut machine = Machine::new(usual);
    let (advice, _) = advise_on(&mut machine);
    let (validation, end) = validate(&advice.verdicts, &unseen(), 5, &mut machine);
    assert!(matches!(end, AdviceEnd::Complete));
    assert_eq!(validation.regrets.len(), 2 * CELLS * Strategy::ALL.len());
    let worst = |strategy| validation.worst(strategy).unwrap();
    assert!(worst(Strategy::Advice) < 0.06, "{}", worst(Strategy::Advice));
    assert!(worst(Strategy::AlwaysBlocking) > 5.0);
    assert!(worst(Strategy::AlwaysUring) > 1.0, "writes are handed over");
    assert!(validation.median(Strategy::Advice) <= validation.median(Strategy::AlwaysThreads));
    let poor = advice.verdicts.iter().map(|verdict| Verdict { method: "sync".to_owned(), ..verdict.clone() });
    let (poor, _) = validate(&poor.collect::<Vec<_>>(), &unseen(), 3, &mut machine);
    assert_eq!(poor.worst(Strategy::Advice), poor.worst(Strategy::AlwaysBlocking));
}

#[test]
fn advice_is_the_same_for_the_same_numbers_and_survives_json() {
    let once = advise_on(&mut Machine::new(usual)).0;
    let json = serde_json::to_string(&once).unwrap();
    assert_eq!(json, serde_json::to_string(&advise_on(&mut Machine::new(usual)).0).unwrap());
    let read: Advice = serde_json::from_str(&json).unwrap();
    assert_eq!((&read.sentence, &read.sensitivity), (&once.sentence, &once.sensitivity));
    assert_eq!(read.run.rows.len(), once.run.rows.len());
}
