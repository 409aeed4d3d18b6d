//! Iterates over an inventory in the order of its scan: a directory is entered, its entries follow,
//! and it is left. Rows of `entries` are in that order and name their directory; directories
//! without rows are entered before their parent is left.

use parquet::errors::Result;

use super::tree::{ReplayTree, is_name, is_path};
use super::{ReplayEntry, ReplayHeader, ReplayReach, ReplayVisitor, damaged};
use fathom_inventory::Entry;
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, MetaColumns, RowGroup, Table, errno_of};
use fathom_inventory::type_of;
use fathom_walk::{Errno, FileType, Meta};

/// An iteration over an inventory.
pub(super) struct ReplayWalk<'a, V> {
    tree: &'a ReplayTree,
    visitor: V,
    /// The index of the first directory that has not been entered.
    next: usize,
    /// Whether the inventory has operands that are not directories.
    has_operands: bool,
    path: OpenPath,
    /// The directories whose entries the visitor may want, sorted.
    wanted: Vec<Span>,
}

/// The directories that have been entered and not left.
#[derive(Default)]
struct OpenPath {
    open: Vec<OpenDir>,
    /// The path of the innermost of them.
    path: Vec<u8>,
    /// The number of bytes of the path that are the operand.
    root_len: usize,
}

struct OpenDir {
    index: usize,
    /// The length of the path without this directory.
    above: usize,
}

impl OpenPath {
    fn push(&mut self, index: usize, name: &[u8]) {
        let above = self.path.len();
        if above > 0 && !self.path.ends_with(b"/") {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        if self.open.is_empty() {
            self.root_len = self.path.len();
        }
        self.open.push(OpenDir { index, above });
    }

    /// Returns an entry of the innermost directory.
    fn item<'e>(
        &'e self,
        name: &'e [u8],
        file_type: FileType,
        meta: Option<&'e Meta>,
        errno: Option<Errno>,
    ) -> ReplayEntry<'e> {
        let root_len = if self.open.is_empty() { name.len() } else { self.root_len };
        let entry = Entry { dir: &self.path, name, root_len, depth: self.open.len(), file_type, meta };
        ReplayEntry { errno, ..ReplayEntry::new(entry) }
    }
}

impl<'a, V: ReplayVisitor> ReplayWalk<'a, V> {
    pub(super) fn new(tree: &'a ReplayTree, visitor: V) -> Self {
        Self { tree, visitor, next: 0, has_operands: false, path: OpenPath::default(), wanted: Vec::new() }
    }

    /// Visits everything in `span`.
    pub(super) fn run(mut self, inventory: &Inventory, span: Span) -> Result<(), Error> {
        let manifest = inventory.manifest();
        let roots = (manifest.roots.len() as u64).saturating_sub(manifest.completeness.missing_roots);
        self.has_operands = span == Span::ALL && roots > self.tree.tops() as u64;
        let is_one_tree = self.tree.tops() == 1 && !self.has_operands;
        self.visitor.begin(&ReplayHeader {
            is_one_tree,
            optional_columns: manifest.optional_columns,
            scanned: manifest.end,
        });
        self.wanted = wanted(self.tree, &self.visitor);
        inventory.each(Table::Entries, |group| self.group(group, span))?;
        let ended = self.enter_up_to(self.tree.len()).and_then(|()| {
            self.leave_down_to(0);
            self.visitor.end();
            self.check_continue()
        });
        ended.map_err(|_| inventory.refused("the replay was stopped"))
    }

    fn group(&mut self, group: &RowGroup<'_>, span: Span) -> Result<()> {
        let dir_id = group.numbers("dir_id")?;
        let dir_ids = dir_id.or_zero();
        let is_wanted = |dir_id: i64| span.contains(dir_id) && self.wants(dir_id);
        let mut rows: Vec<_> = (0..group.rows()).filter(|row| is_wanted(dir_ids[*row])).collect();
        if rows.is_empty() {
            return self.pass(dir_ids, span);
        }
        let types = group.texts("type")?;
        let file_type = |row: usize| types.get(row).map_or(FileType::Unknown, type_of);
        let mut metas = MetaColumns::default();
        let needs_metadata = self.visitor.needs_metadata();
        if needs_metadata {
            metas.load(group, |name| self.visitor.filters_by_column(name))?;
        }
        rows.retain(|row| self.visitor.accepts(file_type(*row), metas.get(*row).as_ref()));
        if rows.is_empty() {
            return self.pass(dir_ids, span);
        }
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        if needs_metadata {
            metas.load(group, |name| self.visitor.needs_column(name))?;
        }
        let errnos = if needs_metadata { Some(group.numbers("errno")?) } else { None };
        let links = if self.visitor.needs_links() {
            Some([group.texts("link_target")?, group.texts("link_raw")?])
        } else {
            None
        };
        let mut done = 0;
        for row in rows {
            self.pass(&dir_ids[done..row], span)?;
            done = row + 1;
            let name = raw.get(row).or(names.get(row)).unwrap_or_default();
            self.seek(dir_ids[row], name)?;
            let file_type = file_type(row);
            let meta = metas.get(row);
            let link = links.as_ref().and_then(|[text, raw]| raw.get(row).or(text.get(row)));
            let errno = errnos.as_ref().and_then(|errnos| errnos.get(row));
            let errno = errno.map(|errno| errno_of(Some(errno)));
            let optional_values = metas.optional_values(row);
            let optional_values = optional_values.as_ref();
            self.visitor.entry(&ReplayEntry {
                link,
                optional_values,
                ..self.path.item(name, file_type, meta.as_ref(), errno)
            });
            self.check_continue()?;
        }
        self.pass(&dir_ids[done..], span)
    }

