//! Selection of the rows of a tree that has to fit into a number of rows: the largest entries below
//! each other, and the rest of a directory in one row behind them. Owns the selection and the
//! order; the caller draws lines, bars and names.
//!
//! The entries come from [`Top`](crate::top::Top) and in its order, in which every entry follows
//! its directory. The rest of a directory is its total minus its shown entries. So it is exact
//! although its entries were not kept, and whatever the reason why they are not shown. The rest
//! gets a row if it is not less than the smallest shown entry, or if there is room.

use std::collections::HashMap;

use crate::options::Measure;
use crate::top::{TopEntry, value};
use crate::totals::Totals;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The indentation level. An operand is at level 0.
    pub level: usize,
    /// Whether this row is the last one at its level below its directory.
    pub is_last: bool,
    /// The content of the row.
    pub content: RowContent,
    /// The totals of the content.
    pub totals: Totals,
}

/// The content of a row. The set is closed: a row stands for one entry, or for the rest of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowContent {
    /// An entry, and the offset in its path at which the name relative to the parent row begins.
    Entry(TopEntry, usize),
    /// The rest of the same directory, or the operands without a row.
    Rest,
}

/// Returns at most `rows_max` rows that show the largest of `entries`, or as few as possible if
/// even one entry needs more.
///
/// `total` is the total of all operands.
///
/// ```
/// use fathom_du::options::Measure;
/// use fathom_du::top::TopEntry;
/// use fathom_du::totals::Totals;
/// use fathom_du::tree::{RowContent, rows};
/// use fathom_walk::FileType;
///
/// let totals = |bytes, inodes| Totals { bytes, inodes, ..Totals::EPOCH };
/// let entry = |path: &[u8], depth, file_type, totals, own| {
///     TopEntry { path: path.to_vec(), operand: 0, depth, file_type, totals, own }
/// };
/// // The directory has two files, of which one is among the largest entries.
/// let entries = [
///     entry(b"a", 0, FileType::Directory, totals(10, 3), totals(0, 1)),
///     entry(b"a/x", 1, FileType::Regular, totals(7, 1), totals(7, 1)),
/// ];
/// let rows = rows(Measure::Usage, &entries, &entries[0].totals, 3);
/// assert_eq!(rows.iter().map(|row| row.level).collect::<Vec<_>>(), [0, 1, 1]);
/// assert_eq!((&rows[2].content, rows[2].totals.bytes), (&RowContent::Rest, 3));
/// ```
#[must_use]
pub fn rows(measure: Measure, entries: &[TopEntry], total: &Totals, rows_max: usize) -> Vec<Row> {
    let parents = parents(entries);
    let plan = |count| RowPlan::new(measure, &entries[..count], &parents, total);
    // More entries need more rows, with one exception: an entry may take over the row of a rest.
    // The binary search may miss such a count.
    let (mut fitting, mut count_max) = (entries.len().min(1), entries.len());
    while fitting < count_max {
        let count = (fitting + count_max).div_ceil(2);
        match plan(count).required_rows() {
            rows if rows <= rows_max => fitting = count,
            _ => count_max = count - 1,
        }
    }
    plan(fitting).rows(rows_max)
}

/// Returns for each entry the index of its parent row: the nearest of its directories that is among
/// the entries.
fn parents(entries: &[TopEntry]) -> Vec<Option<usize>> {
    let mut known = HashMap::new();
    let found = entries.iter().enumerate().map(|(index, entry)| {
        let parent = directories(entry).find_map(|path| known.get(&(entry.operand, path)).copied());
        known.insert((entry.operand, entry.path.as_slice()), index);
        parent
    });
    found.collect()
}

/// Returns the paths of the directories above `entry`, the nearest first, each with and without a
/// trailing slash, because an operand may have one.
fn directories(entry: &TopEntry) -> impl Iterator<Item = &[u8]> {
    let slashes = entry.path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let below = entry.depth > 0;
    slashes.filter(move |_| below).flat_map(|(at, _)| [&entry.path[..at], &entry.path[..=at]])
}

/// The shown entries, and the rest of each directory.
struct RowPlan<'e> {
    measure: Measure,
    entries: &'e [TopEntry],
    parents: &'e [Option<usize>],
    /// One node for each entry, and a last one for the operands together.
    nodes: Vec<RowNode>,
}

struct RowNode {
    rest: Totals,
    /// Whether the rest has a row.
    has_rest_row: bool,
    /// Entries with a row directly below this one, in order.
    children: Vec<usize>,
}

