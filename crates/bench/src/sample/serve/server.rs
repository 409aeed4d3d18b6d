//! The server: one thread with tokio's current-thread runtime, one task for each connection.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use fathom_io::Model;
use futures_util::future::{AbortRegistration, Abortable};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, spawn_blocking};

use super::super::spec::{SampleError, SampleSpec};
use super::response::send_file;
use super::{CHUNK_BYTES, CONNECTIONS, http, join_result, register, runtime};

/// Longest request in bytes.
const REQUEST_BYTES: usize = 512;
/// Duration of the jobs that start the pool. Each job must still run when the last thread starts,
/// so that no thread gets two jobs.
const POOL_START_TIME: Duration = Duration::from_millis(20);

/// State shared by all connections.
struct ServerContext {
    root: PathBuf,
    model: Model,
    requests: RequestCounter,
}

/// The number of requests in flight.
#[derive(Debug, Default)]
struct RequestCounter {
    current: AtomicUsize,
    max: AtomicUsize,
}

impl RequestCounter {
    fn begin(&self) {
        let current = self.current.fetch_add(1, Relaxed) + 1;
        assert!(current <= CONNECTIONS, "a connection has one request under way");
        self.max.fetch_max(current, Relaxed);
    }

    fn end(&self) {
        self.current.fetch_sub(1, Relaxed);
    }
}

/// A server and its connections.
pub(super) struct Server {
    context: Arc<ServerContext>,
    streams: Vec<TcpStream>,
    runtime: Runtime,
}

impl Server {
    /// Builds a server whose pool threads are all running.
    pub(super) fn new(spec: &SampleSpec, streams: Vec<std::net::TcpStream>) -> io::Result<Self> {
        let runtime = runtime(spec.depth)?;
        let model = spec.model.unwrap_or_default();
        if matches!(model, Model::Nowait | Model::Pool | Model::Tokio) {
            runtime.block_on(start_pool(spec.depth))?;
        }
        let streams = register(&runtime, streams)?;
        let context = ServerContext { root: spec.path.clone(), model, requests: RequestCounter::default() };
        Ok(Self { context: Arc::new(context), streams, runtime })
    }

    /// Serves until it is stopped or fails. Returns the highest number of requests in flight.
    pub(super) fn run(self, stopped: AbortRegistration) -> Result<usize, SampleError> {
        let Self { context, streams, runtime } = self;
        let mut tasks = JoinSet::new();
        for stream in streams {
            tasks.spawn_on(connection(stream, context.clone()), runtime.handle());
        }
        let all = async {
            while let Some(task) = tasks.join_next().await {
                join_result(task)?;
            }
            Ok(())
        };
        match runtime.block_on(Abortable::new(all, stopped)) {
            Ok(outcome) => outcome?,
            // The client may stop the server because a connection failed: report the server's
            // error, if any.
            Err(_stopped) => {
                while let Some(task) = tasks.try_join_next() {
                    join_result(task)?;
                }
            }
        }
        Ok(context.requests.max.load(Relaxed))
    }
}

async fn start_pool(threads: usize) -> io::Result<()> {
    let jobs: Vec<_> = (0..threads).map(|_| spawn_blocking(|| std::thread::sleep(POOL_START_TIME))).collect();
    for job in jobs {
        job.await?;
    }
    Ok(())
}

/// Serves the requests of one connection until the client closes it.
async fn connection(mut stream: TcpStream, context: Arc<ServerContext>) -> Result<(), SampleError> {
    let (mut request, mut buffer) = (Vec::with_capacity(REQUEST_BYTES), vec![0; CHUNK_BYTES]);
    let read_failed = |error| SampleError::io("read a request for", &context.root, error);
    while let Some(name) = read_request(&mut stream, &mut request).await.map_err(read_failed)? {
        context.requests.begin();
        let path = context.root.join(name);
        let sent = send_file(context.model, &path, &mut stream, buffer).await;
        buffer = sent.map_err(|error| SampleError::io("serve", &path, error))?;
        context.requests.end();
    }
    Ok(())
}

/// Reads the next request and returns the file name; `None` at the end of the connection.
async fn read_request<'a>(stream: &mut TcpStream, request: &'a mut Vec<u8>) -> io::Result<Option<&'a str>> {
    request.clear();
    while !http::is_complete(request) {
        if request.len() >= REQUEST_BYTES {
            return Err(http::invalid("a request is too long"));
        }
        if stream.read_buf(request).await? == 0 {
            return if request.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
    http::name(request).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_are_counted() {
        let requests = RequestCounter::default();
        (0..3).for_each(|_| requests.begin());
        (0..2).for_each(|_| requests.end());
        requests.begin();
        assert_eq!((requests.current.into_inner(), requests.max.into_inner()), (2, 3));
    }

    #[test]
    #[should_panic(expected = "a connection has one request under way")]
    fn more_requests_than_connections_panic() {
        let requests = RequestCounter::default();
        (0..=CONNECTIONS).for_each(|_| requests.begin());
    }
}
