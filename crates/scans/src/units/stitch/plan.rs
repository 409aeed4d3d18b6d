//! The plan of the final pass: the new numbers of the directories of all units.
//!
//! Units form a tree: the root of a unit stands where another unit has left it. The plan visits the
//! roots in the order of the walk, determines how many directories are at and below each, and from
//! that the new number of each of them. Takes some tens of bytes for each root and for each
//! directory that was left.

use std::path::{Path, PathBuf};

use crate::merge::DeviceNumbers;
use crate::scan::RootSpan;
use crate::units::record::{LeftPlace, UnitEnd, UnitRecord};
use fathom_inventory::store::Error;

use std::collections::HashMap;

/// Identifies a root: the index of its unit, and the index of the root in the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RootIndex {
    pub(super) unit: usize,
    pub(super) root: usize,
}

/// The tables that stand for a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Root(RootIndex),
    /// The unit at this index has failed.
    Failed(usize),
    /// No unit has read it.
    Pending,
}

/// The place of a root in the new tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RootPlace {
    pub(super) span: RootSpan,
    /// The number of directories at and below it, in all units.
    pub(super) dirs: i64,
    /// Its new number.
    id: i64,
    /// The new number of the directory after it.
    rest: i64,
    /// The index of its operand.
    pub(super) operand: i32,
    /// Whether it is a slice after the first one of its directory.
    is_later_slice: bool,
}

/// References to one directory that a unit has left: several if it is read in slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftGroup {
    pub(super) id: i64,
    pub(super) row: u64,
    /// The indices of the references.
    pub(super) start: usize,
    pub(super) end: usize,
    dev: u64,
    /// The number of directories at and below it.
    pub(super) dirs: i64,
    /// The number of directories below all that were left before it in the same root.
    shift: i64,
}

/// A unit of the plan.
#[derive(Debug)]
pub(super) struct PlanUnit {
    id: String,
    pub(super) directory: PathBuf,
    pub(super) end: UnitEnd,
    pub(super) host: String,
    pub(super) reason: String,
    pub(super) roots: Vec<RootPlace>,
    pub(super) left: Vec<LeftGroup>,
    /// The number of references to directories. Those after them are to whole roots.
    left_dirs: usize,
    /// The pieces, each with the index of its unit.
    pieces: Vec<(usize, usize, Option<usize>)>,
}

/// The plan.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) units: Vec<PlanUnit>,
    /// The operands, and the tables of each.
    pub(super) operands: Vec<Target>,
    pub(super) devices: Devices,
    /// The number of references that no unit has read.
    pub(super) pending: usize,
}

/// The device numbers of the machines, as numbers of the driver's.
#[derive(Debug, Default)]
pub(super) struct Devices {
    same: HashMap<(String, u64), u64>,
    others: DeviceNumbers,
}

impl Devices {
    /// Returns the number in the new tables.
    pub(super) fn number(&mut self, host: &str, dev: u64) -> u64 {
        if let Some(number) = self.same.get(&(host.to_owned(), dev)) {
            return *number;
        }
        let number = self.others.number(host, dev);
        self.same.insert((host.to_owned(), dev), number);
        number
    }

    /// Records that a machine has `dev` where another one has `known` of the new tables.
    fn is_known_as(&mut self, host: &str, dev: u64, known: u64) {
        self.same.entry((host.to_owned(), dev)).or_insert(known);
    }
}

impl Plan {
    /// Reads the records, from the record of the operands on.
    pub(super) fn read(part: &Path, operands: usize) -> Result<Self, Error> {
        let mut plan = Self::default();
        let records = UnitRecord::read_all(part)?;
        let mut by_range: HashMap<_, _> = records
            .into_iter()
            .map(|record| ((record.unit.parent.clone(), record.unit.start, record.unit.end), record))
            .collect();
        let root = match by_range.remove(&(String::new(), 0, operands)) {
            Some(record) => Some(plan.add(part, record)?),
            None => None,
        };
        let mut next = 0;
        while next < plan.units.len() {
            for piece in 0..plan.units[next].pieces.len() {
                let (start, end, _) = plan.units[next].pieces[piece];
                if let Some(record) = by_range.remove(&(plan.units[next].id.clone(), start, end)) {
                    plan.units[next].pieces[piece].2 = Some(plan.add(part, record)?);
                }
            }
            next += 1;
        }
        let target = |operand| root.map_or(Target::Pending, |root| plan.resolve(root, operand));
        plan.operands = (0..operands).map(target).collect();
        plan.number();
        Ok(plan)
    }

