//! Clean URLs: files are found without the suffix of their names.

use crate::support::{TestServer, Tree};

fn tree() -> Tree {
    Tree::new(&[
        ("index.html", b"home"),
        ("about.html", b"about"),
        ("both.html", b"file"),
        ("both/index.html", b"index"),
        ("dir/index.html", b"dir"),
        ("dir/page.html", b"page"),
        ("own", b"own"),
        ("own.html", b"html"),
        ("bare/x", b"x"),
        ("404.html", b"none"),
    ])
}

#[test]
fn a_path_without_a_file_finds_one() {
    let tree = tree();
    let served = TestServer::site(&tree, "clean-urls = 'yes'");
    for (target, body) in [
        ("/about", "about"),
        ("/about.html", "about"),
        ("/both", "file"),
        ("/both/", "index"),
        ("/dir", "dir"),
        ("/dir/", "dir"),
        ("/dir/page", "page"),
        ("/own", "own"),
        ("/", "home"),
    ] {
        let response = served.get(target);
        response.is(200, body.as_bytes());
    }
    assert_eq!(served.get("/about").field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(served.get_with("/about", "Range", "bytes=1-2").body, b"bo");
    for target in ["/none", "/about/", "/about/x", "/own/", "/.html"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }
    assert_eq!(served.get("/bare").status, 301, "a directory without an index is a directory");
    let without = TestServer::site(&tree, "");
    assert_eq!((without.get("/about").status, without.get("/dir").status), (404, 301));
}

#[test]
fn other_addresses_lead_to_the_clean_one() {
    let tree = tree();
    let served =
        TestServer::site(&tree, "clean-urls = 'redirect'\nrewrites = [{ from = '/app/**', to = '/$1' }]");
    for (target, location) in [
        ("/about.html", "about"),
        ("/about.html?q=1", "about?q=1"),
        ("/index.html", "./"),
        ("/dir", "dir/"),
        ("/dir/index.html", "./"),
        ("/dir/page.html", "page"),
        ("/about/", "../about"),
        ("/dir/page/", "../page"),
        ("/app/dir/page.html", "page"),
    ] {
        let response = served.get(target);
        assert_eq!((response.status, response.field("location")), (301, Some(location)), "{target}");
    }
    // A clean address that is the name of another file is not redirected to, and no redirect loops.
    for (target, body) in [
        ("/about", "about"),
        ("/", "home"),
        ("/dir/", "dir"),
        ("/own", "own"),
        ("/own.html", "html"),
        ("/both", "file"),
        ("/both/", "index"),
    ] {
        served.get(target).is(200, body.as_bytes());
    }
    assert_eq!(served.get("/none/").status, 404);
}

#[test]
fn suffixes_are_tried_in_their_order_and_before_the_fallback() {
    let tree = tree();
    let served = TestServer::site(&tree, "try = ['/index.html', '.html']\nfallback = '/404.html'");
    served.get("/both").is(200, b"index");
    served.get("/about").is(200, b"about");
    served.get("/none").is(200, b"none");
}
