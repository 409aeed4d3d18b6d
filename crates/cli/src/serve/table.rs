//! The options of `fathom serve`: names and help texts. `merge.rs` implements them.

use fathom_serve::Model;
use fathom_serve::config::words::{
    AccessLogFormat, AddressSource, CleanUrlMode, ClientAuth, Etag, SendfilePolicy, Symlinks, Word,
};

use crate::models::SERVE_MODELS;
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom serve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServeOption {
    Listen,
    Port,
    Certificate,
    CertificateSecret,
    SelfSigned,
    Http3,
    ClientCa,
    ClientAuth,
    RedirectHttp,
    TrustedProxies,
    ClientFrom,
    Root,
    Base,
    Mount,
    Index,
    Listing,
    Explore,
    Names,
    Archive,
    Spa,
    ErrorPage,
    CleanUrls,
    Try,
    Hide,
    Deny,
    Dotfiles,
    Sendfile,
    Symlinks,
    Precompressed,
    Compress,
    CompressMax,
    Etag,
    CacheControl,
    Header,
    SecurityHeaders,
    Cors,
    CorsHeaders,
    Auth,
    AuthFile,
    AuthPath,
    AllowFrom,
    DenyFrom,
    Maintenance,
    MaintenanceFile,
    Io,
    Workers,
    PoolThreads,
    CacheFiles,
    CacheAge,
    CacheBytes,
    MaxConnections,
    MaxHeaderBytes,
    MaxHeaders,
    MaxTarget,
    MaxBody,
    MaxRanges,
    MaxStreams,
    MaxListingBytes,
    MaxArchives,
    MaxRate,
    MaxBurst,
    MaxPasswordChecks,
    MaxWrongPasswords,
    MaxBuffers,
    HeaderTimeout,
    IdleTimeout,
    WriteTimeout,
    DrainNotice,
    Drain,
    Health,
    Metrics,
    AccessLog,
    LogFormat,
    ErrorLog,
    Config,
    HelpConfig,
    Check,
    IoReport,
    Json,
}

pub(crate) const ADDRESSES: &str = "Addresses and TLS";
pub(crate) const FILES: &str = "Files and paths";
pub(crate) const ANSWERS: &str = "Responses and access";
pub(crate) const ENGINE: &str = "Reading files";
pub(crate) const LIMITS: &str = "Limits";
pub(crate) const WATCH: &str = "Monitoring and logs";
pub(crate) const ABOUT: &str = "Configuration and general";

/// The values of boolean options.
const YES_NO: ValueKind = ValueKind::Words(&["yes", "no"]);

