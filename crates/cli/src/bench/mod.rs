//! `fathom bench`: which workload, and from its command line to the exit status.

mod sample;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::output::say_misuse;

const NAME: &str = "fathom bench";
/// Exit status where the command line makes no sense.
const MISUSED: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(mut words: impl Iterator<Item = OsString>) -> u8 {
    let word = words.next().unwrap_or_default();
    match word.as_bytes() {
        b"sample" => sample::main(words),
        b"" => {
            say_misuse(NAME, b"missing workload");
            MISUSED
        }
        other => {
            say_misuse(NAME, &[b"unknown workload '", other, b"'"].concat());
            MISUSED
        }
    }
}
