//! CSV as Python's csv module reads it, and tables of SQLite.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::export::{scanned, truth, varied};
use crate::support::commands::stdout_of;
use crate::support::{Tree, needs_tool};

/// Runs a Python program with `input` on its standard input. Returns its standard output.
#[track_caller]
fn python(tree: &Tree, program: &str, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("python3");
    command.args(["-c", program]).current_dir(tree.path());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn columns_are_the_members_of_the_objects() {
    if !needs_tool("python3") {
        return;
    }
    let tree = scanned(varied());
    let read = "import csv, io, json, sys\n\
        text = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8', newline='')\n\
        for row in csv.DictReader(text, strict=True): print(json.dumps(row))";
    let csv = stdout_of(&tree, &["export", "--to", "csv", "i"]);
    let rows = python(&tree, read, &csv);
    let rows: Vec<Value> = rows
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let objects = stdout_of(&tree, &["export", "--to", "jsonl", "i"]);
    let objects: Vec<Value> = objects
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        for (column, cell) in row.as_object().unwrap() {
            let expected = match &object[column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(cell, &json!(expected), "{column} of {object}");
        }
        let columns = row.as_object().unwrap();
        assert!(object.as_object().unwrap().keys().all(|member| columns.contains_key(member)));
    }
    assert!(csv.ends_with(b"\r\n") && csv.starts_with(b"path,path_bytes,type,size,"));
}

#[test]
fn sqlite_reads_the_tables() {
    if !needs_tool("python3") {
        return;
    }
    if !Command::new("python3").args(["-c", "import sqlite3"]).output().unwrap().status.success() {
        crate::support::skip("needs Python's sqlite3");
        return;
    }
    let tree = scanned(varied());
    let sql = stdout_of(&tree, &["export", "--to", "sql", "i"]);
    let read = r#"
import sqlite3, sys, json
db = sqlite3.connect(":memory:")
db.executescript(sys.stdin.read())
raw = lambda text, raw: raw if raw is not None else text.encode()
out = []
for path, path_raw, *rest in db.execute("SELECT path, path_raw, size, blocks, mode, mtime, mtime_ns FROM dirs"):
    out.append([raw(path, path_raw).hex(), *rest])
for path, path_raw, name, name_raw, *rest in db.execute(
    "SELECT path, path_raw, e.name, e.name_raw, e.size, e.blocks, e.mode, e.mtime, e.mtime_ns FROM entries e JOIN dirs USING (dir_id)"):
    out.append([(raw(path, path_raw) + b"/" + raw(name, name_raw)).hex(), *rest])
tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
owners = [db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in ("users", "groups", "links", "errors")]
targets = db.execute("SELECT DISTINCT link_target FROM entries WHERE type = 'l'").fetchall()
print(json.dumps([out, tables, owners, targets]))
"#;
    let found: Value = serde_json::from_slice(&python(&tree, read, &sql)).unwrap();
    let hex = |path: &[u8]| path.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let row = |(path, meta): (&Vec<u8>, &Metadata)| {
        let micros = meta.mtime() * 1_000_000 + meta.mtime_nsec() / 1000;
        json!([hex(path), meta.len(), meta.blocks(), meta.mode(), micros, meta.mtime_nsec() % 1000])
            .to_string()
    };
    let expected: BTreeSet<String> = truth(&tree, "s").iter().map(row).collect();
    let rows = found[0].as_array().unwrap();
    assert_eq!(rows.len(), expected.len());
    assert_eq!(rows.iter().map(Value::to_string).collect::<BTreeSet<_>>(), expected);
    assert_eq!(found[1], json!(["dirs", "entries", "errors", "groups", "links", "users"]));
    assert_eq!(found[2], json!([1, 1, 5, 0]));
    assert_eq!(found[3], json!([["../nowhere"]]));
    if needs_tool("sqlite3") {
        let count = |input: &[u8], query: &str| {
            let mut command = Command::new("sqlite3");
            command.args(["-bail", "new.db"]).current_dir(tree.path()).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input).unwrap();
            child.wait().unwrap();
            Command::new("sqlite3").args(["new.db", query]).current_dir(tree.path()).output().unwrap()
        };
        // A truncated file must not import as a smaller database.
        let half = count(&sql[..sql.len() / 2], "SELECT count(*) FROM entries");
        assert!(!half.status.success(), "{half:?}");
        let all = count(&sql, "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM dirs)");
        assert_eq!(String::from_utf8(all.stdout).unwrap().trim(), expected.len().to_string());
    }
}
