//! `fathom top`: each kind of report is compared with the standard library's metadata of the same
//! tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::commands::{fathom, program, stdout_of};
use crate::support::{Tree, needs_mounts};
use serde_json::{Value, json};

/// A tree of files of many sizes and types, and of inodes with several names: in one directory, in
/// two, and at different depths.
const SPEC: &str = "s/a/one.rs 5000, s/a/two.RS 70000, s/a/same.rs = s/a/one.rs, s/b/c/far.txt 300000, s/b/near.txt = s/b/c/far.txt, \
    s/b/c/d/deep 1, s/top.rs = s/a/one.rs, s/empty, s/none/, s/hole.img ~3G, s/l -> a, s/pipe |, s/b/sock %, s/x/y/z/.dot 4096";

/// Allocated bytes, apparent bytes, entries.
type Sum = (u64, u64, u64);

/// Returns the objects of a report, and the last object, which is the total.
#[track_caller]
fn objects(tree: &Tree, words: &[&str]) -> (Vec<Value>, Value) {
    let text = stdout_of(tree, &[&["top", "--json"], words].concat());
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut all: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let last = all.pop().unwrap();
    (all, last)
}

fn sum(object: &Value) -> Sum {
    let number = |name: &str| object[name].as_u64().unwrap();
    (number("bytes"), number("apparent"), number("entries"))
}

/// Returns the sums of a report by a property, by key.
#[track_caller]
fn groups(tree: &Tree, words: &[&str]) -> BTreeMap<String, Sum> {
    let (rows, last) = objects(tree, words);
    let key = |row: &Value| match &row["key"] {
        Value::Null => row["type"].as_str().unwrap_or("none").to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let groups: BTreeMap<_, _> = rows.iter().map(|row| (key(row), sum(row))).collect();
    assert_eq!(groups.len(), rows.len());
    let all = groups.values().fold((0, 0, 0), |all: Sum, one| (all.0 + one.0, all.1 + one.1, all.2 + one.2));
    assert_eq!(sum(&last["total"]), all, "{words:?}");
    groups
}

/// Returns a tree with its inventory `i` beside it.
fn scanned(spec: &str) -> Tree {
    let tree = Tree::parse(spec);
    rescan(&tree);
    tree
}

fn rescan(tree: &Tree) {
    stdout_of(tree, &["scan", "-o", "i", "s"]);
}

/// Returns every entry at and below `path`, with whether it is the first name of its inode.
/// Directories precede their entries.
fn entries(path: &Path) -> Vec<(PathBuf, Metadata, bool)> {
    let (mut found, mut seen, mut left) = (Vec::new(), BTreeSet::new(), vec![path.to_owned()]);
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let is_first = seen.insert((meta.dev(), meta.ino()));
        found.push((path, meta, is_first));
    }
    found
}

fn expected(tree: &Tree, below: &str, key: impl Fn(&Path, &Metadata) -> String) -> BTreeMap<String, Sum> {
    let mut groups: BTreeMap<String, Sum> = BTreeMap::new();
    for (path, meta, is_first) in entries(&tree.path().join(below)) {
        let group = groups.entry(key(&path, &meta)).or_default();
        let apparent = if meta.is_dir() { 0 } else { meta.len() };
        let [allocated, apparent] =
            [meta.blocks() * 512, apparent].map(|bytes| if is_first { bytes } else { 0 });
        *group = (group.0 + allocated, group.1 + apparent, group.2 + 1);
    }
    groups
}

fn kind(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "directory",
        () if kind.is_symlink() => "symlink",
        () if kind.is_fifo() => "fifo",
        () if kind.is_socket() => "socket",
        () => "regular",
    }
}

#[test]
fn directories_have_the_sums_of_their_subtrees_with_each_inode_once() {
    let tree = scanned(SPEC);
    let (rows, last) = objects(&tree, &["i"]);
    let mut largest: Vec<([u64; 2], String, Sum)> = Vec::new();
    for (path, _, _) in entries(&tree.path().join("s")).into_iter().filter(|(_, meta, _)| meta.is_dir()) {
        let name = path.strip_prefix(tree.path()).unwrap().to_str().unwrap().to_owned();
        let all = expected(&tree, &name, |_, _| String::new())[""];
        largest.push(([all.0, all.1].map(|bytes| u64::MAX - bytes), name, all));
    }
    largest.sort();
    let found: Vec<_> = rows.iter().map(|row| (row["path"].as_str().unwrap(), sum(row))).collect();
    assert_eq!(found, largest.iter().map(|(_, name, all)| (name.as_str(), *all)).collect::<Vec<_>>());
    assert_eq!((sum(&last["total"]), &last["complete"]), (largest[0].2, &json!(true)));
    assert_eq!(objects(&tree, &["-n2", "i"]).0[..], rows[..2]);
}

