//! Who answers: one thread with tokio's current-thread runtime, and a task a connection.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::{AbortRegistration, Abortable};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, spawn_blocking};

use super::super::spec::{Failure, Method, Spec};
use super::answer::answer;
use super::{CHUNK_BYTES, CONNECTIONS, ended, message, register, runtime};

/// Longest request.
const REQUEST_BYTES: usize = 512;
/// A job that takes so long is still there when the last thread of the pool starts.
const START: Duration = Duration::from_millis(20);

/// What all connections know.
struct Work {
    root: PathBuf,
    method: Method,
    load: Load,
}

/// How many requests have come and are not answered.
#[derive(Debug, Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Load {
    fn begin(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        assert!(now <= CONNECTIONS, "a connection has one request under way");
        self.most.fetch_max(now, Relaxed);
    }

    fn end(&self) {
        self.now.fetch_sub(1, Relaxed);
    }
}

/// A server with its connections.
pub(super) struct Server {
    work: Arc<Work>,
    ends: Vec<TcpStream>,
    runtime: Runtime,
}

impl Server {
    /// Ready to run: the threads of its pool have started.
    pub(super) fn new(spec: &Spec, ends: Vec<std::net::TcpStream>) -> io::Result<Self> {
        let runtime = runtime(spec.depth)?;
        if matches!(spec.method, Method::Nowait | Method::Pool | Method::Tokio) {
            runtime.block_on(start_pool(spec.depth))?;
        }
        let ends = register(&runtime, ends)?;
        let work = Work { root: spec.path.clone(), method: spec.method, load: Load::default() };
        Ok(Self { work: Arc::new(work), ends, runtime })
    }

    /// Answers until it is stopped or fails; most requests that were in work at once.
    pub(super) fn run(self, stopped: AbortRegistration) -> Result<usize, Failure> {
        let Self { work, ends, runtime } = self;
        let mut tasks = JoinSet::new();
        for end in ends {
            tasks.spawn_on(connection(end, work.clone()), runtime.handle());
        }
        let all = async {
            while let Some(task) = tasks.join_next().await {
                ended(task)?;
            }
            Ok(())
        };
        match runtime.block_on(Abortable::new(all, stopped)) {
            Ok(outcome) => outcome?,
            // Who stops the server may do so because it has just failed.
            Err(_stopped) => {
                while let Some(task) = tasks.try_join_next() {
                    ended(task)?;
                }
            }
        }
        Ok(work.load.most.load(Relaxed))
    }
}

async fn start_pool(threads: usize) -> io::Result<()> {
    let jobs: Vec<_> = (0..threads).map(|_| spawn_blocking(|| std::thread::sleep(START))).collect();
    for job in jobs {
        job.await?;
    }
    Ok(())
}

/// Answers what comes over one connection, up to its end.
async fn connection(mut end: TcpStream, work: Arc<Work>) -> Result<(), Failure> {
    let (mut request, mut buffer) = (Vec::with_capacity(REQUEST_BYTES), vec![0; CHUNK_BYTES]);
    let unheard = |error| Failure::io("hear a request for", &work.root, error);
    while let Some(name) = hear(&mut end, &mut request).await.map_err(unheard)? {
        work.load.begin();
        let path = work.root.join(name);
        let answered = answer(work.method, &path, &mut end, buffer).await;
        buffer = answered.map_err(|error| Failure::io("serve", &path, error))?;
        work.load.end();
    }
    Ok(())
}

/// The name in the next request; `None` at the end of the connection.
async fn hear<'a>(end: &mut TcpStream, request: &'a mut Vec<u8>) -> io::Result<Option<&'a str>> {
    request.clear();
    while !message::is_whole(request) {
        if request.len() >= REQUEST_BYTES {
            return Err(message::invalid("a request is too long"));
        }
        if end.read_buf(request).await? == 0 {
            return if request.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
    message::name(request).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_work_are_counted() {
        let load = Load::default();
        (0..3).for_each(|_| load.begin());
        (0..2).for_each(|_| load.end());
        load.begin();
        assert_eq!((load.now.into_inner(), load.most.into_inner()), (2, 3));
    }

    #[test]
    #[should_panic(expected = "a connection has one request under way")]
    fn more_requests_than_connections_cannot_be() {
        let load = Load::default();
        (0..=CONNECTIONS).for_each(|_| load.begin());
    }
}
