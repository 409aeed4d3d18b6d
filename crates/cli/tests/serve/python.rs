//! Python's HTTP client, and bytes as no client would send them.

use std::process::Command;

use crate::server::{Home, bytes, finish, script};
use crate::support::needs_tool;

#[test]
fn connections_are_kept_and_requests_are_told_apart() {
    if !needs_tool("python3") {
        return;
    }
    let (content, long) = (bytes(200_000), bytes(16 << 20));
    let home = Home::with(&[
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
