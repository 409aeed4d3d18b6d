//! The words of errors in a configuration file: what was expected, what was found, and what may be
//! meant.

use std::collections::BTreeSet;

use fathom_text::nearest::nearest;

use super::keys::{ConfigKey, KEYS};

/// Returns the message for the user about an error of the parser. `place` is the key or table in
/// which it is.
pub(super) fn explain(message: &str, place: &str) -> String {
    match message.strip_prefix("unknown field `") {
        Some(expected) => unknown_key(expected, place),
        None => wrong_value(&message.replace('\n', " ").replace('`', "'"), place),
    }
}

/// Returns the message about a value, with an example.
fn wrong_value(message: &str, key: &str) -> String {
    if let Some((word, valid)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        let valid = valid.strip_prefix("one of ").unwrap_or(valid).replace('\'', "").replace(" or ", ", ");
        return format!("{word} is not one of {valid}");
    }
    let value = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
    let Some((value, expected)) = value.and_then(|value| value.split_once(", expected ")) else {
        return message.to_owned();
    };
    let found = found(value);
    match ConfigKey::of(key) {
        Some(row) => {
            let (_, name) = row.in_table();
            format!("expected {}, found {found}; for example: {name} = {}", row.value, row.example)
        }
        None => format!("expected {}, found {found}", in_words(expected)),
    }
}

/// Returns the words for the parser's description of a value.
fn found(value: &str) -> &str {
    match value {
        "map" => "a table",
        "sequence" => "a list",
        value => {
            let kinds = ["string ", "integer ", "boolean ", "floating point "];
            kinds.iter().find_map(|kind| value.strip_prefix(kind)).unwrap_or(value)
        }
    }
}

/// Returns the words for the parser's name of a type.
fn in_words(expected: &str) -> &str {
    match expected {
        "a nonzero usize" | "a nonzero u64" | "a nonzero u32" => "a whole number of at least 1",
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" | "a borrowed string" => "a text",
        other => other,
    }
}

/// Returns the message about a key that `table` does not have: the table that has it, the key that
/// means the same as an option of that name, or the closest known key. `expected` is the parser's
/// message behind "unknown field `".
fn unknown_key(expected: &str, table: &str) -> String {
    let mut names = expected.split('`').step_by(2);
    let unknown = names.next().unwrap_or_default();
    let elsewhere: Vec<_> = places().into_iter().filter(|(other, _)| *other != table).collect();
    let having: Vec<_> =
        elsewhere.iter().filter(|(_, key)| *key == unknown).map(|(table, _)| place_of(table)).collect();
    // Most keys of a mount are keys of a site as well: name the site alone.
    let without_mounts = having.iter().any(|place| *place != MOUNTS_PLACE);
    let having: Vec<_> =
        having.into_iter().filter(|place| !without_mounts || *place != MOUNTS_PLACE).collect();
    if !having.is_empty() {
        return format!("unknown key '{unknown}', which belongs {}", having.join(" or "));
    }
    // `--mount` sets two keys of a table, so the name of the table is nearer.
    let row = KEYS.iter().find(|row| row.options.contains(&unknown) && !row.key.starts_with("site.mounts"));
    if let Some(row) = row {
        let (place, key) = row.in_table();
        let is_here = place == table || (place == "site" && matches!(table, "host" | "site.mounts"));
        let place = if is_here { String::new() } else { format!(" {}", place_of(place)) };
        return format!("unknown key '{unknown}': the key is '{key}'{place}");
    }
    let here = names.map(|known| (known, String::new()));
    let known = here.chain(elsewhere.iter().map(|(place, key)| (*key, format!(" {}", place_of(place)))));
    // The first of several equally near keys is taken, and the keys of this table come first.
    match nearest(unknown, known, |(key, _)| key) {
        Some((known, place)) => format!("unknown key '{unknown}', did you mean '{known}'{place}?"),
        None => format!("unknown key '{unknown}'"),
    }
}

