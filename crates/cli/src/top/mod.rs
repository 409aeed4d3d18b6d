//! `fathom top`: from the command line to the exit status.

mod args;
mod show;
pub(crate) mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_inventory::store::{Completeness, Inventory};
use fathom_inventory::top::{Failure, Report, report};
use fathom_text::quote::{Charset, quoteaf};

use self::args::{Asked, TopArgs};
use crate::du::extra::When;
use crate::du::view::screen::Screen;
use crate::flag::Scope;
use crate::output::{self, Output, print, say_misuse};
use crate::scan::unknown_values;
use crate::{help, locale};

const NAME: &str = "fathom top";
/// Exit status where the inventory cannot be read.
const UNREADABLE: u8 = 1;
/// Exit status where something was asked for that makes no sense.
const MISUSED: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    match args::parse(words, charset) {
        Ok(Asked::Top(args)) => run(&args, charset),
        Ok(Asked::Help) => print(NAME, &help::render(&table::TOP, NAME, Scope::Full)),
        Ok(Asked::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            say_misuse(NAME, &message);
            MISUSED
        }
    }
}

fn say(message: &[u8]) {
    output::say(NAME, message);
}

fn run(args: &TopArgs, charset: Charset) -> u8 {
    let opened = Inventory::open(&args.inventory).map_err(Failure::from);
    let made = opened.and_then(|inventory| Ok((report(&inventory, &args.ask)?, inventory)));
    match made {
        Ok((report, inventory)) => {
            let found = &inventory.manifest().completeness;
            if !found.is_complete() {
                say(warning(found).as_bytes());
            }
            show(args, &report, found.is_complete(), charset)
        }
        Err(failure) => refuse(&failure, args, charset),
    }
}

fn show(args: &TopArgs, report: &Report, complete: bool, charset: Charset) -> u8 {
    let mut out = Output::new();
    if args.json {
        show::json(report, args.ask.by, complete, &mut out);
    } else {
        show::text(report, &Screen::new(When::Never, charset), &mut out);
    }
    out.finish(NAME)
}

/// What an incomplete inventory is said to lack.
pub(crate) fn warning(found: &Completeness) -> String {
    format!("warning: the inventory{}", lack(found))
}

/// What is missing in an inventory, as the rest of a sentence about it.
pub(crate) fn lack(found: &Completeness) -> String {
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

/// Says why there is no report; the exit status.
fn refuse(failure: &Failure, args: &TopArgs, charset: Charset) -> u8 {
    let (message, status) = refusal(failure, args.ask.below.as_deref(), charset);
    say(&message);
    status
}

/// What there is to say, and the exit status, where an inventory has nothing to tell of what is `below`.
pub(crate) fn refusal(failure: &Failure, below: Option<&[u8]>, charset: Charset) -> (Vec<u8>, u8) {
    let below = || quoteaf(below.unwrap_or_default(), charset);
    match failure {
        Failure::Absent => ([b"the inventory has no directory ", &below()[..]].concat(), MISUSED),
        Failure::Ambiguous => {
            let message =
                [b"the inventory has several directories ", &below()[..], b": give the whole path"].concat();
            (message, MISUSED)
        }
        Failure::Unreadable(error) => (error.to_string().into_bytes(), UNREADABLE),
    }
}
