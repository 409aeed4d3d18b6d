//! Samples trees that exist in memory only, thousands of times, and checks how often the ranges
//! hold the truth.

use fathom_walk::Random;

use super::estimator::{Amounts, DirContents};
use super::evidence::{ExpectedContents, is_consistent};
use super::interval::{Basis, EstimateRange};
use super::sampler::{DirReader, OVERDUE, SampleResult, sample};

/// A directory of a simulated tree.
#[derive(Clone, Debug, Default)]
struct SimulatedDir {
    files: f64,
    bytes: f64,
    below: Vec<usize>,
}

/// A simulated tree. The first directory is the root.
#[derive(Clone, Debug)]
struct SimulatedTree {
    dirs: Vec<SimulatedDir>,
    /// Whether the link counts and sizes of directories follow their entries, as in ext4.
    informative: bool,
}

impl SimulatedTree {
    fn amounts(&self, dir: usize) -> Amounts {
        let SimulatedDir { files, bytes, below } = &self.dirs[dir];
        let dirs = below.len() as f64;
        Amounts([files + dirs, *files, dirs, *bytes, bytes + 4096.0 * dirs])
    }

    fn total(&self) -> Amounts {
        let mut total = Amounts::default();
        (0..self.dirs.len()).for_each(|dir| total.add(&self.amounts(dir), 1.0));
        total
    }

    /// Returns link count and size of a directory.
    fn link_count_and_size(&self, dir: usize) -> (u64, i64) {
        let SimulatedDir { files, below, .. } = &self.dirs[dir];
        if !self.informative {
            return (1, 0);
        }
        let entries = files + below.len() as f64;
        (2 + below.len() as u64, ((40.0 * entries / 4096.0).ceil().max(1.0) * 4096.0) as i64)
    }

    fn expected(&self, dir: usize) -> ExpectedContents {
        let (nlink, bytes) = self.link_count_and_size(dir);
        ExpectedContents::new(nlink, bytes)
    }

    fn contents(&self, dir: usize) -> DirContents<usize> {
        let SimulatedDir { files, below, .. } = &self.dirs[dir];
        let (amounts, (nlink, bytes)) = (self.amounts(dir), self.link_count_and_size(dir));
        DirContents {
            amounts,
            seen: amounts,
            consistent: is_consistent(nlink, bytes, below.len() as u64, *files as u64 + below.len() as u64),
            below: below.iter().map(|dir| (*dir, self.expected(*dir))).collect(),
            ..DirContents::default()
        }
    }

    fn add(&mut self, above: usize, made: SimulatedDir) -> usize {
        let new = self.dirs.len();
        self.dirs.push(made);
        self.dirs[above].below.push(new);
        new
    }
}

/// The cost of reading a directory, after the given number of other reads.
type CostFn<'f> = dyn Fn(usize, usize) -> f64 + 'f;

/// Reads a simulated tree. Time is simulated as well.
struct SimulatedReader<'f> {
    tree: &'f SimulatedTree,
    reads: usize,
    clock: f64,
    budget: f64,
    /// The share of the budget at which the survey is stopped.
    overdue: f64,
    cost: &'f CostFn<'f>,
}

impl DirReader for SimulatedReader<'_> {
    type Key = usize;

    fn read(&mut self, keys: Vec<usize>, _drawn: bool) -> Option<Vec<DirContents<usize>>> {
        let mut contents = Vec::new();
        for dir in keys {
            if self.spent() > self.overdue {
                return None;
            }
            self.clock += (self.cost)(dir, self.reads);
            self.reads += 1;
            contents.push(self.tree.contents(dir));
        }
        Some(contents)
    }

    fn spent(&self) -> f64 {
        self.clock / self.budget
    }
}

fn timed<'f>(
    tree: &'f SimulatedTree,
    budget: f64,
    seed: u64,
    cost: &'f CostFn<'f>,
) -> SampleResult<SimulatedReader<'f>> {
    sample(SimulatedReader { tree, reads: 0, clock: 0.0, budget, overdue: OVERDUE, cost }, vec![0], 3, seed)
}

