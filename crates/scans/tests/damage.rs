//! Damaged and hostile inventories: reading one gives an error or the rows that were written, and
//! never panics.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_inventory::Owners;
use fathom_inventory::store::{Inventory, Table, VERSION, check_bytes};
use fathom_questions::top::outline::{FileTraits, Outline, OutlineOptions, list, outline};
use fathom_scans::scan::{Scan, scan};
use fathom_walk::Model;

/// Makes a tree with values for every column, and an inventory of it.
fn inventory(top: &Path) -> PathBuf {
    let tree = top.join("tree");
    for number in 0..40 {
        let directory = tree.join(format!("directory-{}/deeper-{number}", number % 3));
        fs::create_dir_all(&directory).unwrap();
        fs::write(
            directory.join(format!("file-{number}.{}", ["rs", "TXT", "tar.gz"][number % 3])),
            vec![7; number],
        )
        .unwrap();
    }
    fs::write(tree.join(OsStr::from_bytes(b"odd\xff\nname")), "x").unwrap();
    fs::create_dir(tree.join(OsStr::from_bytes(b"odd\xfe"))).unwrap();
    fs::hard_link(tree.join("directory-0/deeper-0/file-0.rs"), tree.join("link")).unwrap();
    std::os::unix::fs::symlink("directory-0", tree.join("symlink")).unwrap();
    let root = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let options = Scan {
        checkpoint_entries: u64::MAX,
        roots: vec![root(&tree), root(&top.join("missing"))],
        model: Model::Sync,
        owners: Owners::read(),
        ..Scan::default()
    };
    let directory = top.join("made.inv");
    scan(&options, &directory, &mut ()).unwrap();
    directory
}

/// Returns the files of an inventory: table, path and bytes.
fn files(directory: &Path) -> Vec<(Table, PathBuf, Vec<u8>)> {
    let inventory = Inventory::open(directory).unwrap();
    let files = inventory.manifest().files.iter().map(|file| {
        let table = Table::ALL.into_iter().find(|table| table.name() == file.table).unwrap();
        let path = directory.join(&file.name);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(check_bytes(table, bytes.clone()).unwrap(), file.rows, "{path:?}");
        (table, path, bytes)
    });
    files.collect()
}

/// Returns whether all of the inventory can be read.
fn is_whole(directory: &Path) -> bool {
    Inventory::open(directory).and_then(|inventory| inventory.check()).is_ok()
}

#[test]
fn damage_to_a_file_is_noticed() {
    let top = tempfile::tempdir().unwrap();
    let directory = inventory(top.path());
    assert!(is_whole(&directory));
    for (_, path, bytes) in files(&directory) {
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(20)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            for damaged in [&flipped[..], &bytes[..at]] {
                fs::write(&path, damaged).unwrap();
                assert!(!is_whole(&directory), "{path:?} at {at}");
            }
        }
        fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
        assert!(!is_whole(&directory), "{path:?} with more");
        fs::remove_file(&path).unwrap();
        assert!(!is_whole(&directory), "{path:?} is away");
        fs::write(&path, &bytes).unwrap();
    }
    assert!(is_whole(&directory));
}

#[test]
fn damage_with_a_matching_hash_never_panics() {
    let top = tempfile::tempdir().unwrap();
    for (table, _, bytes) in files(&inventory(top.path())) {
        for end in (0..bytes.len()).step_by(30 / fathom_cases::count(10)) {
            assert!(check_bytes(table, bytes[..end].to_vec()).is_err(), "{table:?} up to {end}");
        }
        // Damage the footer, in a run of all tests every byte of it, and a part of the bytes
        // before it.
        let steps = fathom_cases::count(10);
        let (places, footer) = (bytes.len(), bytes.len().saturating_sub(6000));
        for at in (0..footer).step_by(50 / steps).chain((footer..places).step_by(10 / steps)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= [0x80, 0x01, 0xff][at % 3];
            // Both an error and rows are fine, as long as the call returns.
            let _ = check_bytes(table, flipped);
        }
    }
}

