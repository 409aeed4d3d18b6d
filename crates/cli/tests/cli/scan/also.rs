//! The columns of `--also`, compared with the results of the system calls on the same files.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use parquet::record::Field;
use rustix::fs::XattrFlags;

use crate::scan::faults::{StoppedScan, killed_at};
use crate::scan::tables::{RowValues, entries, manifest, rows};
use crate::scan::{Program, beside, run, scan, scan_completely};
use crate::support::{Tree, needs_faults, needs_tool, skip};

/// Returns an access control list that lets user 1000 read: `struct posix_acl_xattr_header` and its
/// entries (linux/posix_acl_xattr.h).
fn acl() -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, NO_ID), (2, 4, 1000), (4, 4, NO_ID), (0x10, 4, NO_ID), (0x20, 0, NO_ID)];
    let entry = |(tag, permissions, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [&2u32.to_le_bytes()[..], &entries.map(entry).concat()].concat()
}

fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).is_ok()
}

/// Returns a tree of files and directories with extended attributes and access control lists;
/// `None` if the filesystem supports none.
fn marked() -> Option<Tree> {
    let tree = Tree::parse(
        "s/plain 1, s/named 1, s/odd 1, s/listed 1, s/d/in 1, s/e/, s/link -> named, s/fifo |, lone 1",
    );
    let at = |name: &str| tree.path().join("s").join(name);
    let done = [
        set(&at("../lone"), "user.lone", b""),
        set(&at("named"), "user.b", b"x") && set(&at("named"), "user.a", b""),
        set(&at("odd"), "user.a b\\", b"") && set(&at("odd"), "user.\u{e9}", b""),
        set(&at("listed"), "system.posix_acl_access", &acl()),
        set(&at("d"), "system.posix_acl_default", &acl()) && set(&at("d"), "user.dir", b""),
    ];
    if done.contains(&false) {
        skip("the filesystem has no extended attributes, or no access control lists");
        return None;
    }
    Some(tree)
}

/// Returns the names from llistxattr(2) in the format of the column, and whether an ACL is among
/// them.
fn truth(path: &Path) -> (String, bool) {
    let mut names = vec![0; 64 * 1024];
    let len = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    let mut names: Vec<_> = names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    let text = |name: &&[u8]| std::str::from_utf8(name).unwrap().replace('\\', "\\x5c").replace(' ', "\\x20");
    let has_acl = names.iter().any(|name| name.starts_with(b"system.posix_acl_"));
    (names.iter().map(text).collect::<Vec<_>>().join(" "), has_acl)
}

fn fathom(tree: &Tree, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    let output = run(command.args(words).current_dir(tree.path()).env("LC_ALL", "C.UTF-8"));
    assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[track_caller]
fn assert_tells(cells: &RowValues, path: &Path) {
    let (names, has_acl) = truth(path);
    assert_eq!(cells["xattrs"], Field::Str(names), "{}", path.display());
    assert_eq!(cells["acl"], Field::Bool(has_acl), "{}", path.display());
}

#[test]
fn names_and_lists_are_found_under_every_model() {
    let Some(tree) = marked() else { return };
    let truths: Vec<bool> =
        ["s/plain", "s/listed", "s/d"].map(|path| truth(&tree.path().join(path)).1).into();
    assert_eq!(truths, [false, true, true]);
    for model in ["sync", "threads=3", "auto", "async-seq", "async-par", "uring"] {
        if model == "uring"
            && !run(scan(&tree).args(["--io", "uring", "-o", "../ring", "s/plain"])).status.success()
        {
            skip("io_uring is not available here");
            continue;
        }
        let words = format!("--io {model} --also xattrs,acl s lone");
        let inventory = scan_completely(&tree, &format!("inv-{model}"), &words);
        let dirs = rows(&inventory, "dirs");
        let found: Vec<_> = dirs.iter().chain(&rows(&inventory, "entries")).cloned().collect();
        assert_eq!(found.len(), 11, "{model}");
        for (path, cells) in entries(&inventory) {
            assert_tells(&cells, &tree.path().join(std::ffi::OsStr::from_bytes(&path)));
            assert!(!cells.contains_key("project"), "it was not asked for");
        }
    }
}

#[test]
fn without_the_option_there_are_neither_columns_nor_calls() {
    let Some(tree) = marked() else { return };
    let plain = scan_completely(&tree, "plain", "s");
    for table in ["dirs", "entries"] {
        for cells in rows(&plain, table) {
            assert!(
                !["project", "xattrs", "acl"].iter().any(|column| cells.contains_key(*column)),
                "{cells:?}"
            );
        }
    }
    assert_eq!(manifest(&plain).get("also"), None);
    if !needs_tool("strace") {
        return;
    }
    let traced = |words: &[&str]| {
        let log = beside(&tree, "log");
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-qq",
            "-e",
            "trace=listxattr,llistxattr,flistxattr,ioctl",
            "-e",
            "signal=none",
            "-o",
        ]);
        let program = Program::AsDu.bin().join("fathom");
        command.arg(&log).arg(program).args(["scan", "--io", "sync", "-o"]).args(words);
        let output = run(command.current_dir(tree.path()).env("LC_ALL", "C"));
        let _ = fs::remove_dir_all(beside(&tree, "traced"));
        let calls = fs::read_to_string(log).unwrap_or_default();
        let count = |name: &str| calls.lines().filter(|line| line.contains(name)).count();
        (output.status.success(), count("listxattr("), count("FSGETXATTR"))
    };
    let (works, lists, projects) = traced(&["../traced", "s"]);
    if !works {
        return skip("no process can be traced here");
    }
    assert_eq!((lists, projects), (0, 0));
    let (_, lists, _) = traced(&["../traced", "--also", "xattrs,acl", "s"]);
    assert_eq!(lists, 10, "one call for each entry");
}

