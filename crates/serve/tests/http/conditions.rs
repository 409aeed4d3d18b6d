//! Conditional requests (RFC 9110, section 13) from the request to the status, and the validators.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{DATE, TestServer, Tree, set_mtime};

const BEFORE: &str = "Fri, 13 Feb 2009 23:31:29 GMT";
const AFTER: &str = "Fri, 13 Feb 2009 23:31:31 GMT";

#[test]
fn conditions_decide_in_the_order_of_the_rfc() {
    let tree = Tree::new(&[("a.txt", b"text")]);
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    let etag = client.get("/a.txt").etag().to_owned();
    assert!(etag.starts_with('"'), "{etag}");
    let (weak, list) = (format!("W/{etag}"), format!("\"x\", {etag}"));
    let (same, other) = (etag.as_str(), "\"other\"");
    for (fields, status) in [
        (vec![("If-Match", same)], 200),
        (vec![("If-Match", list.as_str())], 200),
        (vec![("If-Match", "*")], 200),
        (vec![("If-Match", other)], 412),
        (vec![("If-Match", weak.as_str())], 412),
        (vec![("If-Match", "")], 412),
        (vec![("If-Unmodified-Since", DATE)], 200),
        (vec![("If-Unmodified-Since", AFTER)], 200),
        (vec![("If-Unmodified-Since", BEFORE)], 412),
        (vec![("If-Unmodified-Since", "yesterday")], 200),
        (vec![("If-None-Match", same)], 304),
        (vec![("If-None-Match", weak.as_str())], 304),
        (vec![("If-None-Match", list.as_str())], 304),
        (vec![("If-None-Match", "\"x\""), ("If-None-Match", same)], 304),
        (vec![("If-None-Match", "*")], 304),
        (vec![("If-None-Match", other)], 200),
        (vec![("If-Modified-Since", DATE)], 304),
        (vec![("If-Modified-Since", AFTER)], 304),
        (vec![("If-Modified-Since", "Friday, 13-Feb-09 23:31:30 GMT")], 304),
        (vec![("If-Modified-Since", "Fri Feb 13 23:31:30 2009")], 304),
        (vec![("If-Modified-Since", BEFORE)], 200),
        (vec![("If-Modified-Since", "never")], 200),
        (vec![("If-Modified-Since", DATE), ("If-Modified-Since", DATE)], 200),
        // The condition with the higher precedence decides, and the one it replaces is ignored.
        (vec![("If-Match", same), ("If-Unmodified-Since", BEFORE)], 200),
        (vec![("If-Match", other), ("If-Unmodified-Since", DATE)], 412),
        (vec![("If-None-Match", other), ("If-Modified-Since", DATE)], 200),
        (vec![("If-None-Match", same), ("If-Modified-Since", BEFORE)], 304),
        (vec![("If-Match", other), ("If-None-Match", same)], 412),
        (vec![("If-Match", same), ("If-None-Match", same)], 304),
        (vec![("If-Unmodified-Since", BEFORE), ("If-None-Match", same)], 412),
        // All conditions are evaluated before ranges.
        (vec![("If-None-Match", same), ("Range", "bytes=0-0")], 304),
        (vec![("If-None-Match", other), ("Range", "bytes=0-0")], 206),
        (vec![("If-Match", other), ("Range", "bytes=9-")], 412),
    ] {
        let response = client.ask("GET", "/a.txt", &fields);
        assert_eq!(response.status, status, "{fields:?}");
        let of_none: Vec<_> = fields.iter().map(|(name, _)| (*name, "*")).collect();
        assert_eq!(client.ask("GET", "/none", &of_none).status, 404, "a failure goes before all conditions");
    }
}

#[test]
fn not_modified_has_the_headers_for_a_cache_and_no_others() {
    let tree = Tree::new(&[("a.html", b"<p>")]);
    let served = TestServer::site(
        &tree,
        "precompressed = true\ncache-control = [{ path = '*.html', value = 'max-age=60' }]\nheaders = [{ path = '*', set = { X-A = 'b' } }]",
    );
    let whole = served.get("/a.html");
    let response = served.get_with("/a.html", "If-None-Match", whole.etag());
    assert_eq!((response.status, response.body.as_slice()), (304, &b""[..]));
    for name in ["etag", "last-modified", "cache-control", "vary", "x-a"] {
        assert_eq!(response.field(name), whole.field(name), "{name}");
        assert!(response.field(name).is_some(), "{name}");
    }
    assert!(response.field("date").is_some());
    for name in ["content-type", "content-length", "content-range", "content-encoding"] {
        assert_eq!(response.field(name), None, "{name}");
    }
}

#[test]
fn last_modified_is_the_files_and_never_in_the_future() {
    let tree = Tree::new(&[("a", b"a"), ("old", b"b"), ("future", b"c")]);
    set_mtime(&tree.at("old"), UNIX_EPOCH + Duration::from_millis(1500));
    set_mtime(&tree.at("future"), SystemTime::now() + Duration::from_secs(1000));
    let served = TestServer::site(&tree, "");
    assert_eq!(served.get("/a").field("last-modified"), Some(DATE));
    assert_eq!(served.get("/old").field("last-modified"), Some("Thu, 01 Jan 1970 00:00:01 GMT"));
    let response = served.get("/future");
    assert_eq!(response.field("last-modified"), None, "RFC 9110, section 8.8.2.1");
    assert!(response.etag().starts_with("W/"), "a clock that is not ours");
}

