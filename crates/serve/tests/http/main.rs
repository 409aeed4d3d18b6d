//! The server as its clients meet it: started in this process, asked over real sockets, judged by what comes back.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod changes;
mod codings;
mod conditions;
mod conformance;
mod connection;
mod held;
mod injection;
mod limits;
mod methods;
mod noise;
mod operation;
mod places;
mod ranges;
mod rules;
mod smuggling;
mod support;
mod traversal;
mod types;
mod users;
