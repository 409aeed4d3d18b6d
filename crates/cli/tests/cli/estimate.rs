//! `fathom scan --estimate` prints exact numbers if it has enough time, otherwise ranges.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::program::{Program, unprivileged};
use crate::support::{Tree, needs_faults};

fn scan(tree: &Tree, words: &str) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.arg("scan").args(words.split_whitespace()).env("LC_ALL", "C").current_dir(tree.path());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the objects of the output; the last one is the total.
fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the first number that the shell command prints.
fn count_with(tree: &Tree, command: &str) -> u64 {
    let output = run(Command::new("sh").args(["-c", command]).current_dir(tree.path()));
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

const MIXED: &str =
    "d/a 5000, d/b 1, d/e/f 70000, d/e/g = d/a, d/l -> a, d/p |, d/empty/, o/x 9, o/s %, d/hole ~1M";

#[test]
fn a_complete_estimate_equals_find_and_du() {
    let tree = Tree::parse(MIXED);
    for model in ["sync", "threads=3", "async-par", "auto"] {
        let output = run(&mut scan(&tree, &format!("--estimate 60s --json --io {model} .")));
        assert!(output.status.success() && output.stderr.is_empty(), "{model}: {output:?}");
        let objects = objects(&output);
        let last = objects.last().unwrap();
        let exact = |name: &str, number: u64| {
            let range = &last["total"][name];
            assert_eq!([&range["estimate"], &range["low"], &range["high"]], [number; 3], "{model}: {name}");
        };
        exact("entries", count_with(&tree, "find . | wc -l"));
        exact("dirs", count_with(&tree, "find . -type d | wc -l"));
        exact("files", count_with(&tree, "find . ! -type d | wc -l"));
        exact("bytes", count_with(&tree, "du -s -B1 ."));
        exact(
            "apparent",
            count_with(&tree, "find . ! -type d ! -path './d/e/g' -printf '%s\n' | paste -sd+ | bc || true"),
        );
        assert_eq!(
            (&last["exact"], &last["complete"], &last["errors"]),
            (&true.into(), &true.into(), &0.into())
        );
        let paths: Vec<_> = objects.iter().filter_map(|object| object["path"].as_str()).collect();
        assert_eq!(paths, ["./d", "./d/e", "./o", "./d/empty"], "{model}");
    }
    let output = run(&mut scan(&tree, "--estimate 60s ."));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("exact: all of 5 directories were read in "), "{text}");
    assert!(text.contains("\nentries       14\n") && text.ends_with(" ./d/empty\n"), "{text}");
}

#[test]
fn an_incomplete_estimate_has_ranges() {
    let tree = Tree::new();
    for top in 0..30 {
        for sub in 0..30 {
            let dir = tree.path().join(format!("t{top}/s{sub}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("f"), "xyz").unwrap();
        }
    }
    let output = run(&mut scan(&tree, "--estimate 0s --json ."));
    // The second may suffice for the whole tree or not, so both statuses are possible.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let objects = objects(&output);
    let last = objects.last().unwrap();
    assert_eq!(last["exact"], false, "{last}");
    let entries = &last["total"]["entries"];
    assert_eq!(
        [&entries["high"], &entries["confidence"]],
        [&Value::Null; 2],
        "{last}: nothing is known of the rest"
    );
    let text = String::from_utf8(run(&mut scan(&tree, "--estimate 0s .")).stdout).unwrap();
    let drawn = text.contains("; too little was read for ranges\n");
    let blind = text.contains("; there is more\n");
    assert!(drawn != blind && !text.contains("exact"), "{text}");
    let entries = text.lines().find(|line| line.starts_with("entries")).unwrap();
    assert!(entries.contains("at least ") && entries.contains("about ") == drawn, "{text}");
}

#[test]
fn odd_names_and_operands() {
    let tree = Tree::parse("f 10");
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"a\n\xff\\'\"");
    fs::create_dir(tree.path().join(odd)).unwrap();
    let output = run(scan(&tree, "--estimate 9s --json f . missing").arg(odd));
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(
        stderr,
        "fathom scan: cannot access 'missing': No such file or directory\n\
         fathom scan: 1 entry found is missing in the estimate\n"
    );
    let objects = objects(&output);
    assert_eq!(objects[0]["path_bytes"], "2e2f610aff5c2722", "{objects:?}");
    let last = objects.last().unwrap();
    assert_eq!((&last["total"]["entries"]["low"], &last["complete"]), (&5.into(), &false.into()), "{last}");
}

#[test]
fn unreadable_directories_are_reported_and_counted() {
    let tree = Tree::parse("d/e/f 1, g 1");
    let closed = tree.path().join("d/e");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = unprivileged();
    command.args(["scan", "--estimate", "9s", "--json", "."]).env("LC_ALL", "C").current_dir(tree.path());
    let output = run(&mut command);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(stderr.starts_with("fathom scan: cannot read './d/e': Permission denied\n"), "{stderr}");
    let last = objects(&output).pop().unwrap();
    assert_eq!((&last["errors"], &last["total"]["entries"]["low"]), (&1.into(), &4.into()), "{last}");
}

#[test]
fn an_interrupt_prints_the_estimate_so_far() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::new();
    for dir in 0..2_000 {
        let dir = tree.path().join(format!("t{}/d{dir}", dir % 20));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("f"), "x").unwrap();
    }
    // A worker waits for the rate only after the root was read.
    let mut command = scan(&tree, "--estimate 1h --rate 1 --json .");
    let output = run(command.env("FATHOM_FAULT", "rate-wait:1:INT"));
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let last = objects(&output).pop().unwrap();
    assert_eq!((&last["complete"], &last["exact"]), (&false.into(), &false.into()), "{last}");
    assert!(last["total"]["entries"]["low"].as_u64().unwrap() >= 1, "{last}");
}

#[test]
fn wrong_command_lines_are_refused() {
    let tree = Tree::parse("f 1");
    for (words, message) in [
        ("--estimate 1s", "missing operand: PATH to scan"),
        (
            "--estimate soon f",
            "invalid time 'soon' for '--estimate': expected a time like 500ms, 10s, 1.5h, 1h30m, 2d, 1w or 1y",
        ),
        ("--estimate 1s -o i f", "--estimate cannot be combined with -o"),
        ("--estimate 1s --resume", "--estimate cannot be combined with --resume"),
        ("--json -o i f", "--json requires --estimate"),
    ] {
        let output = run(&mut scan(&tree, words));
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().next(), Some(&*format!("fathom scan: {message}")), "{words}");
    }
}
