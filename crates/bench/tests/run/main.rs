//! Runs with a mock executor: order and discards, statistics of known samples, and texts.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod compared;
mod null;
mod order;
mod python;
mod simulated;
mod summary;
mod texts;
