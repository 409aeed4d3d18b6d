//! Samples of a static file server: its single thread serves a client thread of the same process
//! over loopback TCP.
//!
//! The server is minimal: it implements keep-alive GET requests of HTTP/1.1 only. Its own cost is a
//! lower bound for any server, so that the method of reading files makes the difference. The client
//! is a closed loop: each connection requests the next file as soon as it has received the previous
//! one.
//!
//! Owns: server, client, their connections, the clock. Does not own: the files and their order.

mod client;
mod http;
mod response;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use fathom_io::sys::usage;
use futures_util::future::AbortHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinError;

use super::io_loop::IoTotals;
use super::spec::{SampleError, SampleSpec};
use super::usage_between;
use crate::lang::Measurement;
use crate::pattern::PAGE_BYTES;
use client::Client;
use server::Server;

/// Connections of the client, each with one request in flight; similar to published comparisons of
/// servers.
pub(crate) const CONNECTIONS: usize = 64;
/// Size of the file buffer of a connection, at either end; a multiple of the page size.
const CHUNK_BYTES: usize = 16 * PAGE_BYTES;

/// Requests `size / block` files of `block` bytes, each once. The CPU time includes server and
/// client.
pub(super) fn serve(spec: &SampleSpec) -> Result<Measurement, SampleError> {
    let failed = |error| SampleError::io("start a server for", &spec.path, error);
    let (server_streams, client_streams) = connect().map_err(failed)?;
    let server = Server::new(spec, server_streams).map_err(failed)?;
    let mut client = Client::new(spec, client_streams).map_err(failed)?;
    let (stop, stopped) = AbortHandle::new_pair();
    let server_thread = thread::Builder::new().name("server".to_owned()).spawn(move || server.run(stopped));
    let server_thread = server_thread.map_err(failed)?;
    let (before, start) = (usage(), Instant::now());
    let received = client.run();
    let (seconds, after) = (start.elapsed().as_secs_f64(), usage());
    stop.abort();
    // `client` keeps its sockets open until the server has stopped: sendfile(2) to a closed socket
    // raises SIGPIPE and has no flag that suppresses it.
    let served = server_thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // Report the server's error first: the client only sees that the connection was closed.
    let in_flight_max = served?;
    Ok(IoTotals { in_flight_max, ..received? }.measurement(seconds, &usage_between(&before, &after)))
}

/// Opens all connections and returns the server's and the client's ends.
fn connect() -> io::Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let pair = |_| {
        let client = TcpStream::connect(address)?;
        let server = accept(&listener, client.local_addr()?)?;
        for stream in [&server, &client] {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
        }
        Ok((server, client))
    };
    (0..CONNECTIONS).map(pair).collect()
}

/// Accepts the connection from `peer` and drops connections of other processes.
fn accept(listener: &TcpListener, peer: SocketAddr) -> io::Result<TcpStream> {
    loop {
        match listener.accept()? {
            (stream, from) if from == peer => return Ok(stream),
            _other => {}
        }
    }
}

/// Builds a single-threaded runtime with up to `pool_threads` threads for blocking calls.
fn runtime(pool_threads: usize) -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().max_blocking_threads(pool_threads).build()
}

/// Registers the connections with `runtime`.
fn register(runtime: &Runtime, streams: Vec<TcpStream>) -> io::Result<Vec<tokio::net::TcpStream>> {
    let _context = runtime.enter();
    streams.into_iter().map(tokio::net::TcpStream::from_std).collect()
}

