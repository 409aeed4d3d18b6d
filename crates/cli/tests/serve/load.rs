//! slowhttptest: clients that send and take as little as they can, and ranges that want more than there is. Others are still answered.

use std::process::{Command, Stdio};

use crate::server::{Home, bytes, until};
use crate::support::needs_tool;

/// Attacks a server with `words`; others ask it meanwhile, and afterwards nothing is left of the attack.
fn attack(words: &str) {
    if !needs_tool("slowhttptest") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here"), ("long.bin", &bytes(4 << 20))]);
    let server = home.serve("--header-timeout 2s --write-timeout 2s --idle-timeout 2s");
    assert_eq!(server.get("/a.txt").0, 200);
    let (before, memory) = (server.descriptors(), server.resident());
    let mut command = Command::new("slowhttptest");
    command.args(words.split_whitespace()).args(["-u", &format!("{}/long.bin", server.url)]);
    command.current_dir(home.at("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut asked = 0;
    while child.try_wait().unwrap().is_none() {
        assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()), "{words}: request {asked}");
        asked += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(asked > 10, "{words}: {said}");
    assert!(!said.contains("service available:   NO"), "{said}");
    until("its connections are let go", || (server.descriptors() <= before + 4).then_some(()));
    let grown = server.resident().saturating_sub(memory) >> 20;
    assert!(grown < 64, "{words}: {grown} MiB more");
}

#[test]
fn slow_headers_hold_nobody_up() {
    attack("-H -c 300 -r 150 -i 1 -l 6 -p 5");
}

#[test]
fn slow_bodies_hold_nobody_up() {
    attack("-B -c 300 -r 150 -i 1 -l 6 -p 5 -s 60000");
}

#[test]
fn ranges_beyond_measure_take_no_memory() {
    attack("-R -c 300 -r 150 -l 6 -p 5 -a 1 -b 3000");
}

#[test]
fn slow_readers_hold_nobody_up() {
    attack("-X -c 300 -r 150 -l 6 -p 5 -w 1 -y 16 -n 1 -z 8 -k 3");
}
