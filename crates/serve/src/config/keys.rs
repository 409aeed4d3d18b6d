//! The table of all keys of the configuration file. The reference, `--help-config` and the messages
//! about wrong keys and values come from it.

/// A key of the configuration file.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// The key below its tables: `site.index`. A `[[host]]` has the keys of `[site]`, and so has a
    /// mount, except for `names`, `base` and `mounts`.
    pub key: &'static str,
    /// The type of the value, as a noun.
    pub value: &'static str,
    /// The default in TOML, or in words.
    pub default: &'static str,
    /// A value in TOML.
    pub example: &'static str,
    /// The long options of the same meaning, without dashes. The first is the closest.
    pub options: &'static [&'static str],
}

impl ConfigKey {
    /// Returns the name of the table, empty for the keys before the first table, and the key in it.
    #[must_use]
    pub fn in_table(&self) -> (&'static str, &'static str) {
        self.key.rsplit_once('.').unwrap_or(("", self.key))
    }

    /// Returns the row of `key`, in which numbers of list elements are ignored, and a host or a
    /// mount counts as a site.
    ///
    /// ```
    /// use fathom_serve::config::keys::ConfigKey;
    ///
    /// let row = ConfigKey::of("host[1].mounts[0].index[2]").expect("a mount has index files");
    /// assert_eq!((row.key, row.options), ("site.index", &["index"][..]));
    /// assert!(ConfigKey::of("site.indx").is_none());
    /// ```
    #[must_use]
    pub fn of(key: &str) -> Option<&'static Self> {
        let names = key.split('.').map(|name| name.split('[').next().unwrap_or_default());
        let mut names: Vec<_> = names.collect();
        if names.first() == Some(&"host") {
            names[0] = "site";
        }
        let row = |names: &[&str]| KEYS.iter().find(|row| row.key.split('.').eq(names.iter().copied()));
        if let Some(found) = row(&names) {
            return Some(found);
        }
        names.retain(|name| *name != "mounts");
        row(&names)
    }
}

/// Returns a row.
const fn key(
    key: &'static str,
    value: &'static str,
    default: &'static str,
    example: &'static str,
    options: &'static [&'static str],
) -> ConfigKey {
    ConfigKey { key, value, default, example, options }
}

const BOOLEAN: &str = "true or false";
const NUMBER: &str = "a whole number";
const POSITIVE: &str = "a whole number of at least 1";
const BYTES: &str = "a number of bytes";
const MILLISECONDS: &str = "a number of milliseconds";
const FILE: &str = "the path of a file";
const URL_PATH: &str = "a path that begins with '/'";
const GLOBS: &str = "a list of globs";
const NETWORKS: &str = "a list of networks";
const GLOB: &str = "a glob";
const REGEX: &str = "a regular expression";

