//! The part of HTTP/1.1 that a GET of a file requires of its client.

use std::io;

/// The end of a message head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Formats a request for the file `name`.
pub(super) fn request(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Parses the head of a response. Returns the start of the body in `bytes` and the body's length;
/// `None` if the head is incomplete.
///
/// # Errors
/// If the status is not 200, or the length of the body is missing or not a number.
pub(super) fn body(bytes: &[u8]) -> io::Result<Option<(usize, u64)>> {
    let Some(end) = bytes.windows(HEAD_END.len()).position(|four| four == HEAD_END) else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200 ") {
        return Err(invalid(format!("the response is '{}'", status.escape_debug())));
    }
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let len = lengths.next().and_then(|(_, len)| len.trim().parse().ok());
    len.map(|len| Some((end + HEAD_END.len(), len)))
        .ok_or_else(|| invalid("the response has no Content-Length"))
}

/// Builds an error about received data.
pub(super) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_begins_after_the_head() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nContent-length: 4096\r\n\r\n";
        assert_eq!(body(&[head, &b"body"[..]].concat()).unwrap(), Some((head.len(), 4096)));
        assert_eq!(body(&head[..head.len() - 1]).unwrap(), None);
    }

    #[test]
    fn other_responses_are_refused() {
        for (bytes, said) in [
            ("\r\n\r\n", "the response is ''"),
            (
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
                "the response is 'HTTP/1.1 404 Not Found'",
            ),
            ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "the response has no Content-Length"),
            ("HTTP/1.1 200 OK\r\nx: 1\r\n\r\n", "the response has no Content-Length"),
        ] {
            assert_eq!(body(bytes.as_bytes()).unwrap_err().to_string(), said);
        }
    }
}
