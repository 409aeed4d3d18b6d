//! `fathom io`: what this machine and a path offer.

use std::ffi::OsString;

pub(crate) fn main(_words: impl Iterator<Item = OsString>) -> u8 {
    2
}
