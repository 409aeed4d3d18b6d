//! Soak test: many clients send requests to several servers, one for each I/O model, while the
//! files change in every way. The contents of the files identify themselves, so that each client
//! checks every byte. At the end, no server may have leaked a descriptor or memory.
//!
//! `FATHOM_SOAK_SECONDS` sets the duration; the default is 20.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod client;
mod content;
mod files;
#[path = "../cli/serve/server.rs"]
mod server;

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use client::{Client, ResponseCounters};
use files::ChangingFiles;
use server::{ServeDirectory, Server, until};

/// Number of concurrent connections to all servers together.
const CONNECTIONS: u64 = 2000;
/// Number of descriptors of this process that are not connections of clients.
const OTHER_DESCRIPTORS: u64 = 200;
/// The I/O models, and the share of the connections that each gets.
const MODELS: [(&str, u64); 7] =
    [("auto", 4), ("sync", 1), ("nowait", 1), ("pool", 1), ("tokio", 1), ("sendfile", 1), ("uring", 1)];
/// Anonymous memory that a server may have at the end: a fixed part and a part for each connection.
const MEMORY_BYTES: u64 = 64 << 20;
const CONNECTION_BYTES: u64 = 64 << 10;
/// Growth of that memory allowed between a third of the duration and the end: a fixed part, and
/// a part for each connection, some of which send their first request late on a busy machine.
const GROWTH_BYTES: u64 = 8 << 20;
const CONNECTION_GROWTH_BYTES: u64 = 32 << 10;

/// Returns the number of connections that the limit on descriptors allows.
fn connections() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(OTHER_DESCRIPTORS);
    if most < CONNECTIONS {
        println!("skipped: {} of {CONNECTIONS} connections, for want of descriptors", CONNECTIONS - most);
    }
    most.min(CONNECTIONS)
}

/// A running server, with its state before the first client connected.
struct ServerUnderTest {
    model: &'static str,
    server: Server,
    connections: u64,
    descriptors: usize,
    resident: u64,
}

fn start(home: &ServeDirectory, all: u64) -> Vec<ServerUnderTest> {
    let parts: u64 = MODELS.iter().map(|(_, parts)| parts).sum();
    let mut servers = Vec::new();
    for (model, part) in MODELS {
        if model == "uring"
            && home.run("-l 127.0.0.1:0 --io=uring --access-log=no/such/log www").2.contains("io_uring")
        {
            println!("skipped: io_uring is forbidden here");
            continue;
        }
        let server = home.serve(&format!("--io={model} --workers 2"));
        let connections = all * part / parts;
        // The first requests start threads and open descriptors that stay.
        for _ in 0..20 {
            server.get("/0");
        }
        let descriptors = stable_descriptors(&server);
        servers.push(ServerUnderTest { model, server, connections, descriptors, resident: 0 });
    }
    servers
}

/// Returns the number of descriptors of a server without open files and clients, once it is stable.
fn stable_descriptors(server: &Server) -> usize {
    server.reload();
    let mut last = 0;
    let mut same = 0;
    until("it has closed what it had open", || {
        let now = server.descriptors();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same > 20).then_some(now)
    })
}

fn seconds() -> Duration {
    let given = std::env::var("FATHOM_SOAK_SECONDS").ok();
    Duration::from_secs(given.map_or(20, |text| text.parse().unwrap()))
}

#[test]
fn soak() {
    let (length, all) = (seconds(), connections());
    let home = ServeDirectory::new();
    let files = Arc::new(ChangingFiles::make(&home.at("www")));
    let mut servers = start(&home, all);
    let (begin, counters) = (Instant::now(), Arc::new(ResponseCounters::default()));
    let changing = files.keep_changing(begin + length);
    let mut clients = Vec::new();
    for (at, ServerUnderTest { model, server, connections, .. }) in servers.iter().enumerate() {
        for number in 0..*connections {
            let seed = at as u64 * 10_000 + number;
            let client =
                Client::new((model, server.address()), Arc::clone(&files), Arc::clone(&counters), seed);
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            clients.push(thread.spawn(move || client.run(begin + length)).unwrap());
        }
    }
    sleep((begin + length / 3).saturating_duration_since(Instant::now()));
    servers.iter_mut().for_each(|tested| tested.resident = tested.server.anonymous_bytes());
    sleep((begin + length).saturating_duration_since(Instant::now()));
    let resident: Vec<u64> = servers.iter().map(|tested| tested.server.anonymous_bytes()).collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    changing.join().unwrap();
    println!("{counters}");
    counters.check();
    for (tested, resident) in servers.iter().zip(resident) {
        check(tested, resident);
        files.check_all(&tested.server);
    }
}

/// Asserts that the server has released its descriptors and memory and reported no error.
fn check(tested: &ServerUnderTest, resident: u64) {
    let ServerUnderTest { model, server, connections, descriptors, resident: before } = tested;
    println!("{model}: {connections} connections, {} MiB, then {} MiB", before >> 20, resident >> 20);
    assert_eq!(server.err().replace("fathom serve: reloaded\n", ""), "", "{model}");
    until("all connections are gone", || (server.descriptors() <= descriptors + 256).then_some(()));
    assert_eq!(stable_descriptors(server), *descriptors, "{model}: descriptors are left open");
    assert!(resident < MEMORY_BYTES + connections * CONNECTION_BYTES, "{model}: {resident} bytes");
    assert!(
        resident < before + GROWTH_BYTES + connections * CONNECTION_GROWTH_BYTES,
        "{model}: from {before} to {resident} bytes"
    );
}
