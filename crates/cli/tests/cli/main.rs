//! The tests of the commands as one program: each module is about a command or a subject. In `make
//! test`, each module runs in a process of its own.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

extern crate self as libfuzzer_sys;

mod arguments;
mod bench;
mod corpora;
mod counts;
mod diff;
mod du_gnu;
mod du_property;
mod du_real;
mod estimate;
mod examples;
mod explore;
mod export;
mod from;
mod history;
mod ignores;
mod import;
mod io;
mod limits;
mod linked;
mod list;
mod list_edges;
mod list_from;
mod merge;
mod profile;
mod query;
mod rdu;
mod report;
mod rm;
mod scan;
mod serve;
mod support;
mod terminal;
mod top;
mod views;

// The fuzz targets take the macro from a crate of this name.
pub(crate) use corpora::fuzz_target;
