//! The kernel's asynchronous I/O (io_setup(2), io_submit(2), io_getevents(2), io_destroy(2)), which
//! libaio wraps.
//!
//! A slot owns its request, including the memory that the kernel reads or writes, from
//! [`AioQueue::start`] until [`AioQueue::wait`] has seen its event.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::Errno;

/// The kind of a request: `aio_lio_opcode` of linux/aio_abi.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AioCall {
    /// `IOCB_CMD_PREAD`.
    Read = 0,
    /// `IOCB_CMD_PWRITE`.
    Write = 1,
    /// `IOCB_CMD_FSYNC`, since Linux 4.18.
    SyncAll = 2,
    /// `IOCB_CMD_FDSYNC`, since Linux 4.18.
    SyncData = 3,
}

/// A request on `memory[range]`.
#[derive(Debug)]
pub(crate) struct AioRequest {
    pub(crate) call: AioCall,
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) offset: u64,
    pub(crate) memory: Vec<u8>,
    pub(crate) range: Range<usize>,
}

/// `struct iocb` of linux/aio_abi.h. `key` and `rw_flags`, whose order depends on the byte order of
/// the machine, are both zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct AioEvent {
    data: u64,
    block: u64,
    result: i64,
    result2: i64,
}

/// A context of the kernel with its requests.
#[derive(Debug)]
pub(crate) struct AioQueue {
    /// `aio_context_t`.
    context: libc::c_ulong,
    slots: Vec<Option<AioRequest>>,
    blocks: Vec<ControlBlock>,
    /// Slots whose requests are not yet submitted, in order.
    queued: Vec<usize>,
    /// Number of requests in the kernel.
    submitted: usize,
    events: Vec<AioEvent>,
}

impl AioQueue {
    /// Creates a context for at most `depth` requests.
    ///
    /// # Errors
    /// EAGAIN if the contexts of the machine have reached `fs.aio-max-nr`, ENOSYS if the kernel has
    /// no asynchronous I/O.
    pub(crate) fn new(depth: usize) -> Result<Self, Errno> {
        let mut context: libc::c_ulong = 0;
        let requests = u32::try_from(depth).map_err(|_| Errno::INVAL)?;
        // SAFETY: the kernel writes one `aio_context_t`, a `c_ulong`, which is zero as it requires.
        unsafe { call(libc::syscall(libc::SYS_io_setup, requests, &raw mut context)) }?;
        Ok(Self {
            context,
            slots: (0..depth).map(|_| None).collect(),
            blocks: vec![ControlBlock::default(); depth],
            queued: Vec::with_capacity(depth),
            submitted: 0,
            events: vec![AioEvent::default(); depth],
        })
    }

    /// Returns the number of requests that are not yet submitted.
    pub(crate) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Queues `request` in the empty slot `slot`.
    ///
    /// # Panics
    /// If the slot is in use, or the range is not in the memory.
    pub(crate) fn start(&mut self, slot: usize, mut request: AioRequest) {
        assert!(self.slots[slot].is_none(), "a slot has one request");
        let bytes = &mut request.memory[request.range.clone()];
        let fd = u32::try_from(request.file.as_raw_fd()).expect("an open descriptor is not negative");
        let (buffer, len) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
        let is_sync = matches!(request.call, AioCall::SyncAll | AioCall::SyncData);
        // The kernel refuses a sync with a range.
        let (buffer, bytes, offset) = if is_sync { (0, 0, 0) } else { (buffer, len, request.offset) };
        self.blocks[slot] = ControlBlock {
            data: slot as u64,
            opcode: request.call as u16,
            fd,
            buffer,
            bytes,
            offset: offset.cast_signed(),
            ..ControlBlock::default()
        };
        self.slots[slot] = Some(request);
        self.queued.push(slot);
    }

    /// Submits the queued requests. `ended` gets those that the kernel refuses.
    pub(crate) fn submit(&mut self, ended: &mut impl FnMut(usize, AioRequest, Result<usize, Errno>)) {
        let mut pending = std::mem::take(&mut self.queued);
        let mut first = 0;
        while first < pending.len() {
            match self.submit_some(&pending[first..]) {
                Ok(count) => {
                    first += count;
                    self.submitted += count;
                }
                // Other requests must end before the kernel has room.
                Err(Errno::AGAIN) if self.submitted > 0 => break,
                // The error is of the first request.
                Err(errno) => {
                    let slot = pending[first];
                    first += 1;
                    let request = self.slots[slot].take().expect("a queued slot has a request");
                    ended(slot, request, Err(errno));
                }
            }
        }
        pending.drain(..first);
        self.queued = pending;
    }

