//! System calls behind safe signatures: one call a function, EINTR handled here. With `unix.rs` in place of
//! `linux.rs` (the feature `posix`, or another Unix) only what POSIX.1-2008 has is used.

#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod linux;
#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
#[path = "unix.rs"]
mod linux;

mod asked;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod cache;
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

pub use rustix::fs::{CWD, major, makedev};

pub use asked::{project, xattr_names};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use cache::{Cached, cached, forget_cached, resident};
pub use file::{born, context, open_file, read_file};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use file::{send_file, unacknowledged};
pub use inherited::inherited;
pub use linux::{
    Dir, enter, is_at_hand, open_dir, open_path, read_names, read_some_names, seek, stat, stat_dir,
};
#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
pub(crate) use linux::{mask, meta, open_flags, stat_flags};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use linux::{stat_open, stat_open_as_known};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub(crate) use map::Map;
pub use memory::{Allocator, end_within_limit, room};
pub use names::{Name, Names};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use process::give_way;
pub use process::{
    Usage, children_usage, cpus_allowed, end_with_parent, fd_limit, fs_magic, is_ignored, keep_freed_memory,
    machine_idle, raise_fd_limit, read_link, release_freed_memory, tune_allocator, usage,
};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use sealed::Sealed;
#[cfg(feature = "startup")]
pub use startup::{ignore_sigpipe, restore_sigpipe, stderr_was_closed, stdin_was_closed, stdout_was_closed};
