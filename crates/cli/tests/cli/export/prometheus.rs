//! Sums for Prometheus, checked by a strict parser of its text format, and by promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use rustix::fs::FileType;
use serde_json::Value;

use crate::export::scanned;
use crate::support::commands::{fathom, program, stdout_of};
use crate::support::{Tree, needs_tool};

/// The labels of a sample.
type Labels = BTreeMap<String, String>;

/// Parses the exposition format (version 0.0.4). Returns the samples by metric and labels.
#[track_caller]
fn parsed(text: &str) -> BTreeMap<(String, Labels), f64> {
    let (mut samples, mut metric, mut seen) = (BTreeMap::new(), String::new(), BTreeSet::new());
    assert!(text.ends_with('\n'));
    let mut lines = text[..text.len() - 1].split('\n');
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            metric = help.split_once(' ').unwrap().0.to_owned();
            assert!(seen.insert(metric.clone()), "{metric} twice");
            assert_eq!(lines.next(), Some(&*format!("# TYPE {metric} gauge")));
            continue;
        }
        let rest = line.strip_prefix(&*metric).unwrap_or_else(|| panic!("{line:?} is no sample of {metric}"));
        let (labels, value) = labels(rest.strip_prefix('{').unwrap());
        let value = value.strip_prefix(' ').unwrap().parse().unwrap();
        assert!(samples.insert((metric.clone(), labels), value).is_none(), "{line:?} twice");
    }
    samples
}

/// Parses labels after the brace. Returns the rest behind the closing one.
fn labels(mut text: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    loop {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name:?}");
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    escaped @ ('\\' | '"') => escaped,
                    other => panic!("\\{other} is no escape"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(!value.contains(char::is_control), "{value:?}");
        assert!(labels.insert(name.to_owned(), value).is_none());
        match rest[end + 1..].split_at(1) {
            (",", more) => text = more,
            ("}", rest) => return (labels, rest),
            (other, _) => panic!("{other:?} after a label"),
        }
    }
}

fn exported(tree: &Tree, words: &[&str]) -> String {
    String::from_utf8(stdout_of(tree, &[&["export", "--to", "prometheus"], words, &["i"]].concat())).unwrap()
}

fn pick<'s>(
    samples: &'s BTreeMap<(String, Labels), f64>,
    metric: &str,
    label: &str,
) -> BTreeMap<&'s str, f64> {
    let of = samples.iter().filter(|((name, _), _)| name == metric);
    of.map(|((_, labels), value)| (labels.get(label).map_or("", String::as_str), *value)).collect()
}

#[test]
fn the_numbers_are_those_of_top() {
    let tree = scanned(Tree::parse("s/a/x/f 5000, s/a/y 70000, s/b/z = s/a/y, s/c/ , s/top 9000"));
    let samples = parsed(&exported(&tree, &["--depth", "2"]));
    let top = String::from_utf8(stdout_of(&tree, &["top", "--json", "i"])).unwrap();
    let dirs: Vec<Value> = top.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (metric, member) in [("bytes", "bytes"), ("apparent_bytes", "apparent"), ("entries", "entries")] {
        let expected: BTreeMap<_, _> = dirs
            .iter()
            .filter(|row| row["path"].is_string())
            .map(|row| (row["path"].as_str().unwrap(), row[member].as_f64().unwrap()))
            .collect();
        assert_eq!(pick(&samples, &format!("fathom_directory_{metric}"), "path"), expected);
        let total = dirs.last().unwrap()["total"][member].as_f64().unwrap();
        assert_eq!(pick(&samples, &format!("fathom_{metric}"), ""), BTreeMap::from([("", total)]));
        let owners: f64 = pick(&samples, &format!("fathom_owner_{metric}"), "owner").values().sum();
        assert_eq!(owners, total);
    }
    assert!(samples.keys().all(|(_, labels)| labels["trees"] == "s"));
    assert_eq!(pick(&samples, "fathom_complete_ratio", "")[""], 1.0);
    assert_eq!(pick(&samples, "fathom_directories", "state")["complete"], 5.0);
    let end = pick(&samples, "fathom_scan_end_timestamp_seconds", "")[""];
    assert!(end > 1_700_000_000.0);
}

