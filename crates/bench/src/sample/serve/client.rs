//! The client of the server: all connections on one thread. Each connection requests the next file
//! as soon as it has received the previous one, or at the time at which the next request is due,
//! and verifies the content.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_io::sys::Timer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::super::block_order::BlockOrder;
use super::super::io_loop::IoTotals;
use super::super::small_files;
use super::super::spec::{SampleError, SampleSpec};
use super::{CHUNK_BYTES, CONNECTIONS, http};
use crate::pattern::Pattern;

/// The remaining requests and the expected content, shared by all connections.
struct RequestQueue {
    spec: SampleSpec,
    pattern: Pattern,
    remaining: Mutex<RemainingRequests>,
    in_flight: AtomicUsize,
    in_flight_max: AtomicUsize,
}

/// The order of the requests that are not yet taken.
struct RemainingRequests {
    files: BlockOrder,
    /// The time at which the next request is due; `None` if requests are not due at a rate.
    due: Option<Instant>,
}

/// A request that a connection has taken.
struct Request {
    /// The number of its file.
    file: u64,
    due: Option<Instant>,
}

impl RequestQueue {
    fn new(spec: &SampleSpec) -> Self {
        let pattern = Pattern::new(spec.seed, spec.generation);
        Self {
            spec: spec.clone(),
            pattern,
            remaining: Mutex::new(RemainingRequests {
                files: BlockOrder::new(0..spec.blocks(), Some(spec.seed)),
                due: None,
            }),
            in_flight: AtomicUsize::new(0),
            in_flight_max: AtomicUsize::new(0),
        }
    }

    /// Starts the clock of requests that are due at a rate.
    fn start(&self) {
        let is_timed = self.spec.rate > 0;
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner).due = is_timed.then(Instant::now);
    }

    /// Takes the next request.
    fn next(&self) -> Option<Request> {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let file = remaining.files.next()?;
        let due = remaining.due;
        let interval = Duration::from_secs(1).checked_div(self.spec.rate).unwrap_or_default();
        remaining.due = due.map(|due| due + interval);
        Some(Request { file, due })
    }

    /// Counts a request that is sent.
    fn begin(&self) {
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.in_flight_max.fetch_max(in_flight, Relaxed);
    }

    /// Ends a request.
    fn end(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The client.
pub(super) struct Client {
    queue: Arc<RequestQueue>,
    streams: Vec<TcpStream>,
    runtime: Runtime,
}

impl Client {
    /// Opens all connections to the server at `address`.
    pub(super) fn connect(spec: &SampleSpec, address: SocketAddr) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let streams = runtime.block_on(async {
            let mut streams = Vec::with_capacity(CONNECTIONS);
            for _ in 0..CONNECTIONS {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                streams.push(stream);
            }
            io::Result::Ok(streams)
        })?;
        Ok(Self { queue: Arc::new(RequestQueue::new(spec)), streams, runtime })
    }

    /// Requests all files. Returns the totals and the latency of each request.
    pub(super) fn run(&mut self) -> Result<IoTotals, SampleError> {
        let Self { queue, streams, runtime } = self;
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            queue.start();
            for stream in streams.drain(..) {
                tasks.spawn(request_files(stream, queue.clone()));
            }
            let mut all = IoTotals::default();
            while let Some(task) = tasks.join_next().await {
                let totals = task.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
                all.add(totals?);
            }
            Ok(IoTotals { in_flight_max: queue.in_flight_max.load(Relaxed), ..all })
        })
    }
}

/// Requests files over one connection until none are left.
///
/// The latency of a request that is due at a time counts from then. A connection that is still busy
/// at that time sends it late; a client that counted from the sending would omit that wait, which
/// the server has caused (coordinated omission).
async fn request_files(mut stream: TcpStream, queue: Arc<RequestQueue>) -> Result<IoTotals, SampleError> {
    let (mut totals, mut buffer) = (IoTotals::default(), vec![0; 2 * CHUNK_BYTES]);
    let timer_failed = |error| SampleError::io("set a timer for", &queue.spec.path, error);
    let timer = (queue.spec.rate > 0).then(Timer::new).transpose().map_err(timer_failed)?;
    while let Some(Request { file, due }) = queue.next() {
        if let (Some(timer), Some(due)) = (&timer, due) {
            timer.wait_until(due).await.map_err(timer_failed)?;
        }
        let start = due.unwrap_or_else(Instant::now);
        queue.begin();
        totals.pages_ok += exchange(&mut stream, &queue, file, &mut buffer).await?;
        queue.end();
        totals.nanoseconds.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        totals.ops += 1;
        totals.bytes += small_files::len(queue.spec.size, queue.spec.block, file) as u64;
    }
    Ok(totals)
}

/// Requests file `number` and reads the whole response. Returns the number of pages with a correct
/// stamp.
async fn exchange(
    stream: &mut TcpStream,
    queue: &RequestQueue,
    number: u64,
    buffer: &mut [u8],
) -> Result<u64, SampleError> {
    let SampleSpec { path, size, block, .. } = &queue.spec;
    let receive_failed = |error| SampleError::io("receive", &small_files::path_of(path, number), error);
    let len = small_files::len(*size, *block, number);
    stream
        .write_all(http::request(&small_files::relative_path(number)).as_bytes())
        .await
        .map_err(receive_failed)?;
    let (mut at, mut filled) = head(stream, len, buffer).await.map_err(receive_failed)?;
    let mut pages = 0;
    for offset in (0..len).step_by(CHUNK_BYTES) {
        let chunk = at..at + CHUNK_BYTES.min(len - offset);
        while filled < chunk.end {
            filled += read_some(stream, &mut buffer[filled..chunk.end]).await.map_err(receive_failed)?;
        }
        let right =
            queue.pattern.check_stamps(small_files::offset(number, *block) + offset as u64, &buffer[chunk]);
        pages += right.map_err(|page| SampleError::Wrong(small_files::path_of(path, number), page))?;
        (at, filled) = (0, 0);
    }
    Ok(pages)
}

