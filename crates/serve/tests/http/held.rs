//! Files that `auto` sends with sendfile(2): their pages are referenced until the client has
//! acknowledged them. A response must not be complete if the file was written to meanwhile.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::support::{Client, TestServer, Tree, eventually, noise, request};

/// Files that have been unchanged for longer are sent with sendfile(2).
const SETTLED: Duration = Duration::from_secs(7);
/// More than a worker caches.
const BYTES: usize = 9 << 20;
const CONFIG: &str = "sendfile = 'always'\nmetrics = '/metrics'\n[cache]\nbody-bytes = 65536";

/// Returns the number of responses whose first bytes were sent with sendfile(2).
fn sent(served: &TestServer) -> u64 {
    let metrics = served.get("/metrics");
    let line = metrics
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("fathom_sources_total{source=\"sendfile\"} "));
    line.unwrap().parse().unwrap()
}

/// Elsewhere the pages of a file can be evicted at any time, as by the benchmarks with a cold cache
/// that run beside this test. So the file is asked for until it was in the page cache.
#[test]
fn a_file_in_the_page_cache_is_sent() {
    let body = noise(BYTES, 1);
    let tree = Tree::new(&[("quiet", &body)]);
    let served = TestServer::held(&tree, CONFIG, "");
    served.advance(SETTLED);
    eventually("it went another way each time", || {
        served.connect().get("/quiet").is(200, &body);
        sent(&served) > 0
    });
}

/// The files are on a filesystem in memory, which never evicts their pages.
#[test]
fn a_response_is_incomplete_if_its_file_changes_meanwhile() {
    let body = noise(BYTES, 1);
    let files = [("quiet", &body[..]), ("moved", &body), ("written", &body), ("cut", &body)];
    let Some(tree) = Tree::in_memory(&files) else {
        return eprintln!("skipped: needs a filesystem in memory at /dev/shm");
    };
    let served = TestServer::held(&tree, CONFIG, "");
    served.advance(SETTLED);

    let mut client = served.connect();
    client.get("/quiet").is(200, &body);
    let range = client.ask("GET", "/quiet", &[("range", "bytes=5-3000004")]);
    range.is(206, &body[5..3_000_005]);
    drop(client);
    assert_eq!(sent(&served), 2, "they went another way");

    let mut client = Client::connect_narrow(served.address());
    client.send(request("GET", "/moved", &[("connection", "close")]));
    assert_eq!(client.head().status, 200);
    std::fs::rename(tree.at("moved"), tree.at("elsewhere")).unwrap();
    assert!(client.rest() == body, "another name is no other content");

    for (name, change) in [
        ("written", (|file: &File| file.write_all_at(&[0; 4096], 8 << 20).unwrap()) as fn(&File)),
        ("cut", |file| file.set_len(BYTES as u64 - 1).unwrap()),
    ] {
        let mut client = Client::connect_narrow(served.address());
        client.send(request("GET", &format!("/{name}"), &[]));
        let head = client.head();
        assert_eq!(head.field("content-length"), Some(BYTES.to_string().as_str()));
        change(&File::options().write(true).open(tree.at(name)).unwrap());
        let came = client.rest();
        assert!(came.len() < BYTES, "{name}: all of it came");
    }
    assert_eq!(sent(&served), 5);
    let mut client = served.connect();
    assert_eq!(client.get("/cut").body.len(), BYTES - 1);
}
