//! Bytes that no HTTP/3 client would send: the server closes the stream or the connection, and
//! serves others.

use std::net::UdpSocket;

use h3::error::StreamError;
use quinn::VarInt;

use crate::client::{Client, Quic, run};
use crate::support::{LONG, Tree, noise};
use crate::{Connector, Http3Site};

fn site() -> Http3Site {
    Http3Site::new(Tree::new(&[("a", b"aa")]), "", "")
}

impl Http3Site {
    async fn quic(&self) -> Quic {
        self.connector().quic(self.served.address()).await.unwrap()
    }

    #[track_caller]
    fn still_serves(&self) {
        assert_eq!(run(self.connect().get("/a")).body, b"aa");
    }
}

/// Encodes an integer of QUIC (RFC 9000, section 16) in its longest form.
fn integer(value: u64) -> [u8; 8] {
    (value | 0b11 << 62).to_be_bytes()
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [&integer(kind)[..], &integer(payload.len() as u64), payload].concat()
}

/// The kind of stream for sent bytes.
#[derive(Clone, Copy, Debug)]
enum StreamKind {
    /// A request stream.
    Request,
    /// A unidirectional stream, after the type of a control stream and empty settings.
    Control,
    /// A unidirectional stream.
    Raw,
}

/// Sends `bytes` on a new connection.
async fn send(site: &Http3Site, on: StreamKind, bytes: &[u8], ends: bool) -> Quic {
    let quic = site.quic().await;
    let mut send = match on {
        StreamKind::Request => quic.connection.open_bi().await.unwrap().0,
        StreamKind::Control | StreamKind::Raw => quic.connection.open_uni().await.unwrap(),
    };
    let head = match on {
        StreamKind::Control => [&[0][..], &frame(4, b"")].concat(),
        StreamKind::Request | StreamKind::Raw => Vec::new(),
    };
    // The server may close the stream before all bytes are written.
    let _sent = send.write_all(&[&head, bytes].concat()).await;
    if !ends {
        // Dropping the stream would finish it.
        std::mem::forget(send);
    }
    quic
}

/// Returns the error code with which the server closes the connection.
async fn code(quic: &Quic) -> u64 {
    match quic.connection.closed().await {
        quinn::ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("{other}"),
    }
}

/// Returns whether another request on the connection is answered.
async fn is_served(quic: &Quic) -> bool {
    let answer = async {
        let (mut send, mut receive) = quic.connection.open_bi().await.ok()?;
        send.write_all(&request()).await.ok()?;
        send.finish().ok()?;
        receive.read_to_end(1 << 20).await.ok()
    };
    answer.await.is_some_and(|answer| answer.ends_with(b"aa"))
}

/// Encodes a request for the file.
fn request() -> Vec<u8> {
    // Static fields :method GET, :scheme https and :path, and a literal :authority (RFC 9204).
    frame(1, b"\0\0\xd1\xd7\x51\x02/a\x50\x09localhost")
}

