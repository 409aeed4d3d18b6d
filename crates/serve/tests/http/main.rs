//! The server from the client's side: started in this process, queried over real sockets, judged by
//! its responses.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod access;
mod archives;
mod case;
mod changes;
mod check;
mod clean;
mod codings;
mod conditions;
mod conformance;
mod connection;
mod held;
mod http2;
mod injection;
mod limits;
mod listings;
mod methods;
mod mounts;
mod noise;
mod operation;
mod passwords;
mod places;
mod proxies;
mod ranges;
mod roots;
mod rules;
mod secure;
mod smuggling;
mod support;
mod traversal;
mod types;
mod users;
