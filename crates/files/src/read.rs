//! Reads a range of an open file step by step: each step yields bytes at once or a future of them.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fathom_io::Model;
use fathom_io::data::{NowaitRead, read_nowait};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::task::yield_now;

use crate::device::Device;
use crate::open_file::FileChange;
use crate::pool::Resource;
use crate::worker_buffers::WorkerBuffer;
use crate::{FileError, FileIo, OpenFile};

/// The bytes of one pool read on a filesystem where each read is a request to a server.
pub const POOL_READ_BYTES: u64 = 256 << 10;
/// The bytes of one pool read on a local disk, for a worker that reads cached data itself: the
/// kernel has read ahead by then. The shorter the copy, the sooner a worker on the same processor
/// runs again.
const POOL_LOCAL_READ_BYTES: u64 = 16 << 10;
/// The bytes from which a range is read in slices that take a limited time, and from which
/// [`Model::Auto`] asks the page cache before it reads.
const LONG_BYTES_MIN: u64 = 32 << 10;

/// Bytes of the last read that are kept, to be compared in a file that has grown.
const TAIL_BYTES: usize = 64;

/// A read that has to wait for the disk, the pool or the ring.
pub type RangeReadFuture = Pin<Box<dyn Future<Output = Result<Bytes, FileError>>>>;

/// The next step of a range.
pub enum ReadStep {
    /// Bytes that were read on this thread.
    Ready(WorkerBuffer),
    /// A read that has to wait, and the bytes that it takes in memory. Its result goes to
    /// [`RangeReader::complete`].
    Pending(RangeReadFuture, usize),
    /// The worker's time is used up after part of a piece: the part comes with the rest of the
    /// piece, and occupies a buffer of this many bytes.
    Partial(usize),
}

/// The state of reading a range of a file.
///
/// A program that sends the bytes itself in another way, such as sendfile(2), skips them.
///
/// ```
/// use std::fs::File;
///
/// use fathom_files::pool::{PoolLimits, ThreadPool};
/// use fathom_files::{FileError, FileIo, OpenFile, RangeReader, ReadStep};
/// use fathom_io::Model;
///
/// let limits = PoolLimits { threads: 4, per_device: 3, queue: 100 };
/// let pool = ThreadPool::new(limits, 1, |_panic| ());
/// let files = FileIo::new(Model::Pool, pool, None);
/// let opened = OpenFile::new(File::open("Cargo.toml")?.into())?;
/// let client = 1;
/// let mut reader = RangeReader::new(&files, &opened, client);
/// reader.restrict(1..8);
/// let runtime = tokio::runtime::Builder::new_current_thread().build_local(Default::default())?;
/// let range: Vec<u8> = runtime.block_on(async {
///     let mut range = Vec::new();
///     while reader.left() > 0 {
///         match reader.step(usize::MAX)? {
///             ReadStep::Ready(buffer) => range.extend_from_slice(buffer.bytes()),
///             ReadStep::Pending(read, _) => {
///                 let bytes = read.await?;
///                 reader.complete(&bytes)?;
///                 range.extend_from_slice(&bytes);
///             }
///             ReadStep::Partial(_) => tokio::task::yield_now().await,
///         }
///     }
///     Ok::<_, FileError>(range)
/// })?;
/// assert_eq!(range, b"package");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RangeReader {
    files: Rc<FileIo>,
    opened: OpenFile,
    client: u64,
    at: u64,
    end: u64,
    /// Whether this is the first range that is read of the file.
    is_first: bool,
    /// The last bytes that were read: the sent end of a file that grows.
    tail: Tail,
    /// A partially filled buffer, and its filled length.
    partial: Option<(WorkerBuffer, usize)>,
}

/// The last bytes that were read, and their end offset.
#[derive(Clone, Copy, Debug)]
struct Tail {
    end: u64,
    bytes: [u8; TAIL_BYTES],
    len: usize,
}

/// The end of what was sent of a file.
#[derive(Clone, Debug)]
pub struct SentContent {
    opened: OpenFile,
    tail: Tail,
    is_first: bool,
}

impl SentContent {
    /// Returns whether the file still has this content, as [`RangeReader::complete`] compares it.
    ///
    /// # Errors
    /// As for [`OpenFile::change`] and [`OpenFile::read_at`].
    pub fn is_in_place(&self) -> Result<bool, FileError> {
        self.tail.is_of(&self.opened, self.is_first)
    }
}

impl Default for Tail {
    fn default() -> Self {
        Self { end: 0, bytes: [0; TAIL_BYTES], len: 0 }
    }
}

impl Tail {
    /// Returns the tail of `bytes`, which end at the offset `end`.
    fn of(bytes: &[u8], end: u64) -> Self {
        let last = bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let mut tail = Self { end, len: last.len(), ..Self::default() };
        tail.bytes.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
        tail
    }

