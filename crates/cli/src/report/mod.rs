//! `fathom report`: from the command line to the exit status.

mod args;
pub(crate) mod table;

use std::ffi::OsString;
use std::path::Path;

use fathom_inventory::store::{Draft, Inventory};
use fathom_questions::top::QueryError;
use fathom_report::{ReportOptions, report};

use self::args::ReportArgs;
use crate::shared::cmdline::exit::{DONE, FAILED};
use crate::shared::interrupt::TerminationSignals;
use crate::shared::inventory::{self, incomplete_warning, now_us};
use crate::shared::locale;
use crate::shared::output::{self, Output};

const NAME: &str = table::REPORT.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args),
        Err(end) => end.answer(&table::REPORT),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(args: &ReportArgs) -> u8 {
    let page = match page(args) {
        Ok(page) => page,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            return FAILED;
        }
    };
    match &args.output {
        Some(path) => to_file(path, page.as_bytes()),
        None => {
            let mut out = Output::new();
            out.write(page.as_bytes());
            out.finish(NAME)
        }
    }
}

fn page(args: &ReportArgs) -> Result<String, QueryError> {
    let inventory = inventory::open(&args.inventory)?;
    let since = args.since.as_deref().map(Inventory::open).transpose()?;
    let found = &inventory.manifest().completeness;
    if !found.is_complete() {
        print_error(incomplete_warning(found).as_bytes());
    }
    report(&inventory, &ReportOptions { since: since.as_ref(), now: now_us(), fetches: None })
}

/// Writes a file that appears under its name only when it is complete.
fn to_file(path: &Path, page: &[u8]) -> u8 {
    // A signal takes effect once the temporary file has its final name, or is removed.
    let _signals = TerminationSignals::on_signals();
    let written = Draft::create(path).and_then(|mut draft| {
        draft.write(page).map_err(|error| draft.cannot_write(error))?;
        draft.publish()
    });
    match written {
        Ok(()) => DONE,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            FAILED
        }
    }
}
