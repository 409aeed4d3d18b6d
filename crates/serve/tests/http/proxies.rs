//! Clients behind proxies: the logged address, and the proxies that are trusted.

use std::io::{Read, Write};
use std::net::TcpStream;

use fathom_serve::server::StartOptions;

use crate::support::{LONG, MemoryLog, TestServer, Tree, config, request};

/// Returns the logged client addresses of the requests that `ask` sends to a server that trusts
/// `addresses` in `source`, and its error log.
fn logged(addresses: &str, source: &str, ask: impl FnOnce(&TestServer)) -> (Vec<String>, String) {
    let (tree, lines, errors) = (Tree::new(&[("a", b"aa")]), MemoryLog::default(), MemoryLog::default());
    let top = format!(
        "access-log = {{ format = 'combined' }}\nproxies = {{ addresses = ['{addresses}'], source = '{source}' }}\n"
    );
    let outfit = StartOptions {
        stream: Some(Box::new(lines.clone())),
        errors: Some(Box::new(errors.clone())),
        ..StartOptions::default()
    };
    let served = TestServer::with(&config(&tree, &top, ""), outfit);
    ask(&served);
    assert!(served.drain(LONG));
    let peers = lines.text().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    (peers, errors.text())
}

/// Sends `bytes`, and reads to the end of the connection.
fn exchange(served: &TestServer, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn headers_of_trusted_proxies_name_the_client() {
    let spoofed = "198.51.100.9, 192.0.2.1, 127.0.0.9";
    for (source, name, value, expected) in [
        ("x-forwarded-for", "X-Forwarded-For", spoofed, "192.0.2.1"),
        ("x-forwarded-for", "Forwarded", "for=192.0.2.1", "127.0.0.1"),
        ("forwarded", "Forwarded", "for=192.0.2.1;proto=https, for=127.0.0.9", "192.0.2.1"),
        ("forwarded", "X-Forwarded-For", spoofed, "127.0.0.1"),
        ("x-forwarded-for", "X-Forwarded-For", "nonsense", "127.0.0.1"),
    ] {
        let (peers, _) = logged("127.0.0.0/8", source, |served| {
            let mut client = served.connect();
            client.ask("GET", "/a", &[(name, value)]).is(200, b"aa");
            client.get("/a").is(200, b"aa");
        });
        assert_eq!(peers, [expected, "127.0.0.1"], "{source} {name}: {value}");
    }
}

#[test]
fn other_neighbours_are_not_trusted() {
    for source in ["x-forwarded-for", "forwarded"] {
        let (peers, _) = logged("10.0.0.0/8", source, |served| {
            served.get_with("/a", "X-Forwarded-For", "192.0.2.1").is(200, b"aa");
            served.get_with("/a", "Forwarded", "for=192.0.2.1").is(200, b"aa");
        });
        assert_eq!(peers, ["127.0.0.1", "127.0.0.1"], "{source}");
    }
    let (peers, errors) = logged("10.0.0.0/8", "proxy-protocol", |served| {
        served.get("/a").is(200, b"aa");
        let answer =
            exchange(served, b"PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    });
    assert_eq!((peers, errors), (vec!["127.0.0.1".to_owned(); 2], String::new()));
}

#[test]
fn a_proxy_protocol_header_names_the_client_of_the_connection() {
    let get = [request("GET", "/a", &[]), request("GET", "/a", &[("Connection", "close")])].concat();
    let second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x01\xdc\x04\x01\xbb";
    for (header, expected) in [
        (&b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n"[..], "192.0.2.1"),
        (second, "192.0.2.1"),
        (b"PROXY TCP6 2001:db8::1 ::1 56324 443\r\n", "2001:db8::1"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    ] {
        let (peers, errors) = logged("127.0.0.1", "proxy-protocol", |served| {
            let answer = exchange(served, &[header, &get].concat());
            assert_eq!(answer.matches("\r\n\r\naa").count(), 2, "{answer}");
        });
        assert_eq!((peers, errors), (vec![expected.to_owned(); 2], String::new()));
    }
}

/// Without the header, the client of a proxy's connection is unknown.
#[test]
fn a_proxy_without_the_header_is_refused() {
    let (peers, errors) = logged("127.0.0.1", "proxy-protocol", |served| {
        assert_eq!(exchange(served, &request("GET", "/a", &[])), "");
        assert_eq!(exchange(served, b"PROXY TCP4 nonsense\r\n"), "");
    });
    assert!(peers.is_empty(), "{peers:?}");
    assert!(errors.starts_with("connection from proxy 127.0.0.1 has no PROXY header\n"), "{errors}");
}
