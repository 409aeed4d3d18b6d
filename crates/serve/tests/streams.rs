//! HTTP/2 streams whose clients read nothing, or next to nothing: their memory, and their timeouts.
//! In a process of its own, so that its memory is used by one server.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]
#![allow(dead_code, reason = "this binary uses its own part of the frames")]

#[path = "http/support/frames.rs"]
mod frames;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_serve::Config;
use fathom_serve::server::{Server, StartOptions};
use frames::{DATA, HEADERS, Http2Client, INITIAL_WINDOW_SIZE, RST_STREAM};

/// A hang guard: longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const CONNECTIONS: usize = 80;
/// Streams per connection: 10,000 in total.
const STREAMS: u32 = 125;
/// Most memory per stream, including the client's end of its connection: a buffer for a piece of
/// the file would take eight times as much.
const STREAM_BYTES: u64 = 8 << 10;
/// Tests measure memory, so there is one server at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A server with a file that is longer than any buffer, and a short one.
struct TestServer {
    server: Server,
    config: Config,
    _dir: tempfile::TempDir,
}

impl TestServer {
    fn new(limits: &str) -> Self {
        // As the program does: clients and server are in this process, whose soft limit may be low.
        fathom_io::sys::raise_fd_limit();
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("large")).unwrap().set_len(1 << 30).unwrap();
        fs::write(dir.path().join("short"), "here").unwrap();
        let text = format!(
            "listen = ['127.0.0.1:0']\nworkers = 1\nmetrics = '/metrics'\nlimits = {{ {limits} }}\n[site]\nroot = '{}'\n",
            dir.path().display()
        );
        let config = Config::from_toml(&text).unwrap();
        Self { server: Server::start(&config, StartOptions::default()).unwrap(), config, _dir: dir }
    }

    fn address(&self) -> String {
        self.server.addresses()[0].trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    /// Returns the body of `path`, such as the short file or the metrics, as a client on a separate
    /// connection receives it.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn buffered(&self) -> u64 {
        self.sample("fathom_buffered_bytes")
    }

    fn sample(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap().parse().unwrap()
    }

    /// Reduces the write timeout to 1 ms from now on.
    fn shorten_write_timeout(&mut self) {
        self.config.limits.write_timeout_ms = 1;
        self.server.reload(&self.config).unwrap();
    }
}

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the anonymous memory of this process in bytes.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[track_caller]
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn numbers() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|stream| 2 * stream + 1)
}

/// Opens connections. On each, that many streams request the large file and receive the header of
/// the response.
fn ask(served: &TestServer, window: u32) -> Vec<Http2Client> {
    let connect = |_| {
        let mut frames = Http2Client::connect(&served.address(), &[(INITIAL_WINDOW_SIZE, window)]);
        frames.get(numbers(), "/large");
        frames.read_until(STREAMS as usize, |frame| frame.kind == HEADERS);
        frames
    };
    (0..CONNECTIONS).map(connect).collect()
}

#[test]
fn ten_thousand_streams_without_a_window_hold_little_and_end() {
    let _alone = alone();
    let mut served = TestServer::new("write-timeout-ms = 3600000");
    assert_eq!(served.get("/short"), "here");
    let before = memory_bytes();
    let mut clients = ask(&served, 0);
    let streams = CONNECTIONS as u64 * u64::from(STREAMS);
    let check = |when: &str| {
        let each = memory_bytes().saturating_sub(before) / streams;
        assert!(each <= STREAM_BYTES, "{when}: {each} bytes each");
    };
    check("no window");

    // A window that opens by one byte is used, and is full again.
    for client in &mut clients {
        client.open(numbers(), 1);
        let frames = client.read_until(STREAMS as usize, |frame| frame.kind == DATA);
        assert!(frames.iter().all(|frame| frame.kind == DATA && frame.payload.len() == 1), "{frames:?}");
    }
    check("a byte");
    assert_eq!(served.get("/short"), "here");

    served.shorten_write_timeout();
    for client in &mut clients {
        client.read_until(STREAMS as usize, |frame| frame.kind == RST_STREAM);
    }
    eventually("they are still counted", || served.buffered() == 0);
    assert!(served.server.drain(PATIENCE), "streams that had ended were cut off");
}

