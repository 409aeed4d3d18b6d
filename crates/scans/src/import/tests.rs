//! Tests of imports of written texts, of exports, and of the output of the du of this machine.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::merge::merge;
use crate::scan::{Scan, scan};
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Inventory, ManifestRoot};
use fathom_questions::diff::{ChangeKind, ChangedField, DiffOptions, Sides, diff};
use fathom_questions::export::{ExportFormat, ExportOptions, export};
use fathom_questions::replay::{ReplayEntry, ReplayVisitor, replay};
use fathom_questions::top::{ReportKind, ReportOptions, UsageReport, report};

const EXPORT: &str = r#"[1,2,{"progname":"ncdu","progver":"1.19","timestamp":1700000000},
[{"name":"/data","dsize":4096,"dev":7,"ino":3},
{"name":"b.TXT","asize":10,"dsize":4096,"extra":[{"x":[null,1.5e3]},"]"]},
{"name":"a\u0001\"\\","asize":1},
[{"name":"sub","asize":4096,"dsize":4096},{"name":"l1","asize":5,"dsize":512,"ino":9,"hlnkc":true,"nlink":2}],
{"name":"l2","asize":5,"dsize":512,"ino":9,"hlnkc":true,"nlink":2},
{"name":"pipe","notreg":true},
{"name":"lost","read_error":true},
[{"name":"secret","read_error":true}],
{"name":"proc","excluded":"kernfs"},
{"name":"junk","excluded":"pattern"},
{"name":"old.log","asize":7,"mtime":18446744073709551615,"uid":5,"gid":6,"mode":33188}],"more"]"#;

/// Imports bytes. Returns the inventory in its temporary directory.
fn imported(format: ImportFormat, bytes: &[u8]) -> Result<(tempfile::TempDir, Inventory), String> {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("i");
    let source = ImportSource { name: "test".to_owned(), modified: Some(77) };
    let made = import(format, &mut &bytes[..], &source, &out, &AtomicBool::new(false), &mut |_| ());
    match made {
        Ok(manifest) => {
            let inventory = Inventory::open(&out).unwrap();
            inventory.check().unwrap();
            assert_eq!(
                inventory.manifest(),
                &Manifest { files: inventory.manifest().files.clone(), ..manifest }
            );
            Ok((temp, inventory))
        }
        Err(error) => {
            assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "{error}");
            Err(error.to_string())
        }
    }
}

fn refused(format: ImportFormat, text: &str) -> String {
    imported(format, text.as_bytes()).map(|_| ()).unwrap_err()
}

fn reported(inventory: &Inventory, by: ReportKind) -> UsageReport {
    report(inventory, &ReportOptions { by, count: usize::MAX, below: None, now: 1_700_000_000_000_000 })
        .unwrap()
}

/// Size and blocks, if they are known, and the state of a directory, by path.
type ListedSizes = BTreeMap<Vec<u8>, (Option<(i64, u64)>, Option<DirState>)>;

/// Collects paths with their sizes and states.
#[derive(Default)]
struct Listing(ListedSizes);

impl ReplayVisitor for &mut Listing {
    fn entry(&mut self, item: &ReplayEntry<'_>) {
        let mut path = Vec::new();
        item.entry.write_path(&mut path);
        let sizes = item.entry.meta.map(|meta| (meta.size, meta.blocks));
        assert!(self.0.insert(path, (sizes, item.state)).is_none());
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, _state: DirState) {
        self.entry(item);
    }
}

fn listed(inventory: &Inventory) -> ListedSizes {
    let mut listing = Listing::default();
    replay(inventory, Span::ALL, &mut listing).unwrap();
    listing.0
}

