//! An open directory below which files are opened.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom_io::Errno;
use fathom_io::beneath::{Beneath, Links, LookupMode};
use fathom_io::filesystem::is_local;
use fathom_io::sys::fs_magic;

/// The magic number of overlayfs (linux/magic.h). Its files are on other filesystems, most of them
/// local. A layer on which opens wait is detected at run time.
const OVERLAY: i64 = 0x794C_7630;

/// An open root directory, shared by all workers.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) beneath: Arc<Beneath>,
    pub(crate) dev: u64,
    /// A number that is unique in this process, also among the roots that one path resolved to over
    /// time.
    pub(crate) number: usize,
    /// Whether the worker may try to open files itself.
    pub(crate) is_local: bool,
}

impl Root {
    /// Opens the directory `path`.
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self, Errno> {
        let beneath = Beneath::new(path, links)?;
        let meta = beneath.stat(b".", LookupMode::Blocking)?.ok_or(Errno::AGAIN)?;
        let magic = fs_magic(beneath.dir().as_fd()).unwrap_or_default();
        let is_local = is_local(magic) || magic == OVERLAY;
        Ok(Self { beneath: Arc::new(beneath), dev: meta.dev, number: next_number(), is_local })
    }
}

/// Returns a number that no other root has.
fn next_number() -> usize {
    static ROOTS: AtomicUsize = AtomicUsize::new(0);
    ROOTS.fetch_add(1, Ordering::Relaxed)
}
