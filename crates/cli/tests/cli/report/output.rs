//! The page is complete or not there, and replaces an earlier one only when it is complete.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::Tree;
use crate::support::commands::{fathom, program, stdout_of};

fn scanned() -> Tree {
    let tree = Tree::parse("s/a/f 5, s/a/g = s/a/f, s/b/c/h 7, s/l -> a");
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    tree
}

#[test]
fn a_page_replaces_an_earlier_one() {
    let tree = scanned();
    for _ in 0..2 {
        assert_eq!(stdout_of(&tree, &["report", "-o", "page.html", "i"]), b"");
        let page = fs::read_to_string(tree.at("page.html")).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert_eq!(fs::metadata(tree.at("page.html")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!tree.at("page.html.part").exists());
        fs::write(tree.at("page.html"), "old").unwrap();
    }
    // Those for whom it is may still read it.
    fs::set_permissions(tree.at("page.html"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(stdout_of(&tree, &["report", "-o", "page.html", "i"]), b"");
    assert_eq!(fs::metadata(tree.at("page.html")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_device_or_a_pipe_is_not_replaced() {
    let tree = scanned();
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.at("pipe"), 0o600.into()).unwrap();
    std::os::unix::fs::symlink("/dev/null", tree.at("null")).unwrap();
    for name in ["pipe", "null"] {
        let before = fs::symlink_metadata(tree.at(name)).unwrap().file_type();
        let output = fathom(&tree, ["report", "-o", name, "i"]);
        let message = format!("fathom report: cannot create '{name}': it exists and is not a regular file\n");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr)),
            (Some(1), message.into())
        );
        assert_eq!(fs::symlink_metadata(tree.at(name)).unwrap().file_type(), before);
        assert!(!tree.at(name).with_extension("part").exists());
    }
}

#[test]
fn a_damaged_inventory_leaves_the_earlier_page() {
    let tree = scanned();
    tree.holding("page.html", "earlier");
    for file in fs::read_dir(tree.at("i")).unwrap().map(|file| file.unwrap().path()) {
        let bytes = fs::read(&file).unwrap();
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x80;
        fs::write(&file, damaged).unwrap();
        let output = fathom(&tree, ["report", "-o", "page.html", "i"]);
        // The page has no groups.
        let is_read = !file.to_str().unwrap().contains("groups");
        assert_eq!(output.status.code(), Some(i32::from(is_read)), "{file:?}: {output:?}");
        if is_read {
            assert!(output.stderr.starts_with(b"fathom report: cannot read 'i"), "{output:?}");
            assert_eq!(fs::read(tree.at("page.html")).unwrap(), b"earlier");
        } else {
            tree.holding("page.html", "earlier");
        }
        assert!(!tree.at("page.html.part").exists());
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn a_full_disk_leaves_the_earlier_page() {
    let tree = scanned();
    tree.holding("page.html", "earlier");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" report -o page.html i";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(program()).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    let message = "fathom report: cannot write 'page.html.part': File too large\n";
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
        (Some(1), message)
    );
    assert_eq!(fs::read(tree.at("page.html")).unwrap(), b"earlier");
    assert!(!tree.at("page.html.part").exists());
}

#[test]
fn misuse_is_explained() {
    let tree = scanned();
    for (words, status, message) in [
        (&["i"][..], 2, "missing option: -o FILE, or -o - for standard output"),
        (&["-o", "-"], 2, "missing operand: INVENTORY"),
        (&["-o", "-", "i", "j"], 2, "extra operand"),
        (&["-o", "..", "i"], 2, "is not a valid file name"),
        (&["-o", "no/where.html", "i"], 1, "cannot create 'no/where.html.part': No such file or directory"),
        (&["-o", "-", "none"], 1, "No such file or directory"),
        (&["-o", "-", "--since", "none", "i"], 1, "No such file or directory"),
    ] {
        let output = fathom(&tree, [&["report"], words].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.starts_with("fathom report: ") && said.contains(message), "{words:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_incomplete_inventory_is_shown_with_what_is_missing() {
    let tree = Tree::parse("s/a/f 5");
    let scanned = fathom(&tree, ["scan", "-o", "i", "s", "missing"]);
    assert_eq!(scanned.status.code(), Some(1), "{scanned:?}");
    let output = fathom(&tree, ["report", "-o", "-", "i"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.starts_with(b"fathom report: warning: the inventory is incomplete"), "{output:?}");
    let data = crate::report::data(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!((&data["complete"], &data["completeness"]["missing_roots"]), (&false.into(), &1.into()));
    assert_eq!(data["errors"]["count"], 1);
    let row = data["errors"]["rows"][0].to_string();
    assert!(row.contains("missing") && row.contains("No such file or directory"), "{row}");
}
