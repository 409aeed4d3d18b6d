//! Errors that keep a server from starting or from taking over a new configuration. A client's
//! mistake is a response status, not an error of this type.

use std::error::Error as Source;
use std::fmt;

use fathom_files::FileError;
use fathom_io::Errno;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Reading a configuration file, or parsing it.
    ReadConfig,
    /// Compiling a value of the configuration. The thing is the key of the value
    /// (`site.redirects[2].from`).
    Configure,
    /// Opening a directory that is to be served.
    Open,
    /// Opening a listening socket.
    Listen,
    /// Reading or parsing a certificate.
    LoadCertificate,
    /// Reading or parsing the key of a certificate.
    LoadKey,
    /// Reading or parsing a file of users.
    LoadUsers,
    /// Opening the access log or the error log.
    OpenLog,
    /// Any other step of the start.
    Start,
}

/// An error of a start or of a reload.
#[derive(Debug)]
pub struct Error {
    op: Op,
    thing: String,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    /// Creates the error of `op` on `thing`, which is a path, an address or a key.
    #[must_use]
    pub fn new(op: Op, thing: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, thing: thing.into(), source: source.into() }
    }

    /// Creates the error of an unusable value under `key`.
    #[must_use]
    pub fn configure(key: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self::new(Op::Configure, key, source)
    }

    /// Creates the error of a value that is missing under `key`, or that requires another one.
    pub(crate) fn incomplete(key: impl Into<String>, cause: &'static str) -> Self {
        Self::configure(key, Incomplete(cause))
    }

    /// Returns whether a value is missing, or requires another one.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.source.is::<Incomplete>()
    }

    /// Returns the operation that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the path, address or key on which the operation failed.
    #[must_use]
    pub fn thing(&self) -> &str {
        &self.thing
    }

    /// Returns the cause alone. For an error of the operating system that is the message of
    /// strerror(3).
    #[must_use]
    pub fn cause(&self) -> String {
        match self.source.downcast_ref::<std::io::Error>() {
            Some(error) => cause(error),
            None => self.source.to_string(),
        }
    }
}

/// The reason why a configuration lacks a value.
#[derive(Debug)]
struct Incomplete(&'static str);

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Source for Incomplete {}

/// Returns the cause of `error`. For an error of the operating system that is the message of
/// strerror(3).
pub(crate) fn cause(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => {
            let words = fathom_text::strerror(std::io::Error::from_raw_os_error(code));
            String::from_utf8_lossy(&words).into_owned()
        }
        None => error.to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.op {
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
        write!(f, "cannot {operation} '{}': {}", self.thing, self.cause())
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}

/// Returns the words for `failure`.
pub(crate) fn reason(failure: FileError) -> String {
    match failure {
        FileError::System(Errno::TOOBIG) => {
            "too large: it has more than 100,000 entries, or takes more memory than listings may".to_owned()
        }
        FileError::System(errno) => cause(&errno.into()),
        FileError::Busy => "too much waits for the pool".to_owned(),
        _ => failure.to_string(),
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