#[test]
fn a_project_is_what_lsattr_says() {
    if !needs_tool("lsattr") || !needs_tool("chattr") {
        return;
    }
    let tree = Tree::parse("s/f 1, s/g 1, s/d/x 1, s/fifo |");
    let at = |name: &str| tree.path().join("s").join(name);
    if !run(Command::new("chattr").args(["-p", "4242"]).arg(at("g"))).status.success() {
        skip("the filesystem keeps no projects: all have number 0, or none");
    }
    let lsattr = |path: &Path| {
        let output = run(Command::new("lsattr").args(["-pd"]).arg(path));
        String::from_utf8(output.stdout).unwrap().split_whitespace().next().and_then(|word| word.parse().ok())
    };
    let found = entries(&scan_completely(&tree, "inv", "--also project s"));
    for path in ["s/f", "s/g", "s/d", "s/d/x"] {
        let expected: Option<u32> = lsattr(&tree.path().join(path));
        assert_eq!(found[path.as_bytes()]["project"], expected.map_or(Field::Null, Field::UInt), "{path}");
    }
}

/// Returns the first directory in `dir`.
fn directory_in(dir: &File) -> Option<File> {
    let path: PathBuf = format!("/proc/self/fd/{}", dir.as_raw_fd()).into();
    let mut entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
    let below = entries.find(|entry| entry.file_type().unwrap().is_dir())?;
    Some(File::open(path.join(below.file_name())).unwrap())
}

/// The path of the innermost directory is longer than `PATH_MAX`.
#[test]
fn columns_are_read_beyond_path_max() {
    let tree = Tree::parse("s/").deep("s/chain", 40, 200);
    let mut dir = File::open(tree.path().join("s/chain")).unwrap();
    let mut levels = 0;
    while let Some(below) = directory_in(&dir) {
        dir = below;
        levels += 1;
    }
    assert!(levels * 200 > 4096, "{levels}");
    let inside: PathBuf = format!("/proc/self/fd/{}/file", dir.as_raw_fd()).into();
    fs::write(&inside, "").unwrap();
    if !set(&inside, "user.file", b"")
        || rustix::fs::fsetxattr(&dir, "user.dir", b"", XattrFlags::empty()).is_err()
    {
        return skip("the filesystem has no extended attributes");
    }
    for model in ["sync", "async-par"] {
        let inventory =
            scan_completely(&tree, &format!("inv-{model}"), &format!("--io {model} --also xattrs s"));
        let named = |table: &str, text: &str| {
            rows(&inventory, table)
                .iter()
                .filter(|cells| cells["xattrs"] == Field::Str(text.to_owned()))
                .count()
        };
        assert_eq!((named("entries", "user.file"), named("dirs", "user.dir")), (1, 1), "{model}");
    }
}

