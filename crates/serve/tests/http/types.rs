//! Media types and charsets.

use crate::support::{TestServer, Tree};

fn types(site: &str, expected: &[(&str, &str)]) {
    let tree = Tree::new(&[]);
    expected.iter().for_each(|(name, _)| tree.write(name, b"x"));
    let served = TestServer::site(&tree, site);
    let mut client = served.connect();
    for (name, expected) in expected {
        assert_eq!(client.get(&format!("/{name}")).field("content-type"), Some(*expected), "{name}");
    }
}

#[test]
fn a_type_follows_from_the_name() {
    types(
        "",
        &[
            ("a.html", "text/html; charset=utf-8"),
            ("a.HTML", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.svg", "image/svg+xml; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.wasm", "application/wasm"),
            ("a.png", "image/png"),
            ("a.mp4", "video/mp4"),
            ("a.woff2", "font/woff2"),
            ("a.tar.gz", "application/gzip"),
            ("a", "application/octet-stream"),
            ("a.unknown", "application/octet-stream"),
            ("html", "application/octet-stream"),
            ("dir.html/a", "application/octet-stream"),
            ("a.html.", "application/octet-stream"),
        ],
    );
}

#[test]
fn a_site_can_override_types() {
    types(
        "charset = 'iso-8859-1'\ntypes = { md = 'text/x-markdown', unknown = 'text/plain; charset=utf-16' }",
        &[
            ("a.html", "text/html; charset=iso-8859-1"),
            ("a.md", "text/x-markdown; charset=iso-8859-1"),
            ("a.unknown", "text/plain; charset=utf-16"),
            ("a.json", "application/json"),
        ],
    );
    types("charset = ''", &[("a.html", "text/html")]);
}
