//! The directories of an inventory, in the order in which the scan entered them.
//!
//! Their rows are in the order in which the scan left them, so the other order is known only at the
//! end. They are held in memory: about 30 bytes and the name of each, and 150 bytes more if
//! metadata is needed. The numbers in the rows are untrusted: a tree is returned only if its
//! directories are nested without a gap.

use fathom_walk::{Errno, Meta};
use parquet::errors::{ParquetError, Result};

use super::damaged;
use fathom_inventory::store::Span;
use fathom_inventory::store::{
    DirState, Error, Inventory, MetaColumns, NumberColumn, OptionalValues, PathColumns, RowGroup, Table,
    errno_of,
};

/// The directories of a span, by their index in the order of the scan.
pub struct ReplayTree {
    /// The number of the first directory.
    first: i64,
    dirs: Vec<ReplayDir>,
    /// The names of the directories, one after the other. A top directory has its whole path here.
    names: Vec<u8>,
    /// The metadata of each directory; empty if it is not needed.
    metas: Vec<Option<Meta>>,
    /// The optional columns of each directory; empty if they are not needed or the inventory has
    /// none.
    optional_values: Vec<OptionalValues<'static>>,
    /// The number of entries of each directory; empty if it is not needed.
    entries: Vec<u64>,
    /// The row of each directory, which is the index into the vectors above.
    rows: Vec<usize>,
    tops: usize,
}

struct ReplayDir {
    /// The index of the last directory below this one, or of itself.
    last: usize,
    name_end: usize,
    state: DirState,
    /// The error because of which the directory is incomplete; 0 if it is complete or metadata is
    /// not needed.
    errno: u16,
}

impl ReplayTree {
    /// Reads the directories in `span`, with the columns of metadata that `needs_column` accepts,
    /// and with the numbers of their entries if `needs_entries`.
    pub(crate) fn read(
        inventory: &Inventory,
        span: Span,
        needs_column: Option<&dyn Fn(&str) -> bool>,
        needs_entries: bool,
    ) -> Result<Self, Error> {
        let first = if span == Span::ALL { 1 } else { span.first };
        let mut tree = Self {
            first,
            dirs: Vec::new(),
            names: Vec::new(),
            metas: Vec::new(),
            optional_values: Vec::new(),
            entries: Vec::new(),
            rows: Vec::new(),
            tops: 0,
        };
        let (spans, subtrees) = (Vec::new(), SubtreeStack::default());
        let mut rows = TreeBuilder { span, needs_column, needs_entries, spans, subtrees };
        inventory.each(Table::Dirs, |group| rows.add(inventory, group, &mut tree))?;
        let whole = rows.subtrees.tops(first, tree.dirs.len(), span == Span::ALL);
        tree.tops = whole.ok_or_else(|| inventory.refused("its directories contradict one another"))?;
        tree.sort_by_number(&rows.spans);
        Ok(tree)
    }

    /// Puts the directories into the order of the scan. The caller has checked that their numbers
    /// have no gap.
    fn sort_by_number(&mut self, spans: &[(i64, i64)]) {
        self.rows = vec![0; spans.len()];
        for (row, (pre, post)) in spans.iter().enumerate() {
            let index = |number: i64| number.abs_diff(self.first) as usize;
            self.dirs[row].last = index(*post);
            self.rows[index(*pre)] = row;
        }
    }

    /// Returns the number of directories.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of top directories, which no other directory of the tree contains.
    pub(super) fn tops(&self) -> usize {
        self.tops
    }

    /// Returns the index of the directory with this number.
    pub(super) fn index_of(&self, dir_id: i64) -> Option<usize> {
        let index = usize::try_from(dir_id.checked_sub(self.first)?).ok()?;
        (index < self.len()).then_some(index)
    }

    /// Returns the number of the directory at `index`, which is at most the last number.
    pub(super) fn number(&self, index: usize) -> i64 {
        self.first.saturating_add(i64::try_from(index).unwrap_or(i64::MAX))
    }

    /// Returns the index of the last directory below the one at `index`, or of itself.
    pub(super) fn last(&self, index: usize) -> usize {
        self.dirs[self.rows[index]].last
    }

