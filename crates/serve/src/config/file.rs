//! Parsing of a TOML file into a [`Config`], with the position of an error.
//!
//! Does not own: whether the values are valid, which is checked when they are compiled.

use std::path::Path;

use fathom_text::nearest::nearest;
use serde::de::DeserializeOwned;

use super::Config;
use crate::config;
use crate::error::{Error, Op};

impl Config {
    /// Parses `text`. Missing keys have their default values.
    ///
    /// # Errors
    /// If the text is no TOML, has an unknown key, or a value of another type. The cause begins
    /// with line and column, from 1.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|cause| Error::new(Op::ReadConfig, "configuration", cause))
    }

    /// Reads and parses the file at `path`. Relative paths in the file are relative to the current
    /// directory.
    ///
    /// # Errors
    /// If the file cannot be read, and the errors of [`Config::from_toml`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let named = || path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::new(Op::ReadConfig, named(), error))?;
        parse(&text).map_err(|cause| Error::new(Op::ReadConfig, named(), cause))
    }
}

fn parse(text: &str) -> Result<Config, String> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
        let key = key(&error);
        let message = explain(error.message(), key.as_deref().unwrap_or_default());
        match key {
            Some(key) => format!("line {line}, column {column}: in {key}: {message}"),
            None => format!("line {line}, column {column}: {message}"),
        }
    })
}

/// Returns the line and the column of the byte at `offset`, both from 1; columns count characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

/// Returns the table or key in which the error is. Only the `Display` text of an error without its
/// input names it.
fn key(error: &toml::de::Error) -> Option<String> {
    let mut error = error.clone();
    error.set_input(None);
    let text = error.to_string();
    let key = text.lines().last()?.strip_prefix("in `")?.strip_suffix('`')?;
    Some(key.to_owned())
}

/// Returns a message about a value, with words for the types of the language.
fn in_words(message: &str) -> String {
    let message = message.replace('\n', " ").replace('`', "'");
    if let Some((word, valid)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        let valid = valid.strip_prefix("one of ").unwrap_or(valid).replace('\'', "").replace(" or ", ", ");
        return format!("{word} is none of {valid}");
    }
    let value = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
    let Some((value, expected)) = value.and_then(|value| value.split_once(", expected ")) else {
        return message;
    };
    let expected = match expected {
        "a nonzero usize" | "a nonzero u64" | "a nonzero u32" => "a whole number, at least 1",
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" | "a borrowed string" => "a text",
        other => other,
    };
    let value = match value {
        "map" => "a table",
        "sequence" => "a list",
        value => {
            let kinds = ["string ", "integer ", "boolean ", "floating point "];
            kinds.iter().find_map(|kind| value.strip_prefix(kind)).unwrap_or(value)
        }
    };
    format!("{value} is not {expected}")
}

/// Returns the message for the user. For a key unknown in `table`, it adds the table that has the
/// key, or the closest known key.
fn explain(message: &str, table: &str) -> String {
    let Some(expected) = message.strip_prefix("unknown field `") else { return in_words(message) };
    let mut names = expected.split('`').step_by(2);
    let unknown = names.next().unwrap_or_default();
    let tables = tables();
    let others = tables.iter().filter(|(name, _)| *name != table);
    let elsewhere: Vec<_> =
        others.flat_map(|(name, keys)| keys.iter().map(move |key| (key.as_str(), place_of(name)))).collect();
    let having: Vec<_> =
        elsewhere.iter().filter(|(key, _)| *key == unknown).map(|(_, place)| place.as_str()).collect();
    // Most keys of a mount are keys of a site as well: name the site alone.
    let without_mounts = having.iter().any(|place| *place != MOUNTS_PLACE);
    let having: Vec<_> =
        having.into_iter().filter(|place| !without_mounts || *place != MOUNTS_PLACE).collect();
    if !having.is_empty() {
        return format!("unknown key '{unknown}', which belongs {}", having.join(" or "));
    }
    let here = names.map(|known| (known, String::new()));
    let known = here.chain(elsewhere.iter().map(|(key, place)| (*key, format!(" {place}"))));
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

/// Returns all tables with their keys. The empty name stands for the keys before the first table.
fn tables() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("", keys::<config::Config>()),
        ("site", keys::<config::SiteConfig>()),
        ("limits", keys::<config::Limits>()),
        ("cache", keys::<config::CacheConfig>()),
        ("pool", keys::<config::PoolConfig>()),
        ("tls", keys::<config::TlsConfig>()),
        ("tls.more", keys::<config::CertificateFiles>()),
        ("access-log", keys::<config::AccessLogConfig>()),
        ("site.auth", keys::<config::AuthConfig>()),
        ("site.auth.paths", keys::<config::AuthRule>()),
        ("site.compress", keys::<config::CompressionConfig>()),
        ("site.cors", keys::<config::CorsConfig>()),
        ("site.maintenance", keys::<config::MaintenanceConfig>()),
        ("site.headers", keys::<config::HeaderRule>()),
        ("site.cache-control", keys::<config::CacheControlRule>()),
        ("site.redirects", keys::<config::RedirectRule>()),
        ("site.rewrites", keys::<config::RewriteRule>()),
        ("site.mounts", keys::<config::MountConfig>()),
    ]
}

