//! `--from`: replays an inventory into the same accounting as a walk. If only directories get
//! lines, uses the totals in their rows instead.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use fathom_du::options::{Follow, HardLinks, Measure, Options};
use fathom_du::replay::{Replay, needs_directories_only, report_line};
use fathom_du::scan::{Line, Operand, Report, ScanOutcome};
use fathom_du::totals::Totals;
use fathom_inventory::store::{DirState, Inventory, Span};
use fathom_questions::replay::{ReplayEntry, ReplayVisitor, replay};
use fathom_questions::top::{QueryError, UsageSum};
use fathom_questions::usage::{self, DirUsage, UsageRoot, UsageTarget};
use fathom_text::quote::Charset;
use fathom_walk::{Errno, Summary};

use crate::shared::inventory::{self, failure_message, incomplete_warning};

/// A message without the program name.
type Message = Vec<u8>;

/// Reports the contents of the inventory at `path`: all of it if `everything`, or else the operands
/// that `report` returns.
pub(super) fn report_inventory<R: Report>(
    path: &Path,
    everything: bool,
    options: &Arc<Options>,
    charset: Charset,
    report: &mut R,
) -> Result<ScanOutcome, Message> {
    if options.follow != Follow::Never {
        return Err(b"cannot follow links in an inventory (--from)".to_vec());
    }
    fathom_io::sys::keep_freed_memory();
    let refused = |failure| failure_message(&failure, None, charset).0;
    let inventory = inventory::open(path).map_err(|error| refused(QueryError::Unreadable(error)))?;
    let run = InventoryRun { inventory: &inventory, options, charset };
    let counted = if everything { run.everything(report) } else { run.operands(report) };
    let total = counted.map_err(refused)?;
    let found = &inventory.manifest().completeness;
    if found.stopped.is_some() {
        report.message(incomplete_warning(found).as_bytes());
    }
    let complete = !report.stopped();
    Ok(ScanOutcome { total, summary: Summary { complete, ..Summary::default() } })
}

/// A du run over an inventory.
struct InventoryRun<'a> {
    inventory: &'a Inventory,
    options: &'a Arc<Options>,
    charset: Charset,
}

/// An operand with its location in the inventory.
type ResolvedOperand = (Vec<u8>, UsageTarget);