    pub(super) fn name(&self, index: usize) -> &[u8] {
        let row = self.rows[index];
        let start = row.checked_sub(1).map_or(0, |before| self.dirs[before].name_end);
        &self.names[start..self.dirs[row].name_end]
    }

    pub(super) fn state(&self, index: usize) -> DirState {
        self.dirs[self.rows[index]].state
    }

    /// Returns the error because of which the directory at `index` is incomplete.
    pub(super) fn errno(&self, index: usize) -> Option<Errno> {
        Some(self.dirs[self.rows[index]].errno)
            .filter(|errno| *errno != 0)
            .map(|errno| Errno::from_raw_os_error(errno.into()))
    }

    pub(super) fn meta(&self, index: usize) -> Option<&Meta> {
        self.metas.get(self.rows[index])?.as_ref()
    }

    /// Returns the number of entries of the directory at `index`, if it was read and is complete.
    pub(super) fn entries(&self, index: usize) -> Option<u64> {
        let is_complete = self.state(index) == DirState::Complete;
        self.entries.get(self.rows[index]).copied().filter(|_| is_complete)
    }

    pub(super) fn optional_values(&self, index: usize) -> Option<&OptionalValues<'static>> {
        self.optional_values.get(self.rows[index])
    }
}

/// Reads and checks the rows of the directories.
struct TreeBuilder<'a> {
    span: Span,
    /// Accepts the needed columns of metadata; `None` if no metadata is needed.
    needs_column: Option<&'a dyn Fn(&str) -> bool>,
    needs_entries: bool,
    /// The first and the last number at and below each directory.
    spans: Vec<(i64, i64)>,
    subtrees: SubtreeStack,
}

impl TreeBuilder<'_> {
    fn add(&mut self, inventory: &Inventory, group: &RowGroup<'_>, tree: &mut ReplayTree) -> Result<()> {
        let [ids, parents] = [group.numbers("dir_id")?, group.numbers("parent_id")?];
        let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        let (paths, states) = (PathColumns::read(group)?, group.texts("state")?);
        let mut metas = self.needs_column.map(|_| MetaColumns::default());
        if let (Some(metas), Some(needs)) = (&mut metas, self.needs_column) {
            metas.load(group, needs)?;
        }
        let counts = match self.needs_entries {
            true => Some([group.numbers("n_files")?, group.numbers("n_dirs")?, group.numbers("n_other")?]),
            false => None,
        };
        let errnos = if self.needs_column.is_some() { Some(group.numbers("errno")?) } else { None };
        for row in (0..group.rows()).filter(|row| self.span.contains(ids.or_zero()[*row])) {
            let (id, span) = (ids.or_zero()[row], (pre.or_zero()[row], post.or_zero()[row]));
            let parent = parents.get(row).filter(|parent| self.span.contains(*parent));
            if id != span.0 || !self.subtrees.close(span.0, span.1, parent) {
                return Err(damaged("its directories contradict one another"));
            }
            let long;
            let name = match (parent, paths.get(row)) {
                (Some(_), _) => raw.get(row).or(names.get(row)).filter(|name| is_name(name)),
                (None, Some(path)) => Some(path).filter(|path| is_path(path)),
                (None, None) => {
                    long =
                        inventory.long_path(id).map_err(|error| ParquetError::External(Box::new(error)))?;
                    Some(&long[..])
                }
            };
            tree.names.extend_from_slice(name.ok_or_else(|| damaged("a directory has an impossible name"))?);
            let state = states.get(row).and_then(DirState::from_word);
            let state = state.ok_or_else(|| damaged("a directory has an impossible state"))?;
            let errno = errnos.as_ref().and_then(|errnos| errnos.get(row));
            let errno = errno.map_or(0, |errno| errno_of(Some(errno)).raw_os_error() as u16);
            tree.dirs.push(ReplayDir { last: 0, name_end: tree.names.len(), state, errno });
            let count = |column: &NumberColumn| u64::try_from(column.or_zero()[row]).unwrap_or(0);
            tree.entries.extend(counts.as_ref().map(|counts| counts.iter().map(count).sum::<u64>()));
            tree.metas.extend(metas.as_ref().map(|metas| metas.get(row)));
            tree.optional_values.extend(
                metas.as_ref().and_then(|metas| metas.optional_values(row)).map(OptionalValues::into_owned),
            );
            self.spans.push(span);
        }
        Ok(())
    }
}

