//! Positions and words of errors, and files that cannot be read.

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
        ("[site]\nindx = ['a']\n", "line 2, column 1: in site: unknown key 'indx', did you mean 'index'?"),
        ("\n zzzzz = 1\n", "line 2, column 2: unknown key 'zzzzz'"),
        (
            "[limits]\nranges = 'a'\n",
            "line 2, column 10: in limits.ranges: expected a whole number, found \"a\"; for example: ranges = 1",
        ),
        ("tls = 'x'\n", "line 1, column 7: in tls: expected a table, found \"x\""),
        ("site = 'x'\n", "line 1, column 8: in site: expected a table, found \"x\""),
        (
            "[site]\nlisting = 1\n",
            "line 2, column 11: in site.listing: expected true or false, found '1'; for example: listing = true",
        ),
        (
            "[site]\nindex = true\n",
            "line 2, column 9: in site.index: expected a list of file names, found 'true'; for example: index = [\"index.html\", \"index.htm\"]",
        ),
        ("[[site.rewrites]]\nfrom = '/a'\n", "line 1, column 1: in site.rewrites: missing field 'to'"),
        (
            "workers = 0\n",
            "line 1, column 11: in workers: expected a whole number of at least 1, found '0'; for example: workers = 4",
        ),
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
        ("listings = true\n", "line 1, column 1: unknown key 'listings', did you mean 'listing' in [site]?"),
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
            "line 1, column 1: unknown key 'file', which belongs in [access-log] or in [error-log] or in [site.auth]",
        ),
        (
            "[site.auth]\nrealms = ''\n",
            "line 2, column 1: in site.auth: unknown key 'realms', did you mean 'realm'?",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = ConfigFile::read(Path::new("/nonexistent/a.toml")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read '/nonexistent/a.toml': No such file or directory");
}

/// Returns the errors of a file with the content `text`, each from its line on.
fn refusals(text: &str) -> Vec<String> {
    let file = ConfigFile { path: "a.toml".into(), text: text.to_owned() };
    match file.config(Ok::<_, ()>, |_| false) {
        Err(FileRefusal::File(errors)) => errors.iter().map(Error::cause).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_that_follow_from_a_removed_entry_are_left_out() {
    for (text, expected) in [
        // Without the rate, the burst would require one.
        ("[limits]\nrequests-per-s = -1.0\nburst = 5\n[site]\nroot = '.'\n", &["line 2, column 1: "][..]),
        // Without its path, the mount would lack one.
        (
            "[site]\nroot = '.'\n[[site.mounts]]\npath = 1\nroot = '.'\n[[site.mounts]]\npath = 'b'\nroot = '.'\n",
            &["line 4, column 8: ", "line 7, column 1: "],
        ),
        // Without its addresses, the source would require them.
        (
            "[proxies]\naddresses = ['x']\nsource = 'forwarded'\n[site]\nroot = '.'\n",
            &["line 2, column 14: "],
        ),
        ("[tls]\ncertificate = 1\nkey = 'k'\n[site]\nroot = '.'\n", &["line 2, column 15: "]),
    ] {
        let found = refusals(text);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        assert!(found.iter().zip(expected).all(|(error, start)| error.starts_with(start)), "{found:?}");
    }
}

#[test]
fn a_missing_value_is_reported_at_its_table() {
    assert_eq!(
        refusals("[site]\nlisting = true\n"),
        ["line 1, column 2: in site.root: missing: the directory to serve"]
    );
    assert_eq!(refusals(""), ["missing: the directory to serve"]);
    let both = refusals("[tls]\nkey = 'k'\n[[host]]\nnames = ['a']\n");
    assert!(both[0].starts_with("line 1, column 2: in tls.certificate: missing: "), "{both:?}");
    assert!(both[1].starts_with("line 3, column 1: in host[0].root: missing: "), "{both:?}");
}

#[test]
fn syntax_errors_are_reported_with_their_lines() {
    let found = refusals("a = \n[site\nb = 1\n");
    assert!(found.len() > 1 && found[0].starts_with("line 1, "), "{found:?}");
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let text = "listen = ['unix:s', 'unix:/s', 'unix:@s', '127.0.0.1:0']\naccess-log = { file = 'a' }\n\
                error-log = { file = '/e' }\n[tls]\ncertificate = 'c'\nkey = 'k'\nclient-ca = 'd'\n\
                more = [{ certificate = 'e', key = 'f' }]\n[site]\nroot = 'r'\nauth = { file = 'u' }\n\
                maintenance = { flag-file = 'm' }\nmounts = [{ path = '/a', root = '../b', auth = { file = 'v' } }]\n\
                [[host]]\nnames = ['a']\nroot = 'h'\n";
    let mut config = Config::from_toml(text).unwrap();
    config.resolve(Path::new("/etc/x"));
    assert_eq!(config.listen, ["unix:/etc/x/s", "unix:/s", "unix:@s", "127.0.0.1:0"]);
    let path = |path: &Option<PathBuf>| path.as_ref().unwrap().display().to_string();
    let tls = config.tls.unwrap();
    let logs = [path(&config.access_log.file), path(&config.error_log.file)];
    assert_eq!(logs, ["/etc/x/a", "/e"]);
    assert_eq!(
        [path(&tls.certificate), path(&tls.key), path(&tls.client_ca)],
        ["/etc/x/c", "/etc/x/k", "/etc/x/d"]
    );
    assert_eq!([&tls.more[0].certificate, &tls.more[0].key], [Path::new("/etc/x/e"), Path::new("/etc/x/f")]);
    let mount = &config.site.mounts[0];
    assert_eq!(
        [&config.site.root, &mount.root, &config.host[0].root].map(|root| root.display().to_string()),
        ["/etc/x/r", "/etc/x/../b", "/etc/x/h"]
    );
    assert_eq!(path(&config.site.auth.as_ref().unwrap().file), "/etc/x/u");
    assert_eq!(path(&mount.auth.as_ref().unwrap().as_ref().unwrap().file), "/etc/x/v");
    assert_eq!(path(&config.site.maintenance.flag_file), "/etc/x/m");
    let mut without_root = Config::default();
    without_root.resolve(Path::new("/etc/x"));
    assert!(!without_root.site.has_root(), "the directory of the file is not published");
}
