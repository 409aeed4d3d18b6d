//! The runner: order of samples, discards and repetitions, and the end of a run.

use std::cell::Cell;

use fathom_bench::runner::{
    Executor, NOT_VERIFIED, Progress, RunEnd, RunObserver, RunOutcome, RunPlan, UNFINISHED, run,
};
use fathom_bench::{ArmName, Error, Op, Row};

use crate::simulated::{arm, row};

/// Replaces the row of a sample; `None` keeps the good row.
type Twist = Box<dyn Fn(&ArmName, u32) -> Option<Result<Row, Error>>>;

/// An executor that logs its calls.
struct Mock {
    asked: Vec<String>,
    twist: Twist,
}

impl Mock {
    fn new(twist: impl Fn(&ArmName, u32) -> Option<Result<Row, Error>> + 'static) -> Self {
        Self { asked: Vec::new(), twist: Box::new(twist) }
    }

    fn good() -> Self {
        Self::new(|_, _| None)
    }
}

impl Executor for Mock {
    fn execute(&mut self, arm: &ArmName, block: u32) -> Result<Row, Error> {
        self.asked.push(format!("{block}{}", arm.method));
        // Like a real executor, it knows neither the names of copies nor the number of blocks.
        (self.twist)(arm, block).unwrap_or_else(|| Ok(row(&arm.method, 0, 1.0)))
    }
}

/// An observer that logs progress and stops the run before sample number `stop_at`.
struct Notes {
    next: Vec<String>,
    stop_at: usize,
    asked: usize,
}

impl Notes {
    fn new(stop_at: usize) -> Self {
        Self { next: Vec::new(), stop_at, asked: 0 }
    }
}

impl RunObserver for Notes {
    fn next(&mut self, progress: &Progress<'_>) {
        let Progress { block, blocks, arm, done, left } = progress;
        self.next.push(format!("{block}/{blocks} {} {done}+{left}", arm.method));
    }

    fn stop(&mut self) -> bool {
        self.asked += 1;
        self.asked > self.stop_at
    }
}

fn plan(blocks: u32) -> RunPlan {
    RunPlan::new(["a", "b", "c"].map(arm).to_vec(), arm("a"), blocks, 1)
}

fn ran(mock: &mut Mock, blocks: u32) -> RunOutcome {
    run(&plan(blocks), mock, &mut Notes::new(usize::MAX))
}

/// Formats block, method and reason of each sample.
fn said(outcome: &RunOutcome) -> Vec<String> {
    let text = |row: &Row| format!("{}{} {}", row.block, row.method, row.discarded);
    outcome.rows.iter().map(|row| text(row).trim_end().to_owned()).collect()
}

#[test]
fn the_order_is_that_of_the_seed() {
    let outcome = ran(&mut Mock::good(), 3);
    assert!(matches!(outcome.end, RunEnd::Complete));
    assert_eq!(outcome.blocks, 3);
    let expected =
        ["1a (again)", "1c", "1a", "1b", "2a", "2a (again)", "2b", "2c", "3a", "3b", "3c", "3a (again)"];
    assert_eq!(said(&outcome), expected);
}

#[test]
fn each_block_has_each_arm_once_and_the_baseline_twice() {
    let outcome = ran(&mut Mock::good(), 200);
    let mut first_places = [0; 4];
    for block in outcome.rows.chunks(4) {
        let mut methods: Vec<&str> = block.iter().map(|row| row.method.as_str()).collect();
        first_places[["a", "a (again)", "b", "c"].iter().position(|name| *name == methods[0]).unwrap()] += 1;
        methods.sort_unstable();
        assert_eq!(methods, ["a", "a (again)", "b", "c"]);
    }
    assert!(first_places.iter().all(|count| (30..70).contains(count)), "{first_places:?}");
}

#[test]
fn an_arm_of_fewer_blocks_is_in_the_first_ones_and_a_baseline_with_its_copy() {
    let mut plan = plan(3);
    plan.fewer_blocks = [(arm("a"), 1), (arm("b"), 2)].into();
    let outcome = run(&plan, &mut Mock::good(), &mut Notes::new(usize::MAX));
    let mut samples = said(&outcome);
    samples.sort_unstable();
    assert_eq!(samples, ["1a", "1a (again)", "1b", "1c", "2b", "2c", "3c"]);
}

