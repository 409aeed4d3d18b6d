//! A static file server with a choice of file I/O models.
//!
//! ```text
//! listener ─> worker (one a CPU) ─> connection (hyper) ─> answer ─> site's rules
//!             its own runtime                                └─> files: cache, models, pool
//! ```
//! Owns: what a request means, which bytes answer it and how they are read and sent. Does not own:
//! the command line, the environment, the terminal, signals. It never prints; messages leave it as
//! log lines and errors.
//!
//! Modules use each other in one direction: `rules`, `plan`, `state`, `body`, `answer`, `worker`,
//! `server`, each those before it.

mod address_connections;
mod answer;
pub mod archive;
mod archive_slots;
pub mod auth;
mod body;
mod budget;
mod cache;
mod coalesce;
pub mod compress;
pub mod conditional;
pub mod config;
mod conn;
pub mod date;
pub mod error;
pub mod etag;
mod generated_places;
pub mod generator;
pub mod listen;
pub mod listing;
mod listings;
pub mod log;
pub mod metrics;
pub mod multipart;
pub mod negotiate;
pub mod pages;
mod panics;
pub mod path;
mod places;
mod plan;
pub mod proxies;
pub mod range;
mod rate;
pub mod report;
mod representation;
pub mod request_headers;
pub mod rules;
pub mod server;
mod site_root;
mod state;
pub mod tls;
pub mod types;
mod worker;

pub use config::Config;
pub use error::{Error, Op};
pub use fathom_io::Model;

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