    /// Returns whether the file has the content that was opened, as far as can be told: it is
    /// unchanged; or it has grown or its inode has changed, and these bytes are still in place.
    /// `is_first` is false if bytes of another range were sent before.
    fn is_of(&self, opened: &OpenFile, is_first: bool) -> Result<bool, FileError> {
        Ok(match opened.change()? {
            FileChange::Unchanged => true,
            FileChange::Inode if self.len == 0 => true,
            FileChange::Grown if self.len == 0 => !is_first || opened.may_be_growing(),
            FileChange::Inode | FileChange::Grown => self.is_in(opened)?,
            FileChange::Content => false,
        })
    }

    /// Returns whether the file still has these bytes at their offset.
    fn is_in(&self, opened: &OpenFile) -> Result<bool, FileError> {
        let mut now = [0; TAIL_BYTES];
        let (Some(room), Some(then)) = (now.get_mut(..self.len), self.bytes.get(..self.len)) else {
            return Ok(false);
        };
        let read = opened.read_at(self.end - self.len as u64, room)?;
        Ok(read == self.len && *room == *then)
    }
}

impl RangeReader {
    /// Creates a reader for all bytes of `opened`, whose pool reads are queued as jobs of `client`.
    #[must_use]
    pub fn new(files: &Rc<FileIo>, opened: &OpenFile, client: u64) -> Self {
        Self::over(files, opened, client, 0..opened.len(), true)
    }

    fn over(files: &Rc<FileIo>, opened: &OpenFile, client: u64, range: Range<u64>, is_first: bool) -> Self {
        Self {
            files: Rc::clone(files),
            opened: opened.clone(),
            client,
            at: range.start,
            end: range.end,
            is_first,
            tail: Tail::default(),
            partial: None,
        }
    }

    /// Creates a reader for another range of the same file. `is_first` is false if an earlier range
    /// was read: then a file that has grown since it was opened counts as appended to.
    #[must_use]
    pub fn range(&self, range: Range<u64>, is_first: bool) -> Self {
        Self::over(&self.files, &self.opened, self.client, range, is_first)
    }

    /// Restricts the reader, which has read nothing, to `range`.
    #[inline]
    pub fn restrict(&mut self, range: Range<u64>) {
        (self.at, self.end) = (range.start, range.end);
    }

    /// Returns the file I/O that reads.
    #[inline]
    #[must_use]
    pub fn files(&self) -> &Rc<FileIo> {
        &self.files
    }

    /// Returns the file.
    #[inline]
    #[must_use]
    pub fn opened(&self) -> &OpenFile {
        &self.opened
    }

    /// Returns the client, as which pool reads are queued.
    #[inline]
    #[must_use]
    pub fn client(&self) -> u64 {
        self.client
    }

