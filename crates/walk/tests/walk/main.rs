//! The tests of the walk: its orders, its failures, its limits, and the gatherer. One program for
//! all of them, because each program compiles the walk anew for its visitors.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod apart;
mod arrival;
mod consumer;
#[cfg(target_os = "linux")]
mod deep;
#[cfg(target_os = "linux")]
mod descriptors;
mod devices;
mod ends;
mod failures;
mod faults;
mod gatherer;
mod hints;
mod links;
#[cfg(target_os = "linux")]
mod memory;
mod opened;
mod order;
#[cfg(target_os = "linux")]
mod races;
mod read_ahead;
mod recall;
#[cfg(target_os = "linux")]
mod refused;
mod remote;
mod start;
mod stress;
mod support;
