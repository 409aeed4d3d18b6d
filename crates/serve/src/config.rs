//! The configuration of a server as plain values: the contents of a TOML file, or values from the
//! command line and the environment. Sizes are in bytes, times in milliseconds unless a name says
//! otherwise.
//!
//! Does not own: compiling the values (`rules`, `tls`, ...), the precedence of several sources.

pub mod check;
mod document;
mod file;
pub mod keys;
mod message;
mod mount;
pub mod words;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use fathom_files::pool::PoolLimits;
use fathom_io::Model;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::archive::format::ArchiveFormat;
use crate::negotiate::Coding;
use words::{AccessLogFormat, AddressSource, CleanUrlMode, ClientAuth, Etag, SendfilePolicy, Symlinks};

pub use file::{ConfigFile, FileRefusal};
pub use mount::MountConfig;

/// The configuration of a whole server.
///
/// ```
/// use fathom_serve::Config;
///
/// let config = Config::from_toml(r#"
///     listen = ["127.0.0.1:8080"]
///     site = { root = "public" }
///     host = [{ names = ["example.org"], root = "www" }]
/// "#)?;
/// assert_eq!(config.host[0].names, ["example.org"]);
/// config.check()?;
/// let error = Config::from_toml("lisen = []").unwrap_err();
/// assert!(error.to_string().contains("line 1, column 1"));
/// let wrong = Config::from_toml("listen = ['example.org:80']")?;
/// assert_eq!(wrong.check().unwrap_err().thing(), "listen[0]");
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Config {
    /// The addresses to listen on: `127.0.0.1:8080`, `[::]:80`, `unix:/run/fathom.sock`, or
    /// `systemd` for the sockets that the process inherits.
    pub listen: Vec<String>,
    /// The permissions of Unix socket files, in octal; `660` by default.
    pub socket_mode: Option<String>,
    /// The number of worker threads; by default one for each CPU.
    pub workers: Option<NonZeroUsize>,
    /// The file I/O model: `auto`, `sync`, `nowait`, `pool`, `tokio`, `sendfile`, `uring`.
    #[serde(deserialize_with = "words::model")]
    pub io: Option<Model>,
    /// The clients to which large files go by sendfile(2) with `io = 'auto'`, where that is
    /// cheaper: `remote` (clients on other machines; the default), `always` or `never`. Bytes on
    /// their way to a client on this machine are pages of the file, and change when the file is
    /// overwritten.
    pub sendfile: Option<SendfilePolicy>,
    /// The thread pool for calls that would block a worker. `None` lets the program choose.
    pub pool: Option<PoolConfig>,
    /// The cache of open files and small bodies.
    pub cache: CacheConfig,
    /// The limits on clients.
    pub limits: Limits,
    /// TLS on all TCP listeners.
    pub tls: Option<TlsConfig>,
    /// The access log.
    pub access_log: AccessLogConfig,
    /// The error log.
    pub error_log: ErrorLogConfig,
    /// The trusted proxies.
    pub proxies: ProxyConfig,
    /// The path of the health check: 200 while the server runs, 503 once it is about to end
    /// (`drain-notice-ms`). It needs no authentication.
    pub health: Option<String>,
    /// The path of the Prometheus metrics, which the default site's users guard.
    pub metrics: Option<String>,
    /// The default site: the site of every host name that no other site has.
    pub site: SiteConfig,
    /// The sites by host name.
    pub host: Vec<SiteConfig>,
}

/// The thread pool for calls that would block a worker.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct PoolConfig {
    /// The most threads. They are started on demand.
    pub threads: usize,
    /// The most threads that wait for one device; three quarters of all by default.
    pub per_device: Option<usize>,
    /// The most requests that wait for a thread. A further request is answered 503.
    pub queue: usize,
}

impl PoolConfig {
    /// Returns the most threads that wait for one device.
    #[must_use]
    pub fn per_device(&self) -> usize {
        let most = self.threads.max(1);
        self.per_device.unwrap_or(most / 4 * 3 + most % 4 * 3 / 4).clamp(1, most)
    }

    /// Returns the limits of the pool.
    pub(crate) fn limits(&self) -> PoolLimits {
        PoolLimits { threads: self.threads, per_device: self.per_device(), queue: self.queue }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { threads: 96, per_device: None, queue: 16_384 }
    }
}

/// The limits of the cache, for all workers together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct CacheConfig {
    /// The most files, including files that were not found; 0 turns the cache off.
    pub files: usize,
    /// The most bytes of bodies.
    pub bytes: usize,
    /// The longest body that is cached, in bytes.
    pub body_bytes: usize,
    /// The age at which an entry is checked before it is used.
    pub age_ms: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { files: 4096, bytes: 64 << 20, body_bytes: 1 << 20, age_ms: 100 }
    }
}