/// All keys, in the order of the reference.
pub const KEYS: &[ConfigKey] = &[
    key(
        "listen",
        "a list of addresses",
        "[\"127.0.0.1:8080\"]",
        "[\"127.0.0.1:8080\", \"[::1]:8080\"]",
        &["listen", "port"],
    ),
    key("socket-mode", "octal permissions as a text", "\"660\"", "\"666\"", &[]),
    key("workers", POSITIVE, "one per CPU", "4", &["workers"]),
    key("io", "the name of an I/O model", "\"auto\"", "\"pool\"", &["io"]),
    key("sendfile", "\"remote\", \"always\" or \"never\"", "\"remote\"", "\"never\"", &["sendfile"]),
    key("health", URL_PATH, "off", "\"/health\"", &["health"]),
    key("metrics", URL_PATH, "off", "\"/metrics\"", &["metrics"]),
    key("pool.threads", POSITIVE, "96", "32", &["pool-threads"]),
    key("pool.per-device", POSITIVE, "three quarters of the threads", "16", &[]),
    key("pool.queue", POSITIVE, "16384", "1024", &[]),
    key("cache.files", NUMBER, "4096", "0", &["cache-files"]),
    key("cache.bytes", BYTES, "67108864", "16777216", &["cache-bytes"]),
    key("cache.body-bytes", BYTES, "1048576", "65536", &[]),
    key("cache.age-ms", MILLISECONDS, "100", "1000", &["cache-age"]),
    key("limits.connections", POSITIVE, "16384", "1000", &["max-connections"]),
    key("limits.connections-per-address", NUMBER, "0 (no limit)", "50", &[]),
    key("limits.header-bytes", BYTES, "16384", "32768", &["max-header-bytes"]),
    key("limits.headers", POSITIVE, "100", "50", &["max-headers"]),
    key("limits.target-bytes", BYTES, "8192", "2048", &["max-target"]),
    key("limits.body-bytes", BYTES, "65536", "0", &["max-body"]),
    key("limits.ranges", NUMBER, "16", "1", &["max-ranges"]),
    key("limits.requests-per-s", "a number of at least 0", "0.0 (no limit)", "20.0", &["max-rate"]),
    key("limits.burst", POSITIVE, "the requests of 10 seconds", "50", &["max-burst"]),
    key("limits.password-checks", POSITIVE, "64", "16", &["max-password-checks"]),
    key("limits.wrong-passwords-per-min", NUMBER, "10", "3", &["max-wrong-passwords"]),
    key("limits.streams", POSITIVE, "128", "32", &["max-streams"]),
    key("limits.listing-bytes", BYTES, "67108864", "16777216", &["max-listing-bytes"]),
    key("limits.archives", NUMBER, "4", "1", &["max-archives"]),
    key("limits.buffer-bytes", BYTES, "268435456", "67108864", &["max-buffers"]),
    key("limits.header-timeout-ms", MILLISECONDS, "10000", "5000", &["header-timeout"]),
    key("limits.idle-timeout-ms", MILLISECONDS, "60000", "15000", &["idle-timeout"]),
    key("limits.write-timeout-ms", MILLISECONDS, "30000", "10000", &["write-timeout"]),
    key("limits.drain-notice-ms", MILLISECONDS, "0", "5000", &["drain-notice"]),
    key("limits.drain-timeout-ms", MILLISECONDS, "30000", "10000", &["drain"]),
    key("tls.certificate", FILE, "none", "\"cert.pem\"", &["tls-cert"]),
    key("tls.key", FILE, "none", "\"key.pem\"", &["tls-key"]),
    key(
        "tls.more",
        "a list of tables with 'certificate' and 'key'",
        "[]",
        "[{ certificate = \"b.pem\", key = \"b-key.pem\" }]",
        &[],
    ),
    key("tls.self-signed", BOOLEAN, "false", "true", &["tls-self-signed"]),
    key("tls.http3", BOOLEAN, "false", "true", &["http3"]),
    key("tls.client-ca", FILE, "none", "\"clients.pem\"", &["tls-client-ca"]),
    key(
        "tls.client-auth",
        "\"require\" or \"optional\"",
        "\"require\"",
        "\"optional\"",
        &["tls-client-auth"],
    ),
    key("tls.redirect-from", "an address", "none", "\"[::]:80\"", &["redirect-http"]),
    key("access-log.format", "\"combined\", \"json\" or \"off\"", "\"off\"", "\"json\"", &["log-format"]),
    key("access-log.file", FILE, "standard output", "\"access.log\"", &["access-log"]),
    key("error-log.file", FILE, "standard error", "\"error.log\"", &["error-log"]),
    key("proxies.addresses", NETWORKS, "[]", "[\"10.0.0.0/8\", \"unix\"]", &["trusted-proxies"]),
    key(
        "proxies.source",
        "\"x-forwarded-for\", \"forwarded\" or \"proxy-protocol\"",
        "\"x-forwarded-for\"",
        "\"forwarded\"",
        &["client-from"],
    ),
    key("site.names", "a list of host names", "all", "[\"a.example\", \"*.b.example\"]", &["names"]),
    key("site.base", URL_PATH, "\"/\"", "\"/app\"", &["base"]),
    key("site.root", "the path of a directory or file", "none", "\"/srv/www\"", &["root"]),
    key("site.mounts.path", URL_PATH, "required", "\"/docs\"", &[]),
    key("site.mounts.root", "the path of a directory or file", "required", "\"/srv/docs\"", &["mount"]),
    key(
        "site.index",
        "a list of file names",
        "[\"index.html\"]",
        "[\"index.html\", \"index.htm\"]",
        &["index"],
    ),
    key("site.listing", BOOLEAN, "false", "true", &["listing"]),
    key("site.explore", BOOLEAN, "false", "true", &["explore"]),
    key("site.archives", "a list of \"tar.zst\", \"tar.gz\" and \"zip\"", "[]", "[\"zip\"]", &["archive"]),
    key("site.fallback", URL_PATH, "none", "\"/index.html\"", &["spa"]),
    key(
        "site.error-pages",
        "a table of statuses and paths",
        "built in",
        "{ 404 = \"/404.html\", 5xx = \"/50x.html\" }",
        &["error-page"],
    ),
    key("site.clean-urls", "\"no\", \"yes\" or \"redirect\"", "\"no\"", "\"redirect\"", &["clean-urls"]),
    key("site.try", "a list of ends of paths", "[]", "[\".html\", \"/index.html\"]", &["try"]),
    key("site.hide", GLOBS, "[]", "[\"*.bak\"]", &["hide"]),
    key("site.deny", GLOBS, "[]", "[\"/private\"]", &["deny"]),
    key("site.dotfiles", BOOLEAN, "false", "true", &["dotfiles"]),
    key("site.symlinks", "\"within\", \"never\" or \"follow\"", "\"within\"", "\"never\"", &["symlinks"]),
    key("site.precompressed", BOOLEAN, "false", "true", &["precompressed"]),
    key(
        "site.compress.codings",
        "a list of \"br\", \"zstd\" and \"gzip\"",
        "[]",
        "[\"br\", \"gzip\"]",
        &["compress"],
    ),
    key("site.compress.min-bytes", BYTES, "1024", "512", &[]),
    key("site.compress.max-bytes", BYTES, "1048576", "4194304", &["compress-max"]),
    key("site.compress.types", "a list of media types", "[]", "[\"application/wasm\"]", &[]),
    key("site.etag", "\"mtime\" or \"inode\"", "\"mtime\"", "\"inode\"", &["etag"]),
    key("site.charset", "a text", "\"utf-8\"", "\"\"", &[]),
    key(
        "site.types",
        "a table of extensions and media types",
        "built in",
        "{ wasm = \"application/wasm\" }",
        &[],
    ),
    key("site.security-headers", BOOLEAN, "false", "true", &["security-headers"]),
    key("site.headers.path", GLOB, "required", "\"/assets/**\"", &["header"]),
    key(
        "site.headers.set",
        "a table of names and values",
        "required",
        "{ X-Robots-Tag = \"noindex\" }",
        &["header"],
    ),
    key("site.headers.always", BOOLEAN, "false", "true", &[]),
    key("site.cache-control.path", GLOB, "required", "\"*.js\"", &["cache-control"]),
    key("site.cache-control.value", "a text", "required", "\"max-age=3600\"", &["cache-control"]),
    key("site.cache-control.always", BOOLEAN, "false", "true", &[]),
    key("site.redirects.from", GLOB, "required, or from-regex", "\"/old/**\"", &[]),
    key("site.redirects.from-regex", REGEX, "none", "\"^/post/([0-9]+)$\"", &[]),
    key("site.redirects.query-regex", REGEX, "none", "\"^id=([0-9]+)$\"", &[]),
    key("site.redirects.to", "a path or URL", "required, but for status 410", "\"/new/$1\"", &[]),
    key("site.redirects.status", "301, 302, 303, 307, 308 or 410", "308", "302", &[]),
    key("site.rewrites.from", GLOB, "required", "\"/v1/**\"", &[]),
    key("site.rewrites.to", URL_PATH, "required", "\"/$1\"", &[]),
    key("site.cors.origins", "a list of origins", "[]", "[\"https://a.example\"]", &["cors"]),
    key("site.cors.allow-headers", "a list of header names", "[]", "[\"Authorization\"]", &["cors-headers"]),
    key("site.cors.expose-headers", "a list of header names", "[]", "[\"X-Version\"]", &[]),
    key("site.cors.credentials", BOOLEAN, "false", "true", &[]),
    key("site.cors.max-age-s", "a number of seconds", "the browser's", "600", &[]),
    key("site.auth.realm", "a text", "\"restricted\"", "\"Staff\"", &[]),
    key(
        "site.auth.users",
        "a table of names and password hashes",
        "{}",
        "{ alice = \"$2b$...\" }",
        &["auth"],
    ),
    key("site.auth.file", FILE, "none", "\"users\"", &["auth-file"]),
    key("site.auth.paths.path", GLOB, "required", "\"/private\"", &["auth-path"]),
    key("site.auth.paths.users", "a list of user names", "[]", "[\"alice\"]", &["auth-path"]),
    key("site.auth.paths.public", BOOLEAN, "false", "true", &["auth-path"]),
    key("site.allow-from", NETWORKS, "all", "[\"192.0.2.0/24\", \"::1\"]", &["allow-from"]),
    key("site.deny-from", NETWORKS, "[]", "[\"198.51.100.7\"]", &["deny-from"]),
    key("site.maintenance.enabled", BOOLEAN, "false", "true", &["maintenance"]),
    key("site.maintenance.flag-file", FILE, "none", "\"maintenance\"", &["maintenance-file"]),
    key("site.maintenance.page", URL_PATH, "built in", "\"/maintenance.html\"", &[]),
    key("site.maintenance.retry-after-s", "a number of seconds", "none", "600", &[]),
];
