//! What `fathom du` shows that GNU du does not: trees, the largest entries, groups, JSON. Sizes are lengths (`-b`),
//! so that the texts expected here are those of any file system.

#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod by;
mod interrupt;
mod json;
mod terminal;
mod top;
mod tree;

use support::outcome::Outcome;
use support::program::Program;
use support::{Tree, du};

/// `fathom du`; the number of workers makes no difference.
const FATHOM: Program = Program::Engine(&["--threads=2"]);

/// What `fathom du` with `words` leaves behind.
fn run(tree: &Tree, words: &str) -> Outcome {
    du(tree, words).run(FATHOM)
}

/// What it prints, once it is known to have ended well and without a word.
#[track_caller]
fn prints(tree: &Tree, words: &str) -> String {
    let outcome = run(tree, words);
    outcome.says("").status(0);
    outcome.out()
}