#[test]
fn the_total_equals_that_of_du() {
    let tree = scanned(SPEC);
    let output = Command::new("du").args(["-s", "-B1", "s"]).current_dir(tree.path()).output().unwrap();
    let bytes: u64 = String::from_utf8(output.stdout).unwrap().split('\t').next().unwrap().parse().unwrap();
    for by in ["dir", "file", "user", "group", "ext", "age", "size", "type", "depth"] {
        assert_eq!(sum(&objects(&tree, &["--by", by, "i"]).1["total"]).0, bytes, "{by}");
    }
}

#[test]
fn files_are_sorted_by_allocated_bytes() {
    let tree = scanned(SPEC);
    let (rows, _) = objects(&tree, &["--by", "file", "-n", "3", "i"]);
    let paths: Vec<_> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    // The report has the name of an inode that the walk finds first.
    assert!(["s/b/near.txt", "s/b/c/far.txt"].contains(&paths[0]));
    assert!(
        paths[1] == "s/a/two.RS" && ["s/top.rs", "s/a/one.rs", "s/a/same.rs"].contains(&paths[2]),
        "{paths:?}"
    );
    let meta = fs::metadata(tree.path().join("s/a/two.RS")).unwrap();
    assert_eq!(sum(&rows[1]), (meta.blocks() * 512, 70000, 1));
}

#[test]
fn groups_have_the_sums_of_their_entries() {
    let tree = scanned(SPEC);
    let by = |by: &str| groups(&tree, &["--by", by, "i"]);
    assert_eq!(by("type"), expected(&tree, "s", |_, meta| kind(meta).to_owned()));
    let ext = |path: &Path, meta: &Metadata| match path.extension() {
        _ if meta.is_dir() => "directory".to_owned(),
        None => "none".to_owned(),
        Some(ext) => ext.to_ascii_lowercase().into_string().unwrap(),
    };
    assert_eq!(by("ext"), expected(&tree, "s", ext));
    let size = |_: &Path, meta: &Metadata| {
        let class = match meta.len() {
            _ if meta.is_dir() => "directory",
            0 => "empty",
            1..4096 => "under 4 KiB",
            4096..65_536 => "under 64 KiB",
            65_536..1_048_576 => "under 1 MiB",
            _ => "under 16 GiB",
        };
        class.to_owned()
    };
    assert_eq!(by("size"), expected(&tree, "s", size));
    assert_eq!(by("age"), expected(&tree, "s", |_, _| "under 1 day".to_owned()));
}

#[test]
fn owners_have_their_names() {
    let tree = scanned(SPEC);
    let meta = fs::metadata(tree.path()).unwrap();
    for (by, flag, id) in [("user", "-un", meta.uid()), ("group", "-gn", meta.gid())] {
        let output = Command::new("id").arg(flag).output().unwrap();
        let name = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
        assert_eq!(groups(&tree, &["--by", by, "i"]), expected(&tree, "s", |_, _| name.clone()));
        assert_eq!(objects(&tree, &["--by", by, "i"]).0[0]["id"], json!(id));
    }
}

#[test]
fn depths_are_in_order_and_inodes_count_at_their_first_name() {
    let tree = scanned("s/a/b/c/f 9000, s/a/b/g 5000, s/a/b/h = s/a/b/g, s/e");
    let (rows, _) = objects(&tree, &["--by", "depth", "i"]);
    assert_eq!(
        rows.iter().map(|row| row["key"].clone()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4].map(|key| json!(key))
    );
    let depth = |path: &Path, _: &Metadata| {
        (path.strip_prefix(tree.path()).unwrap().components().count() - 1).to_string()
    };
    assert_eq!(groups(&tree, &["--by", "depth", "i"]), expected(&tree, "s", depth));
}

