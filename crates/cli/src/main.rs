//! The `fathom` binary: selects the command. Only this crate reads the command line, the
//! environment and the terminal, and only this file ends the process.

mod availability;
mod bench;
mod command;
mod diff;
mod docs;
mod du;
mod export;
#[cfg(debug_assertions)]
mod fault;
mod flag;
mod getent;
mod getopt;
mod help;
mod interrupt;
mod list;
mod locale;
mod merge;
mod models;
mod output;
mod query;
mod scan;
mod serve;
mod start;
mod top;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use flag::Scope;
use output::Output;

#[global_allocator]
static ALLOCATOR: fathom_io::sys::Allocator = fathom_io::sys::Allocator;

fn main() -> ExitCode {
    fathom_io::sys::restore_sigpipe();
    fathom_io::sys::tune_allocator();
    fathom_io::sys::end_within_limit();
    #[cfg(debug_assertions)]
    fault::install();
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| OsString::from("fathom"));
    let base = program.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let status = match base {
        b"du" => du::main(program.as_bytes(), Scope::Original, words),
        _ => dispatch(words),
    };
    // Exit without joining the workers, which may be blocked in slow system calls.
    std::process::exit(i32::from(output::status(status)))
}

fn dispatch(mut words: std::env::ArgsOs) -> u8 {
    let Some(word) = words.next() else { return misuse(b"missing command") };
    if let b"scan" | b"top" | b"diff" | b"export" | b"merge" = word.as_bytes() {
        fathom_io::sys::keep_freed_memory();
    }
    match word.as_bytes() {
        b"du" => du::main(b"fathom du", Scope::Full, words),
        b"list" => list::main(words),
        b"scan" => scan::main(words),
        b"top" => top::main(words),
        b"diff" => diff::main(words),
        b"query" => query::main(words),
        b"export" => export::main(words),
        b"merge" => merge::main(words),
        b"serve" => serve::main(words),
        b"bench" => bench::main(words),
        b"io" => availability::main(words),
        b"man" => document(words.next(), "page", &docs::MAN_PAGES, docs::man_page),
        b"completions" => document(words.next(), "shell", &docs::SHELLS, docs::completions),
        b"--help" | b"help" => print(&help::render(&command::FATHOM, "fathom", Scope::Full)),
        b"--version" => print(&help::version("fathom")),
        other => misuse(&[b"unknown command '", other, b"'"].concat()),
    }
}

fn misuse(message: &[u8]) -> u8 {
    output::write_stderr(&[b"fathom: ", message, b"\nTry 'fathom --help' for more information.\n"].concat());
    2
}

fn print(text: &str) -> u8 {
    let mut out = Output::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.finish("fathom")
}

/// Prints a man page or a completion script, for packagers.
fn document(name: Option<OsString>, kind: &str, names: &[&str], render: fn(&str) -> Option<String>) -> u8 {
    let name = name.unwrap_or_default().into_vec();
    match std::str::from_utf8(&name).ok().and_then(render) {
        Some(text) => print(&text),
        None => {
            let valid = names.join(", ");
            misuse(&[b"unknown ", kind.as_bytes(), b" '", &name, b"', one of ", valid.as_bytes()].concat())
        }
    }
}
