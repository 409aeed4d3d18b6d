//! Entries that an incomplete inventory lacks are not reported as removed.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::diff::{beside, diff, fathom, objects, scan, shell};
use crate::support::commands::{program, too_late};
use crate::support::manifest::with_checksum;
use crate::support::program::Program;
use crate::support::{Tree, needs_faults, needs_tool};

/// Scans without root's exemption from permission checks.
fn scan_without_rights(tree: &Tree, name: &str) {
    let rights = if rustix::process::geteuid().is_root() {
        "setpriv --bounding-set=-dac_override,-dac_read_search"
    } else {
        ""
    };
    let script = format!("exec {rights} \"$0\" scan -o ../{name} s");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(Program::AsDu.bin().join("fathom"))
        .current_dir(tree.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Returns a tree with three inventories: `shut` lacks an unreadable directory, the other two are
/// complete and equal.
fn incomplete_tree() -> Option<Tree> {
    if !needs_tool("setpriv") {
        return None;
    }
    let tree = Tree::parse("s/a/f 7, s/a/d/g 1, s/b/h 1");
    scan(&tree, "old");
    shell(&tree, "chmod 0 s/a");
    scan_without_rights(&tree, "shut");
    shell(&tree, "chmod 755 s/a");
    scan(&tree, "new");
    Some(tree)
}

#[test]
fn entries_of_unread_directories_are_neither_removed_nor_created() {
    let Some(tree) = incomplete_tree() else { return };
    for words in [["../old", "../shut"], ["../shut", "../old"]] {
        let output = fathom(&tree, &[&["diff", "--only=created,removed"], &words[..]].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{stderr}");
        let lines: Vec<_> = stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{stderr}");
        assert_eq!(
            lines[0],
            "fathom diff: warning: '../shut' is incomplete: 1 of 3 directories are missing or incomplete, 0 entries lack metadata"
        );
        assert!(
            lines[1].starts_with("fathom diff: warning: 3 entries of one inventory are not shown, because "),
            "{stderr}"
        );
    }
}

#[test]
fn a_file_moved_out_of_an_unread_directory_is_renamed() {
    let Some(tree) = incomplete_tree() else { return };
    shell(&tree, "mv s/a/f s/b/f; rm s/b/h; chmod 0 s/a");
    scan_without_rights(&tree, "moved");
    shell(&tree, "chmod 755 s/a");
    let output = fathom(&tree, &["diff", "--json", "../old", "../moved"]);
    let (rows, last) = objects(&output.stdout);
    let found: Vec<_> = rows.iter().map(|row| (row["change"].as_str(), row["path"].as_str())).collect();
    let expected = [("modified", "s/a"), ("renamed", "s/b/f"), ("removed", "s/b/h")];
    assert_eq!(found, expected.map(|(change, path)| (Some(change), Some(path))));
    assert_eq!(
        (last["unknown"].as_u64(), &last["complete"], output.status.code()),
        (Some(2), &false.into(), Some(1))
    );
}

#[test]
fn sizes_of_incomplete_directories_are_marked() {
    let Some(tree) = incomplete_tree() else { return };
    let output = fathom(&tree, &["diff", "--dirs", "../old", "../shut"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.starts_with('~')) && text.lines().count() == 2, "{text}");
    assert!(output.stderr.starts_with(b"fathom diff: warning: '../shut' is incomplete"));
    assert_eq!(diff(&tree, &["--dirs"], 0), b"");
}

#[test]
fn entries_after_the_end_of_an_interrupted_scan_are_not_compared() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("s/a/f 7, s/b/g 7");
    scan(&tree, "old");
    let mut command = Command::new(program());
    command.args(["scan", "-o", "../new", "s"]).current_dir(tree.path());
    assert_eq!(too_late(&mut command).output().unwrap().status.code(), Some(1));
    let output = fathom(&tree, &["diff", "../old", "../new"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{stderr}");
    assert!(stderr.contains("'../new' is incomplete (deadline): "), "{stderr}");
}

#[test]
fn trees_of_only_one_inventory_are_named() {
    let tree = Tree::parse("s/a 7, t/b 7, u/c 7");
    assert!(fathom(&tree, &["scan", "-o", "../old", "s", "t"]).status.success());
    shell(&tree, "mv t/b s/b");
    assert!(fathom(&tree, &["scan", "-o", "../new", "s", "u"]).status.success());
    let output = fathom(&tree, &["diff", "../old", "../new"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"R t/b -> s/b\n"[..]), "{stderr}");
    assert!(
        stderr.contains("warning: '../old' has 't', which '../new' does not have: not compared\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("warning: '../new' has 'u', which '../old' does not have: not compared\n"),
        "{stderr}"
    );
}

#[test]
fn damaged_inventories_are_refused() {
    let tree = Tree::parse("s/a/f 7, s/b 7, s/c = s/b");
    scan(&tree, "old");
    shell(&tree, "mv s/a/f s/a/g; rm s/b; chmod 600 s/c; mv s/c s/d");
    scan(&tree, "new");
    for (side, file) in
        [("old", "dirs"), ("old", "entries"), ("old", "links"), ("new", "dirs"), ("new", "entries")]
    {
        let file = beside(&tree, side).join(format!("{file}-00000.parquet"));
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 0x80;
        for damaged in [&flipped[..], &bytes[..bytes.len() / 2], b""] {
            fs::write(&file, damaged).unwrap();
            let output = fathom(&tree, &["diff", "../old", "../new", "--parquet", "changes"]);
            assert_eq!(output.status.code(), Some(2), "{file:?}: {output:?}");
            let expected = format!("fathom diff: cannot read '../{side}");
            assert!(output.stderr.starts_with(expected.as_bytes()), "{output:?}");
            assert!(fs::read_dir(tree.path()).unwrap().count() == 1, "nothing is left of the file");
        }
        fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(diff(&tree, &["--only=created"], 0), b"");
    let output = fathom(&tree, &["diff", "../old", "../none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        output.stderr.starts_with(b"fathom diff: cannot read '../none/manifest.json': No such file"),
        "{output:?}"
    );
}

/// Each file of the inventory is valid by itself, but the files contradict each other.
#[test]
fn inventories_that_contradict_themselves_are_refused() {
    let tree = Tree::parse("s/a/b/f 7, s/g 7");
    scan(&tree, "old");
    shell(&tree, "rm -r s/a");
    scan(&tree, "new");
    let read = |side: &str| -> Value {
        serde_json::from_slice(&fs::read(beside(&tree, side).join("manifest.json")).unwrap()).unwrap()
    };
    let write = |edited: &Value| {
        let text = with_checksum(&serde_json::to_string_pretty(edited).unwrap());
        fs::write(beside(&tree, "new").join("manifest.json"), text).unwrap();
    };
    let manifest = read("new");
    let is_dirs = |file: &&Value| file["table"] == "dirs";
    let strange = read("old")["files"].as_array().unwrap().iter().find(is_dirs).unwrap().clone();
    for (name, replaced, why) in [
        ("dirs-00000.parquet", "entries", "it has no column"),
        ("dirs-00009.parquet", "", "its directories are not numbered from 1 on"),
    ] {
        fs::copy(
            beside(&tree, "old").join("dirs-00000.parquet"),
            beside(&tree, "new").join("dirs-00009.parquet"),
        )
        .unwrap();
        let mut edited = manifest.clone();
        let files = edited["files"].as_array_mut().unwrap();
        let own = files.iter().find(is_dirs).unwrap().clone();
        let mut more = if replaced.is_empty() { strange.clone() } else { own };
        if !replaced.is_empty() {
            files.retain(|file| file["table"] != "dirs" && file["table"] != replaced);
            more["table"] = replaced.into();
        }
        more["name"] = name.into();
        files.push(more);
        write(&edited);
        let output = fathom(&tree, &["diff", "../old", "../new"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
    // Remove the table of directories, so that entries refer to directories that do not exist.
    let mut edited = manifest;
    edited["files"].as_array_mut().unwrap().retain(|file| file["table"] != "dirs");
    write(&edited);
    let output = fathom(&tree, &["diff", "../old", "../new"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.ends_with(b": an entry has no directory\n"), "{output:?}");
}
