//! `fathom bench WORKLOAD`: one workload under every I/O model.

mod args;
mod estimate;
mod run;

use std::ffi::OsString;

use super::measuring::bench_paths;
use super::reports::{answer, fail};
use super::table::BENCH;
use crate::shared::interrupt::stop_on_termination;
use crate::shared::locale;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(super) fn main(words: Vec<OsString>, command: String) -> u8 {
    let args = match args::parse(words, locale::current()) {
        Ok(args) => args,
        Err(end) => return end.answer(&BENCH),
    };
    let stop = stop_on_termination();
    match bench_paths().and_then(|paths| run::run(&args, command, paths, &stop)) {
        Ok((run, ended)) => answer(&args.targets, &run, ended),
        Err(message) => fail(&message),
    }
}
