//! The access log and the error log. The access log has one line for each request. Workers pass
//! lines to a writer thread, and never wait for the disk. The error log uses the same queue.
//!
//! ```text
//! worker: AccessRecord ─> LineFormatter ─> WorkerLogger ─(bounded channel)─> LogThread ─> file
//!                                            └─ channel and buffer full: drop and count the line
//! ```
//! `line` formats lines, `writer` passes them to the file, `errors` limits the rate of the error
//! log, `configured` opens both. Does not own: which events are logged and when, signals, standard
//! output and standard error, which are passed in.

mod configured;
mod errors;
mod line;
mod writer;

pub(crate) use configured::{log_style, open_access_log, open_error_log};
pub use errors::{ErrorCategory, ErrorReporter};

pub use line::{AccessRecord, BodySource, LineFormatter, LogFormat};
pub use writer::{AccessLogWriter, LogTarget, WorkerLogger};
