//! Runs for tests: a small one, and any.

use fathom_bench::{ArmSummary, Interval, Noise, Row, Run, UnavailableArm};
use proptest::prelude::*;

/// Builds a run of two arms on two cells.
pub(crate) fn small() -> Run {
    let interval = |median: f64| Interval { median, low: median * 0.98, high: median * 1.02 };
    let mut run = Run { schema: 1, blocks: 3, command: "fathom bench read".into(), ..Run::default() };
    run.notes = vec!["A note.".into()];
    run.machine = vec![("cpu".into(), "one".into())];
    run.unavailable =
        vec![UnavailableArm { lang: "rust".into(), method: "uring".into(), reason: "no".into() }];
    for cache in ["warm", "cold"] {
        for (method, threads, ratio) in [("pread", 2, Some(interval(0.5))), ("blocking", 1, None)] {
            run.arms.push(ArmSummary {
                cell: format!("read, {cache}"),
                lang: "rust".into(),
                method: method.into(),
                model: "threads".into(),
                threads,
                depth: 1,
                cache: cache.into(),
                runs: 6,
                seconds: interval(if threads == 2 { 1.0 } else { 2.0 }),
                ratio,
                among_best: threads == 2,
                bytes_per_s: 1e9 * f64::from(threads),
                p50_us: Some(4.0),
                ..ArmSummary::default()
            });
        }
        for block in 1..=3 {
            run.rows.push(Row {
                workload: "read".into(),
                cell: format!("read, {cache}"),
                lang: "rust".into(),
                method: "pread".into(),
                model: "threads".into(),
                threads: 2,
                depth: 1,
                cache: cache.into(),
                block,
                seconds: if block == 3 { 2.0 } else { 1.0 },
                discarded: if (block, cache) == (3, "cold") { "steal".into() } else { String::new() },
                ..Row::default()
            });
        }
        run.noise.push(Noise {
            cell: format!("read, {cache}"),
            method: "blocking".into(),
            ratio: interval(1.0),
            floor: 0.02,
        });
    }
    run
}

/// Any number that JSON has, with preference for plausible ones.
fn number() -> impl Strategy<Value = f64> {
    let any = any::<f64>().prop_map(|number| if number.is_finite() { number } else { 1.0 });
    prop_oneof![any, 1e-3..1e3, Just(0.0), Just(-1.0), Just(5e-324), Just(f64::MAX)]
}

/// Any interval. One of few values has no ends.
fn interval() -> impl Strategy<Value = Interval> {
    let ends = prop_oneof![[number(), number()], Just([f64::NAN; 2])];
    (number(), ends).prop_map(|(median, [low, high])| Interval { median, low, high })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", any::<String>(), "[<>&\"'/a-z_ =-]{0,12}"]
}

fn summary() -> impl Strategy<Value = ArmSummary> {
    let names =
        (prop_oneof!["read, (warm|cold)", name()], name(), name(), prop_oneof!["(warm|cold)", name()]);
    let ratios = (interval(), prop::option::of(interval()), prop::option::of(interval()), any::<bool>());
    let numbers = prop::collection::vec(number(), 8);
    (names, ratios, numbers, any::<u32>(), any::<u32>(), 0..3_u32).prop_map(
        |(names, ratios, numbers, threads, depth, runs)| ArmSummary {
            cell: names.0,
            lang: names.1.clone(),
            method: names.2.clone(),
            model: names.2,
            threads,
            depth,
            cache: names.3,
            runs,
            seconds: ratios.0,
            ratio: ratios.1,
            ratio_to_best: ratios.2,
            among_best: ratios.3,
            bytes_per_s: numbers[0],
            ops_per_s: numbers[1],
            cpu_s_per_gb: Some(numbers[2]),
            cpu_s_per_million_ops: numbers[3],
            p50_us: Some(numbers[4]),
            p95_us: Some(numbers[5]),
            p99_us: (runs > 1).then_some(numbers[6]),
            punted: Some(numbers[7]),
            ..ArmSummary::default()
        },
    )
}

/// Any run.
pub(crate) fn any_run() -> impl Strategy<Value = Run> {
    let arms = prop::collection::vec(summary(), 0..6);
    let samples =
        prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), number(), name()), 0..12);
    (arms, samples, number(), name()).prop_map(|(arms, samples, floor, text)| {
        let row = |(at, block, seconds, discarded): (prop::sample::Index, u32, f64, String)| {
            let arm: &ArmSummary = at.get(&arms);
            let workload = arm.cell.split(' ').next().unwrap().to_owned();
            let cell = arm.cell.clone();
            let (lang, method, model) = (arm.lang.clone(), arm.method.clone(), arm.model.clone());
            let (threads, depth, cache) = (arm.threads, arm.depth, arm.cache.clone());
            Row {
                workload,
                cell,
                lang,
                method,
                model,
                threads,
                depth,
                cache,
                block,
                seconds,
                discarded,
                ..Row::default()
            }
        };
        let rows = if arms.is_empty() { Vec::new() } else { samples.into_iter().map(row).collect() };
        let noise =
            arms.iter().map(|arm| Noise { cell: arm.cell.clone(), floor, ..Noise::default() }).collect();
        let machine = vec![(text.clone(), text.clone())];
        Run { notes: vec![text.clone()], command: text, machine, noise, rows, arms, ..Run::default() }
    })
}
