//! `fathom merge`: from the command line to the exit status.

pub(crate) mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use fathom_inventory::merge::merge;
use fathom_inventory::store::Inventory;

use self::table::{FLAGS, MergeOption};
use crate::shared::flag::Scope;
use crate::shared::getopt::{Getopt, OperandOrder};
use crate::shared::help;
use crate::shared::interrupt::{INTERRUPTED, stop_on_interrupt};
use crate::shared::output::{self, print, print_usage_error};
use crate::top::incomplete_warning;

const NAME: &str = "fathom merge";
/// Exit status if no inventory was written.
const FAILED: u8 = 1;
/// Exit status for an invalid command line.
const MISUSED: u8 = 2;

/// The action that a command line requests.
enum MergeAction {
    Help,
    Version,
    Merge { out: PathBuf, inventories: Vec<PathBuf> },
}

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    match parse(words) {
        Ok(MergeAction::Merge { out, inventories }) => run(&out, &inventories),
        Ok(MergeAction::Help) => print(NAME, &help::render(&table::MERGE, NAME, Scope::Full)),
        Ok(MergeAction::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            print_usage_error(NAME, &message);
            MISUSED
        }
    }
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<MergeAction, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, OperandOrder::Permute);
    let mut out = None;
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            MergeOption::Help => return Ok(MergeAction::Help),
            MergeOption::Version => return Ok(MergeAction::Version),
            MergeOption::Output => {
                out = Some(PathBuf::from(OsString::from_vec(option.value.unwrap_or_default())))
            }
        }
    }
    let inventories: Vec<PathBuf> = getopt.into_operands().into_iter().map(PathBuf::from).collect();
    if inventories.is_empty() {
        return Err(b"missing operand: the inventories".to_vec());
    }
    let out = out.filter(|out| out.file_name().is_some());
    let out = out.ok_or_else(|| b"missing the name of the inventory (-o OUT)".to_vec())?;
    Ok(MergeAction::Merge { out, inventories })
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
            0
        }
        Err(_) if stop.load(Ordering::Relaxed) => INTERRUPTED,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            FAILED
        }
    }
}