/// A tag is weak while the file can still change without another mtime, and strong later.
#[test]
fn a_tag_becomes_strong_when_its_file_has_settled() {
    let tree = Tree::new(&[("a", b"aaaa")]);
    let served = TestServer::held(&tree, "", "");
    let mut client = served.connect();
    // A later second would be after the response's `Date`, which has no `Last-Modified` then.
    set_mtime(&tree.at("a"), served.wall_now());
    let young = client.get("/a");
    let range = [("Range", "bytes=0-1"), ("If-Range", young.etag())];
    let date = [("Range", "bytes=0-1"), ("If-Range", young.field("last-modified").unwrap())];
    let fields = [&[("If-None-Match", young.etag())][..], &[("If-Match", young.etag())], &range, &date];
    let statuses = fields.map(|fields| client.ask("GET", "/a", fields).status);
    assert!(young.etag().starts_with("W/\""), "{young:?}");
    assert_eq!(statuses, [304, 412, 200, 200], "neither its tag nor its date is strong");
    served.advance(Duration::from_millis(1999));
    assert!(client.get("/a").etag().starts_with("W/\""));
    served.advance(Duration::from_secs(60));
    let etag = client.get("/a").etag().to_owned();
    assert!(etag.starts_with('"'), "{etag}");
    assert_eq!(
        client.ask("GET", "/a", &[("If-None-Match", young.etag())]).status,
        200,
        "what was weak is another"
    );
    assert_eq!(client.ask("GET", "/a", &[("Range", "bytes=0-1"), ("If-Range", &etag)]).status, 206);
}

#[test]
fn copies_have_the_same_tag_unless_the_inode_counts() {
    let tree = Tree::new(&[("a", b"same"), ("b", b"same"), ("c", b"same"), ("d", b"same!")]);
    set_mtime(&tree.at("c"), UNIX_EPOCH + Duration::new(1_234_567_890, 1));
    for (site, different) in [("", 3), ("etag = 'mtime'", 3), ("etag = 'inode'", 4)] {
        let served = TestServer::site(&tree, site);
        let tags = ["/a", "/b", "/c", "/d"].map(|target| served.get(target).etag().to_owned());
        assert_eq!(tags[0] == tags[1], different == 3, "{site}");
        assert!(tags.iter().all(|tag| tag.starts_with('"')), "{site}: {tags:?}");
        assert_eq!(std::collections::HashSet::from(tags).len(), different, "{site}");
    }
}

/// While two states can share an mtime, files that replace each other have different tags.
#[test]
fn new_files_of_the_same_time_have_other_tags() {
    let tree = Tree::new(&[("a", b"one"), ("b", b"two")]);
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    ["a", "b"].iter().for_each(|name| set_mtime(&tree.at(name), later));
    let served = TestServer::site(&tree, "");
    let [a, b] = ["/a", "/b"].map(|target| served.get(target).etag().to_owned());
    assert!(a.starts_with("W/") && a != b, "{a} {b}");
}

/// Reproducible builds give all files one mtime: it says nothing about the content, so it is no
/// validator.
#[test]
fn a_time_that_builds_give_to_all_files_tells_nothing() {
    let tree = Tree::new(&[("a", b"one")]);
    let served = TestServer::new(&tree, "cache = { age-ms = 0 }\n", "");
    for seconds in [0, 1, 315_532_800, 318_211_200] {
        let mut tags = Vec::new();
        for body in [b"one", b"two"] {
            let new = tree.at("new");
            std::fs::write(&new, body).unwrap();
            set_mtime(&new, UNIX_EPOCH + Duration::from_secs(seconds));
            std::fs::rename(new, tree.at("a")).unwrap();
            let response = served.get("/a");
            response.is(200, body);
            tags.push(response.etag().to_owned());
        }
        assert_ne!(tags[0], tags[1], "{seconds}");
        served.get_with("/a", "If-None-Match", &tags[0]).is(200, b"two");
    }
}

/// Another version of this program may compress the same content to other bytes. A precompressed
/// file is an ordinary file.
#[test]
fn a_body_compressed_while_serving_has_a_weak_tag() {
    let text = crate::support::prose(5000);
    let tree = Tree::new(&[("a.txt", &text), ("b.txt", &text), ("b.txt.gz", b"packed")]);
    let served = TestServer::site(&tree, "precompressed = true\ncompress = { codings = ['gzip'] }");
    let [made, stored] =
        ["/a.txt", "/b.txt"].map(|target| served.get_with(target, "Accept-Encoding", "gzip"));
    assert_eq!([&made, &stored].map(|response| response.field("content-encoding")), [Some("gzip"); 2]);
    assert!(made.etag().starts_with("W/\"") && stored.etag().starts_with('"'), "{made:?} {stored:?}");
    assert!(served.get("/a.txt").etag().starts_with('"'), "as it is");
    let again = [("Accept-Encoding", "gzip"), ("If-None-Match", made.etag())];
    assert_eq!(served.ask("GET", "/a.txt", &again).status, 304);
    let part = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-9"), ("If-Range", made.etag())];
    assert_eq!(served.ask("GET", "/a.txt", &part).status, 200, "a part must be of the same bytes");
}
