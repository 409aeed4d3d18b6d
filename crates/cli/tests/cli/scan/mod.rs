//! `fathom scan` records all entries of a tree, with the same result for every I/O model; reports
//! the entries that it cannot read; and can be resumed after any interruption.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use parquet::record::Field;
use serde_json::Value;

mod also;
mod attributes;
mod deep;
mod faults;
mod formats;
mod left_out;
mod private;
mod rescue;
mod resume;
mod since;
mod stream;
mod tables;

use crate::support::program::Program;
use crate::support::{Tree, skip};
use tables::{RowValues, bytes, comparable_rows, entries, manifest, number, rows};

fn scan(tree: &Tree) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.arg("scan").env("LC_ALL", "C").current_dir(tree.path());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Scans `words` into a new inventory beside the tree. Panics unless the scan is complete.
#[track_caller]
fn scan_completely(tree: &Tree, name: &str, words: &str) -> PathBuf {
    let out = beside(tree, name);
    let output = run(scan(tree).arg("-o").arg(&out).args(words.split_whitespace()));
    assert!(output.status.success() && output.stderr.is_empty(), "{words}: {output:?}");
    out
}

/// Returns a path beside the tree, which is removed with the tree.
fn beside(tree: &Tree, name: &str) -> PathBuf {
    tree.path().parent().unwrap().join(name)
}

/// Collects the standard library's metadata of all entries at and below `path`.
fn truth(tree: &Tree, path: &str, found: &mut BTreeMap<Vec<u8>, fs::Metadata>) {
    let mut pending = vec![PathBuf::from(path)];
    while let Some(path) = pending.pop() {
        let metadata = tree.path().join(&path).symlink_metadata().unwrap();
        if metadata.is_dir() {
            let below = fs::read_dir(tree.path().join(&path)).unwrap();
            pending.extend(below.map(|entry| path.join(entry.unwrap().file_name())));
        }
        found.insert(path.as_os_str().as_bytes().to_vec(), metadata);
    }
}

fn micros(sec: i64, nsec: i64) -> (i64, i64) {
    (sec * 1_000_000 + nsec / 1000, nsec % 1000)
}

#[track_caller]
fn assert_describes(cells: &RowValues, metadata: &fs::Metadata) {
    for (column, expected) in [
        ("dev", metadata.dev().cast_signed()),
        ("ino", metadata.ino().cast_signed()),
        ("mode", metadata.mode().into()),
        ("uid", metadata.uid().into()),
        ("gid", metadata.gid().into()),
        ("nlink", metadata.nlink().cast_signed()),
        ("size", metadata.size().cast_signed()),
        ("blocks", metadata.blocks().cast_signed()),
    ] {
        assert_eq!(number(cells, column), expected, "{column}");
    }
    for (column, (time, nanos)) in [
        ("mtime", micros(metadata.mtime(), metadata.mtime_nsec())),
        ("ctime", micros(metadata.ctime(), metadata.ctime_nsec())),
    ] {
        assert_eq!(
            (number(cells, column), number(cells, &format!("{column}_ns"))),
            (time, nanos),
            "{column}"
        );
    }
    if let Ok(born) = metadata.created() {
        let born = born.duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(number(cells, "btime"), i64::try_from(born.as_micros()).unwrap());
    }
}

/// Regression: the inventory contained parts of itself.
#[test]
fn a_scan_excludes_its_own_output() {
    let tree = Tree::parse("a/f 1, other.part/g 1");
    let output = run(scan(&tree).args(["-o", "./a/i", "."]));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let out = tree.path().join("a/i");
    let found: Vec<_> =
        rows(&out, "dirs").iter().map(|dir| String::from_utf8(bytes(dir, "path")).unwrap()).collect();
    let mut found = found;
    found.sort();
    assert_eq!(found, [".", "./a", "./other.part"]);
    assert_eq!(manifest(&out)["entries"], 5);
}

#[test]
fn names_with_equal_text_stay_distinct() {
    let tree = Tree::new();
    let names: [&[u8]; 3] = [b"a\\xffb", b"a\xffb", b"a\\\\xffb"];
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::create_dir(tree.path().join(name)).unwrap();
        fs::write(tree.path().join(name).join(name), "x").unwrap();
    }
    let out = scan_completely(&tree, "inv", ".");
    for (table, column) in [("dirs", "path"), ("dirs", "name"), ("entries", "name")] {
        let rows = rows(&out, table);
        let text = |row: &RowValues| match &row[column] {
            Field::Str(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let texts: std::collections::BTreeSet<_> = rows.iter().map(text).collect();
        assert_eq!(texts.len(), rows.len(), "{table} {column}: {texts:?}");
        let raw: std::collections::BTreeSet<_> = rows.iter().map(|row| bytes(row, column)).collect();
        assert!(names.iter().all(|name| raw.iter().any(|raw| raw.ends_with(name))), "{raw:?}");
    }
}

/// A time that does not fit into microseconds of 64 bits is recorded as the closest one, with a
/// warning.
#[test]
fn times_out_of_range_are_reported() {
    let tree = Tree::new();
    let Ok(temp) = tempfile::tempdir_in("/dev/shm") else { return skip("there is no /dev/shm") };
    let far = temp.path().join("far");
    fs::write(&far, "x").unwrap();
    let touched = run(Command::new("touch").args(["-d", "@9000000000000000"]).arg(&far));
    if !touched.status.success() || fs::metadata(&far).unwrap().mtime() != 9_000_000_000_000_000 {
        return skip("the filesystem of /dev/shm does not keep such times");
    }
    let out = beside(&tree, "inv");
    let output = run(scan(&tree).arg("-o").arg(&out).arg(temp.path()));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "fathom scan: cannot record a time of '{}': Value too large for defined data type\n",
        far.display()
    );
    assert_eq!((output.status.code(), stderr), (Some(0), expected));
    let errors = rows(&out, "errors");
    assert_eq!((errors.len(), &errors[0]["op"]), (1, &Field::Str("time".into())));
    assert_eq!(manifest(&out)["completeness"]["clamped_times"], 1);
    assert_eq!(number(&entries(&out)[far.as_os_str().as_bytes()], "mtime"), i64::MAX);
}

