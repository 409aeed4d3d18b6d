//! The options of `fathom serve`. Only names and texts; what they do is `merge.rs`'s.

use fathom_serve::config::check::{CLEAN_URLS, CLIENT_AUTH, ETAGS, LOG_FORMATS, MODELS, SENDFILE, SYMLINKS};
use fathom_serve::proxies::SOURCES;

use crate::command::{Command, Note};
use crate::flag::{Flag, Kind, both, long};

/// What an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
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
    Check,
    IoReport,
    Json,
    Help,
    Version,
}

pub(crate) const ADDRESSES: &str = "Where it listens";
pub(crate) const FILES: &str = "What is served";
pub(crate) const ANSWERS: &str = "How it is answered";
pub(crate) const ENGINE: &str = "How files are read";
pub(crate) const LIMITS: &str = "What a client may take";
pub(crate) const WATCH: &str = "Watching it";
pub(crate) const ABOUT: &str = "Configuration and program";

/// Values of options that are on or off.
const YES_NO: Kind = Kind::Words(&["yes", "no"]);

/// Every option.
pub(crate) const FLAGS: &[Flag<Key>] = &[
    both(Key::Listen, b'l', "listen", ADDRESSES, "listen on ADDR; repeatable; otherwise on 127.0.0.1:8080")
        .required("ADDR", Kind::Text)
        .more(
            "`8080` for that port of 127.0.0.1, `192.0.2.1:80`, `[::1]:80`, `:80` for all addresses, `localhost`, `unix:/run/fathom.sock`, or `systemd` for the sockets \
             that the program was started with. Several may stand in one ADDR, separated by commas.",
        ),
    both(Key::Port, b'p', "port", ADDRESSES, "the port where ADDR has none; otherwise 8080").required("PORT", Kind::Text),
    long(Key::Certificate, "tls-cert", ADDRESSES, "encrypt, with the certificates in the PEM file FILE; repeatable")
        .required("FILE", Kind::File)
        .more("Of several, each with its `--tls-key`, a client gets the one for the name that it asks for, or else the first."),
    long(Key::CertificateSecret, "tls-key", ADDRESSES, "and the private key in FILE").required("FILE", Kind::File),
    long(Key::SelfSigned, "tls-self-signed", ADDRESSES, "encrypt with a certificate made for this run, for development")
        .optional("YES", YES_NO)
        .more("It is for localhost, the name of this machine and its addresses. Its fingerprint is shown."),
    long(Key::Http3, "http3", ADDRESSES, "serve HTTP/3, too, on the encrypted addresses over UDP")
        .optional("YES", YES_NO)
        .more("Only a program that was built with the feature http3 has it."),
    long(Key::ClientCa, "tls-client-ca", ADDRESSES, "answer only clients with a certificate of the authorities in FILE").required("FILE", Kind::File),
    long(Key::ClientAuth, "tls-client-auth", ADDRESSES, "such a certificate is `require`d, or `optional`")
        .required("MODE", Kind::Words(CLIENT_AUTH)),
    long(Key::RedirectHttp, "redirect-http", ADDRESSES, "send plain requests on ADDR to the encrypted address").required("ADDR", Kind::Text),
    long(Key::TrustedProxies, "trusted-proxies", ADDRESSES, "take the client's address from the proxies at ADDRS")
        .required("ADDRS", Kind::Text)
        .more("Addresses or networks like `10.0.0.0/8`, separated by commas, or `unix` for those on Unix sockets. That address is logged, and limits and turns go by it."),
    long(Key::ClientFrom, "client-from", ADDRESSES, "where proxies tell the address; otherwise x-forwarded-for").required("SOURCE", Kind::Words(SOURCES)),
    long(Key::Root, "root", FILES, "serve DIR, or one file; the same as the operand").required("DIR", Kind::File),
    long(Key::Base, "base", FILES, "serve everything below PATH, like /app, and nothing else").required("PATH", Kind::Text),
    long(Key::Mount, "mount", FILES, "serve DIR, or one file, below PATH, like /docs; repeatable")
        .required("PATH=DIR", Kind::Text)
        .more(
            "The longest PATH counts. The other options are about mounts, too, except for `--spa` and `--error-page`; the file of `--config` has \
             settings of their own for them.",
        ),
    long(Key::Index, "index", FILES, "names of files that stand for their directory, separated by commas; otherwise index.html")
        .required("NAMES", Kind::Text),
    long(Key::Listing, "listing", FILES, "list directories that have no index").optional("YES", YES_NO),
    long(Key::Archive, "archive", FILES, "send a directory as one file for ?archive=FORMAT: `tar.zst`, `tar.gz` or `zip`")
        .optional("FORMATS", Kind::Text)
        .more("Several, separated by commas; all of them without FORMATS. Off unless given."),
    long(Key::Spa, "spa", FILES, "answer with the file at PATH, or /index.html, where there is none, for programs that route in the browser")
        .optional("PATH", Kind::Text),
    long(Key::ErrorPage, "error-page", FILES, "the file at PATH for STATUS, like 404 or 5xx; repeatable")
        .required("STATUS=PATH", Kind::Text),
    long(Key::CleanUrls, "clean-urls", FILES, "find about.html or about/index.html for /about")
        .optional("MODE", Kind::Words(CLEAN_URLS))
        .more("`redirect` also leads /about.html, /about/index.html and such to the one clean address of the file."),
    long(Key::Try, "try", FILES, "for a path without a file try these ends, like .html,/index.html, in this order")
        .required("SUFFIXES", Kind::Text),
    long(Key::Hide, "hide", FILES, "answer 404 for paths that match GLOB and all below them, and leave them out of listings; repeatable")
        .required("GLOB", Kind::Text),
    long(Key::Deny, "deny", FILES, "answer 403 for paths that match GLOB and all below them; repeatable").required("GLOB", Kind::Text),
    long(Key::Dotfiles, "dotfiles", FILES, "serve names that begin with a dot; `.well-known` always is").optional("YES", YES_NO),
    long(Key::Symlinks, "symlinks", FILES, "links: `within` the directory, `never`, or `follow`; otherwise within")
        .required("POLICY", Kind::Words(SYMLINKS)),
    long(Key::Precompressed, "precompressed", FILES, "send NAME.br, NAME.zst or NAME.gz for NAME to those who take it").optional("YES", YES_NO),
    long(Key::Compress, "compress", FILES, "compress texts while serving, as `br`, `zstd` or `gzip`, the first best")
        .optional("CODINGS", Kind::Text)
        .more("Several, separated by commas; all of them without CODINGS. Files of 1 KiB up to the size of `--compress-max`."),
    long(Key::CompressMax, "compress-max", FILES, "send files that are larger than SIZE as they are; otherwise 1M")
        .required("SIZE", Kind::Text)
        .more("With `--compress`. A file is in memory while it is compressed, and the result is kept in the cache."),
    long(Key::Etag, "etag", ANSWERS, "make ETags of `mtime`, the modification time and size, or also of the `inode`; otherwise mtime")
        .required("PARTS", Kind::Words(ETAGS))
        .more(
            "Copies that keep times have the same ETag on every server then. With `inode` a file that another one of the same size and time \
             took the place of has another ETag, and so has each copy.",
        ),
    long(Key::CacheControl, "cache-control", ANSWERS, "Cache-Control for paths that match GLOB; repeatable, the last counts")
        .required("GLOB=VALUE", Kind::Text),
    long(Key::Header, "header", ANSWERS, "another header for such paths; without VALUE it is taken away")
        .required("GLOB=NAME:VALUE", Kind::Text),
    long(Key::SecurityHeaders, "security-headers", ANSWERS, "a set of headers that narrow what browsers do")
        .optional("YES", YES_NO)
        .more(
            "Content-Security-Policy (no frames, base addresses and plugins of others), Permissions-Policy, Referrer-Policy, \
             X-Content-Type-Options and X-Frame-Options; Strict-Transport-Security when encrypted. `--header` overrules each of them.",
        ),
    long(Key::Cors, "cors", ANSWERS, "let scripts of ORIGIN read responses; all of them without ORIGIN")
        .optional("ORIGIN", Kind::Text)
        .more(
            "Several, separated by commas. Their requests may have the headers of ranges and conditions (Range, If-Range, If-None-Match and \
             such), and they may read Content-Range, ETag, Accept-Ranges, Content-Length and such.",
        ),
    long(Key::CorsHeaders, "cors-headers", ANSWERS, "let their requests have these headers, too, like Authorization, separated by commas")
        .required("NAMES", Kind::Text),
    long(Key::Auth, "auth", ANSWERS, "ask for a password; HASH is argon2's or bcrypt's; repeatable")
        .required("USER:HASH", Kind::Text)
        .more("Other users of the machine can see the command line: `--auth-file` hides it from them."),
    long(Key::AuthFile, "auth-file", ANSWERS, "users and hashes, a line each, as htpasswd(1) writes them").required("FILE", Kind::File),
    long(Key::AuthPath, "auth-path", ANSWERS, "let only USERS have paths that match GLOB and all below them; repeatable, the last counts")
        .required("GLOB=USERS", Kind::Text)
        .more("Names, separated by commas; `*` for all users, `-` for everybody without a password. Where no GLOB fits, all users may."),
    long(Key::AllowFrom, "allow-from", ANSWERS, "answer only clients of these networks, like 192.0.2.0/24,::1; repeatable")
        .required("NETWORKS", Kind::Text)
        .more("`unix` stands for the clients of Unix sockets. Others get 403, except at the path of `--health`."),
    long(Key::DenyFrom, "deny-from", ANSWERS, "answer 403 to clients of these networks; repeatable").required("NETWORKS", Kind::Text),
    long(Key::Maintenance, "maintenance", ANSWERS, "answer 503 to everything").optional("YES", YES_NO),
    long(Key::MaintenanceFile, "maintenance-file", ANSWERS, "answer 503 to everything while FILE exists").required("FILE", Kind::File),
    long(Key::Io, "io", ENGINE, "how files are read; otherwise `auto`").required("MODEL", Kind::Words(MODELS)),
    long(Key::Workers, "workers", ENGINE, "threads that serve connections; otherwise one a CPU").required("N", Kind::Text),
    long(Key::Sendfile, "sendfile", ENGINE, "whether `auto` sends large files with sendfile(2), where that is cheaper")
        .required("WHEN", Kind::Words(SENDFILE))
        .more("`remote`, which it is otherwise: to clients on other machines. `always`: to all, whatever it costs. `never`: to nobody. What is on its way to a \
               client of this machine is the file itself, and changes when that is overwritten."),
    long(Key::PoolThreads, "pool-threads", ENGINE, "most threads for what would make a worker wait")
        .required("N", Kind::Text)
        .more(
            "Without it, and without a table `pool` in the file, `auto` starts with what a saved profile (`fathom bench advise --save`) has \
             for the file system of the directory, or else with 96. Three quarters of them may wait for one device.",
        ),
    long(Key::CacheFiles, "cache-files", ENGINE, "most files that are kept open; 0 turns the cache off").required("N", Kind::Text),
    long(Key::CacheAge, "cache-age", ENGINE, "look again at a kept file after TIME").required("TIME", Kind::Text),
    long(Key::CacheBytes, "cache-bytes", ENGINE, "most memory for contents of small files").required("SIZE", Kind::Text),
    long(Key::MaxConnections, "max-connections", LIMITS, "connections at once").required("N", Kind::Text),
    long(Key::MaxHeaderBytes, "max-header-bytes", LIMITS, "bytes of a request's headers").required("SIZE", Kind::Text),
    long(Key::MaxHeaders, "max-headers", LIMITS, "headers of a request").required("N", Kind::Text),
    long(Key::MaxTarget, "max-target", LIMITS, "bytes of a request's path and query").required("SIZE", Kind::Text),
    long(Key::MaxBody, "max-body", LIMITS, "bytes of a request's body, which is thrown away").required("SIZE", Kind::Text),
    long(Key::MaxRanges, "max-ranges", LIMITS, "ranges of a request; with more, the whole file is sent").required("N", Kind::Text),
    long(Key::MaxStreams, "max-streams", LIMITS, "requests at once on a connection of HTTP/2").required("N", Kind::Text),
    long(Key::MaxListingBytes, "max-listing-bytes", LIMITS, "memory of all listings and archives together; what is over is answered 503")
        .required("SIZE", Kind::Text),
    long(Key::MaxArchives, "max-archives", LIMITS, "archives that are sent at once; one more is answered 503").required("N", Kind::Text),
    long(Key::MaxRate, "max-rate", LIMITS, "requests a second of an address, or of a /64 of IPv6; with more, 429").required("N", Kind::Text),
    long(Key::MaxBurst, "max-burst", LIMITS, "requests that it may make at once; otherwise those of 10 seconds").required("N", Kind::Text),
    long(Key::MaxBuffers, "max-buffers", LIMITS, "memory for responses that wait for their clients; otherwise 256M")
        .required("SIZE", Kind::Text)
        .more("Beyond it, each connection has one piece of 16 KiB at a time, and streams of HTTP/2 that wait for their window end after a second."),
    long(Key::HeaderTimeout, "header-timeout", LIMITS, "time for a request's headers, and for the TLS handshake").required("TIME", Kind::Text),
    long(Key::IdleTimeout, "idle-timeout", LIMITS, "time from a response to the next request").required("TIME", Kind::Text),
    long(Key::WriteTimeout, "write-timeout", LIMITS, "time without a byte taken by the client").required("TIME", Kind::Text),
    long(Key::DrainNotice, "drain-notice", LIMITS, "time from SIGTERM, with /health at 503, in which all is served")
        .required("TIME", Kind::Text),
    long(Key::Drain, "drain", LIMITS, "time to the end of the last connection, after SIGTERM and the notice").required("TIME", Kind::Text),
    long(Key::Health, "health", WATCH, "answer 200 at PATH, or /health, and 503 while ending").optional("PATH", Kind::Text),
    long(Key::Metrics, "metrics", WATCH, "numbers for Prometheus at PATH, or /metrics").optional("PATH", Kind::Text),
    long(Key::AccessLog, "access-log", WATCH, "a line for each request, in FILE, or on standard output where FILE is -")
        .required("FILE", Kind::File),
    long(Key::LogFormat, "log-format", WATCH, "of these lines: `combined`, `json` or `off`; otherwise combined")
        .required("FORMAT", Kind::Words(LOG_FORMATS)),
    long(Key::ErrorLog, "error-log", WATCH, "what goes wrong while it runs, in FILE; otherwise on standard error")
        .required("FILE", Kind::File)
        .more("At most one line a second of each kind, with a count of those that were left out."),
    both(Key::Config, b'c', "config", ABOUT, "read the TOML file FILE first").required("FILE", Kind::File),
    both(Key::Check, b't', "check", ABOUT, "open everything that a start opens, say whether it would start, and end")
        .more("Takes no address, and removes a log file that it had to make."),
    long(Key::IoReport, "io-report", ABOUT, "show what the directory's file system offers, what each model can do there, and the plan; and end"),
    long(Key::Json, "json", ABOUT, "with --io-report: an object of JSON on a line for each site"),
    both(Key::Help, b'h', "help", ABOUT, "show this help and end"),
    long(Key::Version, "version", ABOUT, "show the version and end"),
];

