//! Everything a server can be told, as plain values: what a TOML file says, and where the command line and the environment put what
//! they say. Sizes are bytes, times milliseconds unless a name says otherwise.
//!
//! Does not own: what the values come to (`rules`, `tls`, ... compile them), nor which of several sources wins.

pub mod check;
mod file;
mod mount;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;

pub use mount::Mount;

/// The whole server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// `127.0.0.1:8080`, `[::]:80`, `unix:/run/fathom.sock`, `systemd` (the sockets this process was started with).
    pub listen: Vec<String>,
    /// Permission of the files of Unix sockets, in octal; `660` unless given.
    pub socket_mode: Option<String>,
    /// Threads that serve connections; one a CPU unless given.
    pub workers: Option<NonZeroUsize>,
    /// How files are read: `auto`, `sync`, `nowait`, `pool`, `tokio`, `sendfile`, `uring`.
    pub io: Option<String>,
    /// To whom large files go by sendfile(2) with `io = 'auto'`, if that is cheaper: `remote` (clients on other machines, unless given),
    /// `always` or `never`. What is on its way to a client of this machine is the file itself, and changes when that is overwritten.
    pub sendfile: Option<String>,
    /// Threads for what would make a worker wait; if nothing is said of them, whoever starts the server may know better.
    pub pool: Option<Pool>,
    /// Open files and small bodies that are kept.
    pub cache: Cache,
    /// What a client may take.
    pub limits: Limits,
    /// Encryption, on all TCP listeners.
    pub tls: Option<Tls>,
    /// One line a request.
    pub access_log: AccessLog,
    /// Trouble that no response shows.
    pub error_log: ErrorLog,
    /// The neighbours that tell whom they speak for.
    pub proxies: Proxies,
    /// Path that answers 200 while the server is up, and 503 once it is to end (`drain-notice-ms`): no authentication.
    pub health: Option<String>,
    /// Path of the Prometheus metrics; under the default site's authentication.
    pub metrics: Option<String>,
    /// The site of every name that no other site has.
    pub site: Site,
    /// Sites by name.
    pub host: Vec<Site>,
}

/// Threads for what would make a worker wait.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pool {
    /// Most threads; they are started when they are needed.
    pub threads: usize,
    /// Most of them that wait for one device; three quarters unless given.
    pub per_device: Option<usize>,
    /// Most requests that wait for a thread; the next one is answered 503.
    pub queue: usize,
}

impl Pool {
    /// Most threads that wait for one device.
    #[must_use]
    pub fn per_device(&self) -> usize {
        let most = self.threads.max(1);
        self.per_device.unwrap_or(most / 4 * 3 + most % 4 * 3 / 4).clamp(1, most)
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self { threads: 96, per_device: None, queue: 16_384 }
    }
}

/// Open files and small bodies that are kept, in all workers together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cache {
    /// Most files, also those that were not found; 0 turns the cache off.
    pub files: usize,
    /// Most bytes of bodies.
    pub bytes: usize,
    /// A longer body is not kept.
    pub body_bytes: usize,
    /// What is older is looked at again before it is used.
    pub age_ms: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { files: 4096, bytes: 64 << 20, body_bytes: 1 << 20, age_ms: 100 }
    }
}

/// What a client may take.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Connections at once; more wait in the listener's backlog.
    pub connections: usize,
    /// Bytes of a request's line and headers.
    pub header_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's target.
    pub target_bytes: usize,
    /// Bytes of a request's body, which is read and thrown away; a longer one is answered 413.
    pub body_bytes: u64,
    /// Ranges of a request; with more, or when they add up to more than the file, all of it is sent.
    pub ranges: usize,
    /// Requests a second that the clients of one address, or of one /64 of IPv6, may make in the
    /// long run; 0 for any number.
    pub requests_per_s: f64,
    /// Requests that they may make at once after a pause; those of ten seconds unless given.
    pub burst: Option<u32>,
    /// Requests at once on a connection of HTTP/2 or HTTP/3.
    pub streams: u32,
    /// Bytes of memory for listings and archives in all workers together; what is over is answered
    /// 503.
    pub listing_bytes: usize,
    /// Archives of directories that are made at once.
    pub archives: usize,
    /// Bytes of responses in memory that wait for their clients, of all connections together;
    /// beyond it each connection has one piece of 16 KiB at a time, and streams of HTTP/2 wait for
    /// their windows for a second at most.
    pub buffer_bytes: usize,
    /// From the first byte of a request to the end of its headers; also for the TLS handshake.
    pub header_timeout_ms: u64,
    /// From a response to the next request.
    pub idle_timeout_ms: u64,
    /// Without a byte taken by the client; for a stream of HTTP/2 or HTTP/3 without 1 KiB.
    pub write_timeout_ms: u64,
    /// From SIGTERM to the first connection that is not accepted: only the health endpoint is different then, for a load balancer to see.
    pub drain_notice_ms: u64,
    /// From there to the end of the last connection.
    pub drain_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            header_bytes: 16 << 10,
            headers: 100,
            target_bytes: 8 << 10,
            body_bytes: 64 << 10,
            ranges: 16,
            requests_per_s: 0.0,
            burst: None,
            streams: 128,
            listing_bytes: 64 << 20,
            archives: 4,
            buffer_bytes: 256 << 20,
            header_timeout_ms: 10_000,
            idle_timeout_ms: 60_000,
            write_timeout_ms: 30_000,
            drain_notice_ms: 0,
            drain_timeout_ms: 30_000,
        }
    }
}

