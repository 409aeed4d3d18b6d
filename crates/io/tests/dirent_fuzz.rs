//! Random mutations of valid buffers for a few seconds. `cargo fuzz run dirent` does the same
//! without a limit.
//!
//! `FATHOM_FUZZ_SEED` replays a run; a failure prints the seed and the round.

mod record;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

use record::{check, record};

/// Minimum duration, and minimum number of buffers.
const DURATION_MIN: Duration = Duration::from_secs(2);
const ROUNDS_MIN: u64 = 10_000;

/// Bytes at the limits of a record's length, type and name.
const EDGES: [u8; 9] = [0, 1, 18, 19, 20, b'.', b'/', 0x7f, 0xff];

fn valid_buffer(rng: &mut TestRng) -> Vec<u8> {
    let mut buffer = Vec::new();
    for _ in 0..rng.random_range(0..8) {
        let name: Vec<u8> = (0..rng.random_range(1..30)).map(|_| rng.random_range(1..=255)).collect();
        buffer.extend(record(rng.random(), rng.random(), rng.random(), &name));
    }
    buffer
}

fn mutate(buffer: &mut Vec<u8>, rng: &mut TestRng) {
    for _ in 0..rng.random_range(0..6) {
        let at = rng.random_range(0..=buffer.len());
        let edge = EDGES[rng.random_range(0..EDGES.len())];
        match rng.random_range(0..5) {
            0 => buffer.truncate(at),
            1 => buffer.insert(at, edge),
            2 if at < buffer.len() => drop(buffer.remove(at)),
            3 if at < buffer.len() => buffer[at] = edge,
            _ if at < buffer.len() => buffer[at] ^= 1 << rng.random_range(0..8),
            _ => {}
        }
    }
}

#[test]
fn mutated_buffers_are_parsed_as_by_the_reference() {
    let seed = std::env::var("FATHOM_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(20_260_820);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let (start, mut round) = (Instant::now(), 0_u64);
    while start.elapsed() < DURATION_MIN || round < ROUNDS_MIN {
        let mut buffer = valid_buffer(&mut rng);
        mutate(&mut buffer, &mut rng);
        let passed = catch_unwind(AssertUnwindSafe(|| check(&buffer)));
        assert!(passed.is_ok(), "FATHOM_FUZZ_SEED={seed} round {round}: {buffer:?}");
        round += 1;
    }
    println!("{round} buffers");
}
