//! The workers' side: what is in a directory, added up; of a very wide one that was drawn, from some of its entries.

use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_walk::{
    Below, Descend, Enter, Entry, Errno, Failure, FileType, Gather, Meta, Names, Node, Operation,
};

use super::Survey;
use super::evidence::{Outlook, is_honest};
use super::random::Random;
use super::reader::{Desk, Place, path_of};
use super::tally::{Amounts, Found};
use crate::scan::Problem;

/// What a name and its inode number take in a directory, at least.
const NAME_BYTES: f64 = 24.0;

/// What is in one directory.
#[derive(Debug)]
pub(super) struct Tally {
    amounts: Amounts,
    itself: Amounts,
    noise: Amounts,
    seen: Amounts,
    below: Vec<(CString, Outlook)>,
    /// The directory's link count and size; none of what is no directory.
    claims: Option<(u64, i64)>,
    subdirectories: u64,
    /// The share of its files that are looked at.
    looks: f64,
    random: Random,
}

impl Default for Tally {
    fn default() -> Self {
        let [amounts, itself, noise, seen] = [Amounts::default(); 4];
        let (below, claims, random) = (Vec::new(), None, Random::new(0));
        Self { amounts, itself, noise, seen, below, claims, subdirectories: 0, looks: 1.0, random }
    }
}

impl Tally {
    /// Adds what was seen in full.
    fn count(&mut self, amounts: &Amounts) {
        self.amounts.add(amounts, 1.0);
        self.seen.add(amounts, 1.0);
    }

    /// Adds a file, which stands for others that were not looked at.
    fn add_sizes(&mut self, meta: &Meta) {
        let names = if meta.file_type() == FileType::Directory { 1 } else { meta.nlink.max(1) };
        let [apparent, allocated] = [meta.size.max(0) as f64, 512.0 * meta.blocks as f64];
        let sizes = Amounts([0.0, 0.0, 0.0, apparent, allocated]).map(|size| size / names as f64);
        self.amounts.add(&sizes, 1.0 / self.looks);
        self.seen.add(&sizes, 1.0);
        let squares = sizes.map(|size| size * size);
        self.noise.add(&squares, (1.0 - self.looks) / (self.looks * self.looks));
    }

    /// In the order of names, which does not depend on the workers.
    pub(super) fn into_found(mut self, node: &Arc<Node>) -> Found<Place> {
        self.below.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let entries = (self.seen.0[0] as u64).saturating_sub(u64::from(node.depth() == 0));
        let right = |(nlink, bytes)| is_honest(nlink, bytes, self.subdirectories, entries);
        let honest = self.claims.is_none_or(right);
        let below = self.below.into_iter();
        let below = below.map(|(name, outlook)| (Place::Below(node.clone(), name), outlook)).collect();
        let Self { amounts, itself, noise, seen, looks, .. } = self;
        Found { amounts, itself, noise, seen, looks, honest, below }
    }
}

/// A directory by itself.
fn directory(meta: Option<&Meta>) -> Amounts {
    let blocks = meta.map_or(0, |meta| meta.blocks);
    Amounts([1.0, 0.0, 1.0, 0.0, 512.0 * blocks as f64])
}

/// Adds up what is in directories, and goes no further.
pub(super) struct Probe {
    desk: Arc<Desk>,
    one_file_system: bool,
    seed: u64,
}

impl Probe {
    pub(super) fn new(survey: &Survey, desk: Arc<Desk>) -> Self {
        Self { desk, one_file_system: survey.one_file_system, seed: survey.seed }
    }

    fn problem(&self, deed: &'static str, path: Vec<u8>, errno: Errno) {
        self.desk.news().problems.push(Problem { deed, path, errno });
    }

    fn is_foreign(&self, dir: &Node, meta: &Meta) -> bool {
        self.one_file_system && dir.root_dev().is_some_and(|dev| dev != meta.dev)
    }

    fn add(&self, dir: &Arc<Node>, entry: &Entry<'_>, tally: &mut Tally) {
        let meta = entry.meta.and_then(Result::ok);
        if entry.file_type() == FileType::Directory {
            tally.count(&directory(meta));
            tally.subdirectories += 1;
            if !meta.is_some_and(|meta| self.is_foreign(dir, meta)) {
                let outlook = meta.map_or(Outlook::UNKNOWN, |meta| Outlook::new(meta.nlink, meta.size));
                tally.below.push((entry.name.name.to_owned(), outlook));
            }
        } else {
            tally.count(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]));
            meta.inspect(|meta| tally.add_sizes(meta));
        }
    }
}

/// What is known of a directory so far.
fn tally(dir: &Node) -> Option<MutexGuard<'_, Tally>> {
    dir.note::<Mutex<Tally>>().map(|tally| tally.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Gather for Probe {
    type Local = ();

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let Some(mut tally) = tally(dir).filter(|tally| tally.looks < 1.0) else { return };
        let is_file = |file_type| !matches!(file_type, FileType::Directory | FileType::Unknown);
        names.skip_stat_if(|name| is_file(name.file_type) && tally.random.fraction() >= tally.looks);
    }

    fn enter(&self, (): &mut (), Enter { node, meta, .. }: Enter<'_>) -> Descend {
        let mut tally = Tally { itself: directory(Some(meta)), ..Tally::default() };
        if node.depth() == 0 {
            tally.count(&directory(Some(meta)));
        }
        tally.claims = Some((meta.nlink, meta.size));
        let looks_max = self.desk.looks_max.load(Ordering::Relaxed) as f64;
        tally.looks = (looks_max * NAME_BYTES / meta.size.max(1) as f64).min(1.0);
        tally.random = Random::new(self.seed ^ meta.ino);
        node.set_note(Mutex::new(tally));
        if self.is_foreign(node, meta) { Descend::No } else { Descend::Yes }
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        _below: &mut Below<'_, '_>,
    ) {
        let Some(mut tally) = tally(dir) else { return };
        let mut count = 0;
        for entry in entries {
            self.add(dir, &entry, &mut tally);
            count += 1;
        }
        drop(tally);
        self.desk.keep_pace(count);
    }

    fn failed(&self, (): &mut (), Failure { node, name, operation, errno }: Failure<'_>) {
        let deed = match operation {
            Operation::Access | Operation::Stat => "access",
            Operation::Open | Operation::Read | Operation::Reopen => "read",
            // The directory is one of its own ancestors, and its contents are counted there.
            Operation::Descend => return,
        };
        self.problem(deed, path_of(node, name), errno);
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        let tally = tally(node).map(|mut tally| std::mem::take(&mut *tally));
        self.desk.put(node, tally.unwrap_or_default());
    }

    fn root_file(&self, (): &mut (), root: &Arc<Node>, meta: &Meta) {
        let mut tally = Tally::default();
        tally.count(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]));
        tally.add_sizes(meta);
        root.set_note(Mutex::new(tally));
    }

    fn flush(&self, (): &mut ()) {}
}