/// Samples with a budget that is a number of directories, so the survey is never stopped.
fn run(tree: &SimulatedTree, budget: f64, seed: u64) -> SampleResult<SimulatedReader<'_>> {
    let overdue = f64::INFINITY;
    sample(
        SimulatedReader { tree, reads: 0, clock: 0.0, budget, overdue, cost: &|_, _| 1.0 },
        vec![0],
        3,
        seed,
    )
}

/// Returns a Pareto-distributed number above 1. A higher shape makes large numbers rarer.
fn pareto(random: &mut Random, shape: f64) -> f64 {
    (1.0 - random.fraction()).powf(-1.0 / shape)
}

fn file_sizes(random: &mut Random, files: usize, shape: f64) -> f64 {
    (0..files).map(|_| 2000.0 * pareto(random, shape)).sum()
}

/// Makes a tree of `dirs` directories, each in one that exists already and that `above` chooses.
fn grown(
    seed: u64,
    dirs: usize,
    bytes: f64,
    mut above: impl FnMut(&mut Random, &SimulatedTree) -> usize,
) -> SimulatedTree {
    let mut random = Random::new(seed);
    let mut tree = SimulatedTree { dirs: vec![SimulatedDir::default()], informative: true };
    for _ in 1..dirs {
        let parent = above(&mut random, &tree);
        let files = (3.0 * pareto(&mut random, 1.5)) as usize;
        let bytes = file_sizes(&mut random, files.min(5_000), bytes);
        tree.add(parent, SimulatedDir { files: files as f64, bytes, below: Vec::new() });
    }
    tree
}

/// Makes a tree in which each new directory has a random parent, so some subtrees are far larger
/// than others.
fn random_tree(seed: u64, dirs: usize, bytes: f64) -> SimulatedTree {
    grown(seed, dirs, bytes, |random, tree| (random.fraction() * tree.dirs.len() as f64) as usize)
}

/// Makes a tree whose numbers of subdirectories follow a Pareto distribution.
fn pareto_fan_out(seed: u64, dirs: usize) -> SimulatedTree {
    let (mut next, mut room) = (0, 8);
    grown(seed, dirs, 1.5, move |random, tree| {
        while room == 0 {
            next += 1;
            room = (0.8 * pareto(random, 1.3)) as usize + usize::from(random.fraction() < 0.2);
            room = room.min(2_000);
        }
        room -= 1;
        next.min(tree.dirs.len() - 1)
    })
}

fn with_chain(mut tree: SimulatedTree, length: usize) -> SimulatedTree {
    let mut at = 3;
    for _ in 0..length {
        at = tree.add(at, SimulatedDir { files: 10.0, bytes: 50_000.0, below: Vec::new() });
    }
    tree
}

fn with_wide_directory(mut tree: SimulatedTree) -> SimulatedTree {
    let last = tree.dirs.len() - 1;
    tree.dirs[last].files = 1e6;
    tree.dirs[last].bytes = 1e10;
    tree
}

/// Puts one tree into another, `depth` levels down.
fn with_giant(mut tree: SimulatedTree, giant: &SimulatedTree, depth: usize) -> SimulatedTree {
    let mut at = 0;
    for _ in 0..depth {
        at = tree.dirs[at].below.first().copied().unwrap_or(at);
    }
    let start = tree.dirs.len();
    for dir in &giant.dirs {
        let below = dir.below.iter().map(|below| below + start).collect();
        tree.dirs.push(SimulatedDir { below, ..dir.clone() });
    }
    tree.dirs[at].below.push(start);
    tree
}

