//! Limits of clients: time, connections, bytes.

use std::time::Duration;

use crate::support::{Client, TestServer, Tree, eventually, io, models, noise, request};

/// Larger than the socket buffers of both sides.
const MANY: usize = 24 << 20;

fn tree() -> Tree {
    Tree::new(&[("a", b"aa")])
}

/// The limit under test in milliseconds of the held clock.
const LIMIT: &str = "2000";
/// Half of [`LIMIT`]: a client that does something each time is within it.
const HALF: Duration = Duration::from_millis(1000);

/// Checks that `limit` ends a connection on which `bytes` were sent, and no other limit does, nor
/// the connection of a client that is within it.
#[track_caller]
fn ends(limit: &str, bytes: &[u8], answer: &str) {
    let tree = tree();
    let served = TestServer::held(&tree, &format!("limits = {{ {limit} = {LIMIT} }}\n"), "");
    let (mut client, mut other) = (served.connect(), served.connect());
    client.send(bytes);
    eventually(limit, || {
        served.advance(HALF);
        other.get("/a").is(200, b"aa");
        client.is_closed()
    });
    let text = client.rest();
    let text = String::from_utf8_lossy(&text);
    assert!(if answer.is_empty() { text.is_empty() } else { text.starts_with(answer) }, "{limit}: {text}");
}

#[test]
fn a_silent_client_is_disconnected() {
    ends("header-timeout-ms", b"", "");
}

#[test]
fn an_unfinished_request_is_disconnected() {
    ends("header-timeout-ms", b"GET /a HTTP/1.1\r\nHost: a\r\nX-A:", "");
}

#[test]
fn an_idle_client_is_disconnected() {
    ends("idle-timeout-ms", &request("GET", "/a", &[]), "HTTP/1.1 200 OK\r\n");
}

/// Single bytes do not restart the timeout.
#[test]
fn all_headers_share_one_timeout() {
    let tree = tree();
    let served = TestServer::held(&tree, &format!("limits = {{ header-timeout-ms = {LIMIT} }}\n"), "");
    let mut client = served.connect();
    client.get("/a").is(200, b"aa");
    client.send("GET /a HTTP/1.1\r\nX-A: ");
    eventually("it goes on", || {
        served.advance(HALF / 4);
        client.try_send(b"x").is_err() || client.is_closed()
    });
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let tree = tree();
    tree.write("large", &noise(MANY, 1));
    for model in models() {
        let limits = format!("limits = {{ write-timeout-ms = {LIMIT} }}\n");
        let served = TestServer::held(&tree, &format!("{}metrics = '/metrics'\n{limits}", io(model)), "");
        let mut slow = served.connect();
        slow.send(request("GET", "/large", &[]));
        slow.more().unwrap();
        eventually("it is still there", || {
            served.advance(HALF);
            served.get("/metrics").text().contains("fathom_connections 1\n")
        });
        assert!(slow.rest().len() < MANY, "{model}");
    }
}

/// A client that reads slowly but within each timeout gets the whole body, however late.
#[test]
fn a_slow_reader_gets_the_whole_body() {
    let tree = tree();
    let large = noise(1 << 20, 2);
    tree.write("large", &large);
    for model in models() {
        let limits = format!("limits = {{ idle-timeout-ms = {LIMIT}, header-timeout-ms = {LIMIT} }}\n");
        let served = TestServer::held(&tree, &format!("{}{limits}", io(model)), "");
        let mut client = Client::connect_narrow(served.address());
        client.send(request("GET", "/large", &[]));
        let mut reads = 0;
        while client.pending() < large.len() {
            served.advance(HALF);
            assert!(client.more().unwrap() > 0, "{model}: it ended after {} bytes", client.pending());
            reads += 1;
        }
        client.receive("GET").is(200, &large);
        assert!(reads > 3, "{model}: no limit was reached");
    }
}