fn varied() -> Tree {
    let tree = Tree::parse(
        "a/, a/f 5000, a/g = a/f, a/empty/, a/b/c/d/, a/b/c/d/x.TXT 3, a/b/l -> ../nowhere, p |, s %, .hidden 1, h ~8G, \
         b/same = a/f, file 10",
    );
    fs::write(tree.path().join(std::ffi::OsStr::from_bytes(b"a/b/\xff\\n\n")), "raw").unwrap();
    fs::create_dir(tree.path().join(std::ffi::OsStr::from_bytes(b"a/b/\xfed"))).unwrap();
    fs::write(tree.path().join(std::ffi::OsStr::from_bytes(b"a/b/\xfed/in")), "").unwrap();
    for number in 0..3000 {
        fs::write(tree.path().join(format!("b/{number}.o")), "x").unwrap();
    }
    tree
}

#[test]
fn every_entry_is_recorded() {
    let tree = varied();
    let inventory = scan_completely(&tree, "inv", "a b p file");
    let (mut expected, found) = (BTreeMap::new(), entries(&inventory));
    ["a", "b", "p", "file"].iter().for_each(|root| truth(&tree, root, &mut expected));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, metadata) in &expected {
        println!("{}", String::from_utf8_lossy(path));
        assert_describes(&found[path], metadata);
    }
    let (x, l) = (&found[&b"a/b/c/d/x.TXT"[..]], &found[&b"a/b/l"[..]]);
    assert_eq!((&x["ext"], &x["type"]), (&Field::Str("txt".into()), &Field::Str("f".into())));
    assert_eq!((&l["link_target"], &l["type"]), (&Field::Str("../nowhere".into()), &Field::Str("l".into())));
    let manifest = manifest(&inventory);
    assert_eq!(manifest["entries"], expected.len());
    assert_eq!(manifest["completeness"]["stopped"], Value::Null);
    for file in manifest["files"].as_array().unwrap() {
        let name = file["name"].as_str().unwrap();
        assert_eq!(file["bytes"], fs::metadata(inventory.join(name)).unwrap().len(), "{name}");
    }
    assert_eq!(rows(&inventory, "links").len(), 3, "three names of one inode");
}

#[test]
fn sums_of_directories_are_those_of_their_subtrees() {
    let tree = varied();
    let inventory = scan_completely(&tree, "inv", ".");
    let found = entries(&inventory);
    let dirs = rows(&inventory, "dirs");
    let parents: BTreeMap<i64, i64> =
        dirs.iter().map(|dir| (number(dir, "dir_id"), number(dir, "post"))).collect();
    for dir in &dirs {
        let (path, id) = (bytes(dir, "path"), number(dir, "dir_id"));
        let inside = [&path[..], b"/"].concat();
        let below = || found.iter().filter(|(path, _)| path.starts_with(&inside));
        let is_dir = |cells: &RowValues| cells.contains_key("post");
        let right_in = |path: &[u8]| !path[inside.len()..].contains(&b'/');
        let count = |keep: &dyn Fn(&[u8], &RowValues) -> bool| {
            i64::try_from(below().filter(|(path, cells)| keep(path, cells)).count()).unwrap()
        };
        let regular = |cells: &RowValues| cells.get("type") == Some(&Field::Str("f".into()));
        assert_eq!(number(dir, "t_files"), count(&|_, cells| regular(cells)), "{dir:?}");
        assert_eq!(number(dir, "t_dirs"), count(&|_, cells| is_dir(cells)), "{dir:?}");
        assert_eq!(number(dir, "n_files"), count(&|path, cells| regular(cells) && right_in(path)), "{dir:?}");
        assert_eq!(number(dir, "n_dirs"), count(&|path, cells| is_dir(cells) && right_in(path)), "{dir:?}");
        let sum = |column: &str, dirs: bool| -> i64 {
            below().filter(|(_, cells)| dirs || !is_dir(cells)).map(|(_, cells)| number(cells, column)).sum()
        };
        assert_eq!(number(dir, "t_size"), sum("size", false), "{dir:?}");
        assert_eq!(number(dir, "t_blocks"), sum("blocks", true) + number(dir, "blocks"), "{dir:?}");
        let inside_interval = parents.keys().filter(|other| (id + 1..=parents[&id]).contains(*other)).count();
        assert_eq!(i64::try_from(inside_interval).unwrap(), number(dir, "t_dirs"), "{dir:?}");
    }
}

