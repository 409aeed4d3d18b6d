//! A simulated run of `fathom bench write random-read --html`: seeded random numbers, hostile
//! names.

use fathom_bench::{ArmSummary, Interval, Noise, Row, Run, UnavailableArm};

use crate::support::random::Random;

/// The name of a method that is also markup.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>";
const BLOCKS: u32 = 12;
const WRITE: &str = "write 1 GiB in 4 KiB blocks, warm";

/// Method, model, threads, depth, and time relative to the baseline.
type Arm = (&'static str, &'static str, u32, u32, f64);

const WRITE_ARMS: [Arm; 11] = [
    ("1_threads_pwrite", "threads", 1, 1, 0.704),
    ("10_threads_pwrite", "threads", 10, 1, 0.712),
    ("dd", "dd", 1, 1, 0.958),
    ("blocking", "blocking", 1, 1, 1.0),
    ("100_threads_pwrite", "threads", 100, 1, 1.04),
    ("1_threads_iouring_pwrite_128_entries", "uring", 1, 128, 1.42),
    ("1_threads_iouring_pwrite_1_entries", "uring", 1, 1, 1.71),
    ("10_threads_iouring_pwrite_128_entries", "uring", 10, 128, 2.93),
    ("10_threads_iouring_pwrite_1_entries", "uring", 10, 1, 3.31),
    ("100_threads_iouring_pwrite_128_entries", "uring", 100, 128, 5.2),
    (HOSTILE, "uring", 100, 1, 6.7),
];

