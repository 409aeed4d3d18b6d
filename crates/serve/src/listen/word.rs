//! What `--listen` may be given.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::invalid;
use crate::error::Error;

/// A word of `--listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// `127.0.0.1:8080`, `[::]:80`. Port 0 has the kernel choose, here and below.
    Tcp(SocketAddr),
    /// `localhost:8080`: this machine's own addresses, of both families, without asking a resolver (RFC 6761 section 6.3).
    Localhost(u16),
    /// `:8080`: all addresses of this machine.
    All(u16),
    /// `unix:/run/fathom.sock`.
    Unix(PathBuf),
    /// `unix:@fathom`: a name without a file (unix(7)).
    Abstract(String),
    /// `systemd`: what this process was started with (sd_listen_fds(3)).
    Systemd,
}

impl FromStr for Word {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return match (path, path.strip_prefix('@')) {
                ("" | "@", _) => Err(invalid(text, "a path or '@NAME' has to follow 'unix:'")),
                (_, Some(name)) => Ok(Self::Abstract(name.to_owned())),
                (path, None) => Ok(Self::Unix(path.into())),
            };
        }
        tcp(text).ok_or_else(|| invalid(text, FORMS))
    }
}

/// No other names: a resolver's answer would be this moment's, and a static program has no resolver to rely on.
const FORMS: &str = "it has to be 'ADDRESS:PORT' with a number for address, 'localhost:PORT', ':PORT', 'unix:PATH' or 'systemd'";

fn tcp(text: &str) -> Option<Word> {
    let (host, port) = text.rsplit_once(':')?;
    // `parse` would take a sign.
    let port = || port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?;
    match host {
        "" => port().map(Word::All),
        "localhost" => port().map(Word::Localhost),
        _ => text.parse().ok().map(Word::Tcp),
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Localhost(port) => write!(f, "localhost:{port}"),
            Self::All(port) => write!(f, ":{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{name}"),
            Self::Systemd => f.write_str("systemd"),
        }
    }
}

/// Where clients find a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// With the port that it really is.
    Tcp(SocketAddr),
    /// A socket's file.
    Unix(PathBuf),
    /// A socket without a file.
    Abstract(String),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{name}"),
        }
    }
}
