//! `fathom query`: from the command line to the exit status of DuckDB.

mod args;
mod child;
mod engine;
pub(crate) mod table;

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Read};
use std::path::Path;

use fathom_inventory::store::Inventory;
use fathom_questions::views;
use fathom_text::quote::{Charset, quoteaf};

use self::args::{QueryArgs, QuerySource};
use self::child::ChildEnd;
use self::engine::{DuckDb, DuckDbRequest};
use crate::shared::cmdline::exit::{FAILED, MISUSED};
use crate::shared::input::standard_input;
use crate::shared::inventory::{missing, newest_in};
use crate::shared::locale;
use crate::shared::output::{self, reason};

const NAME: &str = table::QUERY.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset).unwrap_or_else(|message| {
            print_error(&message);
            MISUSED
        }),
        Err(end) => end.answer(&table::QUERY),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

/// Runs DuckDB. Returns its exit status, or a message if it cannot be run.
fn run(args: &QueryArgs, charset: Charset) -> Result<u8, Vec<u8>> {
    let spill = spill();
    let path = newest_in(&args.inventory);
    let (engine, request) = prepare(args, &path, spill.as_deref(), charset)?;
    let ended = engine.run(&path, &request);
    if let Some(spill) = spill {
        // DuckDB removes its temporary data, unless it was killed.
        let _removed = std::fs::remove_dir_all(spill);
    }
    Ok(match ended.map_err(String::into_bytes)? {
        ChildEnd::Status(status) => status,
        ChildEnd::Signal(signal) => child::end_by(signal),
        ChildEnd::Killed(signal) => {
            print_error(format!("DuckDB was killed by signal {signal}").as_bytes());
            FAILED
        }
    })
}

/// Makes all checks that can fail before DuckDB starts, and warns about an incomplete inventory.
fn prepare(
    args: &QueryArgs,
    path: &Path,
    spill: Option<&str>,
    charset: Charset,
) -> Result<(DuckDb, DuckDbRequest), Vec<u8>> {
    let inventory = Inventory::open(path).map_err(|error| error.to_string().into_bytes())?;
    let manifest = inventory.manifest();
    // DuckDB runs in the directory of the inventory.
    let setup = views::setup(&inventory, "", spill).map_err(|error| error.to_string().into_bytes())?;
    let query = text(&args.source, charset)?;
    let engine = DuckDb::find(&|name| std::env::var_os(name)).map_err(String::into_bytes)?;
    // DuckDB does not verify the hashes and would accept damaged files.
    inventory.verify().map_err(|error| error.to_string().into_bytes())?;
    if let Some(missing) = missing(&manifest.completeness) {
        print_error(&[b"warning: ", missing.as_bytes()].concat());
    }
    Ok((engine, DuckDbRequest { setup, query, format: args.format, columns: columns() }))
}

/// Reads the text of the query.
fn text(source: &QuerySource, charset: Charset) -> Result<String, Vec<u8>> {
    let mut text = Vec::new();
    let (read, name) = match source {
        QuerySource::Text(given) => (Ok(given.clone()), b"the query".to_vec()),
        QuerySource::Stdin => {
            let read = standard_input().and_then(|mut input| input.read_to_end(&mut text));
            (read.map(|_| text), b"standard input".to_vec())
        }
        QuerySource::File(path) => {
            (std::fs::read(path), quoteaf(path.as_os_str().as_encoded_bytes(), charset))
        }
    };
    let text = read.map_err(|error| [b"cannot read ", &name[..], b": ", &reason(&error)].concat())?;
    let Some(text) = String::from_utf8(text).ok().filter(|text| !text.contains('\0')) else {
        return Err([&name[..], b" is not text in UTF-8"].concat());
    };
    if text.trim().is_empty() {
        return Err([&name[..], b" is empty"].concat());
    }
    Ok(text)
}

/// Returns the path of a directory for temporary data, with an unpredictable name. DuckDB creates
/// and removes the directory. `None` if the path cannot be written in SQL.
fn spill() -> Option<String> {
    let random = RandomState::new().build_hasher().finish();
    let directory = std::env::temp_dir().join(format!("fathom-query-{random:016x}"));
    directory.into_os_string().into_string().ok()
}

/// Returns the width of the terminal on standard output, if there is one.
fn columns() -> Option<u16> {
    let stdout = std::io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|_| stdout.is_terminal());
    size.map(|size| size.ws_col).filter(|columns| *columns > 0)
}
