//! Why a server cannot be started, or not go on with a new configuration. What a client did wrong is no error but a status.

use std::error::Error as Source;
use std::fmt;

/// The deed that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reading a configuration file, or making sense of its text.
    ReadConfig,
    /// Making something of a value that could be read; the thing is its key (`site.redirects[2].from`).
    Configure,
    /// Opening a directory that is to be served.
    Open,
    /// Getting a socket to listen on.
    Listen,
    /// Reading a certificate, or making sense of it.
    LoadCertificate,
    /// The same of its key.
    LoadKey,
    /// The same of a file of users.
    LoadUsers,
    /// Opening the access log or the error log.
    OpenLog,
    /// Anything else on the way to the first request.
    Start,
}

/// Why a server cannot be started, or not go on with a new configuration.
#[derive(Debug)]
pub struct Error {
    op: Op,
    thing: String,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    /// `op` failed on `thing`, a path, an address or a key, because of `source`.
    #[must_use]
    pub fn new(op: Op, thing: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, thing: thing.into(), source: source.into() }
    }

    /// The value of `key` cannot be used because of `source`.
    #[must_use]
    pub fn configure(key: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self::new(Op::Configure, key, source)
    }

    /// The deed that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The path, address or key it failed on.
    #[must_use]
    pub fn thing(&self) -> &str {
        &self.thing
    }

    /// The cause alone, in the system's words if it was the system's.
    #[must_use]
    pub fn cause(&self) -> String {
        match self.source.downcast_ref::<std::io::Error>() {
            Some(error) => cause(error),
            None => self.source.to_string(),
        }
    }
}

/// The cause of `error`, in the system's words if it was the system's.
pub(crate) fn cause(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => {
            let words = fathom_text::words(std::io::Error::from_raw_os_error(code));
            String::from_utf8_lossy(&words).into_owned()
        }
        None => error.to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deed = match self.op {
            Op::ReadConfig => "read",
            Op::Configure => "use",
            Op::Open => "open",
            Op::Listen => "listen on",
            Op::LoadCertificate => "use certificate",
            Op::LoadKey => "use key",
            Op::LoadUsers => "use users file",
            Op::OpenLog => "open log",
            Op::Start => "start",
        };
        write!(f, "cannot {deed} '{}': {}", self.thing, self.cause())
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_come_without_its_number() {
        let error = Error::new(Op::Listen, "127.0.0.1:80", std::io::Error::from_raw_os_error(13));
        assert_eq!(error.to_string(), "cannot listen on '127.0.0.1:80': Permission denied");
        let error = Error::configure("site.cors.origins[0]", "an origin has no path");
        assert_eq!(error.to_string(), "cannot use 'site.cors.origins[0]': an origin has no path");
    }
}
