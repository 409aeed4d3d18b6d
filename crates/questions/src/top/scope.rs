//! The rows of an inventory that a report counts: the rows of a part of it, and of overlapping
//! operands each entry once.
//!
//! `scan a/b a` records everything below `a/b` in two trees. As in `du a/b a`, it counts in the
//! tree that was scanned first. Directories that the scan skipped (`scan -x` and mount points) have
//! a row of their own and count nowhere, as in `du -x`.

use std::collections::HashSet;

use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory, RowGroup, Table, TextColumn};

/// Device and inode number.
pub(super) type InodeId = (i64, i64);

/// The rows that count.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(super) span: Span,
    /// Subtrees that an earlier tree covers as well. No subtree contains another.
    repeats: Vec<Span>,
    /// Operands that are not directories. Another tree may contain them as well.
    files: HashSet<InodeId>,
}

impl Scope {
    /// Finds the overlaps of the trees of `inventory`. A part of one tree overlaps with nothing.
    pub(super) fn read(inventory: &Inventory, span: Span) -> Result<Self, Error> {
        let (mut repeats, mut files) = (Vec::new(), HashSet::new());
        if span == Span::ALL && inventory.manifest().roots.len() > 1 {
            let found = directories(inventory)?;
            repeats = overlaps(found.occurrences);
            if found.roots < inventory.manifest().roots.len() {
                files = operands(inventory)?;
            }
        }
        Ok(Self { span, repeats, files })
    }

    /// Finds the overlaps of the trees of `inventory`. The trees with the root directories
    /// `left_out` do not count, nor do operands that are not directories.
    pub(crate) fn of_trees(inventory: &Inventory, left_out: &[i64]) -> Result<Self, Error> {
        let is_left_out = |found: &RootOccurrence| left_out.contains(&found.span.first);
        let (lone, rest): (Vec<_>, _) =
            directories(inventory)?.occurrences.into_iter().partition(is_left_out);
        let is_in_lone =
            |found: &RootOccurrence| lone.iter().any(|tree| tree.span.contains(found.span.first));
        let mut repeats = overlaps(rest.into_iter().filter(|found| !is_in_lone(found)).collect());
        repeats.extend(lone.iter().map(|tree| tree.span));
        repeats.sort_unstable_by_key(|repeat| repeat.first);
        Ok(Self { span: Span::TREES, repeats, files: HashSet::new() })
    }

    /// Returns the scope of every row, overlaps included.
    pub(super) fn whole() -> Self {
        Self { span: Span::ALL, repeats: Vec::new(), files: HashSet::new() }
    }

    /// Returns whether a directory and its entries count.
    pub(super) fn contains(&self, dir_id: i64) -> bool {
        self.span.contains(dir_id) && !self.is_repeated(dir_id)
    }

    /// Returns whether an earlier tree covers the directory, or its tree does not count.
    pub(crate) fn is_repeated(&self, dir_id: i64) -> bool {
        let at = self.repeats.partition_point(|repeat| repeat.last < dir_id);
        self.repeats.get(at).is_some_and(|repeat| repeat.contains(dir_id))
    }

    /// Returns whether the directory is the top of a subtree that an earlier tree covers.
    pub(super) fn is_repeat_top(&self, dir_id: i64) -> bool {
        self.repeats.binary_search_by_key(&dir_id, |repeat| repeat.first).is_ok()
    }

