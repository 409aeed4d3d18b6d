//! Rows of a tree that has to fit into so many of them: the largest entries below each other, and what is left of a
//! directory in one row behind them. Owns which entries are shown and in which order; lines, bars and names as
//! they look are the caller's.
//!
//! The entries come from [`Top`](crate::top::Top) and in its order, in which every entry stands behind its
//! directory. What is left of a directory is its total less what is shown of it. So it is exact although nothing of
//! it was kept, whatever the reason why it is not shown. It gets a row as an entry would, because it is not less
//! than the least entry that has one, or because there is room.

use std::collections::HashMap;

use crate::options::Measure;
use crate::top::{Entry, value};
use crate::totals::Totals;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// How far it stands in: an operand is at 0.
    pub level: usize,
    /// Whether no row at its level below the same directory follows.
    pub is_last: bool,
    /// What is shown.
    pub what: What,
    /// What that comes to.
    pub totals: Totals,
}

/// What a row shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// An entry, and where in its path the name begins that it has below the row above.
    Entry(Entry, usize),
    /// What else is below the same directory, or the operands there is no row for.
    More,
}

/// At most `rows_max` rows that show `entries`, or else as few as there can be.
///
/// `total` is what all operands come to.
#[must_use]
pub fn rows(measure: Measure, entries: &[Entry], total: &Totals, rows_max: usize) -> Vec<Row> {
    let above = above(entries);
    let plan = |count| Plan::new(measure, &entries[..count], &above, total);
    // More entries take more rows, but for the odd one that takes the row of what was left: such a count may be missed.
    let (mut fitting, mut count_max) = (entries.len().min(1), entries.len());
    while fitting < count_max {
        let count = (fitting + count_max).div_ceil(2);
        match plan(count).rows_min() {
            rows if rows <= rows_max => fitting = count,
            _ => count_max = count - 1,
        }
    }
    plan(fitting).rows(rows_max)
}

/// For each entry the one whose row it stands below: the nearest directory above it that is there.
fn above(entries: &[Entry]) -> Vec<Option<usize>> {
    let mut known = HashMap::new();
    let found = entries.iter().enumerate().map(|(index, entry)| {
        let found = directories(entry).find_map(|path| known.get(&(entry.operand, path)).copied());
        known.insert((entry.operand, entry.path.as_slice()), index);
        found
    });
    found.collect()
}

/// Paths of the directories above `entry`, the nearest first, with and without a slash at the end: an operand may have one.
fn directories(entry: &Entry) -> impl Iterator<Item = &[u8]> {
    let slashes = entry.path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let below = entry.depth > 0;
    slashes.filter(move |_| below).flat_map(|(at, _)| [&entry.path[..at], &entry.path[..=at]])
}

/// Which entries are shown, and of which directory how much is not.
struct Plan<'e> {
    measure: Measure,
    entries: &'e [Entry],
    above: &'e [Option<usize>],
    /// For each entry and, at the end, for the operands together.
    shares: Vec<Share>,
}

struct Share {
    left: Totals,
    /// Whether what is left has a row.
    has_more: bool,
    /// Entries that have a row, in order.
    shown: Vec<usize>,
}

impl<'e> Plan<'e> {
    fn new(measure: Measure, entries: &'e [Entry], above: &'e [Option<usize>], total: &Totals) -> Self {
        let left = entries.iter().map(|entry| less(&entry.totals, &entry.own)).chain([*total]);
        let shares = left.map(|left| Share { left, has_more: false, shown: Vec::new() });
        let mut plan = Self { measure, entries, above, shares: shares.collect() };
        for (index, entry) in entries.iter().enumerate() {
            let share = &mut plan.shares[above[index].unwrap_or(entries.len())];
            share.left = less(&share.left, &entry.totals);
            share.shown.push(index);
        }
        plan
    }

