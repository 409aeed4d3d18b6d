//! Inventories made of handwritten rows, both sound and damaged ones.

use std::path::Path;

use fathom_walk::{Errno, FileType, Meta};
use proptest::prelude::*;
use serde_json::Value;

use super::{ExportError, ExportFormat, ExportOptions, export};
use fathom_inventory::Owners;
use fathom_inventory::store::{
    BatchWriter, Completeness, DirRow, DirState, EntryRow, EntryTotals, Inventory, Manifest, ManifestRoot,
    OptionalColumns, RowBatch, RowChunk, SegmentWriter, VERSION,
};

const FORMATS: [ExportFormat; 5] =
    [ExportFormat::JsonLines, ExportFormat::Csv, ExportFormat::Nul, ExportFormat::Ncdu, ExportFormat::Sql];

/// A row of `dirs`: number, last number below it, parent, name.
type TestDir<'a> = (i64, i64, Option<i64>, &'a str);

/// Writes an inventory of these rows. Each of `entries` is a name in a directory.
fn made(directory: &Path, roots: usize, dirs: &[TestDir<'_>], entries: &[(i64, &str)]) -> Inventory {
    let mut writer = BatchWriter::start(SegmentWriter::new(
        directory.to_owned(),
        Vec::new(),
        0,
        OptionalColumns::default(),
    ));
    let mut batch = RowBatch::default();
    let row = EntryRow::new(FileType::Directory, Ok(&Meta { mode: 0o40_755, nlink: 2, ..Meta::default() }));
    for (id, last, parent, name) in dirs {
        batch.dirs.push(&DirRow {
            id: *id,
            parent: *parent,
            last: *last,
            root: 0,
            depth: 0,
            name: name.as_bytes(),
            path: Some(name.as_bytes()),
            meta: Some(&row),
            optional_values: None,
            own: &EntryTotals::default(),
            below: &EntryTotals::default(),
            scanned: 0,
            state: DirState::Complete,
            errno: None,
        });
    }
    for (dir_id, name) in entries {
        let mut chunk = Box::<RowChunk>::default();
        chunk.push(name.as_bytes(), FileType::Regular, Err(Errno::IO), b"");
        batch.entries.push((*dir_id, chunk));
    }
    writer.send(batch);
    let root = |_| ManifestRoot::default();
    let manifest = Manifest {
        format: VERSION,
        tool: String::new(),
        host: String::new(),
        roots: (0..roots).map(root).collect(),
        options: Default::default(),
        optional_columns: OptionalColumns::default(),
        start: 0,
        end: 0,
        entries: 0,
        since: None,
        completeness: Completeness::default(),
        files: writer.end().unwrap().finish(&Owners::default()).unwrap(),
    };
    manifest.write(directory).unwrap();
    Inventory::open(directory).unwrap()
}

fn exported(inventory: &Inventory, format: ExportFormat, below: Option<&str>) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let options =
        ExportOptions { format, guards_formulas: false, below: below.map(|path| path.as_bytes().to_vec()) };
    let written = export(inventory, &options, &mut |bytes| {
        out.extend_from_slice(bytes);
        Ok(())
    });
    written.map(|()| out).map_err(|failure| match failure {
        ExportError::Inventory(crate::top::QueryError::Unreadable(error)) => error.to_string(),
        other => format!("{other:?}"),
    })
}

fn paths(inventory: &Inventory, below: Option<&str>) -> Vec<String> {
    let out = String::from_utf8(exported(inventory, ExportFormat::Nul, below).unwrap()).unwrap();
    out.split_terminator('\0').map(str::to_owned).collect()
}

/// Collects the paths in ncdu's format, in their order. The name of the outermost directory is a
/// path.
fn nested(value: &Value, above: &str, found: &mut Vec<String>) {
    let object = if value.is_array() { &value[0] } else { value };
    let path = format!("{above}{}", object["name"].as_str().unwrap());
    found.push(path.clone());
    for inside in value.as_array().into_iter().flatten().skip(1) {
        nested(inside, &format!("{path}/"), found);
    }
}

