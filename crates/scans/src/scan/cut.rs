//! The cut of a unit of a scan by several machines: when it enters no more directories, and what it
//! leaves to other units.
//!
//! A directory that is left has a row in `dirs`, but none of its entries; the final pass puts the
//! rows of another unit in its place. Every other directory is read to its end, so each directory
//! is read by one unit, or, if it has very many names, by one unit for each slice of them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fathom_walk::{Clock, Enter, Found};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use fathom_inventory::store::PATH_BYTES_MAX;

/// The name of the file in the directory of the inventory that asks units to end early.
const IDLE_MARK: &str = "hungry";
/// The subdirectories of a directory of a level of which none was read.
const FAN_OUT: u64 = 16;
/// Time between two looks at that file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A part of the names of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Slice {
    /// Returns whether a name is in this slice.
    pub(crate) fn has(self, name: &[u8]) -> bool {
        let mut hash = XxHash64::with_seed(0);
        hash.write(name);
        hash.finish() % u64::from(self.count.max(1)) == u64::from(self.index)
    }
}

/// A root of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitRoot {
    pub(crate) path: CString,
    /// The part of its names that is read; `None` for all of them.
    pub(crate) slice: Option<Slice>,
    /// Whether it is an operand of the scan, and not a directory that a unit has left.
    pub(crate) is_operand: bool,
}

/// The options of a cut.
#[derive(Clone, Debug)]
pub(crate) struct CutOptions {
    pub(crate) budget: Duration,
    /// The directory in which the inventory is made.
    pub(crate) part: PathBuf,
    pub(crate) roots: Vec<UnitRoot>,
    /// Most slices in which a directory with very many names is read, each by another unit; with
    /// fewer than two, this unit reads it.
    pub(crate) slices_max: u32,
    /// Bytes of such a directory for each of its slices.
    pub(crate) slice_bytes: i64,
}

impl CutOptions {
    /// Returns the slices of the roots; nothing if there are none.
    pub(crate) fn slices_by_root(&self) -> Vec<Option<Slice>> {
        if self.roots.iter().all(|root| root.slice.is_none()) {
            return Vec::new();
        }
        self.roots.iter().map(|root| root.slice).collect()
    }
}

/// The directories and rows of a root, which are consecutive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RootSpan {
    /// The number of its first directory, which is the root itself.
    pub(crate) id: i64,
    /// The number of its directories; 0 for a file.
    pub(crate) dirs: i64,
    /// The number of rows of `entries` before its own.
    pub(crate) row: u64,
    /// The number of its own rows of `entries`.
    pub(crate) rows: u64,
    /// The device number of the root.
    pub(crate) dev: u64,
}

/// A directory that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftDir {
    pub(crate) path: Vec<u8>,
    pub(crate) id: i64,
    /// The number of rows of `entries` before those that it would have.
    pub(crate) row: u64,
    pub(crate) dev: u64,
    /// The number of units that read it.
    pub(crate) slices: u32,
}

/// The state of a cut.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) options: CutOptions,
    clock: Clock,
    end: Instant,
    next_look: Instant,
    /// Workers see it as well: they read no directories that will be left.
    is_due: Arc<AtomicBool>,
    /// The directories that were read, with their entries and all below, by the number of slashes
    /// in their paths.
    levels: BTreeMap<usize, LevelSum>,
    /// The roots that were begun. Those after them are left.
    pub(crate) spans: Vec<RootSpan>,
    pub(crate) left: Vec<LeftDir>,
}

/// The sum of the directories of a level.
#[derive(Clone, Copy, Debug, Default)]
struct LevelSum {
    dirs: u64,
    entries: u64,
}

impl Cut {
    pub(crate) fn new(options: CutOptions, clock: Clock) -> Self {
        let now = clock.now();
        let end = now + options.budget;
        let (is_due, levels) = (Arc::default(), BTreeMap::new());
        Self { options, clock, end, next_look: now, is_due, levels, spans: Vec::new(), left: Vec::new() }
    }

