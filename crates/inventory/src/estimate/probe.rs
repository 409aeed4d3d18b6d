//! The workers' side: what is in a directory, added up; of a very wide one that was drawn, from some of its entries.

use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_walk::{Below, Descend, Enter, Entry, Errno, FileType, Found as What, Gather, Meta, Names, Node};

use super::random::Random;
use super::reader::{Desk, Place, path_of};
use super::tally::{Amounts, Found};
use super::{Survey, expected};
use crate::scan::{Pace, Problem};

/// What a name and its inode number take in a directory, at least.
const NAME_BYTES: f64 = 24.0;

/// What is in one directory.
#[derive(Debug)]
pub(super) struct Tally {
    amounts: Amounts,
    itself: Amounts,
    noise: Amounts,
    below: Vec<(CString, f64)>,
    /// The share of its files that are looked at.
    looks: f64,
    random: Random,
}

impl Default for Tally {
    fn default() -> Self {
        let [amounts, itself, noise] = [Amounts::default(); 3];
        Self { amounts, itself, noise, below: Vec::new(), looks: 1.0, random: Random::new(0) }
    }
}

impl Tally {
    /// Adds a file, which stands for others that were not looked at.
    fn add_sizes(&mut self, meta: &Meta) {
        let names = if meta.file_type() == FileType::Directory { 1 } else { meta.nlink.max(1) };
        let [apparent, allocated] = [meta.size.max(0) as f64, 512.0 * meta.blocks as f64];
        let sizes = Amounts([0.0, 0.0, 0.0, apparent, allocated]).map(|size| size / names as f64);
        self.amounts.add(&sizes, 1.0 / self.looks);
        let squares = sizes.map(|size| size * size);
        self.noise.add(&squares, (1.0 - self.looks) / (self.looks * self.looks));
    }

    /// In the order of names, which does not depend on the workers.
    pub(super) fn into_found(mut self, node: &Arc<Node>) -> Found<Place> {
        self.below.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let below = self.below.into_iter();
        let below = below.map(|(name, size)| (Place::Below(node.clone(), name), size)).collect();
        Found { amounts: self.amounts, itself: self.itself, noise: self.noise, below }
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
    pace: Option<Pace>,
    one_file_system: bool,
    seed: u64,
}

impl Probe {
    pub(super) fn new(survey: &Survey, desk: Arc<Desk>) -> Self {
        let pace = survey.rate.map(Pace::new);
        Self { desk, pace, one_file_system: survey.one_file_system, seed: survey.seed }
    }

    fn problem(&self, deed: &'static str, path: Vec<u8>, errno: Errno) {
        self.desk.news().problems.push(Problem { deed, path, errno });
    }

    fn is_foreign(&self, dir: &Node, meta: &Meta) -> bool {
        self.one_file_system && dir.root_dev().is_some_and(|dev| dev != meta.dev)
    }

    fn add(&self, dir: &Arc<Node>, entry: &Entry<'_>, tally: &mut Tally) {
        let meta = match entry.meta {
            Some(Err(errno)) => {
                self.problem("access", path_of(dir, Some(entry.name.name)), errno);
                None
            }
            meta => meta.and_then(Result::ok),
        };
        if entry.file_type() == FileType::Directory {
            tally.amounts.add(&directory(meta), 1.0);
            if !meta.is_some_and(|meta| self.is_foreign(dir, meta)) {
                let size = meta.map_or(1.0, |meta| expected(meta.nlink, meta.size));
                tally.below.push((entry.name.name.to_owned(), size));
            }
        } else {
            tally.amounts.add(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]), 1.0);
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

    fn enter(&self, (): &mut (), Enter { node, meta, found }: Enter<'_>) -> Descend {
        let mut tally = Tally { itself: directory(Some(meta)), ..Tally::default() };
        if node.depth() == 0 {
            tally.amounts = tally.itself;
        }
        let looks_max = self.desk.looks_max.load(Ordering::Relaxed) as f64;
        tally.looks = (looks_max * NAME_BYTES / meta.size.max(1) as f64).min(1.0);
        tally.random = Random::new(self.seed ^ meta.ino);
        let descend = if self.is_foreign(node, meta) { What::Loop } else { found };
        if let What::Unreadable(errno) = descend {
            self.problem("read", path_of(node, None), errno);
        }
        node.set_note(Mutex::new(tally));
        if descend == What::Readable { Descend::Yes } else { Descend::No }
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
        self.pace.as_ref().inspect(|pace| pace.keep(count));
    }

    fn broken(&self, (): &mut (), node: &Arc<Node>, errno: Errno) {
        self.problem("read", path_of(node, None), errno);
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        let tally = tally(node).map(|mut tally| std::mem::take(&mut *tally));
        self.desk.put(node, tally.unwrap_or_default());
    }

    fn lost(&self, (): &mut (), node: &Arc<Node>, errno: Errno) {
        self.problem("access", path_of(node, None), errno);
    }

    fn root_file(&self, (): &mut (), root: &Arc<Node>, meta: Result<Meta, Errno>) {
        match meta {
            Ok(meta) => {
                let mut tally = Tally::default();
                tally.amounts.add(&Amounts([1.0, 1.0, 0.0, 0.0, 0.0]), 1.0);
                tally.add_sizes(&meta);
                root.set_note(Mutex::new(tally));
            }
            Err(errno) => self.problem("access", path_of(root, None), errno),
        }
    }

    fn flush(&self, (): &mut ()) {}
}
