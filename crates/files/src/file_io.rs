//! The file I/O of a worker.

use std::cell::Cell;
use std::rc::Rc;

use fathom_io::uring::FileRing;
use fathom_io::{Errno, Model};

use crate::OpenFile;
use crate::byte_cost::ByteCost;
use crate::device::{Device, Devices};
use crate::fetch::PendingOpens;
use crate::pool::ThreadPool;
use crate::worker_buffers::WorkerBuffers;

/// The file I/O of one worker: its model, the shared pool, and its own buffers, devices and pending
/// opens.
///
/// It runs in a runtime of tokio for one thread with local tasks.
///
/// ```
/// use std::path::Path;
///
/// use fathom_files::pool::{PoolLimits, ThreadPool};
/// use fathom_files::{FileError, FileIo, Root};
/// use fathom_io::beneath::Links;
/// use fathom_io::{Errno, Model};
///
/// let limits = PoolLimits { threads: 4, per_device: 3, queue: 100 };
/// let pool = ThreadPool::new(limits, 1, |_panic| ());
/// let files = FileIo::new(Model::Auto, pool, None);
/// let root = Root::open(Path::new("src"), Links::Within)?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build_local(Default::default())?;
/// let client = 1;
/// let fetched = runtime.block_on(files.fetch(&root, b"lib.rs", client))?;
/// assert!(!fetched.opened.is_empty());
/// let outside = runtime.block_on(files.fetch(&root, b"../Cargo.toml", client));
/// assert_eq!(outside.unwrap_err(), FileError::System(Errno::XDEV));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileIo {
    model: Model,
    pool: ThreadPool,
    pub(crate) buffers: WorkerBuffers,
    devices: Devices,
    pub(crate) pending_opens: PendingOpens,
    read_cost: ByteCost,
    /// The ring of [`Model::Uring`].
    pub(crate) ring: Option<Rc<FileRing>>,
    /// The number of consecutive opens that waited although the kernel promised otherwise.
    pub(crate) slow_opens: Cell<u32>,
}

impl FileIo {
    /// Creates the file I/O of a worker. A `ring` is for [`Model::Uring`], and a task of the worker
    /// has to drive it ([`FileRing::drive`]); without one, that model uses the pool. A model that
    /// cannot serve behaves like [`Model::Auto`].
    #[must_use]
    pub fn new(model: Model, pool: ThreadPool, ring: Option<Rc<FileRing>>) -> Rc<Self> {
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

    /// Returns the I/O model.
    #[inline]
    #[must_use]
    pub fn model(&self) -> Model {
        self.model
    }

    /// Returns the pool for calls that wait.
    #[inline]
    #[must_use]
    pub fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// Returns the cost of reads of cached data on this thread.
    #[inline]
    #[must_use]
    pub fn read_cost(&self) -> &ByteCost {
        &self.read_cost
    }

    /// Returns the device of `opened`.
    ///
    /// # Errors
    /// As [`OpenFile::fd`].
    #[inline]
    pub fn device(&self, opened: &OpenFile) -> Result<Rc<Device>, Errno> {
        Ok(self.devices.of(opened.meta.dev, opened.fd()?))
    }

    /// Returns the major and minor numbers of the devices on which reads cannot be asked not to
    /// wait.
    #[must_use]
    pub fn devices_without_nowait(&self) -> Vec<(u32, u32)> {
        self.devices.without_nowait()
    }

    /// Returns the idle buffers of the worker to the allocator.
    pub fn sweep_buffers(&self) {
        self.buffers.sweep();
    }
}
