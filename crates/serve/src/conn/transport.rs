//! A socket under hyper or TLS: counts what passes, and sends parts of files in the place of the buffers that stand for them.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_io::sys::send_file;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::chunk::{Part, Parts, is_part};
use super::pulse::Pulse;
use super::way::Way;
use crate::proxies::{self, Parsed};

/// What a client on this machine is queued beyond what its window takes.
const UNSENT_BYTES: u32 = 16 << 10;
/// Read at once where a connection begins, or where what comes is thrown away.
const SCRATCH_BYTES: usize = 4 << 10;
/// With what HTTP/2 begins (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol indicated by the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// A method of HTTP/1.1.
    Http1,
    /// The preface of HTTP/2.
    Http2,
    /// Anything else: TLS, or nothing.
    Other,
}

impl First {
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

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Whether the other end is on another machine, as far as addresses tell.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Tcp(stream) => match (stream.peer_addr(), stream.local_addr()) {
                (Ok(peer), Ok(local)) => peer.ip() != local.ip() && !peer.ip().to_canonical().is_loopback(),
                _ => false,
            },
            Self::Unix(_) => false,
        }
    }

    /// Queues little for a client on this machine (TCP_NOTSENT_LOWAT, tcp(7)). What is queued beyond its window is sent when it acknowledges
    /// something, in its own time and on its processor, which has the receiving to do: it gets less a second then.
    pub(crate) fn queue_little(&self) {
        if let Self::Tcp(stream) = self {
            // A kernel that does not know it queues more.
            let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        }
    }

    /// Sends what waits for more to fill a packet with (TCP_NODELAY, tcp(7)): sendfile(2) has said that there is more, and if the socket
    /// takes none of it, and nothing is under way that could be acknowledged, only a timer would send it.
    fn push(&self) {
        if let Self::Tcp(stream) = self {
            // A connection that is gone has nothing to send.
            let _ = stream.set_nodelay(true);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }

    async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
        }
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

    /// Tries `write`; where it would block, the socket is known not to be writable.
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

/// A socket, with the parts of files that are to be sent on it.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    parts: Parts,
    pulse: Rc<Pulse>,
    /// Bytes that were read ahead and will be read again.
    back: Bytes,
}

impl Transport {
    pub(crate) fn new(socket: Socket, parts: Parts, pulse: Rc<Pulse>) -> Self {
        Self { socket, parts, pulse, back: Bytes::new() }
    }

    /// Has `bytes` read again before anything else.
    pub(crate) fn put_back(&mut self, bytes: Bytes) {
        // No bytes may still be a whole buffer.
        self.back = if bytes.is_empty() { Bytes::new() } else { bytes };
    }

    /// Waits until there is something to be read, or the end.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        if !self.back.is_empty() {
            return Ok(());
        }
        self.socket.readable().await
    }

    /// Returns the bytes that were read ahead and will be read again.
    pub(crate) fn seen(&self) -> &[u8] {
        &self.back
    }

    /// Detects the protocol from the first bytes of the connection, which remain to be read.
    ///
    /// # Errors
    /// If the connection is gone.
    pub(crate) async fn first(&mut self) -> io::Result<First> {
        loop {
            if let Some(first) = First::of(&self.back) {
                return Ok(first);
            }
            self.socket.readable().await?;
            if !self.read_back()? {
                return Ok(First::Other);
            }
        }
    }

    /// Reads a header of the PROXY protocol off the connection, and returns the client it names.
    ///
    /// # Errors
    /// If the connection is gone, or begins with something else.
    pub(crate) async fn introduction(&mut self) -> io::Result<Option<SocketAddr>> {
        loop {
            match proxies::parse(&self.back) {
                Parsed::Header { len, client } => {
                    let rest = self.back.slice(len..);
                    self.put_back(rest);
                    return Ok(client);
                }
                Parsed::Malformed => return Err(io::ErrorKind::InvalidData.into()),
                Parsed::Short => {}
            }
            self.socket.readable().await?;
            if !self.read_back()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads once, to be read again; false at the end.
    fn read_back(&mut self) -> io::Result<bool> {
        let mut room = [0; SCRATCH_BYTES];
        match self.socket.try_read(&mut room) {
            Ok(read) => {
                self.pulse.received();
                self.back = [&self.back[..], room.get(..read).unwrap_or_default()].concat().into();
                Ok(read > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Throws away what comes until the other end sends no more.
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
        let before = slices.iter().position(|slice| is_part(slice)).unwrap_or(slices.len());
        if before == 0 && !slices.is_empty() {
            return self.send_part();
        }
        // What is left to send is the file's: a packet need not end here.
        let flags = if before < slices.len() { SendFlags::MORE } else { SendFlags::empty() };
        let slices = slices.get(..before).unwrap_or_default();
        let write = || self.socket.try_write(|socket| send(socket, slices, flags));
        let is_long = slices.iter().map(|slice| slice.len()).sum::<usize>() >= Way::BYTES_MIN;
        match (is_long, flags.is_empty()) {
            (true, _) => self.timed(Way::written, write),
            (false, false) => self.timed(Way::headed, write),
            // Most responses are short, and asking for the time is dear beside them.
            (false, true) => write(),
        }
    }

    fn timed(
        &self,
        note: fn(&Way, Duration, usize),
        write: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let start = Instant::now();
        let written = write()?;
        note(self.parts.way(), start.elapsed(), written);
        Ok(written)
    }

    fn send_part(&self) -> io::Result<usize> {
        let sent = self.socket.try_write(|socket| {
            self.parts.send(socket, |part| self.timed(part.from.note(), || send_part(socket, part)))
        });
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.socket.push();
        }
        sent
    }

    fn poll_send(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            if self.socket.poll_writable(cx).is_pending() {
                self.pulse.blocked();
                return Poll::Pending;
            }
            match self.write(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    self.pulse.sent();
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

/// The file was as long as its response says when that began. Where it is not any more, the response cannot be ended.
fn send_part(socket: BorrowedFd<'_>, part: &Part) -> io::Result<usize> {
    match send_file(socket, part.from.fd()?, part.offset, part.bytes)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter")),
        sent => Ok(sent),
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.back.is_empty() {
            let back = this.back.split_to(this.back.len().min(buf.remaining()));
            buf.put_slice(&back);
            return Poll::Ready(Ok(()));
        }
        ready!(this.socket.poll_read(cx, buf))?;
        this.pulse.received();
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
    use super::*;

    #[test]
    fn what_a_connection_begins_with_is_known_as_soon_as_it_can_be() {
        for (bytes, first) in [
            (&b""[..], None),
            (b"P", None),
            (&PREFACE[..23], None),
            (PREFACE, Some(First::Http2)),
            (b"PU", Some(First::Http1)),
            (b"PRI * HTTP/1.1\r\n", Some(First::Http1)),
            (b"GET / HTTP/1.1\r\n\r\n", Some(First::Http1)),
            (b"\x16\x03\x01", Some(First::Other)),
            (b"\r\nGET", Some(First::Other)),
        ] {
            assert_eq!(First::of(bytes), first, "{}", bytes.escape_ascii());
        }
    }
}
