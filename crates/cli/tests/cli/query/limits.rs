//! Operations that a query must not be able to perform, and that a manifest must not be able to
//! cause.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::query::engine::{engines, inventory_name};
use crate::query::home::ScannedTree;
use crate::support::manifest::with_checksum;

/// Returns each file of a directory with its contents.
fn contents(directory: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name(), fs::read(file.path()).unwrap_or_default())).collect()
}

/// Statements that write, or that read files other than the inventory's. `ENTRIES` is a file that
/// may be read.
const FORBIDDEN: [&str; 24] = [
    "COPY (SELECT 1) TO 'ENTRIES' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1) TO 'ENTRIES'",
    "COPY (SELECT 1) TO 'new.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'ENTRIES' (USE_TMP_FILE false)",
    "EXPORT DATABASE '.'",
    "ATTACH 'ENTRIES' AS a",
    "ATTACH 'new.db' AS a",
    "INSTALL httpfs",
    "LOAD 'ENTRIES'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "SET allowed_directories = ['/']",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW files",
    "SELECT 1; COPY (SELECT 1) TO 'new.csv'",
    "SELECT 1') ; COPY (SELECT 1) TO 'new.csv' --",
    "SELECT 1\n;\n.shell touch new.csv\n",
    "\n.output new.csv\nSELECT 1",
    "FROM read_text('/etc/passwd')",
    "FROM '/etc/passwd'",
    "FROM glob('/etc/*')",
    "FROM read_text('manifest.json')",
    "FROM read_parquet('../other.parquet')",
    "FROM query('COPY (SELECT 1) TO ''new.csv''')",
];

#[test]
fn a_query_writes_nothing_and_reads_nothing_else() {
    let home = ScannedTree::new();
    let inventory = home.at(inventory_name());
    let before = contents(&inventory);
    let entries = before.keys().find(|name| name.as_encoded_bytes().starts_with(b"entries")).unwrap();
    for engine in engines() {
        for sql in FORBIDDEN {
            let sql = sql.replace("ENTRIES", entries.to_str().unwrap());
            let output = engine.ask(home.path(), inventory_name(), &["--format=csv", &sql]);
            assert_eq!(output.status.code(), Some(1), "{engine:?}: {sql}: {output:?}");
            assert!(output.stdout.is_empty(), "{engine:?}: {sql}: {output:?}");
            assert!(contents(&inventory) == before, "{engine:?}: {sql} changed the inventory");
            assert!(!home.at("new.csv").exists() && !home.at("new.db").exists(), "{engine:?}: {sql}");
        }
    }
}

#[test]
fn modules_beside_the_caller_are_not_taken() {
    let home = ScannedTree::new();
    for place in [home.path().to_owned(), home.at(inventory_name())] {
        for module in ["duckdb", "json", "csv"] {
            fs::write(place.join(format!("{module}.py")), "open('taken', 'w')\n").unwrap();
        }
    }
    for engine in engines() {
        let output = engine.ask(home.path(), inventory_name(), &["SELECT 1"]);
        assert!(output.status.success(), "{output:?}");
        assert!(!home.at("taken").exists() && !home.at(inventory_name()).join("taken").exists());
    }
}

#[test]
fn a_manifest_that_names_files_elsewhere_is_refused() {
    let home = ScannedTree::new();
    let manifest = home.at(inventory_name()).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for name in ["../other.parquet", "/etc/passwd", "..", "dirs*.parquet", "x'.parquet"] {
        let changed = text.replacen("dirs-00000.parquet", name, 1);
        assert_ne!(changed, text);
        fs::write(&manifest, with_checksum(&changed)).unwrap();
        for engine in engines() {
            let output = engine.ask(home.path(), inventory_name(), &["FROM dirs"]);
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
            assert!(message.contains("which is not a file of an inventory"), "{name}: {message}");
        }
    }
}

#[test]
fn a_damaged_inventory_answers_nothing() {
    let home = ScannedTree::new();
    let inventory = home.at(inventory_name());
    for (name, sound) in contents(&inventory) {
        let mut flipped = sound.clone();
        flipped[sound.len() / 2] ^= 0x10;
        for damaged in [&flipped[..], &sound[..sound.len() / 2]] {
            fs::write(inventory.join(&name), damaged).unwrap();
            for engine in engines() {
                let output = engine.ask(home.path(), inventory_name(), &["SELECT 1"]);
                let message = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{name:?}: {output:?}");
                assert!(
                    output.stdout.is_empty() && message.starts_with("fathom query: cannot read "),
                    "{message}"
                );
            }
        }
        fs::write(inventory.join(&name), sound).unwrap();
    }
    assert!(engines().iter().all(|engine| engine.value(home.path(), "SELECT 1") == 1));
}

#[test]
fn only_files_that_the_manifest_lists_are_read() {
    let home = ScannedTree::new();
    let inventory = home.at(inventory_name());
    fs::copy(inventory.join("dirs-00000.parquet"), inventory.join("dirs-00009.parquet")).unwrap();
    for engine in engines() {
        let twice = "SELECT count(*) - count(DISTINCT dir_id) AS twice FROM dirs";
        assert_eq!(engine.value(home.path(), twice), 0);
        let output = engine.ask(home.path(), inventory_name(), &["FROM 'dirs-00009.parquet'"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}