/// Returns the outline of an inventory, and lists its directories.
fn outlined(directory: &Path) -> Option<Outline> {
    let inventory = Inventory::open(directory).ok()?;
    let (cost, kind) =
        (|node: &_| std::mem::size_of_val(node), |file: &FileTraits<'_>| file.extension.is_some().into());
    let options = OutlineOptions { nodes_max: 50, bytes_max: 4000, cost: &cost, kind: &kind, now: 0 };
    for dir_id in [-1, 0, 1, 7, i64::MAX] {
        let _ = list(&inventory, dir_id, None, 10, &options);
    }
    outline(&inventory, &options).ok()
}

#[test]
fn forged_tables_never_panic_an_outline() {
    let top = tempfile::tempdir().unwrap();
    let directory = inventory(top.path());
    let manifest = fs::read_to_string(directory.join("manifest.json")).unwrap();
    assert!(outlined(&directory).is_some_and(|outline| outline.nodes.len() > 10));
    let hash = |bytes: &[u8]| format!("{:016x}", twox_hash::XxHash64::oneshot(0, bytes));
    let mut differing = 0;
    for (_, path, bytes) in files(&directory) {
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(40)) {
            let mut forged = bytes.clone();
            forged[at] ^= [0x80, 0x01, 0xff][at % 3];
            fs::write(&path, &forged).unwrap();
            let sealed = resealed(&manifest.replace(&hash(&bytes), &hash(&forged)));
            fs::write(directory.join("manifest.json"), sealed).unwrap();
            let Some(outline) = outlined(&directory) else { continue };
            differing += 1;
            let has_order = |(at, parent): (usize, Option<usize>)| parent.is_none_or(|parent| parent < at);
            assert!(
                outline.nodes.iter().map(|node| node.parent).enumerate().all(has_order),
                "{path:?} at {at}"
            );
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(differing > 10, "only {differing} of the forged tables can be read");
}

#[test]
fn tables_are_not_taken_for_one_another() {
    let top = tempfile::tempdir().unwrap();
    for (table, _, bytes) in files(&inventory(top.path())) {
        for other in Table::ALL {
            let same = other == table
                || [table, other].iter().all(|table| matches!(table, Table::Users | Table::Groups));
            assert_eq!(check_bytes(other, bytes.clone()).is_ok(), same, "{table:?} as {other:?}");
        }
    }
}

/// Returns a manifest with a correct checksum, whatever the manifest says.
fn resealed(text: &str) -> String {
    let member = ",\n  \"checksum\": \"xxh64:";
    let body = &text[..text.rfind(member).unwrap()];
    let hash = twox_hash::XxHash64::oneshot(0, body.as_bytes());
    format!("{body}{member}{hash:016x}\"\n}}\n")
}

#[test]
fn damage_to_a_manifest_is_noticed() {
    let top = tempfile::tempdir().unwrap();
    let directory = inventory(top.path());
    let path = directory.join("manifest.json");
    let manifest = fs::read(&path).unwrap();
    assert_eq!(resealed(std::str::from_utf8(&manifest).unwrap()).as_bytes(), manifest);
    for at in (0..manifest.len()).step_by(7) {
        let mut flipped = manifest.clone();
        flipped[at] ^= 1;
        for damaged in [&flipped[..], &manifest[..at]] {
            fs::write(&path, damaged).unwrap();
            // Most of these changes can be noticed only by the checksum of the manifest itself.
            assert!(Inventory::open(&directory).is_err(), "at {at}");
        }
    }
}

#[test]
fn a_manifest_cannot_name_files_elsewhere() {
    let top = tempfile::tempdir().unwrap();
    let directory = inventory(top.path());
    let manifest = fs::read_to_string(directory.join("manifest.json")).unwrap();
    let users = files(&directory).into_iter().find(|(table, ..)| *table == Table::Users).unwrap().1;
    let users = users.file_name().unwrap().to_str().unwrap();
    let elsewhere = top.path().join(users);
    fs::copy(directory.join(users), &elsewhere).unwrap();
    std::os::unix::fs::symlink(users, directory.join("symlink.parquet")).unwrap();
    let (above, absolute) = (format!("../{users}"), elsewhere.to_str().unwrap());
    for name in [&above, absolute, "symlink.parquet", "manifest.json", ".."] {
        fs::write(directory.join("manifest.json"), resealed(&manifest.replace(users, name))).unwrap();
        assert!(!is_whole(&directory), "{name}");
    }
    let format = |number: u32| format!("\"format\": {number}");
    let (own, earlier, later) = (format(VERSION), format(VERSION - 1), format(VERSION + 1));
    assert!(manifest.contains(&own));
    for (old, new) in [(&own[..], &earlier[..]), (&own, &later), ("\"users\"", "\"owners\""), ("{", "[")] {
        fs::write(directory.join("manifest.json"), resealed(&manifest.replacen(old, new, 1))).unwrap();
        assert!(!is_whole(&directory), "{new}");
    }
}
