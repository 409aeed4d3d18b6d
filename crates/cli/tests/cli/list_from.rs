//! `fathom list --from` prints of an inventory what `fathom list` prints of the tree, by the same
//! filters and in the same formats.

#![cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::support::Tree;
use crate::support::commands::{fathom, stdout_of};

fn varied() -> Tree {
    let tree = Tree::parse(
        "s/a/f.c 5000, s/a/g = s/a/f.c, s/a/empty/, s/a/b/c/d/x.TXT 3, s/a/b/l -> ../nowhere, s/p |, s/s %, s/zero 0, s/.hidden/in 1, s/h ~8G, \
         s/b/.dot 10, s/b/build/x.o 3, other 9",
    );
    fs::write(tree.path().join(OsStr::from_bytes(b"s/\xff\n")), "odd").unwrap();
    stdout_of(&tree, &["scan", "-o", "i", "s", "other"]);
    tree
}

/// Returns the lines as a set, without their order.
fn lines(text: &[u8], end: u8) -> BTreeSet<Vec<u8>> {
    let lines: Vec<_> = text.split(|byte| *byte == end).filter(|line| !line.is_empty()).collect();
    let set: BTreeSet<_> = lines.iter().map(|line| line.to_vec()).collect();
    assert_eq!(set.len(), lines.len(), "nothing is there twice");
    set
}

#[test]
fn filters_and_formats_are_those_of_list() {
    let tree = varied();
    for words in [
        &["-0"][..],
        &["-0", "--type=f"],
        &["-0", "--type=d,l"],
        &["-0", "--name=*.c"],
        &["-0", "--name=s"],
        &["-0", "--regex=.*/b/.*"],
        &["-0", "--size=+1k"],
        &["-0", "--newer=1h"],
        &["-0", "--older=1h"],
        &["-0", "--empty"],
        &["-0", "--empty", "--type=d", "-d2"],
        &["-0", "--min-depth=2"],
        &["-0", "-d2"],
        &["-0", "-d0"],
        &["-0", "--prune=b"],
        &["-0", "--prune=*.o", "--prune=empty"],
        &["-0", "--no-hidden"],
        &["-0", "-x"],
        &["-f", "%p %y %s %b %m %U %G %n %i %D %d %P %f %h %H %l %u %g %T@ %C@ %M\\0"],
    ] {
        for operands in [&["s", "other"][..], &["s"], &["s/a/b", "other"], &["./s//b/", "s/a/f.c"]] {
            let live = stdout_of(&tree, &[&["list"], words, operands].concat());
            let recorded = stdout_of(&tree, &[&["list", "--from", "i"], words, operands].concat());
            assert_eq!(lines(&recorded, 0), lines(&live, 0), "{words:?} {operands:?}");
        }
        let live = stdout_of(&tree, &[&["list"], words, &["s", "other"]].concat());
        assert_eq!(lines(&stdout_of(&tree, &[&["list", "--from", "i"], words].concat()), 0), lines(&live, 0));
    }
    assert_eq!(
        stdout_of(&tree, &["list", "-c", "--from", "i"]),
        stdout_of(&tree, &["list", "-c", "s", "other"])
    );
}

#[test]
fn no_directory_is_known_to_be_empty_where_the_scan_left_names_out() {
    let tree = Tree::parse("s/build/x.o 3, s/empty/, s/zero 0");
    stdout_of(&tree, &["scan", "-o", "i", "--exclude", "*.o", "s"]);
    let listed = fathom(&tree, ["list", "--from", "i", "--empty"]);
    assert_eq!((listed.status.code(), &listed.stdout[..]), (Some(0), &b"s/zero\n"[..]));
    let warning = "fathom list: warning: no directory is listed as empty, because the scan had --exclude\n";
    assert_eq!(String::from_utf8_lossy(&listed.stderr), warning);
}

#[test]
fn objects_have_the_columns_of_the_inventory() {
    let tree = varied();
    let recorded = stdout_of(&tree, &["list", "--json", "--from", "i", "--name=l"]);
    let object: serde_json::Value = serde_json::from_slice(&recorded).unwrap();
    assert_eq!((&object["path"], &object["link_target"]), (&"s/a/b/l".into(), &"../nowhere".into()));
}

#[test]
fn missing_operands_are_reported() {
    let tree = varied();
    let recorded = fathom(&tree, ["list", "--from", "i", "nothing", "other"]);
    assert_eq!((recorded.status.code(), &recorded.stdout[..]), (Some(1), &b"other\n"[..]));
    let live = fathom(&tree, ["list", "nothing", "other"]);
    assert_eq!(recorded.stderr, live.stderr);
    for words in
        [&["list", "-L", "--from", "i"][..], &["list", "--ignore-vcs", "--from", "i"], &["list", "--from="]]
    {
        assert_eq!(fathom(&tree, words).status.code(), Some(2), "{words:?}");
    }
    let damaged = fathom(&tree, ["list", "--from", "s"]);
    assert!(damaged.status.code() == Some(1) && damaged.stdout.is_empty(), "{damaged:?}");
}
