//! Reads the tables of an inventory with the parquet crate.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use serde_json::Value;

pub(crate) fn manifest(inventory: &Path) -> Value {
    serde_json::from_slice(&fs::read(inventory.join("manifest.json")).unwrap()).unwrap()
}

pub(crate) type RowValues = BTreeMap<String, Field>;

/// Returns all rows of a table, in the order of its files.
pub(crate) fn rows(inventory: &Path, table: &str) -> Vec<RowValues> {
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
        reader.into_iter().map(|row| cells(row.unwrap())).collect::<Vec<RowValues>>()
    };
    names.iter().flat_map(read).collect()
}

pub(crate) fn number(cells: &RowValues, column: &str) -> i64 {
    match &cells[column] {
        Field::Int(number) => i64::from(*number),
        Field::UInt(number) => i64::from(*number),
        Field::Long(number) | Field::TimestampMicros(number) => *number,
        other => panic!("{column}: {other:?}"),
    }
}

/// Returns the bytes of a name or path.
pub(crate) fn bytes(cells: &RowValues, column: &str) -> Vec<u8> {
    match (&cells[column], &cells[&format!("{column}_raw")]) {
        (_, Field::Bytes(raw)) => raw.data().to_vec(),
        (Field::Str(text), Field::Null) => text.as_bytes().to_vec(),
        other => panic!("{column}: {other:?}"),
    }
}

/// Returns the paths of directories by `dir_id`. A path that is not stored is the parent's path and
/// the name.
fn paths(dirs: &[RowValues]) -> BTreeMap<i64, Vec<u8>> {
    let mut dirs: Vec<_> = dirs.iter().collect();
    dirs.sort_by_key(|dir| number(dir, "dir_id"));
    let mut paths: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for dir in dirs {
        let path = match dir["path"] {
            Field::Null => [&paths[&number(dir, "parent_id")][..], b"/", &bytes(dir, "name")].concat(),
            _ => bytes(dir, "path"),
        };
        paths.insert(number(dir, "dir_id"), path);
    }
    paths
}

/// Returns every entry with its columns, by path.
pub(crate) fn entries(inventory: &Path) -> BTreeMap<Vec<u8>, RowValues> {
    let dirs = rows(inventory, "dirs");
    let paths = paths(&dirs);
    assert_eq!(paths.len(), dirs.len(), "each directory has a number of its own");
    let mut found: BTreeMap<_, _> =
        dirs.into_iter().map(|dir| (paths[&number(&dir, "dir_id")].clone(), dir)).collect();
    for entry in rows(inventory, "entries") {
        let name = bytes(&entry, "name");
        let path = paths.get(&number(&entry, "dir_id")).map(|dir| [&dir[..], b"/", &name].concat());
        assert!(found.insert(path.unwrap_or(name), entry).is_none(), "each entry has one row");
    }
    found
}

/// Returns the rows of all tables as text, without atimes and the time of the scan.
pub(crate) fn comparable_rows(inventory: &Path) -> Vec<String> {
    let of = |table: &str| {
        let mut rows = rows(inventory, table);
        for row in &mut rows {
            ["scanned", "atime", "atime_ns"].iter().for_each(|column| drop(row.remove(*column)));
        }
        rows.into_iter().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    ["dirs", "entries", "errors", "links", "users", "groups"].iter().flat_map(|table| of(table)).collect()
}
