//! Files that `auto` sends with sendfile(2): their pages are on the way until the client has acknowledged them, and what is written to the
//! file meanwhile must not make a whole response.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::support::{Client, Served, Tree, noise, request};

/// What has been as it is for longer is sent that way.
const SETTLED: Duration = Duration::from_secs(7);
/// More than a worker keeps.
const BYTES: usize = 9 << 20;
const CONFIG: &str = "sendfile = 'always'\nmetrics = '/metrics'\n[cache]\nbody-bytes = 65536";

/// Responses of which the first bytes went by sendfile.
fn sent(served: &Served) -> u64 {
    let metrics = served.get("/metrics");
    let line = metrics
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("fathom_sources_total{source=\"sendfile\"} "));
    line.unwrap().parse().unwrap()
}

#[test]
fn what_is_sent_while_the_file_changes_is_never_whole() {
    let body = noise(BYTES, 1);
    let tree = Tree::new(&[("quiet", &body), ("moved", &body), ("written", &body), ("cut", &body)]);
    std::thread::sleep(SETTLED);
    let served = Served::new(&tree, CONFIG, "");

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
