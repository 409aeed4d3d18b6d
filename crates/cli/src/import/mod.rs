//! `fathom import`: from the command line to the exit status.

mod args;
pub(crate) mod table;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use fathom_scans::import::{ImportError, ImportSource, import};
use fathom_text::quote::{Charset, quoteaf};

use self::args::ImportArgs;
use crate::shared::cmdline::exit::{DONE, FAILED, INTERRUPTED};
use crate::shared::input::standard_input;
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::inventory::incomplete_warning;
use crate::shared::locale;
use crate::shared::output::{self, reason};

const NAME: &str = table::IMPORT.name;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset),
        Err(end) => end.answer(&table::IMPORT),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

fn run(args: &ImportArgs, charset: Charset) -> u8 {
    let name = args.input.as_deref().unwrap_or(Path::new("-"));
    let quoted = || quoteaf(name.as_os_str().as_encoded_bytes(), charset);
    let (mut input, source) = match open(args.input.as_deref()) {
        Ok(opened) => opened,
        Err(error) => {
            print_error(&[b"cannot read ", &quoted()[..], b": ", &reason(&error)].concat());
            return FAILED;
        }
    };
    let stop = stop_on_interrupt();
    match import(args.format, &mut *input, &source, &args.output, &stop, &mut print_error) {
        Ok(manifest) => {
            if !manifest.completeness.is_complete() {
                print_error(incomplete_warning(&manifest.completeness).as_bytes());
            }
            DONE
        }
        Err(_) if stop.load(Ordering::Relaxed) => INTERRUPTED,
        Err(error) => {
            let import = |why: &[u8]| [b"cannot import ", &quoted()[..], b": ", why].concat();
            print_error(&match error {
                ImportError::Inventory(error) => error.to_string().into_bytes(),
                ImportError::Input(error) => import(&reason(&error)),
                error => import(error.to_string().as_bytes()),
            });
            FAILED
        }
    }
}

/// Opens the input, and returns what is known about it.
fn open(path: Option<&Path>) -> io::Result<(Box<dyn BufRead>, ImportSource)> {
    let Some(path) = path else {
        let source = ImportSource { name: "-".to_owned(), modified: None };
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, standard_input()?)), source));
    };
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(fathom_io::Errno::ISDIR.into());
    }
    let modified = metadata.is_file().then(|| metadata.mtime());
    let source = ImportSource { name: path.to_string_lossy().into_owned(), modified };
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), source))
}
