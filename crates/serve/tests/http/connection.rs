//! Connections: persistent, pipelined, closed; HTTP/1.0; bodies of requests.

use crate::support::{Client, TestServer, Tree, io, models, noise, request};

fn tree() -> Tree {
    Tree::new(&[("a", b"aa"), ("b", b"bbb"), ("empty", b"")])
}

#[test]
fn a_connection_serves_many_requests() {
    let (tree, mut last) = (tree(), None);
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    for _ in 0..50 {
        client.get("/a").is(200, b"aa");
        assert_eq!(client.get("/none").status, 404);
        client.get("/empty").is(200, b"");
        last = Some(client.get("/b"));
    }
    assert_eq!(last.unwrap().field("connection"), None);
}

#[test]
fn a_connection_with_close_is_closed() {
    let served_tree = tree();
    let served = TestServer::site(&served_tree, "");
    let mut client = served.connect();
    let response = client.ask("GET", "/a", &[("Connection", "close")]);
    assert_eq!(response.field("connection"), Some("close"));
    assert_eq!(client.rest(), b"");
}

#[test]
fn many_requests_in_one_write_are_answered_in_order() {
    let tree = tree();
    let (a, b) = (noise(300_000, 1), noise(70_001, 2));
    tree.write("large", &a);
    tree.write("middle", &b);
    let targets: [(&str, &[u8]); 5] =
        [("/a", b"aa"), ("/large", &a), ("/empty", b""), ("/middle", &b), ("/b", b"bbb")];
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        let mut client = served.connect();
        let order = |number: usize| targets[(number * number + number / 3) % targets.len()];
        let requests: Vec<u8> = (0..60).flat_map(|number| request("GET", order(number).0, &[])).collect();
        client.send(requests);
        (0..60).for_each(|number| client.receive("GET").is(200, order(number).1));
        client.get("/a").is(200, b"aa");
    }
}

/// A worker that waits for the body, or serves other connections first, would otherwise send the
/// header by itself.
#[test]
fn the_head_of_a_long_body_comes_with_it() {
    let (tree, body) = (tree(), noise(300_000, 3));
    tree.write("long", &body);
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        let ask = || {
            let mut client = served.connect();
            for _ in 0..50 {
                client.send(request("GET", "/long", &[]));
                client.more().unwrap();
                let came = client.pending();
                client.receive("GET").is(200, &body);
                // A header has some 200 bytes.
                assert!(came > 1000, "{model}: the first packet had {came} bytes");
            }
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask))));
    }
}

#[test]
fn methods_and_errors_in_one_write_are_answered_in_order() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    let methods = [("GET", 200), ("HEAD", 200), ("OPTIONS", 204), ("POST", 405)];
    client.send(methods.iter().flat_map(|(method, _)| request(method, "/b", &[])).collect::<Vec<u8>>());
    for (method, status) in methods {
        assert_eq!(client.receive(method).status, status, "{method}");
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    for byte in request("GET", "/b", &[]) {
        client.send([byte]);
    }
    client.receive("GET").is(200, b"bbb");
}

#[test]
fn a_client_that_sends_no_more_gets_its_responses() {
    let tree = tree();
    tree.write("large", &noise(2 << 20, 3));
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    client.send([request("GET", "/large", &[]), request("GET", "/b", &[])].concat());
    client.end();
    client.receive("GET").is(200, &noise(2 << 20, 3));
    client.receive("GET").is(200, b"bbb");
    assert_eq!(client.rest(), b"");
}

#[test]
fn http_1_0_needs_no_host_and_ends_unless_asked_not_to() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    client.send("GET /a HTTP/1.0\r\n\r\n");
    let response = client.receive("GET");
    response.is(200, b"aa");
    assert_eq!(client.rest(), b"");

    let mut client = served.connect();
    for _ in 0..2 {
        client.send("GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let response = client.receive("GET");
        response.is(200, b"bbb");
        assert_eq!(response.field("connection").map(str::to_lowercase).as_deref(), Some("keep-alive"));
    }
}

#[test]
fn a_host_has_to_be_said_once() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    for (fields, status) in [
        ("", 400),
        ("Host: a\r\nHost: a\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: a/b\r\n", 400),
        ("Host: a@b\r\n", 400),
        ("Host: a:port\r\n", 400),
        ("Host:\r\n", 200),
        ("Host: [::1]:80\r\n", 200),
    ] {
        let mut client = served.connect();
        client.send(format!("GET /a HTTP/1.1\r\n{fields}\r\n"));
        assert_eq!(client.receive("GET").status, status, "{fields:?}");
    }
}

#[test]
fn unknown_versions_are_refused() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    for line in [
        "GET /a HTTP/1.2",
        "GET /a HTTP/2.0",
        "GET /a HTTP/0.9",
        "GET /a",
        "GET /a http/1.1",
        "GET  /a HTTP/1.1",
    ] {
        let answer = served.raw(format!("{line}\r\nHost: a\r\n\r\n").as_bytes());
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
    }
}

/// The body of a request is no request.
#[test]
fn a_body_is_discarded() {
    let tree = tree();
    let served = TestServer::site(&tree, "");
    let body = String::from_utf8(request("GET", "/b", &[])).unwrap();
    let length = body.len().to_string();
    for method in ["GET", "POST"] {
        let mut client = served.connect();
        let head = request(method, "/a", &[("Content-Length", &length)]);
        client.send([&head[..], body.as_bytes()].concat());
        let first = client.receive(method);
        assert_eq!(first.status, if method == "GET" { 200 } else { 405 });
        no_second(&mut client);
    }
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let mut client = served.connect();
    client
        .send([&request("GET", "/a", &[("Transfer-Encoding", "chunked")])[..], chunked.as_bytes()].concat());
    client.receive("GET").is(200, b"aa");
    no_second(&mut client);
}

/// Checks that the next bytes are the response to the next request, or the end.
#[track_caller]
fn no_second(client: &mut Client) {
    let _sent = client.try_send(&request("GET", "/none", &[]));
    client.end_quietly();
    for response in crate::support::Response::all(&client.rest()) {
        assert_eq!(response.status, 404, "a body was taken for a request");
    }
}
