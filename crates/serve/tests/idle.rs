//! Memory of idle and closed connections, measured in a separate process, whose memory is that of
//! one server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fathom_serve::Config;
use fathom_serve::server::{Outfit, Server};

/// Enough for what is there once to count little.
const CONNECTIONS: u64 = 400;
/// Of a connection, with the client's end of it, which this process has as well, and with its part
/// of what the pool's threads take. In builds without optimisation a connection's state is larger.
const BYTES_EACH: u64 = 16 << 10;

/// Memory of this process that no file backs.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("since Linux 4.5");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kib * 1024
}

/// Most memory that may remain of a burst after all of its connections are closed. If the server
/// did not return memory, some 8 MiB would remain.
const LEFT_BYTES: u64 = 3 << 20;
/// Longer than giving back takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// All in one test, as the memory is that of the process.
#[test]
fn connections_give_their_memory_back_when_they_are_idle_and_when_they_are_closed() {
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
    let mut burst: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(&address).unwrap()).collect();
    burst.iter_mut().for_each(ask);
    let most = memory_bytes();
    drop(burst);
    let (start, left) = (Instant::now(), || memory_bytes().saturating_sub(before));
    while left() > LEFT_BYTES && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(left() <= LEFT_BYTES, "{} bytes are left of {}", left(), most - before);
    let mut clients: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(&address).unwrap()).collect();
    clients.iter_mut().for_each(ask);
    let start = Instant::now();
    let each = || memory_bytes().saturating_sub(before) / CONNECTIONS;
    while each() > BYTES_EACH && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(each() <= BYTES_EACH, "{} bytes each", each());
    clients.iter_mut().for_each(ask);
}
