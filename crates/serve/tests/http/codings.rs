//! Content codings: precompressed files, files compressed while serving, and their selection.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use fathom_serve::server::StartOptions;

use crate::support::{LONG, MemoryLog, Response, TestServer, Tree, config, eventually, noise, prose};

const BROWSER: &str = "gzip, deflate, br, zstd";

fn decoded(response: &Response) -> Vec<u8> {
    let (mut coded, mut body) = (response.body.as_slice(), Vec::new());
    match response.field("content-encoding") {
        None => body.clone_from(&response.body),
        Some("br") => brotli::BrotliDecompress(&mut coded, &mut body).unwrap(),
        Some("zstd") => body = zstd::decode_all(coded).unwrap(),
        Some("gzip") => drop(flate2::read::GzDecoder::new(coded).read_to_end(&mut body).unwrap()),
        Some(other) => panic!("{other}"),
    }
    body
}

/// Creates a page with precompressed siblings in all codings, and one with some.
fn siblings() -> (Tree, Vec<u8>) {
    let page = prose(20_000);
    let tree = Tree::new(&[
        ("a.html", &page),
        ("a.html.br", &fathom_serve::compress::br(&page).unwrap()),
        ("a.html.zst", &fathom_serve::compress::zstd(&page).unwrap()),
        ("a.html.gz", &fathom_serve::compress::gzip(&page).unwrap()),
        ("some.html", &page),
        ("some.html.gz", &fathom_serve::compress::gzip(&page).unwrap()),
        ("none.html", &page),
        ("orphan.html.gz", b"x"),
        ("dir.html", b"plain"),
        ("dir.html.gz/file", b"x"),
    ]);
    (tree, page)
}

#[test]
fn a_sibling_stands_for_its_file_when_the_client_takes_it() {
    let (tree, page) = siblings();
    let served = TestServer::site(&tree, "precompressed = true");
    let mut client = served.connect();
    for (target, accept, coding) in [
        ("/a.html", BROWSER, Some("br")),
        ("/a.html", "gzip", Some("gzip")),
        ("/a.html", "x-gzip", Some("gzip")),
        ("/a.html", "zstd, gzip", Some("zstd")),
        ("/a.html", "gzip;q=1, br;q=0.5", Some("gzip")),
        ("/a.html", "br;q=0, *", Some("zstd")),
        ("/a.html", "identity;q=1, br;q=0.5", None),
        ("/a.html", "deflate", None),
        ("/a.html", "br;q=0", None),
        ("/a.html", "*;q=0", None),
        ("/a.html", "", None),
        ("/some.html", BROWSER, Some("gzip")),
        ("/some.html", "br", None),
        ("/none.html", BROWSER, None),
    ] {
        let response = client.ask("GET", target, &[("Accept-Encoding", accept)]);
        let context = format!("{target}, {accept}");
        assert_eq!((response.status, response.field("content-encoding")), (200, coding), "{context}");
        assert!(decoded(&response) == page, "{context}");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"), "{context}");
        assert_eq!(response.list("vary"), ["accept-encoding"], "{context}");
    }
    let response = client.get("/a.html");
    response.is(200, &page);
    assert_eq!(response.list("vary"), ["accept-encoding"], "also where the plain file is sent");
}

#[test]
fn a_sibling_without_its_file_is_only_itself() {
    let (tree, _) = siblings();
    let served = TestServer::site(&tree, "precompressed = true");
    assert_eq!(served.get_with("/orphan.html", "Accept-Encoding", "gzip").status, 404);
    let response = served.get("/orphan.html.gz");
    response.is(200, b"x");
    assert_eq!(
        (response.field("content-encoding"), response.field("content-type")),
        (None, Some("application/gzip"))
    );
    served.get_with("/dir.html", "Accept-Encoding", "gzip").is(200, b"plain");
}

#[test]
fn each_coding_has_its_own_tag() {
    let (tree, page) = siblings();
    let served = TestServer::site(&tree, "precompressed = true\ncompress = { codings = ['gzip', 'zstd'] }");
    let mut client = served.connect();
    for target in ["/a.html", "/none.html"] {
        let mut tags = Vec::new();
        for accept in ["identity", "br", "zstd", "gzip"] {
            let encoding = ("Accept-Encoding", accept);
            let whole = client.ask("GET", target, &[encoding]);
            let same = client.ask("GET", target, &[encoding, ("If-None-Match", whole.etag())]);
            assert_eq!((same.status, same.etag()), (304, whole.etag()));
            assert_eq!(same.list("vary"), ["accept-encoding"]);
            // A part of the encoded or of the plain file, according to the tag.
            let part =
                client.ask("GET", target, &[encoding, ("Range", "bytes=1-9"), ("If-Range", whole.etag())]);
            match part.status {
                206 => {
                    part.is(206, &whole.body[1..10]);
                    assert_eq!(
                        (part.etag(), part.field("content-encoding")),
                        (whole.etag(), whole.field("content-encoding"))
                    );
                }
                _ => part.is(200, &page),
            }
            let head = client.ask("HEAD", target, &[encoding]);
            assert_eq!(
                (head.field("content-length"), head.etag()),
                (whole.field("content-length"), whole.etag())
            );
            tags.push((whole.field("content-encoding").map(str::to_owned), whole.etag().to_owned()));
        }
        let by_coding: HashMap<_, _> = tags.iter().cloned().collect();
        let distinct: HashSet<_> = tags.iter().map(|(_, tag)| tag).collect();
        assert_eq!(by_coding.len(), distinct.len(), "{tags:?}");
    }
}

