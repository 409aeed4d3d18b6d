//! Writes `dirs`: the rows of each root, and in the place of a directory that it has left the rows
//! of the roots that stand for that. The sums of the directories above change by the difference.

use std::ops::Range;

use fathom_walk::Errno;

use super::Stitcher;
use super::plan::{LeftGroup, RootIndex, Target};
use super::rows::Tables;
use fathom_inventory::store::{
    DirColumns, DirRow, DirRowRead, DirState, EntryRow, EntryTotals, Error, stored_path,
};

/// The place of a directory in the new table.
#[derive(Clone, Debug)]
struct DirPlace {
    /// Its number in its unit.
    id: i64,
    new_id: i64,
    parent: Option<i64>,
    last: i64,
    depth: i32,
    name: Vec<u8>,
    path: Option<Vec<u8>>,
}

/// The rest of the row of a directory.
#[derive(Clone, Debug)]
struct DirValues {
    meta: Option<EntryRow>,
    own: EntryTotals,
    below: EntryTotals,
    scanned: i64,
    state: DirState,
    errno: Option<i32>,
}

/// A directory that a unit has left.
struct LeftDirRow {
    place: DirPlace,
    /// The row that its unit has.
    values: DirValues,
    /// The roots that stand for it and are not written yet, the last one first.
    targets: Vec<RootIndex>,
    /// The number of references to which no root belongs.
    missing: usize,
    /// The reason why a unit has failed.
    failure: Option<String>,
    /// The sum of the rows of the roots that are written.
    sum: Option<DirValues>,
}

/// A root whose rows are being written.
struct DirsFrame {
    at: RootIndex,
    /// The rows that are not written yet.
    rows: Range<u64>,
    depth: i32,
    /// Whether it stands for a directory of another unit, which writes its row.
    is_left: bool,
    /// Its row, if it is left.
    values: Option<DirValues>,
    open: Option<LeftDirRow>,
    /// The differences that directories above have to add, with the number of the directory that
    /// each is from.
    differences: Vec<(i64, EntryTotals)>,
}

