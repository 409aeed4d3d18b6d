//! Comparison of two saved runs.

use fathom_bench::stats::Random;
use fathom_bench::summary::summarise;
use fathom_bench::{ArmSummary, Interval, Run, TimeChange, compare};

use crate::simulated::{arm as by_name, row};

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

lang  arm          first, seconds     second, seconds                 ratio  change
rust  blocking  2.00 [1.90, 2.10]  1.00 [0.900, 1.10]  0.500 [0.445, 0.557]  faster

stat

lang  arm           first, seconds    second, seconds              ratio  change
rust  blocking  1.00 [0.900, 1.10]  1.15 [1.05, 1.20]  1.15 [1.01, 1.29]  slower

only in the first: rust gone, write
only in the second: rust new, write
";
    let text = compare(&first(), &second()).text();
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn the_comparison_is_also_json() {
    let value = serde_json::to_value(compare(&first(), &second())).unwrap();
    assert_eq!(
        value["conditions"],
        serde_json::json!([{"name": "kernel", "first": "6.1", "second": "6.18"}])
    );
    let arm = &value["arms"][0];
    assert_eq!(
        (&arm["cell"], &arm["method"], &arm["change"]),
        (&"write".into(), &"blocking".into(), &"faster".into())
    );
    assert_eq!((arm["ratio"]["median"].as_f64(), arm["first"]["high"].as_f64()), (Some(0.5), Some(2.1)));
    assert_eq!(value["only_first"][0]["method"], "gone");
    assert_eq!(value["only_second"][0]["method"], "new");
}

/// Two runs of the same arm, many times: the interval of the ratio misses 1 in at most 5 %.
#[test]
fn equal_runs_are_rarely_shown_to_differ() {
    let mut random = Random::new(11);
    let mut sample =
        |block| row("blocking", block, (0.2 * (random.fraction() + random.fraction() - 1.0)).exp());
    let mut shown = 0;
    let times = fathom_cases::count(1_000);
    for _ in 0..times {
        let mut one = || {
            let rows: Vec<_> = (1..=10).map(&mut sample).collect();
            run("6.1", summarise(&rows, "write", &by_name("blocking"), 1).arms)
        };
        let change = compare(&one(), &one()).arms[0].change;
        shown += usize::from(matches!(change, TimeChange::Slower | TimeChange::Faster));
    }
    assert!(shown <= times / 20, "{shown} of {times}");
}

#[test]
fn arms_that_became_slower_are_found_and_unknown_ones_are_not() {
    let with =
        |low: f64, median: f64, high: f64| run("6.1", vec![arm("write", "blocking", median, low, high)]);
    let base = with(0.99, 1.0, 1.01);
    let slower = |second: &Run| compare(&base, second).slower_by(0.05).len();
    assert_eq!(slower(&with(1.09, 1.1, 1.11)), 1);
    assert_eq!(slower(&with(1.03, 1.04, 1.05)), 0, "less than 5 %");
    assert_eq!(slower(&with(0.9, 1.1, 1.3)), 0, "not shown");
    let few = compare(&base, &with(f64::NAN, 2.0, f64::NAN));
    assert_eq!((few.arms[0].change, few.slower_by(0.05).len()), (TimeChange::Unknown, 0));
    assert!(
        few.markdown().contains("| rust | blocking | 1.00 \\[0.990, 1.01\\] | 2.00 | 2.00 | unknown |\n"),
        "{}",
        few.markdown()
    );
}

#[test]
fn markdown_names_missing_arms_and_conditions_and_has_no_foreign_markup() {
    let mut foreign = second();
    foreign.machine = vec![("kernel".into(), "<img src=x>|*".into())];
    foreign.arms.clear();
    let text = compare(&first(), &foreign).markdown();
    assert!(
        text.contains("- the two runs have no arm in common\n") && text.contains("\n- only in the first: ")
    );
    assert!(text.contains("\\<img src=x\\>\\|\\*") && !text.contains(" <img"), "{text}");
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
            found.arms[0].ratio.is_none_or(|ratio| ratio.median.is_finite() && median.is_infinite()),
            "{median}"
        );
        assert!(found.text().contains("blocking"));
    }
}
