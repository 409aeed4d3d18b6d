//! Sampling trees that exist in memory only: thousands of times, to see how often the ranges hold the truth.

use super::interval::Range;
use super::random::Random;
use super::sampler::{Reader, Sampled, sample};
use super::tally::{Amounts, Found};

/// A directory of a made-up tree.
#[derive(Clone, Debug, Default)]
struct Made {
    files: f64,
    bytes: f64,
    below: Vec<usize>,
}

/// A tree; the first directory is the root.
#[derive(Clone, Debug)]
struct Forest {
    dirs: Vec<Made>,
    /// Directories have a link count and a size that tell how many entries they have, as ext4's do.
    telling: bool,
}

impl Forest {
    fn amounts(&self, dir: usize) -> Amounts {
        let Made { files, bytes, below } = &self.dirs[dir];
        let dirs = below.len() as f64;
        Amounts([files + dirs, *files, dirs, *bytes, bytes + 4096.0 * dirs])
    }

    fn total(&self) -> Amounts {
        let mut total = Amounts::default();
        (0..self.dirs.len()).for_each(|dir| total.add(&self.amounts(dir), 1.0));
        total
    }

    fn size(&self, dir: usize) -> f64 {
        let Made { files, below, .. } = &self.dirs[dir];
        let dirs = below.len() as f64;
        if self.telling {
            super::expected(
                2 + below.len() as u64,
                ((40.0 * (files + dirs) / 4096.0).ceil().max(1.0) * 4096.0) as i64,
            )
        } else {
            1.0
        }
    }

    fn add(&mut self, above: usize, made: Made) -> usize {
        let new = self.dirs.len();
        self.dirs.push(made);
        self.dirs[above].below.push(new);
        new
    }
}

/// Reads a forest; time is the number of directories read.
struct Walk<'f> {
    forest: &'f Forest,
    reads: usize,
    budget: f64,
}

impl Reader for Walk<'_> {
    type Key = usize;

    fn read(&mut self, keys: Vec<usize>, _drawn: bool) -> Option<Vec<Found<usize>>> {
        self.reads += keys.len();
        let below = |dir: &usize| (*dir, self.forest.size(*dir));
        let found = |dir: usize| Found {
            amounts: self.forest.amounts(dir),
            below: self.forest.dirs[dir].below.iter().map(below).collect(),
            ..Found::default()
        };
        Some(keys.into_iter().map(found).collect())
    }

    fn spent(&self) -> f64 {
        self.reads as f64 / self.budget
    }
}

fn run(forest: &Forest, budget: f64, seed: u64) -> Sampled<Walk<'_>> {
    sample(Walk { forest, reads: 0, budget }, vec![0], 3, seed)
}

/// Above 1; of a higher shape, the less often far above.
fn pareto(random: &mut Random, shape: f64) -> f64 {
    (1.0 - random.fraction()).powf(-1.0 / shape)
}

fn file_sizes(random: &mut Random, files: usize, shape: f64) -> f64 {
    (0..files).map(|_| 2000.0 * pareto(random, shape)).sum()
}

/// So many directories, each in one that was made before or is chosen by `above`.
fn grown(seed: u64, dirs: usize, bytes: f64, mut above: impl FnMut(&mut Random, &Forest) -> usize) -> Forest {
    let mut random = Random::new(seed);
    let mut forest = Forest { dirs: vec![Made::default()], telling: true };
    for _ in 1..dirs {
        let parent = above(&mut random, &forest);
        let files = (3.0 * pareto(&mut random, 1.5)) as usize;
        let bytes = file_sizes(&mut random, files.min(5_000), bytes);
        forest.add(parent, Made { files: files as f64, bytes, below: Vec::new() });
    }
    forest
}

/// Any directory may have the next one: some subtrees are far larger than others.
fn random_tree(seed: u64, dirs: usize, bytes: f64) -> Forest {
    grown(seed, dirs, bytes, |random, forest| (random.fraction() * forest.dirs.len() as f64) as usize)
}

