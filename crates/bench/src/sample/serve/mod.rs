//! Samples of a server of static files: its one thread answers another thread of this process over loopback TCP.
//!
//! The smallest server that is one: keep-alive GET of HTTP/1.1 and nothing else of it, so that what it spends is what any server
//! has to, and the way files are read makes the difference. The client is a closed loop: each connection asks for the next file as
//! soon as it has all of the last one.
//!
//! Owns: both ends, their connections, the clock. Does not own: the files and their order.

mod answer;
mod client;
mod message;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use fathom_io::sys::usage;
use futures_util::future::AbortHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinError;

use super::drive::Tally;
use super::spec::{Failure, Spec};
use super::spent;
use crate::lang::Answer;
use crate::pattern::PAGE_BYTES;
use client::Client;
use server::Server;

/// Connections of the client, each with one request under way: as the published comparisons of servers have about.
pub(crate) const CONNECTIONS: usize = 64;
/// Most bytes of a file that are in memory for a connection, at either end: whole pages.
const CHUNK_BYTES: usize = 16 * PAGE_BYTES;

/// Asks for `size / block` files of `block` bytes, each once. Processor time is that of both ends.
pub(super) fn serve(spec: &Spec) -> Result<Answer, Failure> {
    let failed = |error| Failure::io("start a server for", &spec.path, error);
    let (server_ends, client_ends) = connect().map_err(failed)?;
    let server = Server::new(spec, server_ends).map_err(failed)?;
    let mut client = Client::new(spec, client_ends).map_err(failed)?;
    let (stop, stopped) = AbortHandle::new_pair();
    let serving = thread::Builder::new().name("server".to_owned()).spawn(move || server.run(stopped));
    let serving = serving.map_err(failed)?;
    let (before, start) = (usage(), Instant::now());
    let asked = client.run();
    let (seconds, after) = (start.elapsed().as_secs_f64(), usage());
    stop.abort();
    // The client keeps its ends open until then: sendfile(2) to a closed one is a SIGPIPE, and nothing turns that off.
    let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // Where the server fails, the client only sees that it is gone.
    let in_flight_max = served?;
    Ok(Tally { in_flight_max, ..asked? }.answer(seconds, &spent(&before, &after)))
}

/// The server's and the client's ends of all connections.
fn connect() -> io::Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let pair = |_| {
        let client = TcpStream::connect(address)?;
        let server = accept(&listener, client.local_addr()?)?;
        for end in [&server, &client] {
            end.set_nodelay(true)?;
            end.set_nonblocking(true)?;
        }
        Ok((server, client))
    };
    (0..CONNECTIONS).map(pair).collect()
}

/// The connection from `peer`: any process of the machine can connect, and is not served.
fn accept(listener: &TcpListener, peer: SocketAddr) -> io::Result<TcpStream> {
    loop {
        match listener.accept()? {
            (stream, from) if from == peer => return Ok(stream),
            _stranger => {}
        }
    }
}

/// A runtime of the calling thread with up to `pool_threads` more for blocking calls.
fn runtime(pool_threads: usize) -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().max_blocking_threads(pool_threads).build()
}

/// The connections, known to `runtime`.
fn register(runtime: &Runtime, ends: Vec<TcpStream>) -> io::Result<Vec<tokio::net::TcpStream>> {
    let _context = runtime.enter();
    ends.into_iter().map(tokio::net::TcpStream::from_std).collect()
}

/// What a task came to. Nobody aborts one that is waited for.
fn ended<T>(task: Result<T, JoinError>) -> T {
    task.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::path::Path;

    use fathom_io::uring::Completion;

    use super::super::spec::{Deed, Method};
    use super::super::{execute, small};
    use super::*;
    use crate::pattern::Pattern;

    const METHODS: [Method; 5] =
        [Method::Blocking, Method::Nowait, Method::Pool, Method::Tokio, Method::Sendfile];

    fn spec(path: &Path, method: Method, size: u64, block: usize) -> Spec {
        let (deed, completion, path) = (Deed::Serve, Completion::Wait, path.to_owned());
        let (threads, depth, batch, direct, seed, generation) = (1, 4, 1, false, 3, 5);
        Spec { deed, method, path, size, block, threads, depth, batch, completion, direct, seed, generation }
    }

    /// The files that `spec` asks for, out of the page cache as far as the filesystem lets them go.
    fn make(spec: &Spec) {
        let pattern = Pattern::new(spec.seed, spec.generation);
        for number in 0..spec.blocks() {
            let mut bytes = vec![0; small::len(spec.size, spec.block, number)];
            pattern.fill(small::offset(number, spec.block), &mut bytes);
            let path = small::file(&spec.path, number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            let file = File::open(&path).unwrap();
            file.sync_data().unwrap();
            fathom_io::sys::forget_cached(file.as_fd()).unwrap();
        }
    }

    #[test]
    fn files_of_any_size_come_whole_in_every_way() {
        for (size, block, pages) in [(250 << 10, 4096, 63), (20_000, 100, 200), (1_000_000, 300_000, 247)] {
            for method in METHODS {
                let temp = tempfile::tempdir().unwrap();
                let spec = spec(temp.path(), method, size, block);
                make(&spec);
                let answer = execute(&spec).unwrap();
                assert_eq!((answer.bytes, answer.ops), (size, spec.blocks()), "{method:?}");
                assert_eq!(answer.pages_ok, pages, "{method:?} {block}");
                assert!((1..=CONNECTIONS as u64).contains(&answer.in_flight_max), "{answer:?}");
                assert!(0.0 < answer.p50_us && answer.max_us <= answer.seconds * 1e6, "{answer:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_not_what_was_written_is_caught() {
        for method in METHODS {
            let temp = tempfile::tempdir().unwrap();
            let spec = spec(temp.path(), method, 1 << 20, 4096);
            make(&spec);
            let path = small::file(temp.path(), 123);
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
            assert_eq!(refusal(), said, "{method:?}");

            for len in [0, 4095] {
                fs::write(&path, &right[..len]).unwrap();
                let said = format!("cannot receive '{}': it has {len} bytes instead of 4096", path.display());
                assert_eq!(refusal(), said, "{method:?}");
            }

            fs::remove_file(&path).unwrap();
            let said = format!("cannot serve '{}': No such file or directory", path.display());
            assert_eq!(refusal(), said, "{method:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let sound = spec(Path::new("x"), Method::Blocking, 1, 1);
        for (wrong, said) in [
            (Spec { method: Method::Mmap, ..sound.clone() }, "this method is not for this workload"),
            (Spec { method: Method::Uring, ..sound.clone() }, "this method is not for this workload"),
            (Spec { method: Method::Pool, threads: 2, ..sound.clone() }, "the server has one thread"),
            (Spec { direct: true, size: 512, block: 512, ..sound }, "the server does not read with O_DIRECT"),
        ] {
            let refusal = execute(&wrong).unwrap_err();
            assert_eq!((refusal.to_string().as_str(), refusal.status()), (said, 2));
        }
    }
}
