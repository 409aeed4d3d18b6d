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

/// An open root directory, below which files are opened. Clones share the descriptor.
///
/// ```
/// use std::path::Path;
///
/// use fathom_files::Root;
/// use fathom_io::Errno;
/// use fathom_io::beneath::{Links, LookupMode};
///
/// let root = Root::open(Path::new("src"), Links::Within)?;
/// assert!(root.beneath.open(b"pool/mod.rs", LookupMode::Blocking)?.is_some());
/// let outside = root.beneath.open(b"../Cargo.toml", LookupMode::Blocking);
/// assert_eq!(outside.unwrap_err(), Errno::XDEV);
/// # Ok::<(), Errno>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Root {
    /// The directory.
    pub beneath: Arc<Beneath>,
    /// The device of the directory (`st_dev`).
    pub dev: u64,
    /// A number that is unique in this process, also among the roots that one path resolved to over
    /// time.
    pub number: usize,
    /// Whether a worker may try to open files itself: a lookup asks no server.
    pub is_local: bool,
}

impl Root {
    /// Opens the directory `path`. `links` is the policy for symbolic links in paths below it.
    ///
    /// # Errors
    /// As [`Beneath::new`] and [`Beneath::stat`].
    pub fn open(path: &Path, links: Links) -> Result<Self, Errno> {
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
