//! The views of `fathom du` that GNU du does not have: trees, the largest entries, groups, JSON.
//! Sizes are apparent (`-b`), so that the expected texts are valid on any file system.

#![cfg(target_os = "linux")]

mod by;
mod interrupt;
mod json;
mod terminal;
mod top;
mod tree;

use crate::support::outcome::Outcome;
use crate::support::program::Program;
use crate::support::{Tree, du};

/// `fathom du` with two workers; their number makes no difference to the output.
const FATHOM: Program = Program::Engine(&["--threads=2"]);

/// Returns the outcome of `fathom du` with `words`.
fn run(tree: &Tree, words: &str) -> Outcome {
    du(tree, words).run(FATHOM)
}

/// Returns the standard output of `fathom du` with `words`. Panics unless it succeeds with an empty
/// standard error.
#[track_caller]
fn prints(tree: &Tree, words: &str) -> String {
    let outcome = run(tree, words);
    outcome.says("").status(0);
    outcome.out()
}
