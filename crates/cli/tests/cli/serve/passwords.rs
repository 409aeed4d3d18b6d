//! Many clients that send a wrong password and leave: others are served at all times, and the
//! server ends at once.

use std::io::Write;
use std::net::TcpStream;

use rustix::process::Signal;

use crate::serve::server::{ServeDirectory, Server, until};

/// A hash of `secret` with costs that are low, as the program of a test is slow.
const CONFIG: &str = "health = '/health'\nlimits.connections = 500\n[site]\nroot = 'www'\n\
    auth.users.anna = '$argon2id$v=19$m=8192,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$8llCXEeWvOo3SxDXYOTn+/H1NfcAUQKhlSuB2wm8Kmk'\n\
    auth.paths = [{ path = '/open', public = true }]\n";

fn request(path: &str) -> String {
    // The credentials are `anna:wrong`.
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YW5uYTp3cm9uZw==\r\n\r\n")
}

/// Once, a few of them kept the server busy for hours, and it did not end before its deadline.
#[test]
fn wrong_passwords_of_clients_that_have_left_hold_nobody_up() {
    let home = ServeDirectory::with(&[("a.txt", b"private"), ("open/b.txt", b"here")]);
    std::fs::write(home.at("serve.toml"), CONFIG).unwrap();
    let mut server = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --config serve.toml"));
    for round in 0..fathom_cases::count(2000) {
        // As many a round as the server takes in: more would only fill the kernel's queue.
        for _ in 0..5 {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(request("/a.txt").as_bytes()).unwrap();
        }
        assert_eq!(server.get("/health").0, 200, "round {round}");
        assert_eq!(server.get("/open/b.txt"), (200, b"here".to_vec()), "round {round}");
    }
    let refused = "a password from 127.0.0.1 was not checked";
    until("it names the client", || server.err().contains(refused).then_some(()));
    server.signal(Signal::TERM);
    assert_eq!(server.status(), Some(0), "{}", server.err());
}
