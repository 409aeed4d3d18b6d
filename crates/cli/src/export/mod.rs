//! `fathom export`: from the command line to the exit status.

mod args;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::Ordering;

use fathom_inventory::store::{Draft, Inventory};
use fathom_questions::export::{
    ExportError, ExportOptions, PrometheusOptions, export, prometheus, replace_public,
};
use fathom_text::quote::Charset;

use self::args::{ExportArgs, ExportAsk};
use crate::shared::cmdline::exit::{DONE, FAILED, INTERRUPTED};
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::inventory::{self, failure_message, incomplete_warning};
use crate::shared::locale;
use crate::shared::output::{self, Output};

const NAME: &str = table::EXPORT.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset),
        Err(end) => end.answer(&table::EXPORT),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(args: &ExportArgs, charset: Charset) -> u8 {
    let inventory = match inventory::open(&args.inventory) {
        Ok(inventory) => inventory,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            return FAILED;
        }
    };
    let found = &inventory.manifest().completeness;
    if !found.is_complete() {
        print_error(incomplete_warning(found).as_bytes());
    }
    match (&args.ask, &args.output) {
        (ExportAsk::Entries(ask), Some(path)) => to_file(&inventory, ask, path, charset),
        (ExportAsk::Entries(ask), None) => to_stdout(&inventory, ask, charset),
        (ExportAsk::Prometheus(ask), path) => sums(&inventory, ask, path.as_deref()),
    }
}

/// Writes the sums for Prometheus.
fn sums(inventory: &Inventory, ask: &PrometheusOptions, path: Option<&Path>) -> u8 {
    let text = match prometheus(inventory, ask) {
        Ok(text) => text,
        Err(failure) => {
            print_error(failure.to_string().as_bytes());
            return FAILED;
        }
    };
    let Some(path) = path else {
        let mut out = Output::new();
        out.write(text.as_bytes());
        return out.finish(NAME);
    };
    match replace_public(path, &text) {
        Ok(()) => DONE,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            FAILED
        }
    }
}

fn to_stdout(inventory: &Inventory, ask: &ExportOptions, charset: Charset) -> u8 {
    let mut out = Output::new();
    let exported = export(inventory, ask, &mut |bytes| {
        out.write(bytes);
        // `finish` reports the cause.
        if out.has_failed() { Err(ErrorKind::Other.into()) } else { Ok(()) }
    });
    match exported {
        Ok(()) | Err(ExportError::Refused(_)) => out.finish(NAME),
        Err(ExportError::Inventory(failure)) => {
            let (message, status) = failure_message(&failure, ask.below.as_deref(), charset);
            print_error(&message);
            status
        }
        Err(failure) => {
            print_error(failure.to_string().as_bytes());
            FAILED
        }
    }
}

/// Writes a file that appears under its name only when it is complete.
fn to_file(inventory: &Inventory, ask: &ExportOptions, path: &Path, charset: Charset) -> u8 {
    let stop = stop_on_interrupt();
    let mut draft = match Draft::create(path) {
        Ok(draft) => draft,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            return FAILED;
        }
    };
    let exported = export(inventory, ask, &mut |bytes| {
        if stop.load(Ordering::Relaxed) {
            Err(io::Error::from(ErrorKind::Interrupted))
        } else {
            draft.write(bytes)
        }
    });
    let message = match exported {
        Ok(()) => match draft.publish() {
            Ok(()) => return DONE,
            Err(error) => error.to_string().into_bytes(),
        },
        Err(ExportError::Refused(_)) if stop.load(Ordering::Relaxed) => return INTERRUPTED,
        Err(ExportError::Refused(error)) => draft.cannot_write(error).to_string().into_bytes(),
        Err(ExportError::Inventory(failure)) => {
            let (message, status) = failure_message(&failure, ask.below.as_deref(), charset);
            print_error(&message);
            return status;
        }
        Err(failure) => failure.to_string().into_bytes(),
    };
    print_error(&message);
    FAILED
}
