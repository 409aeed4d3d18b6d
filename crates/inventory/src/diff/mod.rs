//! What changed between two inventories of the same trees.
//!
//! Directories of both are held in memory (`tree.rs`) and paired (`pairs.rs`). The rest is streamed: one pass over each inventory gives
//! every directory a digest of what is right in it, and only directories whose digests differ are read again and compared
//! (`compare.rs`), by sorting with a bounded buffer (`sorter.rs`). So memory grows with directories, not with entries.
//!
//! Owns what counts as which change, and their order. Does not own how a change looks on a screen.

mod change;
mod compare;
mod digest;
mod facts;
mod growth;
mod pairs;
mod sheet;
mod sorter;
mod tree;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;

use fathom_walk::has_room;

use crate::store::{Also, Error, Inventory};
use crate::top::Failure;
use crate::top::below::{self, Span};
use compare::Compare;
use pairs::Pairs;
use tree::Tree;

pub use change::{Change, Field, Verb};
pub use facts::{Facts, Number};
pub use growth::{Growth, Report, growth};
pub use sheet::Sheet;

/// The stack of the thread that reads one of the inventories.
const STACK_BYTES: usize = 2 << 20;
/// Address space below which one inventory is read after the other.
const THREAD_ROOM: usize = 64 << 20;

/// One of two inventories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The earlier one.
    Old,
    /// The later one.
    New,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Old => Self::New,
            Self::New => Self::Old,
        }
    }
}

/// A thing of each of two inventories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// That of the earlier one.
    pub old: T,
    /// That of the later one.
    pub new: T,
}

impl<T> Sides<T> {
    /// That of a side.
    pub fn get(&self, side: Side) -> &T {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    /// Works on both at once.
    fn both<U: Send>(&self, work: impl Fn(Side, &T) -> Result<U, Error> + Sync) -> Result<Sides<U>, Error>
    where
        T: Sync,
    {
        let (old, new) = thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let thread =
                has_room(THREAD_ROOM).then(|| builder.spawn_scoped(scope, || work(Side::Old, &self.old)));
            let new = work(Side::New, &self.new);
            let old = match thread {
                Some(Ok(thread)) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // No thread can be started: one after the other.
                None | Some(Err(_)) => work(Side::Old, &self.old),
            };
            (old, new)
        });
        Ok(Sides { old: old?, new: new? })
    }
}

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Only what is or was at or below this directory: as an inventory has it, or relative to what was scanned.
    pub below: Option<Vec<u8>>,
    /// Where to put what does not fit in memory.
    pub scratch: PathBuf,
}

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Changes, by [`Verb`].
    pub counts: [u64; Verb::ALL.len()],
    /// Entries of one inventory that may be in the other's part that is not known, or of which one knows no more than the name: not
    /// among the changes.
    pub unknown: u64,
    /// Trees of each inventory that the other does not have: nothing in them is compared.
    pub lone: Sides<Vec<Vec<u8>>>,
}

/// Both inventories' directories, and which is which.
struct Joined {
    trees: Sides<Tree>,
    pairs: Pairs,
    spans: Sides<Span>,
    /// Columns that one of the inventories does not have: they are not compared.
    lone_columns: Vec<&'static str>,
}

impl Joined {
    fn read(inventories: &Sides<&Inventory>, below: Option<&[u8]>) -> Result<Self, Failure> {
        let spans = spans(inventories, below)?;
        let mut trees = inventories.both(|_, inventory| Tree::read(inventory))?;
        let has_one = |side| {
            inventories.get(side).manifest().roots.len() == 1 && pairs::roots(trees.get(side)).count() == 1
        };
        let single = has_one(Side::Old) && has_one(Side::New);
        let pairs = Pairs::new(&mut trees, single);
        Ok(Self { trees, pairs, spans, lone_columns: lone_columns(inventories) })
    }