#[test]
fn what_ncdu_writes_is_there() {
    let (_temp, inventory) = imported(ImportFormat::Ncdu, EXPORT.as_bytes()).unwrap();
    let expected: [(&[u8], _, _); 11] = [
        (b"/data", Some((0, 8)), Some(DirState::Complete)),
        (b"/data/a\x01\"\\", Some((1, 0)), None),
        (b"/data/b.TXT", Some((10, 8)), None),
        (b"/data/l2", Some((5, 1)), None),
        (b"/data/lost", None, None),
        (b"/data/old.log", Some((7, 0)), None),
        (b"/data/pipe", Some((0, 0)), None),
        (b"/data/proc", Some((0, 0)), Some(DirState::Skipped)),
        (b"/data/secret", Some((0, 0)), Some(DirState::Failed)),
        (b"/data/sub", Some((4096, 8)), Some(DirState::Complete)),
        (b"/data/sub/l1", Some((5, 1)), None),
    ];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(path, sizes, state)| (path.to_vec(), (sizes, state))).collect();
    assert_eq!(listed(&inventory), expected);
    let manifest = inventory.manifest();
    assert_eq!((manifest.start, manifest.entries), (1_700_000_000, 11));
    assert_eq!(manifest.options["imported-from"], "ncdu 1.19");
    assert_eq!(manifest.options["import-source"], "test");
    let found = &manifest.completeness;
    assert_eq!((found.complete, found.failed, found.skipped, found.unknown_entries), (2, 1, 1, 1));
    // A file with two names counts once: 4096 * 3 + 512 bytes.
    assert_eq!(reported(&inventory, ReportKind::Dir).total.allocated, 12_800);
    let users: Vec<_> = reported(&inventory, ReportKind::User).rows.into_iter().map(|row| row.key).collect();
    assert!(
        users.contains(&fathom_questions::top::GroupKey::Id(5))
            && users.contains(&fathom_questions::top::GroupKey::Unknown)
    );
    assert_eq!(users.len(), 2);
    let ages = reported(&inventory, ReportKind::Age);
    assert!(ages.rows.iter().any(|row| row.key == fathom_questions::top::GroupKey::Unknown));
}

#[test]
fn gdu_has_no_sizes_of_directories() {
    let text = r#"[1,2,{"progname":"gdu","progver":"v5.13.2","timestamp":1647033432},
[{"name":"/home/me/src","mtime":1629333600},
{"name":"a\u003cb","asize":5,"dsize":4096,"mtime":1629333500},
[{"name":"empty"}
],
[{"name":"sub","mtime":1629333600},
{"name":"link","asize":3,"notreg":true},
{"name":"b2","asize":5,"dsize":4096,"ino":9,"hlnkc":true}]]]
"#;
    let (_temp, inventory) = imported(ImportFormat::Gdu, text.as_bytes()).unwrap();
    let paths: Vec<_> = listed(&inventory).into_keys().map(|path| String::from_utf8(path).unwrap()).collect();
    let expected =
        ["", "/a<b", "/empty", "/sub", "/sub/b2", "/sub/link"].map(|path| format!("/home/me/src{path}"));
    assert_eq!(paths, expected);
    let mut blocks = Vec::new();
    inventory
        .each(fathom_inventory::store::Table::Dirs, |group| {
            let column = group.numbers("blocks")?;
            blocks.extend((0..group.rows()).map(|row| column.get(row)));
            Ok(())
        })
        .unwrap();
    assert_eq!(blocks, [None, None, None]);
    assert_eq!(reported(&inventory, ReportKind::Dir).total.allocated, 4096);
}

