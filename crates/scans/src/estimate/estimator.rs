//! The estimators: the directories that were read into the census, those that were drawn, and the
//! estimates and variances computed from both.

use std::collections::BTreeSet;

use super::evidence::{Evidence, ExpectedContents};
use super::interval::{Basis, EstimateRange};

/// The estimated kinds: entries, files, directories, apparent size, disk usage.
const COUNT: usize = 5;
/// The kind that is the number of directories, and the first kind that is in bytes.
const DIRECTORIES: usize = 2;
const SIZES: usize = 3;

/// A number for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amounts(pub(super) [f64; COUNT]);

impl Amounts {
    pub(super) fn add(&mut self, other: &Self, times: f64) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, number)| *sum += number * times);
    }

    pub(super) fn map(self, each: impl Fn(f64) -> f64) -> Self {
        Self(self.0.map(each))
    }
}

/// The contents of a directory.
#[derive(Clone, Debug)]
pub(super) struct DirContents<K> {
    /// The amounts of the entries of the directory.
    pub(super) amounts: Amounts,
    /// The amounts of the directory itself, which count in its parent.
    pub(super) itself: Amounts,
    /// The variance of `amounts`, where the metadata of only a part of the files was read.
    pub(super) noise: Amounts,
    /// The part of `amounts` that was seen, without extrapolation.
    pub(super) seen: Amounts,
    /// The share of the files whose metadata was read.
    pub(super) stat_share: f64,
    /// Whether link count and size were consistent with the entries.
    pub(super) consistent: bool,
    /// The subdirectories, each with its expected contents.
    pub(super) below: Vec<(K, ExpectedContents)>,
}

impl<K> Default for DirContents<K> {
    /// Returns the contents of an empty directory.
    fn default() -> Self {
        let [amounts, itself, noise, seen] = [Amounts::default(); 4];
        Self { amounts, itself, noise, seen, stat_share: 1.0, consistent: true, below: Vec::new() }
    }
}

/// A directory of the census.
#[derive(Clone, Debug)]
struct CensusDir<K> {
    key: K,
    parent: Option<u32>,
    amounts: Amounts,
    itself: Amounts,
    noise: Amounts,
}

/// The directories that are read in full. Beyond [`CENSUS_DIRS_MAX`] of them, a directory is added
/// to the directory that contains it.
#[derive(Clone, Debug)]
pub(super) struct Census<K> {
    dirs: Vec<CensusDir<K>>,
    seen: Amounts,
    evidence: Evidence,
}

/// Most directories that a census keeps apart.
const CENSUS_DIRS_MAX: usize = 1 << 18;

impl<K: Clone> Census<K> {
    pub(super) fn new() -> Self {
        Self { dirs: Vec::new(), seen: Amounts::default(), evidence: Evidence::default() }
    }

    /// Adds a directory that is in the directory `parent`. Returns its number.
    pub(super) fn count(&mut self, key: K, parent: Option<u32>, contents: &DirContents<K>) -> u32 {
        self.seen.add(&contents.seen, 1.0);
        self.evidence.record_read(contents.stat_share, contents.consistent);
        let (Some(parent), true) = (parent, self.dirs.len() >= CENSUS_DIRS_MAX) else {
            self.dirs.push(CensusDir {
                key,
                parent,
                amounts: contents.amounts,
                itself: contents.itself,
                noise: contents.noise,
            });
            return (self.dirs.len() - 1) as u32;
        };
        let dir = &mut self.dirs[parent as usize];
        dir.amounts.add(&contents.amounts, 1.0);
        dir.noise.add(&contents.noise, 1.0);
        parent
    }

    /// Returns the amounts that were seen in the directories.
    pub(super) fn seen(&self) -> Amounts {
        self.seen
    }

    /// Returns the amounts of the directories, with the extrapolated parts.
    fn sum(&self) -> Amounts {
        let mut sum = Amounts::default();
        self.dirs.iter().for_each(|dir| sum.add(&dir.amounts, 1.0));
        sum
    }

