//! `fathom top`: from the command line to the exit status.

mod args;
pub(crate) mod show;
pub(crate) mod table;

use std::ffi::OsString;

use fathom_questions::top::{QueryError, UsageReport, report};
use fathom_text::quote::Charset;

use self::args::TopArgs;
use crate::shared::inventory::{self, failure_message, incomplete_warning};
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
    let opened = inventory::open(&args.inventory).map_err(QueryError::from);
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
        show::text(report, args.ask.by, &Screen::new(ShowWhen::Never, charset), &mut out);
    }
    out.finish(NAME)
}

/// Reports why there is no report. Returns the exit status.
fn report_failure(failure: &QueryError, args: &TopArgs, charset: Charset) -> u8 {
    let (message, status) = failure_message(failure, args.ask.below.as_deref(), charset);
    print_error(&message);
    status
}
