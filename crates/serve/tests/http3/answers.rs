//! Responses are the same as over the other HTTP versions.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::client::run;
use crate::support::{DATE, LONG, Tree, eventually, noise, prose, request};
use crate::{Connector, Http3Site};

fn site() -> Http3Site {
    let tree = Tree::new(&[
        ("a.txt", b"0123456789"),
        ("page.html", &prose(20_000)),
        ("large", &noise(3_000_000, 1)),
        ("dir/b", b"bb"),
        ("secret/c", b"cc"),
        ("kept/d", b"dd"),
    ]);
    Http3Site::new(
        tree,
        "limits.body-bytes = 100\n",
        "listing = true\narchives = ['tar.zst']\ndeny = ['/secret/**']\ncompress = { codings = ['gzip'] }\n",
    )
}

/// Method, path and headers of a request; status, headers and body of the expected response.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16, &'a [(&'a str, &'a str)], Option<&'a [u8]>);

#[test]
fn requests_are_answered_as_over_the_other_versions() {
    let site = site();
    let mut client = site.connect();
    let large = noise(3_000_000, 1);
    let rows: &[Case<'_>] = &[
        (
            "GET",
            "/a.txt",
            &[],
            200,
            &[("content-length", "10"), ("last-modified", DATE)],
            Some(b"0123456789"),
        ),
        ("HEAD", "/a.txt", &[], 200, &[("content-length", "10")], Some(b"")),
        ("GET", "/large", &[], 200, &[("content-length", "3000000")], Some(&large)),
        (
            "GET",
            "/a.txt",
            &[("range", "bytes=2-4")],
            206,
            &[("content-range", "bytes 2-4/10"), ("content-length", "3")],
            Some(b"234"),
        ),
        ("GET", "/a.txt", &[("range", "bytes=20-")], 416, &[("content-range", "bytes */10")], None),
        ("GET", "/a.txt", &[("if-modified-since", DATE)], 304, &[], Some(b"")),
        ("GET", "/page.html", &[("accept-encoding", "gzip")], 200, &[("content-encoding", "gzip")], None),
        ("GET", "/dir", &[], 301, &[("location", "dir/")], None),
        ("GET", "/dir/", &[], 200, &[("content-type", "text/html; charset=utf-8")], None),
        ("GET", "/secret/c", &[], 403, &[], None),
        ("GET", "/missing", &[], 404, &[], None),
        ("GET", "/../../etc/passwd", &[], 404, &[], None),
        ("OPTIONS", "/a.txt", &[], 204, &[("allow", "GET, HEAD, OPTIONS")], Some(b"")),
        ("POST", "/a.txt", &[], 405, &[("allow", "GET, HEAD, OPTIONS")], None),
        ("POST", "/a.txt", &[("content-length", "1000")], 413, &[], None),
    ];
    for (method, path, fields, status, expected, body) in rows {
        let answer = run(client.ask(method, path, fields)).unwrap();
        assert_eq!(answer.status.as_u16(), *status, "{method} {path} {fields:?}: {answer:?}");
        for (name, value) in *expected {
            assert_eq!(answer.field(name), Some(*value), "{method} {path} {fields:?}: {name}");
        }
        assert!(body.is_none_or(|body| answer.body == body), "{method} {path} {fields:?}");
        assert!(answer.field("date").is_some() && answer.field("connection").is_none(), "{path}");
        assert_eq!(answer.field("alt-svc"), None, "it is there already");
    }
}

#[test]
fn an_archive_is_a_stream() {
    let site = site();
    let answer = run(site.connect().get("/dir/?archive=tar.zst"));
    assert_eq!((answer.status.as_u16(), answer.field("content-length")), (200, None));
    let mut names = Vec::new();
    let mut archive = tar::Archive::new(zstd::Decoder::new(&answer.body[..]).unwrap());
    for entry in archive.entries().unwrap() {
        names.push(entry.unwrap().path().unwrap().into_owned());
    }
    assert!(names.iter().any(|name| name.ends_with("b")), "{names:?}");
}