/// Adds a directory of 30,000 files, `depth` levels below a directory that looks like all others.
fn with_needle(mut tree: SimulatedTree, depth: usize) -> SimulatedTree {
    let mut at = tree.dirs.len() / 2;
    for level in 0..depth {
        let files = if level + 1 == depth { 30_000.0 } else { 1.0 };
        at = tree.add(at, SimulatedDir { files, bytes: 2_000.0 * files, below: Vec::new() });
    }
    tree
}

/// Adds a file that is as large as all others together, to a directory that looks like most.
fn with_large_file(mut tree: SimulatedTree) -> SimulatedTree {
    let leaf = tree.dirs.iter().rposition(|dir| dir.below.is_empty()).unwrap_or(0);
    tree.dirs[leaf].bytes += tree.total().0[3];
    tree
}

/// Gives one in 200 directories without subdirectories a hundred times as many files as the others
/// have.
fn with_full_leaves(mut tree: SimulatedTree) -> SimulatedTree {
    let leaves = tree.dirs.iter_mut().filter(|dir| dir.below.is_empty());
    leaves.step_by(200).for_each(|leaf| leaf.files = 300.0);
    tree
}

/// Makes link counts and sizes say nothing.
fn uninformative(tree: SimulatedTree) -> SimulatedTree {
    SimulatedTree { informative: false, ..tree }
}

/// The statistics of many runs on one tree, each for entries, files, directories, apparent size and
/// disk usage.
struct RunStatistics {
    /// The number of runs whose range had a confidence, or that counted everything.
    claimed: [u64; 5],
    /// The number of those runs whose range held the truth.
    held: [u64; 5],
    /// The mean of the estimates, as a share of the truth, and its standard error.
    mean: [f64; 5],
    error: [f64; 5],
}

fn record(tree: &SimulatedTree, budget: f64, runs: u64) -> RunStatistics {
    let total = tree.total().0;
    let ranges: Vec<_> = (0..runs).map(|seed| run(tree, budget, seed).estimate.total).collect();
    let count = |is: &dyn Fn(&EstimateRange, f64) -> bool| -> [u64; 5] {
        std::array::from_fn(|kind| {
            ranges.iter().filter(|ranges| is(&ranges[kind], total[kind])).count() as u64
        })
    };
    let is_claimed = |range: &EstimateRange| matches!(range.basis, Basis::Count | Basis::Confident);
    let mean: [f64; 5] = std::array::from_fn(|kind| {
        ranges.iter().map(|ranges| ranges[kind].estimate / total[kind]).sum::<f64>() / runs as f64
    });
    let variance: [f64; 5] = std::array::from_fn(|kind| {
        let off = ranges.iter().map(|ranges| (ranges[kind].estimate / total[kind] - mean[kind]).powi(2));
        off.sum::<f64>() / (runs - 1) as f64
    });
    RunStatistics {
        claimed: count(&|range, _| is_claimed(range)),
        held: count(&|range, truth| is_claimed(range) && holds(range, truth)),
        mean,
        error: variance.map(|variance| (variance / runs as f64).sqrt()),
    }
}

fn holds(range: &EstimateRange, truth: f64) -> bool {
    let slack = truth * 1e-9;
    range.counted <= truth + slack && range.low <= truth + slack && truth <= range.high + slack
}

/// Asserts, for many budgets, that 9 in 10 of the ranges with a confidence hold the truth. The mean
/// is not checked: where few directories hold most entries, few runs find them.
#[track_caller]
fn assert_coverage(name: &str, tree: &SimulatedTree) {
    for share in [0.02, 0.2, 0.5, 0.7, 0.9] {
        let RunStatistics { claimed, held, mean, error } = record(tree, share * tree.dirs.len() as f64, RUNS);
        let shown = format!("{name}, {share}: held {held:?} of {claimed:?} mean {mean:.3?} +- {error:.3?}");
        for kind in 0..5 {
            // If few runs have a confidence, more than one in ten of them may be wrong by chance.
            let wrong = claimed[kind] - held[kind];
            assert!(wrong * 10 <= claimed[kind].max(RUNS / 2), "{kind}: {shown}");
        }
    }
}

