//! `--since`: changed directories are read, unchanged directories are not, and only the columns
//! that the documentation names may be out of date.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parquet::record::Field;

use crate::scan::faults::bushy_tree;
use crate::scan::resume::interrupted_and_resumed;
use crate::scan::tables::{RowValues, comparable_rows, entries, manifest, number, rows};
use crate::scan::{beside, run, scan, scan_completely, varied};
use crate::support::random::Random;
use crate::support::{Tree, needs_faults, skip};

/// Longer than a directory must be unchanged for `--since` to skip it, whatever the phase of the
/// clock's second.
pub(crate) const SETTLED: Duration = Duration::from_millis(3_300);

/// Returns a tree that has been unchanged for [`SETTLED`], and an inventory of it.
fn settled(tree: Tree) -> (Tree, PathBuf) {
    std::thread::sleep(SETTLED);
    let old = scan_completely(&tree, "old", ".");
    (tree, old)
}

/// Scans into `name` with `--since`. Returns the inventory and the standard error.
fn again(tree: &Tree, old: &Path, name: &str, words: &str) -> (PathBuf, String) {
    let out = beside(tree, name);
    let output =
        run(scan(tree).arg("--since").arg(old).arg("-o").arg(&out).args(words.split_whitespace()).arg("."));
    assert!(output.status.success(), "{output:?}");
    (out, String::from_utf8(output.stderr).unwrap())
}

fn is_dir(cells: &RowValues) -> bool {
    cells.contains_key("post")
}

/// Returns the columns that must be current. Leaves out those that may be out of date for entries
/// that were not examined.
fn sure(cells: &RowValues) -> BTreeMap<&str, &Field> {
    let stale = [
        "size", "blocks", "atime", "atime_ns", "mtime", "mtime_ns", "ctime", "ctime_ns", "mode", "uid",
        "gid", "nlink",
    ];
    let sums = ["sum_size", "sum_blocks", "max_mtime", "max_ctime", "t_size", "t_blocks", "t_max_mtime"];
    let numbers = ["dir_id", "parent_id", "pre", "post", "scanned"];
    let mut left_out = BTreeSet::from(numbers);
    left_out.extend(if is_dir(cells) { sums.as_slice() } else { &stale });
    left_out.extend(["atime", "atime_ns"]);
    cells
        .iter()
        .map(|(name, field)| (name.as_str(), field))
        .filter(|(name, _)| !left_out.contains(name))
        .collect()
}

/// Returns the path of the directory that contains an entry.
fn parent(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or(0)]
}

#[test]
fn unchanged_directories_are_not_read() {
    let (tree, old) = settled(varied());
    for model in fathom_cases::engines("auto", &["sync", "threads=7", "async-par", "uring"]) {
        let (new, stderr) = match model {
            "uring" if !run(scan(&tree).args(["--io", "uring", "-o", "../ring", "p"])).status.success() => {
                skip("io_uring is not available here");
                continue;
            }
            _ => again(&tree, &old, &format!("new-{model}"), &format!("--io {model} --stats")),
        };
        let (mut expected, mut found) = (comparable_rows(&old), comparable_rows(&new));
        expected.sort();
        found.sort();
        let dirs = rows(&new, "dirs");
        let count = |manifest: serde_json::Value| manifest["since"]["directories"].as_u64().unwrap();
        assert_eq!(count(manifest(&new)), dirs.len() as u64, "{model}");
        assert!(stderr.contains(&format!(
            "fathom scan: {0} of {0} directories had not changed: their {1} entries were copied from '{2}'; files changed in place in them still have their old sizes\n",
            dirs.len(),
            rows(&new, "entries").len(),
            old.canonicalize().unwrap().display(),
        )), "{model}: {stderr}");
        assert!(found == expected, "{model}");
    }
}

/// Makes changes of every kind.
fn change(tree: &Tree) {
    let at = |name: &str| tree.path().join(name);
    fs::write(at("a/empty/new"), "new").unwrap();
    fs::remove_file(at("a/b/c/d/x.TXT")).unwrap();
    fs::rename(at("a/b/same"), at("a/b/renamed")).ok();
    fs::rename(tree.path().join(OsStr::from_bytes(b"a/b/\xfed")), at("b/moved")).unwrap();
    fs::remove_file(at("deep/1/f")).unwrap();
    fs::create_dir_all(at("deep/1/f/in/side")).unwrap();
    fs::remove_dir_all(at("deep/2")).unwrap();
    fs::write(at("deep/2"), "a file now").unwrap();
    fs::hard_link(at("file"), at("deep/3/link")).unwrap();
    // According to the documentation, these changes are not detected.
    fs::write(at("quiet/written"), vec![b'x'; 100_000]).unwrap();
    fs::set_permissions(at("quiet/mode"), Permissions::from_mode(0o600)).unwrap();
    // This change is detected.
    fs::set_permissions(at("watched"), Permissions::from_mode(0o700)).unwrap();
    File::options().append(true).open(at("watched/f")).unwrap().set_len(77).unwrap();
}

