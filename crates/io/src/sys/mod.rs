//! System calls behind safe signatures. Each function makes one call and repeats it after EINTR.
//!
//! `unix.rs`, which uses POSIX.1-2008 alone, replaces `linux.rs` with the feature `posix` and on
//! other systems.

#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod linux;
#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
#[path = "unix.rs"]
mod linux;

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod aio;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod cache;
mod child;
mod file;
mod inherited;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod map;
mod memory;
mod names;
mod process;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod sealed;
#[cfg(feature = "startup")]
mod startup;
#[cfg(all(target_os = "linux", feature = "tokio", not(feature = "posix")))]
mod timer;
mod xattr;

pub use rustix::fs::{CWD, major, makedev};

#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub(crate) use aio::{AioCall, AioQueue, AioRequest};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use cache::{PageCacheStat, cached, forget_cached, resident};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use child::MigrationCounter;
pub use child::{ChildUsage, start_by_fork, wait_for_child};
pub use file::{open_file, read_file, security_context};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use file::{peers_ended, send_file, unacknowledged};
pub use inherited::inherited;
pub use linux::{
    Dir, enter, is_cached_local, open_dir, open_path, read_names, read_some_names, seek, stat, stat_dir,
};
#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
pub(crate) use linux::{mask, meta, open_flags, stat_flags};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use linux::{stat_open, stat_open_cached};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub(crate) use map::Map;
pub use memory::{Allocator, address_space_left, exit_when_exhausted};
pub use names::{Name, Names};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use process::lower_priority;
pub use process::{
    Usage, children_usage, cpus_allowed, end_with_parent, fd_limit, fs_magic, is_ignored, keep_freed_memory,
    machine_idle, raise_fd_limit, read_link, release_freed_memory, tune_allocator, usage,
};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use sealed::SealedMemory;
#[cfg(feature = "startup")]
pub use startup::{ignore_sigpipe, restore_sigpipe, stderr_was_closed, stdin_was_closed, stdout_was_closed};
#[cfg(all(target_os = "linux", feature = "tokio", not(feature = "posix")))]
pub use timer::Timer;
pub use xattr::{project, xattr_names};
