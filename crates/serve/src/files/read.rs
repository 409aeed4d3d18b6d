//! Reads a range of an open file step by step: each step yields bytes at once or a future of them.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, Bytes};
use fathom_io::Model;
use fathom_io::data::{NowaitRead, read_nowait};
use rustix::io::retry_on_intr;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::time::sleep;

use super::device::Device;
use super::fetch::{fill, read_range, read_whole};
use super::open_file::FileChange;
use super::{FileError, FileIo, OpenFile, device_resource};
use crate::conn::chunk::{
    Chunk, SEGMENT_BYTES, SegmentSource, SendfileQueue, SendfileSegment, WorkerBuffer, WorkerBuffers,
};
use crate::conn::send_budget::{ConnectionSendBudget, SendCharge};
use crate::log::BodySource;

/// The size from which sendfile(2) may cost less than copying into the writev(2) of the headers.
pub(crate) const SENDFILE_BYTES_MIN: u64 = 32 << 10;
/// The bytes of one pool read on a filesystem where each read is a request to a server.
pub(crate) const POOL_READ_BYTES: u64 = 256 << 10;
/// The bytes of one pool read on a local disk, for a worker that reads cached data itself: the
/// kernel has read ahead by then. The shorter the copy, the sooner a worker on the same processor
/// runs again.
const POOL_LOCAL_READ_BYTES: u64 = 16 << 10;
/// The end of a file sent with sendfile(2) that is held back until the client has acknowledged the
/// rest.
const HELD_BACK_BYTES: u64 = 4 << 10;
/// The initial and the final interval of polling for the acknowledgement.
const ACK_POLL_MIN: Duration = Duration::from_millis(1);
const ACK_POLL_MAX: Duration = Duration::from_millis(32);
/// A file that changed within this time may still be changing: its bytes are copied and then
/// checked, which sendfile(2) cannot do.
const SETTLED: Duration = Duration::from_secs(5);

/// Bytes of the last read that are kept, to be compared in a file that has grown.
const TAIL_BYTES: usize = 64;

type RangeReadFuture = Pin<Box<dyn Future<Output = Result<Bytes, FileError>>>>;

/// The next step of a range.
pub(crate) enum ReadStep {
    /// Bytes that can be sent now.
    Ready(Chunk, BodySource),
    /// A read that has to wait.
    Pending(RangeReadFuture, BodySource, SendCharge),
    /// The worker's time is used up after part of a piece: the part is sent with the rest of the
    /// piece.
    Partial,
}

/// The state of reading a range of a file for a response.
pub(crate) struct RangeReader {
    pub(crate) files: Rc<FileIo>,
    pub(crate) opened: OpenFile,
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// The queue of file segments that the connection sends itself; `None` if it cannot.
    pub(crate) sendfile_queue: Option<SendfileQueue>,
    pub(crate) client: u64,
    /// Whether a file segment was queued.
    pub(crate) has_sent: bool,
    /// Whether this is the first range of the response.
    pub(crate) is_first: bool,
    /// The last bytes that were read: the sent end of a file that grows.
    pub(crate) tail: Tail,
    /// A partially filled buffer, and its filled length.
    pub(crate) partial: Option<(WorkerBuffer, usize)>,
    /// The rest of a completed read that has not been sent.
    pub(crate) completed: Option<CompletedRead>,
    /// The count of unsent bytes of the connection.
    pub(crate) send_budget: ConnectionSendBudget,
    /// The maximum bytes of the next piece.
    pub(crate) bytes_max: usize,
}

/// The bytes of a read that had to wait, and their source.
#[derive(Debug)]
pub(crate) struct CompletedRead {
    bytes: Bytes,
    load: SendCharge,
    source: BodySource,
}

/// The last bytes that were read, and their end offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    end: u64,
    bytes: [u8; TAIL_BYTES],
    len: usize,
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

    /// Returns whether the file still has these bytes at their offset.
    fn is_in(&self, opened: &OpenFile) -> Result<bool, FileError> {
        let mut now = [0; TAIL_BYTES];
        let (Some(room), Some(then)) = (now.get_mut(..self.len), self.bytes.get(..self.len)) else {
            return Ok(false);
        };
        let fd = opened.fd()?;
        let read = retry_on_intr(|| rustix::io::pread(fd, &mut *room, self.end - self.len as u64))?;
        Ok(read == self.len && *room == *then)
    }
}

impl RangeReader {
    /// Creates a reader for another range of the same file.
    pub(crate) fn range(&self, range: Range<u64>, is_first: bool) -> Self {
        Self {
            files: Rc::clone(&self.files),
            opened: self.opened.clone(),
            at: range.start,
            end: range.end,
            sendfile_queue: self.sendfile_queue.clone(),
            client: self.client,
            has_sent: false,
            is_first,
            tail: Tail::default(),
            partial: None,
            completed: None,
            send_budget: self.send_budget.clone(),
            bytes_max: usize::MAX,
        }
    }

