//! The start and end of connections: certificates, limits, and servers that reload or stop.

use h3::error::ConnectionError;

use crate::client::{Authority, finish, run};
use crate::support::{LONG, Tree, noise};
use crate::{Connector, Http3Site};

#[test]
fn certificates_are_replaced_while_connections_continue() {
    let mut site = Http3Site::new(Tree::new(&[("a", b"aa")]), "", "");
    let mut old = site.connect();
    assert_eq!(run(old.get("/a")).body, b"aa");
    let other = Authority::new();
    other.certify(&site.tree, "localhost");
    let config = site.config.clone();
    assert_eq!(site.served.server().reload(&config).unwrap(), Vec::<String>::new());
    assert_eq!(run(old.get("/a")).body, b"aa");
    let mut new = run(Connector::new(&other).connect(site.served.address())).unwrap();
    assert_eq!(run(new.get("/a")).body, b"aa");
    let error = run(site.connector().quic(site.served.address())).err().unwrap();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn names_have_their_certificates() {
    let mut others = None;
    let site = Http3Site::with(Tree::new(&[("a", b"aa")]), "", "", |config, _| {
        let (tree, authority) = (Tree::new(&[]), Authority::new());
        let (tls, _) = authority.certify(&tree, "other.example");
        let pair = fathom_serve::config::CertificateFiles {
            certificate: tls.certificate.unwrap(),
            key: tls.key.unwrap(),
        };
        config.tls.as_mut().unwrap().more.push(pair);
        others = Some((tree, authority));
    });
    let (_tree, authority) = others.unwrap();
    let mut connector = Connector::new(&authority);
    connector.name = "other.example";
    assert_eq!(run(run(connector.connect(site.served.address())).unwrap().get("/a")).body, b"aa");
    assert_eq!(run(site.connect().get("/a")).body, b"aa");
}

#[test]
fn a_stopping_server_completes_responses_and_closes_connections() {
    let tree = Tree::new(&[("large", &noise(5_000_000, 1)), ("a", b"aa")]);
    let site = Http3Site::new(tree, "limits = { idle-timeout-ms = 3600000 }\n", "");
    let mut idle = site.connect();
    assert_eq!(run(idle.get("/a")).body, b"aa");
    let mut client = run(site.connector().window(100_000).connect(site.served.address())).unwrap();
    let mut stream = run(client.begin("GET", "/large", &[])).unwrap();
    // The response has begun, and waits for the window.
    run(stream.recv_response()).unwrap();
    let served = site.served;
    let draining = std::thread::spawn(move || served.drain(LONG));
    // An idle connection receives GOAWAY, and is closed.
    let end = run(&mut idle.driver).unwrap();
    assert!(end.is_h3_no_error(), "{end}");
    let mut bytes = 0;
    while let Some(piece) = run(stream.recv_data()).unwrap() {
        bytes += bytes::Buf::remaining(&piece);
    }
    assert_eq!(bytes, 5_000_000);
    let end = run(&mut client.driver).unwrap();
    assert!(end.is_h3_no_error(), "{end}");
    assert!(draining.join().unwrap(), "a request was cut off");
}

#[test]
fn a_stopping_server_accepts_no_connections() {
    let tree = Tree::new(&[("large", &noise(5_000_000, 1)), ("a", b"aa")]);
    let site = Http3Site::new(tree, "limits = { write-timeout-ms = 3600000 }\n", "");
    let mut client = run(site.connector().window(1000).connect(site.served.address())).unwrap();
    let mut stream = run(client.begin("GET", "/large", &[])).unwrap();
    run(stream.recv_response()).unwrap();
    let (address, connector) = (site.served.address().to_owned(), site.connector());
    let served = site.served;
    let draining = std::thread::spawn(move || served.drain(LONG));
    // Requests are refused once the stop has begun.
    run(async { while client.ask("GET", "/a", &[]).await.is_ok() {} });
    let refused = run(connector.quic(&address)).err().unwrap();
    assert!(matches!(refused, quinn::ConnectionError::ConnectionClosed(_)), "{refused}");
    drop((stream, client));
    draining.join().unwrap();
}

#[test]
fn connections_have_a_limit() {
    let site = Http3Site::new(Tree::new(&[("a", b"aa")]), "limits = { connections = 2 }\n", "");
    let (mut first, second) = (site.connect(), site.connect());
    let refused = run(site.connector().quic(site.served.address())).err().unwrap();
    assert!(matches!(refused, quinn::ConnectionError::ConnectionClosed(_)), "{refused}");
    second.quic.connection.close(0x100u32.into(), b"");
    run(async {
        while site.connector().quic(site.served.address()).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(run(first.get("/a")).body, b"aa");
}

/// After its last request a connection accepts no more, and no request is lost: further ones are
/// refused with a code that allows a retry.
#[test]
fn the_requests_of_a_connection_are_limited() {
    let site = Http3Site::new(Tree::new(&[("a", b"aa")]), "", "");
    let mut client = site.connect();
    let answered = run(async {
        let mut answered = 0;
        while let Ok(response) = client.ask("GET", "/a", &[]).await {
            assert_eq!(response.body, b"aa");
            answered += 1;
        }
        answered
    });
    assert!((1000..=1002).contains(&answered), "{answered}");
    assert_eq!(run(site.connect().get("/a")).body, b"aa");
}

#[test]
fn many_streams_at_once_have_their_own_bodies() {
    let files: Vec<_> = (0..40).map(|at| (format!("{at}"), noise(100_000 + at, at as u64))).collect();
    let tree = Tree::new(&[]);
    files.iter().for_each(|(name, bytes)| tree.write(name, bytes));
    let site = Http3Site::new(tree, "", "");
    for window in [2000, 100_000] {
        let mut client = run(site.connector().window(window).connect(site.served.address())).unwrap();
        run(async {
            let mut reading = Vec::new();
            for (name, bytes) in files.clone() {
                let mut stream = client.begin("GET", &format!("/{name}"), &[]).await.unwrap();
                reading.push(tokio::spawn(async move {
                    assert!(finish(&mut stream).await.unwrap().body == bytes, "{name}");
                }));
            }
            for reading in reading {
                reading.await.unwrap();
            }
        });
    }
}