/// Returns the keys of a table, taken from the error message of an unknown key, which lists them.
fn keys<T: DeserializeOwned>() -> Vec<String> {
    let refusal =
        toml::from_str::<T>("'' = 0").err().map(|error| error.message().to_owned()).unwrap_or_default();
    refusal.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Config::from_toml(text).unwrap_err().cause()
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::from_toml("").unwrap(), Config::default());
        let error = Config::from_toml("x").unwrap_err();
        assert_eq!((error.op(), error.thing()), (Op::ReadConfig, "configuration"));
    }

    #[test]
    fn every_table_parses() {
        let config = Config::from_toml(
            "listen = ['127.0.0.1:80']\nworkers = 2\n[pool]\nthreads = 8\n[limits]\nheader-timeout-ms = 5\n\
             [tls]\ncertificate = 'c'\nkey = 'k'\n[access-log]\nformat = 'json'\n\
             [site]\nroot = '/srv'\nerror-pages = { 404 = '/no.html' }\n\
             [[site.headers]]\npath = '/a/**'\nset = { X-A = 'b' }\n[[site.redirects]]\nfrom = '/a'\nto = '/b'\nstatus = 301\n\
             [site.cors]\norigins = ['*']\n[site.auth]\nusers = { a = '$2b$...' }\n[site.maintenance]\nretry-after-s = 5\n\
             [[host]]\nnames = ['*.example.org']\n[[host.cache-control]]\npath = '*'\nvalue = 'no-store'\n",
        )
        .unwrap();
        assert_eq!(config.site.error_pages.get("404").map(String::as_str), Some("/no.html"));
        assert_eq!(config.limits.header_timeout_ms, 5);
        assert_eq!(config.host[0].cache_control[0].value, "no-store");
        assert_eq!(config.host[0].index, ["index.html"]);
    }

    #[test]
    fn a_refusal_says_where_and_what() {
        for (text, expected) in [
            (
                "[site]\nindx = ['a']\n",
                "line 2, column 1: in site: unknown key 'indx', did you mean 'index'?",
            ),
            ("\n zzzzz = 1\n", "line 2, column 2: unknown key 'zzzzz'"),
            ("[limits]\nranges = 'a'\n", "line 2, column 10: in limits.ranges: \"a\" is not a whole number"),
            ("tls = 'x'\n", "line 1, column 7: in tls: \"x\" is not a table"),
            ("site = 'x'\n", "line 1, column 8: in site: \"x\" is not a table"),
            ("[site]\nlisting = 1\n", "line 2, column 11: in site.listing: '1' is not true or false"),
            ("[site]\nindex = true\n", "line 2, column 9: in site.index: 'true' is not a list"),
            ("[[site.redirects]]\nfrom = '/a'\n", "line 1, column 1: in site.redirects: missing field 'to'"),
            ("workers = 0\n", "line 1, column 11: in workers: '0' is not a whole number, at least 1"),
        ] {
            assert_eq!(refusal(text), expected);
        }
        assert!(refusal("a = \n").starts_with("line 1, column 5: "), "{}", refusal("a = \n"));
        assert!(refusal("listen = []\nlisten = []\n").contains("duplicate key"));
    }

    #[test]
    fn a_misplaced_key_is_told_its_table() {
        for (text, expected) in [
            ("root = '/srv'\n", "line 1, column 1: unknown key 'root', which belongs in [site]"),
            (
                "listings = true\n",
                "line 1, column 1: unknown key 'listings', did you mean 'listing' in [site]?",
            ),
            (
                "[site]\nlisten = []\n",
                "line 2, column 1: in site: unknown key 'listen', which belongs before the first table",
            ),
            (
                "[site]\nrealm = ''\n",
                "line 2, column 1: in site: unknown key 'realm', which belongs in [site.auth]",
            ),
            (
                "[[site.mounts]]\npath = '/a'\nroot = '.'\nlistng = true\n",
                "line 4, column 1: in site.mounts: unknown key 'listng', did you mean 'listing'?",
            ),
            (
                "[[site.mounts]]\npath = '/a'\nroot = '.'\nnames = ['a']\n",
                "line 4, column 1: in site.mounts: unknown key 'names', which belongs in [site]",
            ),
            ("[[site.mounts]]\npath = '/a'\n", "line 1, column 1: in site.mounts: missing field 'root'"),
            ("mount = []\n", "line 1, column 1: unknown key 'mount', did you mean 'mounts' in [site]?"),
            ("[cors]\norigins = []\n", "line 1, column 2: unknown key 'cors', which belongs in [site]"),
            (
                "[[host]]\nstreams = 1\n",
                "line 2, column 1: in host: unknown key 'streams', which belongs in [limits]",
            ),
            (
                "file = ''\n",
                "line 1, column 1: unknown key 'file', which belongs in [access-log] or in [site.auth]",
            ),
            (
                "[site.auth]\nrealms = ''\n",
                "line 2, column 1: in site.auth: unknown key 'realms', did you mean 'realm'?",
            ),
        ] {
            assert_eq!(refusal(text), expected);
        }
    }

    /// Each table is known under its name in the file, with all of its keys.
    #[test]
    fn all_tables_are_known() {
        for (name, keys) in tables() {
            let header = if name.is_empty() { String::new() } else { format!("[{name}]\n") };
            let array = format!("[{header}").replace("]\n", "]]\n");
            let refused = [header, array].map(|header| refusal(&format!("{header}qqqqqqqqqqqqqqqqq = 0\n")));
            let place = if name.is_empty() { String::new() } else { format!("in {name}: ") };
            let expected = format!("{place}unknown key 'qqqqqqqqqqqqqqqqq'");
            assert!(refused.iter().any(|text| text.contains(&expected)), "{name}: {refused:?}");
            assert!(keys.len() > 1, "{name}: {keys:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Config::read(Path::new("/nonexistent/a.toml")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read '/nonexistent/a.toml': No such file or directory");
    }
}