/// All options.
pub(crate) const FLAGS: &[Flag<ServeOption>] = &[
    both(
        ServeOption::Listen,
        b'l',
        "listen",
        ADDRESSES,
        "listen on ADDR; repeatable (default: 127.0.0.1:8080)",
    )
    .required("ADDR", ValueKind::Text)
    .more(
        "ADDR is `8080` for that port of 127.0.0.1, `192.0.2.1:80`, `[::1]:80`, `:80` for all \
             addresses, `localhost`, `unix:/run/fathom.sock`, or `systemd` for the sockets that systemd \
             passes. Several are separated by commas.",
    ),
    both(ServeOption::Port, b'p', "port", ADDRESSES, "set the port of addresses without one (default: 8080)")
        .required("PORT", ValueKind::Text),
    long(
        ServeOption::Certificate,
        "tls-cert",
        ADDRESSES,
        "enable TLS with the certificate chain in the PEM file FILE; repeatable",
    )
    .required("FILE", ValueKind::File)
    .more(
        "Each certificate needs its own `--tls-key`. A client gets the certificate for the name that \
             it requests, or else the first.",
    ),
    long(
        ServeOption::CertificateSecret,
        "tls-key",
        ADDRESSES,
        "read the private key of the certificate from FILE",
    )
    .required("FILE", ValueKind::File),
    long(
        ServeOption::SelfSigned,
        "tls-self-signed",
        ADDRESSES,
        "enable TLS with a new self-signed certificate, for development",
    )
    .optional("YES", YES_NO)
    .more(
        "The certificate is valid for localhost, the name of this machine and its addresses. Its \
             fingerprint is shown.",
    ),
    long(ServeOption::Http3, "http3", ADDRESSES, "serve HTTP/3 too, on the TLS addresses over UDP")
        .optional("YES", YES_NO)
        .more("Requires a program that was built with the feature http3."),
    long(
        ServeOption::ClientCa,
        "tls-client-ca",
        ADDRESSES,
        "require client certificates of the authorities in FILE",
    )
    .required("FILE", ValueKind::File),
    long(
        ServeOption::ClientAuth,
        "tls-client-auth",
        ADDRESSES,
        "make client certificates `require`d (default) or `optional`",
    )
    .required("MODE", ValueKind::Words(ClientAuth::WORDS)),
    long(
        ServeOption::RedirectHttp,
        "redirect-http",
        ADDRESSES,
        "redirect plain HTTP requests on ADDR to HTTPS",
    )
    .required("ADDR", ValueKind::Text),
    long(
        ServeOption::TrustedProxies,
        "trusted-proxies",
        ADDRESSES,
        "accept the client's address from the proxies at ADDRS",
    )
    .required("ADDRS", ValueKind::Text)
    .more(
        "ADDRS are addresses or networks such as `10.0.0.0/8`, with commas, or `unix` for proxies on \
             Unix sockets. The client's address is logged, and used for limits and fair scheduling.",
    ),
    long(
        ServeOption::ClientFrom,
        "client-from",
        ADDRESSES,
        "set which header carries the client's address (default: x-forwarded-for)",
    )
    .required("SOURCE", ValueKind::Words(AddressSource::WORDS)),
    long(ServeOption::Root, "root", FILES, "serve DIR, or one file; same as the operand")
        .required("DIR", ValueKind::File),
    long(
        ServeOption::Base,
        "base",
        FILES,
        "serve everything below the URL path PATH, such as /app, and nothing else",
    )
    .required("PATH", ValueKind::Text),
    long(
        ServeOption::Mount,
        "mount",
        FILES,
        "serve DIR, or one file, below the URL path PATH, such as /docs; repeatable",
    )
    .required("PATH=DIR", ValueKind::Text)
    .more(
        "The longest PATH wins. The other options apply to mounts too, except `--spa` and \
             `--error-page`; the configuration file has settings for each mount.",
    ),
    long(
        ServeOption::Index,
        "index",
        FILES,
        "set the names of index files, with commas (default: index.html)",
    )
    .required("NAMES", ValueKind::Text),
    long(ServeOption::Listing, "listing", FILES, "list directories that have no index file")
        .optional("YES", YES_NO),
    long(
        ServeOption::Explore,
        "explore",
        FILES,
        "show the newest inventory in DIR as a page with a map, and nothing else",
    )
    .optional("YES", YES_NO)
    .more(
        "DIR is an inventory of `fathom scan`, or has inventories whose names end in .inv. The page is \
             that of `fathom report`, and fetches the directories that it omits. Everyone who can read the \
             page sees the names of all files in the inventory: see `--auth`. A page takes 2 MB of \
             `--max-listing-bytes` while it is made.",
    ),
    long(
        ServeOption::Names,
        "names",
        FILES,
        "answer only requests for these host names, such as a.org,*.b.org (default: all; with `--explore` \
         only localhost and addresses)",
    )
    .required("NAMES", ValueKind::Text)
    .more(
        "`*.example.org` is all names below example.org. Requests for other names get 421. This stops \
             pages of other sites that resolve their own name to the address of this server, in order to \
             read its responses (DNS rebinding).",
    ),
    long(
        ServeOption::Archive,
        "archive",
        FILES,
        "send a directory as one file for ?archive=FORMAT: `tar.zst`, `tar.gz` or `zip`",
    )
    .optional("FORMATS", ValueKind::Text)
    .more("Several formats are separated by commas; without FORMATS, all are enabled. Off by default."),
    long(
        ServeOption::Spa,
        "spa",
        FILES,
        "serve a single-page application: answer unknown paths with PATH (default: /index.html)",
    )
    .optional("PATH", ValueKind::Text),
    long(
        ServeOption::ErrorPage,
        "error-page",
        FILES,
        "answer STATUS, such as 404 or 5xx, with the file at PATH; repeatable",
    )
    .required("STATUS=PATH", ValueKind::Text),
    long(ServeOption::CleanUrls, "clean-urls", FILES, "answer /about with about.html or about/index.html")
        .optional("MODE", ValueKind::Words(CleanUrlMode::WORDS))
        .more(
            "`redirect` also redirects /about.html, /about/index.html and similar paths to the one clean \
             path of the file.",
        ),
    long(
        ServeOption::Try,
        "try",
        FILES,
        "try these suffixes in order for paths without a file, such as .html,/index.html",
    )
    .required("SUFFIXES", ValueKind::Text),
    long(
        ServeOption::Hide,
        "hide",
        FILES,
        "answer 404 for paths matching GLOB and all below them, and omit them from listings; repeatable",
    )
    .required("GLOB", ValueKind::Text),
    long(
        ServeOption::Deny,
        "deny",
        FILES,
        "answer 403 for paths matching GLOB and all below them; repeatable",
    )
    .required("GLOB", ValueKind::Text),
    long(
        ServeOption::Dotfiles,
        "dotfiles",
        FILES,
        "serve names that begin with a dot (default: only `.well-known`)",
    )
    .optional("YES", YES_NO),
    long(
        ServeOption::Symlinks,
        "symlinks",
        FILES,
        "follow symbolic links `within` the directory (default), everywhere (`follow`) or `never`",
    )
    .required("POLICY", ValueKind::Words(Symlinks::WORDS)),
    long(
        ServeOption::Precompressed,
        "precompressed",
        FILES,
        "send NAME.br, NAME.zst or NAME.gz for NAME to clients that accept it",
    )
    .optional("YES", YES_NO),
    long(
        ServeOption::Compress,
        "compress",
        FILES,
        "compress texts with `br`, `zstd` or `gzip`, the first that the client accepts",
    )
    .optional("CODINGS", ValueKind::Text)
    .more(
        "Several codings are separated by commas; without CODINGS, all are enabled. Compresses files \
             from 1 KiB up to `--compress-max`.",
    ),
    long(
        ServeOption::CompressMax,
        "compress-max",
        FILES,
        "send files larger than SIZE uncompressed (default: 1M)",
    )
    .required("SIZE", ValueKind::Text)
    .more("A file is in memory while it is compressed, and the result is kept in the cache."),
    long(
        ServeOption::Etag,
        "etag",
        ANSWERS,
        "make ETags from modification time and size (`mtime`; default), or also the `inode`",
    )
    .required("PARTS", ValueKind::Words(Etag::WORDS))
    .more(
        "With `mtime`, copies that preserve times have the same ETag on every server. With `inode`, a \
             file that replaced another of the same size and time has a new ETag, and each copy has its \
             own.",
    ),
    long(
        ServeOption::CacheControl,
        "cache-control",
        ANSWERS,
        "set Cache-Control for paths matching GLOB; repeatable, the last one wins",
    )
    .required("GLOB=VALUE", ValueKind::Text)
    .more("Errors have `no-store` instead, unless a rule of the configuration file says `always = true`."),
    long(
        ServeOption::Header,
        "header",
        ANSWERS,
        "set a header for paths matching GLOB; an empty VALUE removes it",
    )
    .required("GLOB=NAME:VALUE", ValueKind::Text)
    .more("Errors do not have the header, unless a rule of the configuration file says `always = true`."),
    long(ServeOption::SecurityHeaders, "security-headers", ANSWERS, "send headers that restrict browsers")
        .optional("YES", YES_NO)
        .more(
            "They are Content-Security-Policy (no foreign frames, base addresses or plugins), \
             Permissions-Policy, Referrer-Policy, X-Content-Type-Options and X-Frame-Options, and with TLS \
             Strict-Transport-Security. `--header` overrides each of them.",
        ),
    long(ServeOption::Cors, "cors", ANSWERS, "let scripts of ORIGIN read responses (default: all origins)")
        .optional("ORIGIN", ValueKind::Text)
        .more(
            "Several origins are separated by commas. Scripts may send the headers of ranges and \
             conditions (Range, If-Range, If-None-Match and similar), and may read Content-Range, ETag, \
             Accept-Ranges, Content-Length and similar.",
        ),
    long(
        ServeOption::CorsHeaders,
        "cors-headers",
        ANSWERS,
        "let scripts send these headers too, with commas, such as Authorization",
    )
    .required("NAMES", ValueKind::Text),
    long(
        ServeOption::Auth,
        "auth",
        ANSWERS,
        "require a password; HASH is an argon2 or bcrypt hash; repeatable",
    )
    .required("USER:HASH", ValueKind::Text)
    .more("Other users of the machine can see the command line: `--auth-file` hides it from them."),
    long(
        ServeOption::AuthFile,
        "auth-file",
        ANSWERS,
        "read users and hashes from FILE, one per line, as htpasswd(1) writes them",
    )
    .required("FILE", ValueKind::File),
    long(
        ServeOption::AuthPath,
        "auth-path",
        ANSWERS,
        "allow only USERS on paths matching GLOB and all below them; repeatable, the last one wins",
    )
    .required("GLOB=USERS", ValueKind::Text)
    .more(
        "USERS are names, with commas; `*` is all users, and `-` is everybody without a password. \
             Paths that no GLOB matches are open to all users.",
    ),
    long(
        ServeOption::AllowFrom,
        "allow-from",
        ANSWERS,
        "answer only clients of these networks, such as 192.0.2.0/24,::1; repeatable",
    )
    .required("NETWORKS", ValueKind::Text)
    .more(
        "`unix` stands for clients of Unix sockets. Other clients get 403, except at the path of \
             `--health`.",
    ),
    long(ServeOption::DenyFrom, "deny-from", ANSWERS, "answer 403 to clients of these networks; repeatable")
        .required("NETWORKS", ValueKind::Text),
    long(ServeOption::Maintenance, "maintenance", ANSWERS, "answer 503 to all requests")
        .optional("YES", YES_NO),
    long(
        ServeOption::MaintenanceFile,
        "maintenance-file",
        ANSWERS,
        "answer 503 to all requests while FILE exists",
    )
    .required("FILE", ValueKind::File),
    long(ServeOption::Io, "io", ENGINE, "choose the I/O model: {names:serving} (default: auto)")
        .required("MODEL", ValueKind::Words(Model::WORDS)),
    long(ServeOption::Workers, "workers", ENGINE, "use N threads for connections (default: one per CPU)")
        .required("N", ValueKind::Text),
    long(
        ServeOption::Sendfile,
        "sendfile",
        ENGINE,
        "let `auto` send large files with sendfile(2): `remote` (default), `always` or `never`",
    )
    .required("WHEN", ValueKind::Words(SendfilePolicy::WORDS))
    .more(
        "`remote` uses it for clients on other machines, where it is cheaper. While data is on its way \
             to a client on this machine, it is still the page cache of the file, and changes if the file \
             is overwritten.",
    ),
    long(
        ServeOption::PoolThreads,
        "pool-threads",
        ENGINE,
        "use at most N threads for calls that wait for storage (default: 96)",
    )
    .required("N", ValueKind::Text)
    .more(
        "Without this option and the table `pool` of the configuration file, `auto` starts with the \
             number in a saved profile (`fathom bench advise --save`) for the file system of the \
             directory, if there is one. Three quarters of the threads may wait for one device.",
    ),
    long(
        ServeOption::CacheFiles,
        "cache-files",
        ENGINE,
        "keep at most N files open; 0 disables the cache (default: 4096)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::CacheAge,
        "cache-age",
        ENGINE,
        "check an open file for changes after TIME (default: 100ms)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::CacheBytes,
        "cache-bytes",
        ENGINE,
        "use at most SIZE of memory for contents of small files (default: 64M)",
    )
    .required("SIZE", ValueKind::Text),
    long(
        ServeOption::MaxConnections,
        "max-connections",
        LIMITS,
        "accept at most N connections at once (default: 16384)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxHeaderBytes,
        "max-header-bytes",
        LIMITS,
        "limit the line and headers of a request to SIZE (default: 16K)",
    )
    .required("SIZE", ValueKind::Text),
    long(ServeOption::MaxHeaders, "max-headers", LIMITS, "limit a request to N headers (default: 100)")
        .required("N", ValueKind::Text),
    long(
        ServeOption::MaxTarget,
        "max-target",
        LIMITS,
        "limit path and query of a request to SIZE (default: 8K)",
    )
    .required("SIZE", ValueKind::Text),
    long(
        ServeOption::MaxBody,
        "max-body",
        LIMITS,
        "limit the body of a request, which is discarded, to SIZE (default: 64K)",
    )
    .required("SIZE", ValueKind::Text),
    long(
        ServeOption::MaxRanges,
        "max-ranges",
        LIMITS,
        "send the whole file if a request has more than N ranges (default: 16)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxStreams,
        "max-streams",
        LIMITS,
        "allow N requests at once on a connection of HTTP/2 (default: 128)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxListingBytes,
        "max-listing-bytes",
        LIMITS,
        "use at most SIZE of memory for listings and archives; answer 503 beyond (default: 64M)",
    )
    .required("SIZE", ValueKind::Text),
    long(
        ServeOption::MaxArchives,
        "max-archives",
        LIMITS,
        "send at most N archives at once; answer 503 beyond (default: 4)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxRate,
        "max-rate",
        LIMITS,
        "limit an IPv4 address or IPv6 /64 to N requests per second; answer 429 beyond (default: no limit)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxBurst,
        "max-burst",
        LIMITS,
        "allow an address N requests at once (default: 10 seconds of `--max-rate`)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxPasswordChecks,
        "max-password-checks",
        LIMITS,
        "queue at most N password checks; answer 503 beyond, and 429 to an address with an eighth of them \
         (default: 64)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxWrongPasswords,
        "max-wrong-passwords",
        LIMITS,
        "allow an address N wrong passwords per minute, answer 429 beyond; 0 is no limit (default: 10)",
    )
    .required("N", ValueKind::Text),
    long(
        ServeOption::MaxBuffers,
        "max-buffers",
        LIMITS,
        "use at most SIZE of memory for responses to slow clients (default: 256M)",
    )
    .required("SIZE", ValueKind::Text)
    .more(
        "Beyond it, each connection gets 16 KiB at a time, and streams of HTTP/2 that wait for their \
             window are reset after a second.",
    ),
    long(
        ServeOption::HeaderTimeout,
        "header-timeout",
        LIMITS,
        "limit the time for a request's headers, and for the TLS handshake (default: 10s)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::IdleTimeout,
        "idle-timeout",
        LIMITS,
        "close a connection after TIME without a request (default: 60s)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::WriteTimeout,
        "write-timeout",
        LIMITS,
        "close a connection after TIME in which the client accepts nothing (default: 30s)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::DrainNotice,
        "drain-notice",
        LIMITS,
        "serve for TIME after SIGTERM, with the health check at 503 (default: 0s)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::Drain,
        "drain",
        LIMITS,
        "close the remaining connections TIME after SIGTERM and the notice (default: 30s)",
    )
    .required("TIME", ValueKind::Text),
    long(
        ServeOption::Health,
        "health",
        WATCH,
        "answer 200 at PATH (default: /health), 503 while shutting down",
    )
    .optional("PATH", ValueKind::Text),
    long(ServeOption::Metrics, "metrics", WATCH, "serve metrics for Prometheus at PATH (default: /metrics)")
        .optional("PATH", ValueKind::Text),
    long(ServeOption::AccessLog, "access-log", WATCH, "log each request to FILE; `-` is standard output")
        .required("FILE", ValueKind::File),
    long(
        ServeOption::LogFormat,
        "log-format",
        WATCH,
        "write the access log as `combined` (default), `json` or `off`",
    )
    .required("FORMAT", ValueKind::Words(AccessLogFormat::WORDS)),
    long(ServeOption::ErrorLog, "error-log", WATCH, "log errors to FILE (default: standard error)")
        .required("FILE", ValueKind::File)
        .more(
            "At most one line per second of each kind is written, with the number of lines that were left \
             out.",
        ),
    both(ServeOption::Config, b'c', "config", ABOUT, "read the TOML file FILE first")
        .required("FILE", ValueKind::File),
    long(ServeOption::HelpConfig, "help-config", ABOUT, "show all keys of the configuration file and exit"),
    both(ServeOption::Check, b't', "check", ABOUT, "check the configuration and exit").more(
        "Opens everything that a start opens, except addresses, and says whether it would start. A log \
             file that it creates is removed.",
    ),
    long(
        ServeOption::IoReport,
        "io-report",
        ABOUT,
        "show what the file system offers, what each model can do there and what will be used, and exit",
    ),
    long(ServeOption::Json, "json", ABOUT, "print JSON, one object per site; with `--io-report`"),
    flag::help(ABOUT).letter(b'h'),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const SERVE: Command<ServeOption> = Command {
    name: "fathom serve",
    brief: "serve the files of a directory over HTTP",
    usage: &["[OPTION]... [DIR|FILE]"],
    about: &[
        "Serves DIR, or else the current directory, over HTTP/1.1 and HTTP/2 on 127.0.0.1:8080, until \
         SIGTERM or Ctrl-C. Files in memory are sent at once; reading a file from a disk does not delay \
         other requests.",
        "With FILE, serves only that file, at `/NAME`, and redirects `/` there.",
    ],
    sections: &[ADDRESSES, FILES, ANSWERS, ENGINE, LIMITS, WATCH, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[SERVE_MODELS, VALUES, PRECEDENCE, GLOBS, SIGNALS, STATUS],
    examples: &[
        ("fathom serve", "the current directory, on 127.0.0.1:8080"),
        ("fathom serve -l 8000 disk.iso", "one file, at http://127.0.0.1:8000/disk.iso"),
        ("fathom serve -l :80 --precompressed --compress /srv", "a public site"),
        (
            "fathom serve --spa --cache-control '/assets/**=max-age=31536000, immutable' srv",
            "a single-page application",
        ),
        ("fathom serve --base /files --mount /src=src srv", "two directories, at /files/ and at /files/src/"),
        ("fathom serve --listing --check srv", "check these options"),
        ("fathom serve --io-report srv", "what the file system offers, and what will be used"),
    ],
    see_also: &["fathom", "fathom-io", "fathom-bench"],
};

const VALUES: Note = Note {
    title: "Values",
    text: &[
        "A TIME is like `500ms`, `10s`, `1.5h` or `1h30m`; a number without a unit is seconds. A SIZE is a \
         number of bytes, or has a unit, like `64K` and `16M`. fathom(1) lists all units. `=no` turns off \
         an option with an optional value.",
    ],
    man_only: false,
};

const PRECEDENCE: Note = Note {
    title: "Precedence",
    text: &[
        "An option takes precedence over the environment, the environment over the file of `--config`, and \
         the file over the defaults. Each option has a variable in the environment: `--max-body` is \
         FATHOM_SERVE_MAX_BODY. Empty variables are ignored. Put repeated values on separate lines.",
        "Addresses, names of index files, origins and codings replace those of a lower source. Headers, \
         Cache-Control, error pages and users are added to them, and take precedence where both apply. A \
         mount replaces the directory at its path.",
        "The file has keys for all options, and more, such as redirects, rewrites and sites by name. Its \
         paths are relative to the file. Options apply to the default site.",
    ],
    man_only: true,
};

const GLOBS: Note = Note {
    title: "Globs",
    text: &["`*` matches anything within a component of the path, `**` also across components, `?` one \
         character, `[a-z]` one of these characters, and `{a,b}` either word. A GLOB without a slash is \
         matched against the last component, another GLOB against the whole path."],
    man_only: true,
};

const SIGNALS: Note = Note {
    title: "Signals",
    text: &[
        "SIGTERM stops the server when the current requests are answered, or after the time of `--drain`; \
         SIGINT (Ctrl-C) stops it at once. SIGHUP reloads the configuration and the certificates and \
         reopens the logs; SIGUSR1 only reopens the logs.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: stopped by SIGTERM.",
        "1: could not start, the configuration is wrong, or requests were unfinished after the time of \
         `--drain`.",
        "2: the command line is wrong.",
        "130: stopped by SIGINT.",
    ],
    man_only: true,
};