    /// Returns whether the next piece is already in memory, and counted.
    pub(crate) fn has_buffered(&self) -> bool {
        self.completed.is_some() || self.partial.is_some()
    }

    /// Returns the bytes that remain.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Returns the next step, of at bytes_max `bytes_max` bytes. The range must have bytes left.
    pub(crate) fn step(&mut self, bytes_max: usize) -> Result<ReadStep, FileError> {
        self.bytes_max = bytes_max;
        let step = match self.completed.take() {
            Some(completed) => self.take_completed(completed),
            None => self.read()?,
        };
        if let ReadStep::Ready(chunk, _) = &step {
            self.at += chunk.remaining() as u64;
        }
        Ok(step)
    }

    fn read(&mut self) -> Result<ReadStep, FileError> {
        match self.files.model {
            Model::Sync => self.read_blocking(),
            Model::Sendfile => match &self.sendfile_queue {
                Some(_) => self.sendfile(self.left()),
                None => self.read_blocking(),
            },
            Model::Tokio => Ok(self.read_by_tokio()),
            Model::Pool => self.read_by_pool(),
            Model::Nowait => self.read_nowait(),
            Model::Uring(_) => self.read_by_ring(),
            // `auto`. A server with a model that cannot serve does not start.
            _ => self.read_adaptive(),
        }
    }

    /// Completes a pending read: `bytes` are the next bytes of the range.
    pub(crate) fn complete(
        &mut self,
        bytes: Bytes,
        source: BodySource,
        load: SendCharge,
    ) -> Result<(), FileError> {
        self.verify_unchanged(&bytes)?;
        self.completed = Some(CompletedRead { bytes, load, source });
        Ok(())
    }

    fn take_completed(&mut self, mut completed: CompletedRead) -> ReadStep {
        let bytes_max = self.files.send_costs.write_bytes().min(WorkerBuffers::BYTES).min(self.bytes_max);
        let bytes = completed.bytes.split_to(bytes_max.min(completed.bytes.len()));
        let (load, source) = (completed.load.split(bytes.len()), completed.source);
        self.completed = Some(completed).filter(|completed| !completed.bytes.is_empty());
        ReadStep::Ready(Chunk::Bytes { bytes, _charge: Some(load) }, source)
    }

    /// Returns a pending step, whose `len` bytes count as unsent bytes from the start of the wait.
    fn pending(&self, waiting: RangeReadFuture, source: BodySource, len: usize) -> ReadStep {
        ReadStep::Pending(waiting, source, self.send_budget.charge(len))
    }

    /// Verifies that `bytes`, just read from `at` on, and the bytes before them belong to one
    /// content: the file is unchanged since it was opened; or it has grown or its inode has
    /// changed, and the last bytes read are still in place. For an inode change the comparison is a
    /// safeguard: a program may have written to the file and set the mtime back.
    fn verify_unchanged(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let right = match self.opened.change()? {
            FileChange::Unchanged => true,
            FileChange::Inode if self.tail.len == 0 => true,
            FileChange::Grown if self.tail.len == 0 => !self.is_first || self.opened.may_be_growing(),
            FileChange::Inode | FileChange::Grown => self.tail.is_in(&self.opened)?,
            FileChange::Content => false,
        };
        self.tail = Tail::of(bytes, self.at + bytes.len() as u64);
        if right && !bytes.is_empty() { Ok(()) } else { Err(FileError::Changed) }
    }

    /// Reads as [`Model::Auto`] does: large cached files by the method with the lower estimated
    /// cost, uncached data by the pool.
    fn read_adaptive(&mut self) -> Result<ReadStep, FileError> {
        if self.partial.is_some() {
            return self.read_nowait();
        }
        let (left, device) = (self.left(), self.files.device(&self.opened)?);
        if self.has_sent && left <= HELD_BACK_BYTES {
            return Ok(self.read_after_ack());
        }
        if left < SENDFILE_BYTES_MIN || !device.is_local {
            return self.read_nowait();
        }
        let may_send = self.sendfile_queue.is_some() && self.is_settled();
        if may_send && self.files.send_costs.prefers_sendfile() {
            let windows =
                [SEGMENT_BYTES as u64, POOL_READ_BYTES].map(|bytes| bytes.min(left - HELD_BACK_BYTES));
            let fd = self.opened.fd()?;
            if let Some(window) = windows.into_iter().find(|window| device.has_cached(fd, self.at, *window)) {
                return self.sendfile_watched(window);
            }
        }
        // A nowait read that fails costs ten times one that succeeds.
        if device.can_query_cache() && !device.has_cached(self.opened.fd()?, self.at, self.room() as u64) {
            return self.read_by_pool();
        }
        self.read_nowait()
    }

