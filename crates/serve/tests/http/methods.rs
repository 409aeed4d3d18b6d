//! GET, HEAD, OPTIONS and unsupported methods.

use crate::support::{DATE, TestServer, Tree, prose};

fn served() -> (Tree, TestServer) {
    let tree = Tree::new(&[
        ("index.html", b"<p>index</p>"),
        ("a.txt", b"text"),
        ("empty", b""),
        ("large.html", &prose(100_000)),
        ("large.html.br", b"not really br"),
        ("list/b", b"b"),
        ("error.html", b"gone"),
    ]);
    let site = "listing = true\nprecompressed = true\ncompress = { codings = ['gzip'] }\n\
                error-pages = { 410 = '/error.html', 416 = '/error.html' }\n\
                redirects = [{ from = '/old', to = '/new' }]\ncors = { origins = ['*'] }\n";
    let served = TestServer::new(&tree, "health = '/health'\n", site);
    (tree, served)
}

#[test]
fn head_is_get_without_the_body() {
    let (_tree, served) = served();
    let etag = served.get("/a.txt").etag().to_owned();
    let conditional = [("If-None-Match", etag.as_str())];
    let failing = [("If-Match", "\"other\"")];
    for (target, fields, status) in [
        ("/", &[][..], 200),
        ("/a.txt", &[], 200),
        ("/empty", &[], 200),
        ("/large.html", &[], 200),
        ("/large.html", &[("Accept-Encoding", "br")], 200),
        ("/large.html", &[("Accept-Encoding", "gzip")], 200),
        ("/list/", &[], 200),
        ("/list/", &[("Accept", "application/json")], 200),
        ("/list", &[], 301),
        ("/old?q", &[], 308),
        ("/none", &[], 404),
        ("/none", &[("Accept", "text/html")], 404),
        ("/%", &[], 400),
        ("/a.txt", &conditional, 304),
        ("/a.txt", &[("If-Modified-Since", DATE)], 304),
        ("/a.txt", &failing, 412),
        ("/a.txt", &[("Origin", "https://a.example")], 200),
        ("/health", &[], 200),
    ] {
        let get = served.ask("GET", target, fields);
        let mut head = served.ask("HEAD", target, fields);
        assert_eq!(
            (get.status, get.body.is_empty()),
            (status, get.field("content-length").is_none_or(|len| len == "0"))
        );
        assert!(head.body.is_empty());
        head.body.clone_from(&get.body);
        assert_eq!(head.without_date(), get.without_date(), "{target} {fields:?}");
    }
}

#[test]
fn head_ends_where_its_fields_end() {
    let (_tree, served) = served();
    let mut client = served.connect();
    for _ in 0..3 {
        assert_eq!(client.ask("HEAD", "/large.html", &[]).field("content-length"), Some("100000"));
        client.get("/a.txt").is(200, b"text");
    }
}

#[test]
fn a_range_counts_with_get_alone() {
    let (_tree, served) = served();
    let head = served.ask("HEAD", "/a.txt", &[("Range", "bytes=0-0")]);
    assert_eq!((head.status, head.field("content-length")), (200, Some("4")));
}

#[test]
fn options_works_for_any_target_and_for_all() {
    let (_tree, served) = served();
    let mut client = served.connect();
    for target in ["/", "/a.txt", "/none", "*"] {
        let response = client.ask("OPTIONS", target, &[]);
        assert_eq!(response.status, 204, "{target}");
        assert_eq!(response.list("allow"), ["get", "head", "options"]);
        assert_eq!(response.field("content-length"), None, "RFC 9110, section 8.6");
    }
    for method in ["GET", "HEAD"] {
        assert_eq!(client.ask(method, "*", &[]).status, 400);
    }
}

#[test]
fn other_methods_are_refused_with_the_allowed_ones() {
    let (_tree, served) = served();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get", "X"] {
        let mut client = served.connect();
        for target in ["/a.txt", "/none"] {
            let response = client.ask(method, target, &[]);
            assert_eq!(response.status, 405, "{method}");
            assert_eq!(response.list("allow"), ["get", "head", "options"]);
        }
        client.get("/a.txt").is(200, b"text");
    }
    assert_eq!(served.ask("CONNECT", "site.example:80", &[]).status, 405);
}

#[test]
fn trace_returns_nothing_that_was_sent() {
    let (_tree, served) = served();
    let response = served.ask("TRACE", "/a.txt", &[("Cookie", "secret=1")]);
    assert!(!response.text().contains("secret"), "{response:?}");
}
