//! The largest directories and files of an inventory, as one tree of bounded size.
//!
//! The nodes are the entries with the largest sums, so the tree has the parent of each of its
//! nodes. The entries without a node are counted in the sums of the directories above them. Memory
//! takes eight bytes for each directory, and is otherwise bounded by the number of nodes.

mod listing;
mod mix;
mod select;

use std::collections::HashMap;

use super::UsageSum;
use super::files::{CountedName, counted_names};
use super::groups::age_group;
use super::scope::Scope;
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory, NumberColumn, RowGroup, Table, TextColumn};
use mix::MixTable;
use select::{NodeKey, NodeSelection, SelectedNode};

pub use listing::{DirListing, InvalidCursor, ListedEntry, ListingCursor, list};
pub use mix::EntryMix;

/// The most kinds of files.
pub const KINDS_MAX: usize = 16;

/// The properties of a file that decide its kind.
#[derive(Clone, Copy, Debug)]
pub struct FileTraits<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The extension, in lower case.
    pub extension: Option<&'a [u8]>,
    /// The type and the permission bits, as in `st_mode`, if they are known.
    pub mode: Option<u32>,
}

/// The options of an outline.
pub struct OutlineOptions<'a> {
    /// The most nodes.
    pub nodes_max: usize,
    /// The most bytes that all nodes take by the measure of `cost`.
    pub bytes_max: usize,
    /// Returns the bytes that a node takes in the output. The properties of directories are not
    /// known by then.
    pub cost: &'a dyn Fn(&OutlineNode) -> usize,
    /// Returns the kind of a file, below [`KINDS_MAX`].
    pub kind: &'a dyn Fn(&FileTraits<'_>) -> u8,
    /// The current time, in microseconds since 1970.
    pub now: i64,
}

/// A directory or a file.
#[derive(Clone, Debug)]
pub struct OutlineNode {
    /// The index of the directory that it is in; `None` for an operand of the scan.
    pub parent: Option<usize>,
    /// The name; the path of an operand.
    pub name: Vec<u8>,
    /// The sum of everything at and below it.
    pub sum: UsageSum,
    /// The number of the directory, or of the directory that the file is in.
    pub dir_id: i64,
    /// The state of a directory; `None` for a file.
    pub state: Option<DirState>,
    /// The latest modification of the file, or of anything below the directory, in microseconds
    /// since 1970.
    pub mtime: Option<i64>,
    /// The properties of the file; of a directory, those that most bytes of the entries without a
    /// node have.
    pub mix: EntryMix,
}

/// The largest directories and files.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The largest node first. A parent comes before its entries.
    pub nodes: Vec<OutlineNode>,
    /// The sum of all entries.
    pub total: UsageSum,
    /// The sum of the entries that are not directories and that files like `.gitignore` exclude;
    /// `None` if the inventory does not tell.
    pub ignored: Option<UsageSum>,
    /// The sums of the entries that are not directories, by kind.
    pub kinds: [UsageSum; KINDS_MAX],
}

/// Reads the outline of an inventory.
///
/// # Errors
/// If the inventory is damaged.
///
/// ```
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::top::outline::{OutlineOptions, outline};
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let options = OutlineOptions {
///     nodes_max: 20,
///     bytes_max: 10_000,
///     cost: &|node| node.name.len(),
///     kind: &|file| u8::from(file.extension == Some(b"rs")),
///     now: 0,
/// };
/// let outline = outline(&inventory, &options)?;
/// let root = &outline.nodes[0];
/// assert_eq!((&root.name[..], root.sum), (&b"src"[..], outline.total));
/// assert_eq!((outline.nodes.len(), root.mix.kind), (20, Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn outline(inventory: &Inventory, options: &OutlineOptions<'_>) -> Result<Outline, Error> {
    let scope = Scope::read(inventory, Span::ALL)?;
    let (selection, total) = NodeSelection::read(inventory, &scope, options.nodes_max)?;
    let mut builder = OutlineBuilder::new(selection, options);
    inventory.each(Table::Dirs, |group| builder.name_dirs(group))?;
    builder.name_files(inventory, &scope)?;
    let (ignored, kinds) = (inventory.has_column("ignored").then_some(builder.ignored), builder.kinds);
    Ok(Outline { nodes: builder.finish(), total, ignored, kinds })
}

/// Nodes whose names are being read.
struct OutlineBuilder<'a> {
    options: &'a OutlineOptions<'a>,
    selection: NodeSelection,
    nodes: Vec<OutlineNode>,
    /// The nodes that are directories, by number.
    dirs: HashMap<i64, usize>,
    /// The rows of `entries` that are nodes, in their order, each with its node.
    files: Vec<(usize, usize)>,
    mixes: MixTable,
    /// The sum of the files that are ignored.
    ignored: UsageSum,
    /// The sums by kind.
    kinds: [UsageSum; KINDS_MAX],
}

impl<'a> OutlineBuilder<'a> {
    fn new(selection: NodeSelection, options: &'a OutlineOptions<'a>) -> Self {
        let (mut dirs, mut files) = (HashMap::new(), Vec::new());
        for (at, node) in selection.nodes.iter().enumerate() {
            match node.key {
                NodeKey::Dir(dir_id) => drop(dirs.insert(dir_id, at)),
                NodeKey::File { row, .. } => files.push((row, at)),
            }
        }
        files.sort_unstable();
        let nodes: Vec<_> = selection.nodes.iter().map(|node| unnamed(&selection, node)).collect();
        let mixes = MixTable::new(nodes.len());
        let (ignored, kinds) = (UsageSum::default(), [UsageSum::default(); KINDS_MAX]);
        Self { options, selection, nodes, dirs, files, mixes, ignored, kinds }
    }

