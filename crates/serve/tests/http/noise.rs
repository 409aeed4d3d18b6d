//! Random requests: each gets a well-formed response or the end of its connection, and the server
//! keeps running.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::{Response, TestServer, Tree, prose};

/// The timeouts of the server, longer than any response takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);

fn served() -> (Tree, TestServer) {
    let tree = Tree::new(&[("a.html", &prose(5000)), ("a.html.gz", b"x"), ("d/x", b"x"), ("empty", b"")]);
    let site = "listing = true\nprecompressed = true\ncompress = { codings = ['br', 'gzip'] }\nfallback = '/a.html'\n\
                rewrites = [{ from = '/w/**', to = '/$1' }]\nredirects = [{ from = '/r/**', to = '/$1' }]\ncors = { origins = ['*'] }";
    let ms = LIMIT.as_millis();
    let limits = ["header", "idle", "write"].map(|name| format!("{name}-timeout-ms = {ms}")).join(", ");
    let served =
        TestServer::new(&tree, &format!("health = '/h'\nmetrics = '/m'\nlimits = {{ {limits} }}\n"), site);
    (tree, served)
}

/// Checks that the reply to `bytes` consists of complete responses.
fn sound(served: &TestServer, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut client = served.connect();
    let start = Instant::now();
    let _sent = client.try_send(bytes);
    client.end_quietly();
    let answer = client.rest();
    // Responses to HEAD have no body: another response or the end follows the header.
    if !bytes.windows(4).any(|word| word == b"HEAD") {
        for response in Response::all(&answer) {
            prop_assert!((200..600).contains(&response.status) && response.status != 500, "{:?}", response);
        }
    }
    prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
    prop_assert!(start.elapsed() < LIMIT / 2, "it was held until a timeout");
    Ok(())
}

fn run<S: Strategy>(
    cases: u32,
    strategy: S,
    test: impl Fn(&TestServer, S::Value) -> Result<(), TestCaseError>,
) {
    let (_tree, served) = served();
    TestRunner::new(fathom_cases::property(cases)).run(&strategy, |value| test(&served, value)).unwrap();
    assert_eq!(served.get("/h").status, 200);
    let metrics = served.get("/m");
    assert!(!metrics.text().contains("status=\"500\""), "{}", metrics.text());
}

#[test]
fn any_bytes_are_survived() {
    run(600, prop::collection::vec(any::<u8>(), 0..400), |served, bytes| sound(served, &bytes));
}

fn target() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "//",
        "a.html",
        "d",
        "x",
        "..",
        ".",
        "%2e",
        "%2f",
        "%00",
        "%",
        "%ff",
        "?",
        "#",
        "*",
        "w",
        "r",
        "é",
        ":",
        "@",
        "\\",
        "http://h",
        "empty",
        "sort=size",
        "&",
        ";",
        "~",
        "%c3%a9",
        "h",
        "m",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn field() -> impl Strategy<Value = (String, String)> {
    let names = prop::sample::select(vec![
        "Range",
        "If-Range",
        "If-None-Match",
        "If-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "Accept",
        "Accept-Encoding",
        "Host",
        "Connection",
        "Authorization",
        "Origin",
        "Access-Control-Request-Method",
        "Content-Length",
        "Transfer-Encoding",
        "Expect",
        "Upgrade",
        "X-A",
    ]);
    let piece = prop::sample::select(vec![
        "bytes=",
        "0",
        "-",
        ",",
        "1",
        "99999999999999999999",
        "\"a\"",
        "W/",
        "*",
        ";q=",
        "0.5",
        "gzip",
        "br",
        "identity",
        "text/html",
        "application/json",
        "Basic ",
        "YTpi",
        "close",
        "keep-alive",
        "chunked",
        "100-continue",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        " ",
        "=",
        "GET",
        "a.example",
        ":80",
        "h2c",
        "\u{e9}",
        "\t",
    ]);
    (names, prop::collection::vec(piece, 0..7)).prop_map(|(name, pieces)| (name.to_owned(), pieces.concat()))
}

#[test]
fn any_requests_are_answered() {
    let method = prop::sample::select(vec!["GET", "GET", "GET", "OPTIONS", "POST", "TRACE", "CONNECT", "X"]);
    let version = prop::sample::select(vec!["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", ""]);
    let request = (method, target(), version, prop::collection::vec(field(), 0..5), ".{0,20}");
    let text = request.prop_map(|(method, target, version, fields, body)| {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {target} {version}\r\nHost: a\r\n{fields}\r\n{body}")
    });
    run(1500, prop::collection::vec(text, 1..4), |served, requests| {
        sound(served, requests.concat().as_bytes())
    });
}