/// The number of subdirectories is Pareto's.
fn pareto_fan_out(seed: u64, dirs: usize) -> Forest {
    let (mut next, mut room) = (0, 8);
    grown(seed, dirs, 1.5, move |random, forest| {
        while room == 0 {
            next += 1;
            room = (0.8 * pareto(random, 1.3)) as usize + usize::from(random.fraction() < 0.2);
            room = room.min(2_000);
        }
        room -= 1;
        next.min(forest.dirs.len() - 1)
    })
}

fn with_chain(mut forest: Forest, length: usize) -> Forest {
    let mut at = 3;
    for _ in 0..length {
        at = forest.add(at, Made { files: 10.0, bytes: 50_000.0, below: Vec::new() });
    }
    forest
}

fn with_wide_directory(mut forest: Forest) -> Forest {
    let last = forest.dirs.len() - 1;
    forest.dirs[last].files = 1e6;
    forest.dirs[last].bytes = 1e10;
    forest
}

/// Hangs one tree into another, so many levels down.
fn with_giant(mut forest: Forest, giant: &Forest, depth: usize) -> Forest {
    let mut at = 0;
    for _ in 0..depth {
        at = forest.dirs[at].below.first().copied().unwrap_or(at);
    }
    let start = forest.dirs.len();
    for dir in &giant.dirs {
        let below = dir.below.iter().map(|below| below + start).collect();
        forest.dirs.push(Made { below, ..dir.clone() });
    }
    forest.dirs[at].below.push(start);
    forest
}

/// What many runs over one tree come to: an element for entries, files, directories, apparent size and disk usage each.
struct Record {
    /// The share of runs whose ranges held the truth.
    held: [f64; 5],
    /// The mean of the estimates, as a share of the truth, and the standard error of that.
    mean: [f64; 5],
    error: [f64; 5],
    /// The median width of the ranges, as a share of the truth.
    width: [f64; 5],
}

fn record(forest: &Forest, budget: f64, runs: u64) -> Record {
    let total = forest.total().0;
    let ranges: Vec<_> = (0..runs).map(|seed| run(forest, budget, seed).estimate.total).collect();
    let each = |figure: &dyn Fn(&Range, f64) -> f64| -> [Vec<f64>; 5] {
        std::array::from_fn(|kind| ranges.iter().map(|ranges| figure(&ranges[kind], total[kind])).collect())
    };
    let average = |figures: Vec<f64>| figures.iter().sum::<f64>() / figures.len() as f64;
    let mean = each(&|range, truth| range.estimate / truth).map(average);
    let variance: [f64; 5] = std::array::from_fn(|kind| {
        let off = ranges.iter().map(|ranges| (ranges[kind].estimate / total[kind] - mean[kind]).powi(2));
        off.sum::<f64>() / (runs - 1) as f64
    });
    let median = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let holds = |range: &Range, truth: f64| {
        let slack = truth * 1e-9;
        f64::from(u8::from(range.low <= truth + slack && truth <= range.high + slack))
    };
    Record {
        held: each(&holds).map(average),
        mean,
        error: variance.map(|variance| (variance / runs as f64).sqrt()),
        width: each(&|range, truth| (range.high - range.low) / truth).map(median),
    }
}

/// Asserts that at least so many ranges hold the truth, and estimates are right on average, with a budget of this share of the
/// directories.
#[track_caller]
fn assert_honest(name: &str, forest: &Forest, share: f64, least: f64) {
    let budget = share * forest.dirs.len() as f64;
    let Record { held, mean, error, width } = record(forest, budget, 200);
    let shown = format!("{name}, {share}: held {held:.3?} mean {mean:.3?} +- {error:.3?} width {width:.2?}");
    for kind in 0..5 {
        assert!(held[kind] >= least, "{kind}: {shown}");
        assert!((mean[kind] - 1.0).abs() < 4.0 * error[kind] + 1e-9, "{kind}: {shown}");
    }
    let reads = run(forest, budget, 0).reads as f64;
    assert!(reads < 1.1 * budget + 100.0, "{name}: {reads} of {budget}");
}

const DIRS: usize = 20_000;

