//! The soak: many clients of several servers, one for each model, while the files change underneath in every way. Every byte that comes
//! is checked, for contents say what they are; at the end nothing is left open and no memory is lost.
//!
//! `FATHOM_SOAK_SECONDS` is how long it takes, 20 unless given.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod client;
mod content;
mod files;
#[path = "../serve/server.rs"]
mod server;

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use client::{Client, Tally};
use files::Files;
use server::{Home, Server, until};

/// Connections at once, of all servers together.
const CONNECTIONS: u64 = 2000;
/// Descriptors of this process that are not clients' connections.
const OTHERS: u64 = 200;
/// The models, and how many parts of the connections each gets.
const MODELS: [(&str, u64); 7] =
    [("auto", 4), ("sync", 1), ("nowait", 1), ("pool", 1), ("tokio", 1), ("sendfile", 1), ("uring", 1)];
/// What a server may have taken at the end: 64 MiB, and 64 KiB for each connection.
const MEMORY_BYTES: u64 = 64 << 20;
const CONNECTION_BYTES: u64 = 64 << 10;
/// What it may have taken more at the end than when a third of the time was over.
const GROWTH_BYTES: u64 = 16 << 20;

/// How many connections there may be.
fn connections() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(OTHERS);
    if most < CONNECTIONS {
        println!("skipped: {} of {CONNECTIONS} connections, for want of descriptors", CONNECTIONS - most);
    }
    most.min(CONNECTIONS)
}

/// A server, and what it was like before anybody came.
struct Soaked {
    model: &'static str,
    server: Server,
    connections: u64,
    descriptors: usize,
    resident: u64,
}

fn start(home: &Home, all: u64) -> Vec<Soaked> {
    let parts: u64 = MODELS.iter().map(|(_, parts)| parts).sum();
    let mut soaked = Vec::new();
    for (model, part) in MODELS {
        if model == "uring"
            && home.run("-l 127.0.0.1:0 --io=uring --access-log=no/such/log www").2.contains("io_uring")
        {
            println!("skipped: io_uring is forbidden here");
            continue;
        }
        let server = home.serve(&format!("--io={model} --workers 2"));
        let connections = all * part / parts;
        // Threads and what else the first requests start.
        for _ in 0..20 {
            server.get("/0");
        }
        let descriptors = at_rest(&server);
        soaked.push(Soaked { model, server, connections, descriptors, resident: 0 });
    }
    soaked
}

/// Descriptors of a server that keeps no files open and has no clients, once it has settled.
fn at_rest(server: &Server) -> usize {
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
    let home = Home::new();
    let files = Arc::new(Files::make(&home.at("www")));
    let mut soaked = start(&home, all);
    let (begin, tally) = (Instant::now(), Arc::new(Tally::default()));
    let changing = files.keep_changing(begin + length);
    let mut clients = Vec::new();
    for (at, Soaked { model, server, connections, .. }) in soaked.iter().enumerate() {
        for number in 0..*connections {
            let seed = at as u64 * 10_000 + number;
            let client = Client::new((model, server.address()), Arc::clone(&files), Arc::clone(&tally), seed);
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            clients.push(thread.spawn(move || client.run(begin + length)).unwrap());
        }
    }
    sleep((begin + length / 3).saturating_duration_since(Instant::now()));
    soaked.iter_mut().for_each(|soaked| soaked.resident = soaked.server.resident());
    sleep((begin + length).saturating_duration_since(Instant::now()));
    let resident: Vec<u64> = soaked.iter().map(|soaked| soaked.server.resident()).collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    changing.join().unwrap();
    println!("{tally}");
    tally.check();
    for (soaked, resident) in soaked.iter().zip(resident) {
        check(soaked, resident);
        files.check_all(&soaked.server);
    }
}

/// That nothing is left of what was.
fn check(soaked: &Soaked, resident: u64) {
    let Soaked { model, server, connections, descriptors, resident: before } = soaked;
    println!("{model}: {connections} connections, {} MiB, then {} MiB", before >> 20, resident >> 20);
    assert_eq!(server.err().replace("fathom serve: reloaded\n", ""), "", "{model}");
    until("all connections are gone", || (server.descriptors() <= descriptors + 256).then_some(()));
    assert_eq!(at_rest(server), *descriptors, "{model}: descriptors are left open");
    assert!(resident < MEMORY_BYTES + connections * CONNECTION_BYTES, "{model}: {resident} bytes");
    assert!(resident < before + GROWTH_BYTES, "{model}: from {before} to {resident} bytes");
}
