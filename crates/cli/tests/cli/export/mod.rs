//! `fathom export` writes an inventory in formats of other programs. The tests read the output with
//! those programs or with the standard library, and compare it with the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;

mod ncdu;
mod output;
mod prometheus;
mod rows;

use crate::support::Tree;
use crate::support::commands::{fathom, program, stdout_of};
use serde_json::{Value, json};

const FORMATS: [&str; 5] = ["jsonl", "csv", "nul", "ncdu", "sql"];

/// Returns a tree in `s` with an entry for every type and every kind of name.
fn varied() -> Tree {
    let tree = Tree::parse(
        "s/a/f 5000, s/a/g = s/a/f, s/b/same = s/a/f, s/a/empty/, s/a/b/c/d/, s/a/b/c/d/x.TXT 3, s/a/b/l -> ../nowhere, s/p |, \
         s/s %, s/.hidden 1, s/h ~8G, s/b/file 10, s/l2 = s/a/b/l",
    );
    let odd: [&[u8]; 9] = [
        b"s/\xff\\n\n",
        b"s/dir\xfe\"/in",
        b"s/dir\xfe\"/\xe2\x82",
        b"s/comma, \"quoted\"",
        b"s/it's; --",
        b"s/cr\r\nlf",
        b"s/\x01\x08\x0c\x1b\x7f\xc2\x9b",
        b"s/a\n.quit\n;",
        "s/ünïcode/日本".as_bytes(),
    ];
    odd.iter().for_each(|name| tree.holding(OsStr::from_bytes(name), b"odd"));
    let tree = tree.wide("s/wide", 3000).deep("s/deep", 60, 50);
    tree.times("s/.hidden", (5, 7), (-1_000_000, 999_999_999));
    tree.mode("s/b/file", 0o4751)
}

fn scanned(tree: Tree) -> Tree {
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    tree
}

/// Returns the standard library's metadata of all entries at and below `path`.
fn truth(tree: &Tree, path: &str) -> BTreeMap<Vec<u8>, Metadata> {
    let (mut found, mut left) = (BTreeMap::new(), vec![PathBuf::from(path)]);
    while let Some(path) = left.pop() {
        let metadata = tree.at(&path).symlink_metadata().unwrap();
        if metadata.is_dir() {
            left.extend(
                fs::read_dir(tree.at(&path)).unwrap().map(|entry| path.join(entry.unwrap().file_name())),
            );
        }
        found.insert(path.into_os_string().into_vec(), metadata);
    }
    found
}

fn set(zeros: &[u8]) -> BTreeSet<Vec<u8>> {
    let paths: Vec<_> = zeros.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    let set: BTreeSet<_> = paths.iter().map(|path| path.to_vec()).collect();
    assert_eq!(set.len(), paths.len(), "nothing is there twice");
    set
}

/// Returns the objects by path, without members that reading the tree changes or that `fathom list`
/// does not request.
fn objects(lines: &[u8]) -> BTreeMap<String, Value> {
    let object = |line: &[u8]| {
        let mut object: Value = serde_json::from_slice(line).unwrap();
        ["atime", "btime", "attributes", "link_target", "link_target_bytes", "state"]
            .iter()
            .for_each(|name| drop(object.as_object_mut().unwrap().remove(*name)));
        (object["path_bytes"].as_str().unwrap_or(object["path"].as_str().unwrap()).to_owned(), object)
    };
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(object).collect()
}

#[test]
fn paths_are_those_that_list_prints_directories_first() {
    let tree = scanned(varied());
    let found = stdout_of(&tree, &["export", "--to", "nul", "i"]);
    assert_eq!(set(&found), set(&stdout_of(&tree, &["list", "-0", "s"])));
    assert!(set(&found).into_iter().eq(truth(&tree, "s").into_keys()));
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    for path in found.split_inclusive(|byte| *byte == 0).map(|path| &path[..path.len() - 1]) {
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &path[..slash]);
        assert!(above.is_empty() || seen.contains(above), "{}", path.escape_ascii());
        seen.insert(path);
    }
    assert!(found == stdout_of(&tree, &["export", "--to", "nul", "i"]), "the same each time");
}

#[test]
fn objects_are_those_that_list_prints() {
    let tree = scanned(varied());
    let exported = stdout_of(&tree, &["export", "--to=jsonl", "i"]);
    assert_eq!(objects(&exported), objects(&stdout_of(&tree, &["list", "--json", "s"])));
    let object = exported.split(|byte| *byte == b'\n').next().unwrap();
    let object: Value = serde_json::from_slice(object).unwrap();
    if let Ok(born) = tree.at("s").metadata().unwrap().created() {
        let micros = born.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() % 1_000_000;
        assert!(object["btime"].as_str().unwrap().ends_with(&format!(".{micros:06}000Z")), "{object}");
    }
}