#[test]
fn some_subtrees_are_far_larger_than_others() {
    let forest = random_tree(1, DIRS, 1.8);
    assert_honest("random", &forest, 0.2, 0.93);
    assert_honest("random", &forest, 0.5, 0.93);
}

#[test]
fn directories_do_not_tell_what_they_hold() {
    let forest = Forest { telling: false, ..random_tree(1, DIRS, 1.8) };
    assert_honest("mute", &forest, 0.3, 0.93);
    assert_honest("mute", &forest, 0.6, 0.93);
}

#[test]
fn numbers_of_subdirectories_are_paretos() {
    let forest = pareto_fan_out(2, DIRS);
    // A subtree that looks like others and holds much of the directories is found or not.
    assert_honest("pareto fan-out", &forest, 0.3, 0.7);
    assert_honest("pareto fan-out", &forest, 0.5, 0.93);
}

#[test]
fn file_sizes_are_paretos() {
    let forest = random_tree(3, DIRS, 1.3);
    assert_honest("pareto sizes", &forest, 0.2, 0.93);
    assert_honest("pareto sizes", &forest, 0.5, 0.93);
}

#[test]
fn one_directory_holds_a_million_files() {
    let forest = with_wide_directory(random_tree(5, DIRS, 1.8));
    assert_honest("a million files", &forest, 0.5, 0.93);
}

#[test]
fn a_subtree_deep_down_holds_most() {
    let giant = random_tree(99, DIRS, 1.8);
    let forest = with_giant(random_tree(6, DIRS, 1.8), &giant, 6);
    assert_honest("giant", &forest, 0.5, 0.93);
}

#[test]
fn a_chain_goes_deep() {
    let forest = with_chain(random_tree(4, DIRS, 1.8), 400);
    assert_honest("chain", &forest, 0.9, 0.93);
}

#[test]
fn with_time_for_all_the_answer_is_exact() {
    for forest in [pareto_fan_out(2, 3_000), with_chain(random_tree(4, 3_000, 1.8), 400)] {
        let sampled = run(&forest, 1.5 * forest.dirs.len() as f64, 1);
        assert!(sampled.estimate.exact, "{} of {}", sampled.reads, forest.dirs.len());
        for (range, truth) in sampled.estimate.total.iter().zip(forest.total().0) {
            assert!(
                range.low >= range.high && (range.estimate / truth - 1.0).abs() < 1e-9,
                "{range:?} {truth}"
            );
        }
    }
}

#[test]
fn with_time_for_nothing_an_answer_does_not_seem_exact() {
    let forest = random_tree(1, 3_000, 1.8);
    for seed in 0..50 {
        let Sampled { estimate, reads, whole, .. } = run(&forest, 0.001, seed);
        assert!(!estimate.exact && whole && reads < 100);
        let ranges = estimate.largest.iter().map(|(_, ranges)| ranges).chain([&estimate.total]);
        ranges.for_each(|ranges| assert!(ranges[0].low < ranges[0].high, "{seed}: {ranges:?}"));
    }
}

#[test]
fn the_largest_subtrees_have_ranges_too() {
    let forest = random_tree(1, DIRS, 1.8);
    let mut truth: Vec<f64> = (0..forest.dirs.len()).map(|dir| forest.amounts(dir).0[4]).collect();
    for dir in (0..forest.dirs.len()).rev() {
        truth[dir] += forest.dirs[dir].below.iter().map(|below| truth[*below]).sum::<f64>();
    }
    let (mut held, mut count) = (0, 0);
    for seed in 0..100 {
        for (dir, ranges) in run(&forest, 0.3 * DIRS as f64, seed).estimate.largest {
            held += usize::from(
                ranges[4].low <= truth[dir] * 1.000_001 && truth[dir] <= ranges[4].high * 1.000_001,
            );
            count += 1;
        }
    }
    assert!(count == 300 && held * 100 >= count * 90, "{held} of {count}");
}

#[test]
fn the_same_seed_samples_the_same() {
    let forest = random_tree(1, DIRS, 1.8);
    let estimate = |seed| run(&forest, 2_000.0, seed).estimate.total;
    assert_eq!(estimate(5), estimate(5));
    assert_ne!(estimate(5), estimate(6));
}
