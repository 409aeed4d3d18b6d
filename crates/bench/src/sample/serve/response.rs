//! Reading a file and sending it, by I/O model. The worker is the server's only thread; the pool is
//! the tokio runtime's pool for blocking calls.
//!
//! ```text
//! sync       worker: open fstat read             write
//! nowait     worker: open fstat preadv2(NOWAIT)  write    pool (pages not cached): pread
//! pool                                   worker: write    pool: open fstat pread
//! tokio                                  worker: write    pool: open | fstat | read
//! sendfile   worker: open fstat send sendfile
//! ```
//!
//! With tokio each call is a hand-off of its own. Head and body are sent with one write if the file
//! fits into a chunk.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fathom_io::Model;
use fathom_io::data::transfer::{Transfer, Way};
use fathom_io::data::{AtOnce, read_at_once};
use rustix::net::{SendFlags, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

use super::http;

/// Sends the file at `path` through `buffer` and returns the buffer for reuse.
pub(super) async fn send_file(
    model: Model,
    path: &Path,
    stream: &mut TcpStream,
    mut buffer: Vec<u8>,
) -> io::Result<Vec<u8>> {
    match model {
        Model::Tokio => with_tokio(path, stream, &mut buffer).await?,
        Model::Sendfile => with_sendfile(path, stream, &mut buffer).await?,
        _ => return with_buffer(model, path.to_owned(), stream, buffer).await,
    }
    Ok(buffer)
}

/// The state of a response, owned so that it can be moved into a call on the pool.
struct FileResponse {
    file: File,
    /// Bytes of the file that have not been read into the buffer yet.
    left: u64,
    offset: u64,
    buffer: Vec<u8>,
    /// End of the valid bytes in the buffer.
    end: usize,
}

impl FileResponse {
    /// Opens the file and writes the response head to the buffer.
    fn open(path: &Path, mut buffer: Vec<u8>) -> io::Result<Self> {
        let file = File::open(path)?;
        let left = file.metadata()?.len();
        let end = http::head(left, &mut buffer)?;
        Ok(Self { file, left, offset: 0, buffer, end })
    }

    /// Returns the range of the buffer for the next bytes of the file.
    fn space(&self) -> std::ops::Range<usize> {
        self.end..self.end + chunk_len(self.left, self.buffer.len() - self.end)
    }

    fn advance(&mut self, bytes: usize) {
        self.left -= bytes as u64;
        self.offset += bytes as u64;
        self.end += bytes;
    }

    fn fill(mut self) -> io::Result<Self> {
        let space = self.space();
        self.file.read_exact_at(&mut self.buffer[space.clone()], self.offset)?;
        self.advance(space.len());
        Ok(self)
    }

    /// Fills the buffer with cached bytes only (`RWF_NOWAIT`). Returns whether it is full or has
    /// the rest of the file.
    fn fill_cached(&mut self) -> io::Result<bool> {
        while !self.space().is_empty() {
            let space = self.space();
            match read_at_once(self.file.as_fd(), &mut self.buffer[space], self.offset)? {
                AtOnce::Waits | AtOnce::Unknown => return Ok(false),
                AtOnce::Read(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                AtOnce::Read(bytes) => self.advance(bytes),
            }
        }
        Ok(true)
    }
}

/// Returns the smaller of `left` and `bytes`.
fn chunk_len(left: u64, bytes: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes)
}

async fn with_buffer(
    model: Model,
    path: PathBuf,
    stream: &mut TcpStream,
    buffer: Vec<u8>,
) -> io::Result<Vec<u8>> {
    let mut response = match model {
        Model::Pool => spawn_blocking(move || FileResponse::open(&path, buffer)?.fill()).await??,
        _ => fill_by(model, FileResponse::open(&path, buffer)?).await?,
    };
    loop {
        stream.write_all(&response.buffer[..response.end]).await?;
        if response.left == 0 {
            return Ok(response.buffer);
        }
        response.end = 0;
        response = fill_by(model, response).await?;
    }
}

async fn fill_by(model: Model, mut response: FileResponse) -> io::Result<FileResponse> {
    match model {
        Model::Sync => response.fill(),
        Model::Nowait if response.fill_cached()? => Ok(response),
        _ => spawn_blocking(move || response.fill()).await?,
    }
}

async fn with_tokio(path: &Path, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut left = file.metadata().await?.len();
    let mut at = http::head(left, buffer)?;
    loop {
        let until = at + chunk_len(left, buffer.len() - at);
        file.read_exact(&mut buffer[at..until]).await?;
        stream.write_all(&buffer[..until]).await?;
        left -= (until - at) as u64;
        if left == 0 {
            return Ok(());
        }
        at = 0;
    }
}

async fn with_sendfile(path: &Path, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let head = http::head(len, buffer)?;
    send_head(stream, &buffer[..head], len > 0).await?;
    let (way, mut sent) = (Transfer::new(Way::Sendfile)?, 0);
    while sent < len {
        let step = || Ok(way.step(file.as_fd(), sent, stream.as_fd(), chunk_len(len - sent, usize::MAX))?);
        match stream.async_io(Interest::WRITABLE, step).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => sent += bytes as u64,
        }
    }
    Ok(())
}

/// `MSG_MORE` delays the head until the body follows. Otherwise it would be a packet of its own and
/// wake the client twice.
async fn send_head(stream: &TcpStream, mut head: &[u8], more: bool) -> io::Result<()> {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    while !head.is_empty() {
        let sent = stream.async_io(Interest::WRITABLE, || Ok(send(stream, head, flags)?)).await?;
        head = &head[sent..];
    }
    Ok(())
}
