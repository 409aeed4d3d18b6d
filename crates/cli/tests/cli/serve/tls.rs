//! TLS: curl, openssl and h2load as clients.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server, bytes, finish, until};
use crate::support::needs_tool;

/// Creates a certificate for 127.0.0.1 with this serial number, and its key.
fn certify(home: &ServeDirectory, serial: u32) {
    let mut command = Command::new("openssl");
    command.args(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test".split(' '),
    );
    command.args(["-addext", "subjectAltName=IP:127.0.0.1", "-set_serial", &serial.to_string()]);
    let (status, _, err) =
        finish(command.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(home.at("")));
    assert_eq!(status, Some(0), "{err}");
}

fn encrypted(home: &ServeDirectory, words: &str) -> Server {
    certify(home, 4711);
    home.serve(&format!("--tls-cert cert.pem --tls-key key.pem {words}"))
}

/// Connects with `openssl s_client` and `words`. Returns whether it succeeded, and its output.
fn shake(server: &Server, words: &str) -> (bool, String) {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", server.address()]).args(words.split_whitespace());
    let (status, out, err) = finish(&mut command);
    (status == Some(0), out + &err)
}

/// Returns the serial number of the certificate that the server presents.
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
    let home = ServeDirectory::with(&[("a.bin", &content)]);
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
    assert!(plain.status == 400 && plain.body.ends_with(b"use https.\n"), "{plain:?}");
}

#[test]
fn a_certificate_for_development_is_made_and_kept() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("--tls-self-signed");
    let stderr = server.err();
    assert!(stderr.starts_with("fathom serve: warning: self-signed certificate for localhost, "), "{stderr}");
    assert!(stderr.contains("127.0.0.1, ::1") && stderr.contains("SHA-256"), "{stderr}");
    let url = format!("{}/a.txt", server.url);
    assert_eq!(get(&home, &[&url]).end, Some(60), "nobody vouches for it");
    assert_eq!(get(&home, &["--insecure", &url]).status, 200);
    let first = serial(&server);
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    assert_eq!(serial(&server), first);
}

#[test]
fn clients_with_certificates_are_named_in_the_log() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    certify(&home, 7);
    for (from, to) in [("cert.pem", "ca.pem"), ("key.pem", "ca.key")] {
        fs::rename(home.at(from), home.at(to)).unwrap();
    }
    fs::write(home.at("ext"), "basicConstraints = CA:FALSE\n").unwrap();
    for words in [
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=alice -keyout client.key -out client.csr",
        "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -set_serial 8 -days 2 -extfile ext -out client.pem",
    ] {
        let (status, _, err) =
            finish(Command::new("openssl").args(words.split(' ')).current_dir(home.at("")));
        assert_eq!(status, Some(0), "{err}");
    }
    let mut server = encrypted(&home, "--tls-client-ca ca.pem --access-log=log");
    let url = format!("{}/a.txt", server.url);
    let without = get(&home, &["--cacert", "cert.pem", &url]);
    assert!(without.end != Some(0) && without.body.is_empty(), "{without:?}");
    let with = get(&home, &["--cacert", "cert.pem", "--cert", "client.pem", "--key", "client.key", &url]);
    assert_eq!((with.status, with.body.as_slice()), (200, &b"here"[..]), "{}", with.err);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.status(), Some(0));
    let log = fs::read_to_string(home.at("log")).unwrap();
    assert!(log.starts_with("127.0.0.1 - alice ["), "{log}");
}

#[test]
fn plain_requests_are_redirected_to_https() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a b.txt", b"here")]);
    // The server does not print the address of the redirect, so take a port that was free a moment
    // ago.
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
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "");
    for (words, agreed) in [
        ("-tls1_3", "Protocol  : TLSv1.3"),
        ("-tls1_2", "Protocol  : TLSv1.2"),
        ("-alpn h2", "ALPN protocol: h2"),
        ("-alpn http/1.1", "ALPN protocol: http/1.1"),
        ("-alpn http/1.1,h2", "ALPN protocol: h2"),
    ] {
        let (made, stderr) = shake(&server, words);
        let stderr = stderr.replace("New, TLSv1.3", "Protocol  : TLSv1.3");
        assert!(made && stderr.contains(agreed), "{words}: {stderr}");
    }
    for words in
        ["-tls1_1 -cipher ALL@SECLEVEL=0", "-tls1 -cipher ALL@SECLEVEL=0", "-tls1_2 -cipher AES128-SHA"]
    {
        let (made, stderr) = shake(&server, words);
        assert!(!made && stderr.contains("alert"), "{words}: {stderr}");
    }
    assert!(shake(&server, "").0, "it still answers");
}

