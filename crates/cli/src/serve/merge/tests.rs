//! Tests of all options in all sources.

use fathom_text::quote::Charset;

use super::*;
use crate::serve::env;
use crate::shared::flag::Flag;

/// Two values of an option, and the configuration text that is equivalent to the first. Options
/// that are invalid alone have companions in `beside`.
struct OptionSample {
    key: ServeOption,
    values: [&'static str; 2],
    toml: &'static str,
    beside: &'static [(ServeOption, &'static str)],
}

const fn sample(
    key: ServeOption,
    first: &'static str,
    second: &'static str,
    toml: &'static str,
) -> OptionSample {
    OptionSample { key, values: [first, second], toml, beside: &[] }
}

const SAMPLES: &[OptionSample] = &[
    sample(ServeOption::Listen, "127.0.0.2:1,unix:/a", "[::1]:2", "listen = ['127.0.0.2:1', 'unix:/a']"),
    sample(ServeOption::Port, "1", "2", "listen = ['127.0.0.1:1']"),
    OptionSample {
        key: ServeOption::Certificate,
        values: ["c", "d"],
        toml: "tls = { certificate = 'c', key = 'k' }",
        beside: &[(ServeOption::CertificateSecret, "k")],
    },
    OptionSample {
        key: ServeOption::CertificateSecret,
        values: ["k", "l"],
        toml: "tls = { certificate = 'c', key = 'k' }",
        beside: &[(ServeOption::Certificate, "c")],
    },
    sample(ServeOption::SelfSigned, "yes", "no", "tls.self-signed = true"),
    OptionSample {
        key: ServeOption::Http3,
        values: ["yes", "no"],
        toml: "tls = { self-signed = true, http3 = true }",
        beside: &[(ServeOption::SelfSigned, "yes")],
    },
    OptionSample {
        key: ServeOption::ClientCa,
        values: ["/a", "/b"],
        toml: "tls = { self-signed = true, client-ca = '/a' }",
        beside: &[(ServeOption::SelfSigned, "yes")],
    },
    OptionSample {
        key: ServeOption::ClientAuth,
        values: ["optional", "require"],
        toml: "tls = { self-signed = true, client-ca = '/a', client-auth = 'optional' }",
        beside: &[(ServeOption::SelfSigned, "yes"), (ServeOption::ClientCa, "/a")],
    },
    OptionSample {
        key: ServeOption::RedirectHttp,
        values: [":80", "127.0.0.1"],
        toml: "tls = { certificate = 'c', key = 'k', redirect-from = ':80' }",
        beside: &[(ServeOption::Certificate, "c"), (ServeOption::CertificateSecret, "k")],
    },
    sample(
        ServeOption::TrustedProxies,
        "10.0.0.0/8,unix",
        "::1",
        "proxies.addresses = ['10.0.0.0/8', 'unix']",
    ),
    sample(ServeOption::ClientFrom, "forwarded", "proxy-protocol", "proxies.source = 'forwarded'"),
    sample(ServeOption::Root, "/a", "/b", "site.root = '/a'"),
    sample(ServeOption::Base, "/a", "/b", "site.base = '/a'"),
    sample(ServeOption::Mount, "/a=/b=c", "/a=d", "site.mounts = [{ path = '/a', root = '/b=c' }]"),
    sample(ServeOption::Index, "a,b", "c", "site.index = ['a', 'b']"),
    sample(ServeOption::Listing, "yes", "no", "site.listing = true"),
    sample(ServeOption::Explore, "yes", "no", "site.explore = true"),
    sample(ServeOption::Names, "a.org,*.b.org", "c.org", "site.names = ['a.org', '*.b.org']"),
    sample(ServeOption::Archive, "yes", "zip", "site.archives = ['tar.zst', 'tar.gz', 'zip']"),
    sample(ServeOption::Spa, "yes", "/b.html", "site.fallback = '/index.html'"),
    sample(ServeOption::ErrorPage, "404=/a", "404=/b", "site.error-pages.404 = '/a'"),
    sample(ServeOption::CleanUrls, "redirect", "yes", "site.clean-urls = 'redirect'"),
    sample(ServeOption::Try, ".html,/index.html", ".htm", "site.try = ['.html', '/index.html']"),
    sample(ServeOption::Hide, "*.bak", "{a,b}", "site.hide = ['*.bak']"),
    sample(ServeOption::Deny, "/a/**", "/b", "site.deny = ['/a/**']"),
    sample(ServeOption::Dotfiles, "on", "0", "site.dotfiles = true"),
    sample(ServeOption::Symlinks, "never", "follow", "site.symlinks = 'never'"),
    sample(ServeOption::Precompressed, "true", "no", "site.precompressed = true"),
    sample(ServeOption::Compress, "yes", "gzip", "site.compress.codings = ['br', 'zstd', 'gzip']"),
    sample(ServeOption::CompressMax, "2M", "64K", "site.compress.max-bytes = 2097152"),
    sample(ServeOption::Etag, "inode", "mtime", "site.etag = 'inode'"),
    sample(
        ServeOption::CacheControl,
        "*.js=max-age=5",
        "*.js=no-store",
        "site.cache-control = [{ path = '*.js', value = 'max-age=5' }]",
    ),
    sample(
        ServeOption::Header,
        "/a=X-A: b:c",
        "/a=X-A:",
        "site.headers = [{ path = '/a', set = { X-A = 'b:c' } }]",
    ),
    sample(ServeOption::SecurityHeaders, "1", "off", "site.security-headers = true"),
    sample(ServeOption::Cors, "yes", "https://a.example,https://b.example", "site.cors.origins = ['*']"),
    OptionSample {
        key: ServeOption::CorsHeaders,
        values: ["Authorization,X-A", "X-B"],
        toml: "site.cors = { origins = ['*'], allow-headers = ['Authorization', 'X-A'] }",
        beside: &[(ServeOption::Cors, "yes")],
    },
    sample(ServeOption::Auth, "u:$2b$a:b", "u:x", "site.auth.users.u = '$2b$a:b'"),
    sample(ServeOption::AuthFile, "/a", "/b", "site.auth.file = '/a'"),
    sample(
        ServeOption::AuthPath,
        "/a=u,v",
        "/b=-",
        "site.auth.paths = [{ path = '/a', users = ['u', 'v'] }]",
    ),
    sample(ServeOption::AllowFrom, "10.0.0.0/8,::1", "unix", "site.allow-from = ['10.0.0.0/8', '::1']"),
    sample(ServeOption::DenyFrom, "10.0.0.0/8", "::1", "site.deny-from = ['10.0.0.0/8']"),
    sample(ServeOption::Maintenance, "yes", "no", "site.maintenance.enabled = true"),
    sample(ServeOption::MaintenanceFile, "/a", "/b", "site.maintenance.flag-file = '/a'"),
    sample(ServeOption::Io, "sync", "pool", "io = 'sync'"),
    sample(ServeOption::Workers, "3", "4", "workers = 3"),
    sample(ServeOption::Sendfile, "never", "always", "sendfile = 'never'"),
    sample(ServeOption::PoolThreads, "3", "4", "pool.threads = 3"),
    sample(ServeOption::CacheFiles, "0", "4", "cache.files = 0"),
    sample(ServeOption::CacheAge, "2s", "5ms", "cache.age-ms = 2000"),
    sample(ServeOption::CacheBytes, "1K", "5", "cache.bytes = 1024"),
    sample(ServeOption::MaxConnections, "3", "4", "limits.connections = 3"),
    sample(ServeOption::MaxHeaderBytes, "1K", "5", "limits.header-bytes = 1024"),
    sample(ServeOption::MaxHeaders, "3", "4", "limits.headers = 3"),
    sample(ServeOption::MaxTarget, "1K", "5", "limits.target-bytes = 1024"),
    sample(ServeOption::MaxBody, "1K", "5", "limits.body-bytes = 1024"),
    sample(ServeOption::MaxRanges, "3", "4", "limits.ranges = 3"),
    sample(ServeOption::MaxStreams, "3", "4", "limits.streams = 3"),
    sample(ServeOption::MaxListingBytes, "1M", "2M", "limits.listing-bytes = 1048576"),
    sample(ServeOption::MaxArchives, "3", "5", "limits.archives = 3"),
    sample(ServeOption::MaxRate, "20", "0.5", "limits.requests-per-s = 20.0"),
    sample(ServeOption::MaxBurst, "3", "4", "limits.burst = 3"),
    sample(ServeOption::MaxPasswordChecks, "32", "16", "limits.password-checks = 32"),
    sample(ServeOption::MaxWrongPasswords, "5", "0", "limits.wrong-passwords-per-min = 5"),
    sample(ServeOption::MaxBuffers, "1K", "5", "limits.buffer-bytes = 1024"),
    sample(ServeOption::HeaderTimeout, "2s", "5ms", "limits.header-timeout-ms = 2000"),
    sample(ServeOption::IdleTimeout, "2s", "5ms", "limits.idle-timeout-ms = 2000"),
    sample(ServeOption::WriteTimeout, "2s", "5ms", "limits.write-timeout-ms = 2000"),
    sample(ServeOption::DrainNotice, "2s", "5ms", "limits.drain-notice-ms = 2000"),
    sample(ServeOption::Drain, "2s", "5ms", "limits.drain-timeout-ms = 2000"),
    sample(ServeOption::Health, "yes", "/b", "health = '/health'"),
    sample(ServeOption::Metrics, "yes", "/b", "metrics = '/metrics'"),
    sample(ServeOption::AccessLog, "/a", "/b", "access-log = { format = 'combined', file = '/a' }"),
    sample(ServeOption::LogFormat, "json", "combined", "access-log.format = 'json'"),
    sample(ServeOption::ErrorLog, "/a", "/b", "error-log.file = '/a'"),
];

