//! The files of patterns that `--exclude-from` names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use fathom_du::exclude::{self, Exclude};
use fathom_text::quote::{Charset, quoteaf};

use super::input::standard_input;
use super::output::reason;

/// Reads the patterns in a file; `-` is standard input.
///
/// # Errors
/// A message if it cannot be read.
pub(crate) fn read(path: &[u8], charset: Charset) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut text = Vec::new();
    let read = match path {
        b"-" => standard_input().and_then(|mut input| input.read_to_end(&mut text)),
        path => File::open(OsStr::from_bytes(path)).and_then(|mut file| file.read_to_end(&mut text)),
    };
    match read {
        Ok(_) => Ok(exclude::patterns(&text).map(<[u8]>::to_vec).collect()),
        Err(error) => Err([b"cannot read ", &quoteaf(path, charset)[..], b": ", &reason(&error)].concat()),
    }
}

/// Compiles patterns.
pub(crate) fn compile(patterns: &[Vec<u8>], charset: Charset) -> Exclude {
    let mut exclude = Exclude::new(charset, std::env::var_os("POSIXLY_CORRECT").is_some());
    patterns.iter().for_each(|pattern| exclude.add(pattern));
    exclude
}
