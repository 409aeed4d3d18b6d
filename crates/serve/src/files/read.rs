//! Reading a range of an open file, step by step: what can be sent now, or what has to be waited for.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, Bytes};
use fathom_io::data::{AtOnce, read_at_once};
use rustix::io::retry_on_intr;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::time::sleep;

use super::device::Device;
use super::fetch::{fill, read_all, read_whole};
use super::opened::Change;
use super::{Failure, Files, Model, Opened, Source, on};
use crate::conn::chunk::{Buffers, Chunk, Lent, Origin, PART_BYTES, Part, Parts};
use crate::conn::outbox::{Load, Outbox};

/// From this many bytes on, sendfile(2) may be cheaper than a copy in the same writev(2) as the headers.
pub(crate) const SEND_BYTES: u64 = 32 << 10;
/// What a thread of the pool reads at once where each read is a question to somebody else.
pub(crate) const POOL_BYTES: u64 = 256 << 10;
/// What it reads at once on a disk of this machine for a worker that reads what is in memory itself: the kernel has read ahead then. The less
/// it copies, the sooner a worker that shares its processor has that again.
const FIRST_BYTES: u64 = 16 << 10;
/// What is held back of a file of which parts are sent, until the client has acknowledged them.
const HELD_BYTES: u64 = 4 << 10;
/// How often that is looked at, at first and in the end.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(32);
/// A file that changed so shortly ago may be changing now: its bytes are copied and then checked, which sendfile(2) cannot do.
const SETTLED: Duration = Duration::from_secs(5);

/// Of what was read last, to be found again in a file that has become longer.
const TAIL_BYTES: usize = 64;

type Waiting = Pin<Box<dyn Future<Output = Result<Bytes, Failure>>>>;

/// What comes next of a range.
pub(crate) enum Step {
    /// These bytes.
    Now(Chunk, Source),
    /// Bytes that have to be waited for.
    Later(Waiting, Source, Load),
    /// Some have been read, and so long has it taken: they are sent with those that come next.
    More,
}

/// A range of a file on its way out.
pub(crate) struct Reader {
    pub(crate) files: Rc<Files>,
    pub(crate) opened: Opened,
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// Where the connection sends parts of this file itself.
    pub(crate) parts: Option<Parts>,
    pub(crate) client: u64,
    /// Whether a part was handed out.
    pub(crate) has_sent: bool,
    /// Whether nothing of this response was read before this range.
    pub(crate) is_first: bool,
    /// The last bytes that were read, and where they end: what has been sent of a file that grows.
    pub(crate) tail: Tail,
    /// What has been read and not been taken: a buffer, and how much of it.
    pub(crate) begun: Option<(Lent, usize)>,
    /// What was waited for and has not been taken, and where it came from.
    pub(crate) arrived: Option<Arrived>,
    /// The count of unsent bytes of the connection.
    pub(crate) outbox: Outbox,
    /// Bytes that the next piece may have.
    pub(crate) most: usize,
}

/// Bytes that were waited for.
#[derive(Debug)]
pub(crate) struct Arrived {
    bytes: Bytes,
    load: Load,
    source: Source,
}

/// The end of what was read.
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
    /// Of `bytes`, which end at `end`.
    fn of(bytes: &[u8], end: u64) -> Self {
        let last = bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let mut tail = Self { end, len: last.len(), ..Self::default() };
        tail.bytes.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
        tail
    }

    /// Whether the file still has it.
    fn is_in(&self, opened: &Opened) -> Result<bool, Failure> {
        let mut now = [0; TAIL_BYTES];
        let (Some(room), Some(then)) = (now.get_mut(..self.len), self.bytes.get(..self.len)) else {
            return Ok(false);
        };
        let fd = opened.fd()?;
        let read = retry_on_intr(|| rustix::io::pread(fd, &mut *room, self.end - self.len as u64))?;
        Ok(read == self.len && *room == *then)
    }
}

impl Reader {
    /// The same for another range.
    pub(crate) fn range(&self, range: Range<u64>, is_first: bool) -> Self {
        Self {
            files: Rc::clone(&self.files),
            opened: self.opened.clone(),
            at: range.start,
            end: range.end,
            parts: self.parts.clone(),
            client: self.client,
            has_sent: false,
            is_first,
            tail: Tail::default(),
            begun: None,
            arrived: None,
            outbox: self.outbox.clone(),
            most: usize::MAX,
        }
    }