/// The timeout of a stream is not restarted by window updates that are smaller than the updates of
/// a reading client.
#[test]
fn a_window_that_opens_by_bytes_does_not_restart_the_timeout() {
    let _alone = alone();
    let mut served = TestServer::new("write-timeout-ms = 3600000");
    let mut client = Http2Client::connect(&served.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get([1, 3].into_iter(), "/large");
    client.read_until(2, |frame| frame.kind == HEADERS);
    served.shorten_write_timeout();
    // However fast bytes are sent, a thousand of them are less than a stream has to read.
    for _ in 0..1000 {
        client.open([1].into_iter(), 1);
    }
    let frames = client.read_until(2, |frame| frame.kind == RST_STREAM);
    let taken =
        frames.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.payload.len()).sum::<usize>();
    assert!(taken <= 1000, "{taken}");
}

#[test]
fn a_window_is_used_up_and_the_body_is_whole() {
    let _alone = alone();
    let served = TestServer::new("");
    fs::write(served._dir.path().join("file"), vec![b'x'; 200_000]).unwrap();
    let mut client = Http2Client::connect(&served.address(), &[(INITIAL_WINDOW_SIZE, 1000)]);
    client.get([1].into_iter(), "/file");
    let mut taken = 0;
    loop {
        let frame = client.read().unwrap();
        if frame.kind != DATA {
            continue;
        }
        taken += frame.payload.len();
        if frame.flags & frames::END_STREAM != 0 {
            break;
        }
        client.open([0, 1].into_iter(), frame.payload.len() as u32);
    }
    assert_eq!(taken, 200_000);
    drop(client);
    assert!(served.server.drain(PATIENCE));
}

/// With more streams than the memory limit for responses allows, the streams beyond it are reset,
/// and others are served.
#[test]
fn memory_for_responses_is_bounded() {
    let _alone = alone();
    let limit = 1 << 20;
    let mut served = TestServer::new(&format!("write-timeout-ms = 3600000, buffer-bytes = {limit}"));
    let mut clients: Vec<Http2Client> = (0..CONNECTIONS)
        .map(|_| {
            let mut frames = Http2Client::connect(&served.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
            frames.get(numbers(), "/large");
            frames
        })
        .collect();
    // The limit admits a few hundred of the ten thousand streams; beyond it, one stream of each
    // connection may still wait.
    for client in &mut clients {
        client.read_until(1, |frame| frame.kind == HEADERS || frame.kind == RST_STREAM);
        let buffered = served.buffered();
        assert!(buffered <= limit + CONNECTIONS as u64 * 5000, "{buffered} bytes");
    }
    assert_eq!(served.get("/short"), "here");
    served.shorten_write_timeout();
    eventually("they are still counted", || served.buffered() == 0);
    assert!(served.server.drain(PATIENCE));
}

/// The windows are open, but the clients read nothing: unsent bytes are bounded, and the write
/// timeout ends the connections.
#[test]
fn clients_that_never_read_hold_little_and_are_left() {
    let _alone = alone();
    let limit = 4 << 20;
    let mut served = TestServer::new(&format!("write-timeout-ms = 3600000, buffer-bytes = {limit}"));
    let before = memory_bytes();
    let clients: Vec<Http2Client> = (0..20)
        .map(|_| {
            let mut client =
                Http2Client::connect(&served.address(), &[(INITIAL_WINDOW_SIZE, i32::MAX as u32)]);
            client.open([0].into_iter(), (i32::MAX - 65_535) as u32);
            client.get(numbers(), "/large");
            client
        })
        .collect();
    // All clients have sent their requests; the count includes the connection that queries it.
    eventually("the limit is not reached", || served.buffered() >= limit);
    for _ in 0..20 {
        let buffered = served.buffered();
        assert!(buffered <= limit + (1 << 20), "{buffered} bytes on their way");
    }
    assert!(memory_bytes().saturating_sub(before) < 100 << 20);
    assert_eq!(served.get("/short"), "here");
    served.shorten_write_timeout();
    eventually("they are still there", || served.sample("fathom_connections") == 1);
    eventually("they are still counted", || served.buffered() == 0);
    drop(clients);
    assert!(served.server.drain(PATIENCE));
}

/// A stopping server tells its clients so, and waits a moment for idle connections to close.
#[test]
fn an_idle_connection_that_does_not_leave_holds_up_no_end() {
    let _alone = alone();
    let served = TestServer::new("idle-timeout-ms = 3600000");
    let mut client = Http2Client::connect(&served.address(), &[]);
    client.get([1].into_iter(), "/short");
    client.read_until(1, |frame| frame.kind == DATA);
    assert!(served.server.drain(PATIENCE), "a connection without a request was cut off");
    client.read_until(1, |frame| frame.kind == frames::GOAWAY);
}
