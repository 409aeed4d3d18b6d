//! Uses of a gatherer in a program: the messages about processed directories, opening entries,
//! comparing paths, limits of the walk, and the programs in the guide.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod guide;
mod limits;
mod paths;
mod processed;
#[path = "../support/mod.rs"]
mod support;
mod wait;