    /// Returns whether a file with one name may have two rows.
    pub(super) fn has_operands(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn is_operand(&self, inode: InodeId) -> bool {
        self.files.contains(&inode)
    }

    /// Returns whether every row counts, except further names of files.
    pub(super) fn counts_all(&self) -> bool {
        self.span == Span::ALL && self.repeats.is_empty() && self.files.is_empty()
    }
}

/// A directory that is an operand, found in any of the trees.
#[derive(Clone, Copy, Debug)]
struct RootOccurrence {
    span: Span,
    inode: InodeId,
}

#[derive(Debug, Default)]
struct RootOccurrences {
    occurrences: Vec<RootOccurrence>,
    roots: usize,
}

fn directories(inventory: &Inventory) -> Result<RootOccurrences, Error> {
    let mut found = RootOccurrences::default();
    let mut roots = HashSet::new();
    inventory.each(Table::Dirs, |group| {
        let depth = group.numbers("depth")?;
        found.roots += depth.or_zero().iter().filter(|depth| **depth == 0).count();
        let (dev, ino) = (group.numbers("dev")?, group.numbers("ino")?);
        let inodes = (0..group.rows()).filter(|row| depth.or_zero()[*row] == 0);
        roots.extend(inodes.filter_map(|row| dev.get(row).zip(ino.get(row))));
        Ok(())
    })?;
    if found.roots > 0 {
        inventory.each(Table::Dirs, |group| add(group, &roots, &mut found.occurrences))?;
    }
    Ok(found)
}

fn add(
    group: &RowGroup<'_>,
    roots: &HashSet<InodeId>,
    found: &mut Vec<RootOccurrence>,
) -> parquet::errors::Result<()> {
    let (dev, ino) = (group.numbers("dev")?, group.numbers("ino")?);
    let (pre, post, state) = (group.numbers("pre")?, group.numbers("post")?, group.texts("state")?);
    for row in 0..group.rows() {
        let inode = dev.get(row).zip(ino.get(row)).filter(|inode| roots.contains(inode));
        // The scan skipped the directory, so another tree cannot repeat its entries.
        if let Some(inode) = inode.filter(|_| is_entered(&state, row)) {
            let span = Span { first: pre.or_zero()[row], last: post.or_zero()[row] };
            found.push(RootOccurrence { span, inode });
        }
    }
    Ok(())
}

/// Returns whether the scan entered the directory of a row, given the column `state`.
pub(super) fn is_entered(states: &TextColumn, row: usize) -> bool {
    states.get(row).and_then(DirState::from_word) != Some(DirState::Skipped)
}

/// Returns all occurrences of each directory but the first, in the order of the scan.
fn overlaps(mut occurrences: Vec<RootOccurrence>) -> Vec<Span> {
    occurrences.sort_unstable_by_key(|occurrence| occurrence.span.first);
    let (mut seen, mut repeats) = (HashSet::new(), Vec::<Span>::new());
    for RootOccurrence { span, inode } in occurrences {
        let is_within = repeats.last().is_some_and(|repeat| repeat.contains(span.first));
        if !is_within && !seen.insert(inode) {
            repeats.push(span);
        }
    }
    repeats
}

/// Returns the inodes of the operands that are not directories.
fn operands(inventory: &Inventory) -> Result<HashSet<InodeId>, Error> {
    let mut files = HashSet::new();
    inventory.each(Table::Entries, |group| {
        let dir_id = group.numbers("dir_id")?;
        if dir_id.or_zero().contains(&0) {
            let (dev, ino) = (group.numbers("dev")?, group.numbers("ino")?);
            let operands = (0..group.rows()).filter(|row| dir_id.or_zero()[*row] == 0);
            files.extend(operands.filter_map(|row| dev.get(row).zip(ino.get(row))));
        }
        Ok(())
    })?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_overlapping_trees_counts() {
        let occurrence = |first, last, ino| RootOccurrence { span: Span { first, last }, inode: (1, ino) };
        let repeats = |all: &[RootOccurrence]| {
            overlaps(all.to_vec()).iter().map(|span| (span.first, span.last)).collect::<Vec<_>>()
        };
        // `a/b a`: 1 and 2 are a/b, 3 is a, 5 and 6 are a/b once more. The row of an outer
        // directory comes last.
        assert_eq!(repeats(&[occurrence(1, 2, 7), occurrence(5, 6, 7), occurrence(3, 6, 8)]), [(5, 6)]);
        // `a a/b a`: the last tree is a single repeat.
        let all =
            [(2, 2, 7), (1, 2, 8), (3, 3, 7), (5, 5, 7), (4, 5, 8)].map(|(f, l, i)| occurrence(f, l, i));
        assert_eq!(repeats(&all), [(3, 3), (4, 5)]);
    }

    #[test]
    fn a_scope_leaves_repeats_out() {
        let repeats = vec![Span { first: 3, last: 4 }, Span { first: 7, last: 7 }];
        let scope = Scope { span: Span::ALL, repeats, files: HashSet::new() };
        assert_eq!((0..9).filter(|id| scope.contains(*id)).collect::<Vec<_>>(), [0, 1, 2, 5, 6, 8]);
        assert_eq!((0..9).filter(|id| scope.is_repeat_top(*id)).collect::<Vec<_>>(), [3, 7]);
    }
}