#[test]
fn a_body_compressed_while_serving_is_the_file() {
    let page = prose(50_000);
    let (short, long) = (prose(1023), prose(100_001));
    let tree = Tree::new(&[
        ("a.html", &page),
        ("a.JSON", &page),
        ("a.svg", &page),
        ("a.own", &page),
        ("a.png", &page),
        ("noise.txt", &noise(50_000, 1)),
        ("short.txt", &short),
        ("long.txt", &long),
        ("exact.txt", &prose(1024)),
    ]);
    let site = "types = { own = 'application/x-own' }\n\
                compress = { codings = ['zstd', 'br', 'gzip'], max-bytes = 100000, types = ['application/x-o*'] }";
    let served = TestServer::site(&tree, site);
    let mut client = served.connect();
    for (target, coding, plain) in [
        ("/a.html", Some("zstd"), &page),
        ("/a.JSON", Some("zstd"), &page),
        ("/a.svg", Some("zstd"), &page),
        ("/a.own", Some("zstd"), &page),
        ("/exact.txt", Some("zstd"), &prose(1024)),
        ("/a.png", None, &page),
        ("/noise.txt", None, &noise(50_000, 1)),
        ("/short.txt", None, &short),
        ("/long.txt", None, &long),
    ] {
        let response = client.ask("GET", target, &[("Accept-Encoding", BROWSER)]);
        assert_eq!(response.field("content-encoding"), coding, "{target}");
        assert!(decoded(&response) == *plain, "{target}");
        assert_eq!(response.list("vary").is_empty(), target == "/a.png", "{target}");
    }
    for coding in ["br", "zstd", "gzip"] {
        let response = client.ask("GET", "/a.html", &[("Accept-Encoding", coding)]);
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert!(decoded(&response) == page);
        assert!(response.body.len() < page.len() / 2);
    }
    client.get("/a.html").is(200, &page);
}

/// A body that was compressed for one client is cached, and sent only to clients that accept the
/// coding.
#[test]
fn an_encoded_body_is_never_sent_without_its_coding_being_accepted() {
    let (tree, page) = siblings();
    let served = TestServer::new(
        &tree,
        "metrics = '/metrics'",
        "precompressed = true\ncompress = { codings = ['gzip', 'br'] }",
    );
    let mut client = served.connect();
    let mut round = || {
        for target in ["/a.html", "/some.html", "/none.html"] {
            for accept in ["br", "identity", "gzip", "zstd;q=0, *;q=0.1", "", "br;q=0, gzip"] {
                let response = client.ask("GET", target, &[("Accept-Encoding", accept)]);
                assert!(decoded(&response) == page, "{target} {accept}");
                let coding = response.field("content-encoding");
                assert!(
                    coding.is_none_or(|coding| accept.contains(coding) || accept.contains('*')),
                    "{target} {accept}"
                );
            }
            client.get(target).is(200, &page);
        }
        client.get("/metrics").text().contains("fathom_sources_total{source=\"cache\"} 0\n")
    };
    // Once before a body is cached, then until one is, and once more.
    round();
    eventually("nothing is kept", || !round());
    round();
}

#[test]
fn the_first_file_that_is_too_large_to_be_compressed_is_named() {
    let tree = Tree::new(&[
        ("a.html", &prose(5000)),
        ("b.html", &prose(6000)),
        ("small.html", &prose(2000)),
        ("c.bin", &noise(5000, 1)),
    ]);
    let lines = MemoryLog::default();
    let all = config(&tree, "", "compress = { codings = ['br'], max-bytes = 4096 }");
    let served = TestServer::with(
        &all,
        StartOptions { errors: Some(Box::new(lines.clone())), ..StartOptions::default() },
    );
    for (target, coding) in [
        ("/c.bin", None),
        ("/small.html", Some("br")),
        ("/a.html", None),
        ("/b.html", None),
        ("/a.html", None),
    ] {
        let response = served.get_with(target, "Accept-Encoding", BROWSER);
        assert_eq!((response.status, response.field("content-encoding")), (200, coding), "{target}");
    }
    assert!(served.drain(LONG));
    let text = lines.text();
    assert!(text.contains("'/a.html' has 5000 bytes") && text.contains("above 4096 bytes"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
