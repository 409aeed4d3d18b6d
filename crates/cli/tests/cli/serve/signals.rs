//! Signals: reload, graceful shutdown, immediate shutdown.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server, bytes, until};

/// More than the socket buffers of server and client hold.
const LONG: usize = 32 << 20;

fn configure(home: &ServeDirectory, value: &str) {
    let text = format!(
        "listen = ['127.0.0.1:0']\n[site]\nroot = 'www'\n[[site.headers]]\npath = '*'\nset = {{ X-Say = '{value}' }}\n"
    );
    fs::write(home.at("serve.toml"), text).unwrap();
}

fn says(home: &ServeDirectory, server: &Server) -> Option<String> {
    get(home, &[&format!("{}/a.txt", server.url)]).header("x-say").map(str::to_owned)
}

/// Requests the long file. Reads the header section and some of the body.
fn begin(server: &Server) -> (TcpStream, Vec<u8>) {
    let mut stream = server.connect();
    stream.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
    let mut body = vec![0; 64 << 10];
    stream.read_exact(&mut body).unwrap();
    (stream, body)
}

#[test]
fn sighup_reloads_the_configuration() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    configure(&home, "one");
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    assert_eq!(says(&home, &server).as_deref(), Some("one"));
    configure(&home, "two");
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    until("all workers have the new one", || {
        (0..8).all(|_| says(&home, &server).as_deref() == Some("two")).then_some(())
    });
}

#[test]
fn an_invalid_configuration_is_reported_and_not_used() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    configure(&home, "one");
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    for (text, message) in [
        (
            "[site]\nroots = 'www'\n",
            "fathom serve: cannot use 'serve.toml': line 2, column 1: in site: unknown key 'roots'",
        ),
        ("[site]\nroot = 'nosuch'\n", "fathom serve: cannot open 'nosuch': No such file or directory\n"),
        (
            "io = 'zfs'\n",
            "fathom serve: cannot use 'serve.toml': line 1, column 6: in io: 'zfs' is not one of ",
        ),
    ] {
        fs::write(home.at("serve.toml"), text).unwrap();
        let answer = server.reload();
        assert!(answer.starts_with(message), "{answer}");
        assert_eq!(says(&home, &server).as_deref(), Some("one"), "{text}");
    }
}

#[test]
fn settings_that_need_a_restart_are_reported() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    configure(&home, "one");
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    fs::write(home.at("serve.toml"), "listen = ['127.0.0.1:1']\nworkers = 7\n[site]\nroot = 'www'\n")
        .unwrap();
    let message = server.reload();
    for key in ["listen", "workers"] {
        assert!(
            message.contains(&format!("warning: '{key}' has changed, which needs a restart\n")),
            "{message}"
        );
    }
    assert_eq!(server.get("/a.txt").0, 200);
}

#[test]
fn a_download_under_way_is_finished_before_the_end() {
    let content = bytes(LONG);
    let home = ServeDirectory::with(&[("long", &content)]);
    let mut server = home.serve("");
    let mut idle = server.connect();
    idle.write_all(b"HEAD /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answered = [0; 17];
    idle.read_exact(&mut answered).unwrap();
    assert_eq!(&answered, b"HTTP/1.1 200 OK\r\n");
    let (mut stream, mut body) = begin(&server);
    server.signal(Signal::TERM);
    until("nobody is let in any more", || TcpStream::connect(server.address()).is_err().then_some(()));
    // The idle connection is closed; the one with a response in progress is not.
    idle.read_to_end(&mut Vec::new()).unwrap();
    assert!(server.runs());
    stream.read_to_end(&mut body).unwrap();
    assert!(body == content, "{} of {LONG} bytes", body.len());
    assert_eq!(server.status(), Some(0));
    assert_eq!(server.err(), "");
}

#[test]
fn responses_beyond_the_grace_time_are_cut_off() {
    let home = ServeDirectory::with(&[("long", &bytes(LONG))]);
    let mut server = home.serve("--drain 200ms");
    let _stream = begin(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(1));
}

#[test]
fn a_second_signal_does_not_wait() {
    let home = ServeDirectory::with(&[("long", &bytes(LONG))]);
    for (second, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut server = home.serve("--drain 1h");
        let _stream = begin(&server);
        server.signal(Signal::TERM);
        until("it heard the first", || TcpStream::connect(server.address()).is_err().then_some(()));
        assert!(server.runs());
        server.signal(second);
        assert_eq!(server.status(), Some(status));
    }
}

#[test]
fn an_interrupt_ends_the_server_at_once() {
    let home = ServeDirectory::with(&[("long", &bytes(LONG))]);
    let mut server = home.serve("");
    let _stream = begin(&server);
    server.signal(Signal::INT);
    assert_eq!(server.status(), Some(130));
}
