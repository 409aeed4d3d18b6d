//! Stores of dated inventories: `fathom scan --keep`, `fathom history` and `fathom grew`.

mod contrib;
mod grew;
mod keep;
mod replaced;
use std::collections::BTreeSet;
use std::fs;

use crate::support::Tree;
use crate::support::commands::fathom;
use serde_json::Value;

/// Runs a command that has to succeed. Returns its standard output and standard error.
#[track_caller]
fn run(tree: &Tree, words: &[&str]) -> (String, String) {
    let output = fathom(tree, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Returns the objects of a command's output.
#[track_caller]
fn objects(tree: &Tree, words: &[&str]) -> Vec<Value> {
    run(tree, words).0.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the names in the store, hidden ones too.
fn names(tree: &Tree) -> BTreeSet<String> {
    let entries = fs::read_dir(tree.at("store")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Gives the inventory that was kept last the time `time`, which has to be earlier than all others.
/// Returns its name.
fn age(tree: &Tree, time: &str) -> String {
    let last = names(tree).into_iter().next_back().unwrap();
    let name = format!("{time}.inv");
    fs::rename(tree.at(format!("store/{last}")), tree.at(format!("store/{name}"))).unwrap();
    name
}
