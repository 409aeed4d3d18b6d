//! Which directories are read. Decides by what has been read and by chance, never by what it does not know yet.

use super::evidence::Outlook;
use super::random::Random;
use super::tally::{Census, Estimate, Found, Sample};

/// Ends of the rounds, in shares of the time. Each but the last is for those who do not wait.
const ROUNDS: [f64; 3] = [0.1, 0.35, LAST];
const LAST: f64 = 0.97;
/// A survey that takes longer than this share of the time is given up: something is far slower than
/// all before.
pub(super) const OVERDUE: f64 = 1.15;
/// The share of the time for which what is left of a round may go on a directory a generation: a chain has only one.
const GRACE: f64 = 0.05;
/// The share of a round in which directories are read for good.
const GROWING: f64 = 0.5;
/// As long as so many times the directories known and not read can be read, reading them for good is worth it.
const PLENTY: f64 = 3.0;
/// Directories known and not read, at most: then reading for good ends.
const FRONTIER_MAX: usize = 1 << 20;
/// Parts of a round that are sampled one after the other: what the first ones take says how much the others may.
const BLOCKS: usize = 16;
/// Directories to be read for a part, at least: each generation of each takes the time of a call,
/// however few it reads.
const PER_BLOCK: f64 = 16.0;
/// The share of what can be read that one generation may take: what it finds wants its share as well.
const GENERATION: f64 = 0.5;
/// The share of what can be read in that time that is read at once.
const GROWTH: f64 = 0.25;
/// The share of the whole time that may go by until it is looked at the clock again, as far as that
/// can be foreseen.
const AT_ONCE: f64 = 0.05;
/// How many directories are read for one drawn at first, as long as that is not known.
const COST: f64 = 1.5;
/// Fewest directories read together, if there are as many: enough for many workers.
const TOGETHER: f64 = 64.0;
/// Directories of a generation as long as there is time, at least, and a little longer; and once there is none, on average.
const FEWEST: f64 = 1.0;
const OVERTIME: f64 = 0.5;

/// Reads directories.
pub(super) trait Reader {
    /// What a directory is found by.
    type Key: Clone;

    /// Reads these, and says what is in each, in the same order; nothing if it was told to stop. Of a directory that is
    /// `drawn`, not all entries have to be looked at.
    fn read(&mut self, keys: Vec<Self::Key>, drawn: bool) -> Option<Vec<Found<Self::Key>>>;

    /// The share of the time that is over; above 1 if it took longer.
    fn spent(&self) -> f64;
}

/// A directory that is known and has not been read.
#[derive(Clone, Debug)]
struct Unit<K> {
    key: K,
    /// What it may be expected to hold, as far as its metadata tells.
    outlook: Outlook,
    /// How many directories it stands for.
    weight: f64,
    /// The draw it came of.
    draw: Option<u32>,
    /// The directory read for good that it is below; `None` for a root.
    known: Option<u32>,
}

/// Samples a tree.
#[derive(Debug)]
pub(super) struct Sampler<R: Reader> {
    reader: R,
    random: Random,
    census: Census<R::Key>,
    frontier: Vec<Unit<R::Key>>,
    /// Directories read.
    reads: usize,
    pace: Pace,
    largest: usize,
}

/// How fast directories have been read of late: a cold disk is slower than what was in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// The share of the time and the directories, where this was last looked at.
    spent: f64,
    reads: usize,
    /// Directories in the whole time; 0 as long as that is not known.
    rate: f64,
}

impl Pace {
    /// Between two looks is this share of the time at least.
    const APART: f64 = 0.01;

    fn learn(&mut self, spent: f64, reads: usize) {
        if spent - self.spent >= Self::APART {
            let rate = (reads - self.reads) as f64 / (spent - self.spent);
            *self = Self { spent, reads, rate };
        } else if self.rate == 0.0 && spent > 0.0 {
            self.rate = reads as f64 / spent;
        }
    }
}

/// What sampling came to.
#[derive(Debug)]
pub(super) struct Sampled<R: Reader> {
    pub(super) estimate: Estimate<R::Key>,
    /// Directories read.
    pub(super) reads: usize,
    /// It was not told to stop.
    pub(super) whole: bool,
    pub(super) reader: R,
}

