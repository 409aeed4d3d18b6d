//! The access log: its destinations, its formats, and rotation while the server runs.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server, until};

/// Waits until `text` has at least `count` lines. Returns the lines.
fn lines(what: &str, count: usize, text: impl Fn() -> String) -> Vec<String> {
    until(what, || {
        let text = text();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (text.ends_with('\n') && lines.len() >= count).then_some(lines)
    })
}

fn ask(home: &ServeDirectory, server: &Server, path: &str) {
    let url = format!("{}{path}", server.url);
    assert_eq!(get(home, &["-A", "agent \"x\"", "-e", "http://b.example/", &url]).end, Some(0));
}

#[test]
fn lines_are_in_the_combined_format() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    // Each worker flushes its lines independently: only a single worker keeps their order.
    let server = home.serve("--access-log=log --workers 1");
    ask(&home, &server, "/a.txt?b=c");
    ask(&home, &server, "/%0a%1b[31m%22");
    let read = lines("two lines are written", 2, || fs::read_to_string(home.at("log")).unwrap());
    assert!(read[0].starts_with("127.0.0.1 - - ["), "{read:?}");
    assert!(
        read[0].contains("] \"GET /a.txt?b=c HTTP/1.1\" 200 4 \"http://b.example/\" \"agent "),
        "{read:?}"
    );
    assert!(read[1].contains("\"GET /%0a%1b[31m%22 HTTP/1.1\" 404 "), "{read:?}");
    assert_eq!(read.len(), 2);
}

#[test]
fn json_lines_have_the_same_values() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("--access-log=log --log-format=json");
    ask(&home, &server, "/a.txt");
    let read = lines("a line is written", 1, || fs::read_to_string(home.at("log")).unwrap());
    let line: Value = serde_json::from_str(&read[0]).unwrap();
    assert_eq!((line["status"].as_u64(), line["bytes"].as_u64()), (Some(200), Some(4)), "{line}");
    assert_eq!(line["method"].as_str(), Some("GET"), "{line}");
    assert!(line.to_string().contains("agent \\\"x\\\""), "{line}");
}

#[test]
fn the_log_on_standard_output_is_not_mixed_with_messages() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("index.html", b"index")]);
    let server = home.serve("--access-log -");
    assert_eq!(server.err(), format!("Serving '{}' on {}/\n", home.shown("www"), server.url));
    ask(&home, &server, "/a.txt");
    let read = lines("a line is written", 1, || server.out());
    assert!(read.len() == 1 && read[0].contains("\"GET /a.txt HTTP/1.1\" 200 4 "), "{read:?}");
}

#[test]
fn a_renamed_log_gets_no_more_lines_after_a_signal() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("--access-log=log");
    ask(&home, &server, "/a.txt?before");
    let log = || fs::read_to_string(home.at("log")).unwrap_or_default();
    lines("the first line is written", 1, log);
    fs::rename(home.at("log"), home.at("log.1")).unwrap();
    ask(&home, &server, "/a.txt?between");
    lines("the second line is written", 2, || fs::read_to_string(home.at("log.1")).unwrap());
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    until("there is a new file", || home.at("log").exists().then_some(()));
    ask(&home, &server, "/a.txt?after");
    let read = lines("the third line is written", 1, log);
    assert!(read.len() == 1 && read[0].contains("/a.txt?after "), "{read:?}");
    assert_eq!(fs::read_to_string(home.at("log.1")).unwrap().lines().count(), 2);
}

#[test]
fn the_last_lines_are_written_before_the_end() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let mut server = home.serve("--access-log=log");
    for number in 0..20 {
        ask(&home, &server, &format!("/a.txt?{number}"));
    }
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.status(), Some(0));
    assert_eq!(fs::read_to_string(home.at("log")).unwrap().lines().count(), 20);
}

#[test]
fn a_signal_reopens_both_logs() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("--access-log log --error-log errors");
    for name in ["log", "errors"] {
        fs::rename(home.at(name), home.at(&format!("{name}.1"))).unwrap();
    }
    server.signal(Signal::USR1);
    until("there are new files", || {
        ["log", "errors"].iter().all(|name| home.at(name).exists()).then_some(())
    });
    assert_eq!(server.get("/a.txt").0, 200);
    lines("a line is written", 1, || fs::read_to_string(home.at("log")).unwrap());
    assert_eq!(server.err(), "");
}

#[test]
fn a_full_disk_is_reported_on_standard_error() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let mut server = home.serve("--access-log /dev/full");
    assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
    let stderr = "fathom serve: cannot write access log '/dev/full': No space left on device\n";
    until("it says that lines are lost", || (server.err() == stderr).then_some(()));
    assert_eq!(server.get("/a.txt").0, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(0));
}