    /// What could have a row besides the entries, and what it comes to. Not what is in a directory of which nothing
    /// is shown: that one's own row says it.
    fn rests(&self) -> impl Iterator<Item = (usize, u64)> {
        let shares = self.shares.iter().enumerate();
        let rests = shares.filter(|(_, share)| !share.shown.is_empty() && share.left.inodes > 0);
        rests.map(|(index, share)| (index, value(self.measure, &share.left)))
    }

    /// Rows of the entries and of what is left that has to be shown with them.
    fn rows_min(&self) -> usize {
        let least = self.entries.last().map_or(0, |entry| value(self.measure, &entry.totals));
        self.entries.len() + self.rests().filter(|(_, value)| *value >= least).count()
    }

    fn rows(mut self, rows_max: usize) -> Vec<Row> {
        let mut rests: Vec<_> = self.rests().collect();
        rests.sort_by_key(|(_, value)| std::cmp::Reverse(*value));
        rests.truncate(rows_max.saturating_sub(self.entries.len()));
        rests.iter().for_each(|(index, _)| self.shares[*index].has_more = true);
        self.in_order()
    }

    /// Depth first, with a stack of its own: trees may be deeper than the call stack.
    fn in_order(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut next = Vec::new();
        self.push_below(self.entries.len(), 0, &mut next);
        while let Some((index, mut row)) = next.pop() {
            let level = row.level + 1;
            if let (Some(index), What::Entry(entry, start)) = (index, &mut row.what) {
                *start = self.name_start(index, entry);
                self.push_below(index, level, &mut next);
            }
            rows.push(row);
        }
        rows
    }

    /// Puts what is directly below `index` on the stack, to be taken from it in order.
    fn push_below(&self, index: usize, level: usize, next: &mut Vec<(Option<usize>, Row)>) {
        let share = &self.shares[index];
        let start = next.len();
        if share.has_more {
            next.push((None, Row { level, is_last: false, what: What::More, totals: share.left }));
        }
        next.extend(share.shown.iter().rev().map(|&index| {
            let entry = self.entries[index].clone();
            let totals = entry.totals;
            (Some(index), Row { level, is_last: false, what: What::Entry(entry, 0), totals })
        }));
        if let Some((_, row)) = next.get_mut(start) {
            row.is_last = true;
        }
    }

    fn name_start(&self, index: usize, entry: &Entry) -> usize {
        let Some(above) = self.above[index] else { return 0 };
        let path = &self.entries[above].path;
        let slash = entry.path.get(path.len()) == Some(&b'/');
        path.len() + usize::from(slash)
    }
}

/// `totals` without `part`; no time, which a difference does not have.
fn less(totals: &Totals, part: &Totals) -> Totals {
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
        let name = match &row.what {
            What::More => format!("{} more", row.totals.inodes),
            What::Entry(entry, start) => String::from_utf8(entry.path[*start..].to_vec()).unwrap(),
        };
        let mark = if row.is_last { '`' } else { '|' };
        format!("{}{mark}{name} {}", " ".repeat(row.level), row.totals.bytes)
    }

    const LINES: [(&str, usize, u64, u64); 5] =
        [("t/a/x", 2, 5, 1), ("t/a/", 1, 12, 4), ("t/b", 1, 8, 1), ("t/c/", 1, 30, 2), ("t/", 0, 60, 9)];

    #[test]
    fn the_largest_first_and_what_is_left_last() {
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
    fn what_is_left_gives_way_only_to_what_is_more() {
        let with = |rest: u64| drawn(&[("t/a", 1, 5, 1), ("t/", 0, 6 + rest, 4)], (6 + rest, 4), 2);
        assert_eq!(with(5), ["`t 11"]);
        assert_eq!(with(4), ["`t 10", " `a 5"]);
    }

    #[test]
    fn what_is_all_shown_leaves_nothing() {
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
    fn nothing_has_no_rows() {
        assert_eq!(rows(Measure::Usage, &[], &Totals::NONE, 5), []);
    }
}
