//! Sampling trees that exist in memory only: thousands of times, to see how often the ranges hold the truth.

use super::evidence::{Outlook, is_honest};
use super::interval::{Basis, Range};
use super::random::Random;
use super::sampler::{OVERDUE, Reader, Sampled, sample};
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

    /// Link count and size.
    fn claims(&self, dir: usize) -> (u64, i64) {
        let Made { files, below, .. } = &self.dirs[dir];
        if !self.telling {
            return (1, 0);
        }
        let entries = files + below.len() as f64;
        (2 + below.len() as u64, ((40.0 * entries / 4096.0).ceil().max(1.0) * 4096.0) as i64)
    }

    fn outlook(&self, dir: usize) -> Outlook {
        let (nlink, bytes) = self.claims(dir);
        Outlook::new(nlink, bytes)
    }

    fn found(&self, dir: usize) -> Found<usize> {
        let Made { files, below, .. } = &self.dirs[dir];
        let (amounts, (nlink, bytes)) = (self.amounts(dir), self.claims(dir));
        Found {
            amounts,
            seen: amounts,
            honest: is_honest(nlink, bytes, below.len() as u64, *files as u64 + below.len() as u64),
            below: below.iter().map(|dir| (*dir, self.outlook(*dir))).collect(),
            ..Found::default()
        }
    }

    fn add(&mut self, above: usize, made: Made) -> usize {
        let new = self.dirs.len();
        self.dirs.push(made);
        self.dirs[above].below.push(new);
        new
    }
}

/// The cost of reading a directory, after the given number of other reads.
type Cost<'f> = dyn Fn(usize, usize) -> f64 + 'f;

/// Reads a forest by a clock of its own.
struct Walk<'f> {
    forest: &'f Forest,
    reads: usize,
    clock: f64,
    budget: f64,
    /// The share of the budget at which it is given up.
    overdue: f64,
    cost: &'f Cost<'f>,
}

impl Reader for Walk<'_> {
    type Key = usize;

    fn read(&mut self, keys: Vec<usize>, _drawn: bool) -> Option<Vec<Found<usize>>> {
        let mut found = Vec::new();
        for dir in keys {
            if self.spent() > self.overdue {
                return None;
            }
            self.clock += (self.cost)(dir, self.reads);
            self.reads += 1;
            found.push(self.forest.found(dir));
        }
        Some(found)
    }

    fn spent(&self) -> f64 {
        self.clock / self.budget
    }
}

fn timed<'f>(forest: &'f Forest, budget: f64, seed: u64, cost: &'f Cost<'f>) -> Sampled<Walk<'f>> {
    sample(Walk { forest, reads: 0, clock: 0.0, budget, overdue: OVERDUE, cost }, vec![0], 3, seed)
}

/// The budget is a number of directories, which is never overdue.
fn run(forest: &Forest, budget: f64, seed: u64) -> Sampled<Walk<'_>> {
    let overdue = f64::INFINITY;
    sample(Walk { forest, reads: 0, clock: 0.0, budget, overdue, cost: &|_, _| 1.0 }, vec![0], 3, seed)
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

/// A directory of 30,000 files, so many levels below directories that look like all others.
fn with_needle(mut forest: Forest, depth: usize) -> Forest {
    let mut at = forest.dirs.len() / 2;
    for level in 0..depth {
        let files = if level + 1 == depth { 30_000.0 } else { 1.0 };
        at = forest.add(at, Made { files, bytes: 2_000.0 * files, below: Vec::new() });
    }
    forest
}

/// A file that is as large as all others together, in a directory like most.
fn with_large_file(mut forest: Forest) -> Forest {
    let leaf = forest.dirs.iter().rposition(|dir| dir.below.is_empty()).unwrap_or(0);
    forest.dirs[leaf].bytes += forest.total().0[3];
    forest
}

/// One directory without subdirectories in 200 has a hundred times as many files as the others.
fn with_full_leaves(mut forest: Forest) -> Forest {
    let leaves = forest.dirs.iter_mut().filter(|dir| dir.below.is_empty());
    leaves.step_by(200).for_each(|leaf| leaf.files = 300.0);
    forest
}

/// Neither link counts nor sizes tell anything.
fn mute(forest: Forest) -> Forest {
    Forest { telling: false, ..forest }
}

