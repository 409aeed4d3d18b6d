//! The column `attributes`: set with ioctl(2), as chattr(1) does, and recorded with every model.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::record::Field;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::scan::tables::{entries, rows};
use crate::scan::{beside, run, scan, scan_completely};
use crate::support::{Tree, skip};

/// A file with attributes that are removed on drop, because an immutable file cannot be deleted.
struct FlaggedFile(PathBuf, IFlags);

impl FlaggedFile {
    /// Sets `flags`. Returns `None` if the filesystem does not support them or a privilege is
    /// missing.
    fn new(path: &Path, flags: IFlags) -> Option<Self> {
        let file = File::open(path).unwrap();
        let before = ioctl_getflags(&file).ok()?;
        ioctl_setflags(&file, before | flags).ok()?;
        Some(Self(path.to_owned(), before))
    }
}

impl Drop for FlaggedFile {
    fn drop(&mut self) {
        let file = File::open(&self.0).unwrap();
        ioctl_setflags(&file, self.1).unwrap();
    }
}

#[test]
fn attributes_that_were_set_are_found_under_every_model() {
    let tree = Tree::parse("s/plain 1, s/backup.tmp 1, s/log 1, s/tmp/f 1, s/link -> plain, s/fifo |");
    let at = |name: &str| tree.path().join("s").join(name);
    let marked = [
        (FlaggedFile::new(&at("backup.tmp"), IFlags::NODUMP), "s/backup.tmp", "d"),
        (FlaggedFile::new(&at("log"), IFlags::APPEND.union(IFlags::NODUMP)), "s/log", "ad"),
        (FlaggedFile::new(&at("tmp"), IFlags::IMMUTABLE), "s/tmp", "i"),
    ];
    let expected: Vec<_> = marked.iter().filter(|(set, ..)| set.is_some()).collect();
    if expected.len() < marked.len() {
        skip("not every attribute can be set here");
    }
    for model in ["sync", "threads=3", "auto", "async-seq", "async-par", "uring"] {
        if model == "uring"
            && !run(scan(&tree).args(["--io", "uring", "-o", "../ring", "s/plain"])).status.success()
        {
            skip("io_uring is not available here");
            continue;
        }
        let inventory = scan_completely(&tree, &format!("inv-{model}"), &format!("--io {model} s"));
        let found = entries(&inventory);
        for (_, path, text) in &expected {
            assert_eq!(
                found[path.as_bytes()]["attributes"],
                Field::Str((*text).to_owned()),
                "{model}: {path}"
            );
        }
        if !expected.is_empty() {
            assert_eq!(found[&b"s/plain"[..]]["attributes"], Field::Str("-".to_owned()), "{model}");
        }
    }
}

/// /proc does not report attributes: the value is null, not an empty set.
#[test]
fn a_filesystem_that_reports_nothing_has_null() {
    if !Path::new("/proc/self/attr").is_dir() {
        return skip("there is no /proc/self/attr");
    }
    let tree = Tree::new();
    let out = beside(&tree, "inv");
    // Entries of /proc may vanish, in which case the status is 1.
    run(scan(&tree).arg("-o").arg(&out).args(["/proc/self/attr", "/proc/version"]));
    let found = rows(&out, "entries");
    assert!(!found.is_empty() && found.iter().all(|entry| entry["attributes"] == Field::Null), "{found:?}");
}

/// A changed attribute is reported by every command that has the column.
#[test]
fn a_changed_attribute_is_a_change() {
    let tree = Tree::parse("s/f 1, s/g 1");
    scan_completely(&tree, "old", "s");
    let Some(_marked) = FlaggedFile::new(&tree.path().join("s/f"), IFlags::NODUMP) else {
        return skip("no attribute can be set here");
    };
    scan_completely(&tree, "new", "s");
    let run_fathom = |words: &[&str]| {
        let mut command = std::process::Command::new(crate::scan::Program::AsDu.bin().join("fathom"));
        let output = run(command.args(words).current_dir(tree.path()).env("LC_ALL", "C"));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run_fathom(&["diff", "../old", "../new"]), (Some(1), "M s/f: attributes - -> d\n".to_owned()));
    let (_, json) = run_fathom(&["diff", "--json", "../old", "../new"]);
    assert!(json.contains("\"fields\":[\"attributes\"]") && json.contains("\"attributes\":\"d\""), "{json}");
    let (_, csv) = run_fathom(&["export", "--to", "csv", "../new"]);
    let header: Vec<_> = csv.lines().next().unwrap().split(',').collect();
    let column = header.iter().position(|name| *name == "attributes").unwrap();
    let of = |name: &str| {
        let line = csv.lines().find(|line| line.starts_with(name)).unwrap();
        line.split(',').nth(column).unwrap().to_owned()
    };
    assert_eq!([of("s/f,"), of("s/g,")], ["d", "-"]);
    for words in [&["export", "--to", "jsonl", "../new"][..], &["list", "--json", "--from", "../new"]] {
        let (_, lines) = run_fathom(words);
        let line = lines.lines().find(|line| line.contains("\"s/f\"")).unwrap();
        assert!(line.contains("\"attributes\":\"d\""), "{line}");
    }
}
