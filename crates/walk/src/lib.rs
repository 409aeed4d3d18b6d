//! Visits every entry below a set of roots in parallel: in traversal order, or as entries are
//! found.
//!
//! Workers take *tasks*, which open and list one directory or read the metadata of one chunk of a
//! wide one, from a queue in traversal order. A [`Visitor`] processes the entries of each task on
//! the worker. There are two drivers, each with a trait for the calls that it alone makes:
//!
//! - Ordered ([`run`]): the calling thread restores the traversal order and passes the results to a
//!   [`Consumer`]. Its calls do not depend on the model, the number of workers or the timing.
//! - Unordered ([`run_unordered`]): the workers call the visitor as soon as a task completes.
//!
//! Each failure is one call, of [`Consumer::failed`] or of [`UnorderedVisitor::failed`].
//!
//! ```text
//!   roots ──> schedule.rs: queue, back-pressure        order.rs ──> Consumer
//!                 │    ▲ children                         ▲
//!                 ▼    │                                  │ tasks, as they complete
//!         worker.rs: MetadataModel calls ──> Visitor ──> task.rs: items, subdirectories in order
//! ```
//!
//! Each device has a queue of its own (`device_queue.rs`), with a limit for its concurrent tasks.
//!
//! Owns: order, scheduling, the number of workers (`control.rs`), descriptors (`fds.rs`), loops,
//! failures as events. Does not own: sizes, hard links, filters, output. Prints nothing.

mod active_limit;
mod arrival;
mod backlog;
mod batch;
mod control;
mod device_queue;
mod dir_path;
mod driven;
mod error;
mod failure;
mod fds;
pub mod gatherer;
mod handoff;
mod hints;
mod list;
mod node;
mod options;
mod order;
mod parking;
mod pool;
mod run;
mod schedule;
mod summary;
mod sync;
mod tally;
mod task;
mod threads;
mod visitor;
mod work_queue;
mod worker;

pub use control::{Controller, Sample};
pub use dir_path::DirPath;
pub use error::{Error, Op};
pub use failure::{Failure, Operation};
pub use fathom_io::fault;
pub use fathom_io::filesystem::{Filesystem, persistent_id};
pub use fathom_io::mounts;
pub use fathom_io::sys::address_space_left;
pub use fathom_io::threads::{has_address_space, spawn as spawn_thread};
pub use fathom_io::{
    Attributes, Clock, Errno, Fields, FileTime, FileType, Follow, Meta, Model, Name, Names, Random,
};
pub use hints::ConcurrencyHints;
pub use node::Node;
pub use options::Options;
pub use run::{run, run_unordered, run_unordered_with, run_with};
pub use summary::{Calls, Progress, Summary};
pub use task::Found;
pub use visitor::{
    Consumer, Descend, Emit, Enter, Entry, NextRoot, Opened, OrderedVisitor, Reached, RootSource,
    UnorderedVisitor, Visitor,
};

/// Returns the metadata of `path`, following symbolic links.
///
/// # Errors
/// As stat(2).
///
/// ```
/// use fathom_walk::{Errno, FileType};
///
/// assert_eq!(fathom_walk::stat(c"src")?.file_type(), FileType::Directory);
/// assert_eq!(fathom_walk::stat(c"missing"), Err(Errno::NOENT));
/// # Ok::<(), Errno>(())
/// ```
pub fn stat(path: &std::ffi::CStr) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, Follow::Yes, Fields::IDENTITY)
}

/// Returns the metadata of `path`, without following a symbolic link.
///
/// # Errors
/// As lstat(2).
///
/// ```
/// use fathom_walk::FileType;
///
/// // /proc/self is a link to the directory of this process.
/// assert_eq!(fathom_walk::lstat(c"/proc/self")?.file_type(), FileType::Symlink);
/// # Ok::<(), fathom_walk::Errno>(())
/// ```
pub fn lstat(path: &std::ffi::CStr) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, Follow::No, Fields::IDENTITY)
}

/// Returns the metadata of `path` with these fields.
///
/// # Errors
/// As fstatat(2).
///
/// ```
/// use fathom_walk::{Fields, Follow, meta};
///
/// let found = meta(c"Cargo.toml", Follow::No, Fields::SIZE.union(Fields::TIMES))?;
/// assert!(found.size > 0 && found.mtime.sec > 0);
/// # Ok::<(), fathom_walk::Errno>(())
/// ```
pub fn meta(path: &std::ffi::CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, follow, fields)
}

/// Returns the names of the extended attributes of `path`, each with a terminating NUL; `None` if
/// its filesystem has no such attributes.
///
/// # Errors
/// As llistxattr(2).
///
/// ```
/// if let Some(names) = fathom_walk::xattr_names(c"Cargo.toml")? {
///     assert!(names.is_empty() || names.ends_with(b"\0"));
/// }
/// # Ok::<(), fathom_walk::Errno>(())
/// ```
pub fn xattr_names(path: &std::ffi::CStr) -> Result<Option<Vec<u8>>, Errno> {
    fathom_io::sys::xattr_names(fathom_io::sys::CWD, path)
}

/// Returns the project ID of `path`, a file of type `file_type`; `None` if its filesystem has no
/// projects.
///
/// # Errors
/// As file_getattr(2), or as openat(2) and ioctl_fs(2).
///
/// ```
/// use fathom_walk::FileType;
///
/// let project: Option<u32> = fathom_walk::project(c"src", FileType::Directory)?;
/// # Ok::<(), fathom_walk::Errno>(())
/// ```
pub fn project(path: &std::ffi::CStr, file_type: FileType) -> Result<Option<u32>, Errno> {
    fathom_io::sys::project(fathom_io::sys::CWD, path, file_type)
}

/// Returns the target of the symbolic link `path`.
///
/// # Errors
/// As readlink(2).
///
/// ```
/// use fathom_walk::{Errno, read_link};
///
/// assert_eq!(read_link(c"/proc/self")?.to_str(), Ok(std::process::id().to_string().as_str()));
/// assert_eq!(read_link(c"src"), Err(Errno::INVAL));
/// # Ok::<(), Errno>(())
/// ```
pub fn read_link(path: &std::ffi::CStr) -> Result<std::ffi::CString, Errno> {
    fathom_io::sys::read_link(fathom_io::sys::CWD, path)
}

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