impl Stitcher<'_> {
    /// Writes the rows of all units.
    pub(super) fn dirs(&mut self) -> Result<(), Error> {
        let mut tables = Tables::<DirColumns>::new();
        for target in self.plan.operands.clone() {
            let Target::Root(at) = target else { continue };
            let mut stack = vec![self.dirs_frame(at, None)];
            while let Some(mut frame) = stack.pop() {
                match &mut frame.open {
                    Some(left) => match left.targets.pop() {
                        Some(at) => {
                            let below = self.dirs_frame(at, Some(left.place.depth));
                            stack.push(frame);
                            stack.push(below);
                        }
                        None => {
                            self.close_left(&mut frame)?;
                            stack.push(frame);
                        }
                    },
                    None if !frame.rows.is_empty() => {
                        self.dir_rows(&mut tables, &mut frame)?;
                        stack.push(frame);
                    }
                    None => self.end_root(&mut tables, frame, stack.last_mut()),
                }
            }
        }
        Ok(())
    }

    fn dirs_frame(&self, at: RootIndex, depth: Option<i32>) -> DirsFrame {
        let span = self.plan.units[at.unit].roots[at.root].span;
        // The rows of a root are consecutive, and directories are numbered from 1 on.
        let start = (span.id - 1).cast_unsigned();
        DirsFrame {
            at,
            rows: start..start + span.dirs.cast_unsigned(),
            depth: depth.unwrap_or(0),
            is_left: depth.is_some(),
            values: None,
            open: None,
            differences: Vec::new(),
        }
    }

    /// Ends a root, and adds its sums to the sums of the directory that it stands for.
    fn end_root(&self, tables: &mut Tables<DirColumns>, frame: DirsFrame, above: Option<&mut DirsFrame>) {
        if frame.at.root + 1 == self.plan.units[frame.at.unit].roots.len() {
            tables.close(frame.at.unit);
        }
        if let (Some(values), Some(left)) = (frame.values, above.and_then(|above| above.open.as_mut())) {
            match &mut left.sum {
                Some(sum) => sum.add_slice(&values),
                None => left.sum = Some(values),
            }
        }
    }

    /// Writes rows up to the next directory that was left, which is then open, or to the end.
    fn dir_rows(&mut self, tables: &mut Tables<DirColumns>, frame: &mut DirsFrame) -> Result<(), Error> {
        let unit = frame.at.unit;
        let directory = self.plan.units[unit].directory.clone();
        let Some((columns, within)) = tables.group(unit, &directory, &frame.rows)? else {
            return Err(self.damaged(unit, "it has fewer directories than its list of roots says"));
        };
        for row in within {
            frame.rows.start += 1;
            let row = columns.row(row).map_err(|error| self.damaged(unit, error))?;
            let place = self.place(frame, &row);
            let values = self.values(unit, &row);
            if let Some(group) = self.plan.units[unit].group_of(row.id).copied() {
                frame.open = Some(self.open_left(unit, place, values, &group));
                return Ok(());
            }
            self.end_dir(frame, &place, values, EntryTotals::default())?;
        }
        Ok(())
    }

    fn place(&self, frame: &DirsFrame, row: &DirRowRead<'_>) -> DirPlace {
        let unit = frame.at.unit;
        DirPlace {
            id: row.id,
            new_id: self.plan.new_id(unit, row.id),
            parent: row.parent.map(|parent| self.plan.new_id(unit, parent)),
            last: self.plan.new_last(unit, row.last),
            depth: row.depth.saturating_add(frame.depth),
            name: row.name.to_vec(),
            path: row.path.map(<[u8]>::to_vec),
        }
    }

    fn values(&mut self, unit: usize, row: &DirRowRead<'_>) -> DirValues {
        let mut meta = row.meta;
        if let Some(meta) = &mut meta {
            meta.dev = self.plan.devices.number(&self.plan.units[unit].host, meta.dev);
        }
        DirValues {
            meta,
            own: row.own,
            below: row.below,
            scanned: row.scanned,
            state: row.state,
            errno: row.errno,
        }
    }

    fn open_left(&self, unit: usize, place: DirPlace, values: DirValues, group: &LeftGroup) -> LeftDirRow {
        let mut targets = self.plan.roots_of(unit, group);
        targets.reverse();
        let missing = group.end - group.start - targets.len();
        LeftDirRow { place, values, targets, missing, failure: self.plan.failure_of(unit, group), sum: None }
    }

    /// Ends a directory that was left, once everything that stands for it is written.
    fn close_left(&mut self, frame: &mut DirsFrame) -> Result<(), Error> {
        let Some(left) = frame.open.take() else { return Ok(()) };
        let recorded = left.values.below;
        let is_unread = left.sum.is_none();
        let mut values = left.sum.unwrap_or(left.values);
        if left.missing > 0 {
            values.state = DirState::Partial;
        }
        if let Some(reason) = &left.failure {
            if is_unread {
                values.state = DirState::Failed;
            }
            values.errno = Some(Errno::IO.raw_os_error());
            self.failed_dir(left.place.new_id, left.place.path.as_deref(), reason);
        }
        let difference = difference(&values.below, &recorded);
        self.end_dir(frame, &left.place, values, difference)
    }

    /// Writes the row of a directory whose sums differ by `more` from those that its unit has
    /// counted, and by what differs below it. The row of a root that is left is kept.
    fn end_dir(
        &mut self,
        frame: &mut DirsFrame,
        place: &DirPlace,
        mut values: DirValues,
        more: EntryTotals,
    ) -> Result<(), Error> {
        let mut below = EntryTotals::default();
        while let Some((_, one)) = frame.differences.pop_if(|(id, _)| *id > place.id) {
            below = plus(&below, &one);
        }
        values.below = plus(&values.below, &below);
        let all = plus(&below, &more);
        if all != EntryTotals::default() {
            frame.differences.push((place.id, all));
        }
        let root = &self.plan.units[frame.at.unit].roots[frame.at.root];
        if frame.is_left && place.id == root.span.id {
            frame.values = Some(values);
            return Ok(());
        }
        let operand = root.operand;
        self.write_dir(place, &values, operand)
    }

    fn write_dir(&mut self, place: &DirPlace, values: &DirValues, root: i32) -> Result<(), Error> {
        self.totals.completeness.count(values.state);
        self.totals.entries += 1;
        if let Some(meta) = &values.meta {
            self.batch.owners.insert((meta.uid, meta.gid));
        }
        self.batch.dirs.push(&DirRow {
            id: place.new_id,
            parent: place.parent,
            last: place.last,
            root,
            depth: place.depth,
            name: &place.name,
            path: place.path.as_deref().and_then(stored_path),
            meta: values.meta.as_ref(),
            optional_values: None,
            own: &values.own,
            below: &values.below,
            scanned: values.scanned,
            state: values.state,
            errno: values.errno,
        });
        self.send_if_full()
    }
}

impl DirValues {
    /// Adds the row of another slice of the same directory.
    fn add_slice(&mut self, slice: &Self) {
        self.own.add(&slice.own);
        let mut below = slice.below;
        // Each slice has counted the directory itself.
        below.blocks = below.blocks.wrapping_sub(slice.meta.map_or(0, |meta| meta.blocks));
        self.below.add(&below);
        if self.state == DirState::Complete {
            (self.state, self.errno) = (slice.state, slice.errno);
        }
    }
}

/// Returns the sums that `counted` lacks, modulo 2^64.
fn difference(sums: &EntryTotals, counted: &EntryTotals) -> EntryTotals {
    EntryTotals {
        files: sums.files.wrapping_sub(counted.files),
        dirs: sums.dirs.wrapping_sub(counted.dirs),
        others: sums.others.wrapping_sub(counted.others),
        size: sums.size.wrapping_sub(counted.size),
        blocks: sums.blocks.wrapping_sub(counted.blocks),
        max_mtime: sums.max_mtime,
        max_ctime: sums.max_ctime,
    }
}

/// Adds a difference.
fn plus(sums: &EntryTotals, difference: &EntryTotals) -> EntryTotals {
    EntryTotals {
        files: sums.files.wrapping_add(difference.files),
        dirs: sums.dirs.wrapping_add(difference.dirs),
        others: sums.others.wrapping_add(difference.others),
        size: sums.size.wrapping_add(difference.size),
        blocks: sums.blocks.wrapping_add(difference.blocks),
        max_mtime: sums.max_mtime.max(difference.max_mtime),
        max_ctime: sums.max_ctime.max(difference.max_ctime),
    }
}