#[test]
fn a_new_certificate_is_used_after_sighup_and_an_invalid_one_is_not() {
    if !needs_tool("openssl") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "");
    assert_eq!(serial(&server), "serial=1267");
    certify(&home, 0x4242);
    assert_eq!(serial(&server), "serial=1267", "not before it is told");
    assert_eq!(server.reload(), "fathom serve: reloaded\n");
    assert_eq!(serial(&server), "serial=4242");
    fs::write(home.at("cert.pem"), "no certificate\n").unwrap();
    let stderr = server.reload();
    assert!(stderr.starts_with("fathom serve: cannot use ") && stderr.contains("cert.pem"), "{stderr}");
    assert_eq!(serial(&server), "serial=4242");
}

#[test]
fn silent_clients_do_not_block_others() {
    if !needs_tool("openssl") || !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = encrypted(&home, "--header-timeout 5s");
    let mut silent: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for stream in silent.iter_mut().step_by(2) {
        // The beginning of a ClientHello whose rest never arrives.
        stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").unwrap();
    }
    let url = format!("{}/a.txt", server.url);
    for _ in 0..8 {
        let reply = get(&home, &["--cacert", "cert.pem", "--max-time", "100", &url]);
        assert_eq!((reply.status, reply.body), (200, b"here".to_vec()), "{}", reply.err);
    }
    for mut stream in silent {
        // The server sends at most an alert, and closes the connection.
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).is_err() || rest.len() < 64, "{rest:?}");
    }
    assert_eq!(get(&home, &["--cacert", "cert.pem", &url]).status, 200);
}

#[test]
fn thousands_of_streams_are_all_served() {
    if getrlimit(Resource::Nofile).maximum.is_some_and(|most| most < 4096) {
        return crate::support::skip("needs 4,096 descriptors for 2,000 connections of h2load");
    }
    if !needs_tool("openssl") || !needs_tool("h2load") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("a.bin", &bytes(100_000))]);
    // Two thousand simultaneous handshakes may take minutes on a busy machine.
    let server = encrypted(&home, "--header-timeout 10m");
    for (words, requests) in
        [("-n 6000 -c 20 -m 50", 6000), ("-n 2000 -c 20 --h1", 2000), ("-n 2000 -c 2000 -m 1", 2000)]
    {
        let mut load = Command::new("sh");
        load.args(["-c", "ulimit -n 4096; exec h2load \"$@\"", "h2load"])
            .args(words.split(' '))
            .args([format!("{}/a.txt", server.url), format!("{}/a.bin", server.url)]);
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

#[test]
fn failed_handshakes_are_reported_and_counted() {
    if !needs_tool("openssl") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let mut server = encrypted(&home, "--workers 1");
    for _ in 0..20 {
        assert!(!shake(&server, "-tls1_2 -cipher AES128-SHA").0);
    }
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.status(), Some(0));
    let stderr = server.err();
    let first = stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("fathom serve: TLS handshake with 127.0.0.1 failed: "), "{stderr}");
    // Each line reports one failed handshake or a number of further ones; together they report all.
    let count = |line: &str| -> Option<u64> {
        line.rsplit_once(" more failed TLS handshakes")?
            .0
            .rsplit(' ')
            .next()?
            .trim_start_matches('(')
            .parse()
            .ok()
    };
    let own = stderr.lines().filter(|line| line.contains("TLS handshake with")).count() as u64;
    assert_eq!(
        own + stderr.lines().filter_map(|line| count(line.trim_start_matches("fathom serve: "))).sum::<u64>(),
        20,
        "{stderr}"
    );
}
