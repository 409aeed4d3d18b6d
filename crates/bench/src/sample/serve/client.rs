//! Who asks: as many connections as there are, on one thread, each for the next file as soon as it has the last one, and looks at what came.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::super::drive::Tally;
use super::super::order::Order;
use super::super::small;
use super::super::spec::{Failure, Spec};
use super::{CHUNK_BYTES, ended, message, register, runtime};
use crate::pattern::Pattern;

/// What there is to ask for, and what has to come.
struct Work {
    spec: Spec,
    pattern: Pattern,
    order: Mutex<Order>,
}

impl Work {
    fn new(spec: &Spec) -> Self {
        let pattern = Pattern::new(spec.seed, spec.generation);
        Self { spec: spec.clone(), pattern, order: Mutex::new(Order::new(0..spec.blocks(), Some(spec.seed))) }
    }

    /// The next file of all.
    fn next(&self) -> Option<u64> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// The client. Connections are closed when it is dropped, not before.
pub(super) struct Client {
    work: Arc<Work>,
    /// Those that nobody uses just now.
    ends: Vec<TcpStream>,
    asking: JoinSet<(TcpStream, Result<Tally, Failure>)>,
    runtime: Runtime,
}

impl Client {
    pub(super) fn new(spec: &Spec, ends: Vec<std::net::TcpStream>) -> io::Result<Self> {
        let runtime = runtime(1)?;
        let (work, ends) = (Arc::new(Work::new(spec)), register(&runtime, ends)?);
        Ok(Self { work, ends, asking: JoinSet::new(), runtime })
    }

    /// Asks for all files; what came, and how long each took.
    pub(super) fn run(&mut self) -> Result<Tally, Failure> {
        let Self { work, ends, asking, runtime } = self;
        runtime.block_on(async {
            for mut end in ends.drain(..) {
                let work = work.clone();
                asking.spawn(async move {
                    let tally = ask(&mut end, &work).await;
                    (end, tally)
                });
            }
            let mut all = Tally::default();
            while let Some(task) = asking.join_next().await {
                let (end, tally) = ended(task);
                ends.push(end);
                all.add(tally?);
            }
            Ok(all)
        })
    }
}

/// Asks for files over one connection until there are no more.
async fn ask(end: &mut TcpStream, work: &Work) -> Result<Tally, Failure> {
    let (mut tally, mut buffer) = (Tally::default(), vec![0; 2 * CHUNK_BYTES]);
    while let Some(number) = work.next() {
        let start = Instant::now();
        tally.pages_ok += exchange(end, work, number, &mut buffer).await?;
        tally.nanoseconds.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        tally.ops += 1;
        tally.bytes += small::len(work.spec.size, work.spec.block, number) as u64;
    }
    Ok(tally)
}

/// Asks for file `number`, and takes all of it; how many pages of it have the right stamp.
async fn exchange(end: &mut TcpStream, work: &Work, number: u64, buffer: &mut [u8]) -> Result<u64, Failure> {
    let Spec { path, size, block, .. } = &work.spec;
    let broken = |error| Failure::io("receive", &small::file(path, number), error);
    let len = small::len(*size, *block, number);
    end.write_all(message::request(&small::name(number)).as_bytes()).await.map_err(broken)?;
    let (mut at, mut filled) = head(end, len, buffer).await.map_err(broken)?;
    let mut pages = 0;
    for offset in (0..len).step_by(CHUNK_BYTES) {
        let part = at..at + CHUNK_BYTES.min(len - offset);
        while filled < part.end {
            filled += some(end, &mut buffer[filled..part.end]).await.map_err(broken)?;
        }
        let right = work.pattern.check_stamps(small::offset(number, *block) + offset as u64, &buffer[part]);
        pages += right.map_err(|page| Failure::Wrong(small::file(path, number), page))?;
        (at, filled) = (0, 0);
    }
    Ok(pages)
}

/// Takes the head of an answer of `len` bytes; where the body begins in `buffer`, and how far that is filled.
async fn head(end: &mut TcpStream, len: usize, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
    let mut filled = 0;
    let (at, told) = loop {
        filled += some(end, &mut buffer[filled..CHUNK_BYTES]).await?;
        if let Some(body) = message::body(&buffer[..filled])? {
            break body;
        }
    };
    if told != len as u64 {
        return Err(message::invalid(format!("it has {told} bytes instead of {len}")));
    }
    if filled > at + len {
        return Err(message::invalid("more came than was announced"));
    }
    Ok((at, filled))
}

/// Takes what has come, at least a byte.
async fn some(end: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    match end.read(room).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::PathBuf;

    use fathom_io::uring::Completion;

    use super::super::super::spec::{Deed, Method};
    use super::super::connect;
    use super::*;

    /// What the client says of a server that answers the request for the only file, of 20 bytes, with `answer`, and then is gone.
    fn told(answer: &[u8]) -> Result<u64, String> {
        let (path, deed, method) = (PathBuf::from("dir"), Deed::Serve, Method::Blocking);
        let (completion, direct, seed, generation) = (Completion::Wait, false, 1, 1);
        let (size, block, threads, depth, batch) = (20, 20, 1, 1, 1);
        let spec = Spec {
            deed,
            method,
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
        };
        let (mut servers, clients) = connect().unwrap();
        let mut client = Client::new(&spec, clients).unwrap();
        let mut server = servers.swap_remove(0);
        server.set_nonblocking(false).unwrap();
        server.write_all(answer).unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
        let outcome = client.run().map(|tally| tally.bytes).map_err(|failure| failure.to_string());
        let mut request = [0; 64];
        let asked = server.read(&mut request).unwrap();
        assert_eq!(message::name(&request[..asked]).unwrap(), "0000/file-0");
        outcome
    }

    #[test]
    fn only_an_answer_that_is_whole_and_right_counts() {
        let mut body = [0; 20];
        Pattern::new(1, 1).fill(0, &mut body);
        let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", &body[..]].concat();
        assert_eq!(told(&answer), Ok(20));
        let end = answer.len();
        let mut wrong = answer.clone();
        wrong[end - 20] ^= 1;
        for (answer, said) in [
            (&answer[..end - 1], "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (&answer[..10], "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (b"", "cannot receive 'dir/0000/file-0': unexpected end of file"),
            (&[&answer[..], b"x"].concat(), "cannot receive 'dir/0000/file-0': more came than was announced"),
            (b"HTTP/1.1 404 Not Found\r\n\r\n", "cannot receive 'dir/0000/file-0': this is no answer"),
            (&wrong, "cannot verify 'dir/0000/file-0': page at 0 is not what was written"),
        ] {
            assert_eq!(told(answer), Err(said.to_owned()), "{answer:?}");
        }
    }
}