    fn name_dirs(&mut self, group: &RowGroup<'_>) -> parquet::errors::Result<()> {
        let ids = group.numbers("dir_id")?;
        if !ids.or_zero().iter().any(|id| self.dirs.contains_key(id)) {
            return Ok(());
        }
        let [names, raw, states] = [group.texts("name")?, group.texts("name_raw")?, group.texts("state")?];
        let mtimes = group.numbers("t_max_mtime")?;
        for (row, id) in ids.or_zero().iter().enumerate() {
            let Some(at) = self.dirs.get(id) else { continue };
            let node = &mut self.nodes[*at];
            node.name = raw.get(row).or(names.get(row)).unwrap_or_default().to_vec();
            node.state = states.get(row).and_then(DirState::from_word).or(Some(DirState::Partial));
            node.mtime = mtimes.get(row);
        }
        Ok(())
    }

    /// Sets the names and properties of files, and counts the properties of the entries without a
    /// node.
    fn name_files(&mut self, inventory: &Inventory, scope: &Scope) -> Result<(), Error> {
        let mut first_names = self.selection.links.first_names();
        let (mut start, mut next) = (0, 0);
        inventory.each(Table::Entries, |group| {
            let names = counted_names(group, scope, &mut first_names)?;
            let columns = FileColumns::read(group)?;
            for CountedName { row, sum, is_first } in names {
                let mix = columns.mix(row, self.options);
                let kind = mix.kind.and_then(|kind| self.kinds.get_mut(usize::from(kind)));
                kind.into_iter().for_each(|of_kind| of_kind.add(&sum));
                if mix.ignored == Some(true) {
                    self.ignored.add(&sum);
                }
                if !is_first {
                    continue;
                }
                if let Some((_, at)) = self.files.get(next).filter(|(at, _)| *at == start + row) {
                    let node = &mut self.nodes[*at];
                    (node.name, node.mtime, node.mix) =
                        (columns.name(row).to_vec(), columns.mtimes.get(row), mix);
                    next += 1;
                } else if let Some(at) = self.selection.nearest(columns.dir_ids.or_zero()[row]) {
                    self.mixes.add(at, &mix, sum.allocated);
                }
            }
            start += group.rows();
            Ok(())
        })
    }

    /// Cuts the nodes that exceed the limit of bytes, and returns the others.
    fn finish(mut self) -> Vec<OutlineNode> {
        let mut bytes = 0usize;
        let exceeds = |node: &OutlineNode| {
            bytes = bytes.saturating_add((self.options.cost)(node));
            bytes > self.options.bytes_max
        };
        let kept = self.nodes.iter().position(exceeds).unwrap_or(self.nodes.len());
        let cut = self.nodes.split_off(kept);
        self.mixes.set(&mut self.nodes, &cut);
        self.nodes
    }
}

/// Returns a node whose name and properties are not known yet.
fn unnamed(selection: &NodeSelection, node: &SelectedNode) -> OutlineNode {
    let (dir_id, parent) = match node.key {
        NodeKey::Dir(dir_id) => (dir_id, selection.above(dir_id)),
        NodeKey::File { dir_id, .. } => (dir_id, selection.nearest(dir_id)),
    };
    let mix = EntryMix::default();
    OutlineNode { parent, name: Vec::new(), sum: node.sum, dir_id, state: None, mtime: None, mix }
}

/// The columns of a row group of `entries`.
struct FileColumns {
    dir_ids: NumberColumn,
    names: [TextColumn; 2],
    extensions: TextColumn,
    mtimes: NumberColumn,
    uids: NumberColumn,
    modes: NumberColumn,
    ignored: NumberColumn,
}

impl FileColumns {
    fn read(group: &RowGroup<'_>) -> parquet::errors::Result<Self> {
        Ok(Self {
            dir_ids: group.numbers("dir_id")?,
            names: [group.texts("name")?, group.texts("name_raw")?],
            extensions: group.texts("ext")?,
            mtimes: group.numbers("mtime")?,
            uids: group.numbers("uid")?,
            modes: group.numbers("mode")?,
            ignored: group.numbers("ignored")?,
        })
    }

    fn name(&self, row: usize) -> &[u8] {
        let [names, raw] = &self.names;
        raw.get(row).or(names.get(row)).unwrap_or_default()
    }

    fn mix(&self, row: usize, options: &OutlineOptions<'_>) -> EntryMix {
        let mode = self.modes.get(row).and_then(|mode| u32::try_from(mode).ok());
        let file = FileTraits { name: self.name(row), extension: self.extensions.get(row), mode };
        EntryMix {
            kind: Some((options.kind)(&file)),
            age: self.mtimes.get(row).map(|mtime| age_group(mtime, options.now)),
            uid: self.uids.get(row).and_then(|uid| u32::try_from(uid).ok()),
            ignored: self.ignored.get(row).map(|ignored| ignored == 1),
        }
    }
}