/// Reads the head of a response of `len` bytes. Returns the start of the body in `buffer` and the
/// end of the bytes received so far.
async fn head(stream: &mut TcpStream, len: usize, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
    let mut filled = 0;
    let (at, content_length) = loop {
        filled += read_some(stream, &mut buffer[filled..CHUNK_BYTES]).await?;
        if let Some(body) = http::body(&buffer[..filled])? {
            break body;
        }
    };
    if content_length != len as u64 {
        return Err(http::invalid(format!("it has {content_length} bytes instead of {len}")));
    }
    if filled > at + len {
        return Err(http::invalid("more came than was announced"));
    }
    Ok((at, filled))
}

/// Reads at least one byte.
async fn read_some(stream: &mut TcpStream, space: &mut [u8]) -> io::Result<usize> {
    match stream.read(space).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::thread;

    use fathom_io::uring::Completion;

    use super::*;
    use crate::Workload;
    use crate::sample::AccessHint;

    fn spec(size: u64, rate: u32) -> SampleSpec {
        SampleSpec {
            workload: Workload::Serve,
            model: Some(fathom_io::Model::Sync),
            path: PathBuf::from("dir"),
            size,
            block: 20,
            threads: 1,
            depth: 1,
            batch: 1,
            completion: Completion::Wait,
            direct: false,
            hint: AccessHint::Normal,
            read_percent: 0,
            seed: 1,
            has_pattern: true,
            backlog: 0,
            rate,
            generation: 1,
            calls: None,
        }
    }

    /// Returns the client's result for a server that answers the request for the only file, of 20
    /// bytes, with `response`, and then closes the connection.
    fn run_against(response: &[u8]) -> Result<(u64, usize), String> {
        let spec = spec(20, 0);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = Client::connect(&spec, listener.local_addr().unwrap()).unwrap();
        // The client's first task takes the only file, over the first connection.
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(response).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let outcome = client.run().map(|totals| (totals.bytes, totals.in_flight_max));
        let mut request = [0; 64];
        let len = stream.read(&mut request).unwrap();
        assert_eq!(str::from_utf8(&request[..len]).unwrap(), http::request("0000/file-0"));
        outcome.map_err(|failure| failure.to_string())
    }

    #[test]
    fn only_complete_and_correct_responses_count() {
        let mut body = [0; 20];
        Pattern::new(1, 1).fill(0, &mut body);
        let response = [b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", &body[..]].concat();
        assert_eq!(run_against(&response), Ok((20, 1)));
        let end = response.len();
        let mut wrong = response.clone();
        wrong[end - 20] ^= 1;
        for (response, said) in [
            (&response[..end - 1], "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (&response[..10], "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (b"", "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (
                &[&response[..], b"x"].concat(),
                "cannot receive 'dir/0000/file-0': more came than was announced",
            ),
            (
                b"HTTP/1.1 404 Not Found\r\n\r\n",
                "cannot receive 'dir/0000/file-0': the response is 'HTTP/1.1 404 Not Found'",
            ),
            (&wrong, "cannot verify 'dir/0000/file-0': page at 0 is not what was written"),
        ] {
            assert_eq!(run_against(response), Err(said.to_owned()), "{response:?}");
        }
    }

    /// Answers the requests on `stream`, the first of them after `ready`.
    fn answer_all(mut stream: std::net::TcpStream, ready: impl FnOnce()) {
        let (mut ready, mut request) = (Some(ready), [0; 256]);
        while let Ok(len @ 1..) = stream.read(&mut request) {
            let text = str::from_utf8(&request[..len]).unwrap();
            let file = text.split_once("file-").and_then(|(_, rest)| rest.split(' ').next()).unwrap();
            ready.take().into_iter().for_each(|ready| ready());
            let mut body = [0; 20];
            Pattern::new(1, 1).fill(small_files::offset(file.parse().unwrap(), 20), &mut body);
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n";
            stream.write_all(&[head, &body[..]].concat()).unwrap();
        }
    }

    #[test]
    fn a_request_that_a_stalled_server_delays_has_the_delay_in_its_latency() {
        const RATE: u32 = 100_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let requests = 2 * CONNECTIONS as u64;
        let mut client = Client::connect(&spec(requests * 20, RATE), listener.local_addr().unwrap()).unwrap();
        // No connection gets an answer before each of them has a request.
        let stalled = &Barrier::new(CONNECTIONS);
        let totals = thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || {
                    answer_all(stream, || {
                        stalled.wait();
                        thread::sleep(Duration::from_millis(20));
                    });
                });
            }
            let totals = client.run().unwrap();
            drop(client);
            totals
        });
        assert_eq!((totals.ops, totals.in_flight_max), (requests, CONNECTIONS));
        // All were due within 1.28 ms of the start.
        let least = Duration::from_millis(20) - Duration::from_secs(requests) / RATE;
        let delayed = totals.nanoseconds.iter().filter(|latency| u128::from(**latency) >= least.as_nanos());
        assert_eq!(delayed.count() as u64, requests);
    }
}
