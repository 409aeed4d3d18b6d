//! Files as a worker gets at them: opened below a site's root, read by the model that was named.
//!
//! ```text
//!                      ┌ at once: openat2(RESOLVE_CACHED), preadv2(RWF_NOWAIT), cachestat ─> sendfile
//! respond ── Files ────┤
//!                      └ pool, one call for open + fstat + first bytes; one flight for all who ask for the same file
//! ```
//! Owns: which calls are made, on which thread, in which order; what is kept open. Does not own: which file a request means, what is
//! said about it.

pub(crate) mod cache;
mod device;
mod door;
mod fetch;
mod model;
mod opened;
pub(crate) mod pool;
mod read;
mod root;
mod short;
pub(crate) mod spare;

use std::cell::Cell;
use std::rc::Rc;

use fathom_io::Errno;
use fathom_io::uring::FileRing;

pub(crate) use device::is_in_memory;
pub(crate) use fetch::{Fetched, Flights};
pub use model::{Model, UnknownModel};
pub(crate) use opened::{Opened, Version};
pub(crate) use read::{POOL_BYTES, Reader, SEND_BYTES, Step, Tail, pool_bytes};
pub(crate) use root::{Followed, Root};
pub(crate) use short::Short;

pub(crate) use crate::log::Source;

use crate::conn::chunk::Buffers;
use crate::conn::way::Way;
use device::{Device, Devices};
use pool::{Busy, Pool, Resource};

/// Why a file is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The system's reason.
    System(Errno),
    /// Too much is waiting for the pool.
    Busy,
    /// It changed while it was read.
    Changed,
    /// The site's directory is not there.
    NoRoot,
}

/// Whether an error means that a file exists and may not be served: it may not be opened (`EPERM`
/// is the error of a security module, or of a device that a control group withholds), it is a
/// socket, or it is a device without a driver.
pub(crate) fn is_forbidden(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV)
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl From<Busy> for Failure {
    fn from(Busy: Busy) -> Self {
        Self::Busy
    }
}

/// One worker's way to files.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) model: Model,
    pub(crate) pool: Pool,
    pub(crate) buffers: Buffers,
    devices: Devices,
    flights: Flights,
    /// What sendfile and reading have cost, for large files in memory.
    pub(crate) way: Rc<Way>,
    /// [`Model::Uring`]'s.
    ring: Option<Rc<FileRing>>,
    /// Opens that had to wait after all, in a row.
    slow_opens: Cell<u32>,
}

impl Files {
    pub(crate) fn new(model: Model, pool: Pool, ring: Option<Rc<FileRing>>, way: Way) -> Rc<Self> {
        Rc::new(Self {
            model,
            pool,
            buffers: Buffers::default(),
            devices: Devices::default(),
            flights: Flights::default(),
            way: Rc::new(way),
            ring,
            slow_opens: Cell::new(0),
        })
    }

    fn device(&self, opened: &Opened) -> Result<Rc<Device>, Errno> {
        Ok(self.devices.of(opened.meta.dev, opened.fd()?))
    }

    /// Devices that cannot be asked for what they have in memory.
    pub(crate) fn mute_devices(&self) -> Vec<(u32, u32)> {
        self.devices.mute()
    }
}

/// A device as the pool counts it.
fn on(dev: u64) -> Resource {
    Resource::Device(dev)
}
