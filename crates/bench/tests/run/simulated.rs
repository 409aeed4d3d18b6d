//! Simulated samples and runs.

use fathom_bench::stats::Random;
use fathom_bench::{ArmName, Row};

/// A sample of `seconds` that writes 10^9 bytes in 1,000 operations.
pub(crate) fn row(method: &str, block: u32, seconds: f64) -> Row {
    Row {
        workload: "write".into(),
        lang: "rust".into(),
        method: method.into(),
        model: "threads".into(),
        threads: 1,
        depth: 1,
        batch: 1,
        wait: "wait".into(),
        block_bytes: 1_000_000,
        size_bytes: 1_000_000_000,
        cache: "warm".into(),
        sync: "none".into(),
        block,
        seconds,
        bytes_per_s: 1e9 / seconds,
        cpu_s: seconds / 2.0,
        ops: 1_000,
        ops_per_s: 1_000.0 / seconds,
        in_flight_max: 1,
        verified: true,
        ..Row::default()
    }
}

pub(crate) fn arm(method: &str) -> ArmName {
    ArmName::new("rust", method)
}

/// Returns a normally distributed number with variance 1, approximated by the sum of 12 uniform
/// numbers (Irwin-Hall distribution).
pub(crate) fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.bits() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
}

/// Samples of `methods` with the given medians, lognormal noise of `sigma`, and a drift that the
/// arms of a block share.
pub(crate) fn noisy(methods: &[(&str, f64)], blocks: u32, sigma: f64, seed: u64) -> Vec<Row> {
    let mut random = Random::new(seed);
    let mut rows = Vec::new();
    for block in 1..=blocks {
        let drift = 0.3 * normal(&mut random);
        for (method, seconds) in methods {
            let factor = (drift + sigma * normal(&mut random)).exp();
            rows.push(row(method, block, seconds * factor));
        }
    }
    rows
}
