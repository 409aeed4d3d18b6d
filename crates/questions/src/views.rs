//! The SQL statements that define views of an inventory, and then deny DuckDB access to everything
//! else. Owns the views; docs/inventory.md describes the underlying tables. Does not own DuckDB:
//! the command `query` and the Python package run the statements.

use fathom_inventory::store::{Error, Inventory, Manifest};

/// Views that show a table unchanged.
const PLAIN_VIEWS: [&str; 5] = ["dirs", "errors", "links", "users", "groups"];

/// All entries but directories. A path with a component that is not UTF-8 is escaped as a whole,
/// with doubled backslashes. The join keeps the ranges of `dir_id` on both sides, so that a query
/// for a subtree reads only that subtree.
const FILES: &str = r"
CREATE VIEW files AS SELECT
    e.dir_id,
    CASE
        WHEN e.dir_id = 0 THEN e.name
        WHEN d.path IS NULL THEN NULL
        WHEN d.path_raw IS NULL AND e.name_raw IS NULL THEN d.path || CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END || e.name
        ELSE CASE WHEN d.path_raw IS NULL THEN replace(d.path, '\', '\\') ELSE d.path END
            || CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END
            || CASE WHEN e.name_raw IS NULL THEN replace(e.name, '\', '\\') ELSE e.name END
    END AS path,
    CASE
        WHEN e.dir_id = 0 THEN e.name_raw
        WHEN d.path IS NULL OR d.path_raw IS NULL AND e.name_raw IS NULL THEN NULL
        ELSE coalesce(d.path_raw, encode(d.path)) || encode(CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END)
            || coalesce(e.name_raw, encode(e.name))
    END AS path_raw,
    e.* EXCLUDE (dir_id)
FROM read_parquet({entries}, hive_partitioning = false) e LEFT JOIN read_parquet({dirs}, hive_partitioning = false) d USING (dir_id)";

/// All entries, including directories. A directory has its parent's `dir_id`, and an `errno` only
/// in the sense that it has for other entries. Optional columns may be missing: the pattern selects
/// the existing ones.
const ENTRIES: &str = "
CREATE VIEW entries AS FROM files UNION ALL BY NAME SELECT
    coalesce(parent_id, 0) AS dir_id, path, path_raw, name, name_raw, 'd' AS type,
    COLUMNS('^(dev|ino|mode|uid|gid|nlink|size|blocks|[amc]time(_ns)?|btime|attributes|project|xattrs|acl|ignored)$'),
    CASE WHEN mode IS NULL THEN errno END AS errno
FROM dirs";

/// Returns the statements to run before a query. `directory` precedes the names of files: it is
/// empty, or a path that ends with a slash and has no character of DuckDB's patterns. Results that
/// do not fit into memory go to the directory `spill`; without one, such a query fails.
///
/// # Errors
/// If no scan can have written the manifest.
///
/// ```
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::views::setup;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let statements = setup(&Inventory::open(&out)?, "", None)?;
/// assert!(statements.iter().any(|statement| statement.starts_with("CREATE VIEW entries AS ")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn setup(inventory: &Inventory, directory: &str, spill: Option<&str>) -> Result<Vec<String>, Error> {
    statements(inventory.manifest(), directory, spill).map_err(|why| inventory.refused(&why))
}

fn statements(manifest: &Manifest, directory: &str, spill: Option<&str>) -> Result<Vec<String>, String> {
    if let Some(file) = manifest.files.iter().find(|file| !is_table_file(&file.name)) {
        return Err(format!(
            "its manifest lists {:?}, which is not the name of a file of an inventory",
            file.name
        ));
    }
    let mut statements = Vec::new();
    for table in PLAIN_VIEWS {
        let files = files(manifest, directory, table)?;
        statements
            .push(format!("CREATE VIEW {table} AS FROM read_parquet({files}, hive_partitioning = false)"));
    }
    let (entries, dirs) = (files(manifest, directory, "entries")?, files(manifest, directory, "dirs")?);
    statements.push(FILES.trim_start().replace("{entries}", &entries).replace("{dirs}", &dirs));
    statements.push(ENTRIES.trim_start().to_owned());
    statements.extend(access_limits(manifest, directory, spill));
    Ok(statements)
}

/// Restricts DuckDB to the listed files, irrevocably. The spill directory is always set, because
/// DuckDB's default is the current directory, which may be the inventory.
fn access_limits(manifest: &Manifest, directory: &str, spill: Option<&str>) -> [String; 4] {
    let all = list(directory, manifest.files.iter().map(|file| &file.name[..]));
    [
        format!("SET temp_directory = {}", literal(spill.unwrap_or_default())),
        format!("SET allowed_paths = {all}"),
        "SET enable_external_access = false".to_owned(),
        "SET lock_configuration = true".to_owned(),
    ]
}

/// Returns the files of a table as a list in SQL.
fn files(manifest: &Manifest, directory: &str, table: &str) -> Result<String, String> {
    let mut names =
        manifest.files.iter().filter(|file| file.table == table).map(|file| &file.name[..]).peekable();
    if names.peek().is_none() {
        return Err(format!("its manifest lists no file of the table {table:?}"));
    }
    Ok(list(directory, names))
}

fn list<'a>(directory: &str, names: impl Iterator<Item = &'a str>) -> String {
    let literals: Vec<String> = names.map(|name| literal(&format!("{directory}{name}"))).collect();
    format!("[{}]", literals.join(", "))
}