/// What many runs over one tree come to: an element for entries, files, directories, apparent size and disk usage each.
struct Record {
    /// The number of runs whose range had a confidence, or that counted everything.
    claimed: [u64; 5],
    /// The number of `claimed` runs whose range held the truth.
    held: [u64; 5],
    /// The mean of the estimates, as a share of the truth, and the standard error of that.
    mean: [f64; 5],
    error: [f64; 5],
}

fn record(forest: &Forest, budget: f64, runs: u64) -> Record {
    let total = forest.total().0;
    let ranges: Vec<_> = (0..runs).map(|seed| run(forest, budget, seed).estimate.total).collect();
    let count = |is: &dyn Fn(&Range, f64) -> bool| -> [u64; 5] {
        std::array::from_fn(|kind| {
            ranges.iter().filter(|ranges| is(&ranges[kind], total[kind])).count() as u64
        })
    };
    let is_claimed = |range: &Range| matches!(range.basis, Basis::Count | Basis::Confident);
    let mean: [f64; 5] = std::array::from_fn(|kind| {
        ranges.iter().map(|ranges| ranges[kind].estimate / total[kind]).sum::<f64>() / runs as f64
    });
    let variance: [f64; 5] = std::array::from_fn(|kind| {
        let off = ranges.iter().map(|ranges| (ranges[kind].estimate / total[kind] - mean[kind]).powi(2));
        off.sum::<f64>() / (runs - 1) as f64
    });
    Record {
        claimed: count(&|range, _| is_claimed(range)),
        held: count(&|range, truth| is_claimed(range) && holds(range, truth)),
        mean,
        error: variance.map(|variance| (variance / runs as f64).sqrt()),
    }
}

fn holds(range: &Range, truth: f64) -> bool {
    let slack = truth * 1e-9;
    range.counted <= truth + slack && range.low <= truth + slack && truth <= range.high + slack
}

/// Asserts that of the runs whose ranges have a confidence, 9 in 10 hold the truth, for many
/// budgets. Where few directories hold much, few runs find them: the mean of some runs says nothing
/// then.
#[track_caller]
fn assert_honest(name: &str, forest: &Forest) {
    for share in [0.02, 0.2, 0.5, 0.7, 0.9] {
        let Record { claimed, held, mean, error } = record(forest, share * forest.dirs.len() as f64, RUNS);
        let shown = format!("{name}, {share}: held {held:?} of {claimed:?} mean {mean:.3?} +- {error:.3?}");
        for kind in 0..5 {
            // With few `claimed` runs, more than one in ten may be wrong by chance.
            let wrong = claimed[kind] - held[kind];
            assert!(wrong * 10 <= claimed[kind].max(RUNS / 2), "{kind}: {shown}");
        }
    }
}

/// Asserts as well that estimates are right on average.
#[track_caller]
fn assert_unbiased(name: &str, forest: &Forest) {
    assert_honest(name, forest);
    for share in [0.2, 0.5] {
        let budget = share * forest.dirs.len() as f64;
        let Record { mean, error, .. } = record(forest, budget, RUNS);
        let is_right = |kind: usize| (mean[kind] - 1.0).abs() < 5.0 * error[kind] + 1e-9;
        assert!((0..5).all(is_right), "{name}, {share}: mean {mean:.3?} +- {error:.3?}");
        let reads = run(forest, budget, 0).reads as f64;
        assert!(reads < 1.1 * budget + 150.0, "{name}: {reads} of {budget}");
    }
}

const RUNS: u64 = 40;
const DIRS: usize = 4_000;

#[test]
fn some_subtrees_are_far_larger_than_others() {
    assert_unbiased("random", &random_tree(1, DIRS, 1.8));
    assert_unbiased("mute random", &mute(random_tree(1, DIRS, 1.8)));
}

#[test]
fn numbers_of_subdirectories_are_paretos() {
    assert_unbiased("pareto fan-out", &pareto_fan_out(2, DIRS));
    assert_unbiased("mute pareto fan-out", &mute(pareto_fan_out(2, DIRS)));
}

#[test]
fn file_sizes_are_paretos() {
    assert_honest("pareto sizes", &random_tree(3, DIRS, 1.05));
    assert_honest("one large file", &with_large_file(random_tree(3, DIRS, 1.8)));
    assert_honest("full leaves", &with_full_leaves(random_tree(3, DIRS, 1.8)));
}

