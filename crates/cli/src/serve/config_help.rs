//! The table of the keys of the configuration file: as text for `--help-config`, and as Markdown
//! for the reference.

use fathom_serve::config::keys::{ConfigKey, KEYS};

/// The line before the table.
const HEAD: &str = "\
Keys of the configuration file (TOML), with their types, defaults and options.
A [[host]] has the keys of [site], and so has a [[site.mounts]], except for
names, base and mounts. Relative paths are relative to the file.
";

/// Returns the table as text, with an entry of three lines for each key.
pub(super) fn table() -> String {
    let mut text = HEAD.to_owned();
    let mut last = None;
    for row in KEYS {
        let (table, key) = row.in_table();
        if last != Some(table) {
            text += &format!("\n{}\n", header(table));
            last = Some(table);
        }
        text += &format!("  {key} = {}\n      {} (default: {})", row.example, row.value, row.default);
        text += &options(row).map_or_else(|| "\n".to_owned(), |options| format!("; {options}\n"));
    }
    text
}

/// Returns the header of a table in a file.
fn header(table: &str) -> String {
    let lists = ["mounts", "headers", "cache-control", "redirects", "rewrites", "paths"];
    match table.rsplit('.').next() {
        Some("") => "before the first table".to_owned(),
        Some(name) if lists.contains(&name) => format!("[[{table}]]"),
        _ => format!("[{table}]"),
    }
}

/// Returns the options of the same meaning.
fn options(row: &ConfigKey) -> Option<String> {
    let names: Vec<_> = row.options.iter().map(|name| format!("--{name}")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::table::FLAGS;
    use super::*;

    /// The table of the reference, which `FATHOM_PRINT=1` prints in order to be pasted.
    fn markdown() -> String {
        let row = |row: &ConfigKey| {
            let options = row.options.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(", ");
            let is_toml = row.default.starts_with(['"', '[', '{'])
                || row.default.parse::<f64>().is_ok()
                || ["true", "false"].contains(&row.default);
            let default = if is_toml { format!("`{}`", row.default) } else { row.default.to_owned() };
            format!(
                "| `{}` | {} | {default} | `{}` | {options} |\n",
                row.key,
                row.value.replace('"', "`"),
                row.example
            )
        };
        let head = "| key | value | default | example | option |\n| --- | --- | --- | --- | --- |\n";
        head.to_owned() + &KEYS.iter().map(row).collect::<String>()
    }

    #[test]
    fn the_reference_has_the_table_of_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve-reference.md");
        let reference = std::fs::read_to_string(path).unwrap();
        if std::env::var_os("FATHOM_PRINT").is_some() {
            println!("{}", markdown());
        }
        assert!(
            reference.contains(&markdown()),
            "docs/serve-reference.md: run this test with FATHOM_PRINT=1 and paste"
        );
    }

    #[test]
    fn options_and_keys_know_each_other() {
        let known: Vec<_> = FLAGS.iter().filter_map(|flag| flag.long).collect();
        let named: Vec<_> = KEYS.iter().flat_map(|row| row.options).copied().collect();
        assert!(named.iter().all(|name| known.contains(name)), "{named:?}");
        let without = ["config", "help-config", "check", "io-report", "json", "help", "version"];
        let missing: Vec<_> =
            known.iter().filter(|name| !named.contains(name) && !without.contains(name)).collect();
        assert!(missing.is_empty(), "options without a key: {missing:?}");
    }

    #[test]
    fn lines_fit_a_terminal() {
        let text = table();
        assert!(text.starts_with("Keys of the configuration file"));
        assert!(
            text.contains("\nbefore the first table\n  listen = ") && text.contains("\n[[site.mounts]]\n")
        );
        let long: Vec<_> = text.lines().filter(|line| line.chars().count() > 110).collect();
        assert!(long.is_empty(), "{long:?}");
    }
}