    /// Whether the next piece takes no more memory than is counted already.
    pub(crate) fn has_begun(&self) -> bool {
        self.arrived.is_some() || self.begun.is_some()
    }

    /// Bytes to come.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Returns the next step, of at most `most` bytes. The range must have bytes left.
    pub(crate) fn step(&mut self, most: usize) -> Result<Step, Failure> {
        self.most = most;
        let step = match self.arrived.take() {
            Some(arrived) => self.take_arrived(arrived),
            None => self.read()?,
        };
        if let Step::Now(chunk, _) = &step {
            self.at += chunk.remaining() as u64;
        }
        Ok(step)
    }

    fn read(&mut self) -> Result<Step, Failure> {
        match self.files.model {
            Model::Sync => self.read_here(),
            Model::Sendfile => match &self.parts {
                Some(_) => self.hand_out(self.left()),
                None => self.read_here(),
            },
            Model::Tokio => Ok(self.read_by_tokio()),
            Model::Pool => self.read_by_pool(),
            Model::Nowait => self.read_at_once(),
            Model::Uring => self.read_by_ring(),
            Model::Auto => self.adapt(),
        }
    }

    /// `bytes`, which were waited for, are what comes next.
    pub(crate) fn arrived(&mut self, bytes: Bytes, source: Source, load: Load) -> Result<(), Failure> {
        self.note(&bytes)?;
        self.arrived = Some(Arrived { bytes, load, source });
        Ok(())
    }

    fn take_arrived(&mut self, mut arrived: Arrived) -> Step {
        let most = self.files.way.write_bytes().min(Buffers::BYTES).min(self.most);
        let bytes = arrived.bytes.split_to(most.min(arrived.bytes.len()));
        let (load, source) = (arrived.load.split(bytes.len()), arrived.source);
        self.arrived = Some(arrived).filter(|arrived| !arrived.bytes.is_empty());
        Step::Now(Chunk::Bytes { bytes, _load: Some(load) }, source)
    }

    /// Returns a pending step, whose `len` bytes count as unsent bytes from the start of the wait.
    fn later(&self, waiting: Waiting, source: Source, len: usize) -> Step {
        Step::Later(waiting, source, self.outbox.load(len))
    }

    /// Takes note of `bytes`, which were just read from `at` on, if they and those before are of
    /// one content: the file has not changed since it was opened, or it has become longer, or its
    /// inode has changed, and what was read last is still there. For the inode that is a second
    /// look: a program may have written to the file and set back its modification time.
    fn note(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let right = match self.opened.change()? {
            Change::None => true,
            Change::Inode if self.tail.len == 0 => true,
            Change::Grown if self.tail.len == 0 => !self.is_first || self.opened.may_have_grown(),
            Change::Inode | Change::Grown => self.tail.is_in(&self.opened)?,
            Change::Bytes => false,
        };
        self.tail = Tail::of(bytes, self.at + bytes.len() as u64);
        if right && !bytes.is_empty() { Ok(()) } else { Err(Failure::Changed) }
    }

    /// Large files in memory go by whichever way has been cheaper here; what is not in memory is read by the pool.
    fn adapt(&mut self) -> Result<Step, Failure> {
        if self.begun.is_some() {
            return self.read_at_once();
        }
        let (left, device) = (self.left(), self.files.device(&self.opened)?);
        if self.has_sent && left <= HELD_BYTES {
            return Ok(self.hold_back());
        }
        if left < SEND_BYTES || !device.is_local {
            return self.read_at_once();
        }
        let may_send = self.parts.is_some() && self.is_settled();
        if may_send && self.files.way.sends() {
            let windows = [PART_BYTES as u64, POOL_BYTES].map(|bytes| bytes.min(left - HELD_BYTES));
            let fd = self.opened.fd()?;
            if let Some(window) = windows.into_iter().find(|window| device.has_cached(fd, self.at, *window)) {
                return self.hand_out_watched(window);
            }
        }
        // A read that fails for not having to wait costs ten times one that succeeds.
        if device.knows_cached() && !device.has_cached(self.opened.fd()?, self.at, self.room() as u64) {
            return self.read_by_pool();
        }
        self.read_at_once()
    }