#[test]
fn changes_are_found_and_only_columns_of_files_may_be_stale() {
    let tree = varied().with(
        "deep/1/f 3, deep/2/g 4, deep/2/h/i 1, deep/3/j 1, quiet/written 3, quiet/mode 3, quiet/sub/k 1, watched/f 1",
    );
    let (tree, old) = settled(tree);
    change(&tree);
    let fresh = entries(&scan_completely(&tree, "fresh", "."));
    let before = entries(&old);
    for model in fathom_cases::engines("auto", &["sync", "threads=7"]) {
        let (new, _) = again(&tree, &old, &format!("new-{model}"), &format!("--io {model}"));
        let found = entries(&new);
        assert_eq!(found.keys().collect::<Vec<_>>(), fresh.keys().collect::<Vec<_>>(), "{model}");
        let then: BTreeSet<i64> =
            before.values().filter(|cells| is_dir(cells)).map(|dir| number(dir, "scanned")).collect();
        let is_old = |path: &[u8]| found.get(path).is_some_and(|dir| then.contains(&number(dir, "scanned")));
        for (path, cells) in &found {
            let readable = String::from_utf8_lossy(path);
            assert_eq!(sure(cells), sure(&fresh[path]), "{model}: {readable}");
            if !is_dir(cells) {
                let source = if is_old(parent(path)) { &before } else { &fresh };
                for column in ["size", "blocks", "mtime", "mtime_ns", "ctime", "mode", "uid", "nlink"] {
                    assert_eq!(cells[column], source[path][column], "{model}: {readable} {column}");
                }
            }
        }
        let old_ones = [".", "./quiet", "./quiet/sub", "./a/b/c", "./b/moved"];
        let read = ["./a/empty", "./a/b", "./a/b/c/d", "./b", "./deep", "./deep/1", "./deep/3", "./watched"];
        assert_eq!(old_ones.map(|path| is_old(path.as_bytes())), [true, true, true, true, false], "{model}");
        assert_eq!(read.map(|path| is_old(path.as_bytes())), [false; 8], "{model}");
        let count = found.iter().filter(|(path, cells)| is_dir(cells) && is_old(path)).count();
        assert_eq!(manifest(&new)["since"]["directories"], count, "{model}");
    }
}

#[test]
fn a_directory_changed_during_the_scan_is_read_again() {
    let tree = Tree::parse("d/f 1");
    // The scan follows the tree's last change immediately.
    let old = scan_completely(&tree, "old", ".");
    let (new, stderr) = again(&tree, &old, "new", "");
    assert!(stderr.starts_with("fathom scan: 0 of 2 directories had not changed"), "{stderr}");
    assert_eq!(manifest(&new)["since"]["entries"], 0);
}

#[test]
fn a_scan_with_since_can_be_resumed() {
    if !needs_faults() {
        return;
    }
    let (tree, old) = settled(bushy_tree());
    for top in 0..4 {
        fs::write(tree.path().join(format!("t{top}/s{top}/deep/new")), "n").unwrap();
    }
    let (expected, _) = again(&tree, &old, "whole", "");
    let expected = comparable_rows(&expected).into_iter().collect::<BTreeSet<_>>();
    let out = beside(&tree, "inv");
    let mut random = Random::new(9);
    let words = ["--since", old.to_str().unwrap(), "."];
    let runs = interrupted_and_resumed(&tree, &mut random, &out, &words);
    println!("{runs} runs");
    assert!(runs > 2, "it was never interrupted");
    let found = comparable_rows(&out).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(found.difference(&expected).next(), None);
    assert_eq!(expected.difference(&found).next(), None);
    assert!(manifest(&out)["since"]["directories"].as_u64().unwrap() > 20);
}

#[test]
fn a_damaged_inventory_is_refused() {
    let tree = Tree::parse("d/f 1");
    let old = scan_completely(&tree, "old", ".");
    let begin = |since: &Path| {
        let output = run(scan(&tree).arg("--since").arg(since).args(["-o", "../new", "."]));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!beside(&tree, "new").exists() && !beside(&tree, "new.part").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let stderr = begin(Path::new("none"));
    assert_eq!(stderr, "fathom scan: cannot read 'none': No such file or directory\n");
    for table in ["dirs", "entries"] {
        let file = old.join(format!("{table}-00000.parquet"));
        let sound = fs::read(&file).unwrap();
        let mut damaged = sound.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&file, damaged).unwrap();
        let stderr = begin(&old);
        assert!(stderr.contains("differs from the recorded"), "{stderr}");
        fs::write(&file, sound).unwrap();
    }
}
