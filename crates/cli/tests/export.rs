//! `fathom export` writes what is in an inventory for other programs: what it writes is read by them, or by the standard library, and
//! compared with the tree.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

#[allow(unused_imports, reason = "some of what it offers is for other tests")]
mod support;

use serde_json::{Value, json};
use support::program::Program;
use support::random::Random;
use support::{Tree, needs_mounts, needs_tool};

const FORMATS: [&str; 5] = ["jsonl", "csv", "nul", "ncdu", "sql"];

fn program() -> PathBuf {
    Program::AsDu.bin().join("fathom")
}

fn fathom<S: AsRef<OsStr>>(tree: &Tree, words: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(program());
    command.args(words).current_dir(tree.path()).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// Standard output; fails unless that is all there is.
#[track_caller]
fn whole(tree: &Tree, words: &[&str]) -> Vec<u8> {
    let output = fathom(tree, words);
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    output.stdout
}

/// An entry for every kind of name and of thing, in `s`.
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
    whole(&tree, &["scan", "-o", "i", "s"]);
    tree
}

/// What std says of everything at and below `path`, by its bytes.
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

/// Objects by their paths, without what reading the tree changes; nobody asks `fathom list` for times of birth.
fn objects(lines: &[u8]) -> BTreeMap<String, Value> {
    let object = |line: &[u8]| {
        let mut object: Value = serde_json::from_slice(line).unwrap();
        ["atime", "btime"].iter().for_each(|name| drop(object.as_object_mut().unwrap().remove(*name)));
        (object["path_bytes"].as_str().unwrap_or(object["path"].as_str().unwrap()).to_owned(), object)
    };
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(object).collect()
}

#[test]
fn paths_are_those_that_list_prints_directories_first() {
    let tree = scanned(varied());
    let found = whole(&tree, &["export", "--to", "nul", "i"]);
    assert_eq!(set(&found), set(&whole(&tree, &["list", "-0", "s"])));
    assert!(set(&found).into_iter().eq(truth(&tree, "s").into_keys()));
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    for path in found.split_inclusive(|byte| *byte == 0).map(|path| &path[..path.len() - 1]) {
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &path[..slash]);
        assert!(above.is_empty() || seen.contains(above), "{}", path.escape_ascii());
        seen.insert(path);
    }
    assert!(found == whole(&tree, &["export", "--to", "nul", "i"]), "the same each time");
}

#[test]
fn objects_are_those_that_list_prints() {
    let tree = scanned(varied());
    let exported = whole(&tree, &["export", "--to=jsonl", "i"]);
    assert_eq!(objects(&exported), objects(&whole(&tree, &["list", "--json", "s"])));
    let object = exported.split(|byte| *byte == b'\n').next().unwrap();
    let object: Value = serde_json::from_slice(object).unwrap();
    if let Ok(born) = tree.at("s").metadata().unwrap().created() {
        let micros = born.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() % 1_000_000;
        assert!(object["btime"].as_str().unwrap().ends_with(&format!(".{micros:06}000Z")), "{object}");
    }
}