    /// Returns the offset of the next byte.
    #[inline]
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the number of bytes to come.
    #[inline]
    #[must_use]
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Returns whether part of the next piece has been read.
    #[inline]
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Skips `bytes`, which are sent in another way. The last of them are read, if more is to come,
    /// so that a file which grows meanwhile can be told from one that is written anew.
    ///
    /// # Errors
    /// As for [`OpenFile::read_at`].
    pub fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        self.at += bytes;
        if self.at < self.end {
            let mut last = [0; TAIL_BYTES];
            let len = (TAIL_BYTES as u64).min(bytes);
            let room = last.get_mut(..len as usize).unwrap_or_default();
            let read = self.opened.read_at(self.at - len, room)?;
            self.tail = Tail::of(room.get(..read).unwrap_or_default(), self.at - len + read as u64);
        }
        Ok(())
    }

    /// Returns what was sent, which may be compared with the file later.
    #[must_use]
    pub fn sent(&self) -> SentContent {
        SentContent { opened: self.opened.clone(), tail: self.tail, is_first: self.is_first }
    }

    /// Returns the next step, of at most `bytes_max` bytes. The range must have bytes left.
    ///
    /// # Errors
    /// [`FileError::Changed`] if another file has taken its place, and the errors of the calls of
    /// the model.
    pub fn step(&mut self, bytes_max: usize) -> Result<ReadStep, FileError> {
        match self.files.model() {
            // Bytes in memory cannot come from sendfile(2).
            Model::Sync | Model::Sendfile => self.read_blocking(bytes_max),
            Model::Tokio => Ok(self.read_by_tokio(bytes_max)),
            Model::Pool => self.read_by_pool(bytes_max),
            Model::Nowait => self.read_nowait(bytes_max),
            Model::Uring(_) => self.read_by_ring(bytes_max),
            _ => self.read_adaptive(bytes_max),
        }
    }

    /// Reads the rest of the range.
    ///
    /// # Errors
    /// As [`step`](Self::step), and as its pending reads.
    pub async fn read_to_end(mut self) -> Result<Vec<u8>, FileError> {
        let mut all = Vec::with_capacity(usize::try_from(self.left()).unwrap_or_default());
        while self.left() > 0 {
            match self.step(usize::MAX)? {
                ReadStep::Ready(buffer) => all.extend_from_slice(buffer.bytes()),
                ReadStep::Pending(read, _) => {
                    let bytes = read.await?;
                    self.complete(&bytes)?;
                    all.extend_from_slice(&bytes);
                }
                ReadStep::Partial(_) => yield_now().await,
            }
        }
        Ok(all)
    }

    /// Completes a pending read: `bytes` are the next bytes of the range.
    ///
    /// # Errors
    /// [`FileError::Changed`] if the bytes do not belong to the content that was opened.
    pub fn complete(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.verify_unchanged(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Verifies that `bytes`, just read from `at` on, and the bytes before them belong to one
    /// content: the file is unchanged since it was opened; or it has grown or its inode has
    /// changed, and the last bytes read are still in place. For an inode change the comparison is a
    /// safeguard: a program may have written to the file and set the mtime back.
    fn verify_unchanged(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let right = self.tail.is_of(&self.opened, self.is_first)?;
        self.tail = Tail::of(bytes, self.at + bytes.len() as u64);
        if right && !bytes.is_empty() { Ok(()) } else { Err(FileError::Changed) }
    }

    /// Reads as [`Model::Auto`] does: cached data on this thread, other data by the pool.
    fn read_adaptive(&mut self, bytes_max: usize) -> Result<ReadStep, FileError> {
        if self.partial.is_none() && self.left() >= LONG_BYTES_MIN {
            let (device, room) = (self.files.device(&self.opened)?, self.room(bytes_max) as u64);
            // A nowait read that fails costs ten times one that succeeds.
            if device.is_local
                && device.can_query_cache()
                && !device.has_cached(self.opened.fd()?, self.at, room)
            {
                return self.read_by_pool(bytes_max);
            }
        }
        self.read_nowait(bytes_max)
    }

    fn room(&self, bytes_max: usize) -> usize {
        self.left().min(WorkerBuffer::BYTES as u64).min(bytes_max as u64) as usize
    }

    /// Takes a buffer for the next piece. The end of a file gets one of the usual size, which is
    /// pooled.
    fn take_buffer(&self, bytes_max: usize) -> WorkerBuffer {
        self.files.buffers.take(bytes_max.min(WorkerBuffer::BYTES))
    }

    /// Reads on this thread, even if the read waits.
    fn read_blocking(&mut self, bytes_max: usize) -> Result<ReadStep, FileError> {
        let room = self.room(bytes_max);
        let mut buffer = self.take_buffer(bytes_max);
        let read = self.opened.read_at(self.at, buffer.room().get_mut(..room).unwrap_or_default())?;
        self.ready(buffer, read)
    }

    /// Reads cached data on this thread, other data by the pool.
    fn read_nowait(&mut self, bytes_max: usize) -> Result<ReadStep, FileError> {
        let device = self.files.device(&self.opened)?;
        if device.in_memory {
            return self.read_blocking(bytes_max);
        }
        if !device.is_local {
            // A network filesystem may ask its server about cached data as well.
            return self.read_by_pool(bytes_max);
        }
        if device.supports_nowait.get()
            && let Some(step) = self.try_read_nowait(&device, bytes_max)?
        {
            return Ok(step);
        }
        if !device.supports_nowait.get()
            && device.has_cached(self.opened.fd()?, self.at, self.room(bytes_max) as u64)
        {
            return self.read_blocking(bytes_max);
        }
        self.read_by_pool(bytes_max)
    }

    /// Reads one slice of a piece without waiting; `None` if the read would wait or the device does
    /// not support such reads.
    fn try_read_nowait(&mut self, device: &Device, bytes_max: usize) -> Result<Option<ReadStep>, FileError> {
        let (left, room) = (self.left(), self.room(bytes_max));
        let (mut buffer, filled) = self.partial.take().unwrap_or_else(|| (self.take_buffer(bytes_max), 0));
        let slice = if left < LONG_BYTES_MIN { room } else { self.files.read_cost().call_bytes() };
        let bytes = buffer.room().get_mut(filled..room.min(filled + slice)).unwrap_or_default();
        let (wanted, start) = (bytes.len(), Instant::now());
        let read = match read_nowait(self.opened.fd()?, bytes, self.at + filled as u64)? {
            NowaitRead::Bytes(read) => read,
            NowaitRead::WouldBlock => 0,
            NowaitRead::Unsupported => {
                device.supports_nowait.set(false);
                0
            }
        };
        self.files.read_cost().record(start.elapsed(), read);
        match filled + read {
            0 => Ok(None),
            filled if read == wanted && filled < room => {
                let occupied = buffer.capacity();
                self.partial = Some((buffer, filled));
                Ok(Some(ReadStep::Partial(occupied)))
            }
            filled => self.ready(buffer, filled).map(Some),
        }
    }

    fn ready(&mut self, mut buffer: WorkerBuffer, read: usize) -> Result<ReadStep, FileError> {
        buffer.set_len(read);
        self.complete(buffer.bytes())?;
        Ok(ReadStep::Ready(buffer))
    }

    fn read_by_pool(&self, bytes_max: usize) -> Result<ReadStep, FileError> {
        let (files, opened) = (Rc::clone(&self.files), self.opened.clone());
        let device = files.device(&opened)?;
        let worker_reads =
            files.model() != Model::Pool && (device.supports_nowait.get() || device.can_query_cache());
        let pool_max = pool_read_bytes(device.is_local, worker_reads);
        let (at, client) = (self.at, self.client);
        let len = self.left().min(pool_max).min(bytes_max as u64) as usize;
        let resource = Resource::Device(opened.meta.dev);
        let read_buffers = files.pool().read_buffers().clone();
        let read = move || read_buffers.filled(len, |room| opened.fill(at, room));
        let waiting = Box::pin(async move { files.pool().run(client, resource, read).await? });
        Ok(ReadStep::Pending(waiting, len))
    }

    fn read_by_ring(&self, bytes_max: usize) -> Result<ReadStep, FileError> {
        let Some(ring) = self.files.ring.clone() else { return self.read_by_pool(bytes_max) };
        let (opened, at, len) = (self.opened.clone(), self.at, self.room(bytes_max));
        let waiting = Box::pin(async move {
            let file = Arc::clone(opened.shared_fd()?);
            let (mut bytes, read) = ring.read(file, at, vec![0; len]).await;
            bytes.truncate(read?);
            Ok(bytes.into())
        });
        Ok(ReadStep::Pending(waiting, len))
    }

    fn read_by_tokio(&self, bytes_max: usize) -> ReadStep {
        let (opened, at, len) = (self.opened.clone(), self.at, self.room(bytes_max));
        let waiting = Box::pin(async move {
            let broken = |_error| FileError::Changed;
            let file = opened.fd()?.try_clone_to_owned().map_err(broken)?;
            let mut file = tokio::fs::File::from_std(file.into());
            file.seek(std::io::SeekFrom::Start(at)).await.map_err(broken)?;
            let mut bytes = vec![0; len];
            file.read_exact(&mut bytes).await.map_err(broken)?;
            Ok(bytes.into())
        });
        ReadStep::Pending(waiting, len)
    }
}

/// Returns the bytes of one pool read, by whether the disk is local and whether the worker can read
/// cached data itself.
#[must_use]
pub fn pool_read_bytes(is_local: bool, worker_reads: bool) -> u64 {
    match (is_local, worker_reads) {
        (false, _) => POOL_READ_BYTES,
        (true, false) => WorkerBuffer::BYTES as u64,
        (true, true) => POOL_LOCAL_READ_BYTES,
    }
}

impl FileIo {
    /// Reads the content of the small file `opened` on this thread, if that does not wait; `None`
    /// otherwise.
    ///
    /// # Errors
    /// As [`OpenFile::read_whole`].
    pub fn read_small_nowait(&self, opened: &OpenFile) -> Result<Option<Bytes>, FileError> {
        let len = usize::try_from(opened.len()).unwrap_or(usize::MAX);
        let device = self.device(opened)?;
        if device.is_local && device.supports_nowait.get() && !device.in_memory {
            let mut bytes = vec![0; len];
            match read_nowait(opened.fd()?, &mut bytes, 0)? {
                NowaitRead::Bytes(read) if read == len && opened.is_same_content()? => {
                    return Ok(Some(bytes.into()));
                }
                NowaitRead::Unsupported => device.supports_nowait.set(false),
                NowaitRead::Bytes(_) | NowaitRead::WouldBlock => {}
            }
        }
        let is_cached = device.is_local && device.has_cached(opened.fd()?, 0, len as u64);
        is_cached.then(|| opened.read_whole()).transpose()
    }

    /// Reads the content of the small file `opened` by the pool, as a job of `client`.
    ///
    /// # Errors
    /// As [`OpenFile::read_whole`]; [`FileError::Busy`] if the queue of the pool is full.
    pub async fn read_small_by_pool(&self, opened: &OpenFile, client: u64) -> Result<Bytes, FileError> {
        let opened = opened.clone();
        self.pool().run(client, Resource::Device(opened.meta.dev), move || opened.read_whole()).await?
    }
}
