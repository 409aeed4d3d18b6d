//! `fathom merge` makes one inventory of several. Commands answer from it as from one scan of all
//! trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Output};

use crate::support::Tree;
use crate::support::commands::{fathom, halted_at, program, stdout_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn trees() -> Tree {
    let tree = Tree::parse(
        "p/d/f 5000, p/d/e/g.c 70000, p/empty/, q/d/g 9000, q/link = p/d/f, q/l -> ../nowhere, lone 7000, r/x/y/z 1",
    );
    fs::write(tree.path().join(OsStr::from_bytes(b"q/\xff\n")), "odd").unwrap();
    tree.wide("r/wide", 3000)
}

/// Removes the atime, which a scan changes by reading.
fn without_atime(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| match line.split_once("\"atime\":") {
        Some((before, rest)) => [before, rest.split_once(',').map_or("", |(_, rest)| rest)].concat(),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[test]
fn a_merged_inventory_answers_like_one_scan() {
    let tree = trees();
    stdout_of(&tree, &["scan", "-o", "one", "p", "lone"]);
    stdout_of(&tree, &["scan", "-o", "two", "q"]);
    stdout_of(&tree, &["scan", "-o", "three", "r"]);
    stdout_of(&tree, &["scan", "-o", "all", "p", "lone", "q", "r"]);
    stdout_of(&tree, &["merge", "-o", "merged", "one", "two", "three"]);
    for by in ["dir", "file", "user", "ext", "size", "type", "depth"] {
        let answer = |inventory| stdout_of(&tree, &["top", "--json", "--by", by, "-n", "10000", inventory]);
        assert_eq!(
            String::from_utf8_lossy(&answer("merged")),
            String::from_utf8_lossy(&answer("all")),
            "{by}"
        );
    }
    for words in [&["du", "-a", "--from"][..], &["export", "--to", "jsonl"], &["export", "--to", "nul"]] {
        let answer = |inventory| without_atime(&stdout_of(&tree, &[words, &[inventory]].concat()));
        assert!(answer("merged") == answer("all"), "{words:?}");
    }
    assert_eq!(fathom(&tree, ["diff", "all", "merged"]).status.code(), Some(0));
    let manifest = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(tree.path().join(name).join("manifest.json")).unwrap()).unwrap()
    };
    let (merged, all) = (manifest("merged"), manifest("all"));
    for member in ["roots", "entries", "completeness", "options", "host"] {
        assert_eq!(merged[member], all[member], "{member}");
    }
}

#[test]
fn errors_of_every_inventory_are_kept() {
    let tree = trees();
    assert_eq!(fathom(&tree, ["scan", "-o", "one", "p", "missing"]).status.code(), Some(1));
    stdout_of(&tree, &["scan", "-o", "two", "q"]);
    let merged = fathom(&tree, ["merge", "-o", "merged", "one", "two"]);
    let stderr = String::from_utf8(merged.stderr).unwrap();
    assert!(
        merged.status.success() && stderr.starts_with("fathom merge: warning: the inventory is incomplete"),
        "{stderr}"
    );
    let output = fathom(&tree, ["du", "-s", "--from", "merged"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot access 'missing': No such file"));
}

#[test]
fn a_failed_merge_leaves_no_files() {
    let tree = trees();
    stdout_of(&tree, &["scan", "-o", "one", "p"]);
    let file = tree.path().join("one/entries-00000.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, bytes).unwrap();
    for (words, status) in [
        (&["merge", "-o", "merged", "one"][..], 1),
        (&["merge", "-o", "merged", "nothing"], 1),
        (&["merge", "-o", "one", "one"], 1),
        (&["merge", "one"], 2),
        (&["merge", "-o", "merged"], 2),
        (&["merge", "-o", "..", "one"], 2),
    ] {
        let output = fathom(&tree, words);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
        assert!(
            !tree.path().join("merged").exists() && !tree.path().join("merged.part").exists(),
            "{words:?}"
        );
    }
}

/// Starts a merge into `m` that stops at a fault point, and waits until it has stopped.
#[track_caller]
fn halted_merge(tree: &Tree, point: &str) -> Child {
    let mut command = Command::new(program());
    command.args(["merge", "-o", "m", "one", "two"]).current_dir(tree.path());
    halted_at(command.env("LC_ALL", "C"), point)
}

/// Sends the merge a signal. Returns its exit status and output.
fn sent(child: Child, signal: Signal) -> Output {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns two inventories to merge, or `None` in a build without fault points.
fn mergeable() -> Option<Tree> {
    if !crate::support::needs_faults() {
        return None;
    }
    let tree = trees();
    stdout_of(&tree, &["scan", "-o", "one", "p"]);
    stdout_of(&tree, &["scan", "-o", "two", "q"]);
    Some(tree)
}

#[test]
fn a_second_merge_into_one_name_is_refused() {
    let Some(tree) = mergeable() else { return };
    for point in ["merge-locked", "segment-closed", "merge-written"] {
        let child = halted_merge(&tree, point);
        for (words, status) in [
            (&["merge", "-o", "m", "one"][..], 1),
            (&["scan", "-o", "m", "r"], 2),
            (&["scan", "--resume", "-o", "m", "r"], 2),
        ] {
            let output = fathom(&tree, words);
            let stderr = String::from_utf8(output.stderr).unwrap();
            let is_new_scan = words[1] == "-o" && words[0] == "scan" && point != "merge-locked";
            let why = match is_new_scan {
                true => "create 'm.part': File exists".to_owned(),
                false => "lock 'm.part': another scan or merge is writing to it".to_owned(),
            };
            assert_eq!(stderr, format!("fathom {}: cannot {why}\n", words[0]), "{point}");
            assert_eq!(output.status.code(), Some(status), "{point}: {words:?}");
        }
        let merged = sent(child, Signal::CONT);
        assert!(merged.status.success() && merged.stderr.is_empty(), "{point}: {merged:?}");
        let inventory = tree.path().join("m");
        assert!(!inventory.join("lock").exists() && !tree.path().join("m.part").exists(), "{point}");
        stdout_of(&tree, &["du", "-s", "--from", "m"]);
        fs::remove_dir_all(inventory).unwrap();
    }
}

#[test]
fn a_leftover_of_a_killed_merge_is_reported() {
    let Some(tree) = mergeable() else { return };
    let merged = sent(halted_merge(&tree, "merge-written"), Signal::KILL);
    assert!(!merged.status.success());
    let again = fathom(&tree, ["merge", "-o", "m", "one", "two"]);
    let why = "left by an interrupted run: remove it, and try again";
    assert_eq!(
        String::from_utf8(again.stderr).unwrap(),
        format!("fathom merge: cannot create 'm.part': {why}\n")
    );
    fs::remove_dir_all(tree.path().join("m.part")).unwrap();
    let child = halted_merge(&tree, "merge-written");
    tree.dir("m");
    let late = sent(child, Signal::CONT);
    let why = "fathom merge: cannot rename 'm.part': 'm' exists already\n";
    assert_eq!((String::from_utf8(late.stderr).unwrap().as_str(), late.status.code()), (why, Some(1)));
    assert!(!tree.path().join("m.part").exists());
    let taken = fathom(&tree, ["merge", "-o", "m", "one", "two"]);
    let why = "fathom merge: cannot create 'm': it exists already\n";
    assert_eq!(String::from_utf8(taken.stderr).unwrap(), why);
}