#[test]
fn damaged_exports_are_refused_and_leave_nothing() {
    let whole = EXPORT.trim_end();
    for end in 0..whole.len() {
        assert!(imported(ImportFormat::Ncdu, &whole.as_bytes()[..end]).is_err(), "{end}");
    }
    let table = [
        ("", "not an ncdu export (at byte 0)"),
        ("x", "not JSON (at byte 1)"),
        ("[2,0,{},[{\"name\":\"a\"}]]", "not an ncdu export of format version 1 (at byte 2)"),
        ("[1,0,{},{\"name\":\"a\"}]", "the export has no tree (at byte 9)"),
        ("[1,0,{},[{\"asize\":1}]]", "an entry has no name (at byte 20)"),
        (
            "[1,0,{},[{\"name\":\"a\",\"asize\":1.5}]]",
            "a member that is a number has another value (at byte 32)",
        ),
        ("[1,0,{},[{\"name\":\"a\",\"asize\":-1}]]", "a number is out of range (at byte 31)"),
        ("[1,0,{},[{\"name\":\"a\"},{\"name\":\"..\"}]]", "an entry has an impossible name (at byte 35)"),
        ("[1,0,{},[{\"name\":\"a\"},{\"name\":\"b/c\"}]]", "an entry has an impossible name (at byte 36)"),
        ("[1,0,{},[{\"name\":\"a\\u0000\"}]]", "an entry has an impossible name (at byte 27)"),
        ("[1,0,{},[{\"name\":\"\\ud800x\"}]]", "a text has half a character (at byte 25)"),
        ("[1,0,{},[{\"name\":\"a\"}]]]", "unexpected data after the export (at byte 24)"),
    ];
    for (text, message) in table {
        assert_eq!(refused(ImportFormat::Ncdu, text), message, "{text}");
    }
    assert!(
        refused(ImportFormat::Ncdu, &format!("[1,0,{{}},[{{\"name\":\"{}\"}}]]", "x".repeat(70_000)))
            .contains("too long")
    );
    assert!(
        refused(ImportFormat::Ncdu, &format!("[1,0,{{\"x\":{}", "[".repeat(1000))).contains("too deeply")
    );
}

#[test]
fn deep_trees_need_no_recursion_and_have_a_limit() {
    let nested = |levels: usize| {
        format!(
            "[1,0,{{}},{}{}]",
            "[{\"name\":\"d\"},".repeat(levels) + "[{\"name\":\"d\"}",
            "]".repeat(levels + 1)
        )
    };
    let (_temp, inventory) = imported(ImportFormat::Ncdu, nested(20_000).as_bytes()).unwrap();
    assert_eq!(inventory.manifest().entries, 20_001);
    assert!(refused(ImportFormat::Ncdu, &nested(140_000)).starts_with("directories are nested too deeply"));
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("i");
    let stop = AtomicBool::new(true);
    let made = import(
        ImportFormat::Ncdu,
        &mut EXPORT.as_bytes(),
        &ImportSource::default(),
        &out,
        &stop,
        &mut |_| (),
    );
    assert!(matches!(made, Err(ImportError::Input(_))));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    fs::write(&out, "mine").unwrap();
    let stop = AtomicBool::new(false);
    let made = import(
        ImportFormat::Ncdu,
        &mut EXPORT.as_bytes(),
        &ImportSource::default(),
        &out,
        &stop,
        &mut |_| (),
    );
    assert!(matches!(made, Err(ImportError::Inventory(_))));
    assert_eq!(fs::read(&out).unwrap(), b"mine");
}

/// Makes a tree of many kinds of entries, and returns its root.
fn varied(top: &Path) -> PathBuf {
    let root = top.join("tree");
    for dir in ["a/b/c", "d", "e/f"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    let odd = std::ffi::OsString::from_vec(b"od\xff\n\x1b[31m\"\\.bin".to_vec());
    for (name, len) in
        [("a/x.rs", 5000), ("a/b/y.rs", 70_000), ("a/b/c/z", 1), ("d/big.iso", 900_000), ("top", 0)]
    {
        fs::write(root.join(name), vec![7; len]).unwrap();
    }
    fs::write(root.join("d").join(odd), "12345").unwrap();
    fs::hard_link(root.join("a/b/y.rs"), root.join("e/link.rs")).unwrap();
    fs::hard_link(root.join("a/b/y.rs"), root.join("a/b/link.rs")).unwrap();
    std::os::unix::fs::symlink("a", root.join("e/symlink")).unwrap();
    root
}

fn scanned(roots: &[&Path], out: &Path) -> Inventory {
    let roots = roots.iter().map(|root| CString::new(root.as_os_str().as_bytes()).unwrap()).collect();
    scan(&Scan { roots, ..Scan::default() }, out, &mut ()).unwrap();
    Inventory::open(out).unwrap()
}

fn exported(inventory: &Inventory) -> Vec<u8> {
    let mut text = Vec::new();
    let options = ExportOptions { format: ExportFormat::Ncdu, guards_formulas: false, below: None };
    export(inventory, &options, &mut |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    })
    .unwrap();
    text
}

