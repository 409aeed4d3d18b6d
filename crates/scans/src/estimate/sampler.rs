//! Decides which directories are read: by the results so far and by chance, never by the contents
//! of a directory that has not been read.

use fathom_walk::Random;

use super::draw::draw;
use super::estimator::{Census, DirContents, Estimate, Sample};
use super::evidence::ExpectedContents;

/// The ends of the rounds, as shares of the time. All rounds but the last serve runs that are
/// interrupted.
const ROUND_ENDS: [f64; 3] = [0.1, 0.35, LAST];
const LAST: f64 = 0.97;
/// Share of its time after which a survey is abandoned: a read takes far longer than all reads
/// before.
pub(super) const OVERDUE: f64 = 1.15;
/// Share of the time for which the rest of a round may go on, a directory a generation. A chain of
/// directories has only one in each.
const GRACE: f64 = 0.05;
/// Share of a round in which directories are read into the census.
const CENSUS_SHARE: f64 = 0.5;
/// The census is continued as long as the frontier could be read this many times over.
const FRONTIER_READS: f64 = 3.0;
/// Most directories in the frontier. The census ends there.
const FRONTIER_MAX: usize = 1 << 20;
/// Blocks of a round, sampled one after the other. The first ones tell the cost of the others.
const BLOCKS: usize = 16;
/// Fewest directories to be read for a block: each generation of a block takes the time of a call,
/// however few directories it reads.
const BLOCK_READS_MIN: f64 = 16.0;
/// Share of the affordable reads that one generation may take. The directories that it finds need
/// the rest.
const GENERATION_SHARE: f64 = 0.5;
/// Share of the affordable reads that one step of the census takes.
const STEP_SHARE: f64 = 0.25;
/// Share of the whole time that a single call may take, as far as that can be foreseen. The clock
/// is looked at between calls.
const STEP_TIME: f64 = 0.05;
/// Assumed number of directories read for each first draw, until it has been measured.
const READS_PER_DRAW: f64 = 1.5;
/// Fewest directories read in one call, if there are as many: enough for many workers.
const BATCH_MIN: f64 = 64.0;
/// The least expected number of draws in a generation: while the round has time or grace left, and
/// after that.
const DRAWS_MIN: f64 = 1.0;
const DRAWS_OVERTIME: f64 = 0.5;

/// Reads directories on request.
pub(super) trait DirReader {
    /// Identifies a directory.
    type Key: Clone;

    /// Reads directories and returns their contents, in the same order; `None` if the survey was
    /// stopped. Of a directory that is `drawn`, metadata of a part of the files is enough.
    fn read(&mut self, keys: Vec<Self::Key>, drawn: bool) -> Option<Vec<DirContents<Self::Key>>>;

    /// Returns the share of the time that is over; above 1 if the survey takes longer.
    fn spent(&self) -> f64;
}

/// A directory of the frontier: it is known and has not been read.
#[derive(Clone, Debug)]
struct FrontierDir<K> {
    key: K,
    /// The expected contents, from the metadata.
    expected: ExpectedContents,
    /// The number of directories that it stands for.
    weight: f64,
    /// The draw that led to it.
    draw: Option<u32>,
    /// The directory of the census that it is below; `None` for a root.
    census_dir: Option<u32>,
}

/// A survey in progress.
#[derive(Debug)]
pub(super) struct Sampler<R: DirReader> {
    reader: R,
    random: Random,
    census: Census<R::Key>,
    frontier: Vec<FrontierDir<R::Key>>,
    /// The number of directories read.
    reads: usize,
    rate: ReadRate,
    largest: usize,
}

/// The rate of the latest reads: a cold disk is slower than the page cache.
#[derive(Clone, Copy, Debug, Default)]
struct ReadRate {
    /// The share of the time and the number of reads at the latest measurement.
    spent: f64,
    reads: usize,
    /// Directories that can be read in the whole time; 0 until it has been measured.
    per_whole_time: f64,
}

impl ReadRate {
    /// Least share of the time between two measurements.
    const INTERVAL_MIN: f64 = 0.01;

    fn update(&mut self, spent: f64, reads: usize) {
        if spent - self.spent >= Self::INTERVAL_MIN {
            let per_whole_time = (reads - self.reads) as f64 / (spent - self.spent);
            *self = Self { spent, reads, per_whole_time };
        } else if self.per_whole_time == 0.0 && spent > 0.0 {
            self.per_whole_time = reads as f64 / spent;
        }
    }
}

