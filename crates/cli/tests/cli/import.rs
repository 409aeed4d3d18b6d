//! `fathom import`: inventories of what ncdu, gdu and du of this machine write, compared with
//! inventories of the same tree.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::commands::{fathom, program, stdout_of};
use crate::support::tree::name;
use crate::support::{Tree, needs_tool};
use serde_json::Value;

fn varied() -> Tree {
    let tree = Tree::parse(
        "s/a/one.rs 5000, s/a/two.RS 70000, s/b/c/far.txt 300000, s/b/near.txt = s/b/c/far.txt, s/none/f 0, s/l -> a, s/pipe |",
    );
    tree.holding(name(b"s/odd\xff\n\x1b[2J"), "12345");
    tree
}

/// Runs another program in the tree. Returns its standard output.
fn other(tree: &Tree, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(tree.path()).stdin(Stdio::null()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Returns the rows of a report as JSON, without the names of owners, which an import does not
/// have.
fn report(tree: &Tree, by: &str, inventory: &str) -> Vec<Value> {
    let text = stdout_of(tree, &["top", "--json", "-n", "1000", "--by", by, inventory]);
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut rows: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    rows.iter_mut().filter(|row| !row["id"].is_null()).for_each(|row| row["key"] = Value::Null);
    rows
}

#[test]
fn an_export_of_ncdu_has_the_sums_of_a_scan() {
    let tree = varied();
    let root = tree.at("s").to_str().unwrap().to_owned();
    stdout_of(&tree, &["scan", "-o", "scanned", &root]);
    let sources = [
        stdout_of(&tree, &["export", "--to", "ncdu", "scanned"]),
        if needs_tool("ncdu") { other(&tree, &["ncdu", "-0", "-e", "-o", "-", &root]) } else { Vec::new() },
    ];
    for (at, export) in sources.iter().enumerate().filter(|(_, export)| !export.is_empty()) {
        let (file, inventory) = (format!("{at}.json"), format!("{at}.inv"));
        fs::write(tree.at(&file), export).unwrap();
        stdout_of(&tree, &["import", "--from", "ncdu", "-o", &inventory, &file]);
        for by in ["dir", "file", "user", "group", "ext", "size", "type", "depth"] {
            assert_eq!(report(&tree, by, &inventory), report(&tree, by, "scanned"), "{by} {at}");
        }
        let paths = |inventory: &str| stdout_of(&tree, &["list", "-0", "--from", inventory]);
        let sorted = |text: Vec<u8>| {
            let mut paths: Vec<_> = text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
            paths.sort();
            paths
        };
        assert_eq!(sorted(paths(&inventory)), sorted(paths("scanned")));
    }
}

#[test]
fn an_export_of_gdu_counts_each_file_once() {
    if !needs_tool("gdu") {
        return;
    }
    let tree = varied();
    let export = other(&tree, &["gdu", "-n", "-o", "-", "s"]);
    fs::write(tree.at("g.json"), &export).unwrap();
    stdout_of(&tree, &["import", "--from", "gdu", "-o", "g", "g.json"]);
    stdout_of(&tree, &["scan", "-o", "scanned", "s"]);
    let count = |inventory: &str| {
        stdout_of(&tree, &["list", "-0", "--from", inventory]).iter().filter(|byte| **byte == 0).count()
    };
    assert_eq!(count("g"), count("scanned"));
    let sizes = |inventory: &str, key: &str| {
        let rows = report(&tree, "ext", inventory);
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        (row["bytes"].clone(), row["apparent"].clone())
    };
    for key in ["rs", "txt"] {
        assert_eq!(sizes("g", key), sizes("scanned", key), "{key}");
    }
}

#[test]
fn the_lines_of_du_have_its_sums() {
    if !needs_tool("du") {
        return;
    }
    // A directory of which every file has another name elsewhere has no lines below it.
    let tree = Tree::parse(
        "s/a/one.rs 5000, s/a/two.RS 70000, s/b/c/far.txt 300000, s/none/f 0, s/l -> a, s/pipe |",
    );
    let table: [(&[&str], &[&str]); 5] = [
        (&["-0a"], &[]),
        (&["-0ac"], &["--total"]),
        (&["-0a", "-B1"], &["--block-size", "1"]),
        (&[], &["--only-dirs"]),
        (&["-0ab"], &["--bytes"]),
    ];
    for (at, (words, options)) in table.into_iter().enumerate() {
        let lines = other(&tree, &[&["du"], words, &["s"]].concat());
        fs::write(tree.at("lines"), &lines).unwrap();
        let inventory = format!("{at}.inv");
        let output =
            fathom(&tree, [&["import", "--from", "du", "-o", &inventory], options, &["lines"]].concat());
        assert!(output.status.success(), "{output:?}");
        if options != ["--bytes"] {
            let again = fathom(&tree, ["du", "--from", &inventory]).stdout;
            assert_eq!(again.iter().filter(|byte| **byte == b'\n').count(), 5);
            let last = |text: &[u8]| text.rsplit(|byte| *byte == b'\n').nth(1).unwrap_or_default().to_vec();
            assert_eq!(last(&again), last(&other(&tree, &["du", "s"])), "{options:?}");
        }
    }
}

#[test]
fn standard_input_is_read_and_damage_is_an_error() {
    let tree = varied();
    stdout_of(&tree, &["scan", "-o", "scanned", "s"]);
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "scanned"]);
    for (end, status) in [(export.len(), 0), (export.len() / 2, 1), (0, 1)] {
        let inventory = format!("{end}.inv");
        fs::write(tree.at("in"), &export[..end]).unwrap();
        let mut command = Command::new(program());
        command.args(["import", "--from", "ncdu", "-o", &inventory, "-"]).current_dir(tree.path());
        let output = command.stdin(fs::File::open(tree.at("in")).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert_eq!(tree.at(&inventory).exists(), status == 0);
        assert!(!tree.at(format!("{inventory}.part")).exists());
        if status != 0 {
            let errors = String::from_utf8(output.stderr).unwrap();
            let place = format!("(at byte {end})\n");
            assert!(
                errors.starts_with("fathom import: cannot import '-': ") && errors.ends_with(&place),
                "{errors}"
            );
        }
    }
    let table: [(&[&str], i32, &str); 9] = [
        (&["in"], 2, "missing option: --from PROGRAM"),
        (&["--from", "ncdu", "in"], 2, "missing option: -o INVENTORY"),
        (&["--from", "ncdu", "-o", "x"], 2, "missing operand: FILE to import"),
        (&["--from", "tar", "-o", "x", "in"], 2, "  - 'ncdu'"),
        (&["--from", "ncdu", "--bytes", "-o", "x", "in"], 2, "require --from du"),
        (&["--from", "gdu", "--total", "-o", "x", "in"], 2, "require --from du"),
        (&["--from", "du", "--block-size", "0", "-o", "x", "in"], 2, "invalid size"),
        (&["--from", "ncdu", "-o", "x", "s"], 1, "cannot read 's': Is a directory"),
        (&["--from", "ncdu", "-o", "scanned", "in"], 1, "it exists already"),
    ];
    for (words, status, why) in table {
        let output = fathom(&tree, [&["import"], words].concat());
        let errors = String::from_utf8(output.stderr).unwrap().replace(['‘', '’'], "'");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {errors}");
        assert!(errors.contains(why), "{words:?}: {errors}");
    }
    assert!(!tree.at("x").exists());
}
