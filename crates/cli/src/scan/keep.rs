//! `fathom scan --keep`: makes an inventory in a store of dated ones, from the one before, and
//! removes those that no rule keeps.

use std::path::PathBuf;
use std::time::SystemTime;

use fathom_inventory::history::{History, Retention, absolute, earlier, unfinished};
use fathom_inventory::scan::seconds;
use fathom_inventory::store::Error;
use fathom_text::quote::{Charset, quoteaf};

use super::args::ScanArgs;
use super::print_error;
use crate::history::prune;
use crate::shared::cmdline::exit::{DONE, FAILED, MISUSED};

/// The arguments of a scan into a store.
#[derive(Debug)]
pub(crate) struct KeepArgs {
    /// The scan. Its output and the earlier inventory are chosen in the store.
    pub(crate) scan: ScanArgs,
    pub(crate) store: PathBuf,
    /// Whether every directory is read.
    pub(crate) full: bool,
    pub(crate) retention: Retention,
}

/// Runs the scan. Returns the exit status.
pub(super) fn run(args: KeepArgs, charset: Charset) -> u8 {
    let begun = History::create(&args.store).and_then(|history| {
        let lock = history.lock(&mut print_error)?;
        Ok((history, lock))
    });
    let ended = begun.and_then(|(history, lock)| {
        let status = run_locked(args, &history, charset)?;
        lock.release()?;
        Ok(status)
    });
    ended.unwrap_or_else(|error| {
        print_error(error.to_string().as_bytes());
        MISUSED
    })
}

fn run_locked(args: KeepArgs, history: &History, charset: Charset) -> Result<u8, Error> {
    let KeepArgs { scan: mut args, full, retention, .. } = args;
    for root in &mut args.scan.roots {
        *root = absolute(root)?;
    }
    let snapshots = history.snapshots()?;
    match unfinished(&snapshots, &args.scan.roots, full).filter(|_| args.resume) {
        Some(snapshot) => args.output = snapshot.final_path(),
        None => {
            args.output = history.free_path(seconds(SystemTime::now()));
            let earlier = earlier(&snapshots, &args.scan).filter(|_| !full);
            args.scan.since = earlier.map(|snapshot| snapshot.path.clone());
            if args.scan.since.is_none() && !full {
                let store = quoteaf(history.directory().as_os_str().as_encoded_bytes(), charset);
                let why = b" has no inventory of the same trees and options to continue from: every directory is read";
                print_error(&[&store[..], why].concat());
            }
        }
    }
    let status = super::make(args, charset);
    if retention.is_empty() || ![DONE, FAILED].contains(&status) {
        return Ok(status);
    }
    let has_pruned = prune::run(history, &retention, &mut |_| (), &mut print_error);
    let has_pruned = has_pruned.unwrap_or_else(|error| {
        print_error(error.to_string().as_bytes());
        false
    });
    Ok(if has_pruned { status } else { FAILED })
}