    /// Returns the estimates for everything, and for the `largest` directories below the roots by
    /// disk usage.
    pub(super) fn estimate(&self, sample: &Sample, largest: usize) -> Estimate<K> {
        let all = |_: u32| true;
        let total = self.ranges(self.sum(), self.noise(all), sample, all);
        let mut sums: Vec<(Amounts, Amounts)> =
            self.dirs.iter().map(|dir| (dir.amounts, Amounts::default())).collect();
        for (census_dir, amounts) in sample.first_draws() {
            sums[census_dir as usize].1.add(&amounts, 1.0);
        }
        for (index, dir) in self.dirs.iter().enumerate().rev() {
            if let Some(parent) = dir.parent {
                let (counted, rest) = sums[index];
                sums[parent as usize].0.add(&counted, 1.0);
                sums[parent as usize].1.add(&rest, 1.0);
            }
        }
        let usage = |index: &usize| sums[*index].0.0[COUNT - 1] + sums[*index].1.0[COUNT - 1];
        let mut order: Vec<usize> =
            (0..self.dirs.len()).filter(|index| self.dirs[*index].parent.is_some()).collect();
        order.sort_by(|one, other| usage(other).total_cmp(&usage(one)).then(one.cmp(other)));
        order.truncate(largest);
        let subtree = |index: &usize| {
            let inside = self.below(*index);
            let inside = |census_dir: u32| inside[census_dir as usize];
            let mut counted = sums[*index].0;
            counted.add(&self.dirs[*index].itself, 1.0);
            let ranges = self.ranges(counted, self.noise(inside), sample, inside);
            (self.dirs[*index].key.clone(), ranges)
        };
        Estimate {
            total,
            largest: order.iter().map(subtree).collect(),
            exact: sample.is_whole() && self.is_whole(),
        }
    }

    /// Returns, for each directory, whether it is at or below `top`.
    fn below(&self, top: usize) -> Vec<bool> {
        let mut inside = vec![false; self.dirs.len()];
        for (index, dir) in self.dirs.iter().enumerate() {
            inside[index] = index == top || dir.parent.is_some_and(|parent| inside[parent as usize]);
        }
        inside
    }

    fn noise(&self, inside: impl Fn(u32) -> bool) -> Amounts {
        let mut noise = Amounts::default();
        let inside = self.dirs.iter().enumerate().filter(|(index, _)| inside(*index as u32));
        inside.for_each(|(_, dir)| noise.add(&dir.noise, 1.0));
        noise
    }

    fn is_whole(&self) -> bool {
        self.noise(|_| true) == Amounts::default()
    }

    fn ranges(
        &self,
        counted: Amounts,
        noise: Amounts,
        sample: &Sample,
        inside: impl Fn(u32) -> bool,
    ) -> [EstimateRange; COUNT] {
        let SampleEstimate { rest, variance, squares, drawn, lacks_draws } = sample.spread(inside);
        let evidence = self.evidence.combine(sample.evidence);
        let is_whole = sample.is_whole() && self.is_whole();
        std::array::from_fn(|kind| {
            let (drawing, noise) = (variance.0[kind], noise.0[kind]);
            // Satterthwaite 1946: the fewer draws the variance comes from, the less certain is the
            // variance itself.
            let freedom = 2.0 * drawing * drawing / (squares.0[kind] - drawing * drawing / drawn);
            let (counted, rest) = (counted.0[kind], rest.0[kind]);
            if lacks_draws {
                return EstimateRange::at_least(counted + rest);
            }
            let basis = basis(&evidence, is_whole, kind);
            if drawing > 0.0 {
                let range = EstimateRange::new(counted, rest, drawing + noise, freedom, basis);
                // With noise, some files were not looked at, so there is no counted lower bound.
                return EstimateRange { counted: if noise > 0.0 { 0.0 } else { counted }, ..range };
            }
            // Without draws, only the files that were not looked at are uncertain. Many were looked
            // at, so the normal distribution holds.
            let seen = if noise > 0.0 { counted + rest } else { 0.0 };
            EstimateRange::new(counted + rest - seen, seen, noise, f64::MAX, basis)
        })
    }
}

