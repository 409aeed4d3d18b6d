//! The socket under hyper or TLS: records progress in the connection state, and sends queued
//! segments in the place of their placeholders.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_files::ByteCost;
use fathom_io::sys::send_file;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::chunk::{SendfileQueue, SendfileSegment, is_placeholder};
use super::deadlines::ConnectionState;
use super::send_cost::SendCostEstimator;
use crate::proxies::{self, ProxyHeader};

/// The most unsent bytes that the kernel queues for a client on this machine.
const UNSENT_BYTES: u32 = 16 << 10;
/// The size of one read while the protocol is detected and while input is discarded.
const SCRATCH_BYTES: usize = 4 << 10;
/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol indicated by the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialProtocol {
    /// A method of HTTP/1.1.
    Http1,
    /// The preface of HTTP/2.
    Http2,
    /// Anything else: TLS, or a connection that ends at once.
    Other,
}

impl InitialProtocol {
    /// Returns the protocol that `bytes` begin, or `None` if more bytes are needed to decide.
    fn of(bytes: &[u8]) -> Option<Self> {
        let first = bytes.first()?;
        if bytes.len() < PREFACE.len() && PREFACE.starts_with(bytes) {
            return None;
        }
        Some(match bytes.starts_with(PREFACE) {
            true => Self::Http2,
            false if first.is_ascii_uppercase() => Self::Http1,
            false => Self::Other,
        })
    }
}

/// A connected socket of either kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Returns whether the peer is on another machine, as far as the addresses tell.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Tcp(stream) => match (stream.peer_addr(), stream.local_addr()) {
                (Ok(peer), Ok(local)) => peer.ip() != local.ip() && !peer.ip().to_canonical().is_loopback(),
                _ => false,
            },
            Self::Unix(_) => false,
        }
    }

    /// Limits the unsent bytes in the kernel for a client on this machine (`TCP_NOTSENT_LOWAT`,
    /// tcp(7)). The kernel sends queued bytes while it processes an acknowledgement, on the
    /// client's processor and in the client's time, which lowers the throughput of the client.
    pub(crate) fn limit_unsent(&self) {
        if let Self::Tcp(stream) = self {
            // A kernel without the option queues more.
            let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        }
    }

    /// Sends the bytes that wait for a full packet (`TCP_NODELAY`, tcp(7)). sendfile(2) tells TCP
    /// that more data follows. If the socket then takes nothing and no packet awaits an
    /// acknowledgement, only a timer would send the rest.
    fn send_corked(&self) {
        if let Self::Tcp(stream) = self {
            // A closed connection has nothing to send.
            let _ = stream.set_nodelay(true);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }

    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Waits until the socket is readable. tokio's own future for that takes 480 bytes of each idle
    /// connection.
    fn readable(&self) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        })
    }

    fn try_read(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(room),
            Self::Unix(stream) => stream.try_read(room),
        }
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Calls `write`. If that would block, tokio clears the readiness of the socket.
    fn try_write(&self, write: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_io(Interest::WRITABLE, || write(stream.as_fd())),
            Self::Unix(stream) => stream.try_io(Interest::WRITABLE, || write(stream.as_fd())),
        }
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A socket with the queue of its sendfile segments.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    sendfile_queue: SendfileQueue,
    state: Rc<ConnectionState>,
    /// Bytes that were read from the socket and not yet returned by `poll_read`.
    read_ahead: Bytes,
}

impl Transport {
    pub(crate) fn new(socket: Socket, sendfile_queue: SendfileQueue, state: Rc<ConnectionState>) -> Self {
        state.set_socket(Some(socket.as_raw_fd()));
        Self { socket, sendfile_queue, state, read_ahead: Bytes::new() }
    }