/// Runs a Python program with `input`; what it prints.
#[track_caller]
fn python(tree: &Tree, program: &str, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("python3");
    command.args(["-c", program]).current_dir(tree.path());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn columns_are_the_members_of_the_objects() {
    if !needs_tool("python3") {
        return;
    }
    let tree = scanned(varied());
    let read = "import csv, io, json, sys\n\
        text = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8', newline='')\n\
        for row in csv.DictReader(text, strict=True): print(json.dumps(row))";
    let csv = whole(&tree, &["export", "--to", "csv", "i"]);
    let rows = python(&tree, read, &csv);
    let rows: Vec<Value> = rows
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let objects = whole(&tree, &["export", "--to", "jsonl", "i"]);
    let objects: Vec<Value> = objects
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        for (column, cell) in row.as_object().unwrap() {
            let expected = match &object[column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(cell, &json!(expected), "{column} of {object}");
        }
        let columns = row.as_object().unwrap();
        assert!(object.as_object().unwrap().keys().all(|member| columns.contains_key(member)));
    }
    assert!(csv.ends_with(b"\r\n") && csv.starts_with(b"path,path_bytes,type,size,"));
}

/// JSON of any bytes: each is a character.
fn latin(bytes: &[u8]) -> Value {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
}

/// What ncdu's format says of each path; `dev` is there for each.
fn nested(value: &Value, above: &[u8], dev: &Value, found: &mut BTreeMap<Vec<u8>, Value>) {
    let mut object = if value.is_array() { value[0].clone() } else { value.clone() };
    let name = object["name"].as_str().unwrap().chars().map(|c| u8::try_from(u32::from(c)).unwrap());
    let path: Vec<u8> = above.iter().copied().chain(name).collect();
    let dev = if object["dev"].is_null() { dev.clone() } else { object["dev"].clone() };
    let members = object.as_object_mut().unwrap();
    members.remove("name");
    members.insert("dev".to_owned(), dev.clone());
    members.insert("array".to_owned(), json!(value.is_array()));
    assert!(found.insert(path.clone(), object).is_none(), "{} twice", path.escape_ascii());
    for inside in value.as_array().into_iter().flatten().skip(1) {
        nested(inside, &[&path, &b"/"[..]].concat(), &dev, found);
    }
}

fn ncdu_paths(export: &[u8]) -> BTreeMap<Vec<u8>, Value> {
    let value = latin(export);
    assert_eq!((&value[0], &value[1]), (&json!(1), &json!(2)));
    assert_eq!(value.as_array().unwrap().len(), 4);
    let mut found = BTreeMap::new();
    nested(&value[3], b"", &json!(0), &mut found);
    found
}

/// What ncdu itself makes of an export; it says why if it does not read it, and ends with status 0.
#[track_caller]
fn through_ncdu(tree: &Tree, export: &[u8]) -> Vec<u8> {
    fs::write(tree.at("ncdu.in"), export).unwrap();
    let mut command = Command::new("ncdu");
    command.args(["-0", "-e", "-f", "ncdu.in", "-o", "ncdu.out"]).current_dir(tree.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    let mut exported = fs::read(tree.at("ncdu.out")).unwrap();
    fs::remove_file(tree.at("ncdu.out")).unwrap();
    // Up to 1.20, ncdu writes another word than it reads.
    while let Some(at) = exported.windows(7).position(|window| window == b"\"othfs\"") {
        exported.splice(at..at + 7, *b"\"otherfs\"");
    }
    exported
}

/// What ncdu's format has for an entry.
fn in_ncdu(metadata: &Metadata) -> Value {
    let mut object = json!({
        "dev": metadata.dev(), "uid": metadata.uid(), "gid": metadata.gid(), "mode": metadata.mode(),
        "array": metadata.is_dir(),
    });
    if metadata.len() > 0 {
        object["asize"] = json!(metadata.len());
    }
    if metadata.blocks() > 0 {
        object["dsize"] = json!(metadata.blocks() * 512);
    }
    if metadata.mtime() >= 0 {
        object["mtime"] = json!(metadata.mtime());
    }
    if !metadata.is_file() && !metadata.is_dir() {
        object["notreg"] = json!(true);
    }
    if metadata.nlink() > 1 && !metadata.is_dir() {
        object["hlnkc"] = json!(true);
        object["nlink"] = json!(metadata.nlink());
        object["ino"] = json!(metadata.ino());
    }
    object
}

#[test]
fn ncdu_reads_what_is_there() {
    let tree = scanned(varied());
    let export = whole(&tree, &["export", "--to", "ncdu", "i"]);
    let truth: BTreeMap<_, _> =
        truth(&tree, "s").iter().map(|(path, meta)| (path.clone(), in_ncdu(meta))).collect();
    assert!(truth.values().any(|object| object["hlnkc"] == json!(true) && object["notreg"] == json!(true)));
    assert_eq!(ncdu_paths(&export), truth);
    if !needs_tool("ncdu") {
        return;
    }
    let mut again = ncdu_paths(&through_ncdu(&tree, &export));
    // To ncdu, what has no time has the first.
    let hidden = again.get_mut(&b"s/.hidden"[..]).unwrap();
    assert_eq!(hidden.as_object_mut().unwrap().remove("mtime").unwrap_or(json!(0)), json!(0));
    assert_eq!(again, truth);
}

#[test]
fn ncdu_itself_says_the_same_of_the_tree() {
    if !needs_tool("ncdu") {
        return;
    }
    let tree = varied();
    let top = tree.at("s").into_os_string();
    let words = ["scan", "-o", "i"].map(OsString::from).into_iter().chain([top.clone()]);
    assert!(fathom(&tree, words).status.success());
    let words = ["-0", "-e", "-o", "-"].map(OsString::from).into_iter().chain([top]);
    let output = Command::new("ncdu").args(words).stdin(Stdio::null()).output().unwrap();
    let mut expected = ncdu_paths(&output.stdout);
    let mut found = ncdu_paths(&whole(&tree, &["export", "--to", "ncdu", "i"]));
    // It has times before 1970 as very large numbers.
    let hidden = tree.at("s/.hidden").into_os_string().into_vec();
    for paths in [&mut expected, &mut found] {
        paths.get_mut(&hidden).unwrap().as_object_mut().unwrap().remove("mtime");
    }
    assert_eq!(found, expected);
}

#[test]
fn owners_that_ncdu_has_no_room_for_are_left_out() {
    let tree = Tree::parse("s/f 1");
    if std::os::unix::fs::chown(tree.at("s/f"), Some(4_000_000_000), Some(7)).is_err() {
        support::skip("needs the right to give files away (root)");
        return;
    }
    let tree = scanned(tree);
    let export = whole(&tree, &["export", "--to", "ncdu", "i"]);
    let object = &ncdu_paths(&export)[&b"s/f"[..]];
    assert_eq!((&object["uid"], &object["gid"]), (&Value::Null, &json!(7)));
    if needs_tool("ncdu") {
        assert_eq!(ncdu_paths(&through_ncdu(&tree, &export)).len(), 2);
    }
}

/// Scans as somebody who may not read everything.
fn scan_with_less(tree: &Tree, words: &[&str]) -> Output {
    let drop = ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"];
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(drop);
    }
    command
        .arg(program())
        .arg("scan")
        .args(words)
        .current_dir(tree.path())
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

#[test]
fn what_could_not_be_read_is_marked() {
    let tree =
        Tree::parse("s/locked/f 1, s/open/f 1, s/nosearch/f 1").mode("s/locked", 0).mode("s/nosearch", 0o444);
    let made = scan_with_less(&tree, &["-o", "i", "s"]);
    let tree = tree.mode("s/locked", 0o755).mode("s/nosearch", 0o755);
    assert_eq!(made.status.code(), Some(1), "{made:?}");
    for format in FORMATS {
        let output = fathom(&tree, ["export", "--to", format, "i"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let warning = String::from_utf8(output.stderr).unwrap();
        assert!(warning.starts_with("fathom export: warning: the inventory is incomplete: "), "{warning}");
    }
    let export = fathom(&tree, ["export", "--to", "ncdu", "i"]).stdout;
    let marked = |export: &[u8]| -> Vec<_> {
        let found = ncdu_paths(export).into_iter().filter(|(_, object)| object["read_error"] == json!(true));
        found.map(|(path, _)| String::from_utf8(path).unwrap()).collect()
    };
    assert_eq!(marked(&export), ["s/locked", "s/nosearch/f"]);
    if needs_tool("ncdu") {
        assert_eq!(marked(&through_ncdu(&tree, &export)), ["s/locked", "s/nosearch/f"]);
    }
    let paths = fathom(&tree, ["export", "--to", "nul", "i"]).stdout;
    assert_eq!(paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()).count(), 6);
    let csv = fathom(&tree, ["export", "--to", "csv", "i"]).stdout;
    let line = csv.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"s/nosearch/f,")).unwrap();
    assert_eq!(line, b"s/nosearch/f,,f,,,,,,,,,,,,\r");
    let lines = objects(&fathom(&tree, ["export", "--to", "jsonl", "i"]).stdout);
    assert_eq!(lines["s/nosearch/f"], json!({"path": "s/nosearch/f", "type": "f"}));
}

#[test]
fn what_was_left_out_is_marked() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("s/m/, s/d/f 1");
    let script = "mount -t tmpfs none s/m && \"$0\" scan -x -o i s";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(program()).current_dir(tree.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let export = whole(&tree, &["export", "--to", "ncdu", "i"]);
    let exports = if needs_tool("ncdu") { vec![through_ncdu(&tree, &export), export] } else { vec![export] };
    for export in exports {
        let mount = &ncdu_paths(&export)[&b"s/m"[..]];
        assert_eq!(
            (&mount["excluded"], &mount["array"], &mount["asize"]),
            (&json!("otherfs"), &json!(true), &Value::Null)
        );
    }
    // By itself it is all there is, and ncdu has nothing without it.
    let export = whole(&tree, &["export", "--to", "ncdu", "--below", "m", "i"]);
    assert_eq!(ncdu_paths(&export)[&b"s/m"[..]]["excluded"], Value::Null);
}

#[test]
fn several_trees_are_in_a_directory_of_ncdu() {
    let tree = Tree::parse("p/d/f 5000, q/d/g 9000, q/link = p/d/f, lone 7000, other = p/d/f, e/");
    let roots = ["e", "p", "lone", "q/d", "other"];
    let output = fathom(&tree, ["scan", "-o", "i"].iter().chain(&roots).chain(&["missing"]));
    assert_eq!(output.status.code(), Some(1));
    let paths = fathom(&tree, ["export", "--to", "nul", "i"]).stdout;
    let listed = whole(&tree, &[&["list", "-0"][..], &roots].concat());
    assert_eq!(set(&paths), set(&listed));
    let export = fathom(&tree, ["export", "--to", "ncdu", "i"]).stdout;
    let exports = if needs_tool("ncdu") { vec![through_ncdu(&tree, &export), export] } else { vec![export] };
    for export in exports {
        let found = ncdu_paths(&export);
        let around = b"(several trees)".to_vec();
        let inside = |path: Vec<u8>| [&around[..], b"/", &path].concat();
        let expected: BTreeSet<_> = set(&listed).into_iter().map(inside).chain([around.clone()]).collect();
        assert!(found.keys().eq(&expected), "{:?}", found.keys());
        let object = &found[&b"(several trees)/lone"[..]];
        assert_eq!((&object["asize"], &object["array"]), (&json!(7000), &json!(false)));
    }
    for (words, root) in [(&["--below", "q/d"][..], "q/d"), (&["--below", "p"], "p")] {
        let export = fathom(&tree, [&["export", "--to", "ncdu"], words, &["i"]].concat()).stdout;
        assert!(ncdu_paths(&export).into_keys().eq(truth(&tree, root).into_keys()), "{root}");
    }
}

#[test]
fn one_file_and_one_empty_directory_are_inventories_too() {
    let tree = Tree::parse("lone 7, e/");
    whole(&tree, &["scan", "-o", "i", "lone"]);
    whole(&tree, &["scan", "-o", "j", "e"]);
    assert_eq!(whole(&tree, &["export", "--to", "nul", "i"]), b"lone\0");
    assert_eq!(whole(&tree, &["export", "--to", "nul", "j"]), b"e\0");
    for (inventory, count) in [("i", 2), ("j", 1)] {
        let export = whole(&tree, &["export", "--to", "ncdu", inventory]);
        assert_eq!(ncdu_paths(&export).len(), count);
        if needs_tool("ncdu") {
            assert_eq!(ncdu_paths(&through_ncdu(&tree, &export)).len(), count);
        }
    }
}

#[test]
fn sqlite_reads_the_tables() {
    if !needs_tool("python3") {
        return;
    }
    if !Command::new("python3").args(["-c", "import sqlite3"]).output().unwrap().status.success() {
        support::skip("needs Python's sqlite3");
        return;
    }
    let tree = scanned(varied());
    let sql = whole(&tree, &["export", "--to", "sql", "i"]);
    let read = r#"
import sqlite3, sys, json
db = sqlite3.connect(":memory:")
db.executescript(sys.stdin.read())
raw = lambda text, raw: raw if raw is not None else text.encode()
out = []
for path, path_raw, *rest in db.execute("SELECT path, path_raw, size, blocks, mode, mtime, mtime_ns FROM dirs"):
    out.append([raw(path, path_raw).hex(), *rest])
for path, path_raw, name, name_raw, *rest in db.execute(
    "SELECT path, path_raw, e.name, e.name_raw, e.size, e.blocks, e.mode, e.mtime, e.mtime_ns FROM entries e JOIN dirs USING (dir_id)"):
    out.append([(raw(path, path_raw) + b"/" + raw(name, name_raw)).hex(), *rest])
tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
owners = [db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in ("users", "groups", "links", "errors")]
targets = db.execute("SELECT DISTINCT link_target FROM entries WHERE type = 'l'").fetchall()
print(json.dumps([out, tables, owners, targets]))
"#;
    let found: Value = serde_json::from_slice(&python(&tree, read, &sql)).unwrap();
    let hex = |path: &[u8]| path.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let row = |(path, meta): (&Vec<u8>, &Metadata)| {
        let micros = meta.mtime() * 1_000_000 + meta.mtime_nsec() / 1000;
        json!([hex(path), meta.len(), meta.blocks(), meta.mode(), micros, meta.mtime_nsec() % 1000])
            .to_string()
    };
    let expected: BTreeSet<String> = truth(&tree, "s").iter().map(row).collect();
    let rows = found[0].as_array().unwrap();
    assert_eq!(rows.len(), expected.len());
    assert_eq!(rows.iter().map(Value::to_string).collect::<BTreeSet<_>>(), expected);
    assert_eq!(found[1], json!(["dirs", "entries", "errors", "groups", "links", "users"]));
    assert_eq!(found[2], json!([1, 1, 5, 0]));
    assert_eq!(found[3], json!([["../nowhere"]]));
    if needs_tool("sqlite3") {
        let count = |input: &[u8], query: &str| {
            let mut command = Command::new("sqlite3");
            command.args(["-bail", "new.db"]).current_dir(tree.path()).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input).unwrap();
            child.wait().unwrap();
            Command::new("sqlite3").args(["new.db", query]).current_dir(tree.path()).output().unwrap()
        };
        // Half a file is no database.
        let half = count(&sql[..sql.len() / 2], "SELECT count(*) FROM entries");
        assert!(!half.status.success(), "{half:?}");
        let all = count(&sql, "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM dirs)");
        assert_eq!(String::from_utf8(all.stdout).unwrap().trim(), expected.len().to_string());
    }
}

