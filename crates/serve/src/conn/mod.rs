//! Connections: sockets, buffers and sendfile segments that hyper writes, send budgets, and
//! deadlines.

pub(crate) mod body_queue;
pub(crate) mod chunk;
pub(crate) mod deadlines;
pub(crate) mod send_budget;
pub(crate) mod send_cost;
pub(crate) mod stall;
pub(crate) mod transport;
#[cfg(feature = "http3")]
pub(crate) mod unacked;
