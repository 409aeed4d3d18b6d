//! The `fathom` binary: runs du if it is called so, or else a command of the table. Only this crate
//! reads the command line, the environment and the terminal, and only this file ends the process.

mod availability;
mod bench;
mod command;
mod diff;
mod docs;
mod du;
mod explore;
mod export;
#[cfg(debug_assertions)]
mod fault;
mod grew;
mod history;
mod import;
mod list;
mod merge;
mod models;
mod query;
mod rm;
mod scan;
mod serve;
mod shared;
mod top;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use shared::flag::Scope;
use shared::output;

#[global_allocator]
static ALLOCATOR: fathom_io::sys::Allocator = fathom_io::sys::Allocator;

fn main() -> ExitCode {
    fathom_io::sys::restore_sigpipe();
    fathom_io::sys::tune_allocator();
    output::report_panics("fathom");
    fathom_io::sys::exit_when_exhausted();
    #[cfg(debug_assertions)]
    fault::install();
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| OsString::from("fathom"));
    let base = program.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let status = output::exit_status(|| match base {
        b"du" => du::main(program.as_bytes(), Scope::Original, words.collect()),
        _ => command::main(words.collect()),
    });
    // Exit without joining the workers, which may be blocked in slow system calls.
    std::process::exit(i32::from(status))
}
