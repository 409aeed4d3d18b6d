//! The messages of the server to its service manager (sd_notify(3)).

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use crate::serve::server::{ServeDirectory, Server};

/// A hang guard.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn the_service_manager_learns_of_the_start_of_reloads_and_of_the_end() {
    let home = ServeDirectory::with(&[("index.html", b"here")]);
    fs::write(home.at("serve.toml"), "listen = ['127.0.0.1:0']\nsite.root = 'www'\n").unwrap();
    // The path of a socket is at most 108 bytes long (unix(7)).
    let directory = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(directory.path().join("s")).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let told = || {
        let mut message = [0; 4096];
        let bytes = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..bytes].to_vec()).unwrap()
    };
    let mut command = home.command("--config serve.toml");
    let mut server = Server::start(&home, command.env("NOTIFY_SOCKET", directory.path().join("s")));
    let serving = format!("READY=1\nSTATUS=Serving on {}/", server.url);
    assert_eq!(told().trim_end(), serving);
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    let reloading = told();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(told().trim_end(), format!("{serving}; reloaded"));
    fs::write(home.at("serve.toml"), "[site]\nroot = 'nosuch'\n").unwrap();
    server.reload();
    assert!(told().starts_with("RELOADING=1\n"));
    let refused = format!(
        "{serving}; reload failed, keeping the old configuration: cannot open 'nosuch': No such file or directory"
    );
    assert_eq!(told().trim_end(), refused);
    server.signal(Signal::TERM);
    assert_eq!(told().trim_end(), "STOPPING=1\nSTATUS=Shutting down: finishing requests");
    assert_eq!(server.status(), Some(0));
}
