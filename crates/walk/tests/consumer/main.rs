//! Uses of a gatherer in a program: learning that a directory is processed, opening entries,
//! comparing paths, limiting the walk; and the programs that the guide shows.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod guide;
mod limits;
mod paths;
mod processed;
#[path = "../support/mod.rs"]
mod support;
mod wait;
