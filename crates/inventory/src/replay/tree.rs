//! The directories of an inventory, in the order in which a scan enters them.
//!
//! Their rows come in the order in which it left them, and in the other order only once all are known: so they are in memory, some
//! 30 bytes and the name of each, and 150 more where metadata is wanted. Numbers in the rows are nobody's word. Whoever reads this
//! gets directories that are one below the other without a gap, or an error.

use fathom_walk::{Errno, Meta};
use parquet::errors::{ParquetError, Result};

use super::damaged;
use crate::store::{Error, Extra, Group, Inventory, Metas, Paths, State, Table, errno_of};
use crate::top::below::Span;

/// The directories at and below those that are wanted, by their place in the order.
pub(crate) struct Tree {
    /// The number of the first.
    first: i64,
    dirs: Vec<Dir>,
    /// Of each directory its name; of those that are in no other, the path. One after the other.
    names: Vec<u8>,
    /// As many as directories, or none where nobody wants them.
    metas: Vec<Option<Meta>>,
    /// As many as directories, or none where nobody wants them or the inventory has none.
    extras: Vec<Extra<'static>>,
    /// Where in all of these a directory is.
    rows: Vec<usize>,
    tops: usize,
}

struct Dir {
    /// The place of the last directory below it, or of itself.
    last: usize,
    name_end: usize,
    state: State,
    /// Why it is not complete; 0 where it is, or where metadata is not wanted.
    errno: u16,
}

impl Tree {
    /// Reads what is in `span`; metadata only if that is wanted.
    pub(crate) fn read(inventory: &Inventory, span: Span, with_metadata: bool) -> Result<Self, Error> {
        let first = if span == Span::ALL { 1 } else { span.first };
        let mut tree = Self {
            first,
            dirs: Vec::new(),
            names: Vec::new(),
            metas: Vec::new(),
            extras: Vec::new(),
            rows: Vec::new(),
            tops: 0,
        };
        let mut rows = Rows { span, with_metadata, spans: Vec::new(), subtrees: Subtrees::default() };
        inventory.each(Table::Dirs, |group| rows.add(inventory, group, &mut tree))?;
        let whole = rows.subtrees.tops(first, tree.dirs.len(), span == Span::ALL);
        tree.tops = whole.ok_or_else(|| inventory.refused("its directories do not fit together"))?;
        tree.arrange(&rows.spans);
        Ok(tree)
    }

    /// Puts directories into their order, once their numbers are known to be those from the first to the last.
    fn arrange(&mut self, spans: &[(i64, i64)]) {
        self.rows = vec![0; spans.len()];
        for (row, (pre, post)) in spans.iter().enumerate() {
            let place = |number: i64| number.abs_diff(self.first) as usize;
            self.dirs[row].last = place(*post);
            self.rows[place(*pre)] = row;
        }
    }

    /// How many directories there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many are in no other.
    pub(super) fn tops(&self) -> usize {
        self.tops
    }

    /// The place of the directory with this number.
    pub(super) fn place(&self, dir_id: i64) -> Option<usize> {
        let place = usize::try_from(dir_id.checked_sub(self.first)?).ok()?;
        (place < self.len()).then_some(place)
    }

    /// The place of the last directory below the one at `place`.
    pub(super) fn last(&self, place: usize) -> usize {
        self.dirs[self.rows[place]].last
    }

    pub(super) fn name(&self, place: usize) -> &[u8] {
        let row = self.rows[place];
        let start = row.checked_sub(1).map_or(0, |before| self.dirs[before].name_end);
        &self.names[start..self.dirs[row].name_end]
    }

    pub(super) fn state(&self, place: usize) -> State {
        self.dirs[self.rows[place]].state
    }

    /// Why the directory at `place` is not complete.
    pub(super) fn errno(&self, place: usize) -> Option<Errno> {
        Some(self.dirs[self.rows[place]].errno)
            .filter(|errno| *errno != 0)
            .map(|errno| Errno::from_raw_os_error(errno.into()))
    }

    pub(super) fn meta(&self, place: usize) -> Option<&Meta> {
        self.metas.get(self.rows[place])?.as_ref()
    }

    pub(super) fn extra(&self, place: usize) -> Option<&Extra<'static>> {
        self.extras.get(self.rows[place])
    }
}

/// Rows while they are read.
struct Rows {
    span: Span,
    with_metadata: bool,
    /// First and last number of what is at and below each directory.
    spans: Vec<(i64, i64)>,
    subtrees: Subtrees,
}

impl Rows {
    fn add(&mut self, inventory: &Inventory, group: &Group<'_>, tree: &mut Tree) -> Result<()> {
        let [ids, parents] = [group.numbers("dir_id")?, group.numbers("parent_id")?];
        let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        let (paths, states) = (Paths::read(group)?, group.texts("state")?);
        let metas = if self.with_metadata { Some(Metas::read(group)?) } else { None };
        let errnos = if self.with_metadata { Some(group.numbers("errno")?) } else { None };
        for row in (0..group.rows()).filter(|row| self.span.has(ids.or_zero()[*row])) {
            let (id, span) = (ids.or_zero()[row], (pre.or_zero()[row], post.or_zero()[row]));
            let parent = parents.get(row).filter(|parent| self.span.has(*parent));
            if id != span.0 || !self.subtrees.close(span, parent) {
                return Err(damaged("its directories do not fit together"));
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
            let state = states.get(row).and_then(State::from_word);
            let state = state.ok_or_else(|| damaged("a directory has an impossible state"))?;
            let errno = errnos.as_ref().and_then(|errnos| errnos.get(row));
            let errno = errno.map_or(0, |errno| errno_of(Some(errno)).raw_os_error() as u16);
            tree.dirs.push(Dir { last: 0, name_end: tree.names.len(), state, errno });
            tree.metas.extend(metas.as_ref().map(|metas| metas.get(row)));
            tree.extras.extend(metas.as_ref().and_then(|metas| metas.extra(row)).map(Extra::into_owned));
            self.spans.push(span);
        }
        Ok(())
    }
}

/// Whether an entry of a directory can be called so.
pub(super) fn is_name(name: &[u8]) -> bool {
    is_path(name) && !name.contains(&b'/') && name != b"." && name != b".."
}

/// Whether an operand can be called so.
pub(super) fn is_path(path: &[u8]) -> bool {
    !path.is_empty() && !path.contains(&0)
}

/// Directories that have been left and whose parent has not been, the last on top.
#[derive(Default)]
struct Subtrees(Vec<Subtree>);

struct Subtree {
    first: i64,
    last: i64,
    parent: Option<i64>,
}

impl Subtrees {
    /// Leaves a directory; whether what is left on top is exactly what is below it, without a gap.
    fn close(&mut self, (first, last): (i64, i64), parent: Option<i64>) -> bool {
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

    /// How many directories are in no other, if all there are follow one another from `first` on. Only if there may be `several`, there
    /// may be another number than one.
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
        let mut subtrees = Subtrees::default();
        let fit = rows.iter().all(|(first, last, parent)| subtrees.close((*first, *last), *parent));
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
            // Neither of two neighbours is below the other: their order is that of their numbers.
            assert_eq!(tops(&swapped), None, "{at}");
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        assert!(is_name(b"a b\n\xff") && is_path(b"/") && is_path(b"../x"));
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(!is_path(b"") && !is_path(b"a\0b"));
    }
}