/// Returns the confidence of the range of the number `kind`.
fn basis(evidence: &Evidence, is_whole: bool, kind: usize) -> Basis {
    let (is_known, is_supported) = match kind {
        DIRECTORIES => (evidence.knows_directories(), evidence.supports_counts()),
        0..SIZES => (false, evidence.supports_counts()),
        _ => (false, evidence.supports_sizes()),
    };
    match (is_whole || is_known, is_supported) {
        (true, _) => Basis::Count,
        (false, true) => Basis::Confident,
        (false, false) => Basis::Spread,
    }
}

/// The estimates of a survey.
#[derive(Clone, Debug)]
pub(super) struct Estimate<K> {
    pub(super) total: [EstimateRange; COUNT],
    pub(super) largest: Vec<(K, [EstimateRange; COUNT])>,
    /// Whether nothing was left out.
    pub(super) exact: bool,
}

impl<K> Estimate<K> {
    /// Returns lower bounds, for a survey that has sampled nothing.
    pub(super) fn at_least(counted: Amounts) -> Self {
        Self { total: counted.0.map(EstimateRange::at_least), largest: Vec::new(), exact: false }
    }

    /// Raises all ranges to at least the amounts that have been counted by now.
    pub(super) fn raise(&mut self, counted: Amounts) {
        self.total.iter_mut().zip(counted.0).for_each(|(range, counted)| range.raise(counted));
    }
}

/// A directory that was drawn, with all directories below it that were read without another draw.
#[derive(Clone, Debug)]
struct Draw {
    /// The draw that led to this one; `None` for a draw from the frontier.
    parent: Option<u32>,
    /// The directory of the census that it is below.
    census_dir: u32,
    /// The number of directories that it stands for before this draw.
    weight: f64,
    probability: f64,
    contents: Amounts,
    noise: Amounts,
}

/// The draws from the frontier of the census. Their estimator is Horvitz and Thompson's (1952),
/// stage by stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    draws: Vec<Draw>,
    /// The ends of the groups of draws that were made together.
    group_ends: Vec<usize>,
    /// The directories of the census below which a directory was left out.
    left_out: BTreeSet<u32>,
    seen: Amounts,
    pub(super) evidence: Evidence,
}

/// The estimate for the directories that are not in the census, with its variance.
struct SampleEstimate {
    rest: Amounts,
    variance: Amounts,
    /// The sum of the squares of the parts that the draws add to the variance.
    squares: Amounts,
    drawn: f64,
    /// Whether directories were left out and none was drawn instead.
    lacks_draws: bool,
}

impl Sample {
    /// Adds a draw. Returns its number.
    pub(super) fn add_draw(
        &mut self,
        parent: Option<u32>,
        census_dir: u32,
        weight: f64,
        probability: f64,
    ) -> u32 {
        let (contents, noise) = (Amounts::default(), Amounts::default());
        self.draws.push(Draw { parent, census_dir, weight, probability, contents, noise });
        (self.draws.len() - 1) as u32
    }

    /// Records that a directory below `census_dir` was not drawn.
    pub(super) fn leave_out(&mut self, census_dir: u32) {
        self.left_out.insert(census_dir);
    }

    /// Ends a group of draws that were made together.
    pub(super) fn end_group(&mut self) {
        if self.group_ends.last().copied().unwrap_or(0) < self.draws.len() {
            self.group_ends.push(self.draws.len());
        }
    }

    /// Adds the contents of a directory that a draw led to.
    pub(super) fn add<K>(&mut self, draw: u32, contents: &DirContents<K>) {
        self.seen.add(&contents.seen, 1.0);
        self.evidence.record_read(contents.stat_share, contents.consistent);
        let draw = &mut self.draws[draw as usize];
        draw.contents.add(&contents.amounts, 1.0);
        draw.noise.add(&contents.noise, 1.0);
    }

