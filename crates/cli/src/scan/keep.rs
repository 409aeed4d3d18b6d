//! `fathom scan --keep`: makes an inventory in a store of dated ones, and removes inventories that
//! no rule keeps.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fathom_inventory::store::{Error, Manifest};
use fathom_scans::history::{
    History, Retention, Snapshot, abandoned, absolute, earlier, have_same_trees, remove, replaced, unfinished,
};
use fathom_scans::scan::seconds;
use fathom_text::quote::{Charset, quoteaf};
use rustix::io::Errno;

use super::args::ScanArgs;
use super::print_error;
use crate::history::prune::{self, Pruning};
use crate::shared::cmdline::exit::{DONE, FAILED, MISUSED};

/// The arguments of a scan into a store.
#[derive(Debug)]
pub(crate) struct KeepArgs {
    /// The scan. Its output and the earlier inventory are chosen in the store.
    pub(crate) scan: ScanArgs,
    pub(crate) store: PathBuf,
    /// Whether directories that have not changed are taken from the inventory before.
    pub(crate) only_changed: bool,
    pub(crate) retention: Retention,
}

/// Runs the scan. Returns the exit status.
pub(super) fn run(args: KeepArgs, charset: Charset) -> u8 {
    let begun = History::create(&args.store, args.scan.scan.mode).and_then(|history| {
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
    let KeepArgs { scan: mut args, only_changed, retention, .. } = args;
    if !args.resume && !is_any_there(&args.scan.roots, charset) {
        return Ok(MISUSED);
    }
    for root in &mut args.scan.roots {
        *root = absolute(root)?;
    }
    if !args.resume {
        make_room(history, &args, &retention, charset)?;
    }
    let (snapshots, later) = prune::until_now(history)?;
    prune::report_later(&later, charset, &mut print_error);
    match unfinished(&snapshots, &args.scan.roots, !only_changed).filter(|_| args.resume) {
        Some(snapshot) => args.output = snapshot.final_path(),
        None if args.resume && args.scan.roots.is_empty() => {
            let store = quoteaf(history.directory().as_os_str().as_encoded_bytes(), charset);
            print_error(&[b"no scan to continue in ", &store[..], b": give a PATH"].concat());
            return Ok(MISUSED);
        }
        None => {
            args.output = history.free_path(seconds(SystemTime::now()));
            let earlier = earlier(&snapshots, &args.scan).filter(|_| only_changed);
            args.scan.since = earlier.map(|snapshot| snapshot.path.clone());
            if args.scan.since.is_none() && only_changed {
                let store = quoteaf(history.directory().as_os_str().as_encoded_bytes(), charset);
                let why = b" has no earlier inventory of the same trees and options: reading every directory";
                print_error(&[&store[..], why].concat());
            }
        }
    }
    let made = args.output.clone();
    let status = super::make(args, charset);
    if ![DONE, FAILED].contains(&status) {
        return Ok(status);
    }
    let is_expected = is_expected(&snapshots, &made, charset);
    let pruning = Pruning { retention: &retention, made: Some(&made), dry_run: false };
    let pruned = match retention.is_empty() {
        true => Ok(true),
        false => prune::run(history, pruning, charset, &mut |_| (), &mut print_error),
    };
    let has_pruned = pruned.unwrap_or_else(|error| {
        print_error(error.to_string().as_bytes());
        false
    });
    Ok(if has_pruned && is_expected { status } else { FAILED })
}

/// Removes what no rule keeps, and what failed scans have left, before a scan needs the room.
/// Errors of inventories that no rule keeps are reported after the scan.
fn make_room(
    history: &History,
    args: &ScanArgs,
    retention: &Retention,
    charset: Charset,
) -> Result<(), Error> {
    if !retention.is_empty() {
        let pruning = Pruning { retention, made: None, dry_run: false };
        prune::run(history, pruning, charset, &mut |_| (), &mut |_| ())?;
    }
    for snapshot in abandoned(&history.snapshots()?, &args.scan) {
        remove(snapshot).unwrap_or_else(|error| print_error(error.to_string().as_bytes()));
    }
    Ok(())
}

/// Returns whether one of the roots is there, and reports the others if none is: a path that is
/// misspelt makes no inventory.
fn is_any_there(roots: &[CString], charset: Charset) -> bool {
    let look = |root: &CString| {
        let found = rustix::fs::statat(rustix::fs::CWD, root, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        found.err().filter(|errno| matches!(*errno, Errno::NOENT | Errno::NOTDIR))
    };
    let missing: Vec<_> = roots.iter().map_while(look).collect();
    if missing.len() < roots.len() || roots.is_empty() {
        return true;
    }
    for (root, errno) in roots.iter().zip(missing) {
        let (path, cause) = (quoteaf(root.to_bytes(), charset), fathom_text::strerror(errno));
        print_error(&[b"cannot access ", &path[..], b": ", &cause].concat());
    }
    false
}

/// Returns whether the inventory that was made may be of what the one before it was of, and reports
/// it otherwise.
fn is_expected(snapshots: &[Snapshot], made: &Path, charset: Charset) -> bool {
    let Ok(now) = Manifest::read(made) else { return true };
    let is_before = |snapshot: &&Snapshot| {
        snapshot.path != made && snapshot.ended().is_some_and(|then| have_same_trees(then, &now))
    };
    let before: Vec<_> = snapshots.iter().filter(is_before).collect();
    let former = replaced(&before, &now).filter(|_| now.completeness.stopped.is_none());
    // With a later one in between, this was reported then.
    let is_last = |former: &Snapshot| before.last().is_some_and(|last| last.path == former.path);
    let Some((former, difference)) = former.filter(|(former, _)| is_last(former)) else { return true };
    let path = &former.path;
    let [made, path] = [made, path].map(|path| quoteaf(path.as_os_str().as_encoded_bytes(), charset));
    let difference = format!(": {difference}. Is a file system not mounted?");
    print_error(&[&made[..], b" may be of another tree than ", &path, difference.as_bytes()].concat());
    false
}