/// Returns a number from 0 to 1.
fn share(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

fn near(random: &mut Random, value: f64, spread: f64) -> f64 {
    value * (1.0 + spread * (share(random) - 0.5))
}

/// Builds the run.
pub(crate) fn realistic() -> Run {
    let mut run = Run {
        schema: 1,
        program: "fathom 0.1.0".into(),
        command: "fathom bench write random-read --size 1G --blocks 12 --seed 18446744073709551557 --path '/data/<b>x'"
            .into(),
        started: "2026-11-03T09:12:44Z".into(),
        seed: 18_446_744_073_709_551_557,
        blocks: BLOCKS,
        machine: machine(),
        notes: vec![
            "Cold is cold in this guest only: reads at depth 1 are faster than the device can be, so the host has the file.".into(),
            "The harness took 0.3 % of a sample.".into(),
        ],
        unavailable: vec![
            UnavailableArm {
                lang: "rust".into(),
                method: "1_threads_iouring_sqpoll".into(),
                reason: "cannot set up a ring with SQPOLL: Operation not permitted".into(),
            },
            UnavailableArm { lang: "zig".into(), method: HOSTILE.into(), reason: "no zig on this machine".into() },
        ],
        ..Run::default()
    };
    let mut random = Random::new(run.seed);
    cell(&mut run, &mut random, WRITE, &WRITE_ARMS, 0.82);
    for (cache, seconds) in [("warm", 0.214), ("cold", 9.7)] {
        let name = format!("random-read 256 MiB in 4 KiB blocks, {cache}");
        cell(&mut run, &mut random, &name, &read_arms(cache == "cold"), seconds);
    }
    run
}

fn machine() -> Vec<(String, String)> {
    let facts = [
        ("cpu", "2 × AMD EPYC 7B13"),
        ("memory", "24 GiB"),
        ("kernel", "Linux 6.18.4"),
        ("filesystem", "ext4 (rw,relatime), 4096-byte blocks"),
        ("device", "vda, <script>alert(2)</script>, scheduler none"),
        ("clock", "tsc"),
    ];
    facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Pools and rings with 1 to 128 operations in flight, which are slower than the baseline on a warm
/// cache.
fn read_arms(is_cold: bool) -> Vec<Arm> {
    let gain = |in_flight: u32| {
        if is_cold { f64::from(in_flight).powf(-0.62) } else { 1.06 + f64::from(in_flight).ln() * 0.02 }
    };
    let depths = [1, 2, 4, 8, 16, 32, 64, 128];
    let rings =
        depths.map(|depth| ("uring", "uring", 1, depth, gain(depth) * if is_cold { 1.04 } else { 1.0 }));
    let pools = depths[2..].iter().map(|threads| ("pread", "threads", *threads, 1, gain(*threads)));
    let mut arms: Vec<Arm> =
        [("blocking", "blocking", 1, 1, 1.0)].into_iter().chain(rings).chain(pools).collect();
    arms.sort_by(|a, b| a.4.total_cmp(&b.4));
    arms
}

fn cell(run: &mut Run, random: &mut Random, name: &str, arms: &[Arm], baseline_s: f64) {
    let shape = Shape::of(name);
    for block in 1..=BLOCKS {
        for arm in arms {
            run.rows.push(row(random, &shape, arm, block, baseline_s));
        }
    }
    let best = arms[0].4;
    for arm in arms {
        run.arms.push(summary(random, name, &shape, arm, best, baseline_s));
    }
    for summary in &mut run.arms {
        let of_arm = |row: &&Row| {
            summary.cell.starts_with(&row.workload)
                && (&row.method, &row.cache, row.threads, row.depth)
                    == (&summary.method, &summary.cache, summary.threads, summary.depth)
        };
        summary.discarded =
            run.rows.iter().filter(of_arm).filter(|row| !row.discarded.is_empty()).count() as u32;
        summary.runs = BLOCKS - summary.discarded;
    }
    let ratio = Interval { median: 1.004, low: 0.979, high: 1.031 };
    run.noise.push(Noise { cell: name.into(), method: "blocking".into(), ratio, floor: 0.026 });
}

struct Shape {
    cell: String,
    workload: String,
    cache: String,
    size_bytes: u64,
}

impl Shape {
    fn of(name: &str) -> Shape {
        let word = |at: Option<&str>| at.unwrap_or_default().to_owned();
        let size_bytes = if name.starts_with("write") { 1 << 30 } else { 1 << 28 };
        Shape {
            cell: name.to_owned(),
            workload: word(name.split(' ').next()),
            cache: word(name.rsplit(' ').next()),
            size_bytes,
        }
    }
}

fn row(random: &mut Random, shape: &Shape, arm: &Arm, block: u32, baseline_s: f64) -> Row {
    let (method, model, threads, depth, factor) = *arm;
    let is_disturbed = share(random) < 0.02;
    let seconds = near(random, baseline_s * factor, 0.08) * if is_disturbed { 1.6 } else { 1.0 };
    let ops = shape.size_bytes / 4096;
    let p50_us = near(random, seconds * 1e6 / ops as f64 * f64::from(threads * depth), 0.05);
    Row {
        workload: shape.workload.clone(),
        cell: shape.cell.clone(),
        lang: "rust".into(),
        method: method.into(),
        model: model.into(),
        threads,
        depth,
        batch: depth.min(32),
        wait: "wait".into(),
        block_bytes: 4096,
        size_bytes: shape.size_bytes,
        cache: shape.cache.clone(),
        sync: "none".into(),
        block,
        seconds,
        bytes_per_s: shape.size_bytes as f64 / seconds,
        cpu_s: seconds * 0.9,
        cpu_user_s: seconds * 0.1,
        cpu_sys_s: seconds * 0.8,
        sync_s: (shape.workload == "write").then_some(seconds * 1.9),
        close_s: (shape.workload == "write").then_some(seconds * 1.91),
        ops,
        ops_per_s: ops as f64 / seconds,
        in_flight_max: threads * depth,
        p50_us: Some(p50_us),
        p95_us: Some(p50_us * 2.2),
        p99_us: Some(p50_us * 5.1),
        max_us: Some(p50_us * 210.0),
        switches: Some(u64::from(threads) * 31),
        switches_forced: Some(7),
        punted: (model == "uring").then_some(if shape.workload == "write" { 1.0 } else { 0.004 }),
        cached_before: Some(if shape.cache == "warm" { 1.0 } else { 0.0 }),
        cached_after: Some(1.0),
        steal: share(random) * 0.01,
        verified: true,
        discarded: if is_disturbed { "steal 4.1 % is over 2 %".into() } else { String::new() },
        ..Row::default()
    }
}

fn summary(
    random: &mut Random,
    cell: &str,
    shape: &Shape,
    arm: &Arm,
    best: f64,
    baseline_s: f64,
) -> ArmSummary {
    let (method, model, threads, depth, factor) = *arm;
    let seconds = baseline_s * factor;
    let row = row(random, shape, arm, 1, baseline_s);
    let mut around = |median: f64| Interval {
        median,
        low: median * (1.0 - 0.01 - 0.03 * share(random)),
        high: median * (1.0 + 0.01 + 0.03 * share(random)),
    };
    let is_baseline = method == "blocking";
    ArmSummary {
        cell: cell.into(),
        lang: "rust".into(),
        method: method.into(),
        model: model.into(),
        threads,
        depth,
        cache: shape.cache.clone(),
        seconds: around(seconds),
        ratio: (!is_baseline).then(|| around(factor)),
        ratio_to_best: (factor > best).then(|| around(factor / best)),
        ratio_to_own: (!is_baseline).then(|| around(factor)),
        among_best: factor < best * 1.03,
        bytes_per_s: shape.size_bytes as f64 / seconds,
        ops_per_s: row.ops as f64 / seconds,
        cpu_s_per_gb: Some(seconds * 0.9 / shape.size_bytes as f64 * 1e9),
        cpu_s_per_million_ops: seconds * 0.9 / row.ops as f64 * 1e6,
        p50_us: row.p50_us,
        p95_us: row.p95_us,
        p99_us: row.p99_us,
        switches_per_op: Some(f64::from(threads) * 31.0 / row.ops as f64),
        punted: row.punted,
        ..ArmSummary::default()
    }
}
