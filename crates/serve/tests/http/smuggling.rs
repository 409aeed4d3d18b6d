//! Request smuggling: requests that two servers could parse differently are refused, or answered so
//! that no byte after them is taken for another request.

use crate::support::{Response, TestServer, Tree};

/// A request that must never be parsed as a request of its own.
const SECOND: &str = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n";

fn served() -> (Tree, TestServer) {
    let tree = Tree::new(&[("first", b"first"), ("second", b"second")]);
    let served = TestServer::site(&tree, "");
    (tree, served)
}

/// Returns the statuses of the responses to `bytes`, and checks that none has the second file.
#[track_caller]
fn statuses(served: &TestServer, bytes: &str) -> Vec<u16> {
    let mut client = served.connect();
    let _sent = client.try_send(bytes.as_bytes());
    client.end_quietly();
    let responses = Response::all(&client.rest());
    assert!(responses.iter().all(|response| response.body != b"second"), "{bytes:?}");
    served.get("/first").is(200, b"first");
    responses.iter().map(|response| response.status).collect()
}

fn get(fields: &str, rest: &str) -> String {
    format!("GET /first HTTP/1.1\r\nHost: a\r\n{fields}\r\n{rest}")
}

#[test]
fn a_request_with_two_lengths_is_refused() {
    let (_tree, served) = served();
    let length = SECOND.len();
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 0\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5,5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 5 \u{b}\r\n",
        "Content-Length: \r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: 99999999999999999999\r\n",
    ] {
        let seen = statuses(&served, &get(fields, &format!("{SECOND}{SECOND}")));
        assert!(seen.iter().all(|status| *status == 400) && seen.len() <= 1, "{fields:?}: {seen:?}");
    }
    // A repeated equal length is valid (RFC 9110, section 8.6).
    let same = format!("Content-Length: {length}\r\nContent-Length: {length}\r\n");
    assert!(statuses(&served, &get(&same, SECOND)).len() <= 1);
}

#[test]
fn a_transfer_coding_goes_before_a_length_and_ends_the_connection() {
    let (_tree, served) = served();
    for (fields, rest) in [
        ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "0;a=b;c=\"\r\n\"\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "0\r\nX-Trailer: a\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 9\r\n\r\n"),
        ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"),
    ] {
        let seen = statuses(&served, &get(fields, &format!("{rest}{SECOND}")));
        assert!(matches!(seen[..], [] | [200 | 400]), "{fields:?}: {seen:?}");
    }
}

#[test]
fn an_unknown_transfer_coding_is_refused() {
    let (_tree, served) = served();
    for fields in [
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked;x\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\u{b}: chunked\r\n",
        "Transfer_Encoding: chunked\r\nContent-Length: 5, 5\r\n",
    ] {
        let seen = statuses(&served, &get(fields, &format!("0\r\n\r\n{SECOND}")));
        assert!(matches!(seen[..], [] | [400]), "{fields:?}: {seen:?}");
    }
    let old = format!("GET /first HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}");
    assert!(matches!(statuses(&served, &old)[..], [] | [400]));
}

#[test]
fn malformed_chunks_hide_no_request() {
    let (_tree, served) = served();
    for rest in [
        "x\r\n",
        "-1\r\n",
        "+0\r\n\r\n",
        "0x0\r\n\r\n",
        "00000000000000000000000000000000\r\n\r\n",
        "ffffffffffffffffff\r\n",
        "0\n\n",
        "0\r\r\n",
        " 0\r\n\r\n",
        "0 \r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "0;\u{0}\r\n\r\n",
        "0;a\nb\r\n\r\n",
        "\r\n0\r\n\r\n",
        ";\r\n\r\n",
        "",
    ] {
        let seen = statuses(&served, &get("Transfer-Encoding: chunked\r\n", &format!("{rest}{SECOND}")));
        assert!(matches!(seen[..], [] | [200 | 400]), "{rest:?}: {seen:?}");
    }
}

#[test]
fn malformed_lines_are_refused() {
    let (_tree, served) = served();
    for fields in [
        "X-A : b\r\n",
        " X-A: b\r\n",
        "X-A: b\r\n folded\r\n",
        "X-A: b\r\n\tfolded: c\r\n",
        "X-A\r\n",
        ": b\r\n",
        "X A: b\r\n",
        "X-A: b\0c\r\n",
        "X\0A: b\r\n",
        "X-A: b\rX-B: c\r\n",
        "X-A: b\r\r\n",
        "X(A): b\r\n",
        "X-A: b\u{7f}\r\n",
        "Host: b\r\n",
    ] {
        let seen = statuses(&served, &get(fields, SECOND.replace("/second", "/none").as_str()));
        // A request with two hosts is refused, but its end is unambiguous.
        let expected = if fields.starts_with("Host") { &[400, 404][..] } else { &[400] };
        assert_eq!(seen, expected, "{fields:?}");
    }
}

/// A bare LF may end a line (RFC 9112, section 2.2). The request stays one request for a server
/// that does not accept it.
#[test]
fn a_bare_newline_makes_no_second_request() {
    let (_tree, served) = served();
    for text in [
        "GET /first HTTP/1.1\nHost: a\n\n".to_owned(),
        "GET /first HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n".to_owned(),
        "\r\nGET /first HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /first HTTP/1.1\rHost: a\r\r".to_owned(),
        "GET /first HTTP/1.1\r\nHost: a\r\nX-A: b\n\r\n".to_owned(),
    ] {
        let seen = statuses(&served, &text);
        assert!(matches!(seen[..], [] | [200] | [400]), "{text:?}: {seen:?}");
    }
}

#[test]
fn malformed_targets_are_refused() {
    let (_tree, served) = served();
    for target in [
        "first",
        "*",
        "",
        "http:/first",
        "http://",
        "ftp://a/first",
        "//",
        "/first#x",
        "/fi\0rst",
        "/fi rst",
        "/\u{7f}",
        "http://a@b/first",
        "http://a b/first",
    ] {
        let seen = statuses(&served, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(matches!(seen[..], [] | [400] | [404] | [200]), "{target:?}: {seen:?}");
        assert!(seen != [200] || matches!(target, "/first#x" | "http://a@b/first"), "{target:?}: {seen:?}");
    }
}