/// Estimates what is in `roots` and below them, and in the `largest` directories there.
pub(super) fn sample<R: Reader>(reader: R, roots: Vec<R::Key>, largest: usize, seed: u64) -> Sampled<R> {
    let root = |key| Unit { key, outlook: Outlook::UNKNOWN, weight: 1.0, draw: None, known: None };
    let frontier = roots.into_iter().map(root).collect();
    let (census, random) = (Census::new(), Random::new(seed));
    let mut sampler = Sampler { reader, random, census, frontier, reads: 0, pace: Pace::default(), largest };
    let mut estimate = None;
    let ended = sampler.run(&mut estimate);
    let counted = sampler.census.seen();
    let mut estimate = match (estimate, ended) {
        (Some(estimate), _) => estimate,
        (None, Some(())) => sampler.census.estimate(&Sample::default(), largest),
        (None, None) => Estimate::at_least(counted),
    };
    estimate.raise(counted);
    Sampled { estimate, reads: sampler.reads, whole: ended.is_some(), reader: sampler.reader }
}

impl<R: Reader> Sampler<R> {
    /// `None` if it was told to stop; then the last estimate holds.
    fn run(&mut self, estimate: &mut Option<Estimate<R::Key>>) -> Option<()> {
        for end in ROUNDS {
            let start = self.reader.spent();
            self.grow(start + (end - start).max(0.0) * GROWING)?;
            if self.frontier.is_empty() {
                *estimate = None;
                return Some(());
            }
            if self.reader.spent() < end || end >= LAST {
                let mut sample = self.round(end)?;
                sample.fold();
                let mut now = self.census.estimate(&sample, self.largest);
                let mut all = self.census.seen();
                all.add(&sample.seen(), 1.0);
                now.raise(all);
                *estimate = Some(now);
            }
        }
        Some(())
    }

    fn read(&mut self, units: &[Unit<R::Key>], drawn: bool) -> Option<Vec<Found<R::Key>>> {
        let found = self.reader.read(units.iter().map(|unit| unit.key.clone()).collect(), drawn)?;
        self.reads += units.len();
        self.pace.learn(self.reader.spent(), self.reads);
        Some(found)
    }

    /// How many directories can be read until this share of the time is over.
    fn affordable(&self, until: f64) -> f64 {
        let left = (until - self.reader.spent()).max(0.0);
        if self.pace.rate == 0.0 { TOGETHER } else { left * self.pace.rate }
    }

    /// Directories known and not read that may have subdirectories.
    fn parents(&self) -> usize {
        self.frontier.iter().filter(|unit| !unit.outlook.is_leaf).count()
    }

    /// Reads directories for good, those first that seem to hold most, until this share of the time is over or none are left.
    fn grow(&mut self, until: f64) -> Option<()> {
        while !self.frontier.is_empty() && self.frontier.len() < FRONTIER_MAX {
            let affordable = self.affordable(LAST) / PLENTY;
            let few = self.frontier.len() as f64 <= affordable;
            let has_roots = self.frontier.iter().any(|unit| unit.known.is_none());
            let is_over = self.reader.spent() >= until;
            // Once all that may have subdirectories are read, what is left cannot hold a large
            // subtree.
            let parents = if is_over && !few { self.parents() as f64 } else { 0.0 };
            if is_over && !few && !has_roots && (parents == 0.0 || parents > affordable) {
                break;
            }
            let wanted = if few { self.frontier.len() as f64 } else { parents };
            let ahead = self.affordable(until).max(wanted) * GROWTH;
            let units = self.largest(ahead.min(self.pace.rate * AT_ONCE).max(TOGETHER) as usize);
            let found = self.read(&units, false)?;
            for (unit, found) in units.into_iter().zip(found) {
                let known = Some(self.census.count(unit.key, unit.known, &found));
                let below = found.below.into_iter();
                let unit = |(key, outlook)| Unit { key, outlook, weight: 1.0, draw: None, known };
                self.frontier.extend(below.map(unit));
            }
        }
        Some(())
    }