#[test]
fn below_writes_only_entries_of_that_directory() {
    let tree = scanned(varied());
    let odd = OsStr::from_bytes(b"s/dir\xfe\"");
    for below in [OsStr::new("s/a"), OsStr::new("a/b/"), OsStr::new("./wide"), odd] {
        let words = ["export", "--to", "nul", "i", "--below"].map(OsStr::new);
        let output = fathom(&tree, words.into_iter().chain([below]));
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let path = tree.at(below);
        let path = if path.exists() { PathBuf::from(below) } else { Path::new("s").join(below) };
        let path: PathBuf = path.components().collect();
        let expected = truth(&tree, "s")
            .into_keys()
            .filter(|found| Path::new(OsStr::from_bytes(found)).starts_with(&path));
        assert!(set(&output.stdout).into_iter().eq(expected), "{below:?}");
    }
    let sql = String::from_utf8(stdout_of(&tree, &["export", "--to", "sql", "--below", "a/b", "i"])).unwrap();
    assert_eq!(sql.lines().filter(|line| line.contains("'s/a/b")).count(), 3);
    assert!(!sql.contains("'hidden") && sql.contains("x.TXT"));
    for absent in ["nothing", "s/a/f", "/s"] {
        let output = fathom(&tree, ["export", "--to", "nul", "--below", absent, "i"]);
        let expected = format!("fathom export: the inventory has no directory '{absent}'\n");
        assert_eq!((output.status.code(), output.stderr), (Some(2), expected.into_bytes()));
    }
}

#[test]
fn invalid_command_lines_are_refused() {
    let tree = scanned(Tree::parse("s/f"));
    for (words, message) in [
        ("i", "missing option: --to FORMAT"),
        ("--to csv", "missing operand: INVENTORY"),
        ("--to csv i j", "extra operand 'j'"),
        ("--to jsonl --guard-formulas i", "--guard-formulas requires --to csv"),
        ("--to xml i", "invalid argument 'xml' for '--to'"),
        ("--to csv --below= i", "invalid zero-length file name"),
        ("--to csv --output= i", "invalid zero-length file name"),
        ("--to csv -o .. i", "'..' is not a valid file name"),
    ] {
        let mut command = Command::new(program());
        command.arg("export").args(words.split_whitespace()).current_dir(tree.path()).env("LC_ALL", "C");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().next(), Some(&*format!("fathom export: {message}")), "{words}");
    }
    let output = fathom(&tree, ["export", "--to", "csv", "s"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stderr.starts_with(b"fathom export: cannot read 's/manifest.json': No such file"),
        "{output:?}"
    );
}

#[test]
fn sockets_and_pipes_have_their_types() {
    let tree = scanned(varied());
    let lines = objects(&stdout_of(&tree, &["export", "--to", "jsonl", "i"]));
    let kinds = truth(&tree, "s");
    assert!(kinds[&b"s/p"[..]].file_type().is_fifo() && kinds[&b"s/s"[..]].file_type().is_socket());
    assert_eq!([&lines["s/p"]["type"], &lines["s/s"]["type"]], [&json!("p"), &json!("s")]);
}

#[test]
fn links_have_their_targets_and_directories_their_states() {
    let tree = Tree::parse("s/a/f 1, s/l -> a/f");
    std::os::unix::fs::symlink(OsStr::from_bytes(b"no,\xff"), tree.at("s/odd")).unwrap();
    let tree = scanned(tree);
    let lines = stdout_of(&tree, &["export", "--to", "jsonl", "i"]);
    let line = |path: &str| {
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .find_map(|line| {
                Some(serde_json::from_slice::<Value>(line).unwrap()).filter(|line| line["path"] == path)
            })
            .unwrap()
    };
    assert_eq!([&line("s/l")["link_target"], &line("s/a/f")["link_target"]], [&json!("a/f"), &Value::Null]);
    assert_eq!([&line("s/a")["state"], &line("s/l")["state"]], [&json!("complete"), &Value::Null]);
    assert_eq!(line("s/odd")["link_target_bytes"], json!("6e6f2cff"));
    let csv = String::from_utf8(stdout_of(&tree, &["export", "--to", "csv", "i"])).unwrap();
    let ends = |path: &str| {
        csv.lines().find(|line| line.starts_with(path)).unwrap().rsplitn(4, ',').collect::<Vec<_>>()
    };
    assert_eq!(ends("s/l,")[..3], ["", "", "a/f"]);
    assert_eq!(ends("s/a,")[..3], ["complete", "", ""]);
    assert!(csv.lines().any(|line| line.ends_with(",\"no,\u{fffd}\",6e6f2cff,")), "{csv}");
}

#[test]
fn formulas_are_guarded_on_request() {
    let tree = Tree::new();
    for name in ["=1+1", "@x", "plain"] {
        fs::write(tree.at(name), "x").unwrap();
    }
    stdout_of(&tree, &["scan", "-o", "i", "=1+1", "@x", "plain"]);
    let csv = |words: &[&str]| {
        let text =
            String::from_utf8(stdout_of(&tree, &[&["export", "--to", "csv", "i"], words].concat())).unwrap();
        text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(csv(&[]), ["=1+1", "@x", "plain"]);
    assert_eq!(csv(&["--guard-formulas"]), ["'=1+1", "'@x", "plain"]);
}
