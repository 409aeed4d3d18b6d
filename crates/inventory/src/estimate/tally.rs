//! What has been read, and what it stands for: directories read for good, those drawn, and the estimates and variances that come
//! of them.

use std::collections::BTreeSet;

use super::evidence::{Evidence, Outlook};
use super::interval::{Basis, Range};

/// What is estimated: entries, files, directories, apparent size, disk usage.
const COUNT: usize = 5;
/// The number of directories among these, and the first that is one of bytes.
const DIRECTORIES: usize = 2;
const SIZES: usize = 3;

/// Numbers of each kind that is estimated.
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

/// The result of reading a directory.
#[derive(Clone, Debug)]
pub(super) struct Found<K> {
    /// The amounts of its direct entries.
    pub(super) amounts: Amounts,
    /// The amounts of the directory itself, which count in its parent.
    pub(super) itself: Amounts,
    /// The variance of `amounts`, where not all entries were looked at.
    pub(super) noise: Amounts,
    /// The part of `amounts` that was seen itself, without extrapolation.
    pub(super) seen: Amounts,
    /// The share of its files that was looked at.
    pub(super) looks: f64,
    /// Its link count and size were right.
    pub(super) honest: bool,
    /// Its subdirectories, each with what it seems to hold.
    pub(super) below: Vec<(K, Outlook)>,
}

impl<K> Default for Found<K> {
    /// Nothing.
    fn default() -> Self {
        let [amounts, itself, noise, seen] = [Amounts::default(); 4];
        Self { amounts, itself, noise, seen, looks: 1.0, honest: true, below: Vec::new() }
    }
}

/// A directory that was read for good.
#[derive(Clone, Debug)]
struct Known<K> {
    key: K,
    above: Option<u32>,
    amounts: Amounts,
    itself: Amounts,
    noise: Amounts,
}

/// Directories read for good. Beyond so many, one counts as a part of the directory it is in.
#[derive(Clone, Debug)]
pub(super) struct Census<K> {
    known: Vec<Known<K>>,
    seen: Amounts,
    evidence: Evidence,
}

/// Directories of which a census tells one from the other.
const KNOWN_MAX: usize = 1 << 18;

impl<K: Clone> Census<K> {
    pub(super) fn new() -> Self {
        Self { known: Vec::new(), seen: Amounts::default(), evidence: Evidence::default() }
    }

    /// Counts a directory in the one `above`; its number.
    pub(super) fn count(&mut self, key: K, above: Option<u32>, found: &Found<K>) -> u32 {
        self.seen.add(&found.seen, 1.0);
        self.evidence.note_read(found.looks, found.honest);
        let (Some(above), true) = (above, self.known.len() >= KNOWN_MAX) else {
            self.known.push(Known {
                key,
                above,
                amounts: found.amounts,
                itself: found.itself,
                noise: found.noise,
            });
            return (self.known.len() - 1) as u32;
        };
        let known = &mut self.known[above as usize];
        known.amounts.add(&found.amounts, 1.0);
        known.noise.add(&found.noise, 1.0);
        above
    }

    /// All that was seen in them.
    pub(super) fn seen(&self) -> Amounts {
        self.seen
    }

    /// All that is in them, as far as that is known.
    fn sum(&self) -> Amounts {
        let mut sum = Amounts::default();
        self.known.iter().for_each(|known| sum.add(&known.amounts, 1.0));
        sum
    }

    /// The estimates of everything, and of the `largest` directories below the roots with the most disk usage.
    pub(super) fn estimate(&self, sample: &Sample, largest: usize) -> Estimate<K> {
        let all = |_: u32| true;
        let total = self.ranges(self.sum(), self.noise(all), sample, all);
        let mut sums: Vec<(Amounts, Amounts)> =
            self.known.iter().map(|known| (known.amounts, Amounts::default())).collect();
        for (known, amounts) in sample.firsts() {
            sums[known as usize].1.add(&amounts, 1.0);
        }
        for (index, known) in self.known.iter().enumerate().rev() {
            if let Some(above) = known.above {
                let (counted, rest) = sums[index];
                sums[above as usize].0.add(&counted, 1.0);
                sums[above as usize].1.add(&rest, 1.0);
            }
        }
        let usage = |index: &usize| sums[*index].0.0[COUNT - 1] + sums[*index].1.0[COUNT - 1];
        let mut order: Vec<usize> =
            (0..self.known.len()).filter(|index| self.known[*index].above.is_some()).collect();
        order.sort_by(|one, other| usage(other).total_cmp(&usage(one)).then(one.cmp(other)));
        order.truncate(largest);
        let subtree = |index: &usize| {
            let inside = self.below(*index);
            let inside = |known: u32| inside[known as usize];
            let mut counted = sums[*index].0;
            counted.add(&self.known[*index].itself, 1.0);
            let ranges = self.ranges(counted, self.noise(inside), sample, inside);
            (self.known[*index].key.clone(), ranges)
        };
        Estimate {
            total,
            largest: order.iter().map(subtree).collect(),
            exact: sample.is_whole() && self.is_whole(),
        }
    }

