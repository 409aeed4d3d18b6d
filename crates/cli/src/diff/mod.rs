//! `fathom diff`: from the command line to the exit status.

mod args;
mod show;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_inventory::store::{Error, Inventory};
use fathom_questions::diff::{Change, ChangeKind, ChangeTable, DiffSummary, Sides, diff, growth};
use fathom_questions::top::QueryError;
use fathom_text::quote::{Charset, quoteaf};

use self::args::{DiffArgs, DiffForm};
use crate::shared::cmdline::exit::{DIFFERENT, MISUSED, SAME};
use crate::shared::inventory::gaps;
use crate::shared::locale;
use crate::shared::output::{self, Output, reason};
use crate::shared::screen::Screen;
use crate::shared::value::ShowWhen;

const NAME: &str = table::DIFF.name;
/// The number of uncompared trees that are named in warnings.
const NAMED_MAX: usize = 3;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset),
        Err(end) => end.answer(&table::DIFF),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(args: &DiffArgs, charset: Charset) -> u8 {
    let Sides { old, new } = &args.inventories;
    let opened = Inventory::open(old).and_then(|old| Ok((old, Inventory::open(new)?)));
    let (old, new) = match opened {
        Ok(opened) => opened,
        Err(error) => return report_failure(&error.into(), args, charset),
    };
    let run = Comparison { args, inventories: Sides { old: &old, new: &new }, charset };
    let shown = match &args.form {
        DiffForm::Dirs { lines, json } => run.dirs(*lines, *json),
        DiffForm::Parquet(file) => match open_parquet(file.as_deref()) {
            Ok(sheet) => run.parquet(sheet),
            Err(message) => {
                print_error(&message);
                return MISUSED;
            }
        },
        DiffForm::Text | DiffForm::Json | DiffForm::Null => run.changes(),
    };
    shown.unwrap_or_else(|failure| report_failure(&failure, args, charset))
}

/// Reports why there is nothing to show. Returns the exit status.
fn report_failure(failure: &QueryError, args: &DiffArgs, charset: Charset) -> u8 {
    let below = || quoteaf(args.ask.below.as_deref().unwrap_or_default(), charset);
    match failure {
        QueryError::Absent => print_error(&[b"no inventory has a directory ", &below()[..]].concat()),
        QueryError::Ambiguous => {
            print_error(
                &[b"an inventory has several directories ", &below()[..], b": use the whole path"].concat(),
            );
        }
        _ => print_error(failure.to_string().as_bytes()),
    }
    MISUSED
}

/// Creates the Parquet file, or a writer to standard output.
fn open_parquet(file: Option<&Path>) -> Result<ChangeTable, Vec<u8>> {
    let made = match file {
        Some(file) => ChangeTable::create(file),
        None if std::io::stdout().is_terminal() => {
            return Err(b"cannot write Parquet to a terminal: redirect standard output".to_vec());
        }
        None => {
            let stdout = std::io::stdout().as_fd().try_clone_to_owned();
            let stdout = stdout.map_err(|error| [b"standard output: ", &reason(&error)[..]].concat())?;
            ChangeTable::to_stream(stdout.into(), Path::new("-"))
        }
    };
    made.map_err(|error| error.to_string().into_bytes())
}

/// Two open inventories and the arguments of their comparison.
struct Comparison<'a> {
    args: &'a DiffArgs,
    inventories: Sides<&'a Inventory>,
    charset: Charset,
}