#[test]
fn a_file_removed_during_the_scan_is_an_error_of_that_column() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("s/f 1");
    let out = beside(&tree, "inv");
    let halted = StoppedScan::at(&tree, &out, "asking", &["--io=sync", "--also=xattrs,acl,project", "s"]);
    fs::remove_file(tree.path().join("s/f")).unwrap();
    let output = halted.go_on();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    for operation in ["read the project of", "list the extended attributes of"] {
        assert!(
            stderr.contains(&format!("cannot {operation} 's/f': No such file or directory\n")),
            "{stderr}"
        );
    }
    assert!(stderr.contains("2 values of --also are unknown"), "{stderr}");
    let found = &entries(&out)[&b"s/f"[..]];
    assert_eq!(
        (&found["xattrs"], &found["acl"], &found["project"]),
        (&Field::Null, &Field::Null, &Field::Null)
    );
    assert_eq!((&found["errno"], &found["size"]), (&Field::Null, &Field::Long(1)));
    let ops: Vec<_> = rows(&out, "errors").iter().map(|row| row["op"].to_string()).collect();
    assert_eq!(ops, ["\"project\"", "\"xattrs\""]);
    assert_eq!(manifest(&out)["completeness"]["unknown_values"], 2);
}

#[test]
fn a_resumed_scan_keeps_the_columns() {
    if !needs_faults() {
        return;
    }
    let Some(tree) = marked() else { return };
    let out = beside(&tree, "inv");
    killed_at(&tree, &out, "journal-synced:2", &["--checkpoint=1", "--also=acl,xattrs", "s"]);
    let refused = run(scan(&tree).args(["--resume", "--also=project", "-o"]).arg(&out));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("it was started with another --also"), "{stderr}");
    assert!(run(scan(&tree).args(["--resume", "-o"]).arg(&out)).status.success());
    assert_eq!(manifest(&out)["also"], "xattrs,acl");
    for (path, cells) in entries(&out) {
        assert_tells(&cells, &tree.path().join(std::ffi::OsStr::from_bytes(&path)));
    }
}

#[test]
fn a_scan_since_one_that_lacks_a_column_is_refused() {
    let Some(tree) = marked() else { return };
    let old = scan_completely(&tree, "old", "--also acl s");
    let since = |also: &str, name: &str| {
        run(scan(&tree)
            .args(["--also", also, "--since"])
            .arg(&old)
            .arg("-o")
            .arg(beside(&tree, name))
            .arg("s"))
    };
    let refused = since("xattrs,acl", "new");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("it lacks columns of --also=xattrs,acl"), "{stderr}");
    assert!(since("acl", "same").status.success());
    let found = entries(&beside(&tree, "same"));
    assert_eq!(found[&b"s/listed"[..]]["acl"], Field::Bool(true));
}

#[test]
fn inventories_with_and_without_are_merged_and_compared() {
    let Some(tree) = marked() else { return };
    scan_completely(&tree, "with", "--also xattrs,acl s");
    scan_completely(&tree, "without", "s");
    // Only columns that both inventories have are compared.
    assert_eq!(fathom(&tree, &["diff", "../without", "../with"]), (Some(0), String::new()));
    assert_eq!(fathom(&tree, &["merge", "-o", "../both", "../with", "../without"]).0, Some(0));
    let both = beside(&tree, "both");
    assert_eq!(manifest(&both)["also"], "xattrs,acl");
    let listed: Vec<_> = rows(&both, "entries")
        .into_iter()
        .filter(|row| row["name"] == Field::Str("listed".to_owned()))
        .collect();
    assert_eq!([&listed[0]["acl"], &listed[1]["acl"]], [&Field::Bool(true), &Field::Null]);
    let dirs = rows(&both, "dirs");
    assert_eq!(dirs.iter().filter(|dir| dir["xattrs"] != Field::Null).count(), 3, "those of one of them");
    rustix::fs::removexattr(tree.path().join("s/named"), "user.b").unwrap();
    rustix::fs::removexattr(tree.path().join("s/d"), "system.posix_acl_default").unwrap();
    scan_completely(&tree, "later", "--also xattrs,acl s");
    let (status, text) = fathom(&tree, &["diff", "../with", "../later"]);
    assert_eq!(status, Some(1));
    assert!(text.contains("M s/named: xattrs 'user.a user.b' -> 'user.a'\n"), "{text}");
    assert!(text.contains("M s/d/: xattrs ") && text.contains(", acl true -> false\n"), "{text}");
    let (_, json) = fathom(&tree, &["diff", "--json", "../with", "../later"]);
    assert!(json.contains("\"fields\":[\"xattrs\",\"acl\"]") && json.contains("\"acl\":false"), "{json}");
}

