//! Comparison of two saved runs.

use fathom_bench::{ArmSummary, Interval, Run, compare};

fn arm(cell: &str, method: &str, median: f64, low: f64, high: f64) -> ArmSummary {
    let seconds = Interval { median, low, high };
    ArmSummary {
        cell: cell.into(),
        lang: "rust".into(),
        method: method.into(),
        seconds,
        ..ArmSummary::default()
    }
}

fn run(kernel: &str, arms: Vec<ArmSummary>) -> Run {
    let machine = vec![("cpu".into(), "x".into()), ("kernel".into(), kernel.into())];
    Run { schema: 1, program: "fathom 0.1.0".into(), machine, arms, ..Run::default() }
}

fn first() -> Run {
    run(
        "6.1",
        vec![
            arm("write", "blocking", 2.0, 1.9, 2.1),
            arm("write", "gone", 1.0, 1.0, 1.0),
            arm("stat", "blocking", 1.0, 0.9, 1.1),
        ],
    )
}

fn second() -> Run {
    run(
        "6.18",
        vec![
            arm("stat", "blocking", 1.15, 1.05, 1.2),
            arm("write", "blocking", 1.0, 0.9, 1.1),
            arm("write", "new", 3.0, 3.0, 3.0),
        ],
    )
}

#[test]
fn medians_are_compared_and_differences_reported() {
    let expected = "\
compared across machines:
  kernel: 6.1, then 6.18

write

lang  arm          first, seconds     second, seconds  ratio  intervals
rust  blocking  2.00 [1.90, 2.10]  1.00 [0.900, 1.10]  0.500  apart

stat

lang  arm           first, seconds    second, seconds  ratio  intervals
rust  blocking  1.00 [0.900, 1.10]  1.15 [1.05, 1.20]   1.15  overlap

only in the first: rust gone, write
only in the second: rust new, write
";
    let text = compare(&first(), &second()).text();
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn the_comparison_is_also_json() {
    let value = serde_json::to_value(compare(&first(), &second())).unwrap();
    let interval =
        |median: f64, low: f64, high: f64| serde_json::json!({"median": median, "low": low, "high": high});
    let expected = serde_json::json!({
        "conditions": [{"name": "kernel", "first": "6.1", "second": "6.18"}],
        "arms": [
            {"cell": "write", "lang": "rust", "method": "blocking", "first": interval(2.0, 1.9, 2.1),
             "second": interval(1.0, 0.9, 1.1), "ratio": 0.5, "overlap": false},
            {"cell": "stat", "lang": "rust", "method": "blocking", "first": interval(1.0, 0.9, 1.1),
             "second": interval(1.15, 1.05, 1.2), "ratio": 1.15, "overlap": true},
        ],
        "only_first": [{"cell": "write", "lang": "rust", "method": "gone"}],
        "only_second": [{"cell": "write", "lang": "rust", "method": "new"}],
    });
    assert_eq!(value, expected);
}

#[test]
fn the_same_machine_is_not_mentioned_and_another_program_is() {
    let run = first();
    assert!(compare(&run, &run).text().starts_with("write\n"));
    let newer = Run { program: "fathom 0.2.0".into(), ..first() };
    assert!(
        compare(&run, &newer)
            .text()
            .starts_with("compared across programs:\n  program: fathom 0.1.0, then fathom 0.2.0\n")
    );
    let silent = Run { machine: Vec::new(), ..first() };
    assert!(compare(&run, &silent).text().contains("  cpu: x, then not said\n"));
}

#[test]
fn runs_without_a_common_arm_say_so() {
    let other = run("6.1", vec![arm("walk", "blocking", 1.0, 1.0, 1.0)]);
    let text = compare(&other, &run("6.1", Vec::new())).text();
    assert_eq!(text, "the two runs have no arm in common\nonly in the first: rust blocking, walk\n");
}

#[test]
fn foreign_numbers_give_no_ratio_instead_of_nonsense() {
    for median in [0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324] {
        let odd = run(
            "6.1",
            vec![arm("write", "blocking", median, median, median), arm("write", "blocking", 1.0, 1.0, 1.0)],
        );
        let found = compare(&odd, &second());
        assert_eq!(found.arms.len(), 1, "the first of a name is taken");
        assert!(
            found.arms[0].ratio.is_none_or(|ratio| ratio.is_finite() && median.is_infinite()),
            "{median}"
        );
        assert!(found.text().contains("blocking"));
    }
}
