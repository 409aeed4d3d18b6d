//! Samples of the static file server: `fathom serve` in a process of its own answers a client in
//! this process over loopback TCP.
//!
//! The client is a closed loop: each connection requests the next file as soon as it has received
//! the previous one.
//!
//! Owns: the server's process, the client, its connections, the clock. Does not own: the files and
//! their order.

mod client;
mod http;
mod server;

use std::path::Path;
use std::time::Instant;

use super::spec::{SampleError, SampleSpec};
use crate::lang::Measurement;
use crate::pattern::PAGE_BYTES;
use client::Client;
use server::ServerProcess;

/// Connections of the client, each with one request in flight; similar to published comparisons of
/// servers.
pub(crate) const CONNECTIONS: usize = 64;
/// Size of the receive buffer of a connection; a multiple of the page size.
const CHUNK_BYTES: usize = 16 * PAGE_BYTES;

/// Requests `size / block` files of `block` bytes, each once, from `program serve`. CPU time,
/// context switches and memory are those of the server, from its start to its end.
pub(super) fn serve(spec: &SampleSpec, program: &Path) -> Result<Measurement, SampleError> {
    let failed = |error| SampleError::io("measure a server for", &spec.path, error);
    let (server, address) = ServerProcess::start(program, spec)?;
    let mut client = Client::connect(spec, address).map_err(failed)?;
    let start = Instant::now();
    let received = client.run();
    let seconds = start.elapsed().as_secs_f64();
    let used = server.stop().map_err(failed)?;
    Ok(Measurement { memory_bytes: used.memory_bytes, ..received?.measurement(seconds, &used.usage) })
}