    /// Moves past rows that the visitor does not want, so that the order of the directories does
    /// not depend on what it wants. The rows belong to the directories `dir_ids`.
    fn pass(&mut self, dir_ids: &[i64], span: Span) -> Result<()> {
        let mut last = None;
        for dir_id in dir_ids.iter().copied().filter(|dir_id| span.contains(*dir_id)) {
            if last != Some(dir_id) {
                self.seek_dir(dir_id)?;
                last = Some(dir_id);
            }
        }
        Ok(())
    }

    /// Returns whether the visitor may want entries of the directory `dir_id`. Number 0 stands for
    /// the operands.
    fn wants(&self, dir_id: i64) -> bool {
        let after = self.wanted.partition_point(|span| span.first <= dir_id);
        // A number that no directory has is refused when its row is read.
        let is_known = self.tree.index_of(dir_id).is_some();
        !is_known || after.checked_sub(1).is_some_and(|at| self.wanted[at].contains(dir_id))
    }

    /// Moves to the directory `dir_id`, for an entry of this name.
    fn seek(&mut self, dir_id: i64, name: &[u8]) -> Result<()> {
        let is_operand = self.has_operands && dir_id == 0;
        if !(if is_operand { is_path(name) } else { is_name(name) }) {
            return Err(damaged("an entry has an impossible name"));
        }
        self.seek_dir(dir_id)
    }

    /// Moves to the directory `dir_id`, or out of all directories for operands.
    fn seek_dir(&mut self, dir_id: i64) -> Result<()> {
        if !(self.has_operands && dir_id == 0) {
            let index = self.tree.index_of(dir_id).ok_or_else(|| damaged("an entry has no directory"))?;
            self.enter_up_to(index + 1)?;
            let at = self.path.open.binary_search_by_key(&index, |open| open.index);
            let at = at.map_err(|_| damaged("its entries are not in the order of their directories"))?;
            return self.leave_to(at + 1);
        }
        self.leave_to(0)
    }

    /// Leaves directories until only `count` are open. The directories below them that have not
    /// been entered are entered first.
    fn leave_to(&mut self, count: usize) -> Result<()> {
        if let Some(below) = self.path.open.get(count) {
            self.enter_up_to(self.tree.last(below.index) + 1)?;
            self.leave_down_to(count);
        }
        Ok(())
    }

    /// Enters all directories before the index `end` that have not been entered.
    fn enter_up_to(&mut self, end: usize) -> Result<()> {
        while self.next < end {
            let index = self.next;
            let left = self.path.open.iter().rposition(|open| self.tree.last(open.index) >= index);
            self.leave_down_to(left.map_or(0, |last| last + 1));
            self.enter(index);
            self.next += 1;
            self.check_continue()?;
        }
        Ok(())
    }

    fn enter(&mut self, index: usize) {
        let name = self.tree.name(index);
        let (state, meta, errno) = (self.tree.state(index), self.tree.meta(index), self.tree.errno(index));
        let item = self.path.item(name, FileType::Directory, meta, errno);
        let (optional_values, entries) = (self.tree.optional_values(index), self.tree.entries(index));
        self.visitor.enter(&ReplayEntry { state: Some(state), entries, optional_values, ..item }, state);
        self.path.push(index, name);
    }

    fn leave_down_to(&mut self, count: usize) {
        for open in self.path.open.drain(count..).rev() {
            self.visitor.leave();
            self.path.path.truncate(open.above);
        }
    }

    fn check_continue(&mut self) -> Result<()> {
        if self.visitor.should_continue() { Ok(()) } else { Err(damaged("the replay was stopped")) }
    }
}

/// Returns the directories whose entries `visitor` may want, as sorted ranges of their numbers.
fn wanted(tree: &ReplayTree, visitor: &impl ReplayVisitor) -> Vec<Span> {
    let (mut found, mut path) = (Vec::new(), OpenPath::default());
    let mut index = 0;
    while index < tree.len() {
        while let Some(open) = path.open.pop_if(|open| tree.last(open.index) < index) {
            path.path.truncate(open.above);
        }
        path.push(index, tree.name(index));
        let (here, last) = (tree.number(index), tree.number(tree.last(index)));
        let reach = visitor.reach(&path.path);
        match reach {
            ReplayReach::All => found.push(Span { first: here, last }),
            ReplayReach::Some => found.push(Span { first: here, last: here }),
            ReplayReach::None => {}
        }
        // Only a part of the subtree needs a look at each directory in it.
        index = if reach == ReplayReach::Some { index + 1 } else { tree.last(index) + 1 };
    }
    found
}