/// Asserts in addition that the estimates are right on average.
#[track_caller]
fn assert_unbiased(name: &str, tree: &SimulatedTree) {
    assert_coverage(name, tree);
    for share in [0.2, 0.5] {
        let budget = share * tree.dirs.len() as f64;
        let RunStatistics { mean, error, .. } = record(tree, budget, RUNS);
        let is_right = |kind: usize| (mean[kind] - 1.0).abs() < 5.0 * error[kind] + 1e-9;
        assert!((0..5).all(is_right), "{name}, {share}: mean {mean:.3?} +- {error:.3?}");
        let reads = run(tree, budget, 0).reads as f64;
        assert!(reads < 1.1 * budget + 150.0, "{name}: {reads} of {budget}");
    }
}

const RUNS: u64 = 40;
const DIRS: usize = 4_000;

#[test]
fn some_subtrees_are_far_larger_than_others() {
    assert_unbiased("random", &random_tree(1, DIRS, 1.8));
    assert_unbiased("mute random", &uninformative(random_tree(1, DIRS, 1.8)));
}

#[test]
fn numbers_of_subdirectories_are_paretos() {
    assert_unbiased("pareto fan-out", &pareto_fan_out(2, DIRS));
    assert_unbiased("mute pareto fan-out", &uninformative(pareto_fan_out(2, DIRS)));
}

#[test]
fn file_sizes_are_paretos() {
    assert_coverage("pareto sizes", &random_tree(3, DIRS, 1.05));
    assert_coverage("one large file", &with_large_file(random_tree(3, DIRS, 1.8)));
    assert_coverage("full leaves", &with_full_leaves(random_tree(3, DIRS, 1.8)));
}

#[test]
fn one_directory_holds_most() {
    assert_coverage("a million files", &with_wide_directory(random_tree(5, DIRS, 1.8)));
    assert_coverage("a needle", &with_needle(random_tree(5, DIRS, 1.8), 8));
    assert_coverage("a mute needle", &uninformative(with_needle(random_tree(5, DIRS, 1.8), 8)));
}

#[test]
fn a_subtree_deep_down_holds_half() {
    let giant = random_tree(99, DIRS / 2, 1.8);
    assert_coverage("giant", &with_giant(random_tree(6, DIRS / 2, 1.8), &giant, 6));
    assert_coverage("mute giant", &uninformative(with_giant(random_tree(6, DIRS / 2, 1.8), &giant, 6)));
}

#[test]
fn a_chain_goes_deep() {
    assert_coverage("chain", &with_chain(random_tree(4, DIRS, 1.8), 400));
}

/// With informative link counts and sizes, half of the directories are enough for a confidence, and
/// the range is narrow.
#[test]
fn half_of_an_ordinary_tree_is_enough_for_a_confidence() {
    for seed in 0..20 {
        let tree = random_tree(seed, DIRS, 1.8);
        let total = run(&tree, 0.7 * DIRS as f64, seed).estimate.total;
        assert_eq!(total[2].basis, Basis::Count, "{total:?}");
        assert_eq!(total[0].basis, Basis::Confident, "{total:?}");
        assert!(total[0].high / total[0].low < 1.35, "{total:?}");
        assert_eq!(total[3].basis, Basis::Spread, "any file may be the largest: {total:?}");
    }
}

