//! Statistics of known samples.

use fathom_bench::report::{SCHEMA, from_json, table, to_json};
use fathom_bench::summary::{CellSummary, summarise};
use fathom_bench::{ArmName, ArmSummary, Interval, Row, Run};

use crate::simulated::{arm, row};

fn of(rows: &[Row]) -> CellSummary {
    summarise(rows, "write 1 GB", &arm("sync"), 1)
}

fn find<'a>(cell: &'a CellSummary, method: &str) -> &'a ArmSummary {
    cell.arms.iter().find(|arm| arm.method == method).unwrap_or_else(|| panic!("no {method}"))
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found}, expected {expected}");
}

/// Samples in which every time is multiplied by the block number.
fn drifting(methods: &[(&str, f64)], blocks: u32) -> Vec<Row> {
    let block = |block: u32| {
        methods.iter().map(move |(method, seconds)| row(method, block, seconds * f64::from(block)))
    };
    (1..=blocks).flat_map(block).collect()
}

#[test]
fn ratios_are_within_blocks_so_drift_cancels() {
    let cell = of(&drifting(&[("sync", 1.0), ("sync (again)", 1.0), ("fast", 0.5), ("slow", 2.0)], 11));
    let methods: Vec<&str> = cell.arms.iter().map(|arm| arm.method.as_str()).collect();
    assert_eq!(methods, ["fast", "sync", "slow"]);
    assert_eq!(find(&cell, "sync").ratio, None);
    assert_eq!(find(&cell, "fast").ratio_to_best, None);
    for (method, ratio, to_best) in [("fast", 0.5, 1.0), ("slow", 2.0, 4.0)] {
        let found = find(&cell, method);
        let Interval { median, low, high } = found.ratio.unwrap();
        [median, low, high].into_iter().for_each(|value| near(value, ratio));
        found.ratio_to_best.into_iter().for_each(|interval| near(interval.median, to_best));
        assert_eq!(found.ratio_to_own, found.ratio);
    }
    let seconds = find(&cell, "sync").seconds;
    assert_eq!(seconds, Interval { median: 6.0, low: 2.0, high: 10.0 });
    let noise = cell.noise.unwrap();
    assert_eq!((noise.method.as_str(), noise.ratio.median, noise.floor), ("sync", 1.0, 0.0));
    assert_eq!(cell.warnings, [""; 0]);
}

#[test]
fn the_estimate_of_an_even_number_of_ratios_is_their_geometric_middle() {
    let mut rows = Vec::new();
    for (block, seconds) in (1..).zip([1.0, 2.0, 8.0, 9.0]) {
        rows.extend([row("sync", block, 1.0), row("x", block, seconds)]);
    }
    near(find(&of(&rows), "x").ratio.unwrap().median, 4.0);
}

#[test]
fn discarded_samples_are_counted_but_not_used() {
    let mut rows = drifting(&[("sync", 1.0), ("x", 3.0)], 9);
    let mut bad = row("x", 4, 1000.0);
    bad.discarded = "steal above 2 %".into();
    rows.push(bad.clone());
    rows.retain(|row| row.method != "x" || row.block != 5);
    rows.push(Row { block: 5, ..bad });
    let cell = of(&rows);
    let found = find(&cell, "x");
    assert_eq!((found.runs, found.discarded), (8, 2));
    near(found.ratio.unwrap().high, 3.0);
    near(found.seconds.median, 3.0 * 5.0);
}

#[test]
fn ratios_need_blocks_in_common() {
    let mut rows = drifting(&[("sync", 1.0)], 6);
    rows.extend((7..=9).map(|block| row("x", block, 1.0)));
    let cell = of(&rows);
    assert_eq!(find(&cell, "x").ratio, None);
    assert!(!find(&cell, "x").among_best, "three samples are too few to say so");
    assert_eq!(cell.noise, None);
}

#[test]
fn an_arm_without_a_sample_that_counts_is_last_and_not_among_the_best() {
    let mut rows = drifting(&[("sync", 1.0), ("a", 0.001)], 6);
    rows.iter_mut().filter(|row| row.method == "a").for_each(|row| row.discarded = "steal above 2 %".into());
    let cell = of(&rows);
    let last = cell.arms.last().unwrap();
    assert_eq!((last.method.as_str(), last.runs, last.discarded, last.among_best), ("a", 0, 6, false));
    assert_eq!((last.ratio, last.ratio_to_best), (None, None));
}