#[test]
fn exports_and_lists_have_the_columns() {
    let Some(tree) = marked() else { return };
    scan_completely(&tree, "inv", "--also xattrs,acl s");
    for words in [&["export", "--to", "jsonl", "../inv"][..], &["list", "--json", "--from", "../inv"]] {
        let (_, lines) = fathom(&tree, words);
        let line =
            |path: &str| lines.lines().find(|line| line.contains(&format!("\"path\":\"{path}\""))).unwrap();
        assert!(line("s/named").contains("\"xattrs\":\"user.a user.b\",\"acl\":false"), "{lines}");
        assert!(line("s/d").contains("user.dir\",\"acl\":true"), "{lines}");
        assert!(!lines.contains("\"project\""), "{lines}");
    }
    let (_, csv) = fathom(&tree, &["export", "--to", "csv", "../inv"]);
    let mut lines = csv.split("\r\n");
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[15..18], ["attributes", "xattrs", "acl"]);
    for line in lines.filter(|line| !line.is_empty()) {
        assert_eq!(line.split(',').count(), header.len(), "{line}");
    }
    assert!(csv.contains(",user.a user.b,false,"), "{csv}");
    let (_, sql) = fathom(&tree, &["export", "--to", "sql", "../inv"]);
    assert!(sql.contains("\"xattrs\" TEXT, \"acl\" INTEGER") && !sql.contains("\"project\""), "{sql}");
    if needs_tool("sqlite3") {
        let script = "sqlite3 db <../dump && sqlite3 db 'SELECT name FROM entries WHERE acl'";
        fs::write(beside(&tree, "dump"), &sql).unwrap();
        let output = run(Command::new("sh").args(["-c", script]).current_dir(tree.path()));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "listed\n");
    }
}

/// Returns the paths of the entries that are marked.
fn ignored(inventory: &Path) -> Vec<String> {
    let all = entries(inventory).into_iter();
    let marked = all.filter(|(path, cells)| {
        assert!(matches!(cells["ignored"], Field::Bool(_)), "{path:?}: {cells:?}");
        cells["ignored"] == Field::Bool(true)
    });
    marked.map(|(path, _)| String::from_utf8(path).unwrap()).collect()
}

#[test]
fn what_version_control_ignores_is_marked_with_everything_below() {
    let tree =
        Tree::parse("r/.git/, r/build/a/b/c 1, r/build/keep 1, r/src/x.o 1, r/src/x.c 1, r/deep/x.o 1");
    tree.holding("r/.gitignore", "build\n*.o\n");
    tree.holding("r/build/.gitignore", "!keep\n");
    let expected = [
        "r/build",
        "r/build/.gitignore",
        "r/build/a",
        "r/build/a/b",
        "r/build/a/b/c",
        "r/build/keep",
        "r/deep/x.o",
        "r/src/x.o",
    ];
    for (name, words) in [("one", "--also ignored r"), ("two", "--also ignored,acl --io threads=3 r")] {
        let mut found = ignored(&scan_completely(&tree, name, words));
        found.sort();
        assert_eq!(found, expected, "{words}");
    }
    // An operand is never ignored, and one at the limit of depth has a row as well.
    assert_eq!(ignored(&scan_completely(&tree, "operands", "--also ignored r/build r/src/x.o")), [""; 0]);
    assert_eq!(ignored(&scan_completely(&tree, "flat", "--also ignored -d1 r")), ["r/build"]);
    for words in [&["--ignore-vcs", "r"][..], &["--since", "../one", "r"]] {
        let output = run(scan(&tree).args(["--also", "ignored", "-o", "../no"]).args(words));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.contains("--also ignored cannot be combined with --ignore-vcs or --since"),
            "{stderr}"
        );
    }
    scan_completely(&tree, "plain", "r");
    assert_eq!(fathom(&tree, &["diff", "../one", "../plain"]), (Some(0), String::new()));
}

#[test]
fn a_resumed_scan_marks_what_is_below_an_ignored_directory() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("r/.git/, r/a 1, r/z.o 1");
    tree.holding("r/.gitignore", "build\n*.o\n");
    for (outer, inner) in (0..6).flat_map(|outer| (0..6).map(move |inner| (outer, inner))) {
        (0..6).for_each(|file| tree.file(format!("r/build/{outer}/{inner}/{file}"), 1));
    }
    let mut whole = ignored(&scan_completely(&tree, "whole", "--also ignored r"));
    whole.sort();
    assert_eq!(whole.len(), 1 + 6 + 36 + 216 + 1);
    for at in [1, 2, 3, 5, 7] {
        let out = beside(&tree, &format!("resumed-{at}"));
        killed_at(&tree, &out, &format!("journal-synced:{at}"), &["--also=ignored", "r"]);
        assert!(run(scan(&tree).args(["--resume", "-o"]).arg(&out)).status.success());
        let mut found = ignored(&out);
        found.sort();
        assert_eq!(found, whole, "{at}");
    }
}
