//! Listings of large directories: their effect on other requests, paging, compression and limits.

use std::fs::{self, File};
use std::io::Read;
use std::thread;
use std::time::Instant;

use crate::support::{Client, LONG, Response, TestServer, Tree, request};

/// The maximum entries of a listing.
const ENTRIES: usize = 100_000;
const PAGE: usize = 10_000;
const CLIENTS: usize = 32;

/// Creates a directory `large` with `entries` empty files, beside a file `hot`.
fn tree(entries: usize) -> Tree {
    let tree = Tree::new(&[("hot", b"hot")]);
    fs::create_dir(tree.at("large")).unwrap();
    (0..entries).for_each(|entry| drop(File::create(tree.at(&format!("large/{entry:06}"))).unwrap()));
    tree
}

/// Returns the value of a metric.
fn metric(client: &mut Client, name: &str) -> u64 {
    let metrics = client.get("/metrics");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// One worker: if it read, sorted or formatted directories itself, it would answer no request
/// meanwhile. The test queries the metrics before and after a hot request, so none of the three
/// requests was delayed by a listing.
#[test]
fn hot_requests_are_answered_while_large_directories_are_read() {
    let tree = tree(ENTRIES);
    // On a loaded machine the low-priority pool takes long for a page.
    let top = "metrics = '/metrics'\nlimits = { idle-timeout-ms = 3_600_000, write-timeout-ms = 3_600_000 }";
    let served = TestServer::new(&tree, top, "listing = true");
    let mut hot = served.connect();
    let (start, mut during, mut round) = (Instant::now(), 0, 0);
    while during < 20 {
        assert!(start.elapsed() < 2 * LONG, "{during} requests were answered beside a reading");
        round += 1;
        let connect = |_| Client::connect_patient(served.address());
        let mut clients: Vec<Client> = (0..CLIENTS).map(connect).collect();
        for client in &mut clients {
            client.send(request("GET", &format!("/large/?page={}", round % 10 + 1), &[]));
        }
        let reads = "fathom_listing_reads_total";
        let before = metric(&mut hot, reads);
        // A reading may begin late and end soon: it is looked for until the last page is there.
        let pages = thread::spawn(move || -> Vec<Response> {
            clients.iter_mut().map(|client| client.receive("GET")).collect()
        });
        while !pages.is_finished() {
            let is_reading = metric(&mut hot, "fathom_listing_reads") > 0;
            hot.get("/hot").is(200, b"hot");
            during += usize::from(is_reading && metric(&mut hot, "fathom_listing_reads") > 0);
        }
        let bodies = pages.join().unwrap();
        assert_eq!((bodies[0].status, bodies[0].text().matches("<tr><td><a href=\"./").count()), (200, PAGE));
        assert!(bodies.iter().all(|body| body.body == bodies[0].body), "all have the same page");
        assert!(metric(&mut hot, reads) - before < CLIENTS as u64, "each client had a reading of its own");
    }
}

#[test]
fn a_page_has_ten_thousand_entries_and_programs_find_the_next() {
    let tree = tree(PAGE + 1);
    let served = TestServer::site(&tree, "listing = true");
    let mut client = served.connect();
    let json = |response: Response| serde_json::from_slice::<serde_json::Value>(&response.body).unwrap();
    let first = json(client.ask("GET", "/large/?order=desc", &[("Accept", "application/json")]));
    let entries = |page: &serde_json::Value| page["entries"].as_array().unwrap().len();
    assert_eq!(
        (entries(&first), &first["complete"], &first["total"]),
        (PAGE, &false.into(), &(PAGE + 1).into())
    );
    let next = first["next"].as_str().unwrap();
    let last = json(client.ask("GET", &format!("/large/{next}"), &[("Accept", "application/json")]));
    assert_eq!(
        (entries(&last), &last["entries"][0]["name"], &last["next"]),
        (1, &"000000".into(), &().into())
    );
    assert_eq!(client.get("/large/?page=3").status, 404);

    // A page that is longer than one piece, with the length that HEAD announces.
    let page = client.get("/large/");
    assert!(page.body.len() > 10 * (64 << 10));
    let head = client.ask("HEAD", "/large/", &[]);
    assert_eq!(head.field("content-length"), page.field("content-length"));
    let filtered = client.get("/large/?filter=00123");
    assert_eq!(filtered.text().matches("<tr><td><a href=\"./").count(), 11, "{}", filtered.text());
}

/// A listing shows a README only if a request for the file would return it.
#[test]
fn a_readme_is_shown_as_text_if_its_client_may_request_it() {
    let tree = Tree::new(&[
        ("d/README.md", b"# <script>alert(1)</script>\n\tcode"),
        ("../README", b"outside"),
        ("f/x", b"x"),
    ]);
    tree.link("../README", "README");
    tree.link("../d/README.md", "e/readme.txt");
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.at("f/README"), rustix::fs::Mode::from_raw_mode(0o600))
        .unwrap();
    let served = TestServer::site(&tree, "listing = true");
    let shown = "<pre>\n# &lt;script&gt;alert(1)&lt;/script&gt;\n\tcode</pre>";
    for (target, is_shown) in
        [("/d/", true), ("/e/", true), ("/", false), ("/f/", false), ("/d/?filter=r", false)]
    {
        let page = served.get(target);
        assert_eq!((page.status, page.text().contains(shown)), (200, is_shown), "{target}");
        assert!(!page.text().contains("outside"));
    }
    let never = TestServer::site(&tree, "listing = true\nsymlinks = 'never'");
    assert!(!never.get("/e/").text().contains("<pre>"));
}

