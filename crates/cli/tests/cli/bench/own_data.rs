//! `--tree` and `--file`: data of the user's own is measured, and never changed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{names, run, temp};

/// Returns the names below `dir` with their inodes, sizes and times of change.
fn state(dir: &Path) -> Vec<(String, u64, u64, i64, i64)> {
    let mut all = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in dir.read_dir().unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            let name = entry.path().display().to_string();
            all.push((name, meta.ino(), meta.size(), meta.mtime(), meta.ctime_nsec()));
            if meta.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    all.sort();
    all
}

fn run_gatherers(dir: &Path, workload: &str) -> (Option<i32>, String, String) {
    run(dir, &format!("{workload} --tree tree --threads 2 --backlog 1,65536 --cache warm --blocks 2 --json"))
}

#[test]
fn a_tree_of_ones_own_is_walked_by_every_arm_and_not_changed() {
    let dir = temp();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b/c")).unwrap();
    fs::write(tree.join("a/b/file"), "12345").unwrap();
    std::os::unix::fs::symlink("nowhere", tree.join("a/link")).unwrap();
    let before = state(dir.path());
    for workload in ["walk", "stat"] {
        let words = format!("{workload} --tree tree --cache warm --blocks 2 --json");
        let (status, out, err) = run(dir.path(), &words);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        let run: Value = serde_json::from_str(&out).unwrap();
        let rows = run["rows"].as_array().unwrap();
        let (status, out, err) = run_gatherers(dir.path(), workload);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        let gathered: Value = serde_json::from_str(&out).unwrap();
        let gathered = gathered["rows"].as_array().unwrap();
        assert!(
            gathered.iter().all(|row| row["ops"] == 5 && row["memory_bytes"].as_u64() > Some(100_000)),
            "{out}"
        );
        for method in ["threads=2:backlog=1", "threads=2:backlog=65536"] {
            assert!(gathered.iter().any(|row| row["method"] == method), "{out}");
        }
        assert!(rows.len() >= 8 && rows.iter().all(|row| row["ops"] == 5), "{out}");
        assert_eq!(rows[0]["cell"], format!("{workload} of 'tree', warm"));
        assert_eq!(run["arms"][0]["cell"], rows[0]["cell"]);
    }
    assert_eq!(state(dir.path()), before);
}

#[test]
fn a_file_of_ones_own_is_read_by_every_arm_and_not_changed() {
    let dir = temp();
    fs::write(dir.path().join("data"), vec![7; 300_001]).unwrap();
    let before = state(dir.path());
    for (words, bytes) in [
        ("read --block 4K", 300_001),
        ("random-read --block 4K", 300_001),
        ("read --size 8K --block 1K", 8192),
        ("random-read --direct --block 4K", 299_008),
    ] {
        let (status, out, err) = run(dir.path(), &format!("{words} --file data --blocks 1 --json"));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{words}");
        let run: Value = serde_json::from_str(&out).unwrap();
        let rows = run["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["size_bytes"] == bytes), "{words}: {out}");
        // On a filesystem in memory, a sample cannot be cold.
        assert!(rows.iter().filter(|row| row["discarded"] == "").count() >= 8, "{words}: {out}");
    }
    assert_eq!(state(dir.path()), before);
    assert_eq!(names(dir.path()), ["data"]);
}

#[test]
fn data_that_is_not_there_or_of_another_kind_is_refused() {
    let dir = temp();
    fs::write(dir.path().join("empty"), "").unwrap();
    for (words, status, said) in [
        ("walk --tree none", 1, "cannot read 'none': No such file or directory"),
        ("walk --tree empty", 1, "cannot read 'empty': Not a directory"),
        ("read --file empty", 1, "cannot read 'empty': the file is empty"),
        ("read --file .", 1, "cannot read '.': not a regular file"),
        ("read --backlog 1 --file empty", 2, "--backlog has no effect on read, only on walk, stat"),
        ("read --tree .", 2, "--tree has no effect on read, only on walk, stat"),
        ("write --file empty", 2, "--file has no effect on write, only on read, random-read"),
        ("walk --tree . --files 3", 2, "--files applies to files that are created, and --tree creates none"),
        ("walk --tree . --path .", 2, "--path applies to files that are created, and --tree creates none"),
        (
            "read --file empty --lang c",
            2,
            "--lang applies to files that are created, and --file creates none",
        ),
    ] {
        let (found, out, err) = run(dir.path(), words);
        assert_eq!((found, out.as_str()), (Some(status), ""), "{words}: {err}");
        assert!(err.starts_with(&format!("fathom bench: {said}")), "{words}: {err}");
    }
}

/// Once, `stat --tree` ended with an error at the first directory of another user.
#[test]
fn what_cannot_be_read_below_a_tree_is_left_out_and_named() {
    if !rustix::process::geteuid().is_root() {
        return crate::support::skip("needs root, to run as somebody else");
    }
    // Another user may not search the target directory, perhaps.
    let (dir, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = bin.path().join("fathom");
    fs::copy(env!("CARGO_BIN_EXE_fathom"), &program).unwrap();
    fs::set_permissions(bin.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("locked/x")).unwrap();
    fs::create_dir_all(tree.join("open")).unwrap();
    fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for backlog in ["", "--threads 1 --backlog 4"] {
        let words = format!("stat --tree tree --models sync --cache warm --blocks 2 --json {backlog}");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups"]).arg(&program);
        let out = command.arg("bench").args(words.split(' ').filter(|word| !word.is_empty()));
        let out = out.current_dir(dir.path()).output().unwrap();
        let run: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert!(run["rows"].as_array().unwrap().iter().all(|row| row["ops"] == 2), "{run}");
        let note = "files skipped, because they cannot be read: 1, such as 'tree/locked': Permission denied";
        assert!(run["notes"].as_array().unwrap().iter().any(|one| one == note), "{run}");
    }
}

#[test]
fn a_file_smaller_than_the_size_is_said() {
    let dir = temp();
    fs::write(dir.path().join("data"), vec![7; 300_001]).unwrap();
    let (status, out, err) =
        run(dir.path(), "read --file data --size 1M --models sync --blocks 1 --cache warm");
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let note = "note: 'data' has 300001 B, fewer than the --size of 1048576 B\n";
    assert!(out.contains(note), "{out}");
    let (_, out, _) = run(dir.path(), "read --file data --models sync --blocks 1 --cache warm");
    assert!(!out.contains("fewer than"), "{out}");
}
