//! The changes between two inventories of the same trees.
//!
//! The directories of both inventories are held in memory (`tree.rs`) and paired (`pairs.rs`);
//! everything else is streamed. One pass over each inventory computes a digest of the entries of
//! each directory. Only directories whose digests differ are read again and compared
//! (`compare.rs`), by an external merge sort (`sorter.rs`). Memory grows with the number of
//! directories, not with the number of entries.
//!
//! Owns the classification and the order of the changes. Does not own their presentation.

mod change;
mod change_table;
mod compare;
mod digest;
mod growth;
mod inode_info;
mod pairs;
mod sorter;
mod tree;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;

use fathom_walk::has_address_space;

use crate::top::QueryError;
use crate::top::below;
use compare::Comparison;
use fathom_inventory::store::Span;
use fathom_inventory::store::{IMPORTED_FROM, Inventory};
use pairs::DirPairs;
use tree::DirTree;

pub use change::{Change, ChangeKind, ChangedField};
pub use change_table::ChangeTable;
pub use growth::{DirGrowth, GrowthReport, grown, growth};
pub use inode_info::{InodeInfo, NumericField};

/// The stack size of the thread that reads one of the inventories.
const STACK_BYTES: usize = 2 << 20;
/// Free address space below which the inventories are read one after the other.
const THREAD_ROOM: usize = 64 << 20;

/// One of two inventories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The earlier inventory.
    Old,
    /// The later inventory.
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

/// A pair of values, one for each of two inventories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// The value of the earlier inventory.
    pub old: T,
    /// The value of the later inventory.
    pub new: T,
}

impl<T> Sides<T> {
    /// Returns the value of a side.
    pub fn get(&self, side: Side) -> &T {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    /// Calls `work` for both sides, in parallel where a thread can be started.
    pub fn both<U: Send, E: Send>(
        &self,
        work: impl Fn(Side, &T) -> Result<U, E> + Sync,
    ) -> Result<Sides<U>, E>
    where
        T: Sync,
    {
        let (old, new) = thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let thread = has_address_space(THREAD_ROOM)
                .then(|| builder.spawn_scoped(scope, || work(Side::Old, &self.old)));
            let new = work(Side::New, &self.new);
            let old = match thread {
                Some(Ok(thread)) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // No thread can be started: read one inventory after the other.
                None | Some(Err(_)) => work(Side::Old, &self.old),
            };
            (old, new)
        });
        Ok(Sides { old: old?, new: new? })
    }
}

/// The options of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Compare only entries at or below this directory, in either inventory. The path is as an
    /// inventory records it, or relative to a root.
    pub below: Option<Vec<u8>>,
    /// The directory for spill files.
    pub scratch: PathBuf,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffSummary {
    /// The number of changes, by [`ChangeKind`].
    pub counts: [u64; ChangeKind::ALL.len()],
    /// The number of entries whose change is unknown: the other inventory may have them in a part
    /// that it does not cover, or one inventory has no more than their names. They are not among
    /// the changes.
    pub unknown: u64,
    /// The paths of the trees that only one of the inventories has. Their entries are not compared.
    pub unmatched: Sides<Vec<Vec<u8>>>,
}

/// The directories of both inventories, and how they are paired.
struct PairedTrees {
    trees: Sides<DirTree>,
    pairs: DirPairs,
    spans: Sides<Span>,
    /// Columns that only one of the inventories has. They are not compared.
    unshared_columns: Vec<&'static str>,
    /// Whether times are compared in whole seconds: other programs export no more.
    in_seconds: bool,
}

impl PairedTrees {
    fn read(inventories: &Sides<&Inventory>, below: Option<&[u8]>) -> Result<Self, QueryError> {
        let spans = spans(inventories, below)?;
        let mut trees = inventories.both(|_, inventory| DirTree::read(inventory))?;
        let has_one = |side| {
            inventories.get(side).manifest().roots.len() == 1 && pairs::roots(trees.get(side)).count() == 1
        };
        let single = has_one(Side::Old) && has_one(Side::New);
        let pairs = DirPairs::new(&mut trees, single);
        let is_imported = |side| inventories.get(side).manifest().options.contains_key(IMPORTED_FROM);
        let in_seconds = is_imported(Side::Old) || is_imported(Side::New);
        Ok(Self { trees, pairs, spans, unshared_columns: unshared_columns(inventories), in_seconds })
    }

    /// Returns whether a directory has another parent or another name than its counterpart. A root
    /// never has.
    fn is_renamed(&self, side: Side, dir: u32) -> bool {
        let (here, there) = (self.trees.get(side), self.trees.get(side.other()));
        let counterpart = self.pairs.of(side, dir).zip(here.parent(dir));
        counterpart.is_some_and(|(counterpart, above)| {
            there.parent(counterpart) != self.pairs.of(side, above)
                || there.name(counterpart) != here.name(dir)
        })
    }

    /// Returns whether either directory is in the requested part of its inventory.
    fn is_within(&self, old: Option<u32>, new: Option<u32>) -> bool {
        let contains = |span: Span, dir: Option<u32>| dir.is_some_and(|dir| span.contains(dir.into()));
        contains(self.spans.old, old) || contains(self.spans.new, new)
    }

    /// Returns whether either directory is the top of the requested part: no other requested
    /// directory contains it.
    fn is_top(&self, old: Option<u32>, new: Option<u32>) -> bool {
        let is_top = |side: Side, dir: u32| {
            let (span, above) = (self.spans.get(side), self.trees.get(side).parent(dir));
            span.contains(dir.into()) && above.is_none_or(|above| !span.contains(above.into()))
        };
        old.is_some_and(|dir| is_top(Side::Old, dir)) || new.is_some_and(|dir| is_top(Side::New, dir))
    }