fn given(key: ServeOption, value: &str) -> OptionArg {
    OptionArg { key, name: "--x".to_owned(), value: Some(value.into()), charset: Charset::Ascii }
}

impl OptionSample {
    /// Returns the option with its value of this number, and its companions.
    fn given(&self, number: usize) -> Vec<OptionArg> {
        let beside = self.beside.iter().map(|(key, value)| given(*key, value));
        beside.chain([given(self.key, self.values[number])]).collect()
    }

    /// Returns the variable with its value of this number.
    fn variable(&self, number: usize) -> Vec<OptionArg> {
        let name =
            FLAGS.iter().find(|flag| flag.own_key() == Some(self.key)).and_then(env::variable).unwrap();
        let get = |variable: &str| (variable == name).then(|| self.values[number].into());
        let beside = self.beside.iter().map(|(key, value)| given(*key, value));
        beside.chain(env::read(&get, Charset::Ascii)).collect()
    }

    fn file(&self) -> Config {
        Config::from_toml(self.toml).unwrap()
    }

    /// Returns whether values of several sources are combined.
    fn adds(&self) -> bool {
        matches!(
            self.key,
            ServeOption::CacheControl
                | ServeOption::Header
                | ServeOption::Hide
                | ServeOption::Deny
                | ServeOption::AuthPath
                | ServeOption::AllowFrom
                | ServeOption::DenyFrom
        )
    }
}