    /// Returns the amounts seen in the directories drawn.
    pub(super) fn seen(&self) -> Amounts {
        self.seen
    }

    /// Adds the results of later draws to the draws that led to them. Each draw is then an estimate
    /// of everything below it.
    pub(super) fn fold(&mut self) {
        for index in (0..self.draws.len()).rev() {
            let Draw { parent, contents, probability, .. } = self.draws[index].clone();
            if let Some(parent) = parent {
                self.draws[parent as usize].contents.add(&contents, 1.0 / probability);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.draws.iter().all(|draw| draw.noise == Amounts::default())
    }

    /// Iterates over the draws from the frontier: the directory of the census, and the weighted
    /// amounts.
    fn first_draws(&self) -> impl Iterator<Item = (u32, Amounts)> {
        let first_draws = self.draws.iter().filter(|draw| draw.parent.is_none());
        first_draws.map(|draw| (draw.census_dir, draw.contents.map(|contents| contents / draw.probability)))
    }

    /// Estimates the contents below those directories of the census that `inside` accepts, with the
    /// variance of the estimate.
    ///
    /// Draws made together are of a fixed number. Their variance is Hájek's (1964) with Brewer's
    /// factor, which is nearly exact for systematic sampling of items in no order, and too large
    /// where neighbours are alike. The variance of a draw that another draw led to is divided by
    /// the weight before it: the square of the first draw has that part already (Raj 1966).
    fn spread(&self, inside: impl Fn(u32) -> bool) -> SampleEstimate {
        let [mut rest, mut variance, mut squares, mut largest] = [Amounts::default(); 4];
        self.first_draws()
            .filter(|(census_dir, _)| inside(*census_dir))
            .for_each(|(_, amounts)| rest.add(&amounts, 1.0));
        let (mut start, mut drawn) = (0, 0.0);
        for end in &self.group_ends {
            let together: Vec<&Draw> =
                self.draws[start..*end].iter().filter(|draw| draw.probability < 1.0).collect();
            start = *end;
            drawn += together.len() as f64;
            let estimate = |draw: &Draw, kind: usize| {
                let is_inside = f64::from(u8::from(inside(draw.census_dir)));
                is_inside * draw.contents.0[kind] * draw.weight / draw.probability
            };
            let left_out: f64 = together.iter().map(|draw| 1.0 - draw.probability).sum();
            for kind in 0..COUNT {
                let share = |draw: &&Draw| (1.0 - draw.probability) / left_out * estimate(draw, kind);
                let several = together.len() >= FIXED_DRAWS_MIN;
                let mean = if several { together.iter().map(share).sum() } else { 0.0 };
                let factor = if several { together.len() as f64 / (together.len() - 1) as f64 } else { 1.0 };
                for draw in &together {
                    let off = estimate(draw, kind) - mean;
                    let part = factor * (1.0 - draw.probability) * off * off / draw.weight;
                    variance.0[kind] += part;
                    squares.0[kind] += part * part;
                    largest.0[kind] = largest.0[kind].max(part);
                }
            }
        }
        for draw in self.draws.iter().filter(|draw| inside(draw.census_dir)) {
            variance.add(&draw.noise, draw.weight / draw.probability);
        }
        variance.add(&largest, HEDGE);
        squares.add(&largest.map(|part| part * part), HEDGE);
        let instead = |draw: &Draw| draw.probability < 1.0 && inside(draw.census_dir);
        let lacks_draws =
            self.left_out.iter().any(|census_dir| inside(*census_dir)) && !self.draws.iter().any(instead);
        SampleEstimate { rest, variance, squares, drawn, lacks_draws }
    }
}

/// Fewer draws than this do not count as a fixed number: there might have been one more, or none.
const FIXED_DRAWS_MIN: usize = 4;
/// The variance has room for this many more draws like the one that adds most to it. Where few
/// directories hold most entries, a sample usually has fewer of them than there are.
const HEDGE: f64 = 6.0;
