//! What the ends say to one another: the part of HTTP/1.1 that a GET of a file needs.

use std::io::{self, Write};

/// Ends a head.
const BLANK: &[u8] = b"\r\n\r\n";
const STATUS: &str = "HTTP/1.1 200 OK\r\nContent-Length: ";

/// A request for the file `name`.
pub(super) fn request(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Whether all of a request is in `bytes`: none follows before it is answered.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    bytes.ends_with(BLANK)
}

/// The name in a request.
pub(super) fn name(request: &[u8]) -> io::Result<&str> {
    let text = str::from_utf8(request).ok();
    let name = text.and_then(|text| Some(text.strip_prefix("GET /")?.split_once(" HTTP/1.1\r\n")?.0));
    name.ok_or_else(|| invalid("this is no request"))
}

/// Writes the head of an answer of `len` bytes to the beginning of `buffer`; how long it is.
pub(super) fn head(len: u64, mut buffer: &mut [u8]) -> io::Result<usize> {
    let room = buffer.len();
    write!(buffer, "{STATUS}{len}\r\n\r\n")?;
    Ok(room - buffer.len())
}

/// Where the body of an answer begins in `bytes`, and how long it will be; `None` as long as not all of the head is there.
pub(super) fn body(bytes: &[u8]) -> io::Result<Option<(usize, u64)>> {
    let Some(end) = bytes.windows(BLANK.len()).position(|four| four == BLANK) else { return Ok(None) };
    let head = str::from_utf8(&bytes[..end]).ok();
    let len = head.and_then(|head| head.strip_prefix(STATUS)?.parse().ok());
    len.map(|len| Some((end + BLANK.len(), len))).ok_or_else(|| invalid("this is no answer"))
}

/// An error about what was received.
pub(super) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_says_the_other_understands() {
        let asked = request("0001/file-123");
        assert!(is_whole(asked.as_bytes()) && !is_whole(&asked.as_bytes()[..asked.len() - 1]));
        assert_eq!(name(asked.as_bytes()).unwrap(), "0001/file-123");
        let mut buffer = [b'x'; 64];
        let len = head(4096, &mut buffer).unwrap();
        assert_eq!(body(&buffer).unwrap(), Some((len, 4096)));
        assert_eq!(body(&buffer[..len - 1]).unwrap(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in ["", "POST /x HTTP/1.1\r\n\r\n", "GET /x\r\n\r\n", "GET x HTTP/1.1\r\n\r\n"] {
            assert_eq!(name(bytes.as_bytes()).unwrap_err().to_string(), "this is no request", "{bytes}");
        }
        for bytes in
            ["\r\n\r\n", "HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"]
        {
            assert_eq!(body(bytes.as_bytes()).unwrap_err().to_string(), "this is no answer", "{bytes}");
        }
        assert!(head(1, &mut [0; 10]).is_err(), "no room");
    }
}