/// Returns whether `name` is a Parquet file directly in the inventory's directory, and is not a
/// glob pattern for DuckDB. The manifest is untrusted.
fn is_table_file(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.ends_with(".parquet")
        && name.bytes().all(allowed)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Returns `text` as a literal in SQL, on one line.
///
/// ```
/// assert_eq!(fathom_questions::views::literal("it's"), "E'it''s'");
/// ```
#[must_use]
pub fn literal(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('\'', "''").replace('\n', r"\n").replace('\r', r"\r");
    format!("E'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(names: &[(&str, &str)]) -> Manifest {
        let file = |(table, name): &(&str, &str)| serde_json::json!({"name": name, "table": table, "rows": 1, "bytes": 1, "xxh64": "0"});
        let files: Vec<_> = names.iter().map(file).collect();
        let completeness = serde_json::json!({
            "complete": 1, "partial": 0, "failed": 0, "skipped": 0, "unknown_entries": 0, "missing_roots": 0,
            "stopped": null
        });
        serde_json::from_value(serde_json::json!({
            "format": 3, "tool": "", "host": "", "roots": [], "options": {}, "start": 0, "end": 0, "entries": 0,
            "completeness": completeness, "files": files
        }))
        .expect("it is a manifest")
    }

    const TABLES: [(&str, &str); 6] = [
        ("dirs", "dirs-00000.parquet"),
        ("entries", "entries-00000.parquet"),
        ("errors", "errors-00000.parquet"),
        ("links", "links-00000.parquet"),
        ("users", "users-00000.parquet"),
        ("groups", "groups-00000.parquet"),
    ];

    #[test]
    fn views_are_of_the_files_listed_and_nothing_else_can_be_opened() {
        let more = [&TABLES[..], &[("dirs", "dirs-00001.parquet")]].concat();
        let statements = statements(&manifest(&more), "", Some("/tmp/it's")).expect("all tables are there");
        let both = "[E'dirs-00000.parquet', E'dirs-00001.parquet']";
        assert_eq!(
            statements[0],
            format!("CREATE VIEW dirs AS FROM read_parquet({both}, hive_partitioning = false)")
        );
        assert!(
            statements[5].contains(&format!("LEFT JOIN read_parquet({both}, hive_partitioning = false)")),
            "{}",
            statements[5]
        );
        assert_eq!(statements[7], "SET temp_directory = E'/tmp/it''s'");
        assert_eq!(statements[8].matches(".parquet").count(), 7);
        assert_eq!(statements[10], "SET lock_configuration = true");
        let elsewhere = super::statements(&manifest(&TABLES), "/a'b/", None).expect("all tables are there");
        assert_eq!(
            elsewhere[0],
            "CREATE VIEW dirs AS FROM read_parquet([E'/a''b/dirs-00000.parquet'], hive_partitioning = false)"
        );
        assert_eq!(elsewhere[8].matches("E'/a''b/").count(), 6);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "../x.parquet",
            "/x.parquet",
            "a/x.parquet",
            "..",
            ".x.parquet",
            "x.csv",
            "",
            "x*.parquet",
            "x'.parquet",
            "[x].parquet",
            "s3:.parquet",
        ] {
            let files = [&TABLES[..], &[("dirs", name)]].concat();
            let refused = statements(&manifest(&files), "", None).expect_err(name);
            assert!(refused.contains("not the name of a file"), "{refused}");
        }
    }

    #[test]
    fn each_table_has_to_have_a_file() {
        let refused = statements(&manifest(&TABLES[..5]), "", None).expect_err("groups are missing");
        assert_eq!(refused, "its manifest lists no file of the table \"groups\"");
    }

    #[test]
    fn a_literal_is_one_line() {
        assert_eq!(literal("a'b\\c\r\n.shell"), r"E'a''b\\c\r\n.shell'");
    }
}
