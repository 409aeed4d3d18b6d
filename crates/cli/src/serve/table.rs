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
    Check,
    IoReport,
    Json,
}

pub(crate) const ADDRESSES: &str = "Where it listens";
pub(crate) const FILES: &str = "What is served";
pub(crate) const ANSWERS: &str = "How it is answered";
pub(crate) const ENGINE: &str = "How files are read";
pub(crate) const LIMITS: &str = "What a client may take";
pub(crate) const WATCH: &str = "Watching it";
pub(crate) const ABOUT: &str = "Configuration and program";

/// The values of boolean options.
const YES_NO: ValueKind = ValueKind::Words(&["yes", "no"]);

/// All options.
pub(crate) const FLAGS: &[Flag<ServeOption>] = &[
    both(ServeOption::Listen, b'l', "listen", ADDRESSES, "listen on ADDR; repeatable; otherwise on 127.0.0.1:8080")
        .required("ADDR", ValueKind::Text)
        .more(
            "`8080` for that port of 127.0.0.1, `192.0.2.1:80`, `[::1]:80`, `:80` for all addresses, `localhost`, `unix:/run/fathom.sock`, or `systemd` for the sockets \
             that the program was started with. Several may stand in one ADDR, separated by commas.",
        ),
    both(ServeOption::Port, b'p', "port", ADDRESSES, "the port where ADDR has none; otherwise 8080").required("PORT", ValueKind::Text),
    long(ServeOption::Certificate, "tls-cert", ADDRESSES, "encrypt, with the certificates in the PEM file FILE; repeatable")
        .required("FILE", ValueKind::File)
        .more("Of several, each with its `--tls-key`, a client gets the one for the name that it asks for, or else the first."),
    long(ServeOption::CertificateSecret, "tls-key", ADDRESSES, "and the private key in FILE").required("FILE", ValueKind::File),
    long(ServeOption::SelfSigned, "tls-self-signed", ADDRESSES, "encrypt with a certificate made for this run, for development")
        .optional("YES", YES_NO)
        .more("It is for localhost, the name of this machine and its addresses. Its fingerprint is shown."),
    long(ServeOption::Http3, "http3", ADDRESSES, "serve HTTP/3, too, on the encrypted addresses over UDP")
        .optional("YES", YES_NO)
        .more("Only a program that was built with the feature http3 has it."),
    long(ServeOption::ClientCa, "tls-client-ca", ADDRESSES, "answer only clients with a certificate of the authorities in FILE").required("FILE", ValueKind::File),
    long(ServeOption::ClientAuth, "tls-client-auth", ADDRESSES, "such a certificate is `require`d, or `optional`")
        .required("MODE", ValueKind::Words(ClientAuth::WORDS)),
    long(ServeOption::RedirectHttp, "redirect-http", ADDRESSES, "send plain requests on ADDR to the encrypted address").required("ADDR", ValueKind::Text),
    long(ServeOption::TrustedProxies, "trusted-proxies", ADDRESSES, "take the client's address from the proxies at ADDRS")
        .required("ADDRS", ValueKind::Text)
        .more("Addresses or networks like `10.0.0.0/8`, separated by commas, or `unix` for those on Unix sockets. That address is logged, and limits and turns go by it."),
    long(ServeOption::ClientFrom, "client-from", ADDRESSES, "where proxies tell the address; otherwise x-forwarded-for").required("SOURCE", ValueKind::Words(AddressSource::WORDS)),
    long(ServeOption::Root, "root", FILES, "serve DIR, or one file; the same as the operand").required("DIR", ValueKind::File),
    long(ServeOption::Base, "base", FILES, "serve everything below PATH, like /app, and nothing else").required("PATH", ValueKind::Text),
    long(ServeOption::Mount, "mount", FILES, "serve DIR, or one file, below PATH, like /docs; repeatable")
        .required("PATH=DIR", ValueKind::Text)
        .more(
            "The longest PATH counts. The other options are about mounts, too, except for `--spa` and `--error-page`; the file of `--config` has \
             settings of their own for them.",
        ),
    long(ServeOption::Index, "index", FILES, "names of files that stand for their directory, separated by commas; otherwise index.html")
        .required("NAMES", ValueKind::Text),
    long(ServeOption::Listing, "listing", FILES, "list directories that have no index").optional("YES", YES_NO),
    long(ServeOption::Explore, "explore", FILES, "show the newest inventory in DIR as a page with a map, and nothing else")
        .optional("YES", YES_NO)
        .more(
            "DIR has inventories of `fathom scan` with names that end in .inv, or is one. The page is that of `fathom report`, and fetches \
             directories that it leaves out. Everyone who may read the page sees the names of all files in the inventory: see `--auth`. A page takes 2 MB of `--max-listing-bytes` while it is made.",
        ),
    long(ServeOption::Names, "names", FILES, "answer requests for these host names alone, such as a.org,*.b.org, beside addresses and localhost; otherwise all, with --explore none")
        .required("NAMES", ValueKind::Text)
        .more(
            "`*.example.org` is all names below example.org. Requests for other names get 421. A page of another site could make a browser \
             ask for its own name at the address of this server, and read the answer.",
        ),
    long(ServeOption::Archive, "archive", FILES, "send a directory as one file for ?archive=FORMAT: `tar.zst`, `tar.gz` or `zip`")
        .optional("FORMATS", ValueKind::Text)
        .more("Several, separated by commas; all of them without FORMATS. Off unless given."),
    long(ServeOption::Spa, "spa", FILES, "answer with the file at PATH, or /index.html, where there is none, for programs that route in the browser")
        .optional("PATH", ValueKind::Text),
    long(ServeOption::ErrorPage, "error-page", FILES, "the file at PATH for STATUS, like 404 or 5xx; repeatable")
        .required("STATUS=PATH", ValueKind::Text),
    long(ServeOption::CleanUrls, "clean-urls", FILES, "find about.html or about/index.html for /about")
        .optional("MODE", ValueKind::Words(CleanUrlMode::WORDS))
        .more("`redirect` also leads /about.html, /about/index.html and such to the one clean address of the file."),
    long(ServeOption::Try, "try", FILES, "for a path without a file try these ends, like .html,/index.html, in this order")
        .required("SUFFIXES", ValueKind::Text),
    long(ServeOption::Hide, "hide", FILES, "answer 404 for paths that match GLOB and all below them, and leave them out of listings; repeatable")
        .required("GLOB", ValueKind::Text),
    long(ServeOption::Deny, "deny", FILES, "answer 403 for paths that match GLOB and all below them; repeatable").required("GLOB", ValueKind::Text),
    long(ServeOption::Dotfiles, "dotfiles", FILES, "serve names that begin with a dot; `.well-known` always is").optional("YES", YES_NO),
    long(ServeOption::Symlinks, "symlinks", FILES, "links: `within` the directory, `never`, or `follow`; otherwise within")
        .required("POLICY", ValueKind::Words(Symlinks::WORDS)),
    long(ServeOption::Precompressed, "precompressed", FILES, "send NAME.br, NAME.zst or NAME.gz for NAME to those who take it").optional("YES", YES_NO),
    long(ServeOption::Compress, "compress", FILES, "compress texts while serving, as `br`, `zstd` or `gzip`, the first best")
        .optional("CODINGS", ValueKind::Text)
        .more("Several, separated by commas; all of them without CODINGS. Files of 1 KiB up to the size of `--compress-max`."),
    long(ServeOption::CompressMax, "compress-max", FILES, "send files that are larger than SIZE as they are; otherwise 1M")
        .required("SIZE", ValueKind::Text)
        .more("With `--compress`. A file is in memory while it is compressed, and the result is kept in the cache."),
    long(ServeOption::Etag, "etag", ANSWERS, "make ETags of `mtime`, the modification time and size, or also of the `inode`; otherwise mtime")
        .required("PARTS", ValueKind::Words(Etag::WORDS))
        .more(
            "Copies that keep times have the same ETag on every server then. With `inode`, a file that replaced another one of the same size and time has a new ETag, and each copy \
         has its own.",
        ),
    long(ServeOption::CacheControl, "cache-control", ANSWERS, "Cache-Control for paths that match GLOB; repeatable, the last counts")
        .required("GLOB=VALUE", ValueKind::Text)
        .more("Errors have `no-store` instead, except by a rule of the configuration with `always = true`."),
    long(ServeOption::Header, "header", ANSWERS, "another header for such paths; without VALUE it is taken away")
        .required("GLOB=NAME:VALUE", ValueKind::Text)
        .more("Errors have it only by a rule of the configuration with `always = true`."),
    long(ServeOption::SecurityHeaders, "security-headers", ANSWERS, "a set of headers that narrow what browsers do")
        .optional("YES", YES_NO)
        .more(
            "Content-Security-Policy (no frames, base addresses and plugins of others), Permissions-Policy, Referrer-Policy, \
             X-Content-Type-Options and X-Frame-Options; Strict-Transport-Security when encrypted. `--header` overrules each of them.",
        ),
    long(ServeOption::Cors, "cors", ANSWERS, "let scripts of ORIGIN read responses; all of them without ORIGIN")
        .optional("ORIGIN", ValueKind::Text)
        .more(
            "Several, separated by commas. Their requests may have the headers of ranges and conditions (Range, If-Range, If-None-Match and \
             such), and they may read Content-Range, ETag, Accept-Ranges, Content-Length and such.",
        ),
    long(ServeOption::CorsHeaders, "cors-headers", ANSWERS, "let their requests have these headers, too, like Authorization, separated by commas")
        .required("NAMES", ValueKind::Text),
    long(ServeOption::Auth, "auth", ANSWERS, "ask for a password; HASH is argon2's or bcrypt's; repeatable")
        .required("USER:HASH", ValueKind::Text)
        .more("Other users of the machine can see the command line: `--auth-file` hides it from them."),
    long(ServeOption::AuthFile, "auth-file", ANSWERS, "users and hashes, a line each, as htpasswd(1) writes them").required("FILE", ValueKind::File),
    long(ServeOption::AuthPath, "auth-path", ANSWERS, "let only USERS have paths that match GLOB and all below them; repeatable, the last counts")
        .required("GLOB=USERS", ValueKind::Text)
        .more("Names, separated by commas; `*` for all users, `-` for everybody without a password. Where no GLOB fits, all users may."),
    long(ServeOption::AllowFrom, "allow-from", ANSWERS, "answer only clients of these networks, like 192.0.2.0/24,::1; repeatable")
        .required("NETWORKS", ValueKind::Text)
        .more("`unix` stands for the clients of Unix sockets. Others get 403, except at the path of `--health`."),
    long(ServeOption::DenyFrom, "deny-from", ANSWERS, "answer 403 to clients of these networks; repeatable").required("NETWORKS", ValueKind::Text),
    long(ServeOption::Maintenance, "maintenance", ANSWERS, "answer 503 to everything").optional("YES", YES_NO),
    long(ServeOption::MaintenanceFile, "maintenance-file", ANSWERS, "answer 503 to everything while FILE exists").required("FILE", ValueKind::File),
    long(ServeOption::Io, "io", ENGINE, "how files are read; otherwise `auto`").required("MODEL", ValueKind::Words(Model::WORDS)),
    long(ServeOption::Workers, "workers", ENGINE, "threads that serve connections; otherwise one a CPU").required("N", ValueKind::Text),
    long(ServeOption::Sendfile, "sendfile", ENGINE, "whether `auto` sends large files with sendfile(2), where that is cheaper")
        .required("WHEN", ValueKind::Words(SendfilePolicy::WORDS))
        .more("`remote`, which it is otherwise: to clients on other machines. `always`: to all, whatever it costs. `never`: to none. Data on its way to a client on this machine is still the page cache of the file, and \
         changes if the file is overwritten."),
    long(ServeOption::PoolThreads, "pool-threads", ENGINE, "most threads for what would make a worker wait")
        .required("N", ValueKind::Text)
        .more(
            "Without it, and without a table `pool` in the file, `auto` starts with what a saved profile (`fathom bench advise --save`) has \
             for the file system of the directory, or else with 96. Three quarters of them may wait for one device.",
        ),
    long(ServeOption::CacheFiles, "cache-files", ENGINE, "most files that are kept open; 0 turns the cache off").required("N", ValueKind::Text),
    long(ServeOption::CacheAge, "cache-age", ENGINE, "look again at a kept file after TIME").required("TIME", ValueKind::Text),
    long(ServeOption::CacheBytes, "cache-bytes", ENGINE, "most memory for contents of small files").required("SIZE", ValueKind::Text),
    long(ServeOption::MaxConnections, "max-connections", LIMITS, "connections at once").required("N", ValueKind::Text),
    long(ServeOption::MaxHeaderBytes, "max-header-bytes", LIMITS, "bytes of a request's headers").required("SIZE", ValueKind::Text),
    long(ServeOption::MaxHeaders, "max-headers", LIMITS, "headers of a request").required("N", ValueKind::Text),
    long(ServeOption::MaxTarget, "max-target", LIMITS, "bytes of a request's path and query").required("SIZE", ValueKind::Text),
    long(ServeOption::MaxBody, "max-body", LIMITS, "bytes of a request's body, which is thrown away").required("SIZE", ValueKind::Text),
    long(ServeOption::MaxRanges, "max-ranges", LIMITS, "ranges of a request; with more, the whole file is sent").required("N", ValueKind::Text),
    long(ServeOption::MaxStreams, "max-streams", LIMITS, "requests at once on a connection of HTTP/2").required("N", ValueKind::Text),
    long(ServeOption::MaxListingBytes, "max-listing-bytes", LIMITS, "memory of all listings and archives together; requests beyond it get 503")
        .required("SIZE", ValueKind::Text),
    long(ServeOption::MaxArchives, "max-archives", LIMITS, "archives that are sent at once; requests for more get 503").required("N", ValueKind::Text),
    long(ServeOption::MaxRate, "max-rate", LIMITS, "requests a second of an address, or of a /64 of IPv6; with more, 429").required("N", ValueKind::Text),
    long(ServeOption::MaxBurst, "max-burst", LIMITS, "requests that it may make at once; otherwise those of 10 seconds").required("N", ValueKind::Text),
    long(ServeOption::MaxPasswordChecks, "max-password-checks", LIMITS, "password checks that wait or run; with more, 503, and with an eighth from an address, 429").required("N", ValueKind::Text),
    long(ServeOption::MaxWrongPasswords, "max-wrong-passwords", LIMITS, "wrong passwords of an address a minute; with more, 429; 0 for any number").required("N", ValueKind::Text),
    long(ServeOption::MaxBuffers, "max-buffers", LIMITS, "memory for responses that wait for their clients; otherwise 256M")
        .required("SIZE", ValueKind::Text)
        .more("Beyond it, each connection has one piece of 16 KiB at a time, and streams of HTTP/2 that wait for their window end after a second."),
    long(ServeOption::HeaderTimeout, "header-timeout", LIMITS, "time for a request's headers, and for the TLS handshake").required("TIME", ValueKind::Text),
    long(ServeOption::IdleTimeout, "idle-timeout", LIMITS, "time from a response to the next request").required("TIME", ValueKind::Text),
    long(ServeOption::WriteTimeout, "write-timeout", LIMITS, "time without a byte taken by the client").required("TIME", ValueKind::Text),
    long(ServeOption::DrainNotice, "drain-notice", LIMITS, "time from SIGTERM, with /health at 503, in which all is served")
        .required("TIME", ValueKind::Text),
    long(ServeOption::Drain, "drain", LIMITS, "time to the end of the last connection, after SIGTERM and the notice").required("TIME", ValueKind::Text),
    long(ServeOption::Health, "health", WATCH, "answer 200 at PATH, or /health, and 503 while ending").optional("PATH", ValueKind::Text),
    long(ServeOption::Metrics, "metrics", WATCH, "numbers for Prometheus at PATH, or /metrics").optional("PATH", ValueKind::Text),
    long(ServeOption::AccessLog, "access-log", WATCH, "a line for each request, in FILE, or on standard output where FILE is -")
        .required("FILE", ValueKind::File),
    long(ServeOption::LogFormat, "log-format", WATCH, "of these lines: `combined`, `json` or `off`; otherwise combined")
        .required("FORMAT", ValueKind::Words(AccessLogFormat::WORDS)),
    long(ServeOption::ErrorLog, "error-log", WATCH, "what goes wrong while it runs, in FILE; otherwise on standard error")
        .required("FILE", ValueKind::File)
        .more("At most one line a second of each kind, with a count of those that were left out."),
    both(ServeOption::Config, b'c', "config", ABOUT, "read the TOML file FILE first").required("FILE", ValueKind::File),
    both(ServeOption::Check, b't', "check", ABOUT, "open everything that a start opens, say whether it would start, and end")
        .more("Takes no address, and removes a log file that it had to make."),
    long(ServeOption::IoReport, "io-report", ABOUT, "show what the directory's file system offers, what each model can do there, and the plan; and end"),
    long(ServeOption::Json, "json", ABOUT, "with --io-report: an object of JSON on a line for each site"),
    flag::help(ABOUT).letter(b'h'),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const SERVE: Command<ServeOption> = Command {
    name: "fathom serve",
    brief: "serve the files of a directory over HTTP",
    usage: &["[OPTION]... [DIR|FILE]"],
    about: &[
        "Serves DIR, or else the current directory, over HTTP/1.1 and HTTP/2 on 127.0.0.1:8080, until it is ended by SIGTERM or Ctrl-C. \
         Files in memory are sent at once; a file that has to be read from a disk does not delay other requests.",
        "With FILE it serves that file alone, at `/NAME`, and redirects `/` there.",
    ],
    sections: &[ADDRESSES, FILES, ANSWERS, ENGINE, LIMITS, WATCH, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[SERVE_MODELS, VALUES, PRECEDENCE, GLOBS, SIGNALS, STATUS],
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
        "TIME is like `500ms`, `10s`, `1.5h` or `1h30m`; a number alone is seconds. SIZE is a number of bytes, or like `64K` and `16M`. fathom(1) has all units of both. An option \
         with an optional value can be turned off with `=no`.",
    ],
    man_only: false,
};

const PRECEDENCE: Note = Note {
    title: "Which value counts",
    text: &[
        "An option takes precedence over the environment, the environment over the file of `--config`, and the \
         file over the built-in values. The environment \
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
