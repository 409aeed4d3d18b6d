//! `--from`: lists an inventory with the filters and formats of a walk, in the order of its scan.

use std::path::Path;

use fathom_inventory::store::{DirState, Span};
use fathom_inventory::{Entry, Lookup};
use fathom_questions::replay::{ReplayEntry, ReplayVisitor, replay};
use fathom_questions::top::QueryError;
use fathom_questions::usage::{self, UsageTarget};
use fathom_scans::scan::EXCLUSION_OPTIONS;
use fathom_text::quote::Charset;
use fathom_walk::{FileType, Meta};

use super::operands::RootList;
use super::plan::{LineFormat, ListProblem, Plan};
use super::report::ListReport;
use crate::shared::inventory::{self, failure_message, incomplete_warning};
use crate::shared::output::FULL_BYTES;

/// Lists the entries of the inventory at `path` below `operands`, or all entries if there are none.
///
/// # Errors
/// Returns the exit status if anything failed.
pub(super) fn list(
    path: &Path,
    operands: Option<&RootList>,
    mut plan: Plan,
    report: &ListReport,
    charset: Charset,
) -> Result<(), u8> {
    let refused = |failure: QueryError, operand: Option<&[u8]>| {
        let (message, status) = failure_message(&failure, operand, charset);
        report.print_error(&message);
        status
    };
    let unreadable = |error| refused(QueryError::Unreadable(error), None);
    let inventory = inventory::open(path).map_err(unreadable)?;
    let found = &inventory.manifest().completeness;
    if !found.is_complete() {
        report.print_error(incomplete_warning(found).as_bytes());
    }
    let left_out =
        EXCLUSION_OPTIONS.iter().find(|option| inventory.manifest().options.contains_key(**option));
    if let Some(option) = left_out.filter(|_| plan.filter.needs_entry_counts()) {
        report.print_error(
            format!("warning: no directory is listed as empty, because the scan had --{option}").as_bytes(),
        );
    }
    plan.owners = inventory.owners().map_err(unreadable)?;
    let list_span = |span, operand| {
        let listing = InventoryListing {
            has_exclusions: left_out.is_some(),
            ..InventoryListing::new(&plan, report, operand)
        };
        match replay(&inventory, span, listing) {
            Err(_) if report.is_stopped() => Ok(()),
            ended => ended.map_err(unreadable),
        }
    };
    let Some(operands) = operands else { return list_span(Span::ALL, None) };
    let mut status = Ok(());
    for operand in operands.paths() {
        match usage::find(&inventory, operand) {
            Ok(UsageTarget::Directory(top)) => list_span(top.span, Some((operand, top.path.len())))?,
            Ok(UsageTarget::File(meta)) => InventoryListing::new(&plan, report, None).file(operand, &meta),
            Err(QueryError::Absent) => {
                report.problem(&ListProblem::Access(operand.to_vec(), fathom_walk::Errno::NOENT))
            }
            Err(failure) => status = Err(refused(failure, Some(operand))),
        }
    }
    status
}

/// The visitor that lists the entries of an inventory.
struct InventoryListing<'a> {
    plan: &'a Plan,
    report: &'a ListReport,
    /// The path to print for the first directory, and the length of its path in the inventory.
    operand: Option<(&'a [u8], usize)>,
    /// The directory of the last entry, as printed.
    dir: Vec<u8>,
    path: Vec<u8>,
    text: Vec<u8>,
    count: u64,
    /// The number of directories entered since the outermost skipped one, including that one; 0
    /// outside of skipped directories.
    skipped_dirs: usize,
    root_dev: Option<u64>,
    /// Whether the scan left names out, so that a directory without entries may have some.
    has_exclusions: bool,
}

