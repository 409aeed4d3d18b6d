//! File I/O of a worker: files are opened below a site's root and read by the chosen I/O model.
//!
//! ```text
//!                   ┌ nowait: openat2(RESOLVE_CACHED), preadv2(RWF_NOWAIT), cachestat ─> sendfile
//! respond ── FileIo ┤
//!                   └ pool: one call for open + fstat + first bytes, shared by concurrent requests
//! ```
//! Owns: which calls are made, on which thread and in which order. Does not own: which file a
//! request means, the response's headers, and the cache of open files.

mod byte_cost;
mod device;
mod fetch;
mod open_file;
pub(crate) mod pool;
mod read;
pub(crate) mod read_buffers;
mod root;
mod worker_buffers;

use std::cell::Cell;
use std::rc::Rc;

use fathom_io::uring::FileRing;
use fathom_io::{Errno, Model};

pub(crate) use byte_cost::ByteCost;
pub(crate) use device::is_in_memory;
pub(crate) use fetch::{FetchedFile, PendingOpens};
pub(crate) use open_file::{FileChange, FileVersion, OpenFile, SETTLING};
pub(crate) use read::{POOL_READ_BYTES, RangeReadFuture, RangeReader, ReadStep, pool_read_bytes};
pub(crate) use root::Root;
pub(crate) use worker_buffers::{WorkerBuffer, WorkerBuffers};

use device::{Device, Devices};
use pool::{CallError, Resource, ThreadPool};

/// The reason why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileError {
    /// A system call failed.
    System(Errno),
    /// The pool's queue is full.
    Busy,
    /// A bug: the call panicked, which has been reported.
    Panicked,
    /// The file changed while it was read.
    Changed,
    /// The site's root directory does not exist.
    NoRoot,
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl From<CallError> for FileError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::QueueFull => Self::Busy,
            CallError::Panicked => Self::Panicked,
        }
    }
}

/// The file I/O of one worker: its model, the shared pool, and its own buffers, devices and pending
/// opens.
#[derive(Debug)]
pub(crate) struct FileIo {
    pub(crate) model: Model,
    pub(crate) pool: ThreadPool,
    pub(crate) buffers: WorkerBuffers,
    devices: Devices,
    pending_opens: PendingOpens,
    /// The cost of reads of cached data on this thread.
    pub(crate) read_cost: ByteCost,
    /// The ring of [`Model::Uring`].
    ring: Option<Rc<FileRing>>,
    /// The number of consecutive opens that waited although the kernel promised otherwise.
    slow_opens: Cell<u32>,
}

impl FileIo {
    pub(crate) fn new(model: Model, pool: ThreadPool, ring: Option<Rc<FileRing>>) -> Rc<Self> {
        Rc::new(Self {
            model,
            pool,
            buffers: WorkerBuffers::default(),
            devices: Devices::default(),
            pending_opens: PendingOpens::default(),
            read_cost: ByteCost::default(),
            ring,
            slow_opens: Cell::new(0),
        })
    }

    pub(crate) fn device(&self, opened: &OpenFile) -> Result<Rc<Device>, Errno> {
        Ok(self.devices.of(opened.meta.dev, opened.fd()?))
    }

    /// Returns the major and minor numbers of the devices on which reads cannot be asked not to
    /// wait.
    pub(crate) fn devices_without_nowait(&self) -> Vec<(u32, u32)> {
        self.devices.without_nowait()
    }
}

/// Returns the pool resource of a device number.
fn device_resource(dev: u64) -> Resource {
    Resource::Device(dev)
}
