//! A worker: one thread with its own runtime, listeners, connections and open files.
//!
//! Owns: the tasks of a thread, from accepting a connection to the end of its last response. Does
//! not own: the state that they use ([`crate::state`]), the content of responses.

mod accept;
mod connection;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod open_connection;
mod proxy_header;
mod redirect;
mod refused;

pub(crate) use accept::{WorkerParams, run};