    /// Returns the number of units that have failed.
    pub(super) fn failed(&self) -> usize {
        self.units.iter().filter(|unit| unit.end == UnitEnd::Failed).count()
    }

    fn add(&mut self, part: &Path, record: UnitRecord) -> Result<usize, Error> {
        let is_scanned = record.end == UnitEnd::Scanned;
        let spans = if is_scanned { record.spans(part)? } else { Vec::new() };
        let places = if is_scanned { record.left(part)? } else { Vec::new() };
        let left_dirs = places.iter().take_while(|place| place.id > 0).count();
        self.units.push(PlanUnit {
            id: record.unit.id.clone(),
            directory: record.tables(part),
            end: record.end,
            host: record.host,
            reason: record.reason,
            roots: spans.into_iter().map(|span| RootPlace { span, ..RootPlace::default() }).collect(),
            left: groups(&places[..left_dirs]),
            left_dirs,
            pieces: record.pieces.iter().map(|(start, end)| (*start, *end, None)).collect(),
        });
        Ok(self.units.len() - 1)
    }

    /// Returns the tables of the reference `index` of a unit.
    fn resolve(&self, mut at: usize, mut index: usize) -> Target {
        loop {
            let unit = &self.units[at];
            match unit.end {
                UnitEnd::Failed => return Target::Failed(at),
                UnitEnd::Scanned if index < unit.roots.len() => {
                    return Target::Root(RootIndex { unit: at, root: index });
                }
                // The root was not begun: it is among the references that the unit has left.
                UnitEnd::Scanned => index = unit.left_dirs + (index - unit.roots.len()),
                UnitEnd::Split => {}
            }
            match unit.piece_of(index) {
                Some((Some(next), offset)) => (at, index) = (next, offset),
                _ => return Target::Pending,
            }
        }
    }

    /// Returns the tables of the reference `index` that a unit has left.
    fn left_target(&self, unit: usize, index: usize) -> Target {
        match self.units[unit].piece_of(index) {
            Some((Some(next), offset)) => self.resolve(next, offset),
            _ => Target::Pending,
        }
    }

    /// Returns the roots that stand for a directory that was left.
    pub(super) fn roots_of(&self, unit: usize, group: &LeftGroup) -> Vec<RootIndex> {
        let targets = self.targets(unit, group).into_iter();
        targets.filter_map(|target| if let Target::Root(at) = target { Some(at) } else { None }).collect()
    }

    /// Returns the reason for which units have failed that were to read a directory.
    pub(super) fn failure_of(&self, unit: usize, group: &LeftGroup) -> Option<String> {
        self.targets(unit, group).into_iter().find_map(|target| match target {
            Target::Failed(failed) => Some(self.units[failed].reason.clone()),
            _ => None,
        })
    }

    /// Returns whether another unit has the errors of a directory itself: if it was left, or is a
    /// slice after the first one.
    pub(super) fn is_told_elsewhere(&self, unit: usize, id: i64) -> bool {
        if let Some(group) = self.units[unit].group_of(id) {
            return !self.roots_of(unit, group).is_empty();
        }
        let root = self.units[unit].root_of(id).map(|root| &self.units[unit].roots[root]);
        root.is_some_and(|root| root.is_later_slice && root.span.id == id)
    }

    /// Returns the tables of a directory that was left.
    fn targets(&self, unit: usize, group: &LeftGroup) -> Vec<Target> {
        (group.start..group.end).map(|index| self.left_target(unit, index)).collect()
    }

    /// Determines all numbers: first how many directories are below each root, from the last one
    /// on, then the new numbers from the first one on.
    fn number(&mut self) {
        let order = self.in_order();
        for at in order.iter().rev() {
            let (start, end) = self.units[at.unit].left_of(at.root);
            let mut shift = 0;
            for index in start..end {
                let group = self.units[at.unit].left[index];
                let below = |target: &Target| match target {
                    Target::Root(root) => self.units[root.unit].roots[root.root].dirs - 1,
                    _ => 0,
                };
                let dirs = 1 + self.targets(at.unit, &group).iter().map(below).sum::<i64>();
                let group = &mut self.units[at.unit].left[index];
                (group.dirs, group.shift) = (dirs, shift);
                shift += dirs - 1;
            }
            let root = &mut self.units[at.unit].roots[at.root];
            root.dirs = root.span.dirs + shift;
        }
        self.place_operands();
        for at in order {
            self.place_children(at);
        }
    }

    fn place_operands(&mut self) {
        let mut id = 1;
        for (operand, target) in self.operands.clone().into_iter().enumerate() {
            match target {
                Target::Root(at) => {
                    let host = self.units[at.unit].host.clone();
                    let root = &mut self.units[at.unit].roots[at.root];
                    (root.id, root.rest, root.operand) = (id, id + 1, operand as i32);
                    id += root.dirs;
                    self.devices.number(&host, root.span.dev);
                }
                _ => self.pending += 1,
            }
        }
    }