#[test]
fn an_export_comes_back_with_the_same_sums() {
    use ReportKind::{Age, Depth, Dir, Ext, File, Group, Size, Type, User};
    let temp = tempfile::tempdir().unwrap();
    let root = varied(temp.path());
    // The tree alone, and several operands, one of which is no directory.
    for roots in [vec![root.as_path()], vec![&root.join("d"), &root.join("top"), &root.join("a")]] {
        let out = temp.path().join(format!("{}.inv", roots.len()));
        let inventory = scanned(&roots, &out);
        let (_kept, again) = imported(ImportFormat::Ncdu, &exported(&inventory)).unwrap();
        for by in [Dir, Ext, Size, Type, Depth, Age] {
            assert_eq!(reported(&again, by), reported(&inventory, by), "{by:?}");
        }
        // Shown is the first name of a file: a scan has them in the order of the directory, an
        // import by their bytes.
        let files = |inventory| {
            let mut report = reported(inventory, File);
            let names: [&[u8]; 3] = [b"a/b/y.rs", b"a/b/link.rs", b"e/link.rs"];
            for row in &mut report.rows {
                if names.iter().any(|name| row.text.ends_with(name)) {
                    row.text = b"y.rs".to_vec();
                }
            }
            report
        };
        assert_eq!(files(&again), files(&inventory));
        for by in [User, Group] {
            let keys = |report: UsageReport| {
                report.rows.into_iter().map(|row| (row.key, row.sum)).collect::<Vec<_>>()
            };
            assert_eq!(keys(reported(&again, by)), keys(reported(&inventory, by)), "{by:?}");
        }
        assert_eq!(
            listed(&again).into_keys().collect::<Vec<_>>(),
            listed(&inventory).into_keys().collect::<Vec<_>>()
        );
        // An export does not tell the filesystem, and has the paths as they were given.
        let roots = inventory.manifest().roots.iter();
        let paths = roots.map(|root| ManifestRoot {
            path: root.path.clone(),
            path_hex: root.path_hex.clone(),
            ..ManifestRoot::default()
        });
        assert_eq!(again.manifest().roots, paths.collect::<Vec<_>>());
    }
}