#[test]
fn ages_are_those_of_the_last_modification() {
    let tree = Tree::parse("s/new 1, s/week 1, s/old 1, s/future 1");
    let day = Duration::from_secs(86_400);
    for (name, time) in [
        ("week", SystemTime::now() - day * 5),
        ("old", SystemTime::now() - day * 2000),
        ("future", SystemTime::now() + day * 9),
    ] {
        let file = File::options().write(true).open(tree.path().join("s").join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }
    rescan(&tree);
    let (rows, _) = objects(&tree, &["--by", "age", "i"]);
    let found: Vec<_> =
        rows.iter().map(|row| (row["key"].as_str().unwrap(), row["entries"].as_u64().unwrap())).collect();
    assert_eq!(found, [("under 1 day", 2), ("under 7 days", 1), ("older", 1), ("in the future", 1)]);
}

#[test]
fn below_counts_only_entries_of_that_directory() {
    let tree = scanned(SPEC);
    for below in ["s/b", "b", "./b/", "s/b//"] {
        let words = |by| ["--below", below, "--by", by, "i"];
        let found = groups(&tree, &words("type"));
        assert_eq!(found, expected(&tree, "s/b", |_, meta| kind(meta).to_owned()), "{below}");
        let all = expected(&tree, "s/b", |_, _| String::new())[""];
        for by in ["dir", "file", "depth", "ext"] {
            assert_eq!(sum(&objects(&tree, &words(by)).1["total"]), all, "{below} by {by}");
        }
        let (rows, _) = objects(&tree, &words("dir"));
        let paths: Vec<_> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["s/b", "s/b/c", "s/b/c/d"]);
    }
    for absent in ["s/l", "s/top.rs", "nothing", "/s", "s/b/c/d/e"] {
        let output = fathom(&tree, ["top", "--below", absent, "i"]);
        let expected = format!("fathom top: the inventory has no directory '{absent}'\n");
        assert_eq!((output.status.code(), output.stderr), (Some(2), expected.into_bytes()));
    }
}

#[test]
fn operands_count_together_and_need_not_be_directories() {
    let tree = Tree::parse("p/d/f 5000, q/d/g 9000, q/link = p/d/f, lone 7000, other = p/d/f");
    stdout_of(&tree, &["scan", "-o", "i", "p", "q", "lone", "other"]);
    let all = ["d p", "d q", "d p/d", "d q/d", "f p/d/f", "f q/d/g", "f lone"].map(|word| {
        let meta = tree.path().join(&word[2..]).symlink_metadata().unwrap();
        (meta.blocks() * 512, if meta.is_dir() { 0 } else { meta.len() })
    });
    // Further names are entries, too.
    let all = all.iter().fold((0, 0, 2), |all, one| (all.0 + one.0, all.1 + one.1, all.2 + 1));
    for by in ["dir", "file", "user", "group", "ext", "age", "size", "type", "depth"] {
        assert_eq!(sum(&objects(&tree, &["--by", by, "i"]).1["total"]), all, "{by}");
    }
    let output = fathom(&tree, ["top", "--below", "d", "i"]);
    let message = b"fathom top: the inventory has several directories 'd': use the whole path\n";
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(2), &message[..]));
    assert_eq!(objects(&tree, &["--below", "q/d", "i"]).0.len(), 1);
}

/// Returns the paths that `du -a` prints from an inventory of the whole tree: each inode under the
/// name that counts.
fn counted(tree: &Tree) -> BTreeSet<String> {
    let text = stdout_of(tree, &["du", "-a", "-0", "--from", "i"]);
    let lines = text.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(|line| String::from_utf8(line.to_vec()).unwrap().split_once('\t').unwrap().1.to_owned())
        .collect()
}

