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

/// Lets the deadline of a scan be over the first time that it looks at it, before it has read
/// anything. A build without fault points reads on: see [`super::needs_faults`].
pub(crate) fn too_late(scan: &mut Command) -> &mut Command {
    scan.args(["--deadline", "1s"]).env("FATHOM_FAULT", "scan-look:1:LATER")
}

/// Lets the deadline of a scan be over when a worker first waits for the rate of its entries. Until
/// the next second it gets no further than that.
pub(crate) fn out_of_time(scan: &mut Command) -> &mut Command {
    scan.args(["--rate", "1", "--deadline", "1s"]).env("FATHOM_FAULT", "rate-wait:1:LATER")
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
