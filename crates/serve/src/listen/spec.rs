//! The values of `--listen`, and the addresses of open sockets.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::invalid;
use crate::error::Error;

/// A value of `--listen`.
///
/// ```
/// use fathom_serve::listen::ListenSpec;
///
/// assert_eq!(":8080".parse::<ListenSpec>().unwrap(), ListenSpec::All(8080));
/// let name = "unix:@name".parse::<ListenSpec>().unwrap();
/// assert_eq!(name, ListenSpec::Abstract("name".to_owned()));
/// assert!("example.org:80".parse::<ListenSpec>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenSpec {
    /// `127.0.0.1:8080`, `[::]:80`. Port 0 lets the kernel choose, here and below.
    Tcp(SocketAddr),
    /// `localhost:8080`: the loopback addresses of both families, without a resolver (RFC 6761,
    /// section 6.3).
    Localhost(u16),
    /// `:8080`: all addresses of this machine.
    All(u16),
    /// `unix:/run/fathom.sock`.
    Unix(PathBuf),
    /// `unix:@fathom`: a name without a file (unix(7)).
    Abstract(String),
    /// `systemd`: the sockets that this process was started with (sd_listen_fds(3)).
    Systemd,
}

impl FromStr for ListenSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return match (path, path.strip_prefix('@')) {
                ("" | "@", _) => Err(invalid(text, "expected a path or '@NAME' after 'unix:'")),
                (_, Some(name)) => Ok(Self::Abstract(name.to_owned())),
                (path, None) => Ok(Self::Unix(path.into())),
            };
        }
        tcp(text).ok_or_else(|| invalid(text, FORMS))
    }
}

/// The accepted forms. Host names are not among them: a resolver's answer may change, and a static
/// program has no resolver to rely on.
const FORMS: &str =
    "expected 'ADDRESS:PORT' with a numeric address, 'localhost:PORT', ':PORT', 'unix:PATH' or 'systemd'";

fn tcp(text: &str) -> Option<ListenSpec> {
    let (host, port) = text.rsplit_once(':')?;
    // `parse` would accept a sign.
    let port = || port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?;
    match host {
        "" => port().map(ListenSpec::All),
        "localhost" => port().map(ListenSpec::Localhost),
        _ => text.parse().ok().map(ListenSpec::Tcp),
    }
}

impl std::fmt::Display for ListenSpec {
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

/// The address of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// A TCP address with its actual port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// The name of an abstract Unix socket.
    Abstract(String),
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{name}"),
        }
    }
}
