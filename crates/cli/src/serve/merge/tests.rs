//! Every option of the table, from every source.

use fathom_text::quote::Charset;

use super::*;
use crate::serve::env;

/// Two values of an option, and the file that says the first. Options that are nothing alone have others `beside` them.
struct Sample {
    key: Key,
    values: [&'static str; 2],
    toml: &'static str,
    beside: &'static [(Key, &'static str)],
}

const fn sample(key: Key, first: &'static str, second: &'static str, toml: &'static str) -> Sample {
    Sample { key, values: [first, second], toml, beside: &[] }
}

const SAMPLES: &[Sample] = &[
    sample(Key::Listen, "127.0.0.2:1,unix:/a", "[::1]:2", "listen = ['127.0.0.2:1', 'unix:/a']"),
    sample(Key::Port, "1", "2", "listen = ['127.0.0.1:1']"),
    Sample {
        key: Key::Certificate,
        values: ["c", "d"],
        toml: "tls = { certificate = 'c', key = 'k' }",
        beside: &[(Key::CertificateSecret, "k")],
    },
    Sample {
        key: Key::CertificateSecret,
        values: ["k", "l"],
        toml: "tls = { certificate = 'c', key = 'k' }",
        beside: &[(Key::Certificate, "c")],
    },
    sample(Key::SelfSigned, "yes", "no", "tls.self-signed = true"),
    Sample {
        key: Key::Http3,
        values: ["yes", "no"],
        toml: "tls = { self-signed = true, http3 = true }",
        beside: &[(Key::SelfSigned, "yes")],
    },
    Sample {
        key: Key::ClientCa,
        values: ["/a", "/b"],
        toml: "tls = { self-signed = true, client-ca = '/a' }",
        beside: &[(Key::SelfSigned, "yes")],
    },
    Sample {
        key: Key::ClientAuth,
        values: ["optional", "require"],
        toml: "tls = { self-signed = true, client-ca = '/a', client-auth = 'optional' }",
        beside: &[(Key::SelfSigned, "yes"), (Key::ClientCa, "/a")],
    },
    Sample {
        key: Key::RedirectHttp,
        values: [":80", "127.0.0.1"],
        toml: "tls = { certificate = 'c', key = 'k', redirect-from = ':80' }",
        beside: &[(Key::Certificate, "c"), (Key::CertificateSecret, "k")],
    },
    sample(Key::TrustedProxies, "10.0.0.0/8,unix", "::1", "proxies.addresses = ['10.0.0.0/8', 'unix']"),
    sample(Key::ClientFrom, "forwarded", "proxy-protocol", "proxies.source = 'forwarded'"),
    sample(Key::Root, "/a", "/b", "site.root = '/a'"),
    sample(Key::Base, "/a", "/b", "site.base = '/a'"),
    sample(Key::Mount, "/a=/b=c", "/a=d", "site.mounts = [{ path = '/a', root = '/b=c' }]"),
    sample(Key::Index, "a,b", "c", "site.index = ['a', 'b']"),
    sample(Key::Listing, "yes", "no", "site.listing = true"),
    sample(Key::Archive, "yes", "zip", "site.archives = ['tar.zst', 'tar.gz', 'zip']"),
    sample(Key::Spa, "yes", "/b.html", "site.fallback = '/index.html'"),
    sample(Key::ErrorPage, "404=/a", "404=/b", "site.error-pages.404 = '/a'"),
    sample(Key::CleanUrls, "redirect", "yes", "site.clean-urls = 'redirect'"),
    sample(Key::Try, ".html,/index.html", ".htm", "site.try = ['.html', '/index.html']"),
    sample(Key::Hide, "*.bak", "{a,b}", "site.hide = ['*.bak']"),
    sample(Key::Deny, "/a/**", "/b", "site.deny = ['/a/**']"),
    sample(Key::Dotfiles, "on", "0", "site.dotfiles = true"),
    sample(Key::Symlinks, "never", "follow", "site.symlinks = 'never'"),
    sample(Key::Precompressed, "true", "no", "site.precompressed = true"),
    sample(Key::Compress, "yes", "gzip", "site.compress.codings = ['br', 'zstd', 'gzip']"),
    sample(Key::CompressMax, "2M", "64K", "site.compress.max-bytes = 2097152"),
    sample(Key::Etag, "inode", "mtime", "site.etag = 'inode'"),
    sample(
        Key::CacheControl,
        "*.js=max-age=5",
        "*.js=no-store",
        "site.cache-control = [{ path = '*.js', value = 'max-age=5' }]",
    ),
    sample(Key::Header, "/a=X-A: b:c", "/a=X-A:", "site.headers = [{ path = '/a', set = { X-A = 'b:c' } }]"),
    sample(Key::SecurityHeaders, "1", "off", "site.security-headers = true"),
    sample(Key::Cors, "yes", "https://a.example,https://b.example", "site.cors.origins = ['*']"),
    Sample {
        key: Key::CorsHeaders,
        values: ["Authorization,X-A", "X-B"],
        toml: "site.cors = { origins = ['*'], allow-headers = ['Authorization', 'X-A'] }",
        beside: &[(Key::Cors, "yes")],
    },
    sample(Key::Auth, "u:$2b$a:b", "u:x", "site.auth.users.u = '$2b$a:b'"),
    sample(Key::AuthFile, "/a", "/b", "site.auth.file = '/a'"),
    sample(Key::AuthPath, "/a=u,v", "/b=-", "site.auth.paths = [{ path = '/a', users = ['u', 'v'] }]"),
    sample(Key::AllowFrom, "10.0.0.0/8,::1", "unix", "site.allow-from = ['10.0.0.0/8', '::1']"),
    sample(Key::DenyFrom, "10.0.0.0/8", "::1", "site.deny-from = ['10.0.0.0/8']"),
    sample(Key::Maintenance, "yes", "no", "site.maintenance.enabled = true"),
    sample(Key::MaintenanceFile, "/a", "/b", "site.maintenance.flag-file = '/a'"),
    sample(Key::Io, "sync", "pool", "io = 'sync'"),
    sample(Key::Workers, "3", "4", "workers = 3"),
    sample(Key::Sendfile, "never", "always", "sendfile = 'never'"),
    sample(Key::PoolThreads, "3", "4", "pool.threads = 3"),
    sample(Key::CacheFiles, "0", "4", "cache.files = 0"),
    sample(Key::CacheAge, "2s", "5ms", "cache.age-ms = 2000"),
    sample(Key::CacheBytes, "1K", "5", "cache.bytes = 1024"),
    sample(Key::MaxConnections, "3", "4", "limits.connections = 3"),
    sample(Key::MaxHeaderBytes, "1K", "5", "limits.header-bytes = 1024"),
    sample(Key::MaxHeaders, "3", "4", "limits.headers = 3"),
    sample(Key::MaxTarget, "1K", "5", "limits.target-bytes = 1024"),
    sample(Key::MaxBody, "1K", "5", "limits.body-bytes = 1024"),
    sample(Key::MaxRanges, "3", "4", "limits.ranges = 3"),
    sample(Key::MaxStreams, "3", "4", "limits.streams = 3"),
    sample(Key::MaxListingBytes, "1M", "2M", "limits.listing-bytes = 1048576"),
    sample(Key::MaxArchives, "3", "5", "limits.archives = 3"),
    sample(Key::MaxRate, "20", "0.5", "limits.requests-per-s = 20.0"),
    sample(Key::MaxBurst, "3", "4", "limits.burst = 3"),
    sample(Key::MaxBuffers, "1K", "5", "limits.buffer-bytes = 1024"),
    sample(Key::HeaderTimeout, "2s", "5ms", "limits.header-timeout-ms = 2000"),
    sample(Key::IdleTimeout, "2s", "5ms", "limits.idle-timeout-ms = 2000"),
    sample(Key::WriteTimeout, "2s", "5ms", "limits.write-timeout-ms = 2000"),
    sample(Key::DrainNotice, "2s", "5ms", "limits.drain-notice-ms = 2000"),
    sample(Key::Drain, "2s", "5ms", "limits.drain-timeout-ms = 2000"),
    sample(Key::Health, "yes", "/b", "health = '/health'"),
    sample(Key::Metrics, "yes", "/b", "metrics = '/metrics'"),
    sample(Key::AccessLog, "/a", "/b", "access-log = { format = 'combined', file = '/a' }"),
    sample(Key::LogFormat, "json", "combined", "access-log.format = 'json'"),
    sample(Key::ErrorLog, "/a", "/b", "error-log.file = '/a'"),
];