/// Directory 1 has 2 and 5, directory 2 has 3 and 4; directory 6 is a tree of its own.
const DIRS: [TestDir<'_>; 6] = [
    (3, 3, Some(2), "c"),
    (4, 4, Some(2), "d"),
    (2, 4, Some(1), "b"),
    (5, 5, Some(1), "e"),
    (1, 5, None, "a"),
    (6, 6, None, "/"),
];

#[test]
fn entries_come_before_between_and_after_directories() {
    let top = tempfile::tempdir().unwrap();
    let entries = [(1, "1"), (2, "2"), (3, "3"), (2, "4"), (1, "5"), (0, "x/7"), (6, "8")];
    let inventory = made(top.path(), 3, &DIRS, &entries);
    let all =
        ["a", "a/1", "a/b", "a/b/2", "a/b/c", "a/b/c/3", "a/b/4", "a/b/d", "a/5", "a/e", "x/7", "/", "/8"];
    assert_eq!(paths(&inventory, None), all);
    assert_eq!(
        paths(&inventory, Some("b")),
        all[2..8].iter().map(|path| path[2..].to_owned()).collect::<Vec<_>>()
    );
    let ncdu: Value =
        serde_json::from_slice(&exported(&inventory, ExportFormat::Ncdu, None).unwrap()).unwrap();
    let mut found = Vec::new();
    nested(&ncdu[3], "", &mut found);
    assert_eq!(found[0], "(several trees)");
    let around = |path: &&str| format!("{}/{}", found[0], path.replace("/8", "//8"));
    assert_eq!(found[1..], all.iter().map(around).collect::<Vec<_>>());
}

#[test]
fn an_empty_inventory_exports_to_an_empty_file() {
    let top = tempfile::tempdir().unwrap();
    let inventory = made(top.path(), 0, &[], &[]);
    assert!(paths(&inventory, None).is_empty());
    for format in FORMATS {
        exported(&inventory, format, None).unwrap();
    }
    let ncdu: Value =
        serde_json::from_slice(&exported(&inventory, ExportFormat::Ncdu, None).unwrap()).unwrap();
    assert_eq!(ncdu[3], serde_json::json!([{"name": "(several trees)"}]));
}

#[test]
fn directories_that_do_not_fit_together_are_refused() {
    for (at, row) in [
        (0, (3, 3, Some(4), "c")),
        (0, (4, 4, Some(2), "c")),
        (2, (2, 4, Some(5), "b")),
        (2, (2, i64::MAX, Some(1), "b")),
        (3, (5, 5, Some(5), "e")),
        (4, (1, 5, Some(6), "a")),
        (4, (i64::MIN, 5, None, "a")),
        (5, (7, 7, None, "/")),
        (5, (6, i64::MAX, None, "/")),
        (5, (1, 5, None, "a")),
        (0, (3, 3, Some(2), "..")),
        (0, (3, 3, Some(2), "c/c")),
        (0, (3, 3, Some(2), "")),
        (5, (6, 6, None, "a\0b")),
    ] {
        let top = tempfile::tempdir().unwrap();
        let mut dirs = DIRS;
        dirs[at] = row;
        let inventory = made(top.path(), 2, &dirs, &[(1, "1")]);
        for format in FORMATS {
            let refused = exported(&inventory, format, None).expect_err("it is refused");
            assert!(refused.starts_with("cannot read '"), "{row:?} at {at}: {refused}");
        }
    }
}

#[test]
fn directories_of_a_part_that_do_not_fit_together_are_refused() {
    for dirs in [
        [(2, 9, Some(1), "b"), (1, 2, None, "a")],
        [(2, 1, Some(1), "b"), (1, 2, None, "a")],
        [(2, i64::MAX, Some(2), "b"), (1, 2, None, "a")],
    ] {
        let top = tempfile::tempdir().unwrap();
        let inventory = made(top.path(), 1, &dirs, &[]);
        for format in FORMATS {
            let refused = exported(&inventory, format, Some("b")).expect_err("it is refused");
            assert!(refused.contains("contradict one another"), "{dirs:?}: {refused}");
        }
    }
}

