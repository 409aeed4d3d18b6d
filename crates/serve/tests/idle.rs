//! The memory of idle and closed connections, measured in a process of its own, which has one
//! server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fathom_serve::Config;
use fathom_serve::server::{Server, StartOptions};

/// Enough that one-time allocations count little.
const CONNECTIONS: u64 = 400;
/// The maximum bytes of an idle connection, with the client's end in the same process and a share
/// of the stacks of pool threads: 8,000 bytes in an unoptimised build, 13,300 if a part of hyper's
/// connection stays between its freed buffers.
const BYTES_EACH: u64 = 11 << 10;

/// Returns the anonymous memory of this process in bytes.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("since Linux 4.5");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kib * 1024
}

/// Most memory that may remain of a burst after all of its connections are closed. If the server
/// did not return memory, some 8 MiB would remain.
const LEFT_BYTES: u64 = 3 << 20;
/// A hang guard: longer than freeing memory takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// One test, because the memory of the whole process is measured.
#[test]
fn connections_give_their_memory_back_when_they_are_idle_and_when_they_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "hello").unwrap();
    // A client waits for its turn, on a busy machine for longer than headers may take.
    let limits = "limits = { header-timeout-ms = 3600000, idle-timeout-ms = 3600000 }";
    let root = dir.path().display();
    let text = format!("listen = ['127.0.0.1:0']\nworkers = 1\n{limits}\n[site]\nroot = '{root}'\n");
    let server = Server::start(&Config::from_toml(&text).unwrap(), StartOptions::default()).unwrap();
    let url = server.addresses().remove(0);
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        let read = stream.read(&mut answer).unwrap();
        assert!(answer[..read].ends_with(b"hello"));
    };
    // Its worker has begun, and has what it keeps.
    ask(&mut TcpStream::connect(&address).unwrap());
    let before = memory_bytes();
    let mut burst: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(&address).unwrap()).collect();
    burst.iter_mut().for_each(ask);
    let most = memory_bytes();
    drop(burst);
    let (start, left) = (Instant::now(), || memory_bytes().saturating_sub(before));
    while left() > LEFT_BYTES && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(100));
    }
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    assert!(left() <= LEFT_BYTES, "{} bytes are left of {}, with {threads} threads", left(), most - before);
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
