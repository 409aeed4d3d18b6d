//! Directories, single-page applications, error pages, hidden names, symbolic links.

use std::os::unix::net::UnixListener;

use crate::support::{TestServer, Tree};

#[test]
fn an_index_stands_for_its_directory() {
    let tree = Tree::new(&[
        ("index.html", b"top"),
        ("a/index.htm", b"second"),
        ("both/index.htm", b"second"),
        ("both/index.html", b"first"),
        ("dir/index.html/x", b"x"),
        ("dir/index.htm", b"after the directory"),
        ("none/x", b"x"),
    ]);
    let served = TestServer::site(&tree, "index = ['index.html', 'index.htm']");
    for (target, body) in [
        ("/", "top"),
        ("/?q", "top"),
        ("/a/", "second"),
        ("/both/", "first"),
        ("/dir/", "after the directory"),
    ] {
        let response = served.get(target);
        response.is(200, body.as_bytes());
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
    }
    for target in ["/none/", "/index.html/", "/a/index.htm/", "/missing/"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }
    assert_eq!(TestServer::site(&tree, "index = []").get("/").status, 404);
}

#[test]
fn a_directory_without_its_slash_is_elsewhere() {
    let tree = Tree::new(&[("a/b/x", b"x"), ("odd %?#\\\"<é/x", b"x"), ("file", b"x")]);
    let served = TestServer::site(&tree, "listing = true");
    for (target, location) in [
        ("/a", "a/"),
        ("/a/b", "b/"),
        ("/a?x=1&y=%2f", "a/?x=1&y=%2f"),
        ("/%61", "a/"),
        ("/odd%20%25%3F%23%5C%22%3C%C3%A9", "odd%20%25%3F%23%5C%22%3C%C3%A9/"),
    ] {
        let response = served.get(target);
        assert_eq!((response.status, response.field("location")), (301, Some(location)), "{target}");
        assert_eq!(response.field("content-length"), Some("0"));
        let parent = target.split('?').next().unwrap().rsplit_once('/').unwrap().0;
        assert_eq!(served.get(&format!("{parent}/{location}")).status, 200, "{location}");
    }
    // CVE-2026-39406 and similar: no location begins with two slashes, which would name another
    // host.
    for target in ["//a", "//evil.example/a", "///a", "/%2fa", "/\\evil.example", "//evil.example/%2e%2e/a"] {
        let response = served.get(target);
        assert!(matches!(response.status, 400 | 404), "{target}: {response:?}");
        assert_eq!(response.field("location"), None);
    }
}

/// Redirects keep a prefix that a proxy (`/app/`) or a rewrite has removed.
#[test]
fn a_redirect_to_a_directory_keeps_the_prefix() {
    let tree = Tree::new(&[("dir/sub/index.html", b"index")]);
    let rewrites = "rewrites = [{ from = '/app/**', to = '/$1' }, { from = '/short', to = '/dir/sub' }]";
    let served = TestServer::site(&tree, rewrites);
    for (target, location) in
        [("/dir", "dir/"), ("/app/dir", "dir/"), ("/app/dir/sub?q", "sub/?q"), ("/short", "dir/sub/")]
    {
        let response = served.get(target);
        assert_eq!((response.status, response.field("location")), (301, Some(location)), "{target}");
    }
    served.get("/app/dir/sub/").is(200, b"index");
}