impl InventoryRun<'_> {
    fn operands<R: Report>(&self, report: &mut R) -> Result<Totals, QueryError> {
        let operands = self.resolve_operands(report)?;
        let by_rows = self.is_by_rows(report);
        if let ([(path, UsageTarget::Directory(top))], true) = (&operands[..], by_rows) {
            return self.directories(path, top, report);
        }
        let ids = operands.iter().filter_map(|(_, place)| match place {
            UsageTarget::File(meta) => Some(meta.id()),
            UsageTarget::Directory(_) => None,
        });
        let files: HashSet<_> = ids.collect();
        let mut run = Replay::new(self.options.clone(), (operands.len() > 1).then_some(files), report);
        for (path, place) in &operands {
            match place {
                UsageTarget::File(meta) => run.operand(path, Ok(meta)),
                UsageTarget::Directory(top) => self.replay(top.span, Some(path), &mut run)?,
            }
        }
        Ok(run.end())
    }

    /// Resolves the operands, and reports those that the inventory does not have.
    fn resolve_operands<R: Report>(&self, report: &mut R) -> Result<Vec<ResolvedOperand>, QueryError> {
        let mut operands = Vec::new();
        loop {
            match report.next_operand(true) {
                Operand::End => return Ok(operands),
                Operand::Pending => continue,
                Operand::Message(message) => report.message(&message),
                Operand::Path(path) => {
                    let path = path.into_bytes();
                    match usage::find(self.inventory, &path) {
                        Ok(place) => operands.push((path, place)),
                        Err(QueryError::Unreadable(error)) => return Err(QueryError::Unreadable(error)),
                        Err(QueryError::Absent) => report.message(&absent(&path, self.charset)),
                        Err(other) => report.message(&failure_message(&other, Some(&path), self.charset).0),
                    }
                }
            }
        }
    }

    fn everything<R: Report>(&self, report: &mut R) -> Result<Totals, QueryError> {
        let top = if self.is_by_rows(report) { usage::only_root(self.inventory)? } else { None };
        if let Some(top) = top {
            return self.directories(&top.path, &top, report);
        }
        let several = self.inventory.manifest().roots.len() > 1;
        let files = several.then(|| usage::files(self.inventory)).transpose()?;
        let files = files.map(|files| files.into_iter().collect());
        let mut run = Replay::new(self.options.clone(), files, report);
        self.replay(Span::ALL, None, &mut run)?;
        if self.inventory.manifest().completeness.missing_roots > 0 {
            let missing = usage::missing(self.inventory)?;
            for root in
                self.inventory.manifest().roots.iter().map(fathom_inventory::store::ManifestRoot::bytes)
            {
                if let Some(errno) = missing.get(&root) {
                    run.operand(&root, Err(*errno));
                }
            }
        }
        Ok(run.end())
    }

    /// Returns whether the rows of directories suffice for all lines.
    fn is_by_rows(&self, report: &impl Report) -> bool {
        needs_directories_only(self.options, report) && self.inventory.manifest().completeness.is_complete()
    }

    fn directories<R: Report>(
        &self,
        operand: &[u8],
        top: &UsageRoot,
        report: &mut R,
    ) -> Result<Totals, QueryError> {
        let (options, once) = (self.options, self.options.links == HardLinks::Once);
        let mut total = Totals::NONE;
        usage::directories(self.inventory, top, options.depth_max, once, |usage| {
            let DirUsage { path, depth, own, entries, all } = usage;
            let below = path.get(top.path.len()..).unwrap_or_default();
            let below =
                if operand.ends_with(b"/") { below.strip_prefix(b"/").unwrap_or(below) } else { below };
            let path = [operand, below].concat();
            let (own, all, entries) = (self.totals(own), self.totals(all), self.totals(entries));
            let totals = if options.separate_dirs { &entries } else { &all };
            let depth = usize::try_from(*depth).unwrap_or(usize::MAX);
            let line = Line { path: &path, depth, totals, own: &own, meta: None, is_dir: true };
            report_line(options, &line, report);
            // The last directory is the operand.
            total = all;
        })?;
        Ok(total)
    }

    fn totals(&self, sum: &UsageSum) -> Totals {
        let bytes = match self.options.measure {
            Measure::Apparent => sum.apparent,
            _ => sum.allocated,
        };
        Totals { bytes, inodes: sum.entries, ..Totals::NONE }
    }

    fn replay<R: Report>(
        &self,
        span: Span,
        operand: Option<&[u8]>,
        run: &mut Replay<'_, R>,
    ) -> Result<(), QueryError> {
        let open = Vec::new();
        let ended = replay(self.inventory, span, ReplayAdapter { run, operand, open });
        if run.report().stopped() { Ok(()) } else { Ok(ended?) }
    }
}

/// Returns GNU du's message for a missing file.
fn absent(path: &[u8], charset: Charset) -> Message {
    fathom_du::problem::Problem::Access(path, Some(Errno::NOENT)).message(charset)
}

/// An adapter from the replay of an inventory to the accounting of du.
struct ReplayAdapter<'t, 'r, R> {
    run: &'t mut Replay<'r, R>,
    /// The path to print for the first directory.
    operand: Option<&'t [u8]>,
    /// For each directory on the stack, the error due to which some of its entries are missing.
    open: Vec<Option<Errno>>,
}

impl<R: Report> ReplayVisitor for ReplayAdapter<'_, '_, R> {
    fn entry(&mut self, item: &ReplayEntry<'_>) {
        let name = item.entry.name;
        let meta = item.entry.meta.ok_or(item.errno.unwrap_or(Errno::IO));
        if item.entry.depth == 0 {
            self.run.operand(name, meta);
        } else {
            self.run.entry(name, meta);
        }
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, state: DirState) {
        let is_operand = item.entry.depth == 0;
        let name = self.operand.filter(|_| is_operand).unwrap_or(item.entry.name);
        let errno = item.errno.filter(|_| state != DirState::Complete);
        match item.entry.meta {
            _ if state == DirState::Skipped => self.run.skip_directory(),
            None => self.run.skip_inaccessible(name, is_operand, errno.unwrap_or(Errno::IO)),
            Some(meta) => self.run.enter(name, is_operand, meta, errno.filter(|_| state == DirState::Failed)),
        }
        self.open.push(errno.filter(|_| state == DirState::Partial));
    }

    fn leave(&mut self) {
        let broken = self.open.pop().flatten();
        self.run.leave(broken);
    }

    fn should_continue(&mut self) -> bool {
        !self.run.report().stopped()
    }
}