#[test]
fn the_number_of_series_is_bounded() {
    let spec: Vec<_> = (0..50).map(|at| format!("s/d{at:02}/f {}", (at + 1) * 5000)).collect();
    let tree = scanned(Tree::parse(&spec.join(", ")));
    let samples = parsed(&exported(&tree, &["--max-series", "4"]));
    let dirs = pick(&samples, "fathom_directory_bytes", "path");
    assert_eq!(dirs.keys().copied().collect::<Vec<_>>(), ["other", "s", "s/d47", "s/d48", "s/d49"]);
    let below: f64 = dirs.iter().filter(|(path, _)| **path != "s").map(|(_, bytes)| bytes).sum();
    let own = fs::metadata(tree.at("s")).unwrap();
    let own = std::os::unix::fs::MetadataExt::blocks(&own) as f64 * 512.0;
    assert_eq!(below + own, dirs["s"]);
    let none = parsed(&exported(&tree, &["--depth", "0"]));
    assert_eq!(pick(&none, "fathom_directory_bytes", "path").into_keys().collect::<Vec<_>>(), ["s"]);
}

#[test]
fn names_cannot_break_the_format() {
    let tree = Tree::parse("s/a 1");
    for name in [
        &b"s/q\"uote\\"[..],
        b"s/line\nbreak",
        b"s/esc\x1b[31m\x7f",
        b"s/\xff\xc2\x9b",
        b"s/other",
        b"s/ # {x=\"y\"} 1",
    ] {
        fs::create_dir(tree.path().join(OsStr::from_bytes(name))).unwrap();
    }
    let tree = scanned(tree);
    let text = exported(&tree, &[]);
    let samples = parsed(&text);
    let paths: Vec<_> = pick(&samples, "fathom_directory_entries", "path").into_keys().collect();
    let expected = [
        "s",
        "s/ # {x=\"y\"} 1",
        "s/\\xff\\x9b",
        "s/esc\\x1b[31m\\x7f",
        "s/line\\x0abreak",
        "s/other",
        "s/q\"uote\\",
    ];
    assert_eq!(paths, expected);
    if needs_tool("promtool") {
        let mut promtool = Command::new("promtool");
        promtool
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = promtool.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn the_file_is_replaced_and_everybody_may_read_it() {
    let tree = scanned(Tree::parse("s/a 1"));
    let words = ["export", "--to", "prometheus", "-o", "m/i.prom", "i"];
    let missing = fathom(&tree, words);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    tree.dir("m");
    for _ in 0..2 {
        assert!(stdout_of(&tree, &words).is_empty());
        let file =
            fs::read_dir(tree.at("m")).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(file, ["i.prom"]);
        assert_eq!(fs::metadata(tree.at("m/i.prom")).unwrap().permissions().mode() & 0o444, 0o444);
        assert_eq!(fs::read_to_string(tree.at("m/i.prom")).unwrap(), exported(&tree, &["-o", "-"]));
    }
    // The umask of a service does not make it private.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(program()).args(words);
    assert!(command.current_dir(tree.path()).status().unwrap().success());
    assert_eq!(fs::metadata(tree.at("m/i.prom")).unwrap().permissions().mode() & 0o777, 0o644);
    // A file that is no regular one stays.
    tree.node("m/fifo", FileType::Fifo);
    tree.symlink("m/link", "i.prom");
    tree.dir("m/directory");
    for name in ["m/fifo", "m/link", "m/directory"] {
        let before = fs::symlink_metadata(tree.at(name)).unwrap();
        let output = fathom(&tree, ["export", "--to", "prometheus", "-o", name, "i"]);
        let why = format!("fathom export: cannot create '{name}': it exists and is not a regular file\n");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(1), why));
        assert_eq!(fs::symlink_metadata(tree.at(name)).unwrap().ino(), before.ino());
    }
    for (words, why) in [
        (&["--to", "prometheus", "--below", "s"][..], "cannot be combined with --below"),
        (&["--to", "csv", "--depth", "1"], "require --to prometheus"),
        (&["--to", "prometheus", "--depth", "65"], "invalid depth"),
        (&["--to", "prometheus", "--max-series", "0"], "at least 1"),
    ] {
        let output = fathom(&tree, [&["export"], words, &["i"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(why), "{words:?}");
    }
}
