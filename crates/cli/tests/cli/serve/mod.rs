//! `fathom serve` as a process: started, stopped by signals, and used by curl, wget, Python, a
//! browser, h2load, openssl and slowhttptest, which `tools/setup-test.sh` installs.

mod browser;
mod configuration;
mod curl;
mod explore;
mod inherited;
mod load;
mod logs;
mod mirror;
mod notify;
mod panics;
mod passwords;
mod python;
mod server;
mod signals;
mod start;
mod tls;