impl<'e> RowPlan<'e> {
    fn new(measure: Measure, entries: &'e [TopEntry], parents: &'e [Option<usize>], total: &Totals) -> Self {
        let left = entries.iter().map(|entry| subtract(&entry.totals, &entry.own)).chain([*total]);
        let nodes = left.map(|left| RowNode { rest: left, has_rest_row: false, children: Vec::new() });
        let mut plan = Self { measure, entries, parents, nodes: nodes.collect() };
        for (index, entry) in entries.iter().enumerate() {
            let node = &mut plan.nodes[parents[index].unwrap_or(entries.len())];
            node.rest = subtract(&node.rest, &entry.totals);
            node.children.push(index);
        }
        plan
    }

    /// Returns the index and the value of each rest that can have a row. A directory without shown
    /// entries has none: its own row shows everything.
    fn rests(&self) -> impl Iterator<Item = (usize, u64)> {
        let nodes = self.nodes.iter().enumerate();
        let rests = nodes.filter(|(_, node)| !node.children.is_empty() && node.rest.inodes > 0);
        rests.map(|(index, node)| (index, value(self.measure, &node.rest)))
    }

    /// Returns the number of rows of the entries and of the rests that must be shown with them.
    fn required_rows(&self) -> usize {
        let least = self.entries.last().map_or(0, |entry| value(self.measure, &entry.totals));
        self.entries.len() + self.rests().filter(|(_, value)| *value >= least).count()
    }

    fn rows(mut self, rows_max: usize) -> Vec<Row> {
        let mut rests: Vec<_> = self.rests().collect();
        rests.sort_by_key(|(_, value)| std::cmp::Reverse(*value));
        rests.truncate(rows_max.saturating_sub(self.entries.len()));
        rests.iter().for_each(|(index, _)| self.nodes[*index].has_rest_row = true);
        self.in_display_order()
    }

    /// Returns the rows depth first. Uses an explicit stack, because trees may be deeper than the
    /// call stack.
    fn in_display_order(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut next = Vec::new();
        self.push_below(self.entries.len(), 0, &mut next);
        while let Some((index, mut row)) = next.pop() {
            let level = row.level + 1;
            if let (Some(index), RowContent::Entry(entry, start)) = (index, &mut row.content) {
                *start = self.name_start(index, entry);
                self.push_below(index, level, &mut next);
            }
            rows.push(row);
        }
        rows
    }

    /// Pushes the rows directly below `index`, so that they are popped in order.
    fn push_below(&self, index: usize, level: usize, next: &mut Vec<(Option<usize>, Row)>) {
        let node = &self.nodes[index];
        let start = next.len();
        if node.has_rest_row {
            next.push((None, Row { level, is_last: false, content: RowContent::Rest, totals: node.rest }));
        }
        next.extend(node.children.iter().rev().map(|&index| {
            let entry = self.entries[index].clone();
            let totals = entry.totals;
            (Some(index), Row { level, is_last: false, content: RowContent::Entry(entry, 0), totals })
        }));
        if let Some((_, row)) = next.get_mut(start) {
            row.is_last = true;
        }
    }

    fn name_start(&self, index: usize, entry: &TopEntry) -> usize {
        let Some(parent) = self.parents[index] else { return 0 };
        let path = &self.entries[parent].path;
        let slash = entry.path.get(path.len()) == Some(&b'/');
        path.len() + usize::from(slash)
    }
}

