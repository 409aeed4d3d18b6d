//! Files below a directory, opened and read under every I/O model that can serve.
//!
//! ```text
//!                                 ┌ this thread: openat2(RESOLVE_CACHED), preadv2(RWF_NOWAIT)
//! Root ─> FileIo ─> RangeReader ──┤
//!                                 └ ThreadPool: calls that wait, in turn for each client
//! ```
//! A worker is a thread with its own runtime. It has one [`FileIo`] and shares the
//! [`ThreadPool`](pool::ThreadPool) with other workers. [`FileIo::fetch`] opens a path below a
//! [`Root`]; one openat2(2) call looks the path up and checks that it does not leave the directory.
//! A [`RangeReader`] reads bytes of the open file and verifies that they belong to the version that
//! was opened.
//!
//! Owns: which calls are made, on which thread and in which order; versions of files; the pool.
//! Does not own: which file a path means, which files are kept open, and what the bytes are for.

mod byte_cost;
mod device;
mod error;
mod fetch;
mod file_io;
mod open_file;
pub mod pool;
mod read;
mod read_buffers;
mod root;
mod worker_buffers;

pub use byte_cost::ByteCost;
pub use device::{Device, is_in_memory};
pub use error::FileError;
pub use fetch::FetchedFile;
pub use file_io::FileIo;
pub use open_file::{FileChange, FileVersion, OpenFile, SETTLING};
pub use read::{POOL_READ_BYTES, RangeReadFuture, RangeReader, ReadStep, SentContent, pool_read_bytes};
pub use root::Root;
pub use worker_buffers::WorkerBuffer;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
