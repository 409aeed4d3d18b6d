//! Runs commands of fathom other than du in a tree.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::Tree;
use super::program::Program;

/// Returns the path of fathom under its own name.
pub(crate) fn program() -> PathBuf {
    Program::AsDu.bin().join("fathom")
}

pub(crate) fn fathom<S: AsRef<OsStr>>(tree: &Tree, words: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(program());
    command.args(words).current_dir(tree.path()).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// Returns the standard output of a run. Panics unless the run succeeds with an empty standard
/// error.
#[track_caller]
pub(crate) fn stdout_of(tree: &Tree, words: &[&str]) -> Vec<u8> {
    let output = fathom(tree, words);
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    output.stdout
}

/// Starts a command that stops at a fault point, and waits until it has stopped. A build without
/// fault points does not stop: see [`super::needs_faults`].
#[track_caller]
pub(crate) fn halted_at(command: &mut Command, point: &str) -> Child {
    command.env("FATHOM_FAULT", format!("{point}:1:STOP"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = waitpid(Some(Pid::from_child(&child)), WaitOptions::UNTRACED).unwrap().unwrap().1;
    assert!(status.stopped(), "{point}: {status:?}");
    child
}
