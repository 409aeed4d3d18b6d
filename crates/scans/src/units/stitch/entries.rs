//! Writes `entries`: the rows of each root, and between them, where it has left a directory, the
//! rows of the roots that stand for that.

use std::ops::Range;

use super::Stitcher;
use super::plan::{RootIndex, Target};
use super::rows::{EntriesGroup, GroupHead, Tables, distinct};
use fathom_inventory::store::{CopiedGroup, Error, LinkRow};

/// Most rows of a chunk.
const CHUNK_ROWS: usize = 1024;

/// A root whose rows are being written.
struct EntriesFrame {
    at: RootIndex,
    /// The rows that are not written yet.
    rows: Range<u64>,
    /// The directories that it has left and that are not visited yet.
    left: Range<usize>,
    /// The roots that stand for the last one of those that were visited, the last one first.
    targets: Vec<RootIndex>,
}

/// Rows of a unit that are written next, of several roots if nothing is between them: a row group
/// is copied only as a whole.
#[derive(Default)]
struct UnitRows {
    unit: usize,
    rows: Range<u64>,
}

impl Stitcher<'_> {
    /// Writes the rows of all units.
    pub(super) fn entries(&mut self) -> Result<(), Error> {
        let mut tables = Tables::new();
        let mut run = UnitRows::default();
        for target in self.plan.operands.clone() {
            let Target::Root(at) = target else { continue };
            let mut stack = vec![self.entries_frame(at)];
            while let Some(frame) = stack.last_mut() {
                if let Some(at) = frame.targets.pop() {
                    let below = self.entries_frame(at);
                    stack.push(below);
                    continue;
                }
                let unit = frame.at.unit;
                if let Some(next) = frame.left.next() {
                    let group = self.plan.units[unit].left[next];
                    let rows = frame.rows.start..group.row.max(frame.rows.start);
                    frame.rows.start = rows.end;
                    frame.targets = self.plan.roots_of(unit, &group);
                    frame.targets.reverse();
                    self.next_rows(&mut tables, &mut run, UnitRows { unit, rows })?;
                    continue;
                }
                let (rows, at) = (frame.rows.clone(), frame.at);
                self.next_rows(&mut tables, &mut run, UnitRows { unit, rows })?;
                if at.root + 1 == self.plan.units[unit].roots.len() {
                    // Rows of another unit may go on with its next root.
                    if run.unit == unit {
                        self.unit_rows(&mut tables, std::mem::take(&mut run))?;
                    }
                    tables.close(unit);
                }
                stack.pop();
            }
        }
        self.unit_rows(&mut tables, run)
    }

    /// Adds rows to the rows of `run`, which are written first if the new rows do not follow them.
    fn next_rows(
        &mut self,
        tables: &mut Tables<EntriesGroup>,
        run: &mut UnitRows,
        next: UnitRows,
    ) -> Result<(), Error> {
        if next.rows.is_empty() {
            return Ok(());
        }
        if next.unit == run.unit && next.rows.start == run.rows.end {
            run.rows.end = next.rows.end;
            return Ok(());
        }
        self.unit_rows(tables, std::mem::replace(run, next))
    }

    fn entries_frame(&self, at: RootIndex) -> EntriesFrame {
        let unit = &self.plan.units[at.unit];
        let span = unit.roots[at.root].span;
        let (start, end) = unit.left_of(at.root);
        EntriesFrame { at, rows: span.row..span.row + span.rows, left: start..end, targets: Vec::new() }
    }

    fn unit_rows(&mut self, tables: &mut Tables<EntriesGroup>, run: UnitRows) -> Result<(), Error> {
        let UnitRows { unit, mut rows } = run;
        while !rows.is_empty() {
            let directory = self.plan.units[unit].directory.clone();
            // Only the numbers of directories change in a row group that is copied.
            let fits = &mut |devs| self.renumbered(unit, devs).is_none();
            if let Some((head, source, group)) = tables.whole(unit, &directory, &rows, fits)? {
                let dir_ids = self.dir_ids_of_copy(unit, &head);
                let links = head.links.iter().map(|(row, link)| LinkRow { dir_id: dir_ids[*row], ..*link });
                let links = links.collect();
                rows.start += dir_ids.len() as u64;
                self.copy_group(&head, CopiedGroup { source, group, dir_ids, links })?;
                continue;
            }
            let Some((group, within)) = tables.group(unit, &directory, &rows)? else {
                return Err(self.damaged(unit, "it has fewer rows than its list of roots says"));
            };
            rows.start += within.len() as u64;
            self.entry_group(unit, group, within)?;
        }
        Ok(())
    }

    /// Returns the new numbers of the directories of a row group that is copied.
    fn dir_ids_of_copy(&self, unit: usize, head: &GroupHead) -> Vec<i64> {
        let mut known = (0, 0);
        let mut new_id = |id: i64| {
            if id != known.0 {
                known = (id, if id == 0 { 0 } else { self.plan.new_id(unit, id) });
            }
            known.1
        };
        head.ids.or_zero().iter().map(|id| new_id(*id)).collect()
    }

    fn copy_group(&mut self, head: &GroupHead, group: CopiedGroup) -> Result<(), Error> {
        self.batch.owners.extend(head.owners.iter().copied());
        self.totals.entries += group.dir_ids.len() as u64;
        self.batch.copied = Some(group);
        self.send();
        self.check_stop()
    }

    /// Returns the devices of rows with their new numbers; `None` if all have the same.
    fn renumbered(&mut self, unit: usize, devs: Vec<u64>) -> Option<Vec<(u64, u64)>> {
        let host = self.plan.units[unit].host.clone();
        let pairs: Vec<_> = devs.into_iter().map(|dev| (dev, self.plan.devices.number(&host, dev))).collect();
        pairs.iter().any(|(then, now)| then != now).then_some(pairs)
    }

    fn entry_group(&mut self, unit: usize, group: &EntriesGroup, rows: Range<usize>) -> Result<(), Error> {
        let renumbered = self.renumbered(unit, distinct(&group.devs, rows.clone()));
        let ids = group.ids.or_zero();
        let mut start = rows.start;
        while start < rows.end {
            let run =
                ids[start..rows.end].iter().take(CHUNK_ROWS).take_while(|id| **id == ids[start]).count();
            let chunk = group.rows.chunk(start..start + run);
            let mut chunk = chunk.map_err(|error| self.damaged(unit, error))?;
            if let Some(renumbered) = &renumbered {
                chunk.renumber_all(renumbered);
            }
            let id = if ids[start] == 0 { 0 } else { self.plan.new_id(unit, ids[start]) };
            self.batch.rows += run;
            self.batch.text_bytes += chunk.text_bytes();
            self.batch.entries.push((id, Box::new(chunk)));
            self.totals.entries += run as u64;
            start += run;
            self.send_if_full()?;
        }
        Ok(())
    }
}
