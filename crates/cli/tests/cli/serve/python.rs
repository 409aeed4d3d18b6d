//! Python's HTTP client, and malformed requests over plain sockets.

use std::process::Command;

use crate::serve::server::{ServeDirectory, bytes, finish, script};
use crate::support::needs_tool;

#[test]
fn connections_are_kept_alive_and_requests_are_separated() {
    if !needs_tool("python3") {
        return;
    }
    let (content, long) = (bytes(200_000), bytes(16 << 20));
    let home = ServeDirectory::with(&[
        ("a.txt", b"here"),
        ("a.bin", &content),
        ("secret.txt", b"hidden"),
        ("long.bin", &long),
    ]);
    let server = home.serve("--access-log=log");
    let mut client = Command::new("python3");
    client.arg("-B").arg(script("client.py")).args([server.address(), home.at("www").to_str().unwrap()]);
    let (status, out, err) = finish(&mut client);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert_eq!(out, "kept 2000\npipelined 300\nhalf-closed 1\nbodies 9\n");
}
