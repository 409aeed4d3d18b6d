//! `--from`: an inventory is listed as a walk would be, by the same filters and in the same
//! formats, in the order of its scan.

use std::path::Path;

use fathom_inventory::replay::{Item, Visitor, replay};
use fathom_inventory::store::{Inventory, State};
use fathom_inventory::top::Failure;
use fathom_inventory::usage::{self, Place, Span};
use fathom_inventory::{Entry, Lookup, Owners};
use fathom_text::quote::Charset;
use fathom_walk::{FileType, Meta, Stamp};

use super::operands::Operands;
use super::plan::{Plan, Problem, Shape, base};
use super::report::{FULL_BYTES, Report};
use crate::top;

/// Lists what the inventory at `path` has of `operands`, or everything if there are none; a status,
/// if anything was wrong.
pub(super) fn list(
    path: &Path,
    operands: Option<&Operands>,
    mut plan: Plan,
    report: &Report,
    charset: Charset,
) -> Result<(), u8> {
    let refused = |failure: Failure, operand: Option<&[u8]>| {
        let (message, status) = top::refusal(&failure, operand, charset);
        report.say(&message);
        status
    };
    let unreadable = |error| refused(Failure::Unreadable(error), None);
    let inventory = Inventory::open(path).map_err(unreadable)?;
    let found = &inventory.manifest().completeness;
    if !found.is_complete() {
        report.say(top::warning(found).as_bytes());
    }
    plan.owners = Owners::of(&inventory).map_err(unreadable)?;
    let tell = |span, operand| {
        let listing = Listing::new(&plan, report, operand);
        match replay(&inventory, span, listing) {
            Err(_) if report.is_stopped() => Ok(()),
            told => told.map_err(unreadable),
        }
    };
    let Some(operands) = operands else { return tell(Span::ALL, None) };
    let mut status = Ok(());
    for operand in operands.paths() {
        match usage::find(&inventory, operand) {
            Ok(Place::Directory(top)) => tell(top.span, Some((operand, top.path.len())))?,
            Ok(Place::File(meta)) => Listing::new(&plan, report, None).file(operand, &meta),
            Err(Failure::Absent) => {
                report.problem(&Problem::Access(operand.to_vec(), fathom_walk::Errno::NOENT))
            }
            Err(failure) => status = Err(refused(failure, Some(operand))),
        }
    }
    status
}

/// Lists what it is told.
struct Listing<'a> {
    plan: &'a Plan,
    report: &'a Report,
    /// The path to print for the first directory, and the length of its path in the inventory.
    operand: Option<(&'a [u8], usize)>,
    /// The directory of the last entry, as it is printed.
    dir: Vec<u8>,
    path: Vec<u8>,
    text: Vec<u8>,
    count: u64,
    /// Directories entered below one that is left out, with that one.
    left_out: usize,
    root_dev: Option<u64>,
}

