//! `fathom scan` writes down what is there, the same for every model; what it misses, it says; what ended it, it survives.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use serde_json::Value;

#[allow(unused_imports, reason = "some of what it offers is for other tests")]
mod support;

use support::program::Program;
use support::random::Random;
use support::{Tree, skip};

fn scan(tree: &Tree) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.arg("scan").env("LC_ALL", "C").current_dir(tree.path());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Scans `words` into a new inventory beside the tree, completely.
#[track_caller]
fn whole(tree: &Tree, name: &str, words: &str) -> PathBuf {
    let out = beside(tree, name);
    let output = run(scan(tree).arg("-o").arg(&out).args(words.split_whitespace()));
    assert!(output.status.success() && output.stderr.is_empty(), "{words}: {output:?}");
    out
}

/// A path beside the tree, that goes with it.
fn beside(tree: &Tree, name: &str) -> PathBuf {
    tree.path().parent().unwrap().join(name)
}

fn manifest(inventory: &Path) -> Value {
    serde_json::from_slice(&fs::read(inventory.join("manifest.json")).unwrap()).unwrap()
}

type Cells = BTreeMap<String, Field>;

/// All rows of a table, read by somebody else's code, in the order of the files.
fn rows(inventory: &Path, table: &str) -> Vec<Cells> {
    let manifest = manifest(inventory);
    let files = manifest["files"].as_array().unwrap();
    let mut names: Vec<_> = files
        .iter()
        .filter(|file| file["table"] == table)
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let cells = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    let read = |name: &&str| {
        let reader = SerializedFileReader::new(File::open(inventory.join(name)).unwrap()).unwrap();
        reader.into_iter().map(|row| cells(row.unwrap())).collect::<Vec<Cells>>()
    };
    names.iter().flat_map(read).collect()
}

fn number(cells: &Cells, column: &str) -> i64 {
    match &cells[column] {
        Field::Int(number) => i64::from(*number),
        Field::UInt(number) => i64::from(*number),
        Field::Long(number) | Field::TimestampMicros(number) => *number,
        other => panic!("{column}: {other:?}"),
    }
}

/// A name or path, by its bytes.
fn bytes(cells: &Cells, column: &str) -> Vec<u8> {
    match (&cells[column], &cells[&format!("{column}_raw")]) {
        (_, Field::Bytes(raw)) => raw.data().to_vec(),
        (Field::Str(text), Field::Null) => text.as_bytes().to_vec(),
        other => panic!("{column}: {other:?}"),
    }
}

/// Every entry, by its path: what the tables have of it.
fn entries(inventory: &Path) -> BTreeMap<Vec<u8>, Cells> {
    let dirs = rows(inventory, "dirs");
    let paths: BTreeMap<i64, Vec<u8>> =
        dirs.iter().map(|dir| (number(dir, "dir_id"), bytes(dir, "path"))).collect();
    assert_eq!(paths.len(), dirs.len(), "each directory has a number of its own");
    let mut found: BTreeMap<_, _> = dirs.into_iter().map(|dir| (bytes(&dir, "path"), dir)).collect();
    for entry in rows(inventory, "entries") {
        let name = bytes(&entry, "name");
        let path = paths.get(&number(&entry, "dir_id")).map(|dir| [&dir[..], b"/", &name].concat());
        assert!(found.insert(path.unwrap_or(name), entry).is_none(), "each entry has one row");
    }
    found
}