    fn submit_some(&mut self, slots: &[usize]) -> Result<usize, Errno> {
        let base = self.blocks.as_mut_ptr();
        // SAFETY: each slot is an index of `blocks`, whose elements do not move.
        let blocks: Vec<*mut ControlBlock> = slots.iter().map(|slot| unsafe { base.add(*slot) }).collect();
        // SAFETY: the kernel copies the blocks during the call, and takes references to their open
        // files. The memory of a request is on the heap of its slot, which keeps it until the
        // request's event, or until `drop` has destroyed the context; the slot is in use, so
        // `start` checked the range.
        unsafe {
            call(libc::syscall(
                libc::SYS_io_submit,
                self.context,
                blocks.len() as libc::c_long,
                blocks.as_ptr(),
            ))
        }
    }

    /// Waits until at least one submitted request has ended, if there is one, and passes all that
    /// have to `ended`.
    pub(crate) fn wait(&mut self, ended: &mut impl FnMut(usize, AioRequest, Result<usize, Errno>)) {
        if self.submitted == 0 {
            return;
        }
        let count = loop {
            // SAFETY: the kernel writes at most as many events as the vector has.
            let count = unsafe {
                call(libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    1 as libc::c_long,
                    self.events.len() as libc::c_long,
                    self.events.as_mut_ptr(),
                    std::ptr::null_mut::<libc::timespec>(),
                ))
            };
            match count {
                Err(Errno::INTR) | Ok(0) => {}
                count => break count.expect("io_getevents of an own context has only transient errors"),
            }
        };
        self.submitted -= count;
        for event in &self.events[..count] {
            let slot = usize::try_from(event.data).expect("the data of a request is its slot");
            let request = self.slots[slot].take().expect("a submitted slot has a request");
            let result = usize::try_from(event.result)
                .map_err(|_| Errno::from_raw_os_error(i32::try_from(-event.result).unwrap_or(libc::EIO)));
            ended(slot, request, result);
        }
    }
}

impl Drop for AioQueue {
    fn drop(&mut self) {
        // SAFETY: the context is this queue's own. The call cancels requests or waits for their end
        // (io_destroy(2)), so nothing refers to the memory of the slots afterwards.
        let destroyed = unsafe { call(libc::syscall(libc::SYS_io_destroy, self.context)) };
        if destroyed.is_err() && self.submitted > 0 {
            // The kernel may still write to this memory, so leak it.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

/// Converts the result of a system call of the C library.
fn call(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(file: &Arc<OwnedFd>, call: AioCall, memory: Vec<u8>) -> AioRequest {
        let range = 0..memory.len();
        AioRequest { call, file: file.clone(), offset: 0, memory, range }
    }

    #[test]
    fn the_structures_have_the_sizes_of_the_kernel() {
        assert_eq!((size_of::<ControlBlock>(), size_of::<AioEvent>()), (64, 32));
    }

    #[test]
    fn a_refused_request_ends_alone() {
        let mut queue = match AioQueue::new(3) {
            Ok(queue) => queue,
            Err(errno) => return println!("skipped: cannot set up asynchronous I/O: {errno}"),
        };
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        std::fs::write(&path, b"hello").unwrap();
        let readable: Arc<OwnedFd> = Arc::new(std::fs::File::open(&path).unwrap().into());
        // The middle one writes to a descriptor that is open for reading.
        for (slot, kind) in [(0, AioCall::Read), (1, AioCall::Write), (2, AioCall::Read)] {
            queue.start(slot, request(&readable, kind, vec![0; 5]));
        }
        let mut results = vec![None; 3];
        let mut contents = Vec::new();
        let mut take = |slot: usize, request: AioRequest, result| {
            results[slot] = Some(result);
            contents.push(request.memory);
        };
        queue.submit(&mut take);
        while queue.submitted > 0 {
            queue.wait(&mut take);
        }
        assert_eq!(results, [Some(Ok(5)), Some(Err(Errno::BADF)), Some(Ok(5))]);
        assert_eq!(contents.iter().filter(|bytes| *bytes == b"hello").count(), 2);
    }

    #[test]
    fn a_queue_is_dropped_with_requests_under_way() {
        let Ok(mut queue) = AioQueue::new(1) else { return println!("skipped: no asynchronous I/O") };
        let temp = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(temp.path().join("file")).unwrap();
        queue.start(0, request(&Arc::new(file.into()), AioCall::Write, vec![7; 1 << 20]));
        queue.submit(&mut |_, _, result| panic!("{result:?}"));
        assert_eq!((queue.submitted, queue.queued()), (1, 0));
        drop(queue);
        assert_eq!(std::fs::read(temp.path().join("file")).unwrap().len(), 1 << 20);
    }
}
