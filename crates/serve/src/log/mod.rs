//! The access log: one line a request, from many workers to one file, without a worker ever waiting
//! for the disk. Lines of the error log travel the same way.
//!
//! ```text
//! worker: Record ─> Formatter ─> Logger's buffer ──(bounded channel)──> writer thread ─> file or stream
//!                                     └─ channel and buffer full: the line is dropped and counted
//! ```
//! `line` says what a line looks like, `writer` how lines travel, `errors` what the error log says
//! and how often. Does not own: which events are logged and when, signals, standard output and
//! standard error (they are handed in).

mod errors;
mod line;
mod writer;

pub use errors::{Errors, Trouble};

pub use line::{Formatter, Record, Source, Style};
pub use writer::{Log, Logger, Target};