#[test]
fn ties_are_broken_by_name() {
    let cell = of(&drifting(&[("c", 1.0), ("sync", 1.0), ("a", 1.0)], 6));
    assert!(cell.arms.iter().map(|arm| arm.method.as_str()).eq(["a", "c", "sync"]));
    assert!(cell.arms.iter().all(|arm| arm.among_best));
}

#[test]
fn an_arm_within_the_margin_stays_among_the_best() {
    let cell = of(&drifting(&[("sync", 1.0), ("a", 1.049), ("b", 1.051)], 11));
    assert!(find(&cell, "a").among_best);
    assert!(!find(&cell, "b").among_best);
}

#[test]
fn a_noise_floor_above_the_margin_takes_its_place() {
    let mut rows = drifting(&[("sync", 1.0), ("x", 1.15)], 11);
    // The copy is slower by 20 %, equal, or faster by 17 % in turn.
    rows.extend(
        (1..=11)
            .map(|block| row("sync (again)", block, f64::from(block) * 1.2_f64.powi((block % 3) as i32 - 1))),
    );
    let cell = of(&rows);
    assert!(cell.noise.as_ref().unwrap().floor > 0.15);
    assert!(find(&cell, "x").among_best);
}

#[test]
fn each_language_has_its_own_blocking() {
    let mut rows = drifting(&[("sync", 1.0), ("pwrite", 0.5)], 7);
    let go: Vec<Row> = drifting(&[("sync", 4.0), ("pwrite", 3.0)], 7);
    rows.extend(go.into_iter().map(|row| Row { lang: "go".into(), ..row }));
    let cell = of(&rows);
    let go = |method: &str| {
        cell.arms
            .iter()
            .find(|arm| ArmName::new(&arm.lang, &arm.method) == ArmName::new("go", method))
            .unwrap()
    };
    near(go("pwrite").ratio_to_own.unwrap().median, 0.75);
    near(go("pwrite").ratio.unwrap().median, 3.0);
    near(go("sync").ratio.unwrap().median, 4.0);
    assert_eq!(go("sync").ratio_to_own, None);
    near(go("sync").ratio_to_best.unwrap().median, 8.0);
}

#[test]
fn rates_are_by_what_was_moved() {
    let mut rows: Vec<Row> =
        [2.0, 1.0, 4.0].into_iter().zip(1..).map(|(seconds, block)| row("sync", block, seconds)).collect();
    for (row, p99) in rows.iter_mut().zip([None, Some(30.0), Some(50.0)]) {
        row.p99_us = p99;
        row.switches = Some(1500);
        row.switches_forced = Some(500);
        row.punted = Some(0.25);
    }
    let cell = of(&rows);
    let found = &cell.arms[0];
    assert_eq!((found.bytes_per_s, found.ops_per_s), (0.5e9, 500.0));
    assert_eq!((found.cpu_s_per_gb, found.cpu_s_per_million_ops), (Some(1.0), 1000.0));
    assert_eq!((found.p50_us, found.p99_us), (None, Some(40.0)));
    assert_eq!((found.switches_per_op, found.punted), (Some(2.0), Some(0.25)));

    rows.iter_mut().for_each(|row| (row.size_bytes, row.ops, row.switches_forced) = (0, 0, None));
    let found = of(&rows).arms.remove(0);
    assert_eq!((found.cpu_s_per_gb, found.cpu_s_per_million_ops, found.switches_per_op), (None, 0.0, None));
}

#[test]
fn warnings_are_reported() {
    let biased = of(&drifting(&[("sync", 1.0), ("sync (again)", 1.5)], 8)).warnings;
    let expected =
        "'sync' differs from its own copy: ratio 1.500 [1.500, 1.500]; do not believe small differences";
    assert_eq!(biased, [expected]);
}