    fn place_children(&mut self, at: RootIndex) {
        let (start, end) = self.units[at.unit].left_of(at.root);
        let operand = self.units[at.unit].roots[at.root].operand;
        for index in start..end {
            let group = self.units[at.unit].left[index];
            let id = self.new_id(at.unit, group.id);
            let known = self.devices.number(&self.units[at.unit].host.clone(), group.dev);
            let (mut rest, mut is_later_slice) = (id + 1, false);
            for target in self.targets(at.unit, &group) {
                let Target::Root(child) = target else {
                    self.pending += usize::from(target == Target::Pending);
                    continue;
                };
                let host = self.units[child.unit].host.clone();
                let root = &mut self.units[child.unit].roots[child.root];
                (root.id, root.rest, root.operand) = (id, rest, operand);
                root.is_later_slice = std::mem::replace(&mut is_later_slice, true);
                rest += root.dirs - 1;
                if root.span.dev != 0 {
                    self.devices.is_known_as(&host, root.span.dev, known);
                }
            }
        }
    }

    /// Returns all roots in an order in which each comes after the one that has left it.
    fn in_order(&self) -> Vec<RootIndex> {
        let root = |target: &Target| if let Target::Root(at) = target { Some(*at) } else { None };
        let mut order: Vec<RootIndex> = self.operands.iter().filter_map(root).collect();
        let mut next = 0;
        while let Some(at) = order.get(next).copied() {
            let (start, end) = self.units[at.unit].left_of(at.root);
            for group in &self.units[at.unit].left[start..end] {
                order.extend(self.roots_of(at.unit, group));
            }
            next += 1;
        }
        order
    }

    /// Returns the new number of a directory of a unit.
    pub(super) fn new_id(&self, unit: usize, id: i64) -> i64 {
        let (unit, root) = (&self.units[unit], self.units[unit].root_of(id));
        let Some(root) = root else { return 0 };
        let place = &unit.roots[root];
        if id == place.span.id {
            return place.id;
        }
        place.rest + (id - place.span.id - 1) + unit.shift_before(id, root)
    }

    /// Returns the new number of the last directory below one whose last directory was `last`.
    pub(super) fn new_last(&self, unit: usize, last: i64) -> i64 {
        let below = self.units[unit].group_of(last).map_or(0, |group| group.dirs - 1);
        self.new_id(unit, last) + below
    }
}

impl PlanUnit {
    fn piece_of(&self, index: usize) -> Option<(Option<usize>, usize)> {
        let at = self.pieces.partition_point(|(_, end, _)| *end <= index);
        let (start, _, unit) = self.pieces.get(at)?;
        Some((*unit, index.checked_sub(*start)?))
    }

    /// Returns the index of the root that has the directory `id`.
    pub(super) fn root_of(&self, id: i64) -> Option<usize> {
        let after = self.roots.partition_point(|root| root.span.id <= id);
        let root = self.roots[..after].iter().rposition(|root| root.span.dirs > 0)?;
        (id < self.roots[root].span.id + self.roots[root].span.dirs).then_some(root)
    }

    /// Returns the range of what was left in a root.
    pub(super) fn left_of(&self, root: usize) -> (usize, usize) {
        let span = self.roots[root].span;
        let before = |id: i64| self.left.partition_point(|group| group.id < id);
        (before(span.id), before(span.id + span.dirs))
    }

    /// Returns what was left under the number `id`.
    pub(super) fn group_of(&self, id: i64) -> Option<&LeftGroup> {
        let at = self.left.binary_search_by_key(&id, |group| group.id).ok()?;
        self.left.get(at)
    }

    /// Returns the number of directories of other units before the directory `id` of a root.
    fn shift_before(&self, id: i64, root: usize) -> i64 {
        let after = self.left.partition_point(|group| group.id < id);
        let last = self.left[..after].last().filter(|group| group.id >= self.roots[root].span.id);
        last.map_or(0, |group| group.shift + group.dirs - 1)
    }
}

fn groups(places: &[LeftPlace]) -> Vec<LeftGroup> {
    let mut start = 0;
    let same = places.chunk_by(|left, right| left.id == right.id);
    same.map(|group| {
        let LeftPlace { id, row, dev } = group[0];
        start += group.len();
        LeftGroup { id, row, dev, start: start - group.len(), end: start, dirs: 1, shift: 0 }
    })
    .collect()
}
