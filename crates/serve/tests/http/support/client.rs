//! A client that sends arbitrary bytes and checks each response: a malformed response fails the
//! test.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType, socket, sockopt};

use super::LONG;

/// A TCP or Unix stream.
pub(crate) trait Stream: Read + Write + Send {
    /// Shuts down the sending direction.
    fn end(&self) -> io::Result<()>;
    /// Sets whether reads wait for bytes.
    fn set_waiting(&self, waits: bool) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_waiting(&self, waits: bool) -> io::Result<()> {
        self.set_nonblocking(!waits)
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn set_waiting(&self, waits: bool) -> io::Result<()> {
        self.set_nonblocking(!waits)
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

/// A connection, and received bytes that are not parsed yet.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        Self::try_connect(address).unwrap()
    }

    pub(crate) fn try_connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: Box::new(stream), buffer: Vec::new() })
    }

    /// Connects for responses that take long on a loaded machine, because threads of a low priority
    /// make them.
    pub(crate) fn connect_patient(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(10 * LONG)).unwrap();
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    /// Connects with a small receive buffer: the server has to wait for the client to read.
    pub(crate) fn connect_narrow(address: &str) -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, 8 << 10).unwrap();
        rustix::net::connect(&socket, &address.parse::<SocketAddr>().unwrap()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    pub(crate) fn connect_unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes.as_ref()).unwrap();
    }

    /// Shuts down the sending direction.
    pub(crate) fn end(&self) {
        self.stream.end().unwrap();
    }

    /// Shuts down the sending direction of a connection that the server may have closed.
    pub(crate) fn end_quietly(&self) {
        let _ended = self.stream.end();
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        self.send(request(method, target, fields));
        self.receive(method)
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.ask("GET", target, &[])
    }

    /// Returns whether the server has closed the connection. Does not wait; keeps what has arrived.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 4096];
        self.stream.set_waiting(false).unwrap();
        let is_closed = loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(len) => self.buffer.extend_from_slice(&bytes[..len]),
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
        };
        self.stream.set_waiting(true).unwrap();
        is_closed
    }

    /// Reads the response to a request with `method`.
    pub(crate) fn receive(&mut self, method: &str) -> Response {
        let mut response = self.head();
        if let Some(len) = response.body_len(method) {
            while self.buffer.len() < len {
                let more = self.more().unwrap();
                assert!(more > 0, "the body ends after {} of {len} bytes: {response:?}", self.buffer.len());
            }
            response.body = self.buffer.drain(..len).collect();
        } else {
            response.body = self.rest();
        }
        response
    }

    /// Reads the response to a GET request. Returns the received part of the body if the connection
    /// ends early.
    pub(crate) fn try_receive(&mut self) -> Result<Response, Vec<u8>> {
        let Some(mut response) = self.try_head() else { return Err(Vec::new()) };
        let len = response.body_len("GET").unwrap();
        while self.buffer.len() < len {
            if self.more().unwrap() == 0 {
                return Err(std::mem::take(&mut self.buffer));
            }
        }
        response.body = self.buffer.drain(..len).collect();
        Ok(response)
    }

    /// Reads status and fields. The body stays in the connection.
    pub(crate) fn head(&mut self) -> Response {
        self.try_head().unwrap()
    }

    /// Reads status and fields; `None` if the connection ends without a response.
    fn try_head(&mut self) -> Option<Response> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if self.more().unwrap() == 0 {
                assert!(self.buffer.is_empty(), "no head: {:?}", String::from_utf8_lossy(&self.buffer));
                return None;
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        Some(Response::parse(&head))
    }

    /// Reads once. Returns 0 at the end, or if the connection was reset.
    pub(crate) fn more(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 << 10];
        let read = loop {
            match self.stream.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.buffer.extend_from_slice(&bytes[..read]);
        Ok(read)
    }

    /// Returns the number of received bytes that are not parsed yet.
    pub(crate) fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// Removes and returns the first `len` received bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        self.buffer.drain(..len).collect()
    }

    /// Reads to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more().unwrap() > 0 {}
        std::mem::take(&mut self.buffer)
    }
}

/// Formats an HTTP/1.1 request with a `Host`, unless `fields` have one.
pub(crate) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text.push_str("Host: site.example\r\n");
    }
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// A response as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) version: String,
    pub(crate) status: u16,
    /// The fields in order, with names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    fn parse(head: &[u8]) -> Self {
        let text = std::str::from_utf8(head).unwrap();
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap();
        let (version, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        assert!(matches!(version, "HTTP/1.1" | "HTTP/1.0"), "{line:?}");
        let fields = lines.map(|line| {
            let (name, value) =
                line.split_once(": ").or(line.split_once(':')).unwrap_or_else(|| panic!("{line:?}"));
            assert!(!name.is_empty() && !value.contains(['\r', '\n', '\0']), "{line:?}");
            (name.to_ascii_lowercase(), value.to_owned())
        });
        let status =
            rest.get(..3).and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
        Self { version: version.to_owned(), status, fields: fields.collect(), body: Vec::new() }
    }

    /// Parses all responses to GET requests in `bytes`, which end with the last of them.
    pub(crate) fn all(mut bytes: &[u8]) -> Vec<Self> {
        let mut responses = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
            let end = end.unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(bytes)));
            let mut response = Self::parse(&bytes[..end]);
            let len = response.body_len("GET").unwrap();
            response.body = bytes[end..end + len].to_vec();
            bytes = &bytes[end + len..];
            responses.push(response);
        }
        responses
    }

    /// Returns the length of the body; `None` if it extends to the end of the connection (RFC 9112,
    /// section 6.3).
    fn body_len(&self, method: &str) -> Option<usize> {
        assert_eq!(self.field("transfer-encoding"), None, "all lengths are known");
        if method == "HEAD" || matches!(self.status, 100..200 | 204 | 304) {
            return Some(0);
        }
        self.field("content-length").map(|len| len.parse().unwrap())
    }

    /// Returns the value of a field that occurs at most once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values =
            self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice: {self:?}");
        value
    }

    /// Returns the sorted elements of a list field that may occur several times.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let values = self.fields.iter().filter(|(known, _)| known == name);
        let mut list: Vec<_> =
            values.flat_map(|(_, value)| value.split(',')).map(|word| word.trim().to_lowercase()).collect();
        list.sort();
        list
    }

    pub(crate) fn etag(&self) -> &str {
        self.field("etag").unwrap_or_else(|| panic!("no ETag: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Returns the response without its `Date`.
    pub(crate) fn without_date(&self) -> Self {
        let mut response = self.clone();
        response.fields.retain(|(name, _)| name != "date");
        response
    }

    /// Checks the status, the announced length and the body.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, body: &[u8]) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.field("content-length"), Some(body.len().to_string().as_str()));
        assert!(self.body == body, "{} bytes, wanted {}: {:?}", self.body.len(), body.len(), self.fields);
    }
}
