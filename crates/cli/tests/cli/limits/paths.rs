//! Operands longer than any path, and trees deeper than any path is long.

use std::process::{Command, Output};

use super::MODELS;
use crate::support::program::Program;
use crate::support::{Tree, du};

fn fathom(tree: &Tree, words: &[&str]) -> Output {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.args(words).env("LC_ALL", "C").current_dir(tree.path()).output().unwrap()
}

/// The kernel takes no path of `PATH_MAX` (4096) bytes, and counters of 16 bits end at 65,535.
#[test]
fn operands_longer_than_any_path_are_errors_under_every_model() {
    let tree = Tree::parse("ok/f 5");
    let long: Vec<String> = [4096, 65_534, 65_535, 65_536, 100_000].map(|len| "x".repeat(len)).into();
    let operands: Vec<&str> = long.iter().map(String::as_str).chain(["ok"]).collect();
    for (number, model) in MODELS.into_iter().enumerate() {
        let io = format!("--io={model}");
        let inventory = format!("inventory{number}");
        for (command, out) in [
            (vec!["list", &io], "ok\nok/f\n"),
            (vec!["list", &io, "--order=any"], "ok\nok/f\n"),
            (vec!["list", &io, "-L", "--order=any"], "ok\nok/f\n"),
            (vec!["du", &io, "--inodes"], "2\tok\n"),
            (vec!["scan", &io, "-o", &inventory], ""),
        ] {
            let output = fathom(&tree, &[&command[..], &operands].concat());
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{command:?}: {}", output.status);
            assert_eq!(stderr.matches("File name too long").count(), long.len(), "{command:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), out, "{command:?}");
        }
    }
}

/// Every name that a listing of a deep tree ends with a NUL byte is an operand for du, however
/// long.
#[test]
fn du_reads_the_names_that_list_writes() {
    let tree = Tree::new().deep("d", 280, 250);
    let listed = fathom(&tree, &["list", "-0", "d"]).stdout;
    assert!(listed.len() > 250 * 280 * 280 / 2);
    let outcome = du(&tree, "-c --files0-from=-").stdin(&listed).compare_as_du();
    outcome.says(": File name too long\n").prints("\ttotal\n").status(1);
}

#[test]
fn a_deep_chain_is_listed_in_every_order_and_counted_without_paths() {
    let depth = 10_000;
    let tree = Tree::on_tmpfs().deep("d", depth, 1).with("d/x 1");
    let count = format!("{}\n", depth + 3);
    for words in [&["-c"][..], &["-c", "-L", "--order=any"], &["-n", "x"]] {
        let output = fathom(&tree, &[&["list", "d"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        let expected = if words == ["-n", "x"] { "d/x\n" } else { &count };
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{words:?}");
    }
}
