//! Runs with an executor that only pretends: order and discards, what the statistics make of known samples, and the texts.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod compared;
mod made;
mod null;
mod order;
mod python;
mod summary;
mod texts;