#[test]
fn connections_beyond_the_limit_wait() {
    let tree = tree();
    let served = TestServer::new(&tree, "limits = { connections = 2 }\n", "");
    let (mut first, mut second, mut third) = (served.connect(), served.connect(), served.connect());
    first.get("/a").is(200, b"aa");
    second.get("/a").is(200, b"aa");
    third.send(request("GET", "/a", &[]));
    for _ in 0..20 {
        first.get("/a").is(200, b"aa");
        second.get("/a").is(200, b"aa");
    }
    drop(first);
    third.receive("GET").is(200, b"aa");
}

#[test]
fn an_address_has_so_many_connections_and_further_ones_are_closed() {
    let tree = tree();
    let limits = "limits = { connections-per-address = 2 }\n";
    let served = TestServer::new(&tree, limits, "");
    // Workers accept connections in any order, so the first two are answered before the third.
    let mut first = served.connect();
    first.get("/a").is(200, b"aa");
    let mut second = served.connect();
    second.get("/a").is(200, b"aa");
    let mut third = served.connect();
    eventually("it is closed without an answer", || third.is_closed());
    // One that ends makes room.
    drop(first);
    eventually("there is room", || {
        let mut next = served.connect();
        let sent = next.try_send(&request("GET", "/a", &[]));
        sent.is_ok() && next.try_receive().is_ok_and(|response| response.status == 200)
    });
    second.get("/a").is(200, b"aa");
    // The clients behind a trusted proxy are not one client.
    let proxies = "proxies = { addresses = ['127.0.0.0/8'], source = 'x-forwarded-for' }\n";
    let served = TestServer::new(&tree, &format!("{limits}{proxies}"), "");
    let mut all: Vec<_> = (0..5).map(|_| served.connect()).collect();
    all.iter_mut().for_each(|client| client.get("/a").is(200, b"aa"));
}

#[test]
fn requests_have_a_size() {
    let tree = tree();
    let served = TestServer::new(
        &tree,
        "limits = { header-bytes = 4096, headers = 10, target-bytes = 100, body-bytes = 1000 }\n",
        "",
    );
    let long = |len: usize| "x".repeat(len);
    let fields = |count: usize| vec![("X-A", "b"); count];
    let status = |target: &str, fields: &[(&str, &str)]| served.ask("GET", target, fields).status;
    assert_eq!(status("/a", &[("X-A", &long(3900))]), 200);
    assert_eq!(status("/a", &[("X-A", &long(4096))]), 431);
    assert_eq!(status("/a", &[("X-A", &long(200_000))]), 431);
    assert_eq!(status("/a", &fields(9)), 200);
    assert_eq!(status("/a", &fields(10)), 431, "with Host");
    assert_eq!(status(&format!("/a?{}", long(97)), &[]), 200);
    assert_eq!(status(&format!("/a?{}", long(98)), &[]), 414);
    assert_eq!(status(&format!("/{}", long(99)), &[]), 404);
    let refused = served.ask("GET", "/a", &[("Content-Length", "1001")]);
    assert_eq!((refused.status, refused.field("connection")), (413, Some("close")));
    for length in ["18446744073709551615", "18446744073709551616", "-1", "+1", "0x1", "1 1", "1,2"] {
        let answer = served.raw(&request("GET", "/a", &[("Content-Length", length)]));
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{length}: {answer}");
    }
    let mut client = served.connect();
    client.send([&request("POST", "/a", &[("Content-Length", "1000")])[..], long(1000).as_bytes()].concat());
    assert_eq!(client.receive("POST").status, 405);
}

/// A response that explains why a body was refused has to arrive while the client is still sending.
#[test]
fn a_client_learns_that_its_body_is_too_long() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    for len in [100_000, 3_000_000] {
        let mut client = served.connect();
        client.send(request("POST", "/a", &[("Content-Length", &len.to_string())]));
        let _sent = client.try_send(&noise(len, 3));
        assert_eq!(client.receive("POST").status, 413, "{len}");
    }
}