/// The limits on clients.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Limits {
    /// The most open connections. Further connections wait in the listener's backlog.
    pub connections: usize,
    /// The most open connections from one address, or from one IPv6 /64, beyond which further ones
    /// are closed; 0 for no limit. Connections of trusted proxies that name clients in headers do
    /// not count.
    pub connections_per_address: usize,
    /// The most bytes of a request's line and headers.
    pub header_bytes: usize,
    /// The most headers of a request.
    pub headers: usize,
    /// The most bytes of a request's target.
    pub target_bytes: usize,
    /// The most bytes of a request's body, which is read and discarded. A longer body is answered
    /// 413.
    pub body_bytes: u64,
    /// The most ranges of a request. A request with more, or with ranges that add up to more than
    /// the file, gets the whole file.
    pub ranges: usize,
    /// The sustained rate of requests a second from one address, or from one IPv6 /64; 0 for no
    /// limit.
    pub requests_per_s: f64,
    /// The most requests from one address at once after a pause; by default the requests of ten
    /// seconds.
    pub burst: Option<u32>,
    /// The most password checks that wait or run, beyond which a request is answered 503. An
    /// address may have an eighth of them, beyond which it is answered 429.
    pub password_checks: usize,
    /// The most wrong passwords from one address, or from one IPv6 /64, at once and in a minute; 0
    /// for no limit. Beyond it, requests with a password are answered 429 without a check.
    pub wrong_passwords_per_min: u32,
    /// The most concurrent requests on a connection of HTTP/2 or HTTP/3.
    pub streams: u32,
    /// The most memory of listings and archives in all workers, in bytes. A request beyond it is
    /// answered 503.
    pub listing_bytes: usize,
    /// The most archives that are generated at once.
    pub archives: usize,
    /// The most unsent response bytes in memory, of all connections. Beyond it each connection has
    /// one piece of 16 KiB at a time, and a stream of HTTP/2 or HTTP/3 may wait for flow control
    /// for a second.
    pub buffer_bytes: usize,
    /// The longest time from the first byte of a request to the end of its headers, and for the TLS
    /// handshake.
    pub header_timeout_ms: u64,
    /// The longest time from a response to the next request.
    pub idle_timeout_ms: u64,
    /// The longest time in which the client takes no byte; for a stream of HTTP/2 or HTTP/3, less
    /// than 1 KiB.
    pub write_timeout_ms: u64,
    /// The time from SIGTERM to the end of accepting. Only the health check differs in that time,
    /// for a load balancer to see.
    pub drain_notice_ms: u64,
    /// The longest time from the end of accepting to the end of the last connection.
    pub drain_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            connections_per_address: 0,
            header_bytes: 16 << 10,
            headers: 100,
            target_bytes: 8 << 10,
            body_bytes: 64 << 10,
            ranges: 16,
            requests_per_s: 0.0,
            burst: None,
            password_checks: 64,
            wrong_passwords_per_min: 10,
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

/// TLS.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct TlsConfig {
    /// The PEM file of the certificate chain, the server's certificate first. It is presented to
    /// clients that name no host, or a host that no other certificate covers.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the key.
    pub key: Option<PathBuf>,
    /// Further certificates, presented to clients that name a host they cover.
    pub more: Vec<CertificateFiles>,
    /// Whether the server generates a self-signed certificate, for development.
    pub self_signed: bool,
    /// The PEM file of the authorities whose client certificates are accepted.
    pub client_ca: Option<PathBuf>,
    /// Whether clients must present a certificate: `require` (the default) or `optional`.
    pub client_auth: Option<ClientAuth>,
    /// Whether HTTP/3 is served on the same addresses over UDP. The program has to be built with
    /// it.
    pub http3: bool,
    /// An address whose unencrypted requests are redirected to the encrypted site.
    pub redirect_from: Option<String>,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct CertificateFiles {
    /// The PEM file of the certificate chain, the server's certificate first.
    pub certificate: PathBuf,
    /// The PEM file of the key.
    pub key: PathBuf,
}

/// The access log: one line for each request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct AccessLogConfig {
    /// The format: `combined`, `json` or `off` (the default).
    pub format: Option<AccessLogFormat>,
    /// The file; standard output by default. It is opened again on SIGHUP and SIGUSR1.
    pub file: Option<PathBuf>,
}

