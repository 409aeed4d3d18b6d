//! The output of `fathom diff`: Parquet, JSON, sizes of directories, unusual names; and invalid
//! command lines.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use serde_json::{Value, json};

use crate::diff::{diff, fathom, objects, path, scan, shell};
use crate::support::Tree;

type ChangeValues = BTreeMap<String, Field>;

fn rows(file: &Path) -> Vec<ChangeValues> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let cells = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    reader.into_iter().map(|row| cells(row.unwrap())).collect()
}

fn bytes(cells: &ChangeValues, name: &str, raw: &str) -> Option<Vec<u8>> {
    match (&cells[name], &cells[raw]) {
        (_, Field::Bytes(raw)) => Some(raw.data().to_vec()),
        (Field::Str(text), Field::Null) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

fn as_json(field: &Field) -> Value {
    match field {
        Field::Str(text) => json!(text),
        Field::Long(number) | Field::TimestampMicros(number) => json!(number),
        Field::UInt(number) => json!(number),
        Field::Int(number) => json!(number),
        _ => Value::Null,
    }
}

/// Returns a tree of unusual names with one change of each kind, and its two inventories.
fn changed() -> Tree {
    let tree = Tree::parse("s/b/log 7, s/mode 1, s/gone 3, s/link -> a");
    let odd = |name: &[u8]| tree.path().join(OsStr::from_bytes(name));
    fs::create_dir(odd(b"s/new\nline\xff")).unwrap();
    fs::write(odd(b"s/new\nline\xff/\\x\xfe.txt"), "1").unwrap();
    scan(&tree, "old");
    fs::rename(odd(b"s/new\nline\xff"), odd(b"s/\x1b[1m\xfe")).unwrap();
    fs::write(odd(b"s/\x1b[1m\xfe/\\x\xfe.txt"), "12").unwrap();
    shell(&tree, "rm s/gone; chmod 600 s/mode; echo >\"s/q'uote\"; ln -sfn other s/link");
    scan(&tree, "new");
    tree
}

#[test]
fn a_parquet_file_has_a_row_for_each_change() {
    let tree = changed();
    let file = tree.path().join("changes.parquet");
    assert_eq!(diff(&tree, &["--parquet", "changes.parquet"], 1), b"");
    assert!(!tree.path().join("changes.parquet.part").exists());
    assert_eq!(fs::symlink_metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(diff(&tree, &["--parquet", "-"], 1) == fs::read(&file).unwrap(), "standard output has the same");
    let (objects, _) = objects(&diff(&tree, &["--json"], 1));
    let rows = rows(&file);
    assert_eq!((rows.len(), objects.len()), (6, 6), "{objects:#?}");
    for (cells, object) in rows.iter().zip(&objects) {
        assert_eq!(as_json(&cells["change"]), object["change"]);
        assert_eq!(bytes(cells, "path", "path_raw"), path(object, "path"));
        assert_eq!(bytes(cells, "old_path", "old_path_raw"), path(object, "old_path"));
        let fields: Vec<_> =
            object["fields"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(as_json(&cells["fields"]).as_str().unwrap_or_default(), fields.join(","));
        for side in ["old", "new"] {
            let cell = |name: &str| &cells[&format!("{side}_{name}")];
            for name in ["type", "size", "blocks", "uid", "gid", "nlink", "ino", "link_target"] {
                assert_eq!(as_json(cell(name)), object[side][name], "{object}");
            }
            let mode = as_json(cell("mode")).as_u64().map(|mode| format!("{:04o}", mode & 0o7777));
            assert_eq!(mode.as_deref(), object[side]["mode"].as_str());
        }
    }
    let meta = fs::symlink_metadata(tree.path().join("s/mode")).unwrap();
    let mode = rows.iter().find(|cells| as_json(&cells["path"]) == "s/mode").unwrap();
    let time = meta.mtime() * 1_000_000 + meta.mtime_nsec() / 1000;
    assert_eq!((as_json(&mode["new_mtime"]), as_json(&mode["new_mode"])), (json!(time), json!(meta.mode())));
}

#[test]
fn a_parquet_file_that_cannot_be_written_is_an_error() {
    let tree = changed();
    for (file, message) in
        [("nowhere/changes", "cannot create 'nowhere/changes.part'"), ("s", "cannot create 's'")]
    {
        let output = fathom(&tree, &["diff", "../old", "../new", "--parquet", file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with(&format!("fathom diff: {message}: ")), "{stderr}");
        assert!(!tree.path().join("s.part").exists());
    }
    fs::write(tree.path().join("changes.part"), "").unwrap();
    fs::set_permissions(tree.path().join("changes.part"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(fathom(&tree, &["diff", "../old", "../new", "--parquet", "changes"]).status.code(), Some(2));
}

#[test]
fn only_a_regular_file_is_replaced() {
    let tree = changed();
    shell(&tree, "echo mine >taken; ln -s nowhere dangling; ln -s taken link; mkfifo fifo");
    let before = listing(&tree);
    for name in ["dangling", "link", "fifo", "/dev/null", "/dev/stdout", "s"] {
        let output = fathom(&tree, &["diff", "../old", "../new", "--parquet", name]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let expected = format!("fathom diff: cannot create '{name}': it exists and is not a regular file\n");
        assert_eq!((output.status.code(), stderr), (Some(2), expected));
    }
    assert_eq!(listing(&tree), before);
    assert_eq!(fs::read(tree.path().join("taken")).unwrap(), b"mine\n");
    let output = fathom(&tree, &["diff", "../old", "../new", "--parquet", "taken"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(fs::read(tree.path().join("taken")).unwrap().starts_with(b"PAR1"));
    let null = fs::metadata("/dev/null").unwrap();
    assert!(null.file_type().is_char_device());
}

/// Returns the names and inode numbers in the tree's directory.
fn listing(tree: &Tree) -> Vec<(std::ffi::OsString, u64)> {
    let entries = fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap());
    let mut listing: Vec<_> = entries.map(|entry| (entry.file_name(), entry.ino())).collect();
    listing.sort();
    listing
}

#[test]
fn names_are_printed_unchanged() {
    let tree = changed();
    let text = diff(&tree, &[], 1);
    let renamed = b"R s/new\nline\xff/ -> s/\x1b[1m\xfe/\nM s/\x1b[1m\xfe/\\x\xfe.txt: size 1 -> 2, mtime\n";
    assert!(text.starts_with(renamed), "{}", text.escape_ascii());
    assert!(!diff(&tree, &["--json"], 1).contains(&0x1b));
    let paths = diff(&tree, &["-0"], 1);
    assert!(
        paths.starts_with(b"s/\x1b[1m\xfe\0s/\x1b[1m\xfe/\\x\xfe.txt\0s/gone\0"),
        "{}",
        paths.escape_ascii()
    );
}

/// Returns allocated bytes, apparent bytes and number of entries at and below each directory. Each
/// inode counts once.
fn sums(base: &Path, root: &str) -> BTreeMap<String, [i64; 3]> {
    let mut sums = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(top) = left.pop() {
        let (mut sum, mut seen, mut below) = ([0; 3], BTreeSet::new(), vec![base.join(&top)]);
        while let Some(path) = below.pop() {
            let meta = path.symlink_metadata().unwrap();
            // Each name is an entry, and the sizes of an inode count once.
            sum[2] += 1;
            if seen.insert(meta.ino()) {
                let apparent = if meta.is_dir() { 0 } else { meta.size() };
                (sum[0], sum[1]) = (sum[0] + meta.blocks() * 512, sum[1] + apparent);
            }
            if meta.is_dir() {
                let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
                below.extend(entries);
            }
        }
        for entry in fs::read_dir(base.join(&top)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                left.push(format!("{top}/{}", entry.file_name().to_str().unwrap()));
            }
        }
        sums.insert(top, sum.map(|number| i64::try_from(number).unwrap()));
    }
    sums
}

#[test]
fn directories_have_their_growth() {
    let spec = "s/a/f 70000, s/a/x/g 5000, s/b/h 9000, s/b/i = s/b/h, s/same/f 100, s/gone/y/z 30000, s/m/big 200000";
    let tree = Tree::parse(spec);
    scan(&tree, "old");
    let old = sums(tree.path(), "s");
    shell(
        &tree,
        "rm -r s/gone; truncate -s 0 s/a/f; ln s/b/h s/b/j; mkdir -p s/new/deep; cp s/b/h s/new/deep/copy; mv s/m s/a/n; \
         head -c 90000 /dev/zero >s/a/n/more",
    );
    scan(&tree, "new");
    let new = sums(tree.path(), "s");
    let was = |path: &str| path.replacen("s/a/n", "s/m", 1);
    let mut expected = BTreeMap::new();
    for (path, sum) in &new {
        let before = old.get(&was(path)).copied().unwrap_or_default();
        expected.insert(path.clone(), std::array::from_fn::<i64, 3, _>(|at| sum[at] - before[at]));
    }
    for (path, sum) in old.iter().filter(|(path, _)| path.starts_with("s/gone")) {
        expected.insert(path.clone(), sum.map(|number| -number));
    }
    expected.retain(|_, change| *change != [0; 3]);
    let (rows, last) = objects(&diff(&tree, &["--dirs", "--json"], 1));
    let numbers = |row: &Value| ["bytes", "apparent", "entries"].map(|name| row[name].as_i64().unwrap());
    let found: Vec<_> =
        rows.iter().map(|row| (row["path"].as_str().unwrap().to_owned(), numbers(row))).collect();
    assert_eq!(found.iter().cloned().collect::<BTreeMap<_, _>>(), expected);
    assert!(found.is_sorted_by_key(|(_, [bytes, ..])| -bytes.abs()), "{found:?}");
    assert_eq!(numbers(&last["total"]), expected["s"]);
    assert_eq!(objects(&diff(&tree, &["--dirs", "--json", "-n2"], 1)).0, rows[..2]);
    let (below, last) = objects(&diff(&tree, &["--dirs", "--json", "--below", "s/a"], 1));
    assert!(below.iter().all(|row| row["path"].as_str().unwrap().starts_with("s/a")), "{below:?}");
    assert_eq!(numbers(&last["total"]), expected["s/a"]);
    let text = String::from_utf8(diff(&tree, &["--dirs"], 1)).unwrap();
    assert!(text.contains("\t+215K\t+3\ts/a\n"), "{text}");
    assert!(text.contains("\t-2\ts/gone/y\n"), "{text}");
}

/// Returns the number of entries at and below a directory.
fn count(path: &Path) -> i64 {
    let below = |entry: std::io::Result<fs::DirEntry>| match entry.unwrap() {
        entry if entry.file_type().unwrap().is_dir() => count(&entry.path()),
        _ => 1,
    };
    1 + fs::read_dir(path).unwrap().map(below).sum::<i64>()
}

/// As in `du s/a s t`: entries of overlapping operands count for the first operand, and the sizes
/// of an inode with names in several trees count once.
#[test]
fn entries_of_overlapping_operands_are_compared_once() {
    let tree = Tree::parse("s/a/f 5000, s/b 100, s/name = s/a/f, t/f 300, t/name = s/a/f");
    let scan = |name: &str, roots: &[&str]| {
        let out = format!("../{name}");
        let output = fathom(&tree, &[&["scan", "-o", &out], roots].concat());
        assert!(output.status.success(), "{output:?}");
    };
    let orders = [&["s/a", "s", "t"][..], &["s", "t", "s/a"], &["t", "s", "s", "s/a/"]];
    let name = |side: &str, order: usize| format!("{side}{order}");
    let du = |word: &str| -> i64 {
        let output =
            Command::new("du").args(["-sc", word, "s", "t"]).current_dir(tree.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().split('\t').next().unwrap().parse().unwrap()
    };
    (0..).zip(orders).for_each(|(order, roots)| scan(&name("old", order), roots));
    let entries = || ["s", "t"].iter().map(|top| count(&tree.at(top))).sum::<i64>();
    let before = [du("-B1"), entries()];
    shell(
        &tree,
        "mkdir s/a/new; head -c 70000 /dev/zero >s/a/new/large; ln s/a/new/large t/large; rm t/f s/b",
    );
    (0..).zip(orders).for_each(|(order, roots)| scan(&name("new", order), roots));
    let after = [du("-B1"), entries()];
    for order in 0..orders.len() {
        let sides = ["old", "new"].map(|side| format!("../{}", name(side, order)));
        let output = fathom(&tree, &["diff", &sides[0], &sides[1], "--dirs", "--json"]);
        let (rows, last) = objects(&output.stdout);
        let total = ["bytes", "entries"].map(|name| last["total"][name].as_i64().unwrap());
        assert_eq!(total, [after[0] - before[0], after[1] - before[1]], "{order}: {output:?}");
        let mut paths: Vec<_> =
            rows.iter().map(|row| row["path"].as_str().unwrap().trim_end_matches('/')).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["s", "s/a", "s/a/new", "t"], "{order}");
    }
    // A tree that is in only one of the inventories is in no total.
    let output = fathom(&tree, &["diff", "../old0", "../new1", "--dirs", "--json"]);
    assert_eq!(objects(&output.stdout).1["total"]["bytes"], after[0] - before[0], "{output:?}");
    scan("half", &["s/a", "t"]);
    let output = fathom(&tree, &["diff", "../old0", "../half", "--dirs", "--json"]);
    let (_, last) = objects(&output.stdout);
    assert_eq!(last["total"]["entries"], 2, "{output:?}");
}

#[test]
fn invalid_command_lines_are_refused() {
    let tree = changed();
    for words in [
        &[][..],
        &["../old"],
        &["../old", "../new", "../new"],
        &["../old", "../new", "--only=created,colour"],
        &["../old", "../new", "--only="],
        &["../old", "../new", "-n3"],
        &["../old", "../new", "--dirs", "-n0"],
        &["../old", "../new", "--dirs", "-0"],
        &["../old", "../new", "--dirs", "--only=created"],
        &["../old", "../new", "--json", "-0"],
        &["../old", "../new", "--below="],
        &["../old", "../new", "--parquet", ".."],
    ] {
        let output = fathom(&tree, &[&["diff"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"fathom diff: "), "{output:?}");
        assert!(output.stderr.ends_with(b"Try 'fathom diff --help' for more information.\n"), "{output:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let tree = changed();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(crate::support::program::Program::AsDu.bin().join("fathom"));
    let output =
        command.args(["diff", "../old", "../new"]).current_dir(tree.path()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr, b"fathom diff: write error: No space left on device\n");
    assert!(fs::metadata("/dev/full").unwrap().permissions().mode() & 0o200 != 0);
}