#[test]
fn the_executor_knows_nothing_of_copies() {
    let mut mock = Mock::good();
    ran(&mut mock, 1);
    assert_eq!(mock.asked, ["1a", "1c", "1a", "1b"]);
}

/// Returns a modified good row of `arm`.
fn changed(arm: &ArmName, change: fn(&mut Row)) -> Option<Result<Row, Error>> {
    let mut row = row(&arm.method, 0, 1.0);
    change(&mut row);
    Some(Ok(row))
}

#[test]
fn a_disturbed_sample_is_repeated_three_times_at_the_end_of_its_block_and_then_counts() {
    let mut mock = Mock::new(|arm, block| {
        (arm.method == "c" && block == 1).then(|| changed(arm, |row| row.steal = 0.021)).flatten()
    });
    let outcome = ran(&mut mock, 2);
    let steal = "1c steal above 2 %";
    let expected = ["1a (again)", steal, "1a", "1b", steal, steal, "1c", "2a", "2a (again)", "2b", "2c"];
    assert_eq!(said(&outcome), expected);
    assert_eq!(outcome.blocks, 2);
    assert_eq!(outcome.rows[6].disturbed, "steal above 2 %");
}

#[test]
fn on_a_machine_in_use_all_the_time_samples_count_as_they_are() {
    let mut mock =
        Mock::new(|arm, _| changed(arm, |row| row.disturbed = "other processes wrote to the device".into()));
    let outcome = ran(&mut mock, 6);
    let counted = |row: &&Row| row.discarded.is_empty();
    assert_eq!(outcome.rows.iter().filter(counted).count(), 6 * 4);
    assert_eq!(outcome.rows.len(), 6 * 4 + 3, "only exceptions are repeated");
    let found = fathom_bench::summary::summarise(&outcome.rows, "cell", &arm("a"), 1);
    let warning = "others used the machine during 24 of 24 samples, which count: other processes wrote to the device (24)";
    assert_eq!(found.warnings, [warning]);
}

#[test]
fn a_sample_in_the_wrong_cache_state_never_counts() {
    let mut mock = Mock::new(|arm, _| changed(arm, |row| row.cached_before = Some(0.98)));
    let outcome = ran(&mut mock, 1);
    assert_eq!(outcome.rows.len(), 4 * 4);
    assert!(outcome.rows.iter().all(|row| row.discarded.starts_with("less than 99 %")));
}

#[test]
fn a_repeated_sample_that_is_good_is_the_last_of_its_arm() {
    let is_first = Cell::new(true);
    let mut mock = Mock::new(move |arm, _| {
        let is_bad = arm.method == "c" && is_first.replace(false);
        is_bad.then(|| changed(arm, |row| row.cached_before = Some(0.98))).flatten()
    });
    let outcome = ran(&mut mock, 1);
    let warm = "1c less than 99 % was cached in a warm sample";
    assert_eq!(said(&outcome), ["1a (again)", warm, "1a", "1b", "1c"]);
}

#[test]
fn each_rule_discards_what_it_names_and_nothing_at_its_limit() {
    let reason = |cache: &'static str, cached_before: Option<f64>, steal: f64| {
        let sample = move |arm: &ArmName| Row {
            cache: cache.into(),
            cached_before,
            steal,
            ..row(&arm.method, 0, 1.0)
        };
        ran(&mut Mock::new(move |arm, _| Some(Ok(sample(arm)))), 1).rows[0].discarded.clone()
    };
    let (cold, warm) =
        ("more than 1 % was cached in a cold sample", "less than 99 % was cached in a warm sample");
    assert_eq!(reason("warm", None, 0.02), "");
    assert_eq!(reason("warm", None, 0.03), "steal above 2 %");
    assert_eq!(reason("warm", Some(0.99), 0.0), "");
    assert_eq!(reason("warm", Some(0.98), 0.0), warm);
    assert_eq!(reason("cold", Some(0.01), 0.0), "");
    assert_eq!(reason("cold", Some(0.02), 0.0), cold);
    assert_eq!(reason("cold", None, 0.0), "");
    assert_eq!(reason("none", Some(0.5), 0.0), "");
}