/// The trusted proxies, which name the client they forward for. Such headers of any other peer are
/// ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct ProxyConfig {
    /// The addresses of the proxies: `10.0.0.0/8`, `192.0.2.7`, `::1`, or `unix` for peers on Unix
    /// sockets; empty for no proxy.
    pub addresses: Vec<String>,
    /// The source of the client's address: `x-forwarded-for` (the default), `forwarded` or
    /// `proxy-protocol`.
    pub source: Option<AddressSource>,
}

/// The error log: failures that no response shows, at most one line a second of each kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct ErrorLogConfig {
    /// The file; standard error by default. It is opened again on SIGHUP and SIGUSR1.
    pub file: Option<PathBuf>,
}

/// A site: a directory with the rules for serving it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct SiteConfig {
    /// The host names, `*.example.org` for all names below one. The default site, if it has any,
    /// answers these alone, besides addresses and `localhost`; without any it answers all names,
    /// but none if it is explored.
    pub names: Vec<String>,
    /// The path that all paths of the site are below, like `/app`; `/` by default.
    pub base: Option<String>,
    /// The root directory, or one file. Empty for none, which only the default site may have,
    /// beside others: it refuses all requests (421).
    pub root: PathBuf,
    /// Other directories, mounted below a path.
    pub mounts: Vec<MountConfig>,
    /// The mount's path without a slash at its end, if these are the settings of a mount; empty for
    /// a site. Globs and redirects match paths below the site either way.
    #[serde(skip)]
    pub at: String,
    /// The names of index files. The first that exists is served for its directory.
    pub index: Vec<String>,
    /// Whether a directory without an index file is listed.
    pub listing: bool,
    /// Whether the program generates the answers in place of the files of the root directory: see
    /// [`crate::generator`]. Without a generator, there are none.
    pub explore: bool,
    /// The archive formats in which a directory can be downloaded: `tar.zst`, `tar.gz`, `zip`;
    /// empty for none.
    pub archives: Vec<ArchiveFormat>,
    /// The path of the file that is served with 200 in place of a missing file, for single-page
    /// applications.
    pub fallback: Option<String>,
    /// The paths of error pages by status (`404`, `5xx`).
    pub error_pages: BTreeMap<String, String>,
    /// Suffixes that are appended, in this order, to a path that names no file (`.html`,
    /// `/index.html`).
    #[serde(rename = "try")]
    pub suffixes: Vec<String>,
    /// `no`; `yes` tries `.html` and the index files; `redirect` also redirects other addresses of
    /// a file to its clean one.
    pub clean_urls: Option<CleanUrlMode>,
    /// Globs of paths that are treated as missing, with everything below them.
    pub hide: Vec<String>,
    /// Globs of paths that are answered 403, with everything below them.
    pub deny: Vec<String>,
    /// Networks (`192.0.2.0/24`, `::1`, `unix`) whose clients are admitted; empty for all.
    pub allow_from: Vec<String>,
    /// Networks whose clients are answered 403.
    pub deny_from: Vec<String>,
    /// Whether names that begin with a dot are served. `.well-known` always is.
    pub dotfiles: bool,
    /// `within` (links that stay below the root; the default), `never`, or `follow`.
    pub symlinks: Option<Symlinks>,
    /// Whether `NAME.br`, `NAME.zst` and `NAME.gz` are served as codings of `NAME`.
    pub precompressed: bool,
    /// Compression while serving.
    pub compress: CompressionConfig,
    /// The input of entity tags: `mtime` (modification time and size; the default) or `inode` (the
    /// inode number as well).
    pub etag: Option<Etag>,
    /// The charset of text types; empty for none.
    pub charset: String,
    /// Media types by extension, which take precedence over the built-in ones.
    pub types: BTreeMap<String, String>,
    /// Whether the preset of security headers is sent.
    pub security_headers: bool,
    /// Headers by path. Of several rules that match, the last one that names a header applies.
    pub headers: Vec<HeaderRule>,
    /// `Cache-Control` by path. The last rule that matches applies.
    pub cache_control: Vec<CacheControlRule>,
    /// Redirects by path. The first rule that matches applies.
    pub redirects: Vec<RedirectRule>,
    /// Rewrites by path. The first rule that matches applies.
    pub rewrites: Vec<RewriteRule>,
    /// Cross-origin requests.
    pub cors: Option<CorsConfig>,
    /// Basic authentication.
    pub auth: Option<AuthConfig>,
    /// Maintenance mode.
    pub maintenance: MaintenanceConfig,
}

impl SiteConfig {
    /// Returns whether the site has a root directory.
    #[must_use]
    pub fn has_root(&self) -> bool {
        !self.root.as_os_str().is_empty()
    }
}

impl Default for SiteConfig {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            base: None,
            root: PathBuf::new(),
            mounts: Vec::new(),
            at: String::new(),
            index: vec!["index.html".to_owned()],
            listing: false,
            explore: false,
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
            compress: CompressionConfig::default(),
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
            maintenance: MaintenanceConfig::default(),
        }
    }
}