/// The command.
pub(crate) const SERVE: Command<Key> = Command {
    name: "fathom serve",
    brief: "serve the files of a directory over HTTP",
    usage: &["[OPTION]... [DIR|FILE]"],
    about: &[
        "Serves DIR, or else the current directory, over HTTP/1.1 and HTTP/2 on 127.0.0.1:8080, until it is ended by SIGTERM or Ctrl-C. \
         What is in memory is answered at once; what has to come from a disk makes nobody else wait.",
        "Of FILE it serves that one file, at `/NAME`, and leads from `/` there.",
    ],
    sections: &[ADDRESSES, FILES, ANSWERS, ENGINE, LIMITS, WATCH, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[VALUES, PRECEDENCE, GLOBS, SIGNALS, STATUS],
    examples: &[
        ("fathom serve", "the current directory, on 127.0.0.1:8080"),
        ("fathom serve -l 8000 disk.iso", "one file, at http://127.0.0.1:8000/disk.iso"),
        ("fathom serve -l :80 --precompressed --compress /srv", "a site, for everybody"),
        (
            "fathom serve --spa --cache-control '/assets/**=max-age=31536000, immutable' srv",
            "a program that routes in the browser",
        ),
        ("fathom serve --base /files --mount /src=src srv", "two directories, at /files/ and at /files/src/"),
        ("fathom serve --listing --check srv", "whether these options make sense"),
        ("fathom serve --io-report srv", "what the file system there offers, and what is made of it"),
    ],
    see_also: &["fathom", "fathom-io", "fathom-bench"],
};

const VALUES: Note = Note {
    title: "Values",
    text: &[
        "TIME is like `500ms`, `10s`, `1.5h` or `1h30m`; a number alone is seconds. SIZE is a number of bytes; units as K, M and G may follow. An option \
         with an optional value can be turned off with `=no`.",
    ],
    man_only: false,
};

const PRECEDENCE: Note = Note {
    title: "Which value counts",
    text: &[
        "An option goes before the environment, that before the file of `--config`, and that before what is built in. The environment \
         has each option in a variable: `--max-body` is FATHOM_SERVE_MAX_BODY. An empty variable counts for none; of repeatable \
         options a variable has one a line.",
        "Addresses, names of index files, origins and codings replace those of a lesser source. Headers, Cache-Control, error pages \
         and users are added to them, and win where both are about the same. A mount takes the directory's place at its path.",
        "The file has keys for all options and more, such as redirects, rewrites and sites by name. Paths in it are relative to the \
         current directory. Options are about the default site.",
    ],
    man_only: true,
};

const GLOBS: Note = Note {
    title: "Globs",
    text: &[
        "`*` stands for anything within a component of the path, `**` also across, `?` for one character, `[a-z]` for one of these, \
         `{a,b}` for either. A GLOB without a slash is matched with the last component, another one with all of the path.",
    ],
    man_only: true,
};

const SIGNALS: Note = Note {
    title: "Signals",
    text: &[
        "SIGTERM ends it when the requests under way are answered, or after the time of `--drain`; SIGINT (Ctrl-C) at once. SIGHUP \
         reads the configuration and the certificates again and opens the logs anew; SIGUSR1 only opens the logs anew.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 after SIGTERM, 130 after SIGINT. 1 if it could not start, the configuration makes no sense, or requests were still under way after \
         the time of `--drain`. 2 if the command line makes no sense.",
    ],
    man_only: true,
};