fn given(key: Key, value: &str) -> Given {
    Given { key, name: "--x".to_owned(), value: Some(value.into()), charset: Charset::Ascii }
}

impl Sample {
    /// The option with its value of this number, and those beside it.
    fn given(&self, number: usize) -> Vec<Given> {
        let beside = self.beside.iter().map(|(key, value)| given(*key, value));
        beside.chain([given(self.key, self.values[number])]).collect()
    }

    /// The variable with its value of this number.
    fn variable(&self, number: usize) -> Vec<Given> {
        let name = FLAGS.iter().find(|flag| flag.key == self.key).and_then(env::variable).unwrap();
        let get = |asked: &str| (asked == name).then(|| self.values[number].into());
        let beside = self.beside.iter().map(|(key, value)| given(*key, value));
        beside.chain(env::read(&get, Charset::Ascii)).collect()
    }

    fn file(&self) -> Config {
        Config::from_toml(self.toml).unwrap()
    }

    /// Whether sources add to each other.
    fn adds(&self) -> bool {
        matches!(
            self.key,
            Key::CacheControl
                | Key::Header
                | Key::Hide
                | Key::Deny
                | Key::AuthPath
                | Key::AllowFrom
                | Key::DenyFrom
        )
    }
}

#[track_caller]
fn merged(file: Config, sources: &[Vec<Given>]) -> Config {
    merge(file, sources).unwrap_or_else(|message| panic!("{}", String::from_utf8_lossy(&message)))
}