/// Compression while serving: a table, or the list of its codings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct CompressionConfig {
    /// The codings among `br`, `zstd`, `gzip`, the best first; empty turns compression off.
    pub codings: Vec<Coding>,
    /// The shortest body that is compressed, in bytes.
    pub min_bytes: u64,
    /// The longest body that is compressed, in bytes: it has to be in memory.
    pub max_bytes: u64,
    /// Compressible media types (`text/*`) besides the built-in ones.
    pub types: Vec<String>,
}

impl Default for CompressionConfig {
    fn default() -> Self {
        Self { codings: Vec::new(), min_bytes: 1024, max_bytes: 1 << 20, types: Vec::new() }
    }
}

impl<'de> Deserialize<'de> for CompressionConfig {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(CompressionVisitor)
    }
}

struct CompressionVisitor;

impl<'de> Visitor<'de> for CompressionVisitor {
    type Value = CompressionConfig;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table, or a list of codings")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
        CompressionConfig::deserialize(MapAccessDeserializer::new(table))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let codings = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(CompressionConfig { codings, ..CompressionConfig::default() })
    }
}

/// A rule that sets headers by path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct HeaderRule {
    /// The glob of request paths: `/assets/**`, `*.js`.
    pub path: String,
    /// Names and values; an empty value removes the header.
    pub set: BTreeMap<String, String>,
    /// Whether errors (4xx, 5xx) have the headers, too.
    #[serde(default)]
    pub always: bool,
}

/// A rule that sets `Cache-Control` by path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct CacheControlRule {
    /// The glob of request paths.
    pub path: String,
    /// The value of the header.
    pub value: String,
    /// Whether errors (4xx, 5xx) have it, too; otherwise theirs is `no-store`.
    #[serde(default)]
    pub always: bool,
}

/// A redirect to another address, or the answer that there is nothing any more. A rule has a glob
/// or a regular expression for the path.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct RedirectRule {
    /// The glob of request paths.
    pub from: Option<String>,
    /// The regular expression that is found in request paths, `^` and `$` being their ends.
    pub from_regex: Option<String>,
    /// The regular expression that is found in the query of the request, decoded. The query is then
    /// not passed on.
    pub query_regex: Option<String>,
    /// The target: a path or URL, none for 410. `$1` stands for the match of the first wildcard or
    /// group.
    pub to: Option<String>,
    /// The status: 301, 302, 303, 307, 308 (the default) or 410.
    pub status: Option<u16>,
    /// The path of the mount whose rule this is, below which the regular expression is looked for.
    #[serde(skip)]
    pub below: String,
}

/// A rewrite to another file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct RewriteRule {
    /// The glob of request paths.
    pub from: String,
    /// The target path. `$1` stands for the match of the first wildcard.
    pub to: String,
}

/// Cross-origin requests (Fetch, section 3.2).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct CorsConfig {
    /// The allowed origins: `https://a.example`, or `*` for all.
    pub origins: Vec<String>,
    /// Headers that a request may have besides ranges and preconditions, like `Authorization`.
    pub allow_headers: Vec<String>,
    /// Headers that a script may read besides ranges and validators.
    pub expose_headers: Vec<String>,
    /// Whether requests may carry cookies and passwords; not with `*`.
    pub credentials: bool,
    /// How long a browser may cache the response to a preflight.
    pub max_age_s: Option<u64>,
}

/// Basic authentication (RFC 7617).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct AuthConfig {
    /// The realm that browsers show.
    pub realm: Option<String>,
    /// Password hashes by user name: `$argon2id$...` or `$2b$...`.
    pub users: BTreeMap<String, String>,
    /// A file of lines `name:hash`, as htpasswd writes it.
    pub file: Option<PathBuf>,
    /// Access by path. The last rule that matches a path applies; a path without a matching rule is
    /// open to all users.
    pub paths: Vec<AuthRule>,
}

/// A rule that restricts a path to users.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct AuthRule {
    /// The glob of request paths. It covers everything below them as well.
    pub path: String,
    /// The names of the users with access; `*` for all users.
    pub users: Vec<String>,
    /// Whether the paths are served without a password.
    pub public: bool,
}

/// Maintenance mode: 503 for everything but the health check.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct MaintenanceConfig {
    /// Whether maintenance mode is on.
    pub enabled: bool,
    /// A file that turns maintenance mode on while it exists.
    pub flag_file: Option<PathBuf>,
    /// The path of the page that is shown.
    pub page: Option<String>,
    /// The value of `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
}