/// Returns whether an entry of a directory can have this name.
pub(super) fn is_name(name: &[u8]) -> bool {
    is_path(name) && !name.contains(&b'/') && name != b"." && name != b".."
}

/// Returns whether an operand can have this path.
pub(super) fn is_path(path: &[u8]) -> bool {
    !path.is_empty() && !path.contains(&0)
}

/// Directories that have been left and whose parent has not, the last one on top.
#[derive(Default)]
struct SubtreeStack(Vec<Subtree>);

struct Subtree {
    first: i64,
    last: i64,
    parent: Option<i64>,
}

impl SubtreeStack {
    /// Leaves a directory. Returns whether the directories on top of the stack are exactly those
    /// below it, without a gap.
    fn close(&mut self, first: i64, last: i64, parent: Option<i64>) -> bool {
        let mut left = last;
        while let Some(child) = self.0.pop_if(|child| child.first > first) {
            if child.parent != Some(first) || child.last != left {
                return false;
            }
            left = child.first - 1;
        }
        self.0.push(Subtree { first, last, parent });
        left == first
    }

    /// Returns the number of top directories if all directories have consecutive numbers from
    /// `first` on. Unless there may be `several`, any number but one is refused.
    fn tops(&self, first: i64, count: usize, several: bool) -> Option<usize> {
        let mut next = first;
        for top in &self.0 {
            if top.first != next || top.parent.is_some() {
                return None;
            }
            next = top.last.checked_add(1)?;
        }
        let is_all = usize::try_from(next.checked_sub(first)?) == Ok(count);
        (is_all && (several || self.0.len() == 1)).then_some(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, last number below, parent.
    type Row = (i64, i64, Option<i64>);

    fn tops(rows: &[Row]) -> Option<usize> {
        let mut subtrees = SubtreeStack::default();
        let fit = rows.iter().all(|(first, last, parent)| subtrees.close(*first, *last, *parent));
        subtrees.tops(1, rows.len(), true).filter(|_| fit)
    }

    #[test]
    fn directories_are_one_below_the_other_without_a_gap() {
        let good =
            [(3, 3, Some(2)), (4, 4, Some(2)), (2, 4, Some(1)), (5, 5, Some(1)), (1, 5, None), (6, 6, None)];
        assert_eq!((tops(&good), tops(&[])), (Some(2), Some(0)));
        for (at, row) in [
            (0, (3, 3, Some(1))),
            (0, (3, 3, None)),
            (0, (3, 4, Some(2))),
            (0, (4, 4, Some(2))),
            (1, (3, 3, Some(2))),
            (2, (2, 5, Some(1))),
            (2, (2, 2, Some(1))),
            (2, (2, i64::MAX, Some(1))),
            (2, (i64::MIN, 4, Some(1))),
            (3, (5, 5, Some(5))),
            (3, (5, 4, Some(1))),
            (4, (1, 5, Some(1))),
            (4, (1, 5, Some(6))),
            (5, (7, 7, None)),
            (5, (6, i64::MAX, None)),
            (5, (6, 5, None)),
        ] {
            let mut bad = good;
            bad[at] = row;
            assert_eq!(tops(&bad), None, "{row:?} at {at}");
        }
        for at in 0..good.len() - 1 {
            let mut swapped = good;
            swapped.swap(at, at + 1);
            // Neither of two neighbours is below the other, so their order has to be the order of
            // their numbers.
            assert_eq!(tops(&swapped), None, "{at}");
        }
    }

    #[test]
    fn names_are_single_components() {
        assert!(is_name(b"a b\n\xff") && is_path(b"/") && is_path(b"../x"));
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(!is_path(b"") && !is_path(b"a\0b"));
    }
}