    /// Puts `bytes` back: the next read returns them.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        // An empty slice may still keep its whole buffer alive.
        self.read_ahead = if bytes.is_empty() { Bytes::new() } else { bytes };
    }

    /// Waits until the socket is readable or the peer has closed it.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        if !self.read_ahead.is_empty() {
            return Ok(());
        }
        self.socket.readable().await
    }

    /// Returns the bytes that were read ahead and not consumed.
    pub(crate) fn read_ahead(&self) -> &[u8] {
        &self.read_ahead
    }

    /// Detects the protocol from the first bytes of the connection, which remain to be read.
    ///
    /// # Errors
    /// The errors of read(2).
    pub(crate) async fn detect_protocol(&mut self) -> io::Result<InitialProtocol> {
        loop {
            if let Some(first) = InitialProtocol::of(&self.read_ahead) {
                return Ok(first);
            }
            self.socket.readable().await?;
            if !self.read_more()? {
                return Ok(InitialProtocol::Other);
            }
        }
    }

    /// Consumes the PROXY protocol header at the beginning of the connection and returns the
    /// client's address in it.
    ///
    /// # Errors
    /// `InvalidData` if the connection begins with something else, `UnexpectedEof` if it ends
    /// early, and the errors of read(2).
    pub(crate) async fn read_proxy_header(&mut self) -> io::Result<Option<SocketAddr>> {
        loop {
            match proxies::parse(&self.read_ahead) {
                ProxyHeader::Complete { len, client } => {
                    let rest = self.read_ahead.slice(len..);
                    self.unread(rest);
                    return Ok(client);
                }
                ProxyHeader::Malformed => return Err(io::ErrorKind::InvalidData.into()),
                ProxyHeader::Incomplete => {}
            }
            self.socket.readable().await?;
            if !self.read_more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads once into `read_ahead`. Returns `false` at the end of the input.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut room = [0; SCRATCH_BYTES];
        match self.socket.try_read(&mut room) {
            Ok(read) => {
                self.state.record_received();
                self.read_ahead =
                    [&self.read_ahead[..], room.get(..read).unwrap_or_default()].concat().into();
                Ok(read > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads and discards input until the peer ends it.
    pub(crate) async fn discard(self) {
        while self.socket.readable().await.is_ok() {
            let mut room = [0; SCRATCH_BYTES];
            match self.socket.try_read(&mut room) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.sendfile_queue.is_broken() {
            return Err(io::Error::other("a placeholder was copied or dropped instead of sent"));
        }
        let before = slices.iter().position(|slice| is_placeholder(slice)).unwrap_or(slices.len());
        // The first slice is a placeholder.
        if before == 0 && !slices.is_empty() {
            return self.send_segment();
        }
        // A segment follows, so the last packet need not be sent short.
        let flags = if before < slices.len() { SendFlags::MORE } else { SendFlags::empty() };
        let slices = slices.get(..before).unwrap_or_default();
        let write = || self.socket.try_write(|socket| send(socket, slices, flags));
        let is_long = slices.iter().map(|slice| slice.len()).sum::<usize>() >= ByteCost::BYTES_MIN;
        match (is_long, flags.is_empty()) {
            (true, _) => self.timed(SendCostEstimator::record_write, write),
            (false, false) => self.timed(SendCostEstimator::record_head_write, write),
            // Most responses are short, and reading the clock is expensive beside them.
            (false, true) => write(),
        }
    }

    fn timed(
        &self,
        record: fn(&SendCostEstimator, Duration, usize),
        write: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let start = Instant::now();
        let written = write()?;
        record(self.sendfile_queue.send_cost(), start.elapsed(), written);
        Ok(written)
    }

    fn send_segment(&self) -> io::Result<usize> {
        let sent = self.socket.try_write(|socket| {
            self.sendfile_queue.send(socket, |segment| {
                self.timed(segment.from.cost_recorder(), || send_segment(socket, segment))
            })
        });
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.socket.send_corked();
        }
        sent
    }

    fn poll_send(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            if self.socket.poll_writable(cx).is_pending() {
                self.state.record_blocked();
                return Poll::Pending;
            }
            match self.write(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    self.state.record_sent();
                    return Poll::Ready(sent);
                }
            }
        }
    }
}

fn send(socket: BorrowedFd<'_>, slices: &[IoSlice<'_>], flags: SendFlags) -> io::Result<usize> {
    let flags = flags | SendFlags::NOSIGNAL;
    Ok(rustix::io::retry_on_intr(|| sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags))?)
}

