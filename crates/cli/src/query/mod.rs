//! `fathom query`: from the command line to a DuckDB that answers.

mod args;
mod engine;
pub(crate) mod table;
mod views;

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;

use fathom_inventory::store::Inventory;
use fathom_text::quote::{Charset, quoteaf};

use self::args::{Asked, QueryArgs, Source};
use self::engine::{Engine, Request};
use crate::flag::Scope;
use crate::output::{self, print, reason, say_misuse};
use crate::{help, locale, scan};

const NAME: &str = "fathom query";
/// Exit status where there is nothing to ask, or nothing to ask it with.
const NOTHING: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    match args::parse(words, charset) {
        Ok(Asked::Query(args)) => {
            say(&run(&args, charset));
            NOTHING
        }
        Ok(Asked::Help) => print(NAME, &help::render(&table::QUERY, NAME, Scope::Full)),
        Ok(Asked::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            say_misuse(NAME, &message);
            NOTHING
        }
    }
}

fn say(message: &[u8]) {
    output::say(NAME, message);
}

/// Becomes DuckDB; what it returns is why it could not.
fn run(args: &QueryArgs, charset: Charset) -> Vec<u8> {
    match prepare(args, charset) {
        Ok((engine, request)) => engine.become_it(&args.inventory, &request).into_bytes(),
        Err(message) => message,
    }
}

/// Everything that can go wrong before DuckDB starts, and the warning that an answer may need.
fn prepare(args: &QueryArgs, charset: Charset) -> Result<(Engine, Request), Vec<u8>> {
    let inventory = Inventory::open(&args.inventory).map_err(|error| error.to_string().into_bytes())?;
    let manifest = inventory.manifest();
    let setup = views::setup(manifest, spill().as_deref()).map_err(|why| {
        let inventory = quoteaf(args.inventory.as_os_str().as_encoded_bytes(), charset);
        [b"cannot read ", &inventory[..], b": ", why.as_bytes()].concat()
    })?;
    let query = text(&args.source, charset)?;
    let engine = Engine::find(&|name| std::env::var_os(name)).map_err(String::into_bytes)?;
    // DuckDB does not know the hashes, and makes of a damaged file what it can.
    inventory.verify().map_err(|error| error.to_string().into_bytes())?;
    if let Some(missing) = scan::missing(&manifest.completeness) {
        say(&[b"warning: ", missing.as_bytes()].concat());
    }
    Ok((engine, Request { setup, query, format: args.format, columns: columns() }))
}

/// The query.
fn text(source: &Source, charset: Charset) -> Result<String, Vec<u8>> {
    let mut text = Vec::new();
    let (read, name) = match source {
        Source::Text(given) => (Ok(given.clone()), b"the query".to_vec()),
        Source::Stdin => (std::io::stdin().read_to_end(&mut text).map(|_| text), b"standard input".to_vec()),
        Source::File(path) => (std::fs::read(path), quoteaf(path.as_os_str().as_encoded_bytes(), charset)),
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

/// A directory for what does not fit in memory, with a name that nobody can know before; DuckDB makes and removes it when
/// it needs it. None if the name cannot be said in SQL.
fn spill() -> Option<String> {
    let random = RandomState::new().build_hasher().finish();
    let directory = std::env::temp_dir().join(format!("fathom-query-{random:016x}"));
    directory.into_os_string().into_string().ok()
}

/// How wide the terminal is that the answer goes to.
fn columns() -> Option<u16> {
    let stdout = std::io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|_| stdout.is_terminal());
    size.map(|size| size.ws_col).filter(|columns| *columns > 0)
}
