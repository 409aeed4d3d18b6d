//! The synchronization types of the modules that model tests check (`active_limit.rs`,
//! `backlog.rs`, `handoff.rs`, `parking.rs`). The tests in `model/` compile these modules with a
//! model checker's types of the same names.

pub(crate) use std::sync::atomic;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