#[test]
fn every_model_writes_the_same() {
    let tree = varied();
    let first = comparable_rows(&scan_completely(&tree, "first", "--io sync ."));
    assert!(first.len() > 3000);
    let others = ["threads=1", "threads=7", "async-seq", "async-par", "uring"];
    for (at, model) in fathom_cases::engines("auto", &others).into_iter().enumerate() {
        if model == "uring"
            && !run(scan(&tree).args(["--io", "uring", "-o", "../ring", "p"])).status.success()
        {
            skip("io_uring is not available here");
            continue;
        }
        let inventory = scan_completely(&tree, &format!("inv{at}"), &format!("--io {model} ."));
        assert!(comparable_rows(&inventory) == first, "{model}");
    }
}

#[test]
fn unreadable_directories_are_reported_and_the_rest_is_recorded() {
    let tree = Tree::parse("d/, d/f 1, e/, e/g 2");
    let output = run(scan(&tree).args(["-o", "../inv", "d", "missing", "e"]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("fathom scan: cannot access 'missing': No such file or directory\n"),
        "{stderr}"
    );
    assert!(stderr.contains("the inventory is incomplete: 1 of 3 "), "{stderr}");
    let inventory = beside(&tree, "inv");
    assert_eq!(entries(&inventory).len(), 4);
    let errors = rows(&inventory, "errors");
    assert_eq!((errors.len(), &errors[0]["message"]), (1, &Field::Str("No such file or directory".into())));
    assert_eq!(manifest(&inventory)["completeness"]["missing_roots"], 1);
}

/// Once, the explorer could do nothing with the entries of such a tree: their place was unknown.
#[test]
fn relative_roots_have_their_absolute_paths_too() {
    let tree = Tree::parse("d/f 1, e 1");
    let here = tree.at(".").canonicalize().unwrap();
    let inventory = scan_completely(&tree, "inv", &format!("d ./e . {}", here.join("d").display()));
    let roots = &manifest(&inventory)["roots"];
    let absolute = |root: usize| roots[root]["absolute"].as_str().map(PathBuf::from);
    assert_eq!([0, 1, 2, 3].map(absolute), [Some(here.join("d")), Some(here.join("e")), Some(here), None]);
    assert_eq!(roots[1]["path"], "./e");
}

#[test]
fn an_existing_output_is_not_replaced() {
    let tree = Tree::parse("f 1, taken 3, new.part/foreign 1");
    for (name, made) in [("taken", "taken"), ("new", "new.part")] {
        let output = run(scan(&tree).args(["-o", name, "f"]));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, format!("fathom scan: cannot create '{made}': File exists\n"));
    }
    assert_eq!(fs::read(tree.path().join("taken")).unwrap().len(), 3);
}

#[test]
fn a_failed_scan_leaves_no_inventory() {
    let tree = varied();
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" scan -o inv .";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(Program::AsDu.bin().join("fathom")).current_dir(tree.path());
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("fathom scan: cannot write 'inv.part") && stderr.contains("File too large"),
        "{stderr}"
    );
    assert!(!tree.path().join("inv").exists());
}

#[test]
fn wrong_command_lines_are_refused() {
    let tree = Tree::parse("f 1");
    for (words, message) in [
        ("f", "missing option: -o INVENTORY or --keep DIR"),
        ("-o i", "missing operand: PATH to scan"),
        (
            "-o i --deadline soon f",
            "invalid time 'soon' for '--deadline': expected a time like 500ms, 10s, 1.5h, 1h30m, 2d, 1w or 1y",
        ),
        (
            "-o i --mode 0o600 f",
            "invalid mode '0o600' for '--mode': three octal digits, the first of them 6 or 7, the last 0, 4 or 5, such as 640",
        ),
        (
            "-o i --mode 666 f",
            "invalid mode '666' for '--mode': three octal digits, the first of them 6 or 7, the last 0, 4 or 5, such as 640",
        ),
        (
            "-o i --mode 44 f",
            "invalid mode '44' for '--mode': three octal digits, the first of them 6 or 7, the last 0, 4 or 5, such as 640",
        ),
        ("--estimate 1s --mode 640 f", "--estimate cannot be combined with --mode"),
        ("-o i --rate 0 f", "invalid number '0' for '--rate'"),
        (
            "-o i --io uring --max-in-flight 2 f",
            "--max-in-flight requires the I/O model sync, threads or auto",
        ),
    ] {
        let output = run(scan(&tree).args(words.split_whitespace()));
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().next(), Some(&*format!("fathom scan: {message}")), "{words}");
    }
    assert!(!tree.path().join("i").exists() && !tree.path().join("i.part").exists());
}
