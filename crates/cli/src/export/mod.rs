//! `fathom export`: from the command line to the exit status.

mod args;
mod draft;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use fathom_inventory::export::{Failure, export};
use fathom_inventory::store::Inventory;
use fathom_text::quote::Charset;

use self::args::{Asked, ExportArgs};
use self::draft::Draft;
use crate::flag::Scope;
use crate::interrupt::{INTERRUPTED, stop_on_interrupt};
use crate::output::{self, Output, print, say_misuse};
use crate::top::{refusal, warning};
use crate::{help, locale};

const NAME: &str = "fathom export";
/// Exit status where not everything was written.
const FAILED: u8 = 1;
/// Exit status where something was asked for that makes no sense.
const MISUSED: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    match args::parse(words, charset) {
        Ok(Asked::Export(args)) => run(&args, charset),
        Ok(Asked::Help) => print(NAME, &help::render(&table::EXPORT, NAME, Scope::Full)),
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

fn run(args: &ExportArgs, charset: Charset) -> u8 {
    let inventory = match Inventory::open(&args.inventory) {
        Ok(inventory) => inventory,
        Err(error) => {
            say(error.to_string().as_bytes());
            return FAILED;
        }
    };
    let found = &inventory.manifest().completeness;
    if !found.is_complete() {
        say(warning(found).as_bytes());
    }
    match &args.output {
        Some(path) => to_file(&inventory, args, path, charset),
        None => to_stdout(&inventory, args, charset),
    }
}

fn to_stdout(inventory: &Inventory, args: &ExportArgs, charset: Charset) -> u8 {
    let mut out = Output::new();
    let exported = export(inventory, &args.ask, &mut |bytes| {
        out.write(bytes);
        // `finish` says why.
        if out.has_failed() { Err(ErrorKind::Other.into()) } else { Ok(()) }
    });
    match exported {
        Ok(()) | Err(Failure::Refused(_)) => out.finish(NAME),
        Err(Failure::Inventory(failure)) => {
            let (message, status) = refusal(&failure, args.ask.below.as_deref(), charset);
            say(&message);
            status
        }
    }
}

/// Writes a file that has its name once it is whole, and is not there otherwise.
fn to_file(inventory: &Inventory, args: &ExportArgs, path: &Path, charset: Charset) -> u8 {
    let stop = stop_on_interrupt();
    let mut draft = match Draft::create(path) {
        Ok(draft) => draft,
        Err(refused) => {
            say(&refused.message(charset));
            return FAILED;
        }
    };
    let exported = export(inventory, &args.ask, &mut |bytes| {
        if stop.load(Ordering::Relaxed) {
            Err(io::Error::from(ErrorKind::Interrupted))
        } else {
            draft.write(bytes)
        }
    });
    let message = match exported {
        Ok(()) => match draft.publish() {
            Ok(()) => return 0,
            Err(refused) => refused.message(charset),
        },
        Err(Failure::Refused(_)) if stop.load(Ordering::Relaxed) => return INTERRUPTED,
        Err(Failure::Refused(error)) => draft.cannot_be_written(error).message(charset),
        Err(Failure::Inventory(failure)) => {
            let (message, status) = refusal(&failure, args.ask.below.as_deref(), charset);
            say(&message);
            return status;
        }
    };
    say(&message);
    FAILED
}