#[test]
fn one_directory_holds_most() {
    assert_honest("a million files", &with_wide_directory(random_tree(5, DIRS, 1.8)));
    assert_honest("a needle", &with_needle(random_tree(5, DIRS, 1.8), 8));
    assert_honest("a mute needle", &mute(with_needle(random_tree(5, DIRS, 1.8), 8)));
}

#[test]
fn a_subtree_deep_down_holds_half() {
    let giant = random_tree(99, DIRS / 2, 1.8);
    assert_honest("giant", &with_giant(random_tree(6, DIRS / 2, 1.8), &giant, 6));
    assert_honest("mute giant", &mute(with_giant(random_tree(6, DIRS / 2, 1.8), &giant, 6)));
}

#[test]
fn a_chain_goes_deep() {
    assert_honest("chain", &with_chain(random_tree(4, DIRS, 1.8), 400));
}

/// Where link counts and sizes tell, half of the directories are enough for a confidence, and a
/// range is narrow.
#[test]
fn half_of_an_ordinary_tree_is_enough_for_a_confidence() {
    for seed in 0..20 {
        let forest = random_tree(seed, DIRS, 1.8);
        let total = run(&forest, 0.7 * DIRS as f64, seed).estimate.total;
        assert_eq!(total[2].basis, Basis::Count, "{total:?}");
        assert_eq!(total[0].basis, Basis::Confident, "{total:?}");
        assert!(total[0].high / total[0].low < 1.35, "{total:?}");
        assert_eq!(total[3].basis, Basis::Spread, "any file may be the largest: {total:?}");
    }
}

/// The cost of a read changes from one moment to the next: a cold disk, a busy server, directories
/// of many entries.
#[test]
fn budgets_are_kept_whatever_reading_takes() {
    let forest = random_tree(7, DIRS, 1.8);
    let entries = |dir: usize| forest.amounts(dir).0[0];
    let truth = forest.total().0[0];
    let cold_after = |reads: usize| move |_: usize, before: usize| if before < reads { 0.1 } else { 1.0 };
    let by_entries = |dir: usize, _: usize| 0.2 + entries(dir) / 10.0;
    let in_waves = |_: usize, before: usize| if (before / 300).is_multiple_of(2) { 0.2 } else { 2.0 };
    let costs: [(&str, &Cost); 5] = [
        ("even", &|_, _| 1.0),
        ("cold after 100", &cold_after(100)),
        ("cold after 700", &cold_after(700)),
        ("by entries", &by_entries),
        ("in waves", &in_waves),
    ];
    for (name, cost) in costs {
        let (mut whole, mut mean, runs) = (0, 0.0, 120);
        for seed in 0..runs {
            let sampled = timed(&forest, 1_000.0, seed, cost);
            let (spent, range) = (sampled.reader.spent(), sampled.estimate.total[0]);
            assert!(spent < 1.2, "{name}: {spent}");
            assert!(sampled.whole || range.basis != Basis::Count, "{name}: {range:?}");
            whole += u64::from(sampled.whole);
            mean += range.estimate / truth / runs as f64;
        }
        assert!(whole * 10 >= runs * 9, "{name}: {whole}");
        assert!((mean - 1.0).abs() < 0.15, "{name}: {mean}");
    }
}

/// A run that is given up before anything was drawn has no estimate: what it counted is far below
/// the truth.
#[test]
fn a_run_that_is_given_up_shows_an_earlier_estimate_or_none() {
    let forest = random_tree(8, DIRS, 1.8);
    let truth = forest.total().0[0];
    let hangs_after = |reads: usize| move |_: usize, before: usize| if before < reads { 1.0 } else { 1e9 };
    let (at_once, later) = (hangs_after(60), hangs_after(600));
    let (mut shown, mut mean) = (0, 0.0);
    for seed in 0..60 {
        let early = timed(&forest, 1_000.0, seed, &at_once);
        assert!(!early.whole && early.estimate.total.iter().all(|range| range.basis == Basis::AtLeast));
        let late = timed(&forest, 1_000.0, seed, &later);
        assert!(!late.whole && !late.estimate.exact);
        if late.estimate.total[0].basis != Basis::AtLeast {
            shown += 1;
            mean += late.estimate.total[0].estimate / truth;
        }
    }
    mean /= f64::from(shown);
    assert!(shown > 50 && (mean - 1.0).abs() < 0.3, "{shown} {mean}");
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
