//! A server without a free descriptor for new connections waits without using the processor, and
//! recovers when one is free. In a process of its own, because the limit applies to a process.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fathom_serve::Config;
use fathom_serve::server::{Server, StartOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// A hang guard: longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Returns the processor time of all threads of this process.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

fn asks(stream: &mut TcpStream) -> String {
    let _sent = stream.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let _ended = stream.read_to_string(&mut answer);
    answer
}

/// Returns the number of open descriptors of this process; `None` if none is left to count them.
fn open_descriptors() -> Option<usize> {
    std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count)
}

/// An error log in memory.
#[derive(Clone, Default)]
struct MemoryLog(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn without_a_descriptor_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a"), "aa").unwrap();
    let text = format!(
        "listen = ['127.0.0.1:0']\nworkers = 2\nlimits = {{ header-timeout-ms = 3600000 }}\n[site]\nroot = '{}'\n",
        dir.path().display()
    );
    let (errors, begun) = (MemoryLog::default(), Instant::now());
    let outfit = StartOptions { errors: Some(Box::new(errors.clone())), ..StartOptions::default() };
    let server = Server::start(&Config::from_toml(&text).unwrap(), outfit).unwrap();
    let address = server.addresses()[0].trim_start_matches("http://").trim_end_matches('/').to_owned();
    let connect = || {
        let stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(PATIENCE)).map(|()| stream)
    };
    assert!(asks(&mut connect().unwrap()).ends_with("aa"));

    let at_first = open_descriptors().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(96), ..getrlimit(Resource::Nofile) }).unwrap();
    // The clients and the server share the limit of 96 descriptors: in the end there are
    // connections that the server cannot accept.
    let mut clients = Vec::new();
    let mut refused = 0;
    while refused < 20 {
        match connect() {
            Ok(client) => clients.push(client),
            // The server reaches the same limit meanwhile.
            Err(_) => {
                refused += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    assert!(clients.len() >= 30, "{}", clients.len());

    let (before, start) = (used(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let (used, passed) = (used() - before, start.elapsed());
    assert!(used < passed / 5, "{used:?} of the processor in {passed:?}");

    // Accepted connections are still served, perhaps with a 503. After the other clients have left,
    // the server recovers.
    drop(clients.split_off(1));
    let mut answers = 0;
    let start = Instant::now();
    while answers < 20 {
        assert!(start.elapsed() < PATIENCE, "it does not recover");
        answers += u32::from(connect().is_ok_and(|mut stream| asks(&mut stream).ends_with("\r\n\r\naa")));
    }
    // Until its worker has closed the others, there may be no descriptor for the file.
    while open_descriptors().is_none_or(|open| open > at_first + 10) {
        assert!(start.elapsed() < PATIENCE, "the others are not closed");
        std::thread::sleep(Duration::from_millis(10));
    }
    let answer = asks(&mut clients[0]);
    assert!(answer.ends_with("aa"), "{answer:?}");
    assert!(server.drain(PATIENCE));

    let text = String::from_utf8(errors.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("cannot accept connections: Too many open files"), "{text}");
    // Two workers have retried many times a second. Errors of two categories may have occurred, and
    // counts of suppressed messages follow.
    assert!(text.lines().count() as u64 <= 2 * (begun.elapsed().as_secs() + 2), "{text}");
}