/// Encryption.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// PEM, the server's first. It is shown to clients that ask for no name, or for one that no
    /// other certificate has.
    pub certificate: Option<PathBuf>,
    /// PEM.
    pub key: Option<PathBuf>,
    /// Certificates that are shown to clients that ask for one of their names.
    pub more: Vec<Pair>,
    /// Whether the server makes a certificate for itself, for development.
    pub self_signed: bool,
    /// PEM: whose certificates clients show.
    pub client_ca: Option<PathBuf>,
    /// `require`, which it is unless given, or `optional`.
    pub client_auth: Option<String>,
    /// Whether HTTP/3 is served, too, on the same addresses over UDP. It takes a program that was
    /// built with it.
    pub http3: bool,
    /// Address whose plain requests are sent to the encrypted ones.
    pub redirect_from: Option<String>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pair {
    /// PEM, the server's first.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// One line a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AccessLog {
    /// `combined`, `json` or `off`, which it is unless given.
    pub format: Option<String>,
    /// Standard output unless given; opened again on SIGHUP and SIGUSR1.
    pub file: Option<PathBuf>,
}

/// The neighbours that tell whom they speak for. Nobody else is believed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Proxies {
    /// `10.0.0.0/8`, `192.0.2.7`, `::1`, or `unix` for those on Unix sockets; none for nobody.
    pub addresses: Vec<String>,
    /// How they tell: `x-forwarded-for`, which it is unless given, `forwarded` or `proxy-protocol`.
    pub source: Option<String>,
}

/// Trouble that no response shows: at most one line a second of each kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ErrorLog {
    /// Standard error unless given; opened again on SIGHUP and SIGUSR1.
    pub file: Option<PathBuf>,
}

/// A directory that is served, and how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Site {
    /// Host names, `*.example.org` for all below one; none for the default site.
    pub names: Vec<String>,
    /// The path that all paths of the site are below, like `/app`; none for `/`.
    pub base: Option<String>,
    /// The directory.
    pub root: PathBuf,
    /// Other directories by path.
    pub mounts: Vec<Mount>,
    /// The mount's path without a slash at its end, where these are the settings of a mount; empty
    /// for a site. Globs and redirects are of paths below the site all the same.
    #[serde(skip)]
    pub at: String,
    /// Files that stand for their directory, the first that exists.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed.
    pub listing: bool,
    /// Formats in which a directory can be had as one file: `tar.zst`, `tar.gz`, `zip`; none turns
    /// it off.
    pub archives: Vec<String>,
    /// Path of the file that answers 200 where there is none, for programs that route in the browser.
    pub fallback: Option<String>,
    /// Paths of files by status (`404`, `5xx`).
    pub error_pages: BTreeMap<String, String>,
    /// Suffixes that are appended, in this order, to a path that has no file (`.html`,
    /// `/index.html`).
    #[serde(rename = "try")]
    pub suffixes: Vec<String>,
    /// `no`; `yes` tries `.html` and the index files; `redirect` also leads other addresses of a
    /// file to its clean one.
    pub clean_urls: Option<String>,
    /// Globs of paths that are as if they were not there, with all that is below them.
    pub hide: Vec<String>,
    /// Globs of paths that are answered 403, with all that is below them.
    pub deny: Vec<String>,
    /// Networks (`192.0.2.0/24`, `::1`, `unix`) whose clients are answered; none for all.
    pub allow_from: Vec<String>,
    /// Networks whose clients are answered 403.
    pub deny_from: Vec<String>,
    /// Whether names that begin with a dot are served; `.well-known` always is.
    pub dotfiles: bool,
    /// `within` (links that stay below the root), `never`, or `follow`.
    pub symlinks: Option<String>,
    /// Whether `NAME.br`, `NAME.zst`, `NAME.gz` stand for NAME.
    pub precompressed: bool,
    /// Compression while serving.
    pub compress: Compress,
    /// The input of entity tags: `mtime` (modification time and size; the default) or `inode` (also
    /// the inode number).
    pub etag: Option<String>,
    /// Of texts; empty for none.
    pub charset: String,
    /// Media types by extension, before the built-in ones.
    pub types: BTreeMap<String, String>,
    /// The preset of security headers.
    pub security_headers: bool,
    /// Headers by path; of several rules with the same header the last one counts.
    pub headers: Vec<HeaderRule>,
    /// `Cache-Control` by path; the last rule that fits counts.
    pub cache_control: Vec<CacheRule>,
    /// Other addresses by path; the first that fits counts.
    pub redirects: Vec<Redirect>,
    /// Other files by path; the first that fits counts.
    pub rewrites: Vec<Rewrite>,
    /// Requests from other origins.
    pub cors: Option<Cors>,
    /// Users.
    pub auth: Option<Auth>,
    /// 503 for everything.
    pub maintenance: Maintenance,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            base: None,
            root: PathBuf::from("."),
            mounts: Vec::new(),
            at: String::new(),
            index: vec!["index.html".to_owned()],
            listing: false,
            archives: Vec::new(),
            fallback: None,
            error_pages: BTreeMap::new(),
            suffixes: Vec::new(),
            clean_urls: None,
            hide: Vec::new(),
            deny: Vec::new(),
            allow_from: Vec::new(),
            deny_from: Vec::new(),
            dotfiles: false,
            symlinks: None,
            precompressed: false,
            compress: Compress::default(),
            etag: None,
            charset: "utf-8".to_owned(),
            types: BTreeMap::new(),
            security_headers: false,
            headers: Vec::new(),
            cache_control: Vec::new(),
            redirects: Vec::new(),
            rewrites: Vec::new(),
            cors: None,
            auth: None,
            maintenance: Maintenance::default(),
        }
    }
}