/// Returns the result of a task, or resumes its panic. The task must not have been aborted.
fn join_result<T>(task: Result<T, JoinError>) -> T {
    task.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::path::Path;

    use fathom_io::Model;
    use fathom_io::uring::Completion;

    use super::super::spec::Workload;
    use super::super::{execute, small_files};
    use super::*;
    use crate::pattern::Pattern;

    const SERVED: [Model; 5] = [Model::Sync, Model::Nowait, Model::Pool, Model::Tokio, Model::Sendfile];

    fn spec(path: &Path, model: Model, size: u64, block: usize) -> SampleSpec {
        let (workload, completion, path) = (Workload::Serve, Completion::Wait, path.to_owned());
        let (threads, depth, batch, direct, seed, generation) = (1, 4, 1, false, 3, 5);
        SampleSpec {
            workload,
            model: Some(model),
            path,
            size,
            block,
            threads,
            depth,
            batch,
            completion,
            direct,
            seed,
            generation,
        }
    }

    /// Creates the files that `spec` requests, outside the page cache if the filesystem permits.
    fn make(spec: &SampleSpec) {
        let pattern = Pattern::new(spec.seed, spec.generation);
        for number in 0..spec.blocks() {
            let mut bytes = vec![0; small_files::len(spec.size, spec.block, number)];
            pattern.fill(small_files::offset(number, spec.block), &mut bytes);
            let path = small_files::path_of(&spec.path, number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            let file = File::open(&path).unwrap();
            file.sync_data().unwrap();
            fathom_io::sys::forget_cached(file.as_fd()).unwrap();
        }
    }

    #[test]
    fn every_method_serves_files_of_any_size() {
        for (size, block, pages) in [(250 << 10, 4096, 63), (20_000, 100, 200), (1_000_000, 300_000, 247)] {
            for model in SERVED {
                let temp = tempfile::tempdir().unwrap();
                let spec = spec(temp.path(), model, size, block);
                make(&spec);
                let measurement = execute(&spec).unwrap();
                assert_eq!((measurement.bytes, measurement.ops), (size, spec.blocks()), "{model:?}");
                assert_eq!(measurement.pages_ok, pages, "{model:?} {block}");
                assert!((1..=CONNECTIONS as u64).contains(&measurement.in_flight_max), "{measurement:?}");
                assert!(
                    0.0 < measurement.p50_us && measurement.max_us <= measurement.seconds * 1e6,
                    "{measurement:?}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_not_what_was_written_is_caught() {
        for model in SERVED {
            let temp = tempfile::tempdir().unwrap();
            let spec = spec(temp.path(), model, 1 << 20, 4096);
            make(&spec);
            let path = small_files::path_of(temp.path(), 123);
            let refusal = || execute(&spec).unwrap_err().to_string();
            let right = fs::read(&path).unwrap();

            let mut damaged = right.clone();
            damaged[3] ^= 1;
            fs::write(&path, damaged).unwrap();
            let said = format!(
                "cannot verify '{}': page at {} is not what was written",
                path.display(),
                123 * PAGE_BYTES
            );
            assert_eq!(refusal(), said, "{model:?}");

            for len in [0, 4095] {
                fs::write(&path, &right[..len]).unwrap();
                let said = format!("cannot receive '{}': it has {len} bytes instead of 4096", path.display());
                assert_eq!(refusal(), said, "{model:?}");
            }

            fs::remove_file(&path).unwrap();
            let said = format!("cannot serve '{}': No such file or directory", path.display());
            assert_eq!(refusal(), said, "{model:?}");
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let sound = spec(Path::new("x"), Model::Sync, 1, 1);
        for (wrong, said) in [
            (
                SampleSpec { model: Some(Model::Mmap), ..sound.clone() },
                "this method is not for this workload",
            ),
            (
                SampleSpec { model: Some(Model::Uring(None)), ..sound.clone() },
                "this method is not for this workload",
            ),
            (
                SampleSpec { model: Some(Model::Pool), threads: 2, ..sound.clone() },
                "the server has one thread",
            ),
            (
                SampleSpec { direct: true, size: 512, block: 512, ..sound },
                "the server does not read with O_DIRECT",
            ),
        ] {
            let refusal = execute(&wrong).unwrap_err();
            assert_eq!((refusal.to_string().as_str(), refusal.status()), (said, 2));
        }
    }
}