/// The result of a survey.
#[derive(Debug)]
pub(super) struct SampleResult<R: DirReader> {
    pub(super) estimate: Estimate<R::Key>,
    /// The number of directories read.
    pub(super) reads: usize,
    /// Whether the survey was not stopped.
    pub(super) completed: bool,
    pub(super) reader: R,
}

/// Estimates the contents of `roots` and everything below, and of the `largest` directories there.
pub(super) fn sample<R: DirReader>(
    reader: R,
    roots: Vec<R::Key>,
    largest: usize,
    seed: u64,
) -> SampleResult<R> {
    let root = |key| FrontierDir {
        key,
        expected: ExpectedContents::UNKNOWN,
        weight: 1.0,
        draw: None,
        census_dir: None,
    };
    let frontier = roots.into_iter().map(root).collect();
    let (census, random) = (Census::new(), Random::new(seed));
    let mut sampler =
        Sampler { reader, random, census, frontier, reads: 0, rate: ReadRate::default(), largest };
    let mut estimate = None;
    let ended = sampler.run(&mut estimate);
    let counted = sampler.census.seen();
    let mut estimate = match (estimate, ended) {
        (Some(estimate), _) => estimate,
        (None, Some(())) => sampler.census.estimate(&Sample::default(), largest),
        (None, None) => Estimate::at_least(counted),
    };
    estimate.raise(counted);
    SampleResult { estimate, reads: sampler.reads, completed: ended.is_some(), reader: sampler.reader }
}