impl<'a> InventoryListing<'a> {
    fn new(plan: &'a Plan, report: &'a ListReport, operand: Option<(&'a [u8], usize)>) -> Self {
        let [dir, path, text] = [const { Vec::new() }; 3];
        let (count, skipped_dirs, root_dev, has_exclusions) = (0, 0, None, false);
        Self { plan, report, operand, dir, path, text, count, skipped_dirs, root_dev, has_exclusions }
    }

    /// Lists an operand that is not a directory.
    fn file(mut self, path: &[u8], meta: &Meta) {
        let entry = Entry {
            dir: b"",
            name: path,
            root_len: path.len(),
            depth: 0,
            file_type: meta.file_type(),
            meta: Some(meta),
        };
        self.list_entry(&ReplayEntry::new(entry));
        self.flush();
    }

    fn is_excluded(&self, item: &ReplayEntry<'_>) -> bool {
        let Entry { name, depth, .. } = item.entry;
        let pruned = |name| self.plan.pruned.as_ref().is_some_and(|pruned| pruned.matches_name(name, 1));
        depth > 0 && ((self.plan.skips_hidden && name.starts_with(b".")) || pruned(name))
    }

    /// Returns whether the directory is on another filesystem than its root, and
    /// `--one-file-system` is set.
    fn is_on_other_device(&self, meta: Option<&Meta>) -> bool {
        let devs = self.root_dev.zip(meta.map(|meta| meta.dev));
        self.plan.one_file_system && devs.is_some_and(|(root, dev)| root != dev)
    }

    /// Adds the line of an entry, if the entry passes the filters.
    fn list_entry(&mut self, item: &ReplayEntry<'_>) {
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
        let known = ReplayEntry { entries: item.entries.filter(|_| !self.has_exclusions), ..*item };
        if !self.plan.filter.passes(&entry, &mut ItemLookup(&known), &mut self.path) {
            return;
        }
        self.count += 1;
        match &self.plan.format {
            LineFormat::Count => {}
            LineFormat::Path(end, style) => {
                let start = self.text.len();
                entry.write_path(&mut self.text);
                style.finish(start, &mut self.text);
                self.text.push(*end);
            }
            LineFormat::Format(format) => {
                format.write(&entry, &self.plan.owners, &mut ItemLookup(item), &mut self.text)
            }
            LineFormat::Json(writer) => writer.write_known(&ReplayEntry { entry, ..*item }, &mut self.text),
        }
    }

    fn flush(&mut self) {
        self.report.write(&self.text, std::mem::take(&mut self.count));
        self.text.clear();
    }
}

/// Answers the lookups of formats and filters from the inventory.
struct ItemLookup<'i>(&'i ReplayEntry<'i>);

impl Lookup for ItemLookup<'_> {
    fn link(&mut self, _entry: &Entry<'_>) -> Option<Vec<u8>> {
        self.0.link.map(<[u8]>::to_vec)
    }

    fn is_empty_dir(&mut self, _entry: &Entry<'_>) -> Option<bool> {
        self.0.entries.map(|entries| entries == 0)
    }
}

impl ReplayVisitor for InventoryListing<'_> {
    fn needs_links(&self) -> bool {
        !matches!(self.plan.format, LineFormat::Count | LineFormat::Path(..))
    }

    fn needs_entry_counts(&self) -> bool {
        self.plan.filter.needs_entry_counts()
    }

    fn entry(&mut self, item: &ReplayEntry<'_>) {
        if self.skipped_dirs == 0 && !self.is_excluded(item) {
            self.list_entry(item);
        }
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, _state: DirState) {
        if item.entry.depth == 0 {
            self.root_dev = item.entry.meta.map(|meta| meta.dev);
        }
        if self.skipped_dirs == 0 && !self.is_excluded(item) {
            let entry = Entry { file_type: FileType::Directory, ..item.entry };
            self.list_entry(&ReplayEntry { entry, ..*item });
        }
        // A mount point below a root is listed, but its entries are not.
        if self.skipped_dirs > 0 || self.is_excluded(item) || self.is_on_other_device(item.entry.meta) {
            self.skipped_dirs += 1;
        }
    }

    fn leave(&mut self) {
        self.skipped_dirs = self.skipped_dirs.saturating_sub(1);
    }

    fn end(&mut self) {
        self.flush();
    }

    fn should_continue(&mut self) -> bool {
        if self.text.len() >= FULL_BYTES {
            self.flush();
        }
        !self.report.is_stopped()
    }
}