/// Sends bytes of `segment`.
///
/// # Errors
/// `UnexpectedEof` if the file has become shorter than the response has promised, and the errors of
/// sendfile(2).
fn send_segment(socket: BorrowedFd<'_>, segment: &SendfileSegment) -> io::Result<usize> {
    match send_file(socket, segment.from.fd()?, segment.offset, segment.bytes)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter")),
        sent => Ok(sent),
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.state.set_socket(None);
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.read_ahead.is_empty() {
            let ready = this.read_ahead.split_to(this.read_ahead.len().min(buf.remaining()));
            buf.put_slice(&ready);
            return Poll::Ready(Ok(()));
        }
        ready!(this.socket.poll_read(cx, buf))?;
        this.state.record_received();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().socket.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::io::{Read, Write};
    use std::sync::Arc;

    use fathom_io::sys::SealedMemory;
    use http_body::Frame;
    use hyper::Response;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;

    use super::*;
    use crate::conn::chunk::{Chunk, SegmentSource};

    /// A body of segments and of bytes in memory.
    struct SegmentBody(VecDeque<Chunk>);

    impl http_body::Body for SegmentBody {
        type Data = Chunk;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Chunk>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
        }
    }

    /// Sends `bytes` by sendfile(2) through hyper, which writes buffers as they are (`vectored`) or
    /// copies them into one. Returns the response, and whether hyper reports an error.
    fn respond(bytes: &[u8], vectored: bool) -> (Vec<u8>, bool) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let client = std::thread::spawn(move || {
            (&theirs).write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut received = Vec::new();
            (&theirs).read_to_end(&mut received).map(|_| received)
        });
        let sealed = Arc::new(SealedMemory::new(bytes).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(async move {
            ours.set_nonblocking(true).unwrap();
            let socket = Socket::Unix(UnixStream::from_std(ours).unwrap());
            let state = ConnectionState::new(fathom_io::Clock::default());
            let queue = SendfileQueue::new(Rc::clone(&state), Rc::default());
            let service = service_fn(|_request| {
                let segment = |offset: usize| {
                    let bytes = (bytes.len() - offset).min(SEGMENT);
                    let from = SegmentSource::CachedBody(Arc::clone(&sealed));
                    queue.push(SendfileSegment { from, offset: offset as u64, bytes })
                };
                let chunks = (0..bytes.len()).step_by(SEGMENT).map(segment).collect();
                std::future::ready(Ok::<_, Infallible>(Response::new(SegmentBody(chunks))))
            });
            let transport = TokioIo::new(Transport::new(socket, queue.clone(), state));
            http1::Builder::new().writev(vectored).serve_connection(transport, service).await
        });
        (client.join().unwrap().unwrap(), ended.is_err())
    }

    /// The bytes of a segment: more than a socket takes at once, and no multiple of a page.
    const SEGMENT: usize = 700_001;

    #[test]
    fn a_hyper_that_copies_buffers_would_send_zeros() {
        // Chunked coding, so frames of hyper are between the segments.
        let bytes: Vec<u8> = (0..5 * SEGMENT / 2).map(|at| (at % 251) as u8 + 1).collect();
        let (received, failed) = respond(&bytes, true);
        assert!(!failed);
        let start = received.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let (mut rest, mut body) = (&received[start..], Vec::new());
        loop {
            let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
            let chunk = &rest[end + 2..][..size];
            body.extend_from_slice(chunk);
            rest = &rest[end + 2 + size + 2..];
            if size == 0 {
                break;
            }
        }
        assert!(body == bytes, "{} bytes of {}", body.len(), bytes.len());

        let (received, failed) = respond(&bytes, false);
        assert!(failed, "hyper did not notice that its connection is broken");
        assert!(!received.contains(&0), "zeros were sent");
    }

    #[test]
    fn the_protocol_is_detected_as_early_as_possible() {
        for (bytes, first) in [
            (&b""[..], None),
            (b"P", None),
            (&PREFACE[..23], None),
            (PREFACE, Some(InitialProtocol::Http2)),
            (b"PU", Some(InitialProtocol::Http1)),
            (b"PRI * HTTP/1.1\r\n", Some(InitialProtocol::Http1)),
            (b"GET / HTTP/1.1\r\n\r\n", Some(InitialProtocol::Http1)),
            (b"\x16\x03\x01", Some(InitialProtocol::Other)),
            (b"\r\nGET", Some(InitialProtocol::Other)),
        ] {
            assert_eq!(InitialProtocol::of(bytes), first, "{}", bytes.escape_ascii());
        }
    }
}