#[track_caller]
fn merged(file: Config, sources: &[Vec<OptionArg>]) -> Config {
    merge(file, sources).unwrap_or_else(|message| panic!("{}", String::from_utf8_lossy(&message)))
}

#[test]
fn every_option_with_a_setting_has_a_sample() {
    let with_variable: Vec<ServeOption> =
        FLAGS.iter().filter(|flag| env::variable(flag).is_some()).filter_map(Flag::own_key).collect();
    let sampled: Vec<ServeOption> =
        SAMPLES.iter().map(|sample| sample.key).chain([ServeOption::Config]).collect();
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
    let options = |words: &[(ServeOption, &str)]| {
        words.iter().map(|(key, value)| given(*key, value)).collect::<Vec<_>>()
    };
    let two = options(&[
        (ServeOption::Certificate, "a"),
        (ServeOption::CertificateSecret, "k"),
        (ServeOption::Certificate, "b"),
        (ServeOption::CertificateSecret, "l"),
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
    let three = options(&[
        (ServeOption::Certificate, "a"),
        (ServeOption::Certificate, "b"),
        (ServeOption::CertificateSecret, "k"),
    ]);
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
fn switches_can_be_turned_off() {
    for key in [
        ServeOption::Spa,
        ServeOption::Compress,
        ServeOption::Cors,
        ServeOption::Health,
        ServeOption::Metrics,
    ] {
        let found = merged(Config::default(), &[vec![given(key, "yes")], vec![given(key, "no")]]);
        assert_eq!(found, merged(Config::default(), &[]), "{key:?}");
    }
    let found = merged(
        Config::default(),
        &[vec![given(ServeOption::AccessLog, "yes")], vec![given(ServeOption::AccessLog, "no")]],
    );
    assert_eq!(found.access_log.format, Some(AccessLogFormat::Off));
    let found = merged(found, &[vec![given(ServeOption::AccessLog, "-")]]);
    assert_eq!((found.access_log.format, found.access_log.file), (Some(AccessLogFormat::Combined), None));
    let found = merged(
        Config::default(),
        &[vec![given(ServeOption::ErrorLog, "/a")], vec![given(ServeOption::ErrorLog, "-")]],
    );
    assert_eq!(found.error_log.file, None);
}

#[test]
fn a_mount_of_a_greater_source_replaces_the_directory_and_keeps_the_rules() {
    let file = "[[site.mounts]]\npath = '/a/'\nroot = '/x'\ndeny = ['b']\n[[site.mounts]]\npath = '/c'\nroot = '/x'\n";
    let options = ["/a=/y", "/d/=/z", "/a/b=/z"].map(|value| given(ServeOption::Mount, value)).to_vec();
    let mounts = merged(Config::from_toml(file).unwrap(), &[options]).site.mounts;
    let found: Vec<_> = mounts.iter().map(|mount| (mount.at(), mount.root.to_str().unwrap())).collect();
    assert_eq!(found, [("/a", "/y"), ("/c", "/x"), ("/d", "/z"), ("/a/b", "/z")]);
    assert_eq!(mounts[0].deny.as_deref(), Some(&["b".to_owned()][..]));
    // Two mounts of one path within a source are left for the check to reject.
    let twice = ["/a=/y", "/a/=/z"].map(|value| given(ServeOption::Mount, value)).to_vec();
    let config = merged(Config::default(), &[twice]);
    assert_eq!(config.check().unwrap_err().thing(), "site.mounts[1].path");
}

#[test]
fn a_port_is_for_addresses_without_one() {
    for (file, options, expected) in [
        ("", &[(ServeOption::Port, "9")][..], &["127.0.0.1:9"][..]),
        (
            "",
            &[(ServeOption::Port, "9"), (ServeOption::Listen, "::1"), (ServeOption::Listen, "127.0.0.1:1")],
            &["[::1]:9", "127.0.0.1:1"],
        ),
        ("listen = ['[::]:80']", &[(ServeOption::Port, "9")], &["127.0.0.1:9"]),
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
        (ServeOption::Listen, "nowhere"),
        (ServeOption::Listen, ","),
        (ServeOption::RedirectHttp, ""),
        (ServeOption::ErrorPage, "404"),
        (ServeOption::Listing, "perhaps"),
        (ServeOption::Explore, "perhaps"),
        (ServeOption::Mount, "/a"),
        (ServeOption::Mount, "=/a"),
        (ServeOption::Mount, "/a="),
        (ServeOption::Mount, ""),
        (ServeOption::Symlinks, "yes"),
        (ServeOption::Header, "*=X-A"),
        (ServeOption::Header, "X-A: b"),
        (ServeOption::CacheControl, "no-store"),
        (ServeOption::Auth, "u"),
        (ServeOption::Io, "aio"),
        (ServeOption::Sendfile, "maybe"),
        (ServeOption::Workers, "0"),
        (ServeOption::MaxRate, "-1"),
        (ServeOption::MaxRate, "nan"),
        (ServeOption::MaxBurst, "0"),
        (ServeOption::AuthPath, "/a"),
        (ServeOption::CleanUrls, "maybe"),
        (ServeOption::PoolThreads, "0"),
        (ServeOption::MaxConnections, "0"),
        (ServeOption::LogFormat, "csv"),
        (ServeOption::Certificate, "c"),
        (ServeOption::ClientCa, "c"),
        (ServeOption::RedirectHttp, ":80"),
    ] {
        assert!(merge(Config::default(), &[vec![given(key, value)]]).is_err(), "{key:?} {value}");
    }
}