impl<'a> Listing<'a> {
    fn new(plan: &'a Plan, report: &'a Report, operand: Option<(&'a [u8], usize)>) -> Self {
        let [dir, path, text] = [const { Vec::new() }; 3];
        Self { plan, report, operand, dir, path, text, count: 0, left_out: 0, root_dev: None }
    }

    /// An operand that is no directory.
    fn file(mut self, path: &[u8], meta: &Meta) {
        let entry = Entry {
            dir: b"",
            name: path,
            root_len: path.len(),
            depth: 0,
            file_type: meta.file_type(),
            meta: Some(meta),
        };
        let (born, attributes) = (meta.born, meta.attributes);
        self.tell(&Item { born, attributes, ..Item::new(entry) });
        self.flush();
    }

    fn is_left_out(&self, item: &Item<'_>) -> bool {
        let Entry { name, depth, .. } = item.entry;
        let pruned = |name| self.plan.pruned.as_ref().is_some_and(|pruned| pruned.matches_name(name, 1));
        depth > 0 && ((self.plan.skips_hidden && name.starts_with(b".")) || pruned(name))
    }

    /// Whether it is on another filesystem than its root, and so what is in it.
    fn is_foreign(&self, meta: Option<&Meta>) -> bool {
        let devs = self.root_dev.zip(meta.map(|meta| meta.dev));
        self.plan.one_file_system && devs.is_some_and(|(root, dev)| root != dev)
    }

    /// The line of an entry, if it has one.
    fn tell(&mut self, item: &Item<'_>) {
        let found = &item.entry;
        self.dir.clear();
        let (mut name, mut root_len) = (found.name, found.root_len);
        if let Some((operand, len)) = self.operand {
            root_len = operand.len();
            if found.depth == 0 {
                name = operand;
            } else {
                let below = found.dir.get(len..).unwrap_or_default();
                let is_closed = operand.ends_with(b"/");
                self.dir.extend_from_slice(operand);
                self.dir.extend_from_slice(if is_closed {
                    below.strip_prefix(b"/").unwrap_or(below)
                } else {
                    below
                });
            }
        } else {
            self.dir.extend_from_slice(found.dir);
        }
        if !self.dir.is_empty() && !self.dir.ends_with(b"/") {
            self.dir.push(b'/');
        }
        let entry = Entry { dir: &self.dir, name, root_len, ..*found };
        if !is_listed(self.plan, &entry, &mut self.path) {
            return;
        }
        self.count += 1;
        match &self.plan.shape {
            Shape::Count => {}
            Shape::Path(end, style) => {
                let start = self.text.len();
                entry.write_path(&mut self.text);
                style.finish(start, &mut self.text);
                self.text.push(*end);
            }
            Shape::Format(format) => format.write(&entry, &self.plan.owners, &mut Told(item), &mut self.text),
            Shape::Json(writer) => writer.write_known(&Item { entry, ..*item }, &mut self.text),
        }
    }

    fn flush(&mut self) {
        self.report.write(&self.text, std::mem::take(&mut self.count));
        self.text.clear();
    }
}

/// Whether an entry passes all tests. What nothing is known of fails those on metadata.
fn is_listed(plan: &Plan, entry: &Entry<'_>, path: &mut Vec<u8>) -> bool {
    let filter = &plan.filter;
    let name = if entry.depth == 0 { base(entry.name) } else { entry.name };
    if !filter.matches_name(name, entry.depth) || !filter.matches_type(entry.file_type) {
        return false;
    }
    if filter.needs_path() {
        path.clear();
        entry.write_path(path);
        if !filter.matches_path(path) {
            return false;
        }
    }
    entry.meta.map_or(!filter.needs_meta(), |meta| filter.matches_meta(meta))
}

/// Answers from the inventory.
struct Told<'i>(&'i Item<'i>);

impl Lookup for Told<'_> {
    fn link(&mut self, _entry: &Entry<'_>) -> Option<Vec<u8>> {
        self.0.link.map(<[u8]>::to_vec)
    }

    fn born(&mut self, _entry: &Entry<'_>) -> Option<Stamp> {
        self.0.born
    }
}

impl Visitor for Listing<'_> {
    fn needs_links(&self) -> bool {
        !matches!(self.plan.shape, Shape::Count | Shape::Path(..))
    }

    fn entry(&mut self, item: &Item<'_>) {
        if self.left_out == 0 && !self.is_left_out(item) {
            self.tell(item);
        }
    }

    fn enter(&mut self, item: &Item<'_>, _state: State) {
        if item.entry.depth == 0 {
            self.root_dev = item.entry.meta.map(|meta| meta.dev);
        }
        if self.left_out == 0 && !self.is_left_out(item) {
            let entry = Entry { file_type: FileType::Directory, ..item.entry };
            self.tell(&Item { entry, ..*item });
        }
        // A mount point below a root is listed, but its entries are not.
        if self.left_out > 0 || self.is_left_out(item) || self.is_foreign(item.entry.meta) {
            self.left_out += 1;
        }
    }

    fn leave(&mut self) {
        self.left_out = self.left_out.saturating_sub(1);
    }

    fn end(&mut self) {
        self.flush();
    }

    fn goes_on(&mut self) -> bool {
        if self.text.len() >= FULL_BYTES {
            self.flush();
        }
        !self.report.is_stopped()
    }
}
