//! Tests of the explorer without a terminal: keys, marks, removals, frames, threads.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod driver;
mod frames;
mod keys;
mod random;
mod removals;
mod threads;