    /// Returns whether the file has not changed for a while.
    fn is_settled(&self) -> bool {
        self.opened.is_settled(SystemTime::now(), SETTLED)
    }

    /// Reads the end of a range whose start was sent with sendfile(2). Until the client has
    /// acknowledged those bytes they are the file's pages, and change with it. So the end is sent
    /// last, and only if the file is unchanged; otherwise the response stays incomplete.
    fn read_after_ack(&self) -> ReadStep {
        let (sendfile_queue, opened, files) =
            (self.sendfile_queue.clone(), self.opened.clone(), Rc::clone(&self.files));
        let (at, len, client) = (self.at, self.left() as usize, self.client);
        let waiting = Box::pin(async move {
            let mut pause = ACK_POLL_MIN;
            while sendfile_queue
                .as_ref()
                .is_some_and(|sendfile_queue| !sendfile_queue.is_acknowledged().unwrap_or(true))
            {
                sleep(pause).await;
                pause = (pause * 2).min(ACK_POLL_MAX);
            }
            if !opened.is_content_unchanged()? {
                return Err(FileError::Changed);
            }
            let device = device_resource(opened.meta.dev);
            files.pool.run(client, device, move || read_range(&opened, at, len)).await?
        });
        self.pending(waiting, BodySource::Sendfile, len)
    }

    fn sendfile_watched(&mut self, bytes: u64) -> Result<ReadStep, FileError> {
        if let Some(sendfile_queue) = self.sendfile_queue.as_ref().filter(|_| !self.has_sent) {
            sendfile_queue.watch_acknowledgement();
        }
        self.has_sent = true;
        self.sendfile(bytes)
    }

    fn sendfile(&self, bytes: u64) -> Result<ReadStep, FileError> {
        if !self.opened.is_content_unchanged()? {
            return Err(FileError::Changed);
        }
        let bytes = bytes.min(SEGMENT_BYTES as u64) as usize;
        let segment =
            SendfileSegment { from: SegmentSource::File(self.opened.clone()), offset: self.at, bytes };
        let sendfile_queue = self.sendfile_queue.as_ref().ok_or(FileError::Changed)?;
        Ok(ReadStep::Ready(sendfile_queue.push(segment), BodySource::Sendfile))
    }

    fn room(&self) -> usize {
        self.left().min(WorkerBuffers::BYTES as u64).min(self.bytes_max as u64) as usize
    }

    /// Takes a buffer for the next piece. The end of a file gets one of the usual size, which is
    /// pooled.
    fn take_buffer(&self) -> WorkerBuffer {
        self.files.buffers.take(self.bytes_max.min(WorkerBuffers::BYTES), &self.send_budget)
    }

    /// Reads on this thread, even if the read waits.
    fn read_blocking(&mut self) -> Result<ReadStep, FileError> {
        let room = self.room();
        let mut lent = self.take_buffer();
        let bytes = lent.room().get_mut(..room).unwrap_or_default();
        let fd = self.opened.fd()?;
        let read = retry_on_intr(|| rustix::io::pread(fd, &mut *bytes, self.at))?;
        self.ready(lent, read)
    }

    /// Reads cached data on this thread, other data by the pool.
    fn read_nowait(&mut self) -> Result<ReadStep, FileError> {
        let device = self.files.device(&self.opened)?;
        if device.in_memory {
            return self.read_blocking();
        }
        if !device.is_local {
            // A network filesystem may ask its server about cached data as well.
            return self.read_by_pool();
        }
        if device.supports_nowait.get()
            && let Some(step) = self.try_read_nowait(&device)?
        {
            return Ok(step);
        }
        if !device.supports_nowait.get() && device.has_cached(self.opened.fd()?, self.at, self.room() as u64)
        {
            return self.read_blocking();
        }
        self.read_by_pool()
    }