/// The cost of a read changes during a run, as on a cold disk, on a busy server or with directories
/// of many entries.
#[test]
fn budgets_are_kept_whatever_reading_takes() {
    let tree = random_tree(7, DIRS, 1.8);
    let entries = |dir: usize| tree.amounts(dir).0[0];
    let truth = tree.total().0[0];
    let cold_after = |reads: usize| move |_: usize, before: usize| if before < reads { 0.1 } else { 1.0 };
    let by_entries = |dir: usize, _: usize| 0.2 + entries(dir) / 10.0;
    let in_waves = |_: usize, before: usize| if (before / 300).is_multiple_of(2) { 0.2 } else { 2.0 };
    let costs: [(&str, &CostFn); 5] = [
        ("even", &|_, _| 1.0),
        ("cold after 100", &cold_after(100)),
        ("cold after 700", &cold_after(700)),
        ("by entries", &by_entries),
        ("in waves", &in_waves),
    ];
    for (name, cost) in costs {
        let (mut completed, mut mean, runs) = (0, 0.0, 120);
        for seed in 0..runs {
            let sampled = timed(&tree, 1_000.0, seed, cost);
            let (spent, range) = (sampled.reader.spent(), sampled.estimate.total[0]);
            assert!(spent < 1.2, "{name}: {spent}");
            assert!(sampled.completed || range.basis != Basis::Count, "{name}: {range:?}");
            completed += u64::from(sampled.completed);
            mean += range.estimate / truth / runs as f64;
        }
        assert!(completed * 10 >= runs * 9, "{name}: {completed}");
        assert!((mean - 1.0).abs() < 0.15, "{name}: {mean}");
    }
}

/// A run that is stopped before anything was drawn has no estimate: its counts are far below the
/// truth.
#[test]
fn a_run_that_is_given_up_shows_an_earlier_estimate_or_none() {
    let tree = random_tree(8, DIRS, 1.8);
    let truth = tree.total().0[0];
    let hangs_after = |reads: usize| move |_: usize, before: usize| if before < reads { 1.0 } else { 1e9 };
    let (at_once, later) = (hangs_after(60), hangs_after(600));
    let (mut shown, mut mean) = (0, 0.0);
    for seed in 0..60 {
        let early = timed(&tree, 1_000.0, seed, &at_once);
        assert!(!early.completed && early.estimate.total.iter().all(|range| range.basis == Basis::AtLeast));
        let late = timed(&tree, 1_000.0, seed, &later);
        assert!(!late.completed && !late.estimate.exact);
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
    for tree in [pareto_fan_out(2, 3_000), with_chain(random_tree(4, 3_000, 1.8), 400)] {
        let sampled = run(&tree, 1.5 * tree.dirs.len() as f64, 1);
        assert!(sampled.estimate.exact, "{} of {}", sampled.reads, tree.dirs.len());
        for (range, truth) in sampled.estimate.total.iter().zip(tree.total().0) {
            assert!(
                range.low >= range.high && (range.estimate / truth - 1.0).abs() < 1e-9,
                "{range:?} {truth}"
            );
        }
    }
}

#[test]
fn with_time_for_nothing_an_answer_does_not_seem_exact() {
    let tree = random_tree(1, 3_000, 1.8);
    for seed in 0..50 {
        let SampleResult { estimate, reads, completed, .. } = run(&tree, 0.001, seed);
        assert!(!estimate.exact && completed && reads < 100);
        let ranges = estimate.largest.iter().map(|(_, ranges)| ranges).chain([&estimate.total]);
        ranges.for_each(|ranges| assert!(ranges[0].low < ranges[0].high, "{seed}: {ranges:?}"));
    }
}

#[test]
fn the_largest_subtrees_have_ranges_too() {
    let tree = random_tree(1, DIRS, 1.8);
    let mut truth: Vec<f64> = (0..tree.dirs.len()).map(|dir| tree.amounts(dir).0[4]).collect();
    for dir in (0..tree.dirs.len()).rev() {
        truth[dir] += tree.dirs[dir].below.iter().map(|below| truth[*below]).sum::<f64>();
    }
    let (mut held, mut count) = (0, 0);
    for seed in 0..100 {
        for (dir, ranges) in run(&tree, 0.3 * DIRS as f64, seed).estimate.largest {
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
    let tree = random_tree(1, DIRS, 1.8);
    let estimate = |seed| run(&tree, 2_000.0, seed).estimate.total;
    assert_eq!(estimate(5), estimate(5));
    assert_ne!(estimate(5), estimate(6));
}