    /// Which directories are at or below this one.
    fn below(&self, top: usize) -> Vec<bool> {
        let mut inside = vec![false; self.known.len()];
        for (index, known) in self.known.iter().enumerate() {
            inside[index] = index == top || known.above.is_some_and(|above| inside[above as usize]);
        }
        inside
    }

    fn noise(&self, inside: impl Fn(u32) -> bool) -> Amounts {
        let mut noise = Amounts::default();
        let inside = self.known.iter().enumerate().filter(|(index, _)| inside(*index as u32));
        inside.for_each(|(_, known)| noise.add(&known.noise, 1.0));
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
    ) -> [Range; COUNT] {
        let Spread { rest, variance, squares, drawn, is_blind } = sample.spread(inside);
        let evidence = self.evidence.and(sample.evidence);
        let is_whole = sample.is_whole() && self.is_whole();
        std::array::from_fn(|kind| {
            let (drawing, noise) = (variance.0[kind], noise.0[kind]);
            // Satterthwaite 1946: the fewer draws the variance is due to, the less it is known itself.
            let freedom = 2.0 * drawing * drawing / (squares.0[kind] - drawing * drawing / drawn);
            let (counted, rest) = (counted.0[kind], rest.0[kind]);
            if is_blind {
                return Range::at_least(counted + rest);
            }
            let basis = basis(&evidence, is_whole, kind);
            if drawing > 0.0 {
                let range = Range::new(counted, rest, drawing + noise, freedom, basis);
                // With noise, some entries were not looked at: no lower bound was counted.
                return Range { counted: if noise > 0.0 { 0.0 } else { counted }, ..range };
            }
            // Only entries of directories that were read for good are not known: those seen are many.
            let seen = if noise > 0.0 { counted + rest } else { 0.0 };
            Range::new(counted + rest - seen, seen, noise, f64::MAX, basis)
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

/// An estimate, and what it is of.
#[derive(Clone, Debug)]
pub(super) struct Estimate<K> {
    pub(super) total: [Range; COUNT],
    pub(super) largest: Vec<(K, [Range; COUNT])>,
    /// Nothing was left out.
    pub(super) exact: bool,
}

impl<K> Estimate<K> {
    /// Where nothing was sampled yet.
    pub(super) fn at_least(counted: Amounts) -> Self {
        Self { total: counted.0.map(Range::at_least), largest: Vec::new(), exact: false }
    }

    /// Nothing is below what has been counted by now.
    pub(super) fn raise(&mut self, counted: Amounts) {
        self.total.iter_mut().zip(counted.0).for_each(|(range, counted)| range.raise(counted));
    }
}

/// A directory drawn, and all below it that was found without drawing again.
#[derive(Clone, Debug)]
struct Draw {
    /// The draw it came of, if that was not the first.
    above: Option<u32>,
    /// The directory read for good that it is below.
    known: u32,
    /// How many such directories it stands for before this draw.
    weight: f64,
    probability: f64,
    found: Amounts,
    noise: Amounts,
}

/// What was drawn from the directories next to those read for good. The estimate is that of Horvitz and Thompson (1952), stage by
/// stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    draws: Vec<Draw>,
    /// Where the draws made together end.
    ends: Vec<usize>,
    /// The directories read for good below which something was left out.
    left_out: BTreeSet<u32>,
    seen: Amounts,
    pub(super) evidence: Evidence,
}

/// What a sample says of the directories that were not read for good.
struct Spread {
    rest: Amounts,
    variance: Amounts,
    /// Of what each draw adds to the variance.
    squares: Amounts,
    drawn: f64,
    /// Something was left out, and nothing was drawn instead.
    is_blind: bool,
}

impl Sample {
    /// Notes a draw; its number.
    pub(super) fn note(&mut self, above: Option<u32>, known: u32, weight: f64, probability: f64) -> u32 {
        let (found, noise) = (Amounts::default(), Amounts::default());
        self.draws.push(Draw { above, known, weight, probability, found, noise });
        (self.draws.len() - 1) as u32
    }

    /// Notes that something there was not drawn.
    pub(super) fn leave_out(&mut self, known: u32) {
        self.left_out.insert(known);
    }

    /// The draws since the last such call were made together.
    pub(super) fn end(&mut self) {
        if self.ends.last().copied().unwrap_or(0) < self.draws.len() {
            self.ends.push(self.draws.len());
        }
    }

    /// Adds what was found in a directory that came of a draw.
    pub(super) fn add<K>(&mut self, draw: u32, found: &Found<K>) {
        self.seen.add(&found.seen, 1.0);
        self.evidence.note_read(found.looks, found.honest);
        let draw = &mut self.draws[draw as usize];
        draw.found.add(&found.amounts, 1.0);
        draw.noise.add(&found.noise, 1.0);
    }

    /// Returns the amounts seen in the directories drawn.
    pub(super) fn seen(&self) -> Amounts {
        self.seen
    }

    /// Adds what later draws found to the earlier ones they came of: then each is an estimate of all below it.
    pub(super) fn fold(&mut self) {
        for index in (0..self.draws.len()).rev() {
            let Draw { above, found, probability, .. } = self.draws[index].clone();
            if let Some(above) = above {
                self.draws[above as usize].found.add(&found, 1.0 / probability);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.draws.iter().all(|draw| draw.noise == Amounts::default())
    }

    /// What first draws stand for, and below what.
    fn firsts(&self) -> impl Iterator<Item = (u32, Amounts)> {
        let firsts = self.draws.iter().filter(|draw| draw.above.is_none());
        firsts.map(|draw| (draw.known, draw.found.map(|found| found / draw.probability)))
    }

    /// The estimate of what is below some of the known directories, and its variance.
    ///
    /// Draws made together are of a fixed number, and their variance is Hájek's (1964) with Brewer's factor, as good as exact
    /// for systematic sampling of what is in no order, and too large where neighbours are alike. A draw that came of another
    /// is divided by what it stood for before: what it adds is in the first one's square as well (Raj 1966).
    fn spread(&self, inside: impl Fn(u32) -> bool) -> Spread {
        let [mut rest, mut variance, mut squares, mut largest] = [Amounts::default(); 4];
        self.firsts().filter(|(known, _)| inside(*known)).for_each(|(_, amounts)| rest.add(&amounts, 1.0));
        let (mut start, mut drawn) = (0, 0.0);
        for end in &self.ends {
            let together: Vec<&Draw> =
                self.draws[start..*end].iter().filter(|draw| draw.probability < 1.0).collect();
            start = *end;
            drawn += together.len() as f64;
            let estimate = |draw: &Draw, kind: usize| {
                let is_inside = f64::from(u8::from(inside(draw.known)));
                is_inside * draw.found.0[kind] * draw.weight / draw.probability
            };
            let left_out: f64 = together.iter().map(|draw| 1.0 - draw.probability).sum();
            for kind in 0..COUNT {
                let share = |draw: &&Draw| (1.0 - draw.probability) / left_out * estimate(draw, kind);
                let several = together.len() >= SEVERAL;
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
        for draw in self.draws.iter().filter(|draw| inside(draw.known)) {
            variance.add(&draw.noise, draw.weight / draw.probability);
        }
        variance.add(&largest, HEDGE);
        squares.add(&largest.map(|part| part * part), HEDGE);
        let instead = |draw: &Draw| draw.probability < 1.0 && inside(draw.known);
        let is_blind = self.left_out.iter().any(|known| inside(*known)) && !self.draws.iter().any(instead);
        Spread { rest, variance, squares, drawn, is_blind }
    }
}

/// Fewer draws than this are not said to be of a fixed number: there might have been one more, or none.
const SEVERAL: usize = 4;
/// For so many more draws like the one that adds most to the variance there is room in it: where few things hold most, a sample
/// has met fewer of them than there are, as a rule.
const HEDGE: f64 = 6.0;
