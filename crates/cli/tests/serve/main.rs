//! `fathom serve` as its users meet it: the program itself, started and ended by signals, with curl, wget, Python, a browser, h2load,
//! openssl and slowhttptest at the other end. `tools/setup-test.sh` installs them.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod browser;
mod curl;
mod inherited;
mod load;
mod logs;
mod mirror;
mod python;
mod server;
mod signals;
mod start;
#[path = "../support/mod.rs"]
mod support;
mod tls;