/// What std says of everything below `path`.
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
fn assert_describes(cells: &Cells, metadata: &fs::Metadata) {
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
fn everything_that_is_there_is_in_it() {
    let tree = varied();
    let inventory = whole(&tree, "inv", "a b p file");
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
fn sums_of_directories_are_those_of_what_is_below() {
    let tree = varied();
    let inventory = whole(&tree, "inv", ".");
    let found = entries(&inventory);
    let dirs = rows(&inventory, "dirs");
    let parents: BTreeMap<i64, i64> =
        dirs.iter().map(|dir| (number(dir, "dir_id"), number(dir, "post"))).collect();
    for dir in &dirs {
        let (path, id) = (bytes(dir, "path"), number(dir, "dir_id"));
        let inside = [&path[..], b"/"].concat();
        let below = || found.iter().filter(|(path, _)| path.starts_with(&inside));
        let is_dir = |cells: &Cells| cells.contains_key("post");
        let right_in = |path: &[u8]| !path[inside.len()..].contains(&b'/');
        let count = |keep: &dyn Fn(&[u8], &Cells) -> bool| {
            i64::try_from(below().filter(|(path, cells)| keep(path, cells)).count()).unwrap()
        };
        let regular = |cells: &Cells| cells.get("type") == Some(&Field::Str("f".into()));
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

/// All tables but for times of access and of the scan.
fn told(inventory: &Path) -> Vec<String> {
    let of = |table: &str| {
        let mut rows = rows(inventory, table);
        for row in &mut rows {
            ["scanned", "atime", "atime_ns"].iter().for_each(|column| drop(row.remove(*column)));
        }
        rows.into_iter().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    ["dirs", "entries", "errors", "links", "users", "groups"].iter().flat_map(|table| of(table)).collect()
}

#[test]
fn every_model_writes_the_same() {
    let tree = varied();
    let first = told(&whole(&tree, "first", "--io sync ."));
    assert!(first.len() > 3000);
    for (at, model) in
        ["threads=1", "threads=7", "auto", "async-seq", "async-par", "uring"].iter().enumerate()
    {
        if *model == "uring"
            && !run(scan(&tree).args(["--io", "uring", "-o", "../ring", "p"])).status.success()
        {
            skip("io_uring is not available here");
            continue;
        }
        let inventory = whole(&tree, &format!("inv{at}"), &format!("--io {model} ."));
        assert!(told(&inventory) == first, "{model}");
    }
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_there() {
    let tree = Tree::parse("d/, d/f 1, e/, e/g 2");
    let output = run(scan(&tree).args(["-o", "../inv", "d", "missing", "e"]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("fathom scan: cannot access 'missing': No such file or directory\n"), "{said}");
    assert!(said.contains("the inventory is incomplete: 1 of 3 "), "{said}");
    let inventory = beside(&tree, "inv");
    assert_eq!(entries(&inventory).len(), 4);
    let errors = rows(&inventory, "errors");
    assert_eq!((errors.len(), &errors[0]["message"]), (1, &Field::Str("No such file or directory".into())));
    assert_eq!(manifest(&inventory)["completeness"]["missing_roots"], 1);
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let tree = Tree::parse("f 1, taken 3");
    for (name, made) in [("taken", "taken"), ("new", "new.part")] {
        fs::create_dir_all(tree.path().join(made)).ok();
        let output = run(scan(&tree).args(["-o", name, "f"]));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("fathom scan: cannot create '{made}': File exists\n"));
    }
    assert_eq!(fs::read(tree.path().join("taken")).unwrap().len(), 3);
}

#[test]
fn nothing_has_the_name_of_what_could_not_be_written() {
    let tree = varied();
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" scan -o inv .";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(Program::AsDu.bin().join("fathom")).current_dir(tree.path());
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("fathom scan: cannot write 'inv.part") && said.contains("File too large"),
        "{said}"
    );
    assert!(!tree.path().join("inv").exists());
}

#[test]
fn wrong_command_lines_are_refused() {
    let tree = Tree::parse("f 1");
    for (words, message) in [
        ("f", "missing the name of the inventory (-o INVENTORY)"),
        ("-o i", "missing operand: what to scan"),
        ("-o i --resume f", "--resume takes no operands: they are those of the earlier scan"),
        ("-o i --deadline soon f", "invalid time 'soon' for '--deadline'"),
        ("-o i --rate 0 f", "invalid number '0' for '--rate'"),
        (
            "-o i --io uring --max-in-flight 2 f",
            "--max-in-flight is for the I/O models sync, threads and auto",
        ),
    ] {
        let output = run(scan(&tree).args(words.split_whitespace()));
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().next(), Some(&*format!("fathom scan: {message}")), "{words}");
    }
    assert!(!tree.path().join("i").exists() && !tree.path().join("i.part").exists());
}

/// Directories in which a scan at 1000 entries a second takes a while.
fn slow_tree() -> Tree {
    let tree = Tree::new();
    for top in 0..6 {
        for sub in 0..8 {
            let dir = tree.path().join(format!("t{top}/s{sub}/deep/er"));
            fs::create_dir_all(&dir).unwrap();
            for file in 0..8 {
                fs::write(dir.parent().unwrap().join(format!("f{file}")), "x").unwrap();
                fs::write(dir.join(format!("g{file}.c")), "xy").unwrap();
            }
        }
    }
    fs::hard_link(tree.path().join("t0/s0/deep/f0"), tree.path().join("t5/link")).unwrap();
    tree
}

/// Ends scans with `signal` at random times, and goes on with each until it is at its end; what came of it.
fn interrupted_and_resumed(tree: &Tree, random: &mut Random, signal: &str, out: &Path) -> usize {
    let mut runs = 0;
    loop {
        let mut command = scan(tree);
        command.args(["--rate", "2500", "--checkpoint", "40", "-o"]).arg(out).stderr(Stdio::null());
        let begun = out.with_extension("part").join("journal.json").exists() || out.exists();
        if begun {
            command.arg("--resume")
        } else {
            command.arg(".")
        };
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 + random.below(150) as u64));
        let killed =
            Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        assert!(killed.is_ok());
        let status = child.wait().unwrap();
        runs += 1;
        if status.success() {
            return runs;
        }
        assert!(runs < 200, "it gets nowhere");
    }
}

#[test]
fn a_scan_that_was_killed_goes_on_and_comes_to_the_same() {
    let tree = slow_tree();
    let expected = told(&whole(&tree, "whole", "."));
    let mut random = Random::new(7);
    for (round, signal) in ["-KILL", "-KILL", "-INT"].into_iter().enumerate() {
        let out = beside(&tree, &format!("inv{round}"));
        let runs = interrupted_and_resumed(&tree, &mut random, signal, &out);
        println!("{signal}: {runs} runs");
        assert!(runs > 2, "it was never interrupted");
        let mut found = told(&out);
        let mut expected = expected.clone();
        // Files of a segment come in the order of their tables.
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        let manifest = manifest(&out);
        assert_eq!(manifest["completeness"]["partial"], 0);
        let listed = manifest["files"].as_array().unwrap().len();
        assert_eq!(fs::read_dir(&out).unwrap().count(), listed + 1, "nothing is left over");
    }
}

#[test]
fn a_deadline_is_kept_and_what_is_missing_can_be_had_later() {
    let tree = slow_tree();
    let expected = whole(&tree, "whole", ".");
    let out = beside(&tree, "inv");
    let output = run(scan(&tree).args(["--rate", "400", "--deadline", "1s", "-o"]).arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the inventory is incomplete (deadline): "), "{said}");
    let (partial, all) = (entries(&out).len(), entries(&expected).len());
    assert!(partial > 10 && partial < all, "{partial} of {all}");
    assert_eq!(manifest(&out)["completeness"]["stopped"], "deadline");
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(entries(&out).keys().eq(entries(&expected).keys()));
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("the scan came to its end"));
}

#[test]
fn what_changed_meanwhile_is_no_reason_to_fail() {
    let tree = slow_tree();
    let out = beside(&tree, "inv");
    let output = run(scan(&tree).args(["--rate", "400", "--deadline", "1s", "-o"]).arg(&out).arg("."));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let open = rows(&out, "dirs").into_iter().filter(|dir| dir["state"] == Field::Str("partial".into()));
    let deepest = open.max_by_key(|dir| number(dir, "depth")).map(|dir| bytes(&dir, "path")).unwrap();
    let deepest = tree.path().join(std::ffi::OsStr::from_bytes(&deepest));
    assert_ne!(deepest, tree.path().join("."), "it was below the root");
    fs::rename(&deepest, beside(&tree, "away")).unwrap();
    let output = run(scan(&tree).args(["--resume", "-o"]).arg(&out));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("No such file or directory"));
    let dirs = rows(&out, "dirs");
    assert_eq!(dirs.iter().filter(|dir| dir["state"] == Field::Str("partial".into())).count(), 1);
    assert_eq!(manifest(&out)["completeness"]["stopped"], Value::Null);
}