#[test]
fn a_listing_is_compressed_as_other_bodies_are() {
    let tree = tree(2000);
    let served =
        TestServer::site(&tree, "listing = true\ncompress = { codings = ['gzip'], max-bytes = 4096 }");
    let plain = served.get("/large/");
    assert_eq!(
        (plain.field("content-encoding"), plain.list("vary")),
        (None, vec!["accept".into(), "accept-encoding".into()])
    );
    let coded = served.get_with("/large/", "Accept-Encoding", "br, gzip");
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    assert_eq!(coded.list("vary"), ["accept", "accept-encoding"]);
    assert!(coded.body.len() < plain.body.len() / 5);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&coded.body[..]).read_to_end(&mut text).unwrap();
    assert!(text == plain.body);
    // Too short to be compressed, and without an accepted coding.
    let short = served.get_with("/large/?filter=none", "Accept-Encoding", "br");
    assert_eq!(short.field("content-encoding"), None);
    assert_eq!(
        TestServer::site(&tree, "listing = true")
            .get_with("/large/", "Accept-Encoding", "gzip")
            .field("content-encoding"),
        None
    );
}

#[test]
fn a_listing_that_alone_is_beyond_the_memory_limit_is_answered_501() {
    let tree = tree(5000);
    let top = "metrics = '/metrics'\nlimits = { listing-bytes = 200_000 }";
    let served = TestServer::new(&tree, top, "listing = true");
    let mut client = served.connect();
    let refused = client.get("/large/");
    assert_eq!((refused.status, refused.field("retry-after")), (501, None));
    assert_eq!(client.get("/").status, 200, "a small one fits");
    client.get("/hot").is(200, b"hot");
    drop(client);
    crate::support::eventually("nothing is held", || {
        metric(&mut served.connect(), "fathom_listing_bytes") == 0
    });
}

/// Once, the filter looked at the entries that were read, in the order of the filesystem: it said
/// that none matches, of a file that was there.
#[test]
fn a_filter_looks_at_all_names_of_a_large_directory() {
    let Some(tree) = Tree::in_memory(&[("large/needle-first", b"a")]) else {
        return eprintln!("skipped: needs a filesystem in memory at /dev/shm");
    };
    for number in 0..ENTRIES {
        fs::hard_link(tree.at("large/needle-first"), tree.at(&format!("large/{number}"))).unwrap();
    }
    fs::hard_link(tree.at("large/needle-first"), tree.at("large/needle-last")).unwrap();
    let served = TestServer::site(&tree, "listing = true");
    let json = |target: &str| served.get_with(target, "Accept", "application/json");
    let all = json("/large/");
    assert!(
        all.text().contains(&format!("\"total\":{ENTRIES},\"complete\":false")),
        "{}",
        &all.text()[..200]
    );
    let found = json("/large/?filter=NEEDLE-");
    assert!(found.text().contains("\"total\":2,\"complete\":true"), "{}", found.text());
    let page = served.get("/large/?filter=needle-l");
    assert!(page.text().contains("<p>1 entry matches the filter</p>"), "{}", page.text());
    let page = served.get("/large/");
    let said = "<p>100000 entries were read and sorted; there are more, which only the filter searches</p>";
    assert!(page.text().contains(said), "{}", &page.text()[..2000]);
}
