//! Files of configuration: all errors with their lines, relative paths, the sample of contrib/, and
//! what a reload says about a restart.

use std::fs;

use crate::serve::server::{ServeDirectory, Server, until};

/// A password, hashed by bcrypt.
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
/// Two sites and a list of codings; each line of the second half has an error.
const WRONG: &str = "\
listen = ['127.0.0.1:0', 'example.org:80']
health = true
[limits]
requests-per-s = -1.0
burst = 5
streams = 0
[site]
root = 'www'
spa = true
compress = ['br', 'lzma']
try = ['/../x']
[[site.redirects]]
from = '['
to = '/b'
[[site.rewrites]]
from = '/a'
[[host]]
root = 'www'
";

#[test]
fn all_errors_of_a_file_are_reported_in_the_order_of_lines() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    fs::write(home.at("serve.toml"), WRONG).unwrap();
    let expected = [
        "line 1, column 26: in listen[1]: expected 'ADDRESS:PORT'",
        "line 2, column 10: in health: expected a path that begins with '/', found 'true'; for example: health = \"/health\"",
        "line 4, column 1: in limits.requests-per-s: expected a number of at least 0",
        "line 6, column 1: in limits.streams: must be at least 1",
        "line 9, column 1: in site: unknown key 'spa': the key is 'fallback'",
        "line 10, column 19: in site.compress: 'lzma' is not one of br, zstd, gzip",
        "line 11, column 8: in site.try[0]: expected the end of a path",
        "line 13, column 1: in site.redirects[0].from: unclosed '['",
        "line 15, column 1: in site.rewrites: missing field 'to'",
        "line 17, column 1: in host[0].names: the site has no name",
    ];
    for words in ["--config serve.toml", "--check --config serve.toml"] {
        let (status, out, errors) = home.run(words);
        assert_eq!((status, &*out), (Some(1), ""), "{errors}");
        let lines: Vec<_> = errors.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{errors}");
        for (line, expected) in lines.iter().zip(expected) {
            let start = format!("fathom serve: cannot use 'serve.toml': {expected}");
            assert!(line.starts_with(&start), "{line}\n{start}");
        }
    }
}

#[test]
fn an_error_of_an_option_is_not_an_error_of_the_file() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    fs::write(home.at("serve.toml"), "[site]\nroot = 'www'\nbase = '/app'\n").unwrap();
    let (status, _, errors) = home.run("--check --config serve.toml --base app");
    assert_eq!(status, Some(1));
    assert!(errors.starts_with("fathom serve: cannot use 'site.base': "), "{errors}");
}

#[test]
fn paths_are_relative_to_the_file() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    fs::create_dir(home.at("etc")).unwrap();
    fs::write(home.at("etc/serve.toml"), "[site]\nroot = '../www'\nmaintenance.flag-file = 'down'\n")
        .unwrap();
    let server = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --config etc/serve.toml"));
    assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
    fs::write(home.at("etc/down"), "").unwrap();
    until("the flag is seen", || (server.get("/a.txt").0 == 503).then_some(()));
    let (status, _, errors) = home.run("--check --config etc/serve.toml");
    assert_eq!((status, &*errors), (Some(0), ""));
}

#[test]
fn the_sample_file_starts() {
    let home = ServeDirectory::new();
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/fathom-serve.toml");
    let sample = fs::read_to_string(top).unwrap();
    for directory in ["app", "files", "files/staff"] {
        fs::create_dir(home.at(directory)).unwrap();
    }
    fs::write(home.at("app/index.html"), "the application").unwrap();
    fs::write(home.at("users"), format!("alice:{HASH}\n")).unwrap();
    fs::write(home.at("sample.toml"), &sample).unwrap();
    let (status, out, errors) = home.run("--check --config sample.toml");
    assert_eq!((status, &*errors), (Some(0), ""));
    for line in [
        "Configuration OK",
        "listen on 127.0.0.1:8080",
        &format!("site app.example, www.app.example: '{}'", home.shown("app")),
        &format!("site files.example: '{}'", home.shown("files")),
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
    let server = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --config sample.toml"));
    assert_eq!(server.get("/health").0, 200);
    assert_eq!(server.get("/").0, 421);

    // The keys in its comments are keys.
    let uncommented =
        |line: &str| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).map(str::to_owned);
    for line in sample.lines().filter_map(uncommented) {
        fathom_serve::Config::from_toml(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn all_keys_are_shown() {
    let home = ServeDirectory::new();
    let (status, out, errors) = home.run("--help-config");
    assert_eq!((status, &*errors), (Some(0), ""));
    assert!(out.contains("\n[limits]\n  connections = 1000\n      a whole number of at least 1 (default: 16384); --max-connections\n"), "{out}");
}

#[test]
fn a_reload_says_why_a_restart_would_fail() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let text = |more: &str| format!("listen = ['127.0.0.1:0']\n{more}[site]\nroot = 'www'\n");
    fs::write(home.at("serve.toml"), text("")).unwrap();
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    fs::write(home.at("serve.toml"), text("tls = { certificate = 'none.pem', key = 'none.pem' }\n")).unwrap();
    let said = server.reload();
    assert!(said.contains("warning: 'tls' has changed, which needs a restart\n"), "{said}");
    assert!(
        said.contains("warning: a restart would fail: cannot use certificate 'none.pem': No such file"),
        "{said}"
    );
    assert_eq!(server.get("/a.txt").0, 200);
}