    /// Whether the file has been as it is for a while.
    fn is_settled(&self) -> bool {
        self.opened.is_settled(SystemTime::now(), SETTLED)
    }

    /// The end of a range of which parts were sent. Until the client has acknowledged those, their bytes are the file's, and change with
    /// it: so the end goes last, and only if the file is still what it was. What came before is not all of the response otherwise.
    fn hold_back(&self) -> Step {
        let (parts, opened, files) = (self.parts.clone(), self.opened.clone(), Rc::clone(&self.files));
        let (at, len, client) = (self.at, self.left() as usize, self.client);
        let waiting = Box::pin(async move {
            let mut pause = PAUSE_MIN;
            while parts.as_ref().is_some_and(|parts| !parts.are_out().unwrap_or(true)) {
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            if !opened.is_unwritten()? {
                return Err(Failure::Changed);
            }
            let device = on(opened.meta.dev);
            files.pool.run(client, device, move || read_all(&opened, at, len)).await?
        });
        self.later(waiting, Source::Sendfile, len)
    }

    fn hand_out_watched(&mut self, bytes: u64) -> Result<Step, Failure> {
        if let Some(parts) = self.parts.as_ref().filter(|_| !self.has_sent) {
            parts.watch();
        }
        self.has_sent = true;
        self.hand_out(bytes)
    }

    fn hand_out(&self, bytes: u64) -> Result<Step, Failure> {
        if !self.opened.is_unwritten()? {
            return Err(Failure::Changed);
        }
        let bytes = bytes.min(PART_BYTES as u64) as usize;
        let part = Part { from: Origin::File(self.opened.clone()), offset: self.at, bytes };
        let parts = self.parts.as_ref().ok_or(Failure::Changed)?;
        Ok(Step::Now(parts.hand_out(part), Source::Sendfile))
    }

    fn room(&self) -> usize {
        self.left().min(Buffers::BYTES as u64).min(self.most as u64) as usize
    }

    /// A buffer for the next piece. The end of a file has one of the usual size, which is at hand.
    fn lend(&self) -> Lent {
        self.files.buffers.lend(self.most.min(Buffers::BYTES), &self.outbox)
    }

    /// On this thread, whether or not it has to wait.
    fn read_here(&mut self) -> Result<Step, Failure> {
        let room = self.room();
        let mut lent = self.lend();
        let bytes = lent.room().get_mut(..room).unwrap_or_default();
        let fd = self.opened.fd()?;
        let read = retry_on_intr(|| rustix::io::pread(fd, &mut *bytes, self.at))?;
        self.take(lent, read)
    }

    /// On this thread what does not have to wait, the rest by the pool.
    fn read_at_once(&mut self) -> Result<Step, Failure> {
        let device = self.files.device(&self.opened)?;
        if device.in_memory {
            return self.read_here();
        }
        if !device.is_local {
            // Also what is in memory may be asked about.
            return self.read_by_pool();
        }
        if device.can_tell.get()
            && let Some(step) = self.read_more(&device)?
        {
            return Ok(step);
        }
        if !device.can_tell.get() && device.has_cached(self.opened.fd()?, self.at, self.room() as u64) {
            return self.read_here();
        }
        self.read_by_pool()
    }

    /// Reads as much as a worker is to in one go, unless that would have to wait or nobody can tell.
    fn read_more(&mut self, device: &Device) -> Result<Option<Step>, Failure> {
        let (left, room) = (self.left(), self.room());
        let (mut lent, filled) = self.begun.take().unwrap_or_else(|| (self.lend(), 0));
        let most = if left < SEND_BYTES { room } else { self.files.way.read_bytes() };
        let bytes = lent.room().get_mut(filled..room.min(filled + most)).unwrap_or_default();
        let (wanted, start) = (bytes.len(), Instant::now());
        let read = match read_at_once(self.opened.fd()?, bytes, self.at + filled as u64)? {
            AtOnce::Read(read) => read,
            AtOnce::Waits => 0,
            AtOnce::Unknown => {
                device.can_tell.set(false);
                0
            }
        };
        self.files.way.copied(start.elapsed(), read);
        match filled + read {
            0 => Ok(None),
            filled if read == wanted && filled < room => {
                self.begun = Some((lent, filled));
                Ok(Some(Step::More))
            }
            filled => self.take(lent, filled).map(Some),
        }
    }

    fn take(&mut self, mut lent: Lent, read: usize) -> Result<Step, Failure> {
        lent.set_len(read);
        self.note(lent.bytes())?;
        Ok(Step::Now(Chunk::Lent { buffer: lent, start: 0 }, Source::Hit))
    }

    fn read_by_pool(&self) -> Result<Step, Failure> {
        let (files, opened) = (Rc::clone(&self.files), self.opened.clone());
        let device = files.device(&opened)?;
        let worker_reads = files.model != Model::Pool && (device.can_tell.get() || device.knows_cached());
        let most = pool_bytes(device.is_local, worker_reads);
        let (at, len, client) = (self.at, self.left().min(most).min(self.most as u64) as usize, self.client);
        let resource = on(opened.meta.dev);
        let spare = files.pool.spare().clone();
        let read = move || spare.filled(len, |room| fill(&opened, at, room));
        let waiting = Box::pin(async move { files.pool.run(client, resource, read).await? });
        Ok(self.later(waiting, Source::Pool, len))
    }

    fn read_by_ring(&self) -> Result<Step, Failure> {
        let Some(ring) = self.files.ring.clone() else { return self.read_by_pool() };
        let (opened, at, len) = (self.opened.clone(), self.at, self.room());
        let waiting = Box::pin(async move {
            let file = Arc::clone(opened.held()?);
            let (mut bytes, read) = ring.read(file, at, vec![0; len]).await;
            bytes.truncate(read?);
            Ok(bytes.into())
        });
        Ok(self.later(waiting, Source::Pool, len))
    }

    fn read_by_tokio(&self) -> Step {
        let (opened, at, len) = (self.opened.clone(), self.at, self.room());
        let waiting = Box::pin(async move {
            let broken = |_error| Failure::Changed;
            let file = opened.fd()?.try_clone_to_owned().map_err(broken)?;
            let mut file = tokio::fs::File::from_std(file.into());
            file.seek(std::io::SeekFrom::Start(at)).await.map_err(broken)?;
            let mut bytes = vec![0; len];
            file.read_exact(&mut bytes).await.map_err(broken)?;
            Ok(bytes.into())
        });
        self.later(waiting, Source::Pool, len)
    }
}

/// What a thread of the pool reads at once, of a disk of this machine or not, for a worker that can read what is in memory itself or not.
pub(crate) fn pool_bytes(is_local: bool, worker_reads: bool) -> u64 {
    match (is_local, worker_reads) {
        (false, _) => POOL_BYTES,
        (true, false) => Buffers::BYTES as u64,
        (true, true) => FIRST_BYTES,
    }
}

impl Files {
    /// All bytes of `opened`, which is short, and where they came from.
    pub(crate) async fn read_short(&self, opened: &Opened, client: u64) -> Result<(Bytes, Source), Failure> {
        let len = usize::try_from(opened.len()).unwrap_or(usize::MAX);
        let device = self.device(opened)?;
        if device.is_local && device.can_tell.get() && !device.in_memory {
            let mut bytes = vec![0; len];
            match read_at_once(opened.fd()?, &mut bytes, 0)? {
                AtOnce::Read(read) if read == len && opened.is_still()? => {
                    return Ok((bytes.into(), Source::Hit));
                }
                AtOnce::Unknown => device.can_tell.set(false),
                AtOnce::Read(_) | AtOnce::Waits => {}
            }
        }
        if device.is_local && device.has_cached(opened.fd()?, 0, len as u64) {
            return Ok((read_whole(opened)?, Source::Hit));
        }
        let opened = opened.clone();
        let read = self.pool.run(client, on(opened.meta.dev), move || read_whole(&opened));
        Ok((read.await??, Source::Pool))
    }
}
