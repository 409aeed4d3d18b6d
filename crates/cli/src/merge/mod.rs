//! `fathom merge`: from the command line to the exit status.

pub(crate) mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use fathom_inventory::store::Inventory;
use fathom_scans::merge::merge;

use self::table::MergeOption;
use crate::shared::cmdline::exit::{DONE, FAILED, INTERRUPTED};
use crate::shared::cmdline::{self, ArgsEnd};
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::inventory::incomplete_warning;
use crate::shared::locale;
use crate::shared::output;

const NAME: &str = table::MERGE.name;

/// The arguments of a merge.
struct MergeArgs {
    out: PathBuf,
    inventories: Vec<PathBuf>,
}

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    match parse(words) {
        Ok(args) => run(&args.out, &args.inventories),
        Err(end) => end.answer(&table::MERGE),
    }
}

fn parse(words: Vec<OsString>) -> Result<MergeArgs, ArgsEnd> {
    let mut out = None;
    let operands = cmdline::parse(&table::MERGE, words.into_iter(), locale::current(), |key, option| {
        match key {
            MergeOption::Output => out = Some(PathBuf::from(OsString::from_vec(option.into_bytes()))),
        }
        Ok(())
    })?;
    let inventories: Vec<PathBuf> = operands.into_iter().map(PathBuf::from).collect();
    if inventories.is_empty() {
        return Err(b"missing operand: INVENTORY".to_vec().into());
    }
    let out = out.filter(|out| out.file_name().is_some());
    let out = out.ok_or_else(|| b"missing option: -o OUT".to_vec())?;
    Ok(MergeArgs { out, inventories })
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(out: &std::path::Path, paths: &[PathBuf]) -> u8 {
    let stop = stop_on_interrupt();
    let inventories: Result<Vec<_>, _> = paths.iter().map(|path| Inventory::open(path)).collect();
    match inventories.and_then(|inventories| merge(&inventories, out, &stop, &mut print_error)) {
        Ok(manifest) => {
            if !manifest.completeness.is_complete() {
                print_error(incomplete_warning(&manifest.completeness).as_bytes());
            }
            DONE
        }
        Err(_) if stop.load(Ordering::Relaxed) => INTERRUPTED,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            FAILED
        }
    }
}
