//! The tier of a test run: how many cases a test runs, from which seeds, and with which of several
//! engines.
//!
//! `make test` runs a part of the cases, the same ones each time. `make test-all` sets the variable
//! [`TIER`] to `all`: every case, every engine, and new seeds. Tests ask this crate and never read
//! the tier themselves. Only tests depend on it.

use std::cell::Cell;
use std::env;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::test_runner::{Config, RngSeed};

/// The environment variable of the tier: `all`, or unset for a part of the cases.
pub const TIER: &str = "FATHOM_TESTS";
/// The environment variable with the first seed of a run of all cases. Without it, the first seed
/// is the time.
pub const FIRST_SEED: &str = "FATHOM_FIRST_SEED";
/// The environment variable with the one seed to try, which repeats a failure.
pub const SEED: &str = "FATHOM_SEED";

/// The share of the cases that `make test` runs.
const SHARE: usize = 10;

/// Returns how many to take of `all` cases, rounds, entries or levels: a tenth, rounded up, or
/// every one in `make test-all`.
///
/// ```
/// assert!((1..=30).contains(&fathom_cases::count(30)));
/// ```
#[must_use]
pub fn count(all: usize) -> usize {
    if is_all() { all } else { all.div_ceil(SHARE) }
}

/// Returns the seeds of a property's cases: a tenth of `all` and the same seeds each time, or `all`
/// new ones in `make test-all`. If a case panics, prints the command that repeats it.
///
/// ```
/// let seeds: Vec<u64> = fathom_cases::seeds(20).collect();
/// assert!(!seeds.is_empty() && seeds.len() <= 20);
/// ```
#[must_use]
pub fn seeds(all: usize) -> Seeds {
    if let Some(seed) = number(SEED) {
        return Seeds { next: seed, left: 1, tried: None };
    }
    Seeds { next: if is_all() { first_seed() } else { 0 }, left: count(all), tried: None }
}

/// Returns proptest's configuration for a property with `all` cases: a tenth of them and the same
/// each time, or all of them from a new seed in `make test-all`, which prints the seed.
///
/// ```
/// assert!(fathom_cases::property(256).cases > 0);
/// ```
#[must_use]
pub fn property(all: u32) -> Config {
    let seed = number(SEED).unwrap_or_else(|| if is_all() { first_seed() } else { 0 });
    if is_all() {
        println!("{}", repeat(seed));
    }
    let cases = if is_all() { all } else { all.div_ceil(SHARE as u32) };
    Config { failure_persistence: None, cases, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

/// The iterator of [`seeds`].
#[derive(Debug)]
pub struct Seeds {
    next: u64,
    left: usize,
    tried: Option<u64>,
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let seed = self.next;
        self.next = seed.wrapping_add(1);
        self.tried = Some(seed);
        Some(seed)
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        // A loop over the seeds drops them when its body panics.
        if let Some(seed) = self.tried
            && std::thread::panicking()
        {
            eprintln!("{}", repeat(seed));
        }
    }
}

/// Returns the command that runs the current test with one seed.
///
/// ```
/// assert!(fathom_cases::repeat(7).contains("FATHOM_SEED=7 "));
/// ```
#[must_use]
pub fn repeat(seed: u64) -> String {
    let package = env::var("CARGO_PKG_NAME");
    let package = package.map_or_else(|_| "--workspace".to_owned(), |name| format!("-p {name}"));
    let tier = if is_all() { format!("{TIER}=all ") } else { String::new() };
    format!("to repeat: {tier}{SEED}={seed} cargo test {package} {}", test_name())
}

/// Returns the engines of a case: the default one, and the next of the `others` in turn, or all of
/// them in `make test-all`. A test begins at a place that depends on its name alone, so every run
/// chooses the same, and all tests together meet every engine.
///
/// ```
/// let chosen = fathom_cases::engines("auto", &["threads", "uring"]);
/// assert_eq!(chosen[0], "auto");
/// assert!(chosen.len() > 1);
/// ```
#[must_use]
pub fn engines<T: Clone>(default: T, others: &[T]) -> Vec<T> {
    let chosen = match others.len() {
        count if is_all() || count == 0 => others,
        count => {
            let place = next_turn() % count;
            &others[place..=place]
        }
    };
    std::iter::once(default).chain(chosen.iter().cloned()).collect()
}

/// Returns the number of the current test's next turn.
fn next_turn() -> usize {
    thread_local! {
        static TURN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    TURN.with(|turn| {
        let now = turn.get().unwrap_or_else(|| place(&test_name()));
        turn.set(Some(now.wrapping_add(1)));
        now
    })
}

/// Returns a number that depends on the name alone (FNV-1a).
fn place(name: &str) -> usize {
    let mix = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = name.bytes().fold(0x811c_9dc5, mix);
    (hash >> 8) as usize
}

/// Returns the name of the current test: libtest runs each in a thread of that name.
fn test_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

fn is_all() -> bool {
    static IS_ALL: OnceLock<bool> = OnceLock::new();
    *IS_ALL.get_or_init(|| match env::var(TIER).as_deref() {
        Ok("all") => true,
        Ok("") | Err(_) => false,
        Ok(other) => panic!("{TIER}={other}: expected 'all'"),
    })
}

/// Returns the first seed of this process.
fn first_seed() -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    *FIRST.get_or_init(|| {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        number(FIRST_SEED).unwrap_or_else(now)
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_empty_and_never_more_than_all() {
        for all in 0..50 {
            assert!(count(all) <= all && (count(all) > 0 || all == 0), "{all}");
        }
    }

    #[test]
    fn turns_of_a_test_follow_each_other_and_meet_every_engine() {
        let others: Vec<u32> = (0..7).collect();
        let mut met: Vec<u32> = (0..7).flat_map(|_| engines(9, &others).split_off(1)).collect();
        let first = met[0];
        assert!(is_all() || met.iter().zip(0..).all(|(engine, turn)| *engine == (first + turn) % 7));
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, others);
        assert_eq!(engines(9, &[]), [9]);
    }

    #[test]
    fn tests_begin_at_many_places() {
        let mut places: Vec<usize> = (0..100).map(|number| place(&format!("test_{number}")) % 9).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 9);
    }

    #[test]
    fn a_panic_in_a_case_names_its_seed() {
        let mut seeds = seeds(1);
        let seed = seeds.next().expect("there is one");
        assert_eq!(seeds.next(), None);
        let said = repeat(seed);
        let expected = format!("{SEED}={seed} cargo test ");
        assert!(said.contains(&expected) && said.ends_with("a_panic_in_a_case_names_its_seed"), "{said}");
    }
}
