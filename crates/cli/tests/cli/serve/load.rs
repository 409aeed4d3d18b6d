//! slowhttptest: clients that send or receive as slowly as possible, and requests for excessive
//! ranges. Other clients are still served.

use std::process::{Command, Stdio};

use crate::serve::server::{ServeDirectory, bytes, until};
use crate::support::needs_tool;

/// Attacks a server with `words`. Asserts that other clients are served meanwhile, and that the
/// server releases all resources afterwards.
fn attack(words: &str) {
    if !needs_tool("slowhttptest") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("long.bin", &bytes(4 << 20))]);
    let server = home.serve("--header-timeout 2s --write-timeout 2s --idle-timeout 2s");
    assert_eq!(server.get("/a.txt").0, 200);
    let (before, memory) = (server.descriptors(), server.anonymous_bytes());
    let mut command = Command::new("slowhttptest");
    command.args(words.split_whitespace()).args(["-u", &format!("{}/long.bin", server.url)]);
    command.current_dir(home.at("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut requests = 0;
    while child.try_wait().unwrap().is_none() {
        assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()), "{words}: request {requests}");
        requests += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(requests > 10, "{words}: {stderr}");
    assert!(!stderr.contains("service available:   NO"), "{stderr}");
    until("its connections are let go", || (server.descriptors() <= before + 4).then_some(()));
    let grown = server.anonymous_bytes().saturating_sub(memory) >> 20;
    assert!(grown < 64, "{words}: {grown} MiB more");
}

#[test]
fn slow_request_headers_do_not_block_other_clients() {
    attack("-H -c 300 -r 150 -i 1 -l 6 -p 5");
}

#[test]
fn slow_request_bodies_do_not_block_other_clients() {
    attack("-B -c 300 -r 150 -i 1 -l 6 -p 5 -s 60000");
}

#[test]
fn excessive_ranges_take_no_memory() {
    attack("-R -c 300 -r 150 -l 6 -p 5 -a 1 -b 3000");
}

#[test]
fn slow_readers_do_not_block_other_clients() {
    attack("-X -c 300 -r 150 -l 6 -p 5 -w 1 -y 16 -n 1 -z 8 -k 3");
}