/// Asserts that reports by file, extension and depth use the names that `du --from` counts.
#[track_caller]
fn assert_counts_as_du(tree: &Tree, scanned: &[&str]) {
    fs::remove_dir_all(tree.path().join("i")).ok();
    stdout_of(tree, &[&["scan", "-o", "i"], scanned].concat());
    let names = counted(tree);
    let is_dir = |path: &str| tree.path().join(path).symlink_metadata().unwrap().is_dir();
    let count = |key: &dyn Fn(&str) -> String| {
        names.iter().fold(BTreeMap::<String, u64>::new(), |mut sums, path| {
            let bytes = tree.path().join(path).symlink_metadata().unwrap().blocks() * 512;
            *sums.entry(key(path)).or_default() += bytes;
            sums
        })
    };
    let found = |by: &str| -> BTreeMap<String, u64> {
        let groups = groups(tree, &["--by", by, "-n", "100000", "i"]);
        groups.into_iter().map(|(key, (bytes, ..))| (key, bytes)).filter(|(_, bytes)| *bytes > 0).collect()
    };
    let paths = |by: &str| -> BTreeSet<String> {
        let (rows, _) = objects(tree, &["--by", by, "-n", "100000", "i"]);
        rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
    };
    let (dirs, files): (BTreeSet<_>, BTreeSet<_>) = names.iter().cloned().partition(|path| is_dir(path));
    assert_eq!((paths("file"), paths("dir")), (files, dirs), "{scanned:?}");
    let ext = |path: &str| match path.rsplit('/').next().unwrap().rsplit_once('.') {
        _ if is_dir(path) => "directory".to_owned(),
        Some((stem, ext)) if !stem.is_empty() => ext.to_owned(),
        _ => "none".to_owned(),
    };
    assert_eq!(found("ext"), count(&ext), "{scanned:?}");
    let depth = |path: &str| {
        let root = scanned.iter().filter(|root| path == **root || path.starts_with(&format!("{root}/")));
        // If trees overlap, the entry belongs to the first.
        (path.matches('/').count() - root.clone().next().unwrap().matches('/').count()).to_string()
    };
    assert_eq!(found("depth"), count(&depth), "{scanned:?}");
    let total = stdout_of(tree, &["du", "-s", "-c", "-B1", "--from", "i"]);
    let total =
        String::from_utf8(total).unwrap().lines().last().unwrap().split('\t').next().unwrap().to_owned();
    // All reports have the same number, which is greater than the number of inodes with links.
    let entries = sum(&objects(tree, &["--by", "dir", "i"]).1["total"]).2;
    assert!(entries >= names.len() as u64);
    for by in ["dir", "file", "user", "ext", "age", "size", "type", "depth"] {
        let (_, last) = objects(tree, &["--by", by, "i"]);
        let sum = sum(&last["total"]);
        assert_eq!((sum.0.to_string(), sum.2), (total.clone(), entries), "{scanned:?} by {by}");
    }
}

#[test]
fn a_file_of_several_names_counts_under_the_one_that_du_counts() {
    // A name that the directory lists after its subdirectories is not the first that the walk
    // finds.
    let mut spec = String::from("s/z/f.first 5000, s/a.second = s/z/f.first, s/b/c/d.x 70000");
    for name in 0..30 {
        spec += &format!(", s/n{name}.top = s/b/c/d.x, s/d{name}/e.deep = s/b/c/d.x, s/d{name}/own.{name} 9");
        spec += &format!(", s/d{name}/sub/in.q = s/d{name}/own.{name}, s/y{name}.r = s/d{name}/own.{name}");
    }
    assert_counts_as_du(&Tree::parse(&spec), &["s"]);
}

#[test]
fn overlapping_operands_count_once() {
    let tree = Tree::parse(
        "s/b/c/far.txt 300000, s/b/near.log = s/b/c/far.txt, s/top.rs 5000, s/b/c/d/deep.x 1, s/other.y = s/top.rs, s/lone.z 9",
    );
    for scanned in [
        &["s/b", "s"][..],
        &["s", "s/b"],
        &["s", "s"],
        &["s/b/c", "s/b", "s"],
        &["s/b", "s", "s/b/c", "s"],
        &["s/top.rs", "s"],
        &["s/lone.z", "s"],
        &["s", "s/lone.z", "s/other.y"],
        &["s/lone.z", "s/lone.z", "s/b"],
    ] {
        assert_counts_as_du(&tree, scanned);
    }
}

/// A mount point that `scan -x` skipped has a row of its own, which GNU du does not count.
#[test]
fn directories_on_other_filesystems_count_nowhere() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("s/a/f 5000, s/a/mnt/, s/b/c 9000, s/mnt/");
    let script = "mount -t tmpfs none s/a/mnt; mkdir s/a/mnt/d; mount -t tmpfs none s/mnt; \
        du -x -B1 s >bytes; du -x --inodes s >inodes; \"$0\" scan -x -o i s; \"$0\" du -x --from i -B1 >told";
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-ec", script]).arg(program()).current_dir(tree.path());
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let read = |name: &str| fs::read_to_string(tree.path().join(name)).unwrap();
    assert_eq!(read("told"), read("bytes"));
    let column = |name: &str| -> BTreeMap<String, u64> {
        let text = read(name);
        let lines = text.lines().map(|line| line.split_once('\t').unwrap());
        lines.map(|(number, path)| (path.to_owned(), number.parse().unwrap())).collect()
    };
    let (bytes, inodes) = (column("bytes"), column("inodes"));
    let of = |path: &str, apparent: u64| (bytes[path], apparent, inodes[path]);
    for by in ["dir", "file", "user", "group", "ext", "age", "size", "type", "depth"] {
        assert_eq!(sum(&objects(&tree, &["--by", by, "i"]).1["total"]), of("s", 14000), "{by}");
        let below = objects(&tree, &["--by", by, "--below", "s/a", "i"]).1;
        assert_eq!(sum(&below["total"]), of("s/a", 5000), "{by}");
    }
    let rows = objects(&tree, &["i"]).0;
    let found: BTreeMap<_, _> =
        rows.iter().map(|row| (row["path"].as_str().unwrap().to_owned(), sum(row).0)).collect();
    assert_eq!(found, bytes);
}

