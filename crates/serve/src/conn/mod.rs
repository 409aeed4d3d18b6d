//! Connections: sockets, what hyper is handed to write, and how long everything may take.

pub(crate) mod chunk;
pub(crate) mod outbox;
pub(crate) mod pulse;
pub(crate) mod stall;
pub(crate) mod transport;
pub(crate) mod turns;
#[cfg(feature = "http3")]
pub(crate) mod unacked;
pub(crate) mod way;
