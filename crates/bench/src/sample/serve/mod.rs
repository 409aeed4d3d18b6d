//! Samples of the static file server: `fathom serve` in a process of its own answers a client in
//! this process over loopback TCP.
//!
//! The client is a closed loop, in which each connection requests the next file as soon as it has
//! received the previous one, or an open loop, in which requests are due at a given rate, whatever
//! the server does.
//!
//! Owns: the server's process, the client, its connections, the clock. Does not own: the files and
//! their order.

mod client;
mod http;
mod processors;
mod server;

use std::path::Path;
use std::time::Instant;

use super::spec::{SampleError, SampleSpec};
use crate::lang::Measurement;
use crate::pattern::PAGE_BYTES;
use client::Client;
use processors::Processors;
use server::ServerProcess;

/// Connections of the client, each with one request in flight; similar to published comparisons of
/// servers.
pub(crate) const CONNECTIONS: usize = 64;
/// Size of the receive buffer of a connection; a multiple of the page size.
const CHUNK_BYTES: usize = 16 * PAGE_BYTES;

/// Requests `size / block` files of `block` bytes, each once, from `program serve`. CPU time,
/// context switches and memory are measured of the server, from its start to its end.
pub(super) fn serve(spec: &SampleSpec, program: &Path) -> Result<Measurement, SampleError> {
    let failed = |error| SampleError::io("measure a server for", &spec.path, error);
    let processors = Processors::of_this_thread();
    processors.take_for_server();
    let started = ServerProcess::start(program, spec);
    processors.take_for_client();
    let (server, address) = started?;
    let mut client = Client::connect(spec, address).map_err(failed)?;
    let start = Instant::now();
    let received = client.run();
    let seconds = start.elapsed().as_secs_f64();
    let used = server.stop().map_err(failed)?;
    let received = received?;
    let mean_us = (spec.rate > 0).then(|| mean_us(&received.nanoseconds));
    let measurement = received.measurement(seconds, &used.usage);
    Ok(Measurement { memory_bytes: used.memory_bytes, mean_us, ..measurement })
}

/// Returns the mean of latencies in microseconds.
fn mean_us(nanoseconds: &[u64]) -> f64 {
    let sum: u128 = nanoseconds.iter().copied().map(u128::from).sum();
    sum as f64 / nanoseconds.len().max(1) as f64 / 1e3
}