impl Comparison<'_> {
    /// Calls `each` for every change that `--only` selects.
    fn each(&self, mut each: impl FnMut(&Change) -> ControlFlow<()>) -> Result<DiffSummary, QueryError> {
        let mut counts = [0; ChangeKind::ALL.len()];
        let summary = diff(&self.inventories, &self.args.ask, &mut |change| {
            if !self.args.only.contains(&change.kind) {
                return ControlFlow::Continue(());
            }
            counts[change.kind as usize] += 1;
            each(change)
        })?;
        Ok(DiffSummary { counts, ..summary })
    }

    fn changes(&self) -> Result<u8, QueryError> {
        let (screen, json) = (Screen::new(ShowWhen::Never, self.charset), show::ChangeJson::new());
        let mut out = Output::new();
        let summary = self.each(|change| {
            match self.args.form {
                DiffForm::Json => json.write(change, out.buffer()),
                DiffForm::Null => out.buffer().extend_from_slice(&[&change.path[..], b"\0"].concat()),
                _ => show::text(change, &screen, out.buffer()),
            }
            out.flush_if_full();
            if out.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if self.args.form == DiffForm::Json {
            show::json_end(&summary, self.is_complete(&summary.unmatched), out.buffer());
        }
        let written = out.finish(NAME) == 0;
        Ok(if written { self.report_unknown(&summary) } else { MISUSED })
    }

    fn parquet(&self, mut sheet: ChangeTable) -> Result<u8, QueryError> {
        let mut failed: Option<Error> = None;
        let summary = self.each(|change| match sheet.push(change) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or_else(|| sheet.finish(), Err)?;
        Ok(self.report_unknown(&summary))
    }

    fn dirs(&self, lines: usize, json: bool) -> Result<u8, QueryError> {
        let report = growth(&self.inventories, &self.args.ask, lines)?;
        let mut out = Output::new();
        if json {
            show::dirs_json(&report, self.is_complete(&report.unmatched), &mut out);
        } else {
            show::dirs(&report, &Screen::new(ShowWhen::Never, self.charset), &mut out);
        }
        if out.finish(NAME) != 0 {
            return Ok(MISUSED);
        }
        Ok(self.status(!report.rows.is_empty(), &report.unmatched))
    }

    /// Reports the entries that could not be compared. Returns the exit status.
    fn report_unknown(&self, summary: &DiffSummary) -> u8 {
        let status = self.status(summary.counts.iter().any(|count| *count > 0), &summary.unmatched);
        if summary.unknown > 0 {
            let count = summary.unknown;
            let what = "are not shown, because the other inventory is incomplete there";
            print_error(format!("warning: {count} entries of one inventory {what}").as_bytes());
        }
        if status == SAME && summary.unknown > 0 { MISUSED } else { status }
    }

    /// Reports incomplete inventories and uncompared trees. Returns the exit status.
    fn status(&self, differs: bool, unmatched: &Sides<Vec<Vec<u8>>>) -> u8 {
        let paths = &self.args.inventories;
        let quoted = |path: &Path| quoteaf(path.as_os_str().as_bytes(), self.charset);
        let sides = [
            (self.inventories.old, &paths.old, &unmatched.old, &paths.new),
            (self.inventories.new, &paths.new, &unmatched.new, &paths.old),
        ];
        for (inventory, path, unmatched, other) in sides {
            let found = &inventory.manifest().completeness;
            if !found.is_complete() {
                print_error(&[b"warning: ", &quoted(path)[..], gaps(found).as_bytes()].concat());
            }
            for root in unmatched.iter().take(NAMED_MAX) {
                let root = quoteaf(root, self.charset);
                let parts =
                    [&quoted(path)[..], b" has ", &root, b", which ", &quoted(other), b" does not have"];
                print_error(&[b"warning: ", &parts.concat()[..], b": not compared"].concat());
            }
            if unmatched.len() > NAMED_MAX {
                print_error(
                    format!("warning: {} other trees are not compared either", unmatched.len() - NAMED_MAX)
                        .as_bytes(),
                );
            }
        }
        match (differs, self.is_complete(unmatched)) {
            (true, _) => DIFFERENT,
            (false, true) => SAME,
            (false, false) => MISUSED,
        }
    }

    fn is_complete(&self, unmatched: &Sides<Vec<Vec<u8>>>) -> bool {
        let is_whole = |inventory: &Inventory| inventory.manifest().completeness.is_complete();
        let Sides { old, new } = self.inventories;
        is_whole(old) && is_whole(new) && unmatched.old.is_empty() && unmatched.new.is_empty()
    }
}