    /// Iterates over the root directories of the trees that only this inventory has.
    fn unmatched_roots(&self, side: Side) -> impl Iterator<Item = u32> {
        pairs::roots(self.trees.get(side)).filter(move |root| self.pairs.of(side, *root).is_none())
    }

    /// Returns the paths of the trees that only one of the inventories has.
    fn unmatched(&self) -> Sides<Vec<Vec<u8>>> {
        let path = |side, root| self.trees.get(side).name(root).to_vec();
        let unmatched = |side| self.unmatched_roots(side).map(|root| path(side, root)).collect();
        Sides { old: unmatched(Side::Old), new: unmatched(Side::New) }
    }
}

/// Returns the paths of the trees that only one of the inventories has. Two inventories of one tree
/// each are of the same tree, whatever its path.
///
/// # Errors
/// If an inventory is damaged.
///
/// ```
/// use fathom_questions::diff::{Sides, unmatched};
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
///
/// let temp = tempfile::tempdir()?;
/// let [old, new] = ["old.inv", "new.inv"].map(|name| temp.path().join(name));
/// scan(&Scan { roots: vec![c"src/top".into()], ..Scan::default() }, &old, &mut ())?;
/// let roots = vec![c"src/top".into(), c"src/diff".into()];
/// scan(&Scan { roots, ..Scan::default() }, &new, &mut ())?;
/// let (old, new) = (Inventory::open(&old)?, Inventory::open(&new)?);
/// let unmatched = unmatched(&Sides { old: &old, new: &new })?;
/// assert_eq!((unmatched.old.len(), unmatched.new), (0, vec![b"src/diff".to_vec()]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unmatched(inventories: &Sides<&Inventory>) -> Result<Sides<Vec<Vec<u8>>>, QueryError> {
    Ok(PairedTrees::read(inventories, None)?.unmatched())
}

/// Returns the compared columns that only one of the inventories has. `ignored` is not compared.
fn unshared_columns(inventories: &Sides<&Inventory>) -> Vec<&'static str> {
    let columns = ["project", "xattrs", "acl"].into_iter();
    columns
        .filter(|column| inventories.old.has_column(column) != inventories.new.has_column(column))
        .collect()
}

/// Returns the requested part of each inventory. It is an error if neither has the directory.
fn spans(inventories: &Sides<&Inventory>, below: Option<&[u8]>) -> Result<Sides<Span>, QueryError> {
    let Some(path) = below else { return Ok(Sides { old: Span::ALL, new: Span::ALL }) };
    let find = |inventory| match below::find(inventory, path) {
        Ok(span) => Ok(Some(span)),
        Err(QueryError::Absent) => Ok(None),
        Err(failure) => Err(failure),
    };
    match (find(inventories.old)?, find(inventories.new)?) {
        (None, None) => Err(QueryError::Absent),
        (old, new) => Ok(Sides { old: old.unwrap_or(Span::NONE), new: new.unwrap_or(Span::NONE) }),
    }
}

/// Calls `each` for every change, in the byte order of the paths, until it breaks.
///
/// # Errors
/// If an inventory is damaged, if neither has the directory [`DiffOptions::below`], or if a spill
/// file cannot be written.
///
/// ```
/// use std::ops::ControlFlow;
/// use fathom_questions::diff::{ChangeKind, DiffOptions, Sides, diff};
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
///
/// let temp = tempfile::tempdir()?;
/// let tree = temp.path().join("tree");
/// std::fs::create_dir(&tree)?;
/// let roots = vec![std::ffi::CString::new(tree.to_str().unwrap())?];
/// let options = Scan { roots, ..Scan::default() };
/// let [old, new] = ["old.inv", "new.inv"].map(|name| temp.path().join(name));
/// scan(&options, &old, &mut ())?;
/// std::fs::write(tree.join("file"), "12345")?;
/// scan(&options, &new, &mut ())?;
///
/// let (old, new) = (Inventory::open(&old)?, Inventory::open(&new)?);
/// let options = DiffOptions { below: None, scratch: temp.path().to_owned() };
/// let mut changes = Vec::new();
/// let summary = diff(&Sides { old: &old, new: &new }, &options, &mut |change| {
///     changes.push((change.kind, change.path.clone()));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(summary.counts[ChangeKind::Created as usize], 1);
/// assert!(changes.iter().any(|(_, path)| path.ends_with(b"tree/file")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn diff(
    inventories: &Sides<&Inventory>,
    options: &DiffOptions,
    each: &mut dyn FnMut(&Change) -> ControlFlow<()>,
) -> Result<DiffSummary, QueryError> {
    let paired = PairedTrees::read(inventories, options.below.as_deref())?;
    let differing = digest::differing(inventories, &paired)?;
    let mut compare = Comparison::new(&paired, &differing, &options.scratch);
    compare.run(inventories)?;
    let (mut changes, unknown) = compare.finish()?;
    let mut summary = DiffSummary { unknown, unmatched: paired.unmatched(), ..DiffSummary::default() };
    let mut last = None;
    while let Some(change) = changes.next()? {
        // Operands that overlap have the same entries twice.
        if last.as_ref() == Some(&change) {
            continue;
        }
        summary.counts[change.kind as usize] += 1;
        if each(&change).is_break() {
            break;
        }
        last = Some(change);
    }
    Ok(summary)
}
