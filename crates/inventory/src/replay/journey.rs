//! Through an inventory in the order of its scan: a directory, what is in it, and then it is left. Rows of `entries` come in that
//! order and say which directory they are in; directories without any are entered before their parent is left.

use parquet::errors::Result;

use super::tree::{Tree, is_name, is_path};
use super::{About, Item, Visitor, damaged};
use crate::Entry;
use crate::entry::type_of;
use crate::store::{Error, Group, Inventory, Metas, Table, errno_of};
use crate::top::below::Span;
use fathom_walk::{Errno, FileType, Meta};

/// A journey.
pub(super) struct Journey<'a, V> {
    tree: &'a Tree,
    visitor: V,
    /// The first directory that has not been entered.
    next: usize,
    /// Whether there are operands that are no directories.
    has_operands: bool,
    trail: Trail,
}

/// The directories that have been entered and not been left.
#[derive(Default)]
struct Trail {
    open: Vec<Open>,
    /// The path of the last of them.
    path: Vec<u8>,
    /// Bytes of it that are the operand.
    root_len: usize,
}

struct Open {
    place: usize,
    /// Bytes of the path without it.
    above: usize,
}

impl Trail {
    fn push(&mut self, place: usize, name: &[u8]) {
        let above = self.path.len();
        if above > 0 && !self.path.ends_with(b"/") {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        if self.open.is_empty() {
            self.root_len = self.path.len();
        }
        self.open.push(Open { place, above });
    }

    /// An entry of the last of them.
    fn item<'e>(
        &'e self,
        name: &'e [u8],
        file_type: FileType,
        meta: Option<&'e Meta>,
        errno: Option<Errno>,
    ) -> Item<'e> {
        let root_len = if self.open.is_empty() { name.len() } else { self.root_len };
        let entry = Entry { dir: &self.path, name, root_len, depth: self.open.len(), file_type, meta };
        let (born, attributes) = (meta.and_then(|meta| meta.born), meta.and_then(|meta| meta.attributes));
        Item { born, attributes, errno, ..Item::new(entry) }
    }
}

impl<'a, V: Visitor> Journey<'a, V> {
    pub(super) fn new(tree: &'a Tree, visitor: V) -> Self {
        Self { tree, visitor, next: 0, has_operands: false, trail: Trail::default() }
    }

    /// From the beginning to the end of what is in `span`.
    pub(super) fn run(mut self, inventory: &Inventory, span: Span) -> Result<(), Error> {
        let manifest = inventory.manifest();
        let roots = (manifest.roots.len() as u64).saturating_sub(manifest.completeness.missing_roots);
        self.has_operands = span == Span::ALL && roots > self.tree.tops() as u64;
        let is_one_tree = self.tree.tops() == 1 && !self.has_operands;
        self.visitor.begin(&About { is_one_tree, also: manifest.also, scanned: manifest.end });
        inventory.each(Table::Entries, |group| self.group(group, span))?;
        let ended = self.enter_up_to(self.tree.len()).and_then(|()| {
            self.leave_down_to(0);
            self.visitor.end();
            self.relieve()
        });
        ended.map_err(|_| inventory.refused("nobody takes it"))
    }

    fn group(&mut self, group: &Group<'_>, span: Span) -> Result<()> {
        let dir_id = group.numbers("dir_id")?;
        if !dir_id.or_zero().iter().any(|dir_id| span.has(*dir_id)) {
            return Ok(());
        }
        let [names, raw, types] = [group.texts("name")?, group.texts("name_raw")?, group.texts("type")?];
        let needs_metadata = self.visitor.needs_metadata();
        let metas = if needs_metadata { Some(Metas::read(group)?) } else { None };
        let errnos = if needs_metadata { Some(group.numbers("errno")?) } else { None };
        let links = if self.visitor.needs_links() {
            Some([group.texts("link_target")?, group.texts("link_raw")?])
        } else {
            None
        };
        for row in (0..group.rows()).filter(|row| span.has(dir_id.or_zero()[*row])) {
            let name = raw.get(row).or(names.get(row)).unwrap_or_default();
            self.reach(dir_id.or_zero()[row], name)?;
            let file_type = types.get(row).map_or(FileType::Unknown, type_of);
            let meta = metas.as_ref().and_then(|metas| metas.get(row));
            let link = links.as_ref().and_then(|[text, raw]| raw.get(row).or(text.get(row)));
            let errno = errnos.as_ref().and_then(|errnos| errnos.get(row));
            let errno = errno.map(|errno| errno_of(Some(errno)));
            let extra = metas.as_ref().and_then(|metas| metas.extra(row));
            let extra = extra.as_ref();
            self.visitor.entry(&Item {
                link,
                extra,
                ..self.trail.item(name, file_type, meta.as_ref(), errno)
            });
            self.relieve()?;
        }
        Ok(())
    }

    /// Goes to where an entry of this name is that is in this directory.
    fn reach(&mut self, dir_id: i64, name: &[u8]) -> Result<()> {
        let is_operand = self.has_operands && dir_id == 0;
        if !(if is_operand { is_path(name) } else { is_name(name) }) {
            return Err(damaged("an entry has an impossible name"));
        }
        if !is_operand {
            let place = self.tree.place(dir_id).ok_or_else(|| damaged("an entry is in no directory"))?;
            self.enter_up_to(place + 1)?;
            let at = self.trail.open.binary_search_by_key(&place, |open| open.place);
            let at = at.map_err(|_| damaged("its entries are not in the order of their directories"))?;
            return self.back_to(at + 1);
        }
        self.back_to(0)
    }

    /// Goes back until only `count` directories are open. What else is below the others comes first.
    fn back_to(&mut self, count: usize) -> Result<()> {
        if let Some(below) = self.trail.open.get(count) {
            self.enter_up_to(self.tree.last(below.place) + 1)?;
            self.leave_down_to(count);
        }
        Ok(())
    }

    /// Enters all directories before the one at `end` that have not been.
    fn enter_up_to(&mut self, end: usize) -> Result<()> {
        while self.next < end {
            let place = self.next;
            let left = self.trail.open.iter().rposition(|open| self.tree.last(open.place) >= place);
            self.leave_down_to(left.map_or(0, |last| last + 1));
            self.enter(place);
            self.next += 1;
            self.relieve()?;
        }
        Ok(())
    }

    fn enter(&mut self, place: usize) {
        let name = self.tree.name(place);
        let (state, meta, errno) = (self.tree.state(place), self.tree.meta(place), self.tree.errno(place));
        let item = self.trail.item(name, FileType::Directory, meta, errno);
        let extra = self.tree.extra(place);
        self.visitor.enter(&Item { state: Some(state), extra, ..item }, state);
        self.trail.push(place, name);
    }

    fn leave_down_to(&mut self, count: usize) {
        for open in self.trail.open.drain(count..).rev() {
            self.visitor.leave();
            self.trail.path.truncate(open.above);
        }
    }

    fn relieve(&mut self) -> Result<()> {
        if self.visitor.goes_on() { Ok(()) } else { Err(damaged("nobody takes it")) }
    }
}
