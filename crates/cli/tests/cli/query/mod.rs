//! `fathom query`: its views and the queries of docs/queries.md, compared with the standard
//! library's metadata; the restrictions of queries; and the Parquet files in other readers. Runs
//! with each DuckDB that `make test` installs.

#![cfg(target_os = "linux")]
mod command_line;
mod engine;
mod home;
mod limits;
mod page;
mod readers;
mod truth;
mod views;
