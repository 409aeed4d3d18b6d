//! The rows of an inventory that a report counts: one part of it, and of operands that overlap each
//! entry once.
//!
//! `scan a/b a` has everything below `a/b` in two trees. As in `du a/b a`, the tree that was
//! scanned first has it. Directories that the scan passed over (`scan -x` and mount points) have a
//! row of their own, and count nowhere, as in `du -x`.

use std::collections::HashSet;

use super::below::Span;
use crate::store::{Error, Group, Inventory, State, Table, Texts};

/// Device and inode number.
pub(super) type Inode = (i64, i64);

/// The rows that count.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(super) span: Span,
    /// Subtrees that an earlier tree has, by their numbers; none is in another.
    repeats: Vec<Span>,
    /// Operands that are no directories: another tree may have them as well.
    files: HashSet<Inode>,
}

impl Scope {
    /// Reads which trees of `inventory` overlap. A part of one tree overlaps with nothing.
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

    /// Reads which trees of `inventory` overlap. The trees with the root directories `left_out`, and
    /// operands that are no directories, do not count.
    pub(crate) fn of_trees(inventory: &Inventory, left_out: &[i64]) -> Result<Self, Error> {
        let is_left_out = |found: &Occurrence| left_out.contains(&found.span.first);
        let (lone, rest): (Vec<_>, _) =
            directories(inventory)?.occurrences.into_iter().partition(is_left_out);
        let is_in_lone = |found: &Occurrence| lone.iter().any(|tree| tree.span.has(found.span.first));
        let mut repeats = overlaps(rest.into_iter().filter(|found| !is_in_lone(found)).collect());
        repeats.extend(lone.iter().map(|tree| tree.span));
        repeats.sort_unstable_by_key(|repeat| repeat.first);
        Ok(Self { span: Span::TREES, repeats, files: HashSet::new() })
    }

    /// Every row, overlaps included.
    pub(super) fn whole() -> Self {
        Self { span: Span::ALL, repeats: Vec::new(), files: HashSet::new() }
    }

    /// Whether what is in this directory, or the directory itself, counts.
    pub(super) fn has(&self, dir_id: i64) -> bool {
        self.span.has(dir_id) && !self.is_repeated(dir_id)
    }

    /// Whether an earlier tree has this directory, or it is in a tree that does not count.
    pub(crate) fn is_repeated(&self, dir_id: i64) -> bool {
        let at = self.repeats.partition_point(|repeat| repeat.last < dir_id);
        self.repeats.get(at).is_some_and(|repeat| repeat.has(dir_id))
    }

    /// Whether this directory is the first of a subtree that an earlier tree has.
    pub(super) fn begins_repeat(&self, dir_id: i64) -> bool {
        self.repeats.binary_search_by_key(&dir_id, |repeat| repeat.first).is_ok()
    }

    /// Whether a file that has one name may have two rows.
    pub(super) fn has_operands(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn is_operand(&self, inode: Inode) -> bool {
        self.files.contains(&inode)
    }

    /// Whether every row counts, but for further names of files.
    pub(super) fn is_everything(&self) -> bool {
        self.span == Span::ALL && self.repeats.is_empty() && self.files.is_empty()
    }
}

/// A directory that is an operand, in any of the trees.
#[derive(Clone, Copy, Debug)]
struct Occurrence {
    span: Span,
    inode: Inode,
}

#[derive(Debug, Default)]
struct Found {
    occurrences: Vec<Occurrence>,
    roots: usize,
}

fn directories(inventory: &Inventory) -> Result<Found, Error> {
    let mut found = Found::default();
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
    group: &Group<'_>,
    roots: &HashSet<Inode>,
    found: &mut Vec<Occurrence>,
) -> parquet::errors::Result<()> {
    let (dev, ino) = (group.numbers("dev")?, group.numbers("ino")?);
    let (pre, post, state) = (group.numbers("pre")?, group.numbers("post")?, group.texts("state")?);
    for row in 0..group.rows() {
        let inode = dev.get(row).zip(ino.get(row)).filter(|inode| roots.contains(inode));
        // A directory that the scan passed over holds nothing that another tree could repeat.
        if let Some(inode) = inode.filter(|_| is_entered(&state, row)) {
            let span = Span { first: pre.or_zero()[row], last: post.or_zero()[row] };
            found.push(Occurrence { span, inode });
        }
    }
    Ok(())
}

/// Whether the scan entered the directory of a row, given the column `state`.
pub(super) fn is_entered(states: &Texts, row: usize) -> bool {
    states.get(row).and_then(State::from_word) != Some(State::Skipped)
}

/// All but the first occurrence of each directory, in the order of the scan.
fn overlaps(mut occurrences: Vec<Occurrence>) -> Vec<Span> {
    occurrences.sort_unstable_by_key(|occurrence| occurrence.span.first);
    let (mut met, mut repeats) = (HashSet::new(), Vec::<Span>::new());
    for Occurrence { span, inode } in occurrences {
        let is_within = repeats.last().is_some_and(|repeat| repeat.has(span.first));
        if !is_within && !met.insert(inode) {
            repeats.push(span);
        }
    }
    repeats
}

/// Inodes of the operands that are no directories.
fn operands(inventory: &Inventory) -> Result<HashSet<Inode>, Error> {
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
        let occurrence = |first, last, ino| Occurrence { span: Span { first, last }, inode: (1, ino) };
        let repeats = |all: &[Occurrence]| {
            overlaps(all.to_vec()).iter().map(|span| (span.first, span.last)).collect::<Vec<_>>()
        };
        // `a/b a`: 1 and 2 are a/b, 3 is a, 5 and 6 are a/b once more. Rows of an outer directory
        // come last.
        assert_eq!(repeats(&[occurrence(1, 2, 7), occurrence(5, 6, 7), occurrence(3, 6, 8)]), [(5, 6)]);
        // `a a/b a`: the last tree is one repeat, whatever is in it.
        let all =
            [(2, 2, 7), (1, 2, 8), (3, 3, 7), (5, 5, 7), (4, 5, 8)].map(|(f, l, i)| occurrence(f, l, i));
        assert_eq!(repeats(&all), [(3, 3), (4, 5)]);
    }

    #[test]
    fn a_scope_leaves_repeats_out() {
        let repeats = vec![Span { first: 3, last: 4 }, Span { first: 7, last: 7 }];
        let scope = Scope { span: Span::ALL, repeats, files: HashSet::new() };
        assert_eq!((0..9).filter(|id| scope.has(*id)).collect::<Vec<_>>(), [0, 1, 2, 5, 6, 8]);
        assert_eq!((0..9).filter(|id| scope.begins_repeat(*id)).collect::<Vec<_>>(), [3, 7]);
    }
}