#[test]
fn malformed_frames_end_the_connection_with_their_code() {
    let site = site();
    let settings = frame(4, b"");
    let cases: &[(StreamKind, Vec<u8>, bool, Option<u64>)] = &[
        (StreamKind::Request, request(), true, None),
        // Unknown frames are skipped, even before the headers.
        (StreamKind::Request, [frame(0x21, b"grease"), request()].concat(), true, None),
        // A request stream cannot begin with DATA or SETTINGS: H3_FRAME_UNEXPECTED.
        (StreamKind::Request, frame(0, b"x"), true, Some(0x105)),
        (StreamKind::Request, settings.clone(), true, Some(0x105)),
        (StreamKind::Request, frame(5, b"\0x"), true, Some(0x105)),
        // Frames of HTTP/2.
        (StreamKind::Request, frame(2, b"12345"), true, Some(0x105)),
        (StreamKind::Request, frame(9, b""), true, Some(0x105)),
        // H3_FRAME_ERROR: an incomplete frame.
        (StreamKind::Request, b"\x01\x40".to_vec(), true, Some(0x106)),
        // QPACK_DECOMPRESSION_FAILED: an invalid index, an empty dynamic table, an incomplete
        // field.
        (StreamKind::Request, frame(1, b"\0\0\xff\xff\x7f"), true, Some(0x200)),
        (StreamKind::Request, frame(1, b"\0\0\x80"), true, Some(0x200)),
        (StreamKind::Request, frame(1, b"\0\0\x51\x7f"), true, Some(0x200)),
        (StreamKind::Request, frame(1, b""), true, Some(0x200)),
        // Malformed requests reset only their stream.
        (StreamKind::Request, frame(1, b"\0\0"), true, None),
        (StreamKind::Request, frame(1, b"\0\0\xd1\xd7\xc1"), true, None),
        (StreamKind::Request, frame(1, b"\0\0\xd1\xd7\x51\x02/a\x50\x09localhost\x23Abc\x01x"), true, None),
        (StreamKind::Request, b"".to_vec(), true, None),
        // A control stream that ends, or has a second SETTINGS, a DATA frame, or a setting of
        // HTTP/2.
        (StreamKind::Control, b"".to_vec(), true, Some(0x104)),
        (StreamKind::Control, settings.clone(), false, Some(0x105)),
        (StreamKind::Control, frame(0, b"x"), false, Some(0x105)),
        (StreamKind::Raw, [&[0][..], &frame(4, b"\x02\x00")].concat(), false, Some(0x109)),
        (StreamKind::Raw, [&[0][..], &frame(7, b"\0")].concat(), false, Some(0x10a)),
        // Streams of unknown types are ignored, and so are streams that end before their type.
        (StreamKind::Raw, noise(100, 3), true, None),
        (StreamKind::Raw, b"\x40".to_vec(), true, None),
        (StreamKind::Raw, b"\x02\xff\xff\xff\xff".to_vec(), false, None),
    ];
    for (on, bytes, ends, expected) in cases {
        let quic = run(send(&site, *on, bytes, *ends));
        match expected {
            Some(expected) => assert_eq!(run(code(&quic)), *expected, "{on:?} {bytes:x?}"),
            None => assert!(run(is_served(&quic)), "{on:?} {bytes:x?}"),
        }
    }
    site.still_serves();
}

#[test]
fn noise_is_refused_and_others_are_served() {
    let site = site();
    for seed in 0..120 {
        let bytes = noise(1 + seed as usize * 7 % 600, seed + 100);
        let on = [StreamKind::Request, StreamKind::Control, StreamKind::Raw][seed as usize % 3];
        let first = run(send(&site, on, &bytes, seed % 2 == 0));
        // The noise as the payload of a valid HEADERS frame.
        let fields = [b"\0\0", &bytes[..]].concat();
        let second = run(send(&site, StreamKind::Request, &frame(1, &fields), true));
        // The response proves that the server has processed the bytes.
        run(async { (is_served(&first).await, is_served(&second).await) });
    }
    site.still_serves();
}

/// A frame announces a huge length, and the payload is sent: the server does not buffer it.
#[test]
fn a_frame_that_is_too_long_is_not_buffered() {
    let site = site();
    let filler = vec![0; 4 << 20];
    for kind in [1, 0x21] {
        let stopped = run(async {
            let quic = site.quic().await;
            let (mut send, _receive) = quic.connection.open_bi().await.unwrap();
            send.write_all(&[integer(kind), integer(1 << 40)].concat()).await.unwrap();
            send.write_all(&filler).await.unwrap_err()
        });
        assert_eq!(stopped, quinn::WriteError::Stopped(VarInt::from_u32(0x107)), "type {kind}");
    }
    // On a control stream it closes the connection.
    let lost = run(async {
        let quic = site.quic().await;
        let mut send = quic.connection.open_uni().await.unwrap();
        send.write_all(&[&[0][..], &integer(0x21), &integer(1 << 40)].concat()).await.unwrap();
        let _sent = send.write_all(&filler).await;
        quic.connection.closed().await
    });
    assert!(matches!(lost, quinn::ConnectionError::ApplicationClosed(_)), "{lost}");
    site.still_serves();
}

