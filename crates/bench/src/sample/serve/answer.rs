//! How the server's thread, the worker, reads a file and sends it:
//!
//! ```text
//! blocking   worker: open fstat read             write
//! nowait     worker: open fstat preadv2(NOWAIT)  write     pool, for what is not cached: pread
//! pool                                  worker:  write     pool: open fstat pread
//! tokio                                 worker:  write     pool: open | fstat | read, a hand-off each
//! sendfile   worker: open fstat send sendfile
//! ```
//! The pool is the runtime's, for blocking calls. Head and body go out in one write, unless the file is longer than a chunk.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fathom_io::data::transfer::{Transfer, Way};
use fathom_io::data::{AtOnce, read_at_once};
use rustix::net::{SendFlags, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

use super::super::spec::Method;
use super::message;

/// Sends the file at `path` by way of `buffer`, which comes back.
pub(super) async fn answer(
    method: Method,
    path: &Path,
    end: &mut TcpStream,
    mut buffer: Vec<u8>,
) -> io::Result<Vec<u8>> {
    match method {
        Method::Tokio => with_tokio(path, end, &mut buffer).await?,
        Method::Sendfile => with_sendfile(path, end, &mut buffer).await?,
        _ => return by_parts(method, path.to_owned(), end, buffer).await,
    }
    Ok(buffer)
}

/// A file on its way, and the memory that its bytes pass through: all that a call in the pool takes along.
struct Part {
    file: File,
    /// Bytes of the file that are not in the buffer yet, and where they begin.
    left: u64,
    offset: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are to be sent.
    end: usize,
}

impl Part {
    /// The head alone.
    fn open(path: &Path, mut buffer: Vec<u8>) -> io::Result<Self> {
        let file = File::open(path)?;
        let left = file.metadata()?.len();
        let end = message::head(left, &mut buffer)?;
        Ok(Self { file, left, offset: 0, buffer, end })
    }

    /// Where the next bytes are to go.
    fn room(&self) -> std::ops::Range<usize> {
        self.end..self.end + room(self.left, self.buffer.len() - self.end)
    }

    fn advance(&mut self, bytes: usize) {
        self.left -= bytes as u64;
        self.offset += bytes as u64;
        self.end += bytes;
    }

    fn fill(mut self) -> io::Result<Self> {
        let room = self.room();
        self.file.read_exact_at(&mut self.buffer[room.clone()], self.offset)?;
        self.advance(room.len());
        Ok(self)
    }

    /// The same with what is in memory; whether that was all.
    fn fill_at_once(&mut self) -> io::Result<bool> {
        while !self.room().is_empty() {
            let room = self.room();
            match read_at_once(self.file.as_fd(), &mut self.buffer[room], self.offset)? {
                AtOnce::Waits | AtOnce::Unknown => return Ok(false),
                AtOnce::Read(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                AtOnce::Read(bytes) => self.advance(bytes),
            }
        }
        Ok(true)
    }
}

/// How many of `left` bytes have room in `bytes`.
fn room(left: u64, bytes: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes)
}

async fn by_parts(
    method: Method,
    path: PathBuf,
    end: &mut TcpStream,
    buffer: Vec<u8>,
) -> io::Result<Vec<u8>> {
    let mut part = match method {
        Method::Pool => spawn_blocking(move || Part::open(&path, buffer)?.fill()).await??,
        _ => filled(method, Part::open(&path, buffer)?).await?,
    };
    loop {
        end.write_all(&part.buffer[..part.end]).await?;
        if part.left == 0 {
            return Ok(part.buffer);
        }
        part.end = 0;
        part = filled(method, part).await?;
    }
}

async fn filled(method: Method, mut part: Part) -> io::Result<Part> {
    match method {
        Method::Blocking => part.fill(),
        Method::Nowait if part.fill_at_once()? => Ok(part),
        _ => spawn_blocking(move || part.fill()).await?,
    }
}

async fn with_tokio(path: &Path, end: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut left = file.metadata().await?.len();
    let mut at = message::head(left, buffer)?;
    loop {
        let until = at + room(left, buffer.len() - at);
        file.read_exact(&mut buffer[at..until]).await?;
        end.write_all(&buffer[..until]).await?;
        left -= (until - at) as u64;
        if left == 0 {
            return Ok(());
        }
        at = 0;
    }
}

async fn with_sendfile(path: &Path, end: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let head = message::head(len, buffer)?;
    send_head(end, &buffer[..head], len > 0).await?;
    let (way, mut sent) = (Transfer::new(Way::Sendfile)?, 0);
    while sent < len {
        let step = || Ok(way.step(file.as_fd(), sent, end.as_fd(), room(len - sent, usize::MAX))?);
        match end.async_io(Interest::WRITABLE, step).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => sent += bytes as u64,
        }
    }
    Ok(())
}

/// With a body to follow, the head waits for it: or else it would be a packet of its own, for which the client would wake.
async fn send_head(end: &TcpStream, mut head: &[u8], more: bool) -> io::Result<()> {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    while !head.is_empty() {
        let sent = end.async_io(Interest::WRITABLE, || Ok(send(end, head, flags)?)).await?;
        head = &head[sent..];
    }
    Ok(())
}
