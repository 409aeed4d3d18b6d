//! `fathom diff` reports the changes between two inventories. Random changes are compared with two
//! snapshots taken by the standard library; each kind of change also has a case with its expected
//! text.

mod changes;
mod lacks;
mod output;
mod random;
mod truth;

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::Tree;
use crate::support::program::Program;
use serde_json::Value;

pub(crate) fn fathom(tree: &Tree, words: &[&str]) -> Output {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    // Inventories are beside the tree.
    command.args(words).current_dir(tree.path()).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// Scans `s` into a new inventory beside the tree.
#[track_caller]
pub(crate) fn scan(tree: &Tree, name: &str) {
    let output = fathom(tree, &["scan", "-o", &format!("../{name}"), "s"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

pub(crate) fn beside(tree: &Tree, name: &str) -> PathBuf {
    tree.path().parent().unwrap().join(name)
}

/// Returns the standard output of a comparison of `../old` and `../new`. Panics unless its exit
/// status is `status` and its standard error is empty.
#[track_caller]
pub(crate) fn diff(tree: &Tree, words: &[&str], status: i32) -> Vec<u8> {
    let output = fathom(tree, &[&["diff", "../old", "../new"], words].concat());
    assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    output.stdout
}

/// Returns the lines of a comparison of the tree `spec` before and after the shell commands
/// `change`.
#[track_caller]
pub(crate) fn after(spec: &str, change: &str) -> String {
    let tree = Tree::parse(spec);
    scan(&tree, "old");
    shell(&tree, change);
    scan(&tree, "new");
    let output = fathom(&tree, &["diff", "../old", "../new"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!text.is_empty())));
    text
}

#[track_caller]
pub(crate) fn shell(tree: &Tree, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(tree.path()).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

/// Returns the objects of `--json`, and the last object, which holds the totals.
pub(crate) fn objects(text: &[u8]) -> (Vec<Value>, Value) {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut all: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let last = all.pop().unwrap();
    (all, last)
}

/// Returns the bytes of a path of an object.
pub(crate) fn path(object: &Value, name: &str) -> Option<Vec<u8>> {
    if let Some(hex) = object[format!("{name}_bytes")].as_str() {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        return Some((0..hex.len()).step_by(2).map(byte).collect());
    }
    object[name].as_str().map(|text| text.as_bytes().to_vec())
}