/// Compression while serving.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Compress {
    /// Of `br`, `zstd`, `gzip`, the best first; none turns it off.
    pub codings: Vec<String>,
    /// A shorter body is sent as it is.
    pub min_bytes: u64,
    /// A longer one, too: it would have to be in memory.
    pub max_bytes: u64,
    /// Media types (`text/*`) besides the built-in ones.
    pub types: Vec<String>,
}

impl Default for Compress {
    fn default() -> Self {
        Self { codings: Vec::new(), min_bytes: 1024, max_bytes: 1 << 20, types: Vec::new() }
    }
}

/// Headers by path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HeaderRule {
    /// Glob of request paths: `/assets/**`, `*.js`.
    pub path: String,
    /// Names and values; an empty value takes the header away.
    pub set: BTreeMap<String, String>,
}

/// `Cache-Control` by path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheRule {
    /// Glob of request paths.
    pub path: String,
    /// The header's value.
    pub value: String,
}

/// Another address.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Redirect {
    /// Glob of request paths.
    pub from: String,
    /// Path or URL; `$1` is what the first wildcard stood for.
    pub to: String,
    /// 301, 302, 303, 307 or 308, which it is unless given.
    pub status: Option<u16>,
}

/// Another file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rewrite {
    /// Glob of request paths.
    pub from: String,
    /// Path; `$1` is what the first wildcard stood for.
    pub to: String,
}

/// Requests from other origins (Fetch, section 3.2).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cors {
    /// `https://a.example`, or `*` for all.
    pub origins: Vec<String>,
    /// Headers a request may have besides those of ranges and conditions, like `Authorization`.
    pub allow_headers: Vec<String>,
    /// Headers a script may read besides those of ranges and validators.
    pub expose_headers: Vec<String>,
    /// Whether cookies and passwords may come with it; not with `*`.
    pub credentials: bool,
    /// How long a preflight's answer holds.
    pub max_age_s: Option<u64>,
}

/// Users (RFC 7617).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auth {
    /// What browsers show.
    pub realm: Option<String>,
    /// Hashes by name: `$argon2id$...` or `$2b$...`.
    pub users: BTreeMap<String, String>,
    /// Lines of `name:hash`, as htpasswd writes them.
    pub file: Option<PathBuf>,
    /// Access by path. The last rule that matches a path applies; a path without a matching rule is
    /// open to all users.
    pub paths: Vec<AuthRule>,
}

/// Users by path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuthRule {
    /// Glob of request paths, and all that is below them.
    pub path: String,
    /// Names of the users who may; `*` for all of them.
    pub users: Vec<String>,
    /// Whether these paths are served without a password.
    pub public: bool,
}

/// 503 for everything but the health check.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Maintenance {
    /// Whether it is on.
    pub enabled: bool,
    /// It is also on while this file exists.
    pub flag_file: Option<PathBuf>,
    /// Path of the file that is shown.
    pub page: Option<String>,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
}
