//! Exports for ncdu, checked by a parser of its documented format and by ncdu itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::export::{FORMATS, objects, scanned, set, truth, varied};
use crate::support::commands::{fathom, out_of_time, program, stdout_of};
use crate::support::{Tree, needs_faults, needs_mounts, needs_tool};

/// Parses JSON that contains arbitrary bytes: each byte becomes the character of that code
/// (Latin-1).
fn latin(bytes: &[u8]) -> Value {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
}

/// Collects the objects of ncdu's format by path, and adds the inherited `dev` to each.
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

/// Imports an export into ncdu and returns what ncdu exports again. ncdu prints the reason but
/// exits with status 0 if it cannot read the input.
#[track_caller]
fn through_ncdu(tree: &Tree, export: &[u8]) -> Vec<u8> {
    fs::write(tree.at("ncdu.in"), export).unwrap();
    let mut command = Command::new("ncdu");
    command.args(["-0", "-e", "-f", "ncdu.in", "-o", "ncdu.out"]).current_dir(tree.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    let mut exported = fs::read(tree.at("ncdu.out")).unwrap();
    fs::remove_file(tree.at("ncdu.out")).unwrap();
    // Up to 1.20, ncdu writes `othfs` where it reads `otherfs`.
    while let Some(at) = exported.windows(7).position(|window| window == b"\"othfs\"") {
        exported.splice(at..at + 7, *b"\"otherfs\"");
    }
    exported
}

/// Returns the expected object of an entry in ncdu's format.
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
fn ncdu_reads_every_entry() {
    let tree = scanned(varied());
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "i"]);
    let truth: BTreeMap<_, _> =
        truth(&tree, "s").iter().map(|(path, meta)| (path.clone(), in_ncdu(meta))).collect();
    assert!(truth.values().any(|object| object["hlnkc"] == json!(true) && object["notreg"] == json!(true)));
    assert_eq!(ncdu_paths(&export), truth);
    if !needs_tool("ncdu") {
        return;
    }
    let mut again = ncdu_paths(&through_ncdu(&tree, &export));
    // ncdu represents a missing mtime as 0.
    let hidden = again.get_mut(&b"s/.hidden"[..]).unwrap();
    assert_eq!(hidden.as_object_mut().unwrap().remove("mtime").unwrap_or(json!(0)), json!(0));
    assert_eq!(again, truth);
}

#[test]
fn an_import_equals_a_scan_by_ncdu() {
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
    let mut found = ncdu_paths(&stdout_of(&tree, &["export", "--to", "ncdu", "i"]));
    // ncdu exports times before 1970 as very large numbers.
    let hidden = tree.at("s/.hidden").into_os_string().into_vec();
    for paths in [&mut expected, &mut found] {
        paths.get_mut(&hidden).unwrap().as_object_mut().unwrap().remove("mtime");
    }
    assert_eq!(found, expected);
}

#[test]
fn owners_too_large_for_ncdu_are_left_out() {
    let tree = Tree::parse("s/f 1");
    if std::os::unix::fs::chown(tree.at("s/f"), Some(4_000_000_000), Some(7)).is_err() {
        crate::support::skip("needs the right to give files away (root)");
        return;
    }
    let tree = scanned(tree);
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "i"]);
    let object = &ncdu_paths(&export)[&b"s/f"[..]];
    assert_eq!((&object["uid"], &object["gid"]), (&Value::Null, &json!(7)));
    if needs_tool("ncdu") {
        assert_eq!(ncdu_paths(&through_ncdu(&tree, &export)).len(), 2);
    }
}

/// Scans without root's exemption from permission checks.
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
fn read_errors_are_marked() {
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
    assert_eq!(line, b"s/nosearch/f,,f,,,,,,,,,,,,,,,,\r");
    let lines = objects(&fathom(&tree, ["export", "--to", "jsonl", "i"]).stdout);
    assert_eq!(lines["s/nosearch/f"], json!({"path": "s/nosearch/f", "type": "f"}));
}