/// Returns `totals` minus `part`. A difference has no time.
fn subtract(totals: &Totals, part: &Totals) -> Totals {
    Totals {
        bytes: totals.bytes.saturating_sub(part.bytes),
        inodes: totals.inodes.saturating_sub(part.inodes),
        newest: Totals::NONE.newest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Measure;
    use crate::top::Top;
    use crate::top::tests::{show, totals};

    /// Entries in traversal order: path, depth, bytes, inodes; each inode itself is one byte.
    fn drawn(lines: &[(&str, usize, u64, u64)], total: (u64, u64), rows_max: usize) -> Vec<String> {
        let mut top = Top::new(Measure::Usage, rows_max);
        for (path, depth, bytes, inodes) in lines {
            let own = if path.ends_with('/') { totals(1, 1) } else { totals(*bytes, 1) };
            show(&mut top, path, *depth, totals(*bytes, *inodes), own);
        }
        drawn_top(top, total, rows_max)
    }

    fn drawn_top(mut top: Top, total: (u64, u64), rows_max: usize) -> Vec<String> {
        let rows = rows(Measure::Usage, &top.take_sorted(), &totals(total.0, total.1), rows_max);
        rows.iter().map(row).collect()
    }

    fn row(row: &Row) -> String {
        let name = match &row.content {
            RowContent::Rest => format!("{} more", row.totals.inodes),
            RowContent::Entry(entry, start) => String::from_utf8(entry.path[*start..].to_vec()).unwrap(),
        };
        let mark = if row.is_last { '`' } else { '|' };
        format!("{}{mark}{name} {}", " ".repeat(row.level), row.totals.bytes)
    }

    const LINES: [(&str, usize, u64, u64); 5] =
        [("t/a/x", 2, 5, 1), ("t/a/", 1, 12, 4), ("t/b", 1, 8, 1), ("t/c/", 1, 30, 2), ("t/", 0, 60, 9)];

    #[test]
    fn the_largest_come_first_and_the_rest_last() {
        let expected = ["`t 60", " |c 30", " |a 12", "  |x 5", "  `2 more 6", " |b 8", " `1 more 9"];
        assert_eq!(drawn(&LINES, (60, 9), 99), expected);
    }

    #[test]
    fn small_entries_give_way_until_everything_fits() {
        assert_eq!(drawn(&LINES, (60, 9), 6), ["`t 60", " |c 30", " |a 12", " |b 8", " `1 more 9"]);
        assert_eq!(drawn(&LINES, (60, 9), 4), ["`t 60", " |c 30", " |a 12", " `2 more 17"]);
        assert_eq!(drawn(&LINES, (60, 9), 3), ["`t 60", " |c 30", " `6 more 29"]);
        assert_eq!(drawn(&LINES, (60, 9), 2), ["`t 60", " `c 30"]);
        assert_eq!(drawn(&LINES, (60, 9), 1), ["`t 60"]);
    }

    #[test]
    fn a_rest_is_dropped_only_for_larger_entries() {
        let with = |rest: u64| drawn(&[("t/a", 1, 5, 1), ("t/", 0, 6 + rest, 4)], (6 + rest, 4), 2);
        assert_eq!(with(5), ["`t 11"]);
        assert_eq!(with(4), ["`t 10", " `a 5"]);
    }

    #[test]
    fn a_directory_shown_completely_has_no_rest() {
        let lines = [("t/a", 1, 0, 1), ("t/b", 1, 0, 1), ("t/", 0, 1, 3)];
        assert_eq!(drawn(&lines, (1, 3), 9), ["`t 1", " |a 0", " `b 0"]);
        assert_eq!(drawn(&lines, (1, 3), 2), ["`t 1"]);
    }

    #[test]
    fn operands_are_side_by_side_and_those_without_a_row_are_counted() {
        let lines = [("a/x", 1, 2, 1), ("a/", 0, 3, 2), ("b/", 0, 7, 5), ("c", 0, 1, 1)];
        assert_eq!(drawn(&lines, (11, 8), 9), ["|b 7", "|a 3", " `x 2", "`c 1"]);
        assert_eq!(drawn(&lines, (11, 8), 1), ["`b 7"]);
        assert_eq!(drawn(&lines, (18, 9), 2), ["|b 7", "`4 more 11"]);
    }

    #[test]
    fn the_same_directory_below_two_operands_is_two() {
        let lines = [("a/b/c", 1, 2, 1), ("a/b/", 0, 3, 2), ("a/d", 1, 5, 1), ("a/", 0, 6, 2)];
        assert_eq!(drawn(&lines, (9, 4), 9), ["|a 6", " `d 5", "`a/b 3", " `c 2"]);
    }

    #[test]
    fn names_begin_behind_the_slash_of_an_operand_that_ends_in_one() {
        let mut top = Top::new(Measure::Usage, 9);
        for (path, depth) in [("/usr/lib", 2), ("/usr", 1), ("/", 0)] {
            let size = totals(9 - depth as u64, 3 - depth as u64);
            let path = path.as_bytes();
            let line = crate::scan::Line {
                path,
                depth,
                totals: &size,
                own: &totals(1, 1),
                meta: None,
                is_dir: true,
            };
            top.add(&line);
        }
        assert_eq!(drawn_top(top, (9, 3), 9), ["`/ 9", " `usr 8", "  `lib 7"]);
    }

    #[test]
    fn an_entry_whose_directory_is_missing_stands_below_the_next_one_up() {
        let lines = [("t/a/x", 2, 5, 1), ("t/b/y", 2, 4, 1), ("t/b/", 1, 9, 3), ("t/", 0, 23, 9)];
        let expected = ["`t 23", " |b 9", "  |y 4", "  `1 more 4", " |a/x 5", " `4 more 8"];
        assert_eq!(drawn(&lines, (20, 9), 9), expected);
    }

    #[test]
    fn a_chain_of_directories_may_be_very_deep() {
        let names: Vec<String> = (0..3000).map(|depth| "d/".repeat(depth + 1)).collect();
        let mut top = Top::new(Measure::Usage, 3000);
        for (depth, name) in names.iter().enumerate().rev() {
            show(&mut top, name, depth, totals(3000 - depth as u64, 3000 - depth as u64), totals(1, 1));
        }
        let drawn = drawn_top(top, (3000, 3000), 3000);
        assert_eq!((drawn.len(), &*drawn[2999]), (3000, &*format!("{}`d 1", " ".repeat(2999))));
    }

    #[test]
    fn no_entries_have_no_rows() {
        assert_eq!(rows(Measure::Usage, &[], &Totals::NONE, 5), []);
    }
}