#[test]
fn every_option_that_says_how_has_a_sample() {
    let with_variable: Vec<Key> =
        FLAGS.iter().filter(|flag| env::variable(flag).is_some()).map(|flag| flag.key).collect();
    let sampled: Vec<Key> = SAMPLES.iter().map(|sample| sample.key).chain([Key::Config]).collect();
    assert_eq!(with_variable, sampled);
}

#[test]
fn every_option_means_the_same_in_every_source() {
    let default = merged(Config::default(), &[]);
    for sample in SAMPLES {
        let by_file = merged(sample.file(), &[]);
        assert_ne!(by_file, default, "{:?}", sample.key);
        assert_eq!(merged(Config::default(), &[sample.given(0)]), by_file, "{:?}", sample.key);
        assert_eq!(merged(Config::default(), &[sample.variable(0)]), by_file, "{:?}", sample.key);
        assert_ne!(merged(Config::default(), &[sample.given(1)]), by_file, "{:?}", sample.key);
    }
}

#[test]
fn every_option_goes_before_its_variable_and_that_before_the_file() {
    for sample in SAMPLES.iter().filter(|sample| !sample.adds()) {
        let second = merged(Config::default(), &[sample.given(1)]);
        let over_variable = merged(Config::default(), &[sample.variable(0), sample.given(1)]);
        let over_file = merged(sample.file(), &[sample.variable(1)]);
        let over_both = merged(sample.file(), &[sample.variable(0), sample.given(1)]);
        for found in [over_variable, over_file, over_both] {
            assert_eq!(found, second, "{:?}", sample.key);
        }
    }
}

#[test]
fn each_certificate_has_its_key() {
    let options =
        |words: &[(Key, &str)]| words.iter().map(|(key, value)| given(*key, value)).collect::<Vec<_>>();
    let two = options(&[
        (Key::Certificate, "a"),
        (Key::CertificateSecret, "k"),
        (Key::Certificate, "b"),
        (Key::CertificateSecret, "l"),
    ]);
    let expected = "tls = { certificate = 'a', key = 'k', more = [{ certificate = 'b', key = 'l' }] }";
    assert_eq!(
        merged(Config::default(), std::slice::from_ref(&two)),
        merged(Config::from_toml(expected).unwrap(), &[])
    );
    let file = Config::from_toml(
        "tls = { certificate = 'x', key = 'y', more = [{ certificate = 'x', key = 'y' }] }",
    );
    assert_eq!(merged(file.unwrap(), &[two]), merged(Config::from_toml(expected).unwrap(), &[]));
    let three = options(&[(Key::Certificate, "a"), (Key::Certificate, "b"), (Key::CertificateSecret, "k")]);
    assert!(merge(Config::default(), &[three]).is_err());
}

#[test]
fn rules_are_added_so_that_the_last_is_the_most_important() {
    for sample in SAMPLES.iter().filter(|sample| sample.adds()) {
        let found = merged(sample.file(), &[sample.variable(1), sample.given(0)]);
        let expected = [sample.given(0), sample.given(1), sample.given(0)].concat();
        assert_eq!(found, merged(Config::default(), &[expected]), "{:?}", sample.key);
    }
}