#[test]
fn a_listing_comes_as_a_page_or_as_json() {
    let tree = Tree::new(&[("d/b10", b"1234567"), ("d/b2", b"12"), ("d/.hidden", b"x"), ("d/sub/x", b"x")]);
    let served = TestServer::site(&tree, "listing = true");
    let page = served.get_with("/d/", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    assert_eq!((page.status, page.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.field("content-security-policy").unwrap().starts_with("default-src 'none'"), "{page:?}");
    assert_eq!(
        (page.list("vary"), page.field("cache-control")),
        (vec!["accept".to_owned()], Some("no-cache"))
    );
    let places: Vec<_> =
        ["./sub/", "./b2", "./b10"].map(|href| page.text().find(&format!("href=\"{href}\""))).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(!page.text().contains("hidden") && !page.text().contains("<script"));

    let by_size = served.get("/d/?sort=size&order=desc");
    let at = |href: &str| by_size.text().find(&format!("href=\"{href}\"")).unwrap();
    assert!(at("./b10") < at("./b2"));

    let json = served.get_with("/d/", "Accept", "application/json");
    assert_eq!((json.status, json.field("content-type")), (200, Some("application/json")));
    let value: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!((&value["path"], &value["complete"]), (&"/d/".into(), &true.into()));
    let entries: Vec<_> = value["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["name"].as_str().unwrap(), e["size"].as_u64()))
        .collect();
    assert_eq!(entries, [("sub", None), ("b2", Some(2)), ("b10", Some(7))]);
    assert_eq!(value["entries"][1]["modified"], "2009-02-13T23:31:30Z");

    let unlisted = TestServer::site(&tree, "");
    unlisted.get("/d/").is(404, b"404 Not Found\n");
    let page = unlisted.get_with("/d/", "Accept", "text/html");
    assert_eq!((page.status, page.list("vary")), (404, vec!["accept".to_owned()]));
    assert!(
        page.text().contains("fathom serve --listing") && page.field("content-security-policy").is_some()
    );
    assert!(!unlisted.get_with("/none/", "Accept", "text/html").text().contains("--listing"));
    let own = TestServer::site(&tree, "error-pages = { 4xx = '/d/b2' }");
    own.get_with("/d/", "Accept", "text/html").is(404, b"12");
    assert_eq!(
        TestServer::site(&tree, "listing = true\ndotfiles = true")
            .get("/d/")
            .text()
            .matches("./.hidden")
            .count(),
        1
    );
}

#[test]
fn a_program_that_routes_in_the_browser_gets_its_page() {
    let tree = Tree::new(&[("app.html", b"app"), ("a.js", b"js"), ("dir/x", b"x")]);
    let served = TestServer::site(&tree, "fallback = '/app.html'");
    let browser = [("Accept", "text/html,*/*;q=0.8")];
    for target in ["/", "/users/1", "/dir/", "/users/1?x"] {
        let response = served.get(target);
        response.is(200, b"app");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(served.get_with(target, "If-None-Match", response.etag()).status, 304);
        assert!(response.list("vary").is_empty(), "{target}");
    }
    let dotted = served.ask("GET", "/users/john.doe", &browser);
    dotted.is(200, b"app");
    assert_eq!(dotted.list("vary"), ["accept"], "others get nothing");
    served.get("/a.js").is(200, b"js");
    for target in ["/missing.js", "/missing.css?x"] {
        let missing = served.get_with(target, "Accept", "*/*");
        assert_eq!(
            (missing.status, missing.list("vary")),
            (404, vec!["accept".to_owned()]),
            "a missing script is no page"
        );
    }
    assert_eq!(served.ask("POST", "/users/1", &[]).status, 405);
    assert_eq!(TestServer::site(&tree, "fallback = '/missing.html'").get("/users").status, 404);
}

#[test]
fn errors_have_the_sites_pages_or_our_own() {
    let tree = Tree::new(&[
        ("404.html", b"<h1>nothing</h1>"),
        ("other.txt", b"some error"),
        ("a", b"a"),
        ("dir/x", b"x"),
    ]);
    let served =
        TestServer::site(&tree, "error-pages = { 404 = '/404.html', 4xx = '/other.txt', 5xx = '/missing' }");
    let response = served.get("/none");
    response.is(404, b"<h1>nothing</h1>");
    assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
    for name in ["etag", "last-modified", "accept-ranges"] {
        assert_eq!(response.field(name), None, "{name}");
    }
    assert_eq!(response.field("cache-control"), Some("no-store"));
    served.ask("GET", "/none", &[("Range", "bytes=0-1")]).is(404, b"<h1>nothing</h1>");
    served.get_with("/a", "If-Match", "\"x\"").is(412, b"some error");
    served.get_with("/a", "Range", "bytes=9-").is(416, b"some error");
    served.get("/%zz").is(400, b"some error");

    let plain = TestServer::site(&tree, "");
    plain.get("/none").is(404, b"404 Not Found\n");
    assert_eq!(plain.get("/none").field("content-type"), Some("text/plain; charset=utf-8"));
    let page = plain.get_with("/none", "Accept", "text/html");
    assert_eq!((page.status, page.field("content-type")), (404, Some("text/html; charset=utf-8")));
    assert_eq!(
        (page.list("vary"), response.list("vary").len()),
        (vec!["accept".to_owned()], 0),
        "the site's own is for all"
    );
    assert!(
        page.text().contains("<h1>404 Not Found</h1>") && page.field("content-security-policy").is_some()
    );
    // An error page that no longer exists causes no further error.
    let served = TestServer::site(&tree, "error-pages = { 404 = '/gone.html' }");
    served.get("/none").is(404, b"404 Not Found\n");
}

#[test]
fn names_that_begin_with_a_dot_are_hidden() {
    let files: [(&str, &[u8]); 6] = [
        (".env", b"secret"),
        (".git/config", b"secret"),
        ("a/.b/c", b"secret"),
        (".well-known/security.txt", b"public"),
        (".well-known/.x", b"secret"),
        ("a/.well-known/x", b"secret"),
    ];
    let tree = Tree::new(&files);
    let served = TestServer::site(
        &tree,
        "listing = true\nprecompressed = true\nrewrites = [{ from = '/r', to = '/.env' }]",
    );
    for target in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.git/",
        "/.git",
        "/a/.b/c",
        "/a/%2Eb/c",
        "/.well-known/.x",
        "/a/.well-known/x",
        "/r",
    ] {
        let response = served.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert_eq!(
            response.without_date().fields,
            served.get("/nothing").without_date().fields,
            "as what is not there"
        );
    }
    served.get("/.well-known/security.txt").is(200, b"public");
    let open = TestServer::site(&tree, "dotfiles = true");
    for (path, bytes) in files {
        open.get(&format!("/{path}")).is(200, bytes);
    }
}

/// Each policy with a symbolic link at each position of a path.
#[test]
fn links_are_followed_as_the_site_has_it() {
    let tree = Tree::new(&[
        ("file", b"inside"),
        ("dir/file", b"inside"),
        ("../out/file", b"outside"),
        ("i/x", b"x"),
        ("z.txt", b"plain"),
    ]);
    tree.link("file", "in");
    tree.link("dir", "in-dir");
    tree.link("../file", "dir/up");
    tree.link("in-dir/up", "chain");
    tree.link("../out/file", "out");
    tree.link("../out", "out-dir");
    tree.link(tree.at("../out/file"), "absolute");
    tree.link(tree.at("file"), "absolute-in");
    tree.link("../file", "i/index.html");
    tree.link("none", "broken");
    tree.link("loop", "loop");
    tree.link(tree.at("dir"), "absolute-dir");
    tree.link(tree.at("absolute-dir/up"), "absolute-chain");
    let inside = [
        "/in",
        "/in-dir/file",
        "/dir/up",
        "/chain",
        "/i/",
        "/absolute-in",
        "/absolute-dir/file",
        "/absolute-chain",
    ];
    let outside = ["/out", "/out-dir/file", "/absolute"];
    for (policy, inside_status, outside_status) in
        [("within", 200, 404), ("never", 404, 404), ("follow", 200, 200)]
    {
        let served = TestServer::site(&tree, &format!("symlinks = '{policy}'"));
        served.get("/file").is(200, b"inside");
        for (targets, status, body) in
            [(&inside[..], inside_status, "inside"), (&outside[..], outside_status, "outside")]
        {
            for target in targets {
                let response = served.get(target);
                assert_eq!(response.status, status, "{policy}: {target}");
                assert_eq!(response.text() == body, status == 200, "{policy}: {target}");
            }
        }
        for target in ["/broken", "/loop", "/loop/x", "/broken/"] {
            assert_eq!(served.get(target).status, 404, "{policy}: {target}");
        }
    }
    assert_eq!(TestServer::site(&tree, "").get("/out").status, 404, "'within' is the default");
}

/// Each entry of a listing can be requested, and the listing includes each link that can be
/// followed.
#[test]
fn a_listing_has_the_links_that_can_be_opened() {
    let tree = Tree::new(&[("file", b"1234"), ("dir/x", b"x"), ("../out/file", b"outside")]);
    tree.link(tree.at("file"), "absolute");
    tree.link(tree.at("dir"), "absolute-dir");
    tree.link("absolute", "chain");
    tree.link("file", "relative");
    tree.link(tree.at("../out/file"), "out");
    tree.link("../out/file", "out-relative");
    tree.link(tree.at("none"), "broken");
    tree.link("/etc/passwd", "far");
    for model in crate::support::models() {
        for (policy, links) in [("within", true), ("never", false)] {
            let site = format!("listing = true\nsymlinks = '{policy}'");
            let served = TestServer::new(&tree, &crate::support::io(model), &site);
            let json = served.ask("GET", "/", &[("Accept", "application/json")]);
            let json: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
            let entries = json["entries"].as_array().unwrap();
            let mut listed: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
            listed.sort_unstable();
            let all = ["absolute", "absolute-dir", "chain", "dir", "file", "relative"];
            assert_eq!(listed, if links { &all[..] } else { &["dir", "file"] }, "{model}, {policy}");
            for target in ["/absolute", "/chain", "/relative", "/absolute-dir/x", "/absolute-dir/"] {
                let status = if links { 200 } else { 404 };
                assert_eq!(served.get(target).status, status, "{model}, {policy}: {target}");
            }
            for target in ["/out", "/out-relative", "/broken", "/far"] {
                assert_eq!(served.get(target).status, 404, "{model}, {policy}: {target}");
            }
        }
    }
}

/// Reading a fifo waits for a writer, opening a socket fails with a specific error, and root may
/// open a device: all three are refused alike.
#[test]
fn special_files_are_refused() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let tree = Tree::new(&[("dir/x", b"x"), ("index/x", b"x")]);
    let _socket = UnixListener::bind(tree.at("socket")).unwrap();
    let make =
        |name: &str, kind| mknodat(CWD, tree.at(name), kind, Mode::from_raw_mode(0o600), makedev(7, 0));
    make("fifo", FileType::Fifo).unwrap();
    make("index/index.html", FileType::Fifo).unwrap();
    make("clean.html", FileType::Fifo).unwrap();
    let _clean = UnixListener::bind(tree.at("plug.html")).unwrap();
    let mut special = vec!["/fifo", "/socket", "/index/"];
    match make("block", FileType::BlockDevice).and_then(|()| make("char", FileType::CharacterDevice)) {
        Ok(()) => special.extend(["/block", "/char"]),
        Err(errno) => eprintln!("skipped: devices: {errno}"),
    }
    for model in crate::support::models() {
        let served = TestServer::new(&tree, &crate::support::io(model), "listing = true");
        for target in &special {
            (0..3).for_each(|_| assert_eq!(served.get(target).status, 403, "{model}: {target}"));
        }
        let clean = TestServer::new(&tree, &crate::support::io(model), "clean-urls = 'yes'");
        for target in ["/clean", "/plug"] {
            assert_eq!(clean.get(target).status, 403, "{model}: {target}");
        }
        for target in ["/fifo/", "/socket/x"] {
            assert_eq!(served.get(target).status, 404, "{model}: {target}");
        }
        let listing = served.get("/");
        assert!(!listing.text().contains("./fifo") && listing.text().contains("fifo"), "shown, and no link");
    }
}
