//! The state that requests use: the server's, which all workers share, and each worker's own.
//!
//! Owns: the state, and the lookup of files and roots through it. Does not own: tasks, connections
//! and threads, which change it ([`crate::worker`], [`crate::server`]).

mod account;
mod burst;
mod flag_files;
mod peer;
mod roots;
mod shared;
mod worker;

pub(crate) use account::RequestAccount;
pub(crate) use peer::Peer;
pub(crate) use shared::{ControlState, ServerPhase, SharedState};
pub(crate) use worker::Worker;