/// Once, nearly every file was called modified: other programs have whole seconds and no targets.
#[test]
fn a_scan_and_an_import_of_one_tree_do_not_differ() {
    let top = tempfile::tempdir().unwrap();
    let tree = top.path().join("tree");
    fs::create_dir_all(tree.join("d")).unwrap();
    for name in ["a", "d/b", "d/c"] {
        fs::write(tree.join(name), name).unwrap();
        let time = UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        fs::File::options().write(true).open(tree.join(name)).unwrap().set_modified(time).unwrap();
    }
    std::os::unix::fs::symlink("d/b", tree.join("link")).unwrap();
    let scanned = |name: &str| {
        let out = top.path().join(name);
        let roots = vec![CString::new(tree.as_os_str().as_bytes()).unwrap()];
        scan(&Scan { roots, ..Scan::default() }, &out, &mut ()).unwrap();
        Inventory::open(&out).unwrap()
    };
    let first = scanned("first");
    let mut text = Vec::new();
    let options = ExportOptions { format: ExportFormat::Ncdu, guards_formulas: false, below: None };
    export(&first, &options, &mut |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    })
    .unwrap();
    let (_temp, import) = imported(ImportFormat::Ncdu, &text).unwrap();
    let changes = |old: &Inventory, new: &Inventory| {
        let (mut found, options) = (Vec::new(), DiffOptions { below: None, scratch: top.path().to_owned() });
        diff(&Sides { old, new }, &options, &mut |change| {
            let name = change.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
            found.push((String::from_utf8(name).unwrap(), change.kind, change.fields()));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        found
    };
    assert_eq!(changes(&first, &import), []);
    assert_eq!(changes(&import, &first), []);
    let time = UNIX_EPOCH + Duration::from_secs(1_700_000_001);
    fs::File::options().write(true).open(tree.join("a")).unwrap().set_modified(time).unwrap();
    fs::rename(tree.join("d/b"), tree.join("d/new")).unwrap();
    let second = scanned("second");
    let found = changes(&import, &second);
    let expected = [
        ("a".to_owned(), ChangeKind::Modified, vec![ChangedField::Mtime]),
        // Exports have inode numbers of hard links alone.
        ("b".to_owned(), ChangeKind::Removed, vec![]),
        ("new".to_owned(), ChangeKind::Created, vec![]),
    ];
    assert_eq!(found, expected);
}

/// ncdu extends the sign of a number of 32 bits. Once, such an export was refused as a whole.
#[test]
fn an_owner_of_2_31_or_more_is_read_whatever_its_sign_became() {
    for (written, uid) in [
        ("18446744073709551614", u32::MAX - 1),
        ("-2", u32::MAX - 1),
        ("4294967294", u32::MAX - 1),
        ("18446744071562067968", 1 << 31),
        ("-2147483648", 1 << 31),
        ("2147483647", i32::MAX as u32),
    ] {
        let text = format!(r#"[1,2,{{}},[{{"name":"/d"}},{{"name":"a","uid":{written},"gid":{written}}}]]"#);
        let (_temp, inventory) = imported(ImportFormat::Ncdu, text.as_bytes()).unwrap();
        let users = reported(&inventory, ReportKind::User);
        assert!(
            users.rows.iter().any(|row| row.key == fathom_questions::top::GroupKey::Id(uid)),
            "{written}: {users:?}"
        );
    }
    for written in ["18446744071562067967", "-2147483649", "4294967296", "1.5"] {
        let text = format!(r#"[1,2,{{}},[{{"name":"/d"}},{{"name":"a","uid":{written}}}]]"#);
        assert!(imported(ImportFormat::Ncdu, text.as_bytes()).is_err(), "{written}");
    }
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let table = [
        r#"{"name":"a"},{"name":"b"},{"name":"a"}"#,
        r#"[{"name":"a"}],{"name":"a"}"#,
        r#"[{"name":"a"},{"name":"x"}],[{"name":"a"}]"#,
    ];
    for entries in table {
        let text = format!(r#"[1,2,{{}},[{{"name":"/d"}},{entries}]]"#);
        let refused = imported(ImportFormat::Ncdu, text.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("a directory has two entries of one name"), "{refused}");
    }
    // One name in several directories is none.
    let text = r#"[1,2,{},[{"name":"/d"},[{"name":"a"},{"name":"a"}],[{"name":"b"},{"name":"a"}]]]"#;
    imported(ImportFormat::Ncdu, text.as_bytes()).unwrap();
}

#[test]
fn times_of_du_are_no_part_of_names() {
    for time in ["2026-01-31", "2026-01-31 12:00", "2026-01-31 12:00:00.123456789 +0100"] {
        let text = format!("4\t{time}\tt/a\n8\t{time}\tt\n");
        let refused = imported(ImportFormat::Du(DuOutput::default()), text.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("a line has a time: use du without --time"), "{refused}");
    }
    imported(ImportFormat::Du(DuOutput::default()), b"4\tt/2026-01-31\tx\n8\tt\n").unwrap();
}

#[test]
fn unknown_columns_are_no_changes_and_stay_unknown_in_a_merge() {
    let old = r#"[1,2,{},[{"name":"/d"},{"name":"a","asize":1,"dsize":512},{"name":"b","asize":9},{"name":"c"},[{"name":"s"}]]]"#;
    let new = r#"[1,2,{},[{"name":"/d"},{"name":"a","asize":2,"dsize":512},{"name":"e","asize":9},{"name":"c"},[{"name":"t"}]]]"#;
    let (old_temp, old) = imported(ImportFormat::Ncdu, old.as_bytes()).unwrap();
    let (_new_temp, new) = imported(ImportFormat::Ncdu, new.as_bytes()).unwrap();
    let options = DiffOptions { below: None, scratch: old_temp.path().to_owned() };
    let mut changes = Vec::new();
    diff(&Sides { old: &old, new: &new }, &options, &mut |change| {
        changes.push((String::from_utf8(change.path.clone()).unwrap(), change.kind));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    // Without inode numbers nothing is known to be renamed.
    let expected = [
        ("/d/a", ChangeKind::Modified),
        ("/d/b", ChangeKind::Removed),
        ("/d/e", ChangeKind::Created),
        ("/d/s", ChangeKind::Removed),
        ("/d/t", ChangeKind::Created),
    ];
    assert_eq!(changes, expected.map(|(path, kind)| (path.to_owned(), kind)));
    let merged = old_temp.path().join("m");
    merge(&[old, new], &merged, &AtomicBool::new(false), &mut |_| ()).unwrap();
    let merged = Inventory::open(&merged).unwrap();
    let users = reported(&merged, ReportKind::User);
    assert_eq!(
        users.rows.iter().map(|row| row.key).collect::<Vec<_>>(),
        [fathom_questions::top::GroupKey::Unknown]
    );
}

/// Runs du in the parent of `root`.
fn du(root: &Path, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new("du");
    command.args(words).arg("tree").current_dir(root.parent().unwrap()).env_clear().env("LC_ALL", "C");
    command.output().unwrap().stdout
}

#[test]
fn the_output_of_du_has_the_same_sums() {
    let temp = tempfile::tempdir().unwrap();
    let root = varied(temp.path());
    let odd = fs::read_dir(root.join("d")).unwrap().map(|entry| entry.unwrap().path());
    odd.filter(|path| !path.ends_with("big.iso")).for_each(|path| fs::remove_file(path).unwrap());
    let plain = DuOutput::default();
    let table = [
        (vec!["-a"], plain),
        (vec!["-0a"], plain),
        (vec![], DuOutput { only_directories: true, ..plain }),
        (vec!["-ac"], DuOutput { has_total: true, ..plain }),
        (vec!["-0ac", "-B1"], DuOutput { has_total: true, block_bytes: 1, ..plain }),
        (vec!["-a", "-B1"], DuOutput { block_bytes: 1, ..plain }),
        (vec!["-d1"], DuOutput { only_directories: true, ..plain }),
    ];
    for (words, options) in table {
        let text = du(&root, &words);
        let (_kept, inventory) = imported(ImportFormat::Du(options), &text).unwrap();
        let dirs = reported(&inventory, ReportKind::Dir);
        let block = options.block_bytes;
        let records = text.split(|byte| matches!(byte, 0 | b'\n')).filter(|line| !line.is_empty());
        let lines: BTreeMap<&str, u64> = records
            .map(|line| {
                let (size, path) = std::str::from_utf8(line).unwrap().split_once('\t').unwrap();
                (path, size.parse::<u64>().unwrap() * block)
            })
            .collect();
        assert_eq!(dirs.total.allocated, lines["tree"], "{words:?}");
        for row in dirs.rows {
            assert_eq!(row.sum.allocated, lines[std::str::from_utf8(&row.text).unwrap()], "{words:?}");
        }
        assert_eq!(inventory.manifest().start, 77);
        assert_eq!(inventory.manifest().completeness.is_complete(), !options.only_directories);
    }
    let text = du(&root, &["-ab"]);
    let (_kept, inventory) = imported(ImportFormat::Du(DuOutput { apparent: true, ..plain }), &text).unwrap();
    let expected: u64 = reported(&scanned(&[&root], &temp.path().join("s")), ReportKind::Dir).total.apparent;
    // An empty directory looks like a file.
    let expected = expected + fs::metadata(root.join("e/f")).unwrap().len();
    assert_eq!(reported(&inventory, ReportKind::Dir).total.apparent, expected);
}

#[test]
fn lines_of_du_are_read_in_any_form_of_paths() {
    let paths = |text: &str| -> Vec<String> {
        let (_kept, inventory) = imported(ImportFormat::Du(DuOutput::default()), text.as_bytes()).unwrap();
        listed(&inventory).into_keys().map(|path| String::from_utf8(path).unwrap()).collect()
    };
    assert_eq!(paths("4\t/bin/ls\n8\t/bin\n20\t/\n"), ["/", "/bin", "/bin/ls"]);
    assert_eq!(paths("4\t./a\n8\t.\n4\t../b\n8\t..\n"), [".", "..", "../b", "./a"]);
    assert_eq!(paths("4\ta/b/c/d\n4\ta/b/e\n8\ta\n"), ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/e"]);
    assert_eq!(paths("1\tab\n2\ta/x\n2\ta\n"), ["a", "a/x", "ab"]);
    assert_eq!(paths("1\ttotal\n"), ["total"]);
    assert_eq!(paths("1\ta\n1\ttotal\n"), ["a", "total"]);
    assert_eq!(paths("1\ttotal/x\n1\ttotal\n"), ["total", "total/x"]);
    assert_eq!(paths("4\td/a/\n4\td//b//c\n9\td//b//d\n20\td/\n"), ["d/", "d/a", "d/b", "d/b/c", "d/b/d"]);
    let long =
        format!("{}5\td\n", (0..20_000).map(|number| format!("1\td/{number:0>9}\n")).collect::<String>());
    assert_eq!(paths(&long).len(), 20_001);
    let table = [
        ("", "the input is empty"),
        ("4\ta", "the last line does not end"),
        ("4\ta\nb\n", "a line has no size and path"),
        ("4.0K\ta\n", "a size is not a whole number"),
        ("4\t\n", "an entry has an impossible name"),
        ("4\ta/..\n4\ta\n", "an entry has an impossible name"),
        ("99999999999999999999\ta\n", "a size is not a whole number"),
        ("18446744073709551615\ta\n", "a size is too large"),
    ];
    for (text, message) in table {
        let error = refused(ImportFormat::Du(DuOutput::default()), text);
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn the_total_of_du_is_an_entry_unless_it_is_said_to_be_one() {
    let temp = tempfile::tempdir().unwrap();
    let warned = |text: &str, options: DuOutput| {
        let (mut warnings, source, stop) = (Vec::new(), ImportSource::default(), AtomicBool::new(false));
        let (out, mut input) = (temp.path().join("i"), text.as_bytes());
        let format = ImportFormat::Du(options);
        let mut warn = |warning: &[u8]| warnings.push(String::from_utf8(warning.to_vec()).unwrap());
        let manifest = import(format, &mut input, &source, &out, &stop, &mut warn).unwrap();
        fs::remove_dir_all(&out).unwrap();
        (manifest.entries, warnings.iter().any(|warning| warning.contains("use --total")))
    };
    let plain = DuOutput::default();
    let total = DuOutput { has_total: true, ..plain };
    assert_eq!(warned("1\ta\n1\ttotal\n", plain), (2, true));
    assert_eq!(warned("1\ttotal\n", plain), (1, false));
    assert_eq!(warned("1\ta\n1\ttotal/x\n1\ttotal\n", plain), (3, false));
    assert_eq!(warned("1\ta\n1\ttotal\n", total), (1, false));
    assert_eq!(warned("1\ta\n1\ttotal\n2\ttotal\n", total), (2, false));
    assert_eq!(warned("8\ta/b\n12\ta\n4\tb\n15\ttotal\n", total), (3, false));
    let apparent = DuOutput { apparent: true, ..total };
    for (text, options) in [
        // It was cut off at the end of a line.
        ("4\ts/a/x\n8\ts/a\n", total),
        ("4\ts/a/x\n12\ts/a\n4\ts/b\n", total),
        ("4\ta\n4\tb\n", total),
        ("4\ta\n4\tinsgesamt\n", total),
        ("8\ta\n4\tb\n10\ttotal\n", total),
        ("8\ta\n4\tb\n13\ttotal\n", total),
        ("8\ta\n4\tb\n11\ttotal\n", apparent),
        ("4\ttotal\n", total),
    ] {
        let error = refused(ImportFormat::Du(options), text);
        let expected = format!("is the output complete? (at byte {})", text.len());
        assert!(
            error.starts_with("the last line is not the total") && error.ends_with(&expected),
            "{text:?}: {error}"
        );
    }
    assert!(refused(ImportFormat::Du(total), "").starts_with("the input is empty"));
}

#[test]
fn a_mode_without_permission_bits_is_no_change_of_the_mode() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("tree");
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(root.join("d/f"), "1").unwrap();
    let scan = scanned(&[&root], &temp.path().join("s"));
    let options = DuOutput { block_bytes: 1, ..DuOutput::default() };
    let (_kept, imported) = imported(ImportFormat::Du(options), &du(&root, &["-a", "-B1"])).unwrap();
    let options = DiffOptions { below: None, scratch: temp.path().to_owned() };
    for (old, new) in [(&scan, &imported), (&imported, &scan)] {
        diff(&Sides { old, new }, &options, &mut |change| panic!("{change:?}: {:?}", change.fields()))
            .unwrap();
    }
}

/// Levels that had paths of their own would need a lower limit of the length of a path.
#[test]
fn levels_of_du_share_one_path() {
    let (depth, name) = (400, "d".repeat(250));
    let text = format!("1\ttop/{}f\n4\ttop\n", format!("{name}/").repeat(depth));
    let (_kept, inventory) = imported(ImportFormat::Du(DuOutput::default()), text.as_bytes()).unwrap();
    let manifest = inventory.manifest();
    assert_eq!((manifest.entries, manifest.completeness.partial), (depth as u64 + 2, depth as u64));
    assert_eq!(reported(&inventory, ReportKind::Dir).total.allocated, 4096);
}

/// Text of the parts of which exports consist, in any order.
fn parts() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        proptest::sample::select(vec![
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "\"name\":\"a\"",
            "\"name\":\"b/c\"",
            "{\"name\":\"d\"}",
            "[{\"name\":\"e\"}",
            "\"asize\":9",
            "\"ino\":1,\"hlnkc\":true",
            "\"mtime\":-1",
            "null",
            "\"\\u00",
            "-",
            "1e5",
            "\"dev\":18446744073709551615",
        ])
        .prop_map(|part| part.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..3),
    ];
    proptest::collection::vec(part, 0..20)
        .prop_map(|parts| [&b"[1,0,{},[{\"name\":\"r\"}"[..], &parts.concat()].concat())
}

proptest! {
    #![proptest_config(fathom_cases::property(100))]

    #[test]
    fn any_export_is_imported_or_refused(
        bytes in prop_oneof![
            parts(),
            (0..EXPORT.len(), any::<u8>()).prop_map(|(at, byte)| {
                let mut bytes = EXPORT.as_bytes().to_vec();
                bytes[at] = byte;
                bytes
            }),
            any::<Vec<u8>>(),
        ],
    ) {
        let _ = imported(ImportFormat::Ncdu, &bytes);
    }

    #[test]
    fn any_lines_are_imported_or_refused(
        bytes in prop_oneof![
            proptest::collection::vec(("[0-9]{0,3}\t?", "[a/.]{0,6}"), 0..12)
                .prop_map(|lines| lines.into_iter().map(|(size, path)| format!("{size}{path}\n")).collect::<String>().into_bytes()),
            any::<Vec<u8>>(),
        ],
        (block_bytes, flags) in (1u64.., any::<[bool; 3]>()),
    ) {
        let [apparent, only_directories, has_total] = flags;
        let _ = imported(ImportFormat::Du(DuOutput { block_bytes, apparent, only_directories, has_total }), &bytes);
    }
}