/// The result of [`place_of`] for the table of a mount.
const MOUNTS_PLACE: &str = "in [site.mounts]";

fn place_of(table: &str) -> String {
    if table.is_empty() { "before the first table".to_owned() } else { format!("in [{table}]") }
}

/// Returns each key and each table, with the table that has it.
fn places() -> BTreeSet<(&'static str, &'static str)> {
    let mut all = BTreeSet::new();
    for row in KEYS {
        let mut rest = row.key;
        while let Some((table, key)) = rest.rsplit_once('.') {
            all.insert((table, key));
            rest = table;
        }
        all.insert(("", rest));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::Config;
    use crate::config;

    /// Returns the keys of a table, taken from the message about an unknown key, which lists them.
    fn keys<T: DeserializeOwned>() -> BTreeSet<String> {
        let refusal =
            toml::from_str::<T>("'' = 0").err().map(|error| error.message().to_owned()).unwrap_or_default();
        refusal.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_of_every_table_has_a_row() {
        for (table, parsed) in [
            ("", keys::<Config>()),
            ("site", keys::<config::SiteConfig>()),
            ("limits", keys::<config::Limits>()),
            ("cache", keys::<config::CacheConfig>()),
            ("pool", keys::<config::PoolConfig>()),
            ("tls", keys::<config::TlsConfig>()),
            ("access-log", keys::<config::AccessLogConfig>()),
            ("error-log", keys::<config::ErrorLogConfig>()),
            ("proxies", keys::<config::ProxyConfig>()),
            ("site.auth", keys::<config::AuthConfig>()),
            ("site.auth.paths", keys::<config::AuthRule>()),
            ("site.compress", keys::<config::CompressionConfig>()),
            ("site.cors", keys::<config::CorsConfig>()),
            ("site.maintenance", keys::<config::MaintenanceConfig>()),
            ("site.headers", keys::<config::HeaderRule>()),
            ("site.cache-control", keys::<config::CacheControlRule>()),
            ("site.redirects", keys::<config::RedirectRule>()),
            ("site.rewrites", keys::<config::RewriteRule>()),
        ] {
            let rows =
                places().into_iter().filter(|(place, _)| *place == table).map(|(_, key)| key.to_owned());
            let mut rows: BTreeSet<_> = rows.collect();
            if table.is_empty() {
                rows.insert("host".to_owned());
            }
            assert_eq!(rows, parsed, "{table}");
        }
        let site = keys::<config::SiteConfig>();
        let own = ["path", "root"].map(str::to_owned);
        let mount: BTreeSet<_> = site
            .into_iter()
            .filter(|key| !["names", "base", "mounts", "root"].contains(&key.as_str()))
            .chain(own)
            .collect();
        assert_eq!(mount, keys::<config::MountConfig>());
    }

    #[test]
    fn every_example_parses() {
        for row in KEYS {
            let (table, key) = row.in_table();
            let other = match key {
                "path" if table == "site.mounts" => "root = '.'",
                "path" if table == "site.headers" => "set = {}",
                "path" if table == "site.cache-control" => "value = ''",
                "set" | "value" => "path = '*'",
                "always" if table == "site.headers" => "path = '*'\nset = {}",
                "always" => "path = '*'\nvalue = ''",
                "root" if table == "site.mounts" => "path = '/a'",
                "from" => "to = '/b'",
                "to" => "from = '/a'",
                "status" => "from = '/a'\nto = '/b'",
                _ => "",
            };
            let is_list = ["mounts", "headers", "cache-control", "redirects", "rewrites", "paths"]
                .iter()
                .any(|list| table.ends_with(list));
            let header = match (table.is_empty(), is_list) {
                (true, _) => String::new(),
                (false, true) => format!("[[{table}]]\n"),
                (false, false) => format!("[{table}]\n"),
            };
            let text = format!("{header}{key} = {}\n{other}\n", row.example);
            Config::from_toml(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }
}