/// A frame in many small pieces, each of which would hold a packet, is not buffered either.
#[test]
fn a_frame_in_many_pieces_is_not_buffered() {
    let site = site();
    let stopped = run(async {
        let quic = site.quic().await;
        let (mut send, _receive) = quic.connection.open_bi().await.unwrap();
        send.write_all(&[integer(1), integer(10_000)].concat()).await.unwrap();
        loop {
            if let Err(error) = send.write_all(b"x").await {
                return error;
            }
            // Send each piece as a packet of its own.
            while quic.connection.stats().frame_tx.stream == 0 {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            let _round_trip = quic.connection.open_uni().await.unwrap().reset(0u32.into());
        }
    });
    assert!(matches!(stopped, quinn::WriteError::Stopped(_)), "{stopped}");
    site.still_serves();
}

#[test]
fn headers_that_are_too_long_are_answered_431() {
    let site = site();
    let mut client = site.connect();
    let long = "x".repeat(16 << 10);
    let mut sent = 0;
    // The settings may come later than the responses to the first requests.
    let refused = loop {
        match run(client.ask("GET", "/a", &[("x-a", &long)])) {
            Ok(response) => assert_eq!(response.status, 431),
            Err(error) => break error,
        }
        sent += 1;
    };
    assert!(
        matches!(refused, StreamError::HeaderTooBig { .. }),
        "the limit is among the settings: {refused}"
    );
    // A client that ignores the limit: the name is repeated until the headers are too long.
    let fields = [&b"\0\0\xd1\xd7\x51\x02/a\x50\x09localhost"[..], &b"\xd9".repeat(2000)].concat();
    let (head, metrics) = run(async {
        let quic = site.quic().await;
        let (mut send, mut receive) = quic.connection.open_bi().await.unwrap();
        send.write_all(&frame(1, &fields)).await.unwrap();
        send.finish().unwrap();
        let head = receive.read_to_end(1 << 20).await.unwrap();
        (head, site.connect_async().await.get("/metrics").await)
    });
    // The status 431 is Huffman-coded in the literal of :status, so check only that a response
    // came.
    assert!(!head.is_empty());
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains(&format!("status=\"431\"}} {}\n", sent + 1)), "{metrics}");
    assert!(site.served.drain(LONG));
    assert!(site.lines.text().contains(" 431 "), "{}", site.lines.text());
}

impl Http3Site {
    async fn connect_async(&self) -> Client {
        self.connector().connect(self.served.address()).await.unwrap()
    }
}

/// Streams that are reset before their request is complete do not delay the stop of the server.
#[test]
fn reset_streams_leave_nothing() {
    let site = site();
    run(async {
        let quic = site.quic().await;
        for round in 0..300 {
            let (mut send, mut receive) = quic.connection.open_bi().await.unwrap();
            let _sent = send.write_all(&request()[..round % 20]).await;
            let _reset = send.reset(VarInt::from_u32(0x10c));
            let _stopped = receive.stop(VarInt::from_u32(0x10c));
        }
        quic.connection.close(VarInt::from_u32(0x100), b"");
    });
    site.still_serves();
    assert!(site.served.drain(LONG));
}

/// First packets of clients that never continue: from some number on the server answers with a
/// Retry, which costs it no state.
#[test]
fn with_many_handshakes_under_way_addresses_are_proven() {
    let site = Http3Site::new(Tree::new(&[("a", b"aa")]), "limits = { header-timeout-ms = 3600000 }\n", "");
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.set_read_timeout(Some(LONG)).unwrap();
    let (address, connector) = (relay.local_addr().unwrap().to_string(), || Connector::new(&site.authority));
    let (mut sent_back, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        // Forward only the first packet.
        let connecting = connector().start(&address);
        let mut packet = [0; 2048];
        let bytes = loop {
            let (bytes, from) = relay.recv_from(&mut packet).unwrap();
            if !clients.contains(&from) {
                clients.push(from);
                break bytes;
            }
        };
        drop(connecting);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.send_to(&packet[..bytes], site.served.address()).unwrap();
        socket.recv(&mut packet).unwrap();
        // A long header of type Retry (RFC 9000, section 17.2.5).
        sent_back.push(packet[0] & 0xf0 == 0xf0);
    }
    let expected: Vec<_> = (0..40).map(|at| at >= 32).collect();
    assert_eq!(sent_back, expected);
    // A client that proves its address is served.
    site.still_serves();
}
