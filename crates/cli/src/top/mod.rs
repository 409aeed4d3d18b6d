//! `fathom top`: from the command line to the exit status.

mod args;
mod show;
pub(crate) mod table;

use std::ffi::OsString;

use fathom_inventory::store::{Completeness, Inventory};
use fathom_inventory::top::{QueryError, UsageReport, report};
use fathom_text::quote::{Charset, quoteaf};

use self::args::TopArgs;
use crate::scan::unknown_values;
use crate::shared::cmdline::exit::{FAILED, MISUSED};
use crate::shared::locale;
use crate::shared::output::{self, Output};
use crate::shared::screen::Screen;
use crate::shared::value::ShowWhen;

const NAME: &str = table::TOP.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset),
        Err(end) => end.answer(&table::TOP),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(args: &TopArgs, charset: Charset) -> u8 {
    let opened = Inventory::open(&args.inventory).map_err(QueryError::from);
    let made = opened.and_then(|inventory| Ok((report(&inventory, &args.ask)?, inventory)));
    match made {
        Ok((report, inventory)) => {
            let found = &inventory.manifest().completeness;
            if !found.is_complete() {
                print_error(incomplete_warning(found).as_bytes());
            }
            show(args, &report, found.is_complete(), charset)
        }
        Err(failure) => report_failure(&failure, args, charset),
    }
}

fn show(args: &TopArgs, report: &UsageReport, complete: bool, charset: Charset) -> u8 {
    let mut out = Output::new();
    if args.json {
        show::json(report, args.ask.by, complete, &mut out);
    } else {
        show::text(report, &Screen::new(ShowWhen::Never, charset), &mut out);
    }
    out.finish(NAME)
}

/// Returns the warning about an incomplete inventory.
pub(crate) fn incomplete_warning(found: &Completeness) -> String {
    format!("warning: the inventory{}", gaps(found))
}

/// Returns the gaps of an inventory, as the predicate of a sentence.
pub(crate) fn gaps(found: &Completeness) -> String {
    let lacking = found.partial + found.failed + found.missing_roots;
    let all = lacking + found.complete;
    let why = found.stopped.as_ref().map_or_else(String::new, |why| format!(" ({})", why.escape_debug()));
    format!(
        " is incomplete{why}: {lacking} of {all} directories known are not there or not whole, \
         {} entries are without metadata{}",
        found.unknown_entries,
        unknown_values(found),
    )
}

/// Reports why there is no report. Returns the exit status.
fn report_failure(failure: &QueryError, args: &TopArgs, charset: Charset) -> u8 {
    let (message, status) = failure_message(failure, args.ask.below.as_deref(), charset);
    print_error(&message);
    status
}

/// Returns the message and the exit status for a failed report about `below`.
pub(crate) fn failure_message(failure: &QueryError, below: Option<&[u8]>, charset: Charset) -> (Vec<u8>, u8) {
    let below = || quoteaf(below.unwrap_or_default(), charset);
    match failure {
        QueryError::Absent => ([b"the inventory has no directory ", &below()[..]].concat(), MISUSED),
        QueryError::Ambiguous => {
            let message =
                [b"the inventory has several directories ", &below()[..], b": give the whole path"].concat();
            (message, MISUSED)
        }
        QueryError::Unreadable(error) => (error.to_string().into_bytes(), FAILED),
    }
}
