//! The subset of HTTP/1.1 that a GET of a file requires.

use std::io::{self, Write};

/// The end of a message head.
const HEAD_END: &[u8] = b"\r\n\r\n";
const STATUS: &str = "HTTP/1.1 200 OK\r\nContent-Length: ";

/// Formats a request for the file `name`.
pub(super) fn request(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Returns whether `bytes` end with a complete request. Clients do not pipeline requests.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    bytes.ends_with(HEAD_END)
}

/// Parses the file name of a request.
pub(super) fn name(request: &[u8]) -> io::Result<&str> {
    let text = str::from_utf8(request).ok();
    let name = text.and_then(|text| Some(text.strip_prefix("GET /")?.split_once(" HTTP/1.1\r\n")?.0));
    name.ok_or_else(|| invalid("this is no request"))
}

/// Writes the head of a response of `len` bytes to the start of `buffer` and returns the head's
/// length.
pub(super) fn head(len: u64, mut buffer: &mut [u8]) -> io::Result<usize> {
    let room = buffer.len();
    write!(buffer, "{STATUS}{len}\r\n\r\n")?;
    Ok(room - buffer.len())
}

/// Parses the head of a response. Returns the start of the body in `bytes` and the body's length;
/// `None` if the head is incomplete.
pub(super) fn body(bytes: &[u8]) -> io::Result<Option<(usize, u64)>> {
    let Some(end) = bytes.windows(HEAD_END.len()).position(|four| four == HEAD_END) else { return Ok(None) };
    let head = str::from_utf8(&bytes[..end]).ok();
    let len = head.and_then(|head| head.strip_prefix(STATUS)?.parse().ok());
    len.map(|len| Some((end + HEAD_END.len(), len))).ok_or_else(|| invalid("this is no answer"))
}

/// Builds an error about received data.
pub(super) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_are_parsed_back() {
        let text = request("0001/file-123");
        assert!(is_complete(text.as_bytes()) && !is_complete(&text.as_bytes()[..text.len() - 1]));
        assert_eq!(name(text.as_bytes()).unwrap(), "0001/file-123");
        let mut buffer = [b'x'; 64];
        let len = head(4096, &mut buffer).unwrap();
        assert_eq!(body(&buffer).unwrap(), Some((len, 4096)));
        assert_eq!(body(&buffer[..len - 1]).unwrap(), None);
    }

    #[test]
    fn malformed_messages_are_refused() {
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
