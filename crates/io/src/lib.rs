//! The I/O models of fathom: their list, and the calls of each for directories, metadata and byte
//! ranges.
//!
//! [`Model`] is the list, with names, mechanisms and uses; [`availability`] tests which models can
//! run here, and gives the reason if one cannot.
//!
//! The metadata interface is the trait [`MetadataModel`]: it opens a directory, reads a batch of
//! its names, and reads the metadata of a range of them. One call covers many entries, so a model
//! pays for a hand-off of each entry only if its purpose is to show that cost. The blocking model
//! makes the calls on the thread of the worker ([`blocking`]). The tokio models send each call
//! through the blocking pool of the runtime (`tokio_fs`). io_uring batches calls in one ring for
//! each worker (`uring`). The simulation injects faults into any call, from a seed ([`sim`]).
//!
//! The data interface is the trait [`data::Data`]: it reads, writes and syncs byte ranges of open
//! files with owned buffers, under the same models and under those that have no metadata calls (a
//! pool, reads that do not wait, memory maps).
//!
//! Owns: system calls, dirent parsing, the mount table ([`mounts`]), the list of models. Does not
//! own: order, scheduling, recursion, paths, the choice of the data that is read. All `unsafe` code
//! is in `sys/` and `uring/`.

pub mod availability;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub mod beneath;
pub mod blocking;
pub mod clock;
pub mod data;
mod dirent;
pub mod fault;
pub mod filesystem;
mod meta;
mod metadata;
mod model;
pub mod mounts;
mod random;
pub mod sim;
pub mod sys;
pub mod threads;
#[cfg(feature = "tokio")]
pub mod tokio_fs;
#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
pub mod uring;

pub use clock::Clock;
pub use dirent::{MalformedDirent, parse as parse_dirents};
pub use meta::{Attributes, Fields, FileTime, FileType, Meta};
pub use metadata::{Follow, MetadataModel, block_on};
pub use model::{Model, Unavailable, UnknownModel, Use};
pub use random::Random;
pub use rustix::io::Errno;
pub use sys::{Dir, Name, Names};

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