#[test]
fn names_are_printed_unchanged() {
    let tree = Tree::new();
    let odd = OsStr::from_bytes(b"s/new\nline/\xff\\bytes");
    fs::create_dir_all(tree.path().join(odd)).unwrap();
    fs::write(tree.path().join(odd).join(OsStr::from_bytes(b"\xfe.\x1b")), [1; 100]).unwrap();
    rescan(&tree);
    let text = stdout_of(&tree, &["top", "i"]);
    assert!(text.windows(odd.len()).any(|window| window == odd.as_bytes()), "{text:?}");
    let (rows, _) = objects(&tree, &["--by", "file", "i"]);
    let hex: String =
        [odd.as_bytes(), b"/\xfe.\x1b"].concat().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(rows[0]["path_bytes"], json!(hex));
    assert!(!stdout_of(&tree, &["top", "--json", "--by", "ext", "i"]).contains(&0x1b));
    let below = Command::new(program())
        .args([OsStr::new("top"), OsStr::new("--below"), odd, OsStr::new("i")])
        .current_dir(tree.path())
        .output();
    assert!(below.unwrap().status.success());
}

#[test]
fn lines_have_human_readable_sizes() {
    let tree = scanned("s/f ~1536, s/d/");
    let text = String::from_utf8(stdout_of(&tree, &["top", "--by", "type", "i"])).unwrap();
    let regular = text.lines().find(|line| line.ends_with("regular")).unwrap();
    assert_eq!(regular, "0\t1.5K\t1\t0.0%\tregular");
    // Directories have blocks or none, by filesystem.
    let shares = ["\t0\t2\t100.0%\tdirectory", "0\t0\t2\t0.0%\tdirectory"];
    assert!(text.lines().any(|line| shares.iter().any(|share| line.ends_with(share))), "{text}");
}

#[test]
fn an_incomplete_inventory_is_reported_with_a_warning() {
    let tree = Tree::parse("s/f 5000");
    let made = fathom(&tree, ["scan", "-o", "i", "s", "missing"]);
    assert_eq!(made.status.code(), Some(1));
    let output = fathom(&tree, ["top", "--json", "i"]);
    assert_eq!(output.status.code(), Some(0));
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.starts_with("fathom top: warning: the inventory is incomplete: 1 of 2 "), "{warning}");
    assert!(output.stdout.ends_with(b"\"complete\":false}\n"));
}

#[test]
fn a_damaged_inventory_is_refused() {
    let tree = scanned(SPEC);
    let inventory = tree.path().join("i");
    for file in fs::read_dir(&inventory).unwrap().map(|file| file.unwrap().path()) {
        let table = file.file_name().unwrap().to_str().unwrap();
        let by = if table.starts_with("dirs") { "dir" } else { "user" };
        if table.starts_with("errors") || table.starts_with("groups") {
            continue;
        }
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 0x80;
        for damaged in [&flipped[..], &bytes[..bytes.len() / 2], b""] {
            fs::write(&file, damaged).unwrap();
            let output = fathom(&tree, ["top", "--by", by, "i"]);
            assert_eq!(output.status.code(), Some(1), "{table}: {output:?}");
            assert!(
                output.stdout.is_empty() && output.stderr.starts_with(b"fathom top: cannot read 'i"),
                "{output:?}"
            );
        }
        fs::write(&file, &bytes).unwrap();
    }
    stdout_of(&tree, &["top", "i"]);
}

#[test]
fn invalid_command_lines_are_refused() {
    let tree = scanned("s/f");
    for words in [
        &["top"][..],
        &["top", "i", "i"],
        &["top", "--by", "colour", "i"],
        &["top", "-n", "0", "i"],
        &["top", "--below=", "i"],
    ] {
        let output = fathom(&tree, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    }
    assert_eq!(fathom(&tree, ["top", "s"]).status.code(), Some(1));
    assert_eq!(fathom(&tree, ["top", "missing"]).status.code(), Some(1));
}
