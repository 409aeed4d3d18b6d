//! Encryption: curl, openssl and h2load at the other end.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::curl::{get, needs_curl};
use crate::server::{Home, Server, bytes, finish, until};
use crate::support::needs_tool;

/// Makes a certificate for 127.0.0.1 with this serial number, and its key.
fn certify(home: &Home, serial: u32) {
    let mut command = Command::new("openssl");
    command.args(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test".split(' '),
    );
    command.args(["-addext", "subjectAltName=IP:127.0.0.1", "-set_serial", &serial.to_string()]);
    let (status, _, err) =
        finish(command.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(home.at("")));
    assert_eq!(status, Some(0), "{err}");
}

fn encrypted(home: &Home, words: &str) -> Server {
    certify(home, 4711);
    home.serve(&format!("--tls-cert cert.pem --tls-key key.pem {words}"))
}

/// What openssl says of a connection that it makes with `words`, and whether there was one.
fn shake(server: &Server, words: &str) -> (bool, String) {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", server.address()]).args(words.split_whitespace());
    let (status, out, err) = finish(&mut command);
    (status == Some(0), out + &err)
}

/// The serial number of the certificate that is shown.
fn serial(server: &Server) -> String {
    let (_, out) = shake(server, "");
    let start = out.find("-----BEGIN CERTIFICATE-----").unwrap_or_else(|| panic!("no certificate: {out}"));
    let mut command = Command::new("openssl");
    command.args(["x509", "-noout", "-serial"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&out.as_bytes()[start..]).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn both_protocols_are_spoken_over_tls() {
    if !needs_tool("openssl") || !needs_curl("HTTP2") {
        return;
    }
    let content = bytes(3_000_000);
    let home = Home::with(&[("a.bin", &content)]);
    let server = encrypted(&home, "");
    let url = format!("{}/a.bin", server.url);
    assert!(url.starts_with("https://"), "{url}");
    for (word, version) in [("--http1.1", "1.1"), ("--http2", "2"), ("--http1.0", "1")] {
        let reply = get(&home, &["--cacert", "cert.pem", word, &url]);
        assert_eq!(
            (reply.end, reply.status, reply.version.as_str()),
            (Some(0), 200, version),
            "{word}: {}",
            reply.err
        );
        assert!(reply.body == content, "{word}");
        let part = get(&home, &["--cacert", "cert.pem", word, "-r", "1000000-1999999", &url]);
        assert!(part.status == 206 && part.body == content[1_000_000..2_000_000], "{word}");
    }
    assert_eq!(get(&home, &[&url]).end, Some(60), "a certificate that nobody vouches for");
    let plain = get(&home, &[&url.replace("https", "http")]);
    assert!(plain.status != 200 && plain.body.is_empty(), "{plain:?}");
}

#[test]
fn plain_requests_are_sent_to_the_encrypted_address() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = Home::with(&[("a b.txt", b"here")]);
    // Where it goes is only known to the server: a port that was free a moment ago.
    let from = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = encrypted(&home, &format!("--redirect-http {from}"));
    let url = format!("http://{from}/a%20b.txt?c=d");
    let sent = get(&home, &[&url]);
    let expected = format!("{}/a%20b.txt?c=d", server.url);
    assert_eq!((sent.status, sent.header("location")), (308, Some(&*expected)));
    let followed = get(&home, &["-L", "--cacert", "cert.pem", &url]);
    assert_eq!((followed.status, followed.body.as_slice()), (200, &b"here"[..]), "{}", followed.err);
}

#[test]
fn old_versions_are_refused_and_protocols_agreed_on() {
    if !needs_tool("openssl") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "");
    for (words, agreed) in [
        ("-tls1_3", "Protocol  : TLSv1.3"),
        ("-tls1_2", "Protocol  : TLSv1.2"),
        ("-alpn h2", "ALPN protocol: h2"),
        ("-alpn http/1.1", "ALPN protocol: http/1.1"),
        ("-alpn http/1.1,h2", "ALPN protocol: h2"),
    ] {
        let (made, said) = shake(&server, words);
        let said = said.replace("New, TLSv1.3", "Protocol  : TLSv1.3");
        assert!(made && said.contains(agreed), "{words}: {said}");
    }
    for words in
        ["-tls1_1 -cipher ALL@SECLEVEL=0", "-tls1 -cipher ALL@SECLEVEL=0", "-tls1_2 -cipher AES128-SHA"]
    {
        let (made, said) = shake(&server, words);
        assert!(!made && said.contains("alert"), "{words}: {said}");
    }
    assert!(shake(&server, "").0, "it still answers");
}

#[test]
fn a_new_certificate_is_shown_after_hangup_and_a_broken_one_is_not() {
    if !needs_tool("openssl") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "");
    assert_eq!(serial(&server), "serial=1267");
    certify(&home, 0x4242);
    assert_eq!(serial(&server), "serial=1267", "not before it is told");
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    assert_eq!(serial(&server), "serial=4242");
    fs::write(home.at("cert.pem"), "no certificate\n").unwrap();
    let said = server.reload();
    assert!(said.starts_with("fathom serve: not reloaded: ") && said.contains("cert.pem"), "{said}");
    assert_eq!(serial(&server), "serial=4242");
}

#[test]
fn silent_clients_hold_nobody_up() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "--header-timeout 1s");
    let mut silent: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for stream in silent.iter_mut().step_by(2) {
        // The beginning of a greeting whose rest never comes.
        stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").unwrap();
    }
    let url = format!("{}/a.txt", server.url);
    for _ in 0..8 {
        let reply = get(&home, &["--cacert", "cert.pem", "--max-time", "10", &url]);
        assert_eq!((reply.status, reply.body), (200, b"here".to_vec()), "{}", reply.err);
    }
    for mut stream in silent {
        // Nothing is sent to it, and then it is let go.
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).is_err() || rest.len() < 64, "{rest:?}");
    }
    assert_eq!(get(&home, &["--cacert", "cert.pem", &url]).status, 200);
}

#[test]
fn thousands_of_streams_are_all_served() {
    if !needs_tool("openssl") || !needs_tool("h2load") {
        return;
    }
    let home = Home::with(&[("a.txt", b"here"), ("a.bin", &bytes(100_000))]);
    let server = encrypted(&home, "");
    for (words, requests) in
        [("-n 6000 -c 20 -m 50", 6000), ("-n 2000 -c 20 --h1", 2000), ("-n 2000 -c 2000 -m 1", 2000)]
    {
        let mut load = Command::new("h2load");
        load.args(words.split(' ')).args([format!("{}/a.txt", server.url), format!("{}/a.bin", server.url)]);
        let (status, out, err) = finish(&mut load);
        let all = format!(
            "requests: {requests} total, {requests} started, {requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout"
        );
        assert!(status == Some(0) && out.contains(&all), "{words}: {out}{err}");
        assert!(
            out.contains(&format!("status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx")),
            "{words}: {out}"
        );
    }
    until("connections are let go", || (server.descriptors() < 100).then_some(()));
}
