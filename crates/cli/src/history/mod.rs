//! `fathom history`: from the command line to the exit status.

mod args;
pub(crate) mod prune;
mod show;
pub(crate) mod table;

use std::ffi::OsString;
use std::path::Path;

use fathom_inventory::store::Error;
use fathom_scans::history::{History, HistoryLock, Retention};
use fathom_text::quote::{Charset, quoteaf};

use self::args::HistoryAction;
use self::prune::Pruning;
use self::show::SnapshotFacts;
use crate::shared::cmdline::exit::{DONE, FAILED, MISUSED};
use crate::shared::locale;
use crate::shared::output::{self, Output};
use crate::shared::screen::Screen;
use crate::shared::value::ShowWhen;

const NAME: &str = table::HISTORY.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    let done = match args::parse(words.into_iter(), charset) {
        Ok(HistoryAction::List { store, json }) => list(&store, json, charset),
        Ok(HistoryAction::Prune { store, retention, dry_run }) => {
            prune_store(&store, &retention, dry_run, charset)
        }
        Err(end) => return end.answer(&table::HISTORY),
    };
    done.unwrap_or_else(|error| {
        print_error(error.to_string().as_bytes());
        MISUSED
    })
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn list(store: &Path, json: bool, charset: Charset) -> Result<u8, Error> {
    let snapshots = History::open(store)?.snapshots()?;
    report_empty(store, snapshots.is_empty(), charset);
    let (mut out, screen) = (Output::new(), Screen::new(ShowWhen::Never, charset));
    let (mut has_failed, lines) = (false, show::SnapshotLines::new(screen));
    if !json && !snapshots.is_empty() {
        lines.write_header(out.buffer());
    }
    for snapshot in &snapshots {
        let facts = SnapshotFacts::of(snapshot, &mut |error| {
            has_failed = true;
            print_error(error.to_string().as_bytes());
        });
        if json {
            facts.write_json(out.buffer())
        } else {
            lines.write(&facts, out.buffer())
        }
        out.flush_if_full();
    }
    let written = out.finish(NAME);
    Ok(if has_failed { FAILED } else { written })
}

/// Says that a directory has no inventories of `fathom scan --keep`: it may be another one than was
/// meant.
fn report_empty(store: &Path, is_empty: bool, charset: Charset) {
    if is_empty {
        let store = quoteaf(store.as_os_str().as_encoded_bytes(), charset);
        print_error(&[&store[..], b" contains no inventories of fathom scan --keep"].concat());
    }
}

fn prune_store(store: &Path, retention: &Retention, dry_run: bool, charset: Charset) -> Result<u8, Error> {
    let history = History::open(store)?;
    report_empty(store, history.snapshots()?.is_empty(), charset);
    prune::report_later(&prune::until_now(&history)?.1, charset, &mut print_error);
    let (mut out, screen) = (Output::new(), Screen::new(ShowWhen::Never, charset));
    let mut print = |path: &Path| {
        out.buffer().extend_from_slice(&screen.name(path.as_os_str().as_encoded_bytes()));
        out.buffer().push(b'\n');
        out.flush_if_full();
    };
    // A dry run writes nothing, so it needs no lock.
    let lock = if dry_run { None } else { Some(history.lock(&mut print_error)?) };
    let pruning = Pruning { retention, made: None, dry_run };
    let has_pruned = prune::run(&history, pruning, charset, &mut print, &mut print_error)?;
    lock.map_or(Ok(()), HistoryLock::release)?;
    let written = out.finish(NAME);
    Ok(if has_pruned && written == DONE { DONE } else { FAILED })
}