impl<R: DirReader> Sampler<R> {
    /// Runs all rounds. Returns `None` if the survey was stopped; then the last estimate holds.
    fn run(&mut self, estimate: &mut Option<Estimate<R::Key>>) -> Option<()> {
        for end in ROUND_ENDS {
            let start = self.reader.spent();
            self.extend_census(start + (end - start).max(0.0) * CENSUS_SHARE)?;
            if self.frontier.is_empty() {
                *estimate = None;
                return Some(());
            }
            if self.reader.spent() < end || end >= LAST {
                let mut sample = self.sample_round(end)?;
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

    fn read(&mut self, units: &[FrontierDir<R::Key>], drawn: bool) -> Option<Vec<DirContents<R::Key>>> {
        let contents = self.reader.read(units.iter().map(|unit| unit.key.clone()).collect(), drawn)?;
        self.reads += units.len();
        self.rate.update(self.reader.spent(), self.reads);
        Some(contents)
    }

    /// Returns the number of directories that can be read until this share of the time is over.
    fn affordable(&self, until: f64) -> f64 {
        let left = (until - self.reader.spent()).max(0.0);
        if self.rate.per_whole_time == 0.0 { BATCH_MIN } else { left * self.rate.per_whole_time }
    }

    /// Returns the number of directories in the frontier that may have subdirectories.
    fn parent_count(&self) -> usize {
        self.frontier.iter().filter(|unit| !unit.expected.is_leaf).count()
    }

    /// Reads directories into the census, those with the largest expected contents first, until
    /// this share of the time is over or the frontier is empty.
    fn extend_census(&mut self, until: f64) -> Option<()> {
        while !self.frontier.is_empty() && self.frontier.len() < FRONTIER_MAX {
            let affordable = self.affordable(LAST) / FRONTIER_READS;
            let few = self.frontier.len() as f64 <= affordable;
            let has_roots = self.frontier.iter().any(|unit| unit.census_dir.is_none());
            let is_over = self.reader.spent() >= until;
            // Once all directories that may have subdirectories are read, the frontier cannot hold
            // a large subtree.
            let parents = if is_over && !few { self.parent_count() as f64 } else { 0.0 };
            if is_over && !few && !has_roots && (parents == 0.0 || parents > affordable) {
                break;
            }
            let wanted = if few { self.frontier.len() as f64 } else { parents };
            let ahead = self.affordable(until).max(wanted) * STEP_SHARE;
            let units = self.largest(ahead.min(self.rate.per_whole_time * STEP_TIME).max(BATCH_MIN) as usize);
            let contents = self.read(&units, false)?;
            for (unit, contents) in units.into_iter().zip(contents) {
                let census_dir = Some(self.census.count(unit.key, unit.census_dir, &contents));
                let below = contents.below.into_iter();
                let unit =
                    |(key, expected)| FrontierDir { key, expected, weight: 1.0, draw: None, census_dir };
                self.frontier.extend(below.map(unit));
            }
        }
        Some(())
    }

    /// Takes the directories with the largest expected contents out of the frontier; of equal ones,
    /// those found first. The others keep their order.
    fn largest(&mut self, count: usize) -> Vec<FrontierDir<R::Key>> {
        let count = count.min(self.frontier.len());
        let mut order: Vec<usize> = (0..self.frontier.len()).collect();
        let size = |index: &usize| self.frontier[*index].expected.size;
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

    /// Samples the frontier, until this share of the time is over.
    fn sample_round(&mut self, end: f64) -> Option<Sample> {
        let mut sample = Sample::default();
        let mut order: Vec<usize> = (0..self.frontier.len()).collect();
        self.random.shuffle(&mut order);
        let blocks = BLOCKS.min(order.len()).min((self.affordable(end) / BLOCK_READS_MIN) as usize).max(1);
        let start = self.reads;
        let mut first = 0;
        for block in 0..blocks {
            let share = order.len() * block / blocks..order.len() * (block + 1) / blocks;
            // Systematic sampling gains from neighbours of the tree next to each other.
            order[share.clone()].sort_unstable();
            let units = order[share].iter().map(|index| self.frontier[*index].clone()).collect();
            let left = (blocks - block) as f64;
            // The reads for each first draw so far, with everything that was read below it.
            let cost =
                ((self.reads - start) as f64 + READS_PER_DRAW * BATCH_MIN) / (first as f64 + BATCH_MIN);
            let limit = self.limit(end, 1.0 / (left * cost));
            let mut units = self.draw(units, limit, &mut sample);
            first += units.len();
            while !units.is_empty() {
                let below = self.read_drawn(&units, &mut sample)?;
                let limit = self.limit(end, GENERATION_SHARE / left);
                units = self.draw(below, limit, &mut sample);
            }
        }
        Some(sample)
    }

    /// Returns the number of draws of a generation that may take this share of the affordable
    /// reads.
    fn limit(&self, end: f64, share: f64) -> f64 {
        let limit = self.affordable(end) * share;
        if self.reader.spent() < end + GRACE { limit.max(DRAWS_MIN) } else { DRAWS_OVERTIME }
    }

    /// Draws about `limit` of the `units`, or takes all if there are no more.
    fn draw(
        &mut self,
        units: Vec<FrontierDir<R::Key>>,
        limit: f64,
        sample: &mut Sample,
    ) -> Vec<FrontierDir<R::Key>> {
        let sizes: Vec<f64> = units.iter().map(|unit| unit.weight * unit.expected.size).collect();
        let drawn = draw(&mut self.random, &sizes, limit);
        for (unit, size) in units.iter().zip(&sizes) {
            sample.evidence.record(drawn.probability(*size) / unit.weight, unit.expected.is_leaf);
        }
        let mut units: Vec<Option<_>> = units.into_iter().map(Some).collect();
        let mut kept = Vec::with_capacity(drawn.taken.len());
        for (index, probability) in drawn.taken {
            let Some(mut unit) = units[index].take() else { continue };
            sample.evidence.record_drawn(unit.expected.is_leaf);
            if probability < 1.0 || unit.draw.is_none() {
                let census_dir = unit.census_dir.unwrap_or_default();
                unit.draw = Some(sample.add_draw(unit.draw, census_dir, unit.weight, probability));
                unit.weight /= probability;
            }
            kept.push(unit);
        }
        let left_out = units.iter().flatten();
        left_out.for_each(|unit| sample.leave_out(unit.census_dir.unwrap_or_default()));
        sample.end_group();
        kept
    }

    /// Reads directories that were drawn. Returns their subdirectories.
    fn read_drawn(
        &mut self,
        units: &[FrontierDir<R::Key>],
        sample: &mut Sample,
    ) -> Option<Vec<FrontierDir<R::Key>>> {
        let contents = self.read(units, true)?;
        let mut below = Vec::new();
        for (unit, contents) in units.iter().zip(contents) {
            let FrontierDir { weight, draw, census_dir, .. } = *unit;
            draw.inspect(|draw| sample.add(*draw, &contents));
            let unit = |(key, expected)| FrontierDir { key, expected, weight, draw, census_dir };
            below.extend(contents.below.into_iter().map(unit));
        }
        Some(below)
    }
}