    /// Returns the flag that is set once no more directories are entered.
    pub(super) fn due_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_due)
    }

    fn is_due(&self) -> bool {
        // A hint for workers, and otherwise of this thread alone.
        self.is_due.load(Ordering::Relaxed)
    }

    /// Adds a directory that was read, with the number of entries in it and below.
    pub(super) fn add_dir(&mut self, path: &[u8], entries: u64) {
        let sum = self.levels.entry(level(path)).or_default();
        *sum = LevelSum { dirs: sum.dirs + 1, entries: sum.entries + entries };
    }

    /// Estimates the number of entries in a directory and below, from those that were read at the
    /// same level, or else at the next one below.
    pub(crate) fn entries_expected(&self, path: &[u8]) -> u64 {
        let level = level(path);
        let Some((known, sum)) = self.levels.range(level..).next() else { return 1 };
        let above = u32::try_from(known - level).unwrap_or(u32::MAX);
        (sum.entries / sum.dirs.max(1)).max(1).saturating_mul(FAN_OUT.saturating_pow(above))
    }

    /// Determines whether the unit is to end. Called every few milliseconds.
    pub(crate) fn look(&mut self) {
        let now = self.clock.now();
        if self.is_due() || now < self.next_look {
            return;
        }
        self.next_look = now + POLL_INTERVAL;
        self.is_due.store(now >= self.end || is_hungry(&self.options.part), Ordering::Relaxed);
    }

    /// Returns whether no more roots are begun. The first one always is, so every unit does some of
    /// its work.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_due() && !self.spans.is_empty()
    }

    /// Begins a root at a position of the tables. Returns false if it is left.
    pub(crate) fn begin_root(&mut self, root: usize, id: i64, row: u64, dev: u64) -> bool {
        // The walk may have asked for a root before the cut was due: then it is left here.
        if self.has_ended() || root != self.spans.len() {
            return false;
        }
        self.end_root(id, row);
        self.spans.push(RootSpan { id, row, dev, ..RootSpan::default() });
        true
    }

    /// Ends the root that was begun last, at a position of the tables.
    pub(crate) fn end_root(&mut self, id: i64, row: u64) {
        if let Some(last) = self.spans.last_mut() {
            (last.dirs, last.rows) = (id - last.id, row - last.row);
        }
    }

    /// Returns the number of units that read the directory instead of this one; `None` if this one
    /// reads it.
    pub(crate) fn units_for(&self, enter: &Enter<'_>, path_len: usize) -> Option<u32> {
        if enter.found != Found::Readable || path_len > PATH_BYTES_MAX {
            return None;
        }
        let is_root = enter.node.depth() == 0;
        let slices =
            (enter.meta.size / self.options.slice_bytes.max(1)).min(i64::from(self.options.slices_max));
        let is_slice = is_root && self.slice_of(enter.node.root_index()).is_some();
        if slices > 1 && !is_slice {
            return Some(slices as u32);
        }
        (self.is_due() && !is_root).then_some(1)
    }

    fn slice_of(&self, root: usize) -> Option<Slice> {
        self.options.roots.get(root)?.slice
    }

    /// Returns whether a root is an operand.
    pub(crate) fn is_operand(&self, root: usize) -> bool {
        self.options.roots.get(root).is_some_and(|root| root.is_operand)
    }
}

fn level(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}

/// Returns whether units are asked to end early.
fn is_hungry(part: &Path) -> bool {
    part.join(IDLE_MARK).symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_slice() {
        for name in 0..1000_u32 {
            let name = name.to_string();
            let found = (0..7).filter(|index| Slice { index: *index, count: 7 }.has(name.as_bytes()));
            assert_eq!(found.count(), 1, "{name}");
        }
    }

    #[test]
    fn the_first_root_is_begun_even_if_the_cut_is_due() {
        let part = tempfile::tempdir().unwrap();
        let root = UnitRoot { path: c"a".into(), slice: None, is_operand: false };
        let options = CutOptions {
            budget: Duration::ZERO,
            part: part.path().to_owned(),
            roots: vec![root.clone(), root],
            slices_max: 0,
            slice_bytes: 1,
        };
        let mut cut = Cut::new(options, Clock::held());
        cut.look();
        assert!(!cut.has_ended() && cut.begin_root(0, 1, 0, 7));
        assert!(cut.has_ended() && !cut.begin_root(1, 4, 9, 7));
        cut.end_root(4, 9);
        assert_eq!(cut.spans, [RootSpan { id: 1, dirs: 3, row: 0, rows: 9, dev: 7 }]);
    }

    #[test]
    fn the_file_ends_a_unit_before_its_budget() {
        let part = tempfile::tempdir().unwrap();
        let options = CutOptions {
            budget: Duration::from_secs(3600),
            part: part.path().to_owned(),
            roots: Vec::new(),
            slices_max: 0,
            slice_bytes: 1,
        };
        let clock = Clock::held();
        let mut cut = Cut::new(options, clock.clone());
        cut.look();
        assert!(!cut.is_due());
        std::fs::write(part.path().join(IDLE_MARK), "").unwrap();
        cut.look();
        assert!(!cut.is_due(), "it looks now and then only");
        clock.advance(POLL_INTERVAL);
        cut.look();
        assert!(cut.is_due() && cut.due_flag().load(Ordering::Relaxed));
    }

    #[test]
    fn directories_are_expected_to_be_as_large_as_those_of_their_level() {
        let options = CutOptions {
            budget: Duration::ZERO,
            part: PathBuf::new(),
            roots: Vec::new(),
            slices_max: 0,
            slice_bytes: 1,
        };
        let mut cut = Cut::new(options, Clock::held());
        assert_eq!(cut.entries_expected(b"/a"), 1);
        for (path, entries) in [(&b"/a/b/c"[..], 10), (b"/a/b/d", 30), (b"/a/b", 0)] {
            cut.add_dir(path, entries);
        }
        let expected =
            [&b"/x/y/z"[..], b"/x/y", b"/x", b"/x/y/z/below"].map(|path| cut.entries_expected(path));
        assert_eq!(expected, [20, 1, 16, 1]);
    }
}
