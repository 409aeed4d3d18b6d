//! Compares `fathom du` with GNU du, rule by rule: equal bytes on both streams and an equal exit
//! status, called as `du` and with every I/O model. Each module is an area of rules that are easy
//! to get wrong. A test asserts the output of GNU du only to prove that the case triggers its rule.

#![cfg(target_os = "linux")]

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
