//! The I/O models: every way fathom has of reading a directory with the metadata of its children.
//!
//! The metadata seam is the trait [`MetadataModel`]: open a directory, read a batch of its names, take the metadata of a
//! range of them. Each call is one dispatch for many entries, so no model pays a hand-off for one entry unless that is
//! what it exists to show. The blocking model makes the calls on the worker's own thread ([`blocking`]); the
//! tokio models send each through the runtime's blocking pool ([`tokio_fs`]); io_uring batches them in one ring a
//! worker (`uring`); [`sim`] injects faults into any of the calls, from a seed.
//!
//! The data seam is the trait [`data::Data`]: read, write and sync byte ranges of open files with owned buffers, under the same models
//! and a few more (a pool with a hand-off an operation, memory maps, reads that do not wait).
//!
//! Owns: system calls, dirent parsing, the mount table ([`mounts`]), what a model is called and whether it can run here.
//! Does not own: order, scheduling, recursion, paths, any policy on what is read. All `unsafe` is in `sys/` and `uring/`.

#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub mod beneath;
pub mod blocking;
pub mod data;
mod dirent;
pub mod fault;
mod meta;
mod model;
pub mod mounts;
pub mod offer;
mod random;
pub mod sim;
pub mod sys;
pub mod threads;
#[cfg(feature = "tokio")]
pub mod tokio_fs;
#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
pub mod uring;

pub use dirent::{MalformedDirent, parse as parse_dirents};
pub use meta::{Attributes, Fields, FileTime, FileType, Meta};
pub use model::{Follow, MetadataModel, Model, Unavailable, UnknownModel, block_on};
pub use random::Random;
pub use rustix::io::Errno;
pub use sys::{Dir, Name, Names};

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