/// With fewer than 6 blocks, two arms were starred and ranked by intervals that showed nothing.
#[test]
fn few_blocks_have_numbers_alone() {
    let few = of(&drifting(&[("sync", 1.0), ("sync (again)", 1.0), ("x", 2.0)], 5));
    assert!(few.arms.iter().all(|arm| !arm.among_best) && few.noise.is_none(), "{few:?}");
    let ratio = find(&few, "x").ratio.unwrap();
    near(ratio.median, 2.0);
    assert!(ratio.low.is_nan() && ratio.high.is_nan());
    let run = Run { schema: SCHEMA, arms: few.arms, ..Run::default() };
    let text = table(&run);
    assert!(text.contains("\nNot decided: 5 blocks are too few; use at least 6, better 20.\n"), "{text}");
    assert!(!text.contains(['*', '[']), "{text}");
    let saved = to_json(&run).unwrap();
    assert!(saved.contains("\"low\": null"), "{saved}");
    assert!(from_json(saved.as_bytes(), "run").unwrap().arms[0].seconds.low.is_nan());
}

#[test]
fn the_cost_of_the_loop_is_of_the_time_of_blocking_calls() {
    let mut rows = drifting(&[("sync", 1.0), ("null", 0.25), ("x", 2.0)], 6);
    rows.iter_mut().for_each(|row| row.ops = 1_000_000);
    let found = of(&rows);
    assert!(found.arms.iter().all(|arm| arm.method != "null"), "its time is no answer");
    let share = found.warnings.iter().find(|warning| warning.starts_with("the loop around the calls takes"));
    assert!(share.is_some_and(|share| share.ends_with("(25.0 %)")), "{:?}", found.warnings);
}

/// In 7 of 8 blocks the arm is slower. The bootstrap interval would exclude 1, although a fair coin
/// gives such a result in 7 % of cases.
#[test]
fn intervals_are_no_narrower_than_the_sign_tests() {
    let mut rows = drifting(&[("sync", 1.0), ("x", 2.0)], 8);
    rows.iter_mut().filter(|row| row.method == "x" && row.block == 3).for_each(|row| row.seconds = 0.3);
    let Interval { median, low, high } = find(&of(&rows), "x").ratio.unwrap();
    near(median, 2.0);
    near(low, 0.1);
    near(high, 2.0);
}

#[test]
fn no_samples_have_an_empty_summary() {
    assert_eq!(of(&[]), CellSummary { warnings: of(&[]).warnings, ..CellSummary::default() });
}

/// A single sample, which was lucky, made all other arms slower than the fastest.
#[test]
fn an_arm_with_few_samples_is_no_measure_for_the_others() {
    let mut rows = drifting(&[("sync", 1.0), ("x", 1.01)], 8);
    rows.push(row("lucky", 1, 0.1));
    let cell = of(&rows);
    let stars: Vec<(&str, bool)> =
        cell.arms.iter().map(|arm| (arm.method.as_str(), arm.among_best)).collect();
    assert_eq!(stars, [("lucky", false), ("sync", true), ("x", true)]);
}

/// A baseline without a sample left its name to another arm, as no arm had a ratio.
#[test]
fn without_a_baseline_no_arm_is_called_that() {
    let mut rows = drifting(&[("sync", 1.0), ("fast", 0.5), ("slow", 2.0)], 8);
    for row in rows.iter_mut().filter(|row| row.method == "sync") {
        row.discarded = "steal above 2 %".into();
    }
    let found = of(&rows);
    let run = Run { arms: found.arms, noise: found.noise.into_iter().collect(), ..Run::default() };
    let text = table(&run);
    assert!(text.contains("no baseline was measured; fast is the fastest."), "{text}");
    assert!(!text.contains("divided by that of"), "{text}");
}

/// The sentence said that nothing was faster than a baseline that was shown to be slower.
#[test]
fn an_arm_loses_its_star_only_if_its_interval_says_so_too() {
    let mut rows = Vec::new();
    for (block, log) in (1..).zip([0.4, 0.4, 0.4, 0.4, 0.4, -0.01_f64]) {
        rows.extend([row("x", block, 1.0), row("sync", block, log.exp())]);
    }
    let cell = of(&rows);
    let base = find(&cell, "sync");
    assert!(base.ratio_to_best.unwrap().low < 1.0 && base.among_best, "{base:?}");
}
