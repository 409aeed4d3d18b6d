//! HTTP/2 without TLS, by prior knowledge (RFC 9113, section 3.3).

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::frames::{
    DATA, END_STREAM, GOAWAY, HEADERS, Http2Client, INITIAL_WINDOW_SIZE, RST_STREAM,
};
use crate::support::{LONG, TestServer, Tree, io, models, noise};

/// Returns the body of the response on `stream`.
fn body(client: &mut Http2Client, stream: u32) -> Vec<u8> {
    let ends =
        |frame: &crate::support::frames::Frame| frame.stream == stream && frame.flags & END_STREAM != 0;
    let frames = client.read_until(1, ends);
    frames
        .into_iter()
        .filter(|frame| frame.kind == DATA && frame.stream == stream)
        .flat_map(|frame| frame.payload)
        .collect()
}

#[test]
fn both_versions_are_spoken_on_one_port() {
    let tree = Tree::new(&[("a", b"aa")]);
    for (name, len, seed) in [("large", 3_000_000, 1), ("middle", 60_000, 2)] {
        tree.write(name, &noise(len, seed));
    }
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        let mut client = Http2Client::connect(served.address(), &[(INITIAL_WINDOW_SIZE, 8 << 20)]);
        client.open([0].into_iter(), 8 << 20);
        for (stream, path, expected) in
            [(1, "/a", b"aa".to_vec()), (3, "/large", noise(3_000_000, 1)), (5, "/middle", noise(60_000, 2))]
        {
            client.get([stream].into_iter(), path);
            assert!(body(&mut client, stream) == expected, "{model}: {path}");
        }
        served.get("/a").is(200, b"aa");
    }
}

#[test]
fn the_preface_may_come_byte_by_byte() {
    let tree = Tree::new(&[("a", b"aa")]);
    let served = TestServer::site(&tree, "");
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "the server's settings come first");
}

/// A stream that waits for its window does not delay other streams.
#[test]
fn a_stream_that_waits_holds_up_no_other() {
    let tree = Tree::new(&[("large", &noise(3_000_000, 1)), ("a", b"aa")]);
    let served = TestServer::site(&tree, "");
    let mut client = Http2Client::connect(served.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get((0..50).map(|stream| 2 * stream + 1), "/large");
    client.read_until(50, |frame| frame.kind == HEADERS);
    client.get([101].into_iter(), "/a");
    client.open([101].into_iter(), 2);
    assert_eq!(body(&mut client, 101), b"aa");
    client.write(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    client.open([0, 3].into_iter(), 4 << 20);
    assert!(body(&mut client, 3) == noise(3_000_000, 1));
}

#[test]
fn a_stopping_server_completes_its_streams() {
    let tree = Tree::new(&[("large", &noise(3_000_000, 1))]);
    let served = TestServer::site(&tree, "");
    let mut client = Http2Client::connect(served.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get([1].into_iter(), "/large");
    client.read_until(1, |frame| frame.kind == HEADERS);
    let ending = std::thread::spawn(move || served.drain(LONG));
    client.read_until(1, |frame| frame.kind == GOAWAY);
    client.open([0, 1].into_iter(), 4 << 20);
    assert!(body(&mut client, 1) == noise(3_000_000, 1));
    drop(client);
    assert!(ending.join().unwrap(), "all had ended");
}