    /// Whether a directory is elsewhere than it was; a root never is.
    fn is_renamed(&self, side: Side, dir: u32) -> bool {
        let (here, there) = (self.trees.get(side), self.trees.get(side.other()));
        let twin = self.pairs.of(side, dir).zip(here.parent(dir));
        twin.is_some_and(|(twin, above)| {
            there.parent(twin) != self.pairs.of(side, above) || there.name(twin) != here.name(dir)
        })
    }

    /// Whether what is or was in these directories is asked for.
    fn is_within(&self, old: Option<u32>, new: Option<u32>) -> bool {
        let has = |span: Span, dir: Option<u32>| dir.is_some_and(|dir| span.has(dir.into()));
        has(self.spans.old, old) || has(self.spans.new, new)
    }

    /// Whether what is in these directories is in no other that is asked for.
    fn is_top(&self, old: Option<u32>, new: Option<u32>) -> bool {
        let is_top = |side: Side, dir: u32| {
            let (span, above) = (self.spans.get(side), self.trees.get(side).parent(dir));
            span.has(dir.into()) && above.is_none_or(|above| !span.has(above.into()))
        };
        old.is_some_and(|dir| is_top(Side::Old, dir)) || new.is_some_and(|dir| is_top(Side::New, dir))
    }

    /// The root directories of trees that the other inventory does not have.
    fn lone_roots(&self, side: Side) -> impl Iterator<Item = u32> {
        pairs::roots(self.trees.get(side)).filter(move |root| self.pairs.of(side, *root).is_none())
    }

    /// Paths of the trees that the other inventory does not have.
    fn lone(&self) -> Sides<Vec<Vec<u8>>> {
        let path = |side, root| self.trees.get(side).name(root).to_vec();
        let lone = |side| self.lone_roots(side).map(|root| path(side, root)).collect();
        Sides { old: lone(Side::Old), new: lone(Side::New) }
    }
}

/// The columns that one inventory has and the other does not.
fn lone_columns(inventories: &Sides<&Inventory>) -> Vec<&'static str> {
    let columns = ["attributes"].into_iter().chain(Also::NAMES);
    columns.filter(|column| inventories.old.has(column) != inventories.new.has(column)).collect()
}

/// What is asked for of each; at least one of them has it.
fn spans(inventories: &Sides<&Inventory>, below: Option<&[u8]>) -> Result<Sides<Span>, Failure> {
    let Some(path) = below else { return Ok(Sides { old: Span::ALL, new: Span::ALL }) };
    let find = |inventory| match below::find(inventory, path) {
        Ok(span) => Ok(Some(span)),
        Err(Failure::Absent) => Ok(None),
        Err(failure) => Err(failure),
    };
    match (find(inventories.old)?, find(inventories.new)?) {
        (None, None) => Err(Failure::Absent),
        (old, new) => Ok(Sides { old: old.unwrap_or(Span::NONE), new: new.unwrap_or(Span::NONE) }),
    }
}

/// Calls `each` for every change, in the order of the bytes of their paths, until it breaks.
///
/// # Errors
/// If an inventory is damaged, if none has the directory to be below of, or if there is no room for what does not fit in memory.
pub fn diff(
    inventories: &Sides<&Inventory>,
    ask: &Ask,
    each: &mut dyn FnMut(&Change) -> ControlFlow<()>,
) -> Result<Summary, Failure> {
    let joined = Joined::read(inventories, ask.below.as_deref())?;
    let differing = digest::differing(inventories, &joined)?;
    let mut compare = Compare::new(&joined, &differing, &ask.scratch);
    compare.run(inventories)?;
    let (mut changes, unknown) = compare.end()?;
    let mut summary = Summary { unknown, lone: joined.lone(), ..Summary::default() };
    let mut last = None;
    while let Some(change) = changes.next()? {
        // Operands within one another have the same entries.
        if last.as_ref() == Some(&change) {
            continue;
        }
        summary.counts[change.verb as usize] += 1;
        if each(&change).is_break() {
            break;
        }
        last = Some(change);
    }
    Ok(summary)
}
