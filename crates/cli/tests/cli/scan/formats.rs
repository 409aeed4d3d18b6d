//! Inventories in earlier formats are still read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scan::run;
use crate::support::Tree;
use crate::support::program::Program;

/// Returns the path of an inventory in this format. Its roots are `tree` and `missing`; the latter
/// did not exist. The tree contains `tree/sub/a.txt` and its hard link `tree/link`, `tree/symlink`,
/// `tree/odd\xff`, and the empty directories `tree/sub/empty` and `tree/.hid`.
fn of_format(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/scan/format-{format}.inv"))
}

/// Returns the standard output of a command. Panics unless its exit status is `status`.
#[track_caller]
fn answer(format: u32, status: i32, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    let output = run(command.args(words).arg(of_format(format)).env("LC_ALL", "C.UTF-8"));
    assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
    output.stdout
}

#[test]
fn earlier_formats_are_read_by_every_command() {
    [1, 2].into_iter().for_each(is_read_by_every_command);
}

#[track_caller]
fn is_read_by_every_command(format: u32) {
    let answer = |status, words: &[&str]| answer(format, status, words);
    let exported = answer(0, &["export", "--to", "nul"]);
    let paths: Vec<_> = exported.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    let expected: [&[u8]; 8] = [
        b"tree",
        b"tree/.hid",
        b"tree/link",
        b"tree/odd\xff",
        b"tree/sub",
        b"tree/sub/a.txt",
        b"tree/sub/empty",
        b"tree/symlink",
    ];
    let mut sorted = paths.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    let lines = String::from_utf8(answer(1, &["du", "--inodes", "--from"])).unwrap();
    assert!(lines.ends_with("7\ttree\n"), "two names are of one inode: {lines}");
    let top = String::from_utf8(answer(0, &["top", "--by", "type", "--json"])).unwrap();
    assert!(top.contains("\"directory\"") || top.contains("\"d\""), "{top}");
    let old = of_format(format);
    answer(2, &["diff", old.to_str().unwrap()]);
    assert!(answer(0, &["export", "--to", "sql"]).ends_with(b"COMMIT;\n"));
}

#[test]
fn a_format_of_the_future_is_refused() {
    let tree = Tree::new();
    let copy = tree.path().join("future");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(of_format(1)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let manifest = fs::read_to_string(copy.join("manifest.json")).unwrap();
    fs::write(copy.join("manifest.json"), manifest.replace("\"format\": 1", "\"format\": 99")).unwrap();
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    let output = run(command.args(["top", "future"]).current_dir(tree.path()).env("LC_ALL", "C"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("it has format 99, this program reads up to "), "{stderr}");
}