#[test]
fn an_arm_that_cannot_run_is_left_out_and_the_others_keep_their_order() {
    let mut mock = Mock::new(|arm, _| {
        (arm.method == "b").then(|| Err(Error::new(Op::Start, "b", "io_uring is forbidden here")))
    });
    let outcome = ran(&mut mock, 2);
    assert!(matches!(outcome.end, RunEnd::Complete));
    assert_eq!(said(&outcome), ["1a (again)", "1c", "1a", "2a", "2a (again)", "2c"]);
    assert_eq!(mock.asked, ["1a", "1c", "1a", "1b", "2a", "2a", "2c"]);
    let [gone] = &outcome.unavailable[..] else { panic!("{:?}", outcome.unavailable) };
    assert_eq!([&gone.lang, &gone.method, &gone.reason], ["rust", "b", "io_uring is forbidden here"]);
}

#[test]
fn without_its_baseline_a_run_has_no_copy_either() {
    let mut mock =
        Mock::new(|arm, _| (arm.method == "a").then(|| Err(Error::new(Op::Start, "a", "no such thing"))));
    let outcome = ran(&mut mock, 1);
    assert_eq!(said(&outcome), ["1c", "1b"]);
    assert_eq!(outcome.unavailable.len(), 1);
}

#[test]
fn a_failure_ends_the_run_and_keeps_the_blocks_before() {
    let mut mock = Mock::new(|arm, block| {
        (arm.method == "c" && block == 2).then(|| Err(Error::new(Op::Execute, "c", "no space")))
    });
    let outcome = ran(&mut mock, 3);
    let RunEnd::Failed(error) = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!(error.to_string(), "cannot execute 'c': no space");
    assert_eq!(outcome.blocks, 1);
    let unfinished = |sample: &str| format!("{sample} {UNFINISHED}");
    assert_eq!(said(&outcome)[..4], ["1a (again)", "1c", "1a", "1b"]);
    assert_eq!(said(&outcome)[4..], ["2a", "2a (again)", "2b"].map(unfinished));
}

#[test]
fn wrong_data_ends_the_run_and_does_not_count() {
    let mut mock =
        Mock::new(|arm, _| (arm.method == "c").then(|| changed(arm, |row| row.verified = false)).flatten());
    let outcome = ran(&mut mock, 3);
    let RunEnd::Failed(error) = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!(error.op(), Op::Verify);
    assert_eq!(error.to_string(), "cannot verify 'rust c': the data read back differs from what was written");
    assert_eq!(outcome.rows.last().unwrap().discarded, NOT_VERIFIED);
    assert!(outcome.rows.iter().all(|row| !row.discarded.is_empty()));
}

#[test]
fn a_sample_without_a_time_ends_the_run() {
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut mock = Mock::new(move |arm, _| Some(Ok(row(&arm.method, 0, seconds))));
        let outcome = ran(&mut mock, 1);
        assert!(matches!(&outcome.end, RunEnd::Failed(error) if error.op() == Op::Execute), "{seconds}");
    }
}

#[test]
fn an_interrupted_run_keeps_its_whole_blocks() {
    let mut notes = Notes::new(6);
    let outcome = run(&plan(5), &mut Mock::good(), &mut notes);
    assert!(matches!(outcome.end, RunEnd::Interrupted));
    assert_eq!(outcome.blocks, 1);
    let counted = outcome.rows.iter().filter(|row| row.discarded.is_empty());
    assert!(counted.map(|row| row.block).eq([1; 4]));
    assert_eq!(outcome.rows.len(), 6);
    let expected =
        ["1/5 a (again) 0+4", "1/5 c 1+3", "1/5 a 2+2", "1/5 b 3+1", "2/5 a 0+4", "2/5 a (again) 1+3"];
    assert_eq!(notes.next, expected);
}

/// Ctrl-C in a terminal also interrupts the process of the sample.
#[test]
fn a_sample_that_fails_because_of_an_interrupt_is_not_a_failure() {
    let mut mock = Mock::new(|_, _| Some(Err(Error::new(Op::Execute, "b", "ended by SIGINT"))));
    let outcome = run(&plan(1), &mut mock, &mut Notes::new(1));
    assert!(matches!(outcome.end, RunEnd::Interrupted), "{outcome:?}");
    assert_eq!(outcome.blocks, 0);
}

#[test]
fn a_stop_after_the_last_sample_changes_nothing() {
    let outcome = run(&plan(1), &mut Mock::good(), &mut Notes::new(4));
    assert!(matches!(outcome.end, RunEnd::Complete));
}
