//! `fathom query`: what its views and the queries of docs/queries.md say of a tree, against what std::fs says of it; what a
//! query cannot do; and the same Parquet files as other readers see them. With each DuckDB that `make test` installs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[path = "../support/mod.rs"]
mod support;

mod command_line;
mod engine;
mod home;
mod limits;
mod page;
mod readers;
mod truth;
mod views;