#[test]
fn below_a_directory_only_what_is_there_is_written() {
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
    let sql = String::from_utf8(whole(&tree, &["export", "--to", "sql", "--below", "a/b", "i"])).unwrap();
    assert_eq!(sql.lines().filter(|line| line.contains("'s/a/b")).count(), 3);
    assert!(!sql.contains("'hidden") && sql.contains("x.TXT"));
    for absent in ["nothing", "s/a/f", "/s"] {
        let output = fathom(&tree, ["export", "--to", "nul", "--below", absent, "i"]);
        let expected = format!("fathom export: the inventory has no directory '{absent}'\n");
        assert_eq!((output.status.code(), output.stderr), (Some(2), expected.into_bytes()));
    }
}

#[test]
fn a_scan_that_was_ended_and_resumed_is_told_like_any_other() {
    let tree = Tree::new();
    for top in 0..6 {
        for sub in 0..8 {
            for file in 0..8 {
                tree.file(format!("s/t{top}/s{sub}/deep/f{file}"), 1);
                tree.file(format!("s/t{top}/s{sub}/deep/er/g{file}.c"), 2);
            }
        }
    }
    let words = ["scan", "--rate", "500", "--checkpoint", "30", "--deadline", "1s", "-o", "i", "s"];
    assert_eq!(fathom(&tree, words).status.code(), Some(1));
    let partial = fathom(&tree, ["export", "--to", "ncdu", "i"]);
    assert_eq!(partial.status.code(), Some(0), "{partial:?}");
    assert!(String::from_utf8(partial.stderr).unwrap().contains("incomplete (deadline)"));
    let partial = ncdu_paths(&partial.stdout);
    assert_eq!(partial[&b"s"[..]]["read_error"], json!(true));
    let resumed = fathom(&tree, ["scan", "--resume", "-o", "i"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let listed = set(&whole(&tree, &["list", "-0", "s"]));
    assert!(partial.len() < listed.len() && partial.keys().all(|path| listed.contains(path)));
    assert_eq!(set(&whole(&tree, &["export", "--to", "nul", "i"])), listed);
    let export = whole(&tree, &["export", "--to", "ncdu", "i"]);
    let truth: BTreeMap<_, _> =
        truth(&tree, "s").iter().map(|(path, meta)| (path.clone(), in_ncdu(meta))).collect();
    assert_eq!(ncdu_paths(&export), truth);
}

#[test]
fn a_damaged_inventory_makes_no_file() {
    let tree = scanned(Tree::parse("s/a/f 5, s/a/g = s/a/f, s/b/c/h 7, s/l -> a"));
    for file in fs::read_dir(tree.at("i")).unwrap().map(|file| file.unwrap().path()) {
        let table = file.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 0x80;
        for (damaged, format) in [&flipped[..], &bytes[..bytes.len() / 2]]
            .into_iter()
            .flat_map(|damaged| FORMATS.map(|format| (damaged, format)))
        {
            fs::write(&file, damaged).unwrap();
            let output = fathom(&tree, ["export", "--to", format, "-o", "out", "i"]);
            let is_read =
                format == "sql" || ["dirs", "entries", "manifest"].iter().any(|name| table.starts_with(name));
            if is_read || damaged.len() < bytes.len() {
                assert_eq!(output.status.code(), Some(1), "{table} as {format}: {output:?}");
                assert!(output.stderr.starts_with(b"fathom export: cannot read 'i"), "{output:?}");
                assert!(!tree.at("out").exists() && !tree.at("out.part").exists(), "{table} as {format}");
                let to_stdout = fathom(&tree, ["export", "--to", format, "i"]);
                assert_eq!((to_stdout.status.code(), to_stdout.stderr), (Some(1), output.stderr));
                assert!(!to_stdout.stdout.ends_with(b"]\n") && !to_stdout.stdout.ends_with(b"COMMIT;\n"));
            } else {
                assert!(output.status.success(), "{table} as {format}: {output:?}");
                fs::remove_file(tree.at("out")).unwrap();
            }
        }
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn a_file_is_whole_and_replaces_none() {
    let tree = scanned(varied());
    for format in FORMATS {
        whole(&tree, &["export", "--to", format, "-o", format, "i"]);
        assert!(
            fs::read(tree.at(format)).unwrap() == whole(&tree, &["export", "--to", format, "i"]),
            "{format}"
        );
        assert!(!tree.at(format!("{format}.part")).exists());
    }
    tree.symlink("dangling", "nowhere");
    tree.holding("begun.part", "somebody's");
    for (name, message) in [
        ("csv", "cannot create 'csv': File exists"),
        ("dangling", "cannot create 'dangling': File exists"),
        ("begun", "cannot create 'begun.part': File exists"),
        ("no/where", "cannot create 'no/where.part': No such file or directory"),
    ] {
        let output = fathom(&tree, ["export", "--to", "nul", "-o", name, "i"]);
        let message = format!("fathom export: {message}\n");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr)), (Some(1), Ok(message)));
    }
    assert_eq!(fs::read(tree.at("begun.part")).unwrap(), b"somebody's");
}

#[test]
fn nothing_is_left_of_a_file_that_does_not_fit() {
    let tree = scanned(varied());
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" export --to jsonl -o out i";
    let mut command = Command::new("bash");
    let output = command
        .args(["-c", script])
        .arg(program())
        .current_dir(tree.path())
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let message = "fathom export: cannot write 'out.part': File too large\n";
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
        (Some(1), message)
    );
    assert!(!tree.at("out").exists() && !tree.at("out.part").exists());
}