    /// Takes so many of the largest directories out of those not read; of equal ones, those found first. Those that stay keep
    /// their order.
    fn largest(&mut self, count: usize) -> Vec<Unit<R::Key>> {
        let count = count.min(self.frontier.len());
        let mut order: Vec<usize> = (0..self.frontier.len()).collect();
        let size = |index: &usize| self.frontier[*index].outlook.size;
        if count < order.len() {
            order.select_nth_unstable_by(count, |one, other| {
                size(other).total_cmp(&size(one)).then(one.cmp(other))
            });
        }
        let mut taken = vec![false; order.len()];
        order[..count].iter().for_each(|index| taken[*index] = true);
        let mut taken = taken.into_iter();
        self.frontier.extract_if(.., |_| taken.next().unwrap_or(false)).collect()
    }

    /// Samples all that is not read, by this share of the time.
    fn round(&mut self, end: f64) -> Option<Sample> {
        let mut sample = Sample::default();
        let mut order: Vec<usize> = (0..self.frontier.len()).collect();
        self.random.shuffle(&mut order);
        let blocks = BLOCKS.min(order.len()).min((self.affordable(end) / PER_BLOCK) as usize).max(1);
        let start = self.reads;
        let mut first = 0;
        for block in 0..blocks {
            let share = order.len() * block / blocks..order.len() * (block + 1) / blocks;
            // Neighbours of the tree next to each other, for systematic sampling.
            order[share.clone()].sort_unstable();
            let units = order[share].iter().map(|index| self.frontier[*index].clone()).collect();
            let left = (blocks - block) as f64;
            // What a directory drawn at first has taken so far, with all that was read below it.
            let cost = ((self.reads - start) as f64 + COST * TOGETHER) / (first as f64 + TOGETHER);
            let limit = self.limit(end, 1.0 / (left * cost));
            let mut units = self.thin(units, limit, &mut sample);
            first += units.len();
            while !units.is_empty() {
                let below = self.descend(&units, &mut sample)?;
                let limit = self.limit(end, GENERATION / left);
                units = self.thin(below, limit, &mut sample);
            }
        }
        Some(sample)
    }

    /// How many directories may be read of one generation that may take this share of what can be.
    fn limit(&self, end: f64, share: f64) -> f64 {
        let limit = self.affordable(end) * share;
        if self.reader.spent() < end + GRACE { limit.max(FEWEST) } else { OVERTIME }
    }

    /// Draws so many of `units`, if there are more.
    fn thin(&mut self, units: Vec<Unit<R::Key>>, limit: f64, sample: &mut Sample) -> Vec<Unit<R::Key>> {
        let sizes: Vec<f64> = units.iter().map(|unit| unit.weight * unit.outlook.size).collect();
        let drawn = self.random.draw(&sizes, limit);
        for (unit, size) in units.iter().zip(&sizes) {
            sample.evidence.note(drawn.probability(*size) / unit.weight, unit.outlook.is_leaf);
        }
        let mut units: Vec<Option<_>> = units.into_iter().map(Some).collect();
        let mut kept = Vec::with_capacity(drawn.taken.len());
        for (index, probability) in drawn.taken {
            let Some(mut unit) = units[index].take() else { continue };
            sample.evidence.note_drawn(unit.outlook.is_leaf);
            if probability < 1.0 || unit.draw.is_none() {
                let known = unit.known.unwrap_or_default();
                unit.draw = Some(sample.note(unit.draw, known, unit.weight, probability));
                unit.weight /= probability;
            }
            kept.push(unit);
        }
        let left_out = units.iter().flatten();
        left_out.for_each(|unit| sample.leave_out(unit.known.unwrap_or_default()));
        sample.end();
        kept
    }

    /// Reads directories that were drawn; those below them.
    fn descend(&mut self, units: &[Unit<R::Key>], sample: &mut Sample) -> Option<Vec<Unit<R::Key>>> {
        let found = self.read(units, true)?;
        let mut below = Vec::new();
        for (unit, found) in units.iter().zip(found) {
            let Unit { weight, draw, known, .. } = *unit;
            draw.inspect(|draw| sample.add(*draw, &found));
            let unit = |(key, outlook)| Unit { key, outlook, weight, draw, known };
            below.extend(found.below.into_iter().map(unit));
        }
        Some(below)
    }
}