#[test]
fn entries_that_are_nowhere_or_come_too_late_are_refused() {
    for (entries, cause) in [
        (&[(7, "x")][..], "an entry has no directory"),
        (&[(0, "x")], "an entry has no directory"),
        (&[(-1, "x")], "an entry has no directory"),
        (&[(i64::MIN, "x")], "an entry has no directory"),
        (&[(3, "x"), (2, "x"), (3, "x")], "its entries are not in the order of their directories"),
        (&[(5, "x"), (2, "x")], "its entries are not in the order of their directories"),
        (&[(1, "..")], "an entry has an impossible name"),
        (&[(1, "a/b")], "an entry has an impossible name"),
        (&[(1, "a\0b")], "an entry has an impossible name"),
        (&[(1, "")], "an entry has an impossible name"),
    ] {
        let top = tempfile::tempdir().unwrap();
        let inventory = made(top.path(), 2, &DIRS, entries);
        for format in &FORMATS[..4] {
            let refused = exported(&inventory, *format, None).expect_err("it is refused");
            assert!(refused.ends_with(cause), "{entries:?}: {refused}");
        }
    }
}

#[test]
fn a_failed_write_ends_an_export() {
    let top = tempfile::tempdir().unwrap();
    let inventory = made(top.path(), 2, &DIRS, &[(1, "1")]);
    for format in FORMATS {
        let options = ExportOptions { format, guards_formulas: false, below: None };
        let mut calls = 0;
        let failure = export(&inventory, &options, &mut |_| {
            calls += 1;
            Err(std::io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(failure, Err(ExportError::Refused(_))) && calls == 1, "{failure:?}");
    }
}

/// The expected rows and paths of a simulated walk.
#[derive(Default)]
struct SimulatedWalk {
    dirs: Vec<(i64, i64, Option<i64>, String)>,
    entries: Vec<(i64, String)>,
    paths: Vec<String>,
}

impl SimulatedWalk {
    /// Enters a directory and follows `plan` in it: 0 leaves it, 1 and 2 add an entry, any other
    /// number enters a subdirectory.
    fn directory(
        &mut self,
        parent: Option<i64>,
        above: &str,
        next: &mut i64,
        plan: &mut impl Iterator<Item = u8>,
    ) {
        let id = *next;
        *next += 1;
        let (name, path) = (format!("d{id}"), format!("{above}d{id}"));
        self.paths.push(path.clone());
        while let Some(step @ 1..) = plan.next() {
            if step > 2 {
                self.directory(Some(id), &format!("{path}/"), next, plan);
            } else {
                let name = format!("f{}", self.entries.len());
                self.paths.push(format!("{path}/{name}"));
                self.entries.push((id, name));
            }
        }
        self.dirs.push((id, *next - 1, parent, name));
    }
}

proptest! {
    #![proptest_config(fathom_cases::property(64))]

    #[test]
    fn an_export_has_every_entry_of_a_walk_in_its_order(plan in prop::collection::vec(0u8..5, 0..120)) {
        let (mut told, mut next) = (SimulatedWalk::default(), 1);
        told.directory(None, "", &mut next, &mut plan.into_iter());
        let top = tempfile::tempdir().unwrap();
        let dirs: Vec<_> = told.dirs.iter().map(|(id, last, parent, name)| (*id, *last, *parent, &name[..])).collect();
        let entries: Vec<_> = told.entries.iter().map(|(id, name)| (*id, &name[..])).collect();
        let inventory = made(top.path(), 1, &dirs, &entries);
        let found = paths(&inventory, None);
        for (at, path) in found.iter().enumerate().skip(1) {
            let parent = path.rsplit_once('/').unwrap().0;
            prop_assert!(found[..at].iter().any(|before| before == parent), "{} before {}", path, parent);
        }
        let ncdu: Value = serde_json::from_slice(&exported(&inventory, ExportFormat::Ncdu, None).unwrap()).unwrap();
        let mut in_ncdu = Vec::new();
        nested(&ncdu[3], "", &mut in_ncdu);
        prop_assert_eq!(&in_ncdu, &found);
        let sorted = |mut paths: Vec<String>| { paths.sort(); paths };
        prop_assert_eq!(sorted(found), sorted(told.paths));
    }
}