#[test]
fn nothing_is_left_of_a_file_that_nobody_waits_for() {
    let tree = scanned(varied());
    let mut random = Random::new(3);
    for _ in 0..20 {
        let mut command = Command::new(program());
        command.args(["export", "--to", "jsonl", "-o", "out", "i"]).current_dir(tree.path());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(40_000) as u64));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().is_ok());
        let status = child.wait().unwrap();
        // Before it listens, the signal ends it like any other program.
        assert!(matches!(status.code(), None | Some(0 | 130)), "{status}");
        assert_eq!(tree.at("out").exists(), status.success());
        assert!(!tree.at("out.part").exists(), "{status}");
        let _ = fs::remove_file(tree.at("out"));
    }
}

#[test]
fn an_output_that_is_full_or_closed_ends_it() {
    let tree = scanned(varied());
    for format in FORMATS {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(program());
        command.args(["export", "--to", format, "i"]).current_dir(tree.path()).env("LC_ALL", "C");
        let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let message = "fathom export: write error: No space left on device\n";
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
            (Some(1), message)
        );
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{format}: {output:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = scanned(Tree::parse("s/f"));
    for (words, message) in [
        ("i", "missing the format (--to FORMAT)"),
        ("--to csv", "missing operand: the inventory"),
        ("--to csv i j", "extra operand 'j'"),
        ("--to xml i", "invalid argument 'xml' for '--to'"),
        ("--to csv --below= i", "invalid zero-length file name"),
        ("--to csv --output= i", "invalid zero-length file name"),
        ("--to csv -o .. i", "'..' cannot be the name of a file"),
    ] {
        let mut command = Command::new(program());
        command.arg("export").args(words.split_whitespace()).current_dir(tree.path()).env("LC_ALL", "C");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().next(), Some(&*format!("fathom export: {message}")), "{words}");
    }
    let output = fathom(&tree, ["export", "--to", "csv", "s"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stderr.starts_with(b"fathom export: cannot read 's/manifest.json': No such file"),
        "{output:?}"
    );
}

#[test]
fn sockets_and_pipes_are_what_they_are() {
    let tree = scanned(varied());
    let lines = objects(&whole(&tree, &["export", "--to", "jsonl", "i"]));
    let kinds = truth(&tree, "s");
    assert!(kinds[&b"s/p"[..]].file_type().is_fifo() && kinds[&b"s/s"[..]].file_type().is_socket());
    assert_eq!([&lines["s/p"]["type"], &lines["s/s"]["type"]], [&json!("p"), &json!("s")]);
}
