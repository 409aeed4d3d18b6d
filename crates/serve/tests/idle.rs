//! What idle connections take: in a process of its own, whose memory is that of one server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fathom_serve::Config;
use fathom_serve::server::{Outfit, Server};

/// Enough for what is there once to count little.
const CONNECTIONS: u64 = 400;
/// Of a connection, with the client's end of it, which this process has as well.
const BYTES_EACH: u64 = 12 << 10;

/// Memory of this process that no file backs.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("since Linux 4.5");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kib * 1024
}

#[test]
fn an_idle_connection_gives_its_buffers_back() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "hello").unwrap();
    let text = format!("listen = ['127.0.0.1:0']\nworkers = 1\n[site]\nroot = '{}'\n", dir.path().display());
    let server = Server::start(&Config::from_toml(&text).unwrap(), Outfit::default()).unwrap();
    let url = server.addresses().remove(0);
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        let read = stream.read(&mut answer).unwrap();
        assert!(answer[..read].ends_with(b"hello"));
    };
    let before = memory_bytes();
    let mut clients: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(&address).unwrap()).collect();
    clients.iter_mut().for_each(ask);
    let start = Instant::now();
    let each = || memory_bytes().saturating_sub(before) / CONNECTIONS;
    while each() > BYTES_EACH && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(each() <= BYTES_EACH, "{} bytes each", each());
    clients.iter_mut().for_each(ask);
}
