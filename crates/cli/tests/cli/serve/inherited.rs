//! Inherited sockets (systemd) and Unix sockets.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Command;

use rustix::process::Signal;

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server};
use crate::support::needs_tool;

/// Imitates systemd: listens, passes the socket as descriptor 3, sets `LISTEN_PID`, and executes
/// the program.
const LAUNCHER: &str = "
import os, socket, sys
listener = socket.create_server(('127.0.0.1', 0))
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
";

fn launcher(home: &ServeDirectory) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-c", LAUNCHER, env!("CARGO_BIN_EXE_fathom"), "serve", "-l", "systemd", "www"])
        .current_dir(home.at(""));
    command
}

#[test]
fn an_inherited_socket_is_served() {
    if !needs_tool("python3") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let mut server = Server::start(&home, &mut launcher(&home));
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    for _ in 0..8 {
        assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
    }
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(0));
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("index.html", b"index")]);
    // The path of a socket is at most 108 bytes long (unix(7)), so use a path relative to the
    // server's directory.
    let start = || Server::start(&home, &mut home.command("-l unix:sock www"));
    let ask = || get(&home, &["--unix-socket", "sock", "http://any.example/a.txt"]);
    let mut server = start();
    assert_eq!(server.out(), format!("Serving '{}' on unix:sock\n", home.shown("www")));
    let meta = fs::symlink_metadata(home.at("sock")).unwrap();
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o660);
    for _ in 0..8 {
        let reply = ask();
        assert_eq!((reply.status, reply.body), (200, b"here".to_vec()), "{}", reply.err);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(0));
    assert!(!home.at("sock").exists(), "it is taken away at the end");

    // A killed server leaves its socket behind. The next server replaces it.
    drop(start());
    assert!(home.at("sock").exists());
    let server = start();
    assert_eq!(ask().status, 200);
    let (status, _, err) = home.run("-l unix:sock www");
    assert!(status == Some(1) && err.contains("unix:sock"), "{err}");
    assert_eq!(ask().status, 200, "the second did not take it from the first: {}", server.err());
}