#[test]
fn excluded_entries_are_marked() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("s/m/, s/d/f 1");
    let script = "mount -t tmpfs none s/m && \"$0\" scan -x -o i s";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(program()).current_dir(tree.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "i"]);
    let exports = if needs_tool("ncdu") { vec![through_ncdu(&tree, &export), export] } else { vec![export] };
    for export in exports {
        let mount = &ncdu_paths(&export)[&b"s/m"[..]];
        assert_eq!(
            (&mount["excluded"], &mount["array"], &mount["asize"]),
            (&json!("otherfs"), &json!(true), &Value::Null)
        );
    }
    // Exported by itself, the excluded directory is the root, which ncdu requires.
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "--below", "m", "i"]);
    assert_eq!(ncdu_paths(&export)[&b"s/m"[..]]["excluded"], Value::Null);
}

#[test]
fn several_trees_are_in_a_directory_of_ncdu() {
    let tree = Tree::parse("p/d/f 5000, q/d/g 9000, q/link = p/d/f, lone 7000, other = p/d/f, e/");
    let roots = ["e", "p", "lone", "q/d", "other"];
    let output = fathom(&tree, ["scan", "-o", "i"].iter().chain(&roots).chain(&["missing"]));
    assert_eq!(output.status.code(), Some(1));
    let paths = fathom(&tree, ["export", "--to", "nul", "i"]).stdout;
    let listed = stdout_of(&tree, &[&["list", "-0"][..], &roots].concat());
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
fn a_file_and_an_empty_directory_can_be_exported() {
    let tree = Tree::parse("lone 7, e/");
    stdout_of(&tree, &["scan", "-o", "i", "lone"]);
    stdout_of(&tree, &["scan", "-o", "j", "e"]);
    assert_eq!(stdout_of(&tree, &["export", "--to", "nul", "i"]), b"lone\0");
    assert_eq!(stdout_of(&tree, &["export", "--to", "nul", "j"]), b"e\0");
    for (inventory, count) in [("i", 2), ("j", 1)] {
        let export = stdout_of(&tree, &["export", "--to", "ncdu", inventory]);
        assert_eq!(ncdu_paths(&export).len(), count);
        if needs_tool("ncdu") {
            assert_eq!(ncdu_paths(&through_ncdu(&tree, &export)).len(), count);
        }
    }
}

#[test]
fn a_resumed_scan_is_exported_like_an_uninterrupted_one() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::new();
    for top in 0..6 {
        for sub in 0..8 {
            for file in 0..8 {
                tree.file(format!("s/t{top}/s{sub}/deep/f{file}"), 1);
                tree.file(format!("s/t{top}/s{sub}/deep/er/g{file}.c"), 2);
            }
        }
    }
    let mut command = Command::new(program());
    command.args(["scan", "--checkpoint", "1", "-o", "i", "s"]).current_dir(tree.path());
    assert_eq!(out_of_time(&mut command).output().unwrap().status.code(), Some(1));
    let partial = fathom(&tree, ["export", "--to", "ncdu", "i"]);
    assert_eq!(partial.status.code(), Some(0), "{partial:?}");
    assert!(String::from_utf8(partial.stderr).unwrap().contains("incomplete (deadline)"));
    let partial = ncdu_paths(&partial.stdout);
    assert_eq!(partial[&b"s"[..]]["read_error"], json!(true));
    let resumed = fathom(&tree, ["scan", "--resume", "-o", "i"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let listed = set(&stdout_of(&tree, &["list", "-0", "s"]));
    assert!(partial.len() < listed.len() && partial.keys().all(|path| listed.contains(path)));
    assert_eq!(set(&stdout_of(&tree, &["export", "--to", "nul", "i"])), listed);
    let export = stdout_of(&tree, &["export", "--to", "ncdu", "i"]);
    let truth: BTreeMap<_, _> =
        truth(&tree, "s").iter().map(|(path, meta)| (path.clone(), in_ncdu(meta))).collect();
    assert_eq!(ncdu_paths(&export), truth);
}