#[test]
fn what_can_be_on_can_be_off() {
    for key in [Key::Spa, Key::Compress, Key::Cors, Key::Health, Key::Metrics] {
        let found = merged(Config::default(), &[vec![given(key, "yes")], vec![given(key, "no")]]);
        assert_eq!(found, merged(Config::default(), &[]), "{key:?}");
    }
    let found =
        merged(Config::default(), &[vec![given(Key::AccessLog, "yes")], vec![given(Key::AccessLog, "no")]]);
    assert_eq!(found.access_log.format.as_deref(), Some("off"));
    let found = merged(found, &[vec![given(Key::AccessLog, "-")]]);
    assert_eq!((found.access_log.format.as_deref(), found.access_log.file), (Some("combined"), None));
    let found =
        merged(Config::default(), &[vec![given(Key::ErrorLog, "/a")], vec![given(Key::ErrorLog, "-")]]);
    assert_eq!(found.error_log.file, None);
}

#[test]
fn a_mount_of_a_greater_source_replaces_the_directory_and_keeps_the_rules() {
    let file = "[[site.mounts]]\npath = '/a/'\nroot = '/x'\ndeny = ['b']\n[[site.mounts]]\npath = '/c'\nroot = '/x'\n";
    let options = ["/a=/y", "/d/=/z", "/a/b=/z"].map(|value| given(Key::Mount, value)).to_vec();
    let mounts = merged(Config::from_toml(file).unwrap(), &[options]).site.mounts;
    let found: Vec<_> = mounts.iter().map(|mount| (mount.at(), mount.root.to_str().unwrap())).collect();
    assert_eq!(found, [("/a", "/y"), ("/c", "/x"), ("/d", "/z"), ("/a/b", "/z")]);
    assert_eq!(mounts[0].deny.as_deref(), Some(&["b".to_owned()][..]));
    // Two of one path, which no source can mean, are left for the check to refuse.
    let twice = ["/a=/y", "/a/=/z"].map(|value| given(Key::Mount, value)).to_vec();
    let config = merged(Config::default(), &[twice]);
    assert_eq!(config.check().unwrap_err().thing(), "site.mounts[1].path");
}

#[test]
fn a_port_is_for_addresses_without_one() {
    for (file, options, expected) in [
        ("", &[(Key::Port, "9")][..], &["127.0.0.1:9"][..]),
        (
            "",
            &[(Key::Port, "9"), (Key::Listen, "::1"), (Key::Listen, "127.0.0.1:1")],
            &["[::1]:9", "127.0.0.1:1"],
        ),
        ("listen = ['[::]:80']", &[(Key::Port, "9")], &["127.0.0.1:9"]),
        ("listen = ['localhost']", &[], &["localhost:8080"]),
        ("listen = ['nowhere']", &[], &["nowhere"]),
    ] {
        let options = options.iter().map(|(key, value)| given(*key, value)).collect();
        assert_eq!(merged(Config::from_toml(file).unwrap(), &[options]).listen, expected);
    }
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for (key, value) in [
        (Key::Listen, "nowhere"),
        (Key::Listen, ","),
        (Key::RedirectHttp, ""),
        (Key::ErrorPage, "404"),
        (Key::Listing, "perhaps"),
        (Key::Mount, "/a"),
        (Key::Mount, "=/a"),
        (Key::Mount, "/a="),
        (Key::Mount, ""),
        (Key::Symlinks, "yes"),
        (Key::Header, "*=X-A"),
        (Key::Header, "X-A: b"),
        (Key::CacheControl, "no-store"),
        (Key::Auth, "u"),
        (Key::Io, "aio"),
        (Key::Sendfile, "maybe"),
        (Key::Workers, "0"),
        (Key::MaxRate, "-1"),
        (Key::MaxRate, "nan"),
        (Key::MaxBurst, "0"),
        (Key::AuthPath, "/a"),
        (Key::CleanUrls, "maybe"),
        (Key::PoolThreads, "0"),
        (Key::MaxConnections, "0"),
        (Key::LogFormat, "csv"),
        (Key::Certificate, "c"),
        (Key::ClientCa, "c"),
        (Key::RedirectHttp, ":80"),
    ] {
        assert!(merge(Config::default(), &[vec![given(key, value)]]).is_err(), "{key:?} {value}");
    }
}
