//! The content of a response that is a range of a file: the bytes that the file I/O reads, or
//! segments that the connection sends with sendfile(2).
//!
//! Owns: the choice between both, the end that is held back until the client has acknowledged the
//! rest, and the charges of bytes in memory. Does not own: reading ([`RangeReader`]).

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use fathom_files::pool::Resource;
use fathom_files::{FileError, POOL_READ_BYTES, RangeReadFuture, RangeReader, ReadStep, WorkerBuffer};
use fathom_io::Model;
use tokio::time::sleep;

use crate::conn::chunk::{
    Chunk, SEGMENT_BYTES, SENDFILE_BYTES_MIN, SegmentSource, SendfileQueue, SendfileSegment,
};
use crate::conn::send_budget::{ConnectionSendBudget, SendCharge};
use crate::conn::send_cost::SendCostEstimator;
use crate::log::BodySource;

/// The end of a file sent with sendfile(2) that is held back until the client has acknowledged the
/// rest.
const HELD_BACK_BYTES: u64 = 4 << 10;
/// The initial and the final interval of polling for the acknowledgement.
const ACK_POLL_MIN: Duration = Duration::from_millis(1);
const ACK_POLL_MAX: Duration = Duration::from_millis(32);
/// A file that changed within this time may still be changing: its bytes are copied and then
/// checked, which sendfile(2) cannot do.
const SETTLED: Duration = Duration::from_secs(5);

/// The next step of a [`FileBody`].
pub(super) enum FileBodyStep {
    /// Bytes that can be sent now.
    Ready(Chunk, BodySource),
    /// A read that has to wait.
    Pending(RangeReadFuture, BodySource, SendCharge),
    /// The worker's time is used up after part of a piece: the part is sent with the rest of the
    /// piece.
    Partial,
}

/// A range of a file that is sent as a response.
pub(crate) struct FileBody {
    reader: RangeReader,
    /// The queue of file segments that the connection sends itself; `None` if it cannot.
    sendfile_queue: Option<SendfileQueue>,
    send_costs: Rc<SendCostEstimator>,
    /// The count of unsent bytes of the connection.
    send_budget: ConnectionSendBudget,
    /// Whether a file segment was queued.
    has_sent: bool,
    /// The charge for the buffer that the reader has filled partially.
    partial_charge: Option<SendCharge>,
    /// The rest of a completed read that has not been sent.
    completed: Option<CompletedRead>,
}

/// The bytes of a read that had to wait, and their source.
struct CompletedRead {
    bytes: Bytes,
    charge: SendCharge,
    source: BodySource,
}

impl FileBody {
    /// Creates a body of the bytes that `reader` reads.
    pub(crate) fn new(
        reader: RangeReader,
        sendfile_queue: Option<SendfileQueue>,
        send_costs: Rc<SendCostEstimator>,
        send_budget: ConnectionSendBudget,
    ) -> Self {
        Self {
            reader,
            sendfile_queue,
            send_costs,
            send_budget,
            has_sent: false,
            partial_charge: None,
            completed: None,
        }
    }

    /// Creates a body of another range of the same file.
    pub(super) fn range(&self, range: Range<u64>, is_first: bool) -> Self {
        Self::new(
            self.reader.range(range, is_first),
            self.sendfile_queue.clone(),
            Rc::clone(&self.send_costs),
            self.send_budget.clone(),
        )
    }

    /// Restricts the body, none of which was read, to `range`.
    pub(super) fn restrict(&mut self, range: Range<u64>) {
        self.reader.restrict(range);
    }

    /// Returns whether the next piece is already in memory, and counted.
    pub(super) fn has_buffered(&self) -> bool {
        self.completed.is_some() || self.reader.has_partial()
    }

    /// Returns the bytes to come.
    pub(super) fn left(&self) -> u64 {
        self.reader.left() + self.completed.as_ref().map_or(0, |completed| completed.bytes.len() as u64)
    }

    /// Returns the next step, of at most `bytes_max` bytes. The body must have bytes left.
    pub(super) fn step(&mut self, bytes_max: usize) -> Result<FileBodyStep, FileError> {
        if let Some(completed) = self.completed.take() {
            return Ok(self.take_completed(completed, bytes_max));
        }
        match (self.reader.files().model(), &self.sendfile_queue) {
            (Model::Sendfile, Some(_)) if !self.reader.has_partial() => {
                self.sendfile(self.reader.left(), bytes_max)
            }
            (Model::Auto, _) => self.step_adaptive(bytes_max),
            _ => self.read(bytes_max),
        }
    }

    /// Completes a pending read: `bytes` are the next bytes of the body.
    pub(super) fn complete(
        &mut self,
        bytes: Bytes,
        source: BodySource,
        charge: SendCharge,
    ) -> Result<(), FileError> {
        self.reader.complete(&bytes)?;
        self.completed = Some(CompletedRead { bytes, charge, source });
        Ok(())
    }

    fn take_completed(&mut self, mut completed: CompletedRead, bytes_max: usize) -> FileBodyStep {
        let bytes_max = self.send_costs.write_bytes().min(WorkerBuffer::BYTES).min(bytes_max);
        let bytes = completed.bytes.split_to(bytes_max.min(completed.bytes.len()));
        let (charge, source) = (completed.charge.split(bytes.len()), completed.source);
        self.completed = Some(completed).filter(|completed| !completed.bytes.is_empty());
        FileBodyStep::Ready(Chunk::Bytes { bytes, _charge: Some(charge) }, source)
    }

