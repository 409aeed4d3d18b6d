//! Other readers of the inventory's files: Polars and pyarrow find the same rows, types and sums.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::query::engine::{inventory_name, python_bin};
use crate::query::home::ScannedTree;
use crate::query::truth::ExpectedEntries;

/// The name of a column, and its types in pyarrow and in Polars.
type ColumnTypes = (&'static str, &'static str, &'static str);

const INT64: (&str, &str) = ("int64", "Int64");
const TIME: (&str, &str) = ("timestamp[us, tz=UTC]", "Datetime(time_unit='us', time_zone='UTC')");

/// The columns of `entries`, in order.
const ENTRIES: [ColumnTypes; 24] = [
    ("dir_id", INT64.0, INT64.1),
    ("name", "string", "String"),
    ("name_raw", "binary", "Binary"),
    ("ext", "string", "String"),
    ("type", "string", "String"),
    ("dev", INT64.0, INT64.1),
    ("ino", INT64.0, INT64.1),
    ("mode", "uint32", "UInt32"),
    ("uid", "uint32", "UInt32"),
    ("gid", "uint32", "UInt32"),
    ("nlink", "uint32", "UInt32"),
    ("size", INT64.0, INT64.1),
    ("blocks", INT64.0, INT64.1),
    ("atime", TIME.0, TIME.1),
    ("mtime", TIME.0, TIME.1),
    ("ctime", TIME.0, TIME.1),
    ("atime_ns", "int32", "Int32"),
    ("mtime_ns", "int32", "Int32"),
    ("ctime_ns", "int32", "Int32"),
    ("btime", TIME.0, TIME.1),
    ("attributes", "string", "String"),
    ("link_target", "string", "String"),
    ("link_raw", "binary", "Binary"),
    ("errno", "int32", "Int32"),
];

#[test]
fn polars_and_pyarrow_read_every_row() {
    let Some(bin) = python_bin() else { return };
    let home = ScannedTree::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/query/readers.py");
    let mut command = Command::new(bin.join("python3"));
    command.arg("-B").arg(script).arg(home.at(inventory_name()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compare(&serde_json::from_slice(&output.stdout).unwrap(), &ExpectedEntries::of(home.path()));
}

fn compare(report: &Value, truth: &ExpectedEntries) {
    let types = |which: fn(&ColumnTypes) -> &'static str| -> Map<String, Value> {
        ENTRIES.iter().map(|column| (column.0.to_owned(), json!(which(column)))).collect()
    };
    assert_eq!(report["entries"]["arrow"], Value::Object(types(|column| column.1)));
    assert_eq!(report["entries"]["polars"], Value::Object(types(|column| column.2)));
    for (table, rows) in
        [("entries", truth.files().count()), ("dirs", truth.dirs().count()), ("links", 5), ("errors", 1)]
    {
        assert_eq!(report[table]["rows"], json!([rows, rows, rows]), "{table}");
    }
    let size: u64 = truth.files().map(|entry| entry.meta.size()).sum();
    assert_eq!(report["size"], json!([size, size]));
    let is_raw = |name: &&Vec<u8>| std::str::from_utf8(name).is_err();
    let raw = truth.files().map(|entry| &entry.name).filter(is_raw);
    let hex = raw.map(|name| name.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let mut names: Vec<String> = hex.collect();
    names.sort();
    assert_eq!(report["names"], json!(names));
}
