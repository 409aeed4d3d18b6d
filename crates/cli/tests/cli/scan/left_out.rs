//! An inventory leaves out the same entries as `fathom list` and `fathom du`.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use parquet::record::Field;

use crate::scan::tables::{bytes, entries, manifest, rows};
use crate::scan::{beside, run, scan, scan_completely};
use crate::support::commands::too_late;
use crate::support::program::Program;
use crate::support::{Tree, needs_faults};

fn tree() -> Tree {
    let tree = Tree::parse(
        "a/x.o 3, a/y.c 5, a/sub/z.o 1, a/sub/keep/w.c 2, b/target/deep/er/f 9, b/target/x.o 1, b/src/m.rs 4, c/d/e/f/g 1, top.o 1, \
         b/.gitignore, b/.git/HEAD, b/logs/a.log 7, b/logs/b.txt 7",
    );
    fs::write(tree.path().join("b/.gitignore"), "target/\n*.log\n").unwrap();
    tree
}

fn scanned(tree: &Tree, name: &str, words: &str) -> BTreeSet<Vec<u8>> {
    entries(&scan_completely(tree, name, &format!("{words} ."))).into_keys().collect()
}

/// Returns the paths that another command prints.
fn printed_paths(tree: &Tree, words: &[&str]) -> BTreeSet<Vec<u8>> {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    let output = run(command.args(words).env("LC_ALL", "C").current_dir(tree.path()));
    assert!(output.status.success(), "{output:?}");
    let lines = output.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines.map(|line| line.rsplit(|byte| *byte == b'\t').next().unwrap().to_vec()).collect()
}

#[test]
fn patterns_exclude_the_entries_that_du_excludes() {
    let tree = tree();
    for (number, patterns) in
        [&["*.o"][..], &["target"], &["sub", "src"], &["a/sub"], &["./a/*/z.o", "er"], &["*"]]
            .into_iter()
            .enumerate()
    {
        let exclude: Vec<String> = patterns.iter().map(|pattern| format!("--exclude={pattern}")).collect();
        let mut words: Vec<&str> = vec!["du", "-a", "-0"];
        words.extend(exclude.iter().map(String::as_str));
        words.push(".");
        let found = scanned(&tree, &format!("i{number}"), &exclude.join(" "));
        // du also matches the pattern `*` against its operand.
        let expected =
            if patterns == ["*"] { BTreeSet::from([b".".to_vec()]) } else { printed_paths(&tree, &words) };
        assert_eq!(found, expected, "{patterns:?}");
    }
    let file = beside(&tree, "patterns");
    fs::write(&file, "*.o  \n\nsub\n").unwrap();
    let found = scanned(&tree, "from", &format!("--exclude-from={}", file.display()));
    assert_eq!(found, printed_paths(&tree, &["du", "-a", "-0", "--exclude=*.o", "--exclude=sub", "."]));
    assert_eq!(manifest(&beside(&tree, "from"))["options"]["exclude"], "*.o\nsub");
}

#[test]
fn ignore_files_exclude_the_entries_that_list_excludes() {
    let tree = tree();
    let found = scanned(&tree, "i", "--ignore-vcs");
    assert_eq!(found, printed_paths(&tree, &["list", "-0", "--ignore-vcs", "."]));
    assert!(!found.contains(&b"./b/target"[..]) && found.contains(&b"./b/logs/b.txt"[..]));
}

#[test]
fn directories_at_the_depth_limit_are_recorded_and_not_read() {
    let tree = tree();
    for depth in 0..5 {
        for model in ["sync", "auto", "threads=4"] {
            let name = format!("i{depth}{model}");
            let found = scanned(&tree, &name, &format!("-d{depth} --io {model}"));
            assert_eq!(
                found,
                printed_paths(&tree, &["list", "-0", &format!("-d{depth}"), "."]),
                "{depth} {model}"
            );
            let states = rows(&beside(&tree, &name), "dirs");
            for dir in &states {
                let path = bytes(dir, "path");
                let is_last = path.iter().filter(|byte| **byte == b'/').count() == depth;
                let expected = if is_last { "skipped" } else { "complete" };
                assert_eq!(dir["state"], Field::Str(expected.into()), "{dir:?}");
            }
        }
    }
}

#[test]
fn a_resumed_scan_keeps_the_exclusions() {
    if !needs_faults() {
        return;
    }
    let tree = tree();
    let out = beside(&tree, "i");
    let output = run(too_late(&mut scan(&tree)).args(["--exclude", "*.o", "-d3", "-o"]).arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = run(scan(&tree).args(["--resume", "--exclude", "*.c", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success(), "{output:?}");
    let found: BTreeSet<_> = entries(&out).into_keys().collect();
    assert_eq!(found, scanned(&tree, "whole", "--exclude=*.o -d3"));
}

#[test]
fn since_requires_equal_exclusions() {
    let tree = tree();
    scan_completely(&tree, "old", "--exclude=*.o .");
    let again = |words: &str| {
        let output =
            run(scan(&tree).args(["--since", "../old", "-o", "../new"]).args(words.split_whitespace()));
        fs::remove_dir_all(beside(&tree, "new")).ok();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(again("--exclude=*.o .").0, Some(0));
    for words in [".", "--exclude=*.c ."] {
        let (status, stderr) = again(words);
        assert!(
            status == Some(2) && stderr.contains("it was made with other exclusions"),
            "{words}: {stderr}"
        );
        assert!(!beside(&tree, "new.part").exists());
    }
    assert!(again("-d1 .").1.contains("--since cannot be combined with --ignore-vcs or --max-depth"));
}
