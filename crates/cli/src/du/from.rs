//! `--from`: an inventory is told to the same books as a walk. What only directories have to say comes from their rows alone.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use fathom_du::options::{Follow, Links, Measure, Options};
use fathom_du::retold::{self, Retold};
use fathom_du::scan::{Line, Operand, Outcome, Report};
use fathom_du::totals::Totals;
use fathom_inventory::replay::{Item, Visitor, replay};
use fathom_inventory::store::{Inventory, State};
use fathom_inventory::top::{Failure, Sum};
use fathom_inventory::usage::{self, Place, Span, Top, Usage};
use fathom_text::quote::Charset;
use fathom_walk::{Errno, Summary};

use crate::top;

/// A message without the program's name.
type Message = Vec<u8>;

/// Reports what the inventory at `path` has of `everything`, or of the operands that `report`
/// names.
pub(super) fn tell<R: Report>(
    (path, everything): (&Path, bool),
    options: &Arc<Options>,
    charset: Charset,
    report: &mut R,
) -> Result<Outcome, Message> {
    if options.follow != Follow::Never {
        return Err(b"links cannot be followed in an inventory (--from)".to_vec());
    }
    fathom_io::sys::keep_freed_memory();
    let refused = |failure| top::refusal(&failure, None, charset).0;
    let inventory = Inventory::open(path).map_err(|error| refused(Failure::Unreadable(error)))?;
    let teller = Teller { inventory: &inventory, options, charset };
    let told = if everything { teller.everything(report) } else { teller.tell(report) };
    let total = told.map_err(refused)?;
    let found = &inventory.manifest().completeness;
    if found.stopped.is_some() {
        report.message(top::warning(found).as_bytes());
    }
    let complete = !report.stopped();
    Ok(Outcome { total, summary: Summary { complete, ..Summary::default() } })
}

struct Teller<'a> {
    inventory: &'a Inventory,
    options: &'a Arc<Options>,
    charset: Charset,
}

/// An operand, and what it means.
type Asked = (Vec<u8>, Place);

