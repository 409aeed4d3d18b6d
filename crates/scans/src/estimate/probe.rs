//! The workers' side of a survey: adds up the entries of one directory. Of a very wide directory
//! that was drawn, only a random part of the files is asked for metadata.

use std::convert::Infallible;
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_walk::{
    Descend, Emit, Enter, Entry, Errno, Failure, FileType, Meta, Names, Node, Operation, Random,
    UnorderedVisitor, Visitor,
};

use super::Survey;
use super::estimator::{Amounts, DirContents};
use super::evidence::{ExpectedContents, is_consistent};
use super::survey_walk::{DirLocation, SurveyShared};
use crate::scan::Problem;

/// Least number of bytes that a name and its inode number take in a directory.
const NAME_BYTES: f64 = 24.0;

/// The sums over the entries of one directory.
#[derive(Debug)]
pub(super) struct DirTally {
    amounts: Amounts,
    itself: Amounts,
    noise: Amounts,
    seen: Amounts,
    below: Vec<(CString, ExpectedContents)>,
    /// The link count and the size of the directory; `None` for a root that is not a directory.
    link_count_and_size: Option<(u64, i64)>,
    subdirectories: u64,
    /// The share of the files whose metadata is read.
    stat_share: f64,
    random: Random,
}

impl Default for DirTally {
    fn default() -> Self {
        let [amounts, itself, noise, seen] = [Amounts::default(); 4];
        let (below, link_count_and_size, random) = (Vec::new(), None, Random::new(0));
        Self {
            amounts,
            itself,
            noise,
            seen,
            below,
            link_count_and_size,
            subdirectories: 0,
            stat_share: 1.0,
            random,
        }
    }
}

impl DirTally {
    /// Adds amounts that are known exactly.
    fn count(&mut self, amounts: &Amounts) {
        self.amounts.add(amounts, 1.0);
        self.seen.add(amounts, 1.0);
    }

    /// Adds the sizes of a file, with the weight of the files whose metadata is not read.
    fn add_sizes(&mut self, meta: &Meta) {
        let names = if meta.file_type() == FileType::Directory { 1 } else { meta.nlink.max(1) };
        let [apparent, allocated] = [meta.size.max(0) as f64, 512.0 * meta.blocks as f64];
        let sizes = Amounts([0.0, 0.0, 0.0, apparent, allocated]).map(|size| size / names as f64);
        self.amounts.add(&sizes, 1.0 / self.stat_share);
        self.seen.add(&sizes, 1.0);
        let squares = sizes.map(|size| size * size);
        self.noise.add(&squares, (1.0 - self.stat_share) / (self.stat_share * self.stat_share));
    }

    /// Returns the contents of the directory. Subdirectories are in the order of their names, which
    /// does not depend on the workers.
    pub(super) fn into_contents(mut self, node: &Arc<Node>) -> DirContents<DirLocation> {
        self.below.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let entries = (self.seen.0[0] as u64).saturating_sub(u64::from(node.depth() == 0));
        let right = |(nlink, bytes)| is_consistent(nlink, bytes, self.subdirectories, entries);
        let consistent = self.link_count_and_size.is_none_or(right);
        let below = self.below.into_iter();
        let below =
            below.map(|(name, expected)| (DirLocation::Below(node.clone(), name), expected)).collect();
        let Self { amounts, itself, noise, seen, stat_share, .. } = self;
        DirContents { amounts, itself, noise, seen, stat_share, consistent, below }
    }
}

/// Returns the amounts of a directory itself.
fn directory(meta: Option<&Meta>) -> Amounts {
    let blocks = meta.map_or(0, |meta| meta.blocks);
    Amounts([1.0, 0.0, 1.0, 0.0, 512.0 * blocks as f64])
}

/// Adds up the entries of each requested directory, and does not descend.
pub(super) struct Probe {
    shared: Arc<SurveyShared>,
    one_file_system: bool,
    seed: u64,
}

impl Probe {
    pub(super) fn new(survey: &Survey, shared: Arc<SurveyShared>) -> Self {
        Self { shared, one_file_system: survey.one_file_system, seed: survey.seed }
    }

    fn problem(&self, operation: &'static str, path: Vec<u8>, errno: Errno) {
        self.shared.results().problems.push(Problem { operation, path, errno });
    }

    fn is_foreign(&self, dir: &Node, meta: &Meta) -> bool {
        self.one_file_system && dir.root_dev().is_some_and(|dev| dev != meta.dev)
    }

    fn add(&self, dir: &Arc<Node>, entry: &Entry<'_>, tally: &mut DirTally) {
        let meta = entry.meta.and_then(Result::ok);
        if entry.file_type() == FileType::Directory {
            tally.count(&directory(meta));
            tally.subdirectories += 1;
            if !meta.is_some_and(|meta| self.is_foreign(dir, meta)) {
                let expected = meta
                    .map_or(ExpectedContents::UNKNOWN, |meta| ExpectedContents::new(meta.nlink, meta.size));
                tally.below.push((entry.name.name.to_owned(), expected));
            }
        } else {
            tally.count(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]));
            meta.inspect(|meta| tally.add_sizes(meta));
        }
    }
}

/// Returns the sums of a directory that is being read.
fn tally(dir: &Node) -> Option<MutexGuard<'_, DirTally>> {
    dir.note::<Mutex<DirTally>>().map(|tally| tally.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Visitor for Probe {
    type Item = Infallible;
    type Local = ();

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let Some(mut tally) = tally(dir).filter(|tally| tally.stat_share < 1.0) else { return };
        let is_file = |file_type| !matches!(file_type, FileType::Directory | FileType::Unknown);
        names.skip_stat_if(|name| is_file(name.file_type) && tally.random.fraction() >= tally.stat_share);
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let Some(mut tally) = tally(dir) else { return };
        let mut count = 0;
        for entry in entries {
            if let Some(Err(errno)) = entry.meta {
                emit.failed(&entry, errno);
            }
            self.add(dir, &entry, &mut tally);
            count += 1;
        }
        drop(tally);
        self.shared.throttle(count);
    }
}

impl UnorderedVisitor for Probe {
    fn enter(&self, (): &mut (), Enter { node, meta, .. }: Enter<'_>) -> Descend {
        let mut tally = DirTally { itself: directory(Some(meta)), ..DirTally::default() };
        if node.depth() == 0 {
            tally.count(&directory(Some(meta)));
        }
        tally.link_count_and_size = Some((meta.nlink, meta.size));
        let stat_max = self.shared.stat_max.load(Ordering::Relaxed) as f64;
        tally.stat_share = (stat_max * NAME_BYTES / meta.size.max(1) as f64).min(1.0);
        tally.random = Random::new(self.seed ^ meta.ino);
        node.set_note(Mutex::new(tally));
        if self.is_foreign(node, meta) { Descend::No } else { Descend::Yes }
    }

    fn failed(&self, (): &mut (), Failure { node, name, operation, errno }: Failure<'_>) {
        let operation = match operation {
            Operation::Open | Operation::Read | Operation::Reopen => "read",
            // The directory is one of its own ancestors, and its contents are counted there.
            Operation::Descend => return,
            _ => "access",
        };
        self.problem(operation, node.path_of(name), errno);
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        let tally = tally(node).map(|mut tally| std::mem::take(&mut *tally));
        self.shared.push(node, tally.unwrap_or_default());
    }

    fn root_file(&self, (): &mut (), root: &Arc<Node>, meta: &Meta) {
        let mut tally = DirTally::default();
        tally.count(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]));
        tally.add_sizes(meta);
        root.set_note(Mutex::new(tally));
    }
}
