//! TLS connections, and refusals that have to arrive: a client that is still sending when its
//! connection is reset never reads the response.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use fathom_serve::config::TlsConfig;
use fathom_serve::server::StartOptions;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{LONG, MemoryLog, TestServer, Tree, config, noise, request};

/// Writes a certificate for `localhost` beside the served directory. Returns the configuration, and
/// the roots of a client that trusts it.
fn certify(tree: &Tree) -> (TlsConfig, RootCertStore) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    tree.write("../cert.pem", certificate.pem().as_bytes());
    tree.write("../key.pem", key.serialize_pem().as_bytes());
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone()).unwrap();
    let path = |name: &str| Some(tree.at(name));
    let files =
        TlsConfig { certificate: path("../cert.pem"), key: path("../key.pem"), ..TlsConfig::default() };
    (files, roots)
}

/// Starts a server with TLS. Returns it with a function that connects to it. The access log goes to
/// `lines`.
fn encrypted(
    tree: &Tree,
    lines: &MemoryLog,
) -> (TestServer, impl Fn(&str) -> StreamOwned<ClientConnection, TcpStream> + use<>) {
    let (files, roots) = certify(tree);
    let mut all = config(tree, "access-log = { format = 'combined' }\nmetrics = '/metrics'\n", "");
    all.tls = Some(files);
    let outfit = StartOptions { stream: Some(Box::new(lines.clone())), ..StartOptions::default() };
    let served = TestServer::with(&all, outfit);
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let client = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    let connect = move |address: &str| {
        let connection =
            ClientConnection::new(client.clone(), ServerName::try_from("localhost").unwrap()).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        StreamOwned::new(connection, stream)
    };
    (served, connect)
}

/// Sends `head` and `body`, and reads to the end of the connection; errors are ignored.
fn exchange(mut stream: impl Read + Write, head: &[u8], body: &[u8]) -> String {
    let _sent = stream.write_all(&[head, body].concat());
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_refusal_arrives_while_the_client_still_sends() {
    let tree = Tree::new(&[("a", b"aa")]);
    let (served, connect) = encrypted(&tree, &MemoryLog::default());
    let plain = TestServer::site(&tree, "");
    for (len, status) in [(60_000, "405"), (3_000_000, "413")] {
        let (head, body) = (request("POST", "/a", &[("Content-Length", &len.to_string())]), noise(len, 1));
        for round in 0..15 {
            let answer = exchange(connect(served.address()), &head, &body);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "TLS, {len} bytes, {round}: {answer:?}"
            );
            let answer = exchange(TcpStream::connect(plain.address()).unwrap(), &head, &body);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{len} bytes, {round}: {answer:?}");
        }
    }
    let head = request("GET", "/a", &[("X-A", &"x".repeat(300_000))]);
    for round in 0..15 {
        let answer = exchange(connect(served.address()), &head, b"");
        assert!(answer.starts_with("HTTP/1.1 431 "), "TLS, {round}: {answer:?}");
        let answer = exchange(TcpStream::connect(plain.address()).unwrap(), &head, b"");
        assert!(answer.starts_with("HTTP/1.1 431 "), "{round}: {answer:?}");
    }
}

#[test]
fn a_plain_request_is_told_that_the_port_is_encrypted() {
    let (tree, lines) = (Tree::new(&[("a", b"aa")]), MemoryLog::default());
    let (served, connect) = encrypted(&tree, &lines);
    let answer = exchange(TcpStream::connect(served.address()).unwrap(), &request("GET", "/a?b", &[]), b"");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nThis port requires TLS: use https.\n"), "{answer}");
    let get =
        |path| exchange(connect(served.address()), &request("GET", path, &[("Connection", "close")]), b"");
    assert!(get("/a").ends_with("\r\n\r\naa"));
    assert!(get("/metrics").contains("fathom_requests_total{method=\"GET\",status=\"400\"} 1\n"));
    assert!(served.drain(LONG));
    assert!(lines.text().contains("] \"GET /a?b HTTP/1.1\" 400 0 \"-\" \"-\" 0 -\n"), "{}", lines.text());
}
