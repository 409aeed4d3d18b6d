//! Selects the largest directories and files, by their sums alone.

use parquet::errors::ParquetError;

use crate::top::UsageSum;
use crate::top::dirs::{DirSums, TreesTotal};
use crate::top::files::counted;
use crate::top::largest::Largest;
use crate::top::links::HardLinks;
use crate::top::scope::Scope;
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, Table};

/// The directory has no node, and none of those above it has.
const NONE: u32 = u32::MAX;

/// The row of a node. Of equal sums, directories come first, and a directory before those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKey {
    /// A directory, by number.
    Dir(i64),
    /// The index of a row of `entries`, and the number of its directory.
    File { row: usize, dir_id: i64 },
}

/// A directory or a file that is selected.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelectedNode {
    pub(super) key: NodeKey,
    pub(super) sum: UsageSum,
}

/// The largest directories and files.
pub(super) struct NodeSelection {
    /// The largest node first.
    pub(super) nodes: Vec<SelectedNode>,
    /// The names of inodes that have several.
    pub(super) links: HardLinks,
    /// The number of the parent of each directory; 0 for an operand.
    parents: Vec<u32>,
    /// The node of each directory, or else of the nearest directory above it that has one.
    nearest: Vec<u32>,
}

impl NodeSelection {
    /// Selects up to `count` nodes. Returns the sum of all entries as well.
    pub(super) fn read(
        inventory: &Inventory,
        scope: &Scope,
        count: usize,
    ) -> Result<(Self, UsageSum), Error> {
        let links = HardLinks::read(inventory, scope)?;
        let (mut sums, mut total) = (DirSums::new(&links, Span::ALL), TreesTotal::default());
        let mut parents = vec![0; dir_count(inventory)?.saturating_add(1)];
        let mut largest = Largest::new(count.min(NONE as usize - 1));
        inventory.each(Table::Dirs, |group| {
            let [ids, above] = [group.numbers("dir_id")?, group.numbers("parent_id")?];
            for row in 0..group.rows() {
                set_parent(&mut parents, ids.or_zero()[row], above.get(row))?;
            }
            let rows = sums.rows(group)?;
            total.add(group, &rows, scope)?;
            for dir in rows {
                let id = ids.or_zero()[dir.row];
                if !scope.is_repeated(id) {
                    largest.push(NodeKey::Dir(id), dir.sum);
                }
            }
            Ok(())
        })?;
        let links = links.within(scope);
        read_files(inventory, scope, &links, &mut largest)?;
        let nodes: Vec<_> = largest.sorted().map(|(key, sum)| SelectedNode { key, sum }).collect();
        let nearest = nearest(&nodes, &parents);
        let total = total.finish(inventory, &links, scope)?;
        let selection = Self { nodes, links, parents, nearest };
        selection
            .check()
            .ok_or_else(|| inventory.refused("the sums of its directories contradict one another"))?;
        Ok((selection, total))
    }

    /// Returns the node of the directory, or of the nearest one above it that has a node.
    pub(super) fn nearest(&self, dir_id: i64) -> Option<usize> {
        let node = *self.nearest.get(usize::try_from(dir_id).ok()?)?;
        (node != NONE).then_some(node as usize)
    }

    /// Returns the node of the nearest directory above this one that has a node.
    pub(super) fn above(&self, dir_id: i64) -> Option<usize> {
        self.nearest((*self.parents.get(usize::try_from(dir_id).ok()?)?).into())
    }

    /// Checks that each node comes after its parent: the sum of a directory includes the sums of
    /// all directories below it.
    fn check(&self) -> Option<()> {
        let is_after = |(at, node): (usize, &SelectedNode)| {
            let parent = match node.key {
                NodeKey::Dir(dir_id) => self.above(dir_id),
                NodeKey::File { dir_id, .. } => self.nearest(dir_id),
            };
            parent.is_none_or(|parent| parent < at)
        };
        self.nodes.iter().enumerate().all(is_after).then_some(())
    }
}

/// Returns the number of directories.
fn dir_count(inventory: &Inventory) -> Result<usize, Error> {
    let rows: u64 = inventory.group_rows(Table::Dirs)?.iter().flatten().sum();
    let count = usize::try_from(rows).ok().filter(|count| *count < NONE as usize);
    count.ok_or_else(|| inventory.refused("it has more directories than this program can number"))
}

/// Sets the parent of a directory. Directories are numbered in the order of the walk, so the number
/// of a parent is less.
fn set_parent(parents: &mut [u32], id: i64, parent: Option<i64>) -> parquet::errors::Result<()> {
    let parent = parent.unwrap_or(0);
    let place = usize::try_from(id).ok().and_then(|id| parents.get_mut(id));
    match (place, u32::try_from(parent)) {
        (Some(place), Ok(above)) if parent < id => *place = above,
        _ => return Err(ParquetError::General("its directories contradict one another".to_owned())),
    }
    Ok(())
}

fn read_files(
    inventory: &Inventory,
    scope: &Scope,
    links: &HardLinks,
    largest: &mut Largest<NodeKey>,
) -> Result<(), Error> {
    let (mut first_names, mut start) = (links.first_names(), 0);
    inventory.each(Table::Entries, |group| {
        let rows = counted(group, scope, &mut first_names)?;
        if rows.iter().any(|(_, sum)| largest.admits(sum)) {
            let dir_ids = group.numbers("dir_id")?;
            for (row, sum) in rows {
                largest.push(NodeKey::File { row: start + row, dir_id: dir_ids.or_zero()[row] }, sum);
            }
        }
        start += group.rows();
        Ok(())
    })
}

/// Returns for each directory its node, or else the node of the nearest directory above it.
fn nearest(nodes: &[SelectedNode], parents: &[u32]) -> Vec<u32> {
    let mut nearest = vec![NONE; parents.len()];
    for (at, node) in (0..).zip(nodes) {
        if let NodeKey::Dir(id) = node.key {
            nearest[id as usize] = at;
        }
    }
    for id in 1..parents.len() {
        if nearest[id] == NONE {
            nearest[id] = nearest[parents[id] as usize];
        }
    }
    nearest
}