impl Teller<'_> {
    fn tell<R: Report>(&self, report: &mut R) -> Result<Totals, Failure> {
        let asked = self.asked(report)?;
        let by_rows = self.is_by_rows(report);
        if let ([(path, Place::Directory(top))], true) = (&asked[..], by_rows) {
            return self.directories(path, top, report);
        }
        let ids = asked.iter().filter_map(|(_, place)| match place {
            Place::File(meta) => Some(meta.id()),
            Place::Directory(_) => None,
        });
        let files: HashSet<_> = ids.collect();
        let mut retold = Retold::new(self.options.clone(), (asked.len() > 1).then_some(files), report);
        for (path, place) in &asked {
            match place {
                Place::File(meta) => retold.operand(path, Ok(meta)),
                Place::Directory(top) => self.replay(top.span, Some(path), &mut retold)?,
            }
        }
        Ok(retold.end())
    }

    /// The operands that the inventory has.
    fn asked<R: Report>(&self, report: &mut R) -> Result<Vec<Asked>, Failure> {
        let mut asked = Vec::new();
        loop {
            match report.next_operand(true) {
                Operand::End => return Ok(asked),
                Operand::NotNow => continue,
                Operand::Message(message) => report.message(&message),
                Operand::Path(path) => {
                    let path = path.into_bytes();
                    match usage::find(self.inventory, &path) {
                        Ok(place) => asked.push((path, place)),
                        Err(Failure::Unreadable(error)) => return Err(Failure::Unreadable(error)),
                        Err(Failure::Absent) => report.message(&absent(&path, self.charset)),
                        Err(other) => report.message(&top::refusal(&other, Some(&path), self.charset).0),
                    }
                }
            }
        }
    }

    fn everything<R: Report>(&self, report: &mut R) -> Result<Totals, Failure> {
        let top = if self.is_by_rows(report) { usage::only_root(self.inventory)? } else { None };
        if let Some(top) = top {
            return self.directories(&top.path, &top, report);
        }
        let several = self.inventory.manifest().roots.len() > 1;
        let files = several.then(|| usage::files(self.inventory)).transpose()?;
        let files = files.map(|files| files.into_iter().collect());
        let mut retold = Retold::new(self.options.clone(), files, report);
        self.replay(Span::ALL, None, &mut retold)?;
        if self.inventory.manifest().completeness.missing_roots > 0 {
            let missing = usage::missing(self.inventory)?;
            for root in self.inventory.manifest().roots.iter().map(fathom_inventory::store::Root::bytes) {
                if let Some(errno) = missing.get(&root) {
                    retold.operand(&root, Err(*errno));
                }
            }
        }
        Ok(retold.end())
    }

    /// Whether rows of directories say everything.
    fn is_by_rows(&self, report: &impl Report) -> bool {
        retold::is_of_directories(self.options, report)
            && self.inventory.manifest().completeness.is_complete()
    }

    fn directories<R: Report>(&self, operand: &[u8], top: &Top, report: &mut R) -> Result<Totals, Failure> {
        let (options, once) = (self.options, self.options.links == Links::Once);
        let mut total = Totals::NONE;
        usage::directories(self.inventory, top, options.depth_max, once, |usage| {
            let Usage { path, depth, own, entries, all } = usage;
            let below = path.get(top.path.len()..).unwrap_or_default();
            let below =
                if operand.ends_with(b"/") { below.strip_prefix(b"/").unwrap_or(below) } else { below };
            let path = [operand, below].concat();
            let (own, all, entries) = (self.totals(own), self.totals(all), self.totals(entries));
            let totals = if options.separate_dirs { &entries } else { &all };
            let depth = usize::try_from(*depth).unwrap_or(usize::MAX);
            let line = Line { path: &path, depth, totals, own: &own, meta: None, is_dir: true };
            retold::report_line(options, &line, report);
            // The last is the operand.
            total = all;
        })?;
        Ok(total)
    }

    fn totals(&self, sum: &Sum) -> Totals {
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
        retold: &mut Retold<'_, R>,
    ) -> Result<(), Failure> {
        let open = Vec::new();
        let ended = replay(self.inventory, span, Telling { retold, operand, open });
        if retold.report().stopped() { Ok(()) } else { Ok(ended?) }
    }
}

/// In the words for what is not there on a disk.
fn absent(path: &[u8], charset: Charset) -> Message {
    fathom_du::problem::Problem::Access(path, Some(Errno::NOENT)).message(charset)
}

/// Tells what it is told.
struct Telling<'t, 'r, R> {
    retold: &'t mut Retold<'r, R>,
    /// What the first directory is called.
    operand: Option<&'t [u8]>,
    /// Of directories that have been entered, why some of their entries are missing.
    open: Vec<Option<Errno>>,
}

impl<R: Report> Visitor for Telling<'_, '_, R> {
    fn entry(&mut self, item: &Item<'_>) {
        let name = item.entry.name;
        let meta = item.entry.meta.ok_or(item.errno.unwrap_or(Errno::IO));
        if item.entry.depth == 0 {
            self.retold.operand(name, meta);
        } else {
            self.retold.entry(name, meta);
        }
    }

    fn enter(&mut self, item: &Item<'_>, state: State) {
        let is_operand = item.entry.depth == 0;
        let name = self.operand.filter(|_| is_operand).unwrap_or(item.entry.name);
        let errno = item.errno.filter(|_| state != State::Complete);
        match item.entry.meta {
            _ if state == State::Skipped => self.retold.pass_over(),
            None => self.retold.lose(name, is_operand, errno.unwrap_or(Errno::IO)),
            Some(meta) => self.retold.enter(name, is_operand, meta, errno.filter(|_| state == State::Failed)),
        }
        self.open.push(errno.filter(|_| state == State::Partial));
    }

    fn leave(&mut self) {
        let broken = self.open.pop().flatten();
        self.retold.leave(broken);
    }

    fn goes_on(&mut self) -> bool {
        !self.retold.report().stopped()
    }
}
