//! What signals do: a new configuration, an end in order, an end at once.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::curl::{get, needs_curl};
use crate::server::{Home, Server, bytes, until};

/// More than the sockets between server and client hold.
const LONG: usize = 32 << 20;

fn configure(home: &Home, value: &str) {
    let text = format!(
        "listen = ['127.0.0.1:0']\n[site]\nroot = 'www'\n[[site.headers]]\npath = '*'\nset = {{ X-Say = '{value}' }}\n"
    );
    fs::write(home.at("serve.toml"), text).unwrap();
}

fn says(home: &Home, server: &Server) -> Option<String> {
    get(home, &[&format!("{}/a.txt", server.url)]).header("x-say").map(str::to_owned)
}

/// Asks for the long file and reads its head and some of its body.
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
fn hangup_has_a_new_configuration_used() {
    if !needs_curl("") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here")]);
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
fn a_broken_configuration_changes_nothing_and_is_said() {
    if !needs_curl("") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here")]);
    configure(&home, "one");
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    for (text, said) in [
        (
            "[site]\nroots = 'www'\n",
            "fathom serve: not reloaded: cannot read 'serve.toml': line 2, column 1: in site: unknown key 'roots'",
        ),
        (
            "[site]\nroot = 'nosuch'\n",
            "fathom serve: not reloaded: cannot open 'nosuch': No such file or directory\n",
        ),
        ("io = 'zfs'\n", "fathom serve: not reloaded: "),
    ] {
        fs::write(home.at("serve.toml"), text).unwrap();
        let heard = server.reload();
        assert!(heard.starts_with(said), "{heard}");
        assert_eq!(says(&home, &server).as_deref(), Some("one"), "{text}");
    }
}

#[test]
fn what_takes_a_new_start_is_said() {
    let home = Home::with(&[("a.txt", b"here")]);
    configure(&home, "one");
    let server = Server::start(&home, &mut home.command("-c serve.toml"));
    fs::write(home.at("serve.toml"), "listen = ['127.0.0.1:1']\nworkers = 7\n[site]\nroot = 'www'\n")
        .unwrap();
    let said = server.reload();
    for key in ["listen", "workers"] {
        assert!(said.contains(&format!("warning: '{key}' has changed, which takes a new start\n")), "{said}");
    }
    assert_eq!(server.get("/a.txt").0, 200);
}

#[test]
fn a_download_under_way_is_finished_before_the_end() {
    let content = bytes(LONG);
    let home = Home::with(&[("long", &content)]);
    let mut server = home.serve("");
    let mut idle = server.connect();
    idle.write_all(b"HEAD /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut stream, mut body) = begin(&server);
    server.signal(Signal::TERM);
    until("nobody is let in any more", || TcpStream::connect(server.address()).is_err().then_some(()));
    // A connection that only waits is ended, the other one is not.
    let mut answered = Vec::new();
    idle.read_to_end(&mut answered).unwrap();
    assert!(answered.starts_with(b"HTTP/1.1 200 OK\r\n") && server.runs());
    stream.read_to_end(&mut body).unwrap();
    assert!(body == content, "{} of {LONG} bytes", body.len());
    assert_eq!(server.status(), Some(0));
    assert_eq!(server.err(), "");
}

#[test]
fn what_takes_too_long_is_cut_off() {
    let home = Home::with(&[("long", &bytes(LONG))]);
    let mut server = home.serve("--drain 200ms");
    let _stream = begin(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(1));
}

#[test]
fn a_second_signal_does_not_wait() {
    let home = Home::with(&[("long", &bytes(LONG))]);
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
fn an_interrupt_ends_it_at_once() {
    let home = Home::with(&[("long", &bytes(LONG))]);
    let mut server = home.serve("");
    let _stream = begin(&server);
    server.signal(Signal::INT);
    assert_eq!(server.status(), Some(130));
}
