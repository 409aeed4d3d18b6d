//! Visits every entry below a set of roots: in parallel, and yet in one order.
//!
//! Workers take *tasks* (open and list one directory, or stat one chunk of a wide one) from one line in traversal order, and a
//! [`Visit`] turns each task's entries into items on the worker. The calling thread puts the tasks back into
//! traversal order and hands them to a [`Consume`], so what it sees does not depend on the model, on the number of workers or on luck.
//!
//! ```text
//!   roots ──> schedule.rs: line, back-pressure        order.rs ──> Consume
//!                 │    ▲ children                         ▲
//!                 ▼    │                                  │ tasks, as they complete
//!             worker.rs: MetadataModel calls ──> Visit ──> task.rs: items and subdirectories, in order
//! ```
//!
//! Each device has a device of its own (`device.rs`): a line, and how many of its tasks are executed at once.
//!
//! Owns: order, scheduling, how many workers run (`control.rs`), descriptors (`fds.rs`), loops, errors as events.
//! Does not own: sizes, hard links, filters, output. Prints nothing.

mod adapter;
mod arrival;
mod backlog;
mod batch;
mod control;
mod device_queue;
mod dir_path;
mod error;
mod failure;
mod fds;
mod gather;
pub mod gatherer;
mod hints;
mod list;
mod node;
mod options;
mod order;
mod pool;
mod run;
mod schedule;
mod tally;
mod task;
mod threads;
mod visit;
mod work_queue;
mod worker;

pub use control::{Controller, Sample};
pub use dir_path::DirPath;
pub use error::{Error, Op};
pub use failure::{Failure, Operation};
pub use fathom_io::mounts;
pub use fathom_io::sys::room;
pub use fathom_io::threads::{has_room, spawn as spawn_thread};
pub use fathom_io::{Attributes, Errno, Fields, FileType, Follow, Meta, Model, Name, Names, Stamp};
pub use gather::{Below, Gather, Roots};
pub use hints::ConcurrencyHints;
pub use node::Node;
pub use options::Options;
pub use run::{Calls, Progress, Summary, gather, gather_with, run, run_with};
pub use visit::{Consume, Descend, Emit, Enter, Entry, Found, NextRoot, Opened, Reached, Visit};

/// Metadata of what `path` leads to.
///
/// # Errors
/// As stat(2).
pub fn stat(path: &std::ffi::CStr) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, Follow::Yes, Fields::IDENTITY)
}

/// Metadata of `path` itself, be it a symbolic link.
///
/// # Errors
/// As lstat(2).
pub fn lstat(path: &std::ffi::CStr) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, Follow::No, Fields::IDENTITY)
}

/// These fields of what `path` leads to, or where links are not followed, of itself.
///
/// # Errors
/// As fstatat(2).
pub fn meta(path: &std::ffi::CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    fathom_io::sys::stat(fathom_io::sys::CWD, path, follow, fields)
}

/// Returns the names of the extended attributes of `path`, each with a NUL behind it; `None` where
/// its filesystem has no such attributes.
///
/// # Errors
/// As llistxattr(2).
pub fn xattr_names(path: &std::ffi::CStr) -> Result<Option<Vec<u8>>, Errno> {
    fathom_io::sys::xattr_names(fathom_io::sys::CWD, path)
}

/// Returns the project of `path`, a file of this type; `None` where its filesystem has none.
///
/// # Errors
/// As file_getattr(2), or as openat(2) and ioctl_fs(2).
pub fn project(path: &std::ffi::CStr, file_type: FileType) -> Result<Option<u32>, Errno> {
    fathom_io::sys::project(fathom_io::sys::CWD, path, file_type)
}

/// What the symbolic link `path` holds.
///
/// # Errors
/// As readlink(2).
pub fn read_link(path: &std::ffi::CStr) -> Result<std::ffi::CString, Errno> {
    fathom_io::sys::read_link(fathom_io::sys::CWD, path)
}

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