    /// Reads one slice of a piece without waiting; `None` if the read would wait or the device does
    /// not support such reads.
    fn try_read_nowait(&mut self, device: &Device) -> Result<Option<ReadStep>, FileError> {
        let (left, room) = (self.left(), self.room());
        let (mut lent, filled) = self.partial.take().unwrap_or_else(|| (self.take_buffer(), 0));
        let bytes_max = if left < SENDFILE_BYTES_MIN { room } else { self.files.send_costs.read_bytes() };
        let bytes = lent.room().get_mut(filled..room.min(filled + bytes_max)).unwrap_or_default();
        let (wanted, start) = (bytes.len(), Instant::now());
        let read = match read_nowait(self.opened.fd()?, bytes, self.at + filled as u64)? {
            NowaitRead::Bytes(read) => read,
            NowaitRead::WouldBlock => 0,
            NowaitRead::Unsupported => {
                device.supports_nowait.set(false);
                0
            }
        };
        self.files.send_costs.record_read(start.elapsed(), read);
        match filled + read {
            0 => Ok(None),
            filled if read == wanted && filled < room => {
                self.partial = Some((lent, filled));
                Ok(Some(ReadStep::Partial))
            }
            filled => self.ready(lent, filled).map(Some),
        }
    }

    fn ready(&mut self, mut lent: WorkerBuffer, read: usize) -> Result<ReadStep, FileError> {
        lent.set_len(read);
        self.verify_unchanged(lent.bytes())?;
        Ok(ReadStep::Ready(Chunk::Pooled { buffer: lent, start: 0 }, BodySource::Hit))
    }

    fn read_by_pool(&self) -> Result<ReadStep, FileError> {
        let (files, opened) = (Rc::clone(&self.files), self.opened.clone());
        let device = files.device(&opened)?;
        let worker_reads =
            files.model != Model::Pool && (device.supports_nowait.get() || device.can_query_cache());
        let bytes_max = pool_read_bytes(device.is_local, worker_reads);
        let (at, len, client) =
            (self.at, self.left().min(bytes_max).min(self.bytes_max as u64) as usize, self.client);
        let resource = device_resource(opened.meta.dev);
        let read_buffers = files.pool.read_buffers().clone();
        let read = move || read_buffers.filled(len, |room| fill(&opened, at, room));
        let waiting = Box::pin(async move { files.pool.run(client, resource, read).await? });
        Ok(self.pending(waiting, BodySource::Pool, len))
    }

    fn read_by_ring(&self) -> Result<ReadStep, FileError> {
        let Some(ring) = self.files.ring.clone() else { return self.read_by_pool() };
        let (opened, at, len) = (self.opened.clone(), self.at, self.room());
        let waiting = Box::pin(async move {
            let file = Arc::clone(opened.shared_fd()?);
            let (mut bytes, read) = ring.read(file, at, vec![0; len]).await;
            bytes.truncate(read?);
            Ok(bytes.into())
        });
        Ok(self.pending(waiting, BodySource::Pool, len))
    }

    fn read_by_tokio(&self) -> ReadStep {
        let (opened, at, len) = (self.opened.clone(), self.at, self.room());
        let waiting = Box::pin(async move {
            let broken = |_error| FileError::Changed;
            let file = opened.fd()?.try_clone_to_owned().map_err(broken)?;
            let mut file = tokio::fs::File::from_std(file.into());
            file.seek(std::io::SeekFrom::Start(at)).await.map_err(broken)?;
            let mut bytes = vec![0; len];
            file.read_exact(&mut bytes).await.map_err(broken)?;
            Ok(bytes.into())
        });
        self.pending(waiting, BodySource::Pool, len)
    }
}

/// Returns the bytes of one pool read, by whether the disk is local and whether the worker can read
/// cached data itself.
pub(crate) fn pool_read_bytes(is_local: bool, worker_reads: bool) -> u64 {
    match (is_local, worker_reads) {
        (false, _) => POOL_READ_BYTES,
        (true, false) => WorkerBuffers::BYTES as u64,
        (true, true) => POOL_LOCAL_READ_BYTES,
    }
}

impl FileIo {
    /// Reads the content of the small file `opened`. Returns it with its source.
    pub(crate) async fn read_small_body(
        &self,
        opened: &OpenFile,
        client: u64,
    ) -> Result<(Bytes, BodySource), FileError> {
        let len = usize::try_from(opened.len()).unwrap_or(usize::MAX);
        let device = self.device(opened)?;
        if device.is_local && device.supports_nowait.get() && !device.in_memory {
            let mut bytes = vec![0; len];
            match read_nowait(opened.fd()?, &mut bytes, 0)? {
                NowaitRead::Bytes(read) if read == len && opened.is_same_content()? => {
                    return Ok((bytes.into(), BodySource::Hit));
                }
                NowaitRead::Unsupported => device.supports_nowait.set(false),
                NowaitRead::Bytes(_) | NowaitRead::WouldBlock => {}
            }
        }
        if device.is_local && device.has_cached(opened.fd()?, 0, len as u64) {
            return Ok((read_whole(opened)?, BodySource::Hit));
        }
        let opened = opened.clone();
        let read = self.pool.run(client, device_resource(opened.meta.dev), move || read_whole(&opened));
        Ok((read.await??, BodySource::Pool))
    }
}
