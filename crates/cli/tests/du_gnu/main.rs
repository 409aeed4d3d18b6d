//! `fathom du` beside GNU du, rule by rule: the same bytes on standard output and standard error and the same
//! status, called as `du` and with every I/O model. The rules are those that are easy to get wrong; a file here is
//! an area of them. What GNU du is expected to do is asserted only to prove that a case is the one it means to be.

#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod depth;
mod environment;
mod errors;
mod exclude;
mod limits;
mod links;
mod mounts;
mod names;
mod operands;
mod order;
mod records;
mod sizes;
mod streams;
mod symlinks;
mod thresholds;
mod times;