#[test]
fn requests_are_counted_and_logged_with_their_version() {
    let site = site();
    let mut client = site.connect();
    run(client.ask("GET", "/a.txt", &[("user-agent", "test")])).unwrap();
    run(client.get("/missing"));
    let metrics = String::from_utf8(run(client.get("/metrics")).body).unwrap();
    assert!(metrics.contains("fathom_requests_total{method=\"GET\",status=\"200\"} 1\n"), "{metrics}");
    assert!(metrics.contains("fathom_requests_total{method=\"GET\",status=\"404\"} 1\n"), "{metrics}");
    assert!(metrics.contains("fathom_connections 1\n"), "{metrics}");
    drop(client);
    assert!(site.served.drain(LONG));
    let log = site.lines.text();
    assert!(log.contains("\"GET /a.txt HTTP/3.0\" 200 10 \"-\" \"test\""), "{log}");
    assert!(log.starts_with("127.0.0.1 "), "{log}");
}

/// Returns the response to a request over TLS on TCP, in lower case.
fn over_tcp(site: &Http3Site, path: &str) -> String {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let tls = builder.with_root_certificates(site.authority.trust()).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(tls), ServerName::try_from("localhost").unwrap());
    let stream = TcpStream::connect(site.served.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut stream = StreamOwned::new(connection.unwrap(), stream);
    stream.write_all(&request("GET", path, &[("Connection", "close")])).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).to_ascii_lowercase()
}

#[test]
fn responses_over_tcp_advertise_http3() {
    let tree = Tree::new(&[("a", b"aa"), ("kept/d", b"dd")]);
    let site = Http3Site::new(tree, "", "headers = [{ path = '/kept/**', set = { Alt-Svc = 'clear' } }]\n");
    let port = site.served.address().rsplit(':').next().unwrap().to_owned();
    let answer = over_tcp(&site, "/a");
    assert!(answer.contains(&format!("\r\nalt-svc: h3=\":{port}\"; ma=86400\r\n")), "{answer}");
    let own = over_tcp(&site, "/kept/d");
    assert!(own.contains("\r\nalt-svc: clear\r\n") && !own.contains("h3="), "{own}");
}

#[test]
fn rates_are_those_of_the_address() {
    let tree = Tree::new(&[("a", b"aa")]);
    let site = Http3Site::new(tree, "limits = { requests-per-s = 0.001, burst = 3 }\n", "");
    let mut client = site.connect();
    let statuses: Vec<_> = (0..4).map(|_| run(client.get("/a")).status.as_u16()).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    assert!(over_tcp(&site, "/a").starts_with("http/1.1 429 "), "the same client over another version");
}

#[test]
fn clients_certificates_are_asked_for_as_over_tcp() {
    let tree = Tree::new(&[("a", b"aa")]);
    let site = Http3Site::with(tree, "", "", |config, authority| {
        let path = config.tls.as_ref().unwrap().certificate.as_ref().unwrap().with_file_name("ca.pem");
        std::fs::write(&path, authority.pem()).unwrap();
        config.tls.as_mut().unwrap().client_ca = Some(path);
    });
    let mut with = Connector::new(&site.authority);
    with.identity = Some(site.authority.identity("ann"));
    assert_eq!(run(run(with.connect(site.served.address())).unwrap().get("/a")).body, b"aa");
    let without = run(async {
        let quic = site.connector().quic(site.served.address()).await;
        match quic {
            // In TLS 1.3 the client may complete its half of the handshake before it receives the
            // alert.
            Ok(quic) => quic.connection.closed().await.to_string(),
            Err(error) => error.to_string(),
        }
    });
    assert!(without.contains("certificate"), "{without}");
    eventually("it is not logged", || site.lines.text().contains(" - ann ["));
}
