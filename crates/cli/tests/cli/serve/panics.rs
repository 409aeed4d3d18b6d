//! Injected panics (`FATHOM_FAULT`): each ends one connection, one call or one worker, is counted
//! and logged, and everything else goes on.

use std::io::{Read, Write};

use rustix::process::Signal;

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server, bytes, finish, until};
use crate::support::skip;

/// Returns a server of `a.txt` and `long.bin` with one worker, which panics at `fault`; `None` if
/// the build has no points to panic at.
fn faulty(home: &ServeDirectory, fault: &str, words: &str) -> Option<Server> {
    if !cfg!(debug_assertions) {
        skip("needs a build with debug assertions, which has points to panic at");
        return None;
    }
    home.file("a.txt", b"here");
    home.file("long.bin", &bytes(1 << 20));
    let mut command = home.command(&format!("-l 127.0.0.1:0 --workers 1 --metrics {words} www"));
    command.env("FATHOM_FAULT", format!("{fault}:PANIC"));
    Some(Server::start(home, &mut command).that_panics())
}

/// Sends a request for `path` that closes the connection. Returns the bytes of the response.
fn response(server: &Server, path: &str) -> Vec<u8> {
    let mut stream = server.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    // A connection with unread input is reset, which is an end as well.
    let _reset = stream.read_to_end(&mut bytes);
    bytes
}

/// Asserts that one panic of `ended` is logged and counted, that nothing else is open, and that the
/// server serves and ends as usual.
fn goes_on(mut server: Server, ended: &str, point: &str) {
    for _ in 0..3 {
        assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
    }
    let line = format!("fathom serve: a bug has ended {ended}: it panicked: injected at '{point}'\n");
    until("it is logged", || server.err().contains(&line).then_some(()));
    let metrics = String::from_utf8(server.get("/metrics").1).unwrap();
    for sample in ["fathom_panics_total 1\n", "fathom_connections 1\n", "fathom_buffered_bytes 0\n"] {
        assert!(metrics.contains(sample), "{sample} {metrics}");
    }
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(0), "{}", server.err());
}

#[test]
fn a_panic_ends_one_connection_of_http_1() {
    let home = ServeDirectory::new();
    let Some(server) = faulty(&home, "serve-answer:2", "") else { return };
    let mut other = server.connect();
    let request = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let read = |other: &mut std::net::TcpStream| {
        other.write_all(request).unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\nhere") {
            let mut byte = [0];
            other.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        assert!(bytes.starts_with(b"HTTP/1.1 200 "), "{}", bytes.escape_ascii());
    };
    read(&mut other);
    assert_eq!(response(&server, "/a.txt"), b"");
    read(&mut other);
    drop(other);
    until("the other connection is closed", || {
        let metrics = String::from_utf8(server.get("/metrics").1).unwrap();
        assert!(metrics.contains("fathom_requests_total{method=\"GET\",status=\"500\"} 1\n"), "{metrics}");
        metrics.contains("fathom_connections 1\n").then_some(())
    });
    goes_on(server, "a connection", "serve-answer");
}

#[test]
fn a_panic_amid_a_body_ends_its_connection() {
    let home = ServeDirectory::new();
    let Some(server) = faulty(&home, "serve-body:3", "--io sync") else { return };
    let sent = response(&server, "/long.bin");
    assert!(sent.starts_with(b"HTTP/1.1 200 OK\r\n") && sent.len() < 1 << 20, "{} bytes", sent.len());
    goes_on(server, "a connection", "serve-body");
}

#[test]
fn a_panic_ends_one_connection_of_http_2() {
    if !needs_curl("HTTP2") {
        return;
    }
    for point in ["serve-answer:1", "serve-body:3"] {
        let home = ServeDirectory::new();
        let Some(server) = faulty(&home, point, "--io sync") else { return };
        let url = format!("{}/long.bin", server.url);
        assert_ne!(get(&home, &["--http2-prior-knowledge", &url]).end, Some(0), "{point}");
        let again = get(&home, &["--http2-prior-knowledge", &url]);
        assert_eq!((again.end, again.status), (Some(0), 200), "{point}");
        goes_on(server, "a connection", point.split(':').next().unwrap());
    }
}

#[test]
fn a_panic_in_the_pool_is_the_response_500() {
    let home = ServeDirectory::new();
    let Some(server) = faulty(&home, "pool-call:1", "--io pool") else { return };
    assert_eq!(server.get("/a.txt").0, 500);
    goes_on(server, "a call for a file or a listing", "pool-call");
}

#[test]
fn a_panic_of_a_worker_ends_the_server_with_status_2() {
    if !cfg!(debug_assertions) {
        return skip("needs a build with debug assertions, which has points to panic at");
    }
    let home = ServeDirectory::new();
    let mut command = home.command("-l 127.0.0.1:0 www");
    let (status, _, stderr) = finish(command.env("FATHOM_FAULT", "serve-sweep:1:PANIC"));
    assert_eq!(status, Some(2), "{stderr}");
    let line = "fathom serve: a worker exited, shutting down: one of its tasks panicked\n";
    assert!(stderr.contains(line), "{stderr}");
}