    /// Reads the next piece. A pending read counts as unsent bytes from the start of the wait.
    fn read(&mut self, bytes_max: usize) -> Result<FileBodyStep, FileError> {
        Ok(match self.reader.step(bytes_max)? {
            ReadStep::Ready(buffer) => {
                let partial = self.partial_charge.take();
                let charge = partial.unwrap_or_else(|| self.send_budget.charge(buffer.capacity()));
                FileBodyStep::Ready(Chunk::Pooled { buffer, start: 0, _charge: charge }, BodySource::Hit)
            }
            ReadStep::Pending(waiting, bytes) => {
                FileBodyStep::Pending(waiting, BodySource::Pool, self.send_budget.charge(bytes))
            }
            ReadStep::Partial(bytes) => {
                self.partial_charge.get_or_insert_with(|| self.send_budget.charge(bytes));
                FileBodyStep::Partial
            }
        })
    }

    /// Takes the next step as [`Model::Auto`] does: large cached files go by the method with the
    /// lower estimated cost.
    fn step_adaptive(&mut self, bytes_max: usize) -> Result<FileBodyStep, FileError> {
        if self.reader.has_partial() {
            return self.read(bytes_max);
        }
        if self.has_sent && self.reader.left() <= HELD_BACK_BYTES {
            return Ok(self.read_after_ack());
        }
        match self.cached_window()? {
            Some(window) => self.sendfile_watched(window, bytes_max),
            None => self.read(bytes_max),
        }
    }

    /// Returns the next bytes that are to go by sendfile(2): they are cached, and copying them
    /// would cost more.
    fn cached_window(&self) -> Result<Option<u64>, FileError> {
        let (reader, left) = (&self.reader, self.reader.left());
        let Some(queue) = self.sendfile_queue.as_ref().filter(|_| left >= SENDFILE_BYTES_MIN) else {
            return Ok(None);
        };
        let (files, opened) = (reader.files(), reader.opened());
        let device = files.device(opened)?;
        let is_settled = || opened.is_settled(queue.wall_now(), SETTLED);
        if !(device.is_local && is_settled() && self.send_costs.prefers_sendfile(files.read_cost())) {
            return Ok(None);
        }
        let windows = [SEGMENT_BYTES as u64, POOL_READ_BYTES].map(|bytes| bytes.min(left - HELD_BACK_BYTES));
        let fd = opened.fd()?;
        Ok(windows.into_iter().find(|window| device.has_cached(fd, reader.at(), *window)))
    }

    /// Reads the end of a range whose start was sent with sendfile(2). Until the client has
    /// acknowledged those bytes they are the file's pages, and change with it. So the end is sent
    /// last, and only if what was sent is still in place; otherwise the response stays incomplete.
    fn read_after_ack(&self) -> FileBodyStep {
        let reader = &self.reader;
        let (sendfile_queue, opened, files) =
            (self.sendfile_queue.clone(), reader.opened().clone(), Rc::clone(reader.files()));
        let (at, len, client) = (reader.at(), reader.left() as usize, reader.client());
        let sent = reader.sent();
        let waiting = Box::pin(async move {
            let mut pause = ACK_POLL_MIN;
            while sendfile_queue
                .as_ref()
                .is_some_and(|sendfile_queue| !sendfile_queue.is_acknowledged().unwrap_or(true))
            {
                sleep(pause).await;
                pause = (pause * 2).min(ACK_POLL_MAX);
            }
            if !sent.is_in_place()? {
                return Err(FileError::Changed);
            }
            let device = Resource::Device(opened.meta.dev);
            files.pool().run(client, device, move || opened.read_range(at, len)).await?
        });
        FileBodyStep::Pending(waiting, BodySource::Sendfile, self.send_budget.charge(len))
    }

    fn sendfile_watched(&mut self, bytes: u64, bytes_max: usize) -> Result<FileBodyStep, FileError> {
        if let Some(sendfile_queue) = self.sendfile_queue.as_ref().filter(|_| !self.has_sent) {
            sendfile_queue.watch_acknowledgement();
        }
        self.has_sent = true;
        self.sendfile(bytes, bytes_max)
    }

    /// Sends `bytes`, or a part of them. A file that is appended to meanwhile is copied, and
    /// compared with what was sent.
    fn sendfile(&mut self, bytes: u64, bytes_max: usize) -> Result<FileBodyStep, FileError> {
        let opened = self.reader.opened();
        if !opened.is_content_unchanged()? {
            let is_in_place = self.reader.sent().is_in_place()?;
            return if is_in_place { self.read(bytes_max) } else { Err(FileError::Changed) };
        }
        let bytes = bytes.min(SEGMENT_BYTES as u64);
        let from = SegmentSource::File(opened.clone());
        let segment = SendfileSegment { from, offset: self.reader.at(), bytes: bytes as usize };
        let sendfile_queue = self.sendfile_queue.as_ref().ok_or(FileError::Changed)?;
        let chunk = sendfile_queue.push(segment);
        self.reader.skip(bytes)?;
        Ok(FileBodyStep::Ready(chunk, BodySource::Sendfile))
    }
}
