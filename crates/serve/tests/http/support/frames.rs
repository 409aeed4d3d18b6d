//! HTTP/2 frames over plain TCP, encoded and parsed by hand: a client for behaviour that no library
//! has.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A hang guard: longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A client's connection.
pub(crate) struct Http2Client(TcpStream);

impl Http2Client {
    /// Connects and sends the preface and `settings`.
    pub(crate) fn connect(address: &str, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut frames = Self(stream);
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        frames.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        frames.write(SETTINGS, 0, 0, &payload);
        frames
    }

    pub(crate) fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.0.write_all(&frame(kind, flags, stream, payload)).unwrap();
    }

    /// Sends a request with GET for `path` on each of `streams`, all in one write.
    pub(crate) fn get(&mut self, streams: impl Iterator<Item = u32>, path: &str) {
        self.get_with(streams, path, "a", None);
    }

    /// As [`Http2Client::get`], with a host and the value of `Authorization`.
    pub(crate) fn get_with(
        &mut self,
        streams: impl Iterator<Item = u32>,
        path: &str,
        host: &str,
        authorization: Option<&str>,
    ) {
        // RFC 7541: indexed :method GET and :scheme http, then :path, :authority and authorization
        // (4, 1 and 23 = 15 + 8) by the index of their names.
        let text = |index: &[u8], value: &str| [index, &[value.len() as u8], value.as_bytes()].concat();
        let authorization = authorization.map_or(Vec::new(), |value| text(&[0x0f, 0x08], value));
        let block = [vec![0x82, 0x86], text(&[0x04], path), text(&[0x01], host), authorization].concat();
        let all: Vec<u8> =
            streams.flat_map(|stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &block)).collect();
        self.0.write_all(&all).unwrap();
    }

    /// Resets `streams` with CANCEL.
    pub(crate) fn reset(&mut self, streams: impl Iterator<Item = u32>) {
        streams.for_each(|stream| self.write(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }

    /// Opens the windows of `streams` by `bytes`; stream 0 is the connection.
    pub(crate) fn open(&mut self, streams: impl Iterator<Item = u32>, bytes: u32) {
        let all: Vec<u8> =
            streams.flat_map(|stream| frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())).collect();
        self.0.write_all(&all).unwrap();
    }

    /// Returns the next frame except SETTINGS, which is acknowledged; `None` at the end of the
    /// connection.
    pub(crate) fn read(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            if let Err(error) = self.0.read_exact(&mut head) {
                assert!(error.kind() != io::ErrorKind::WouldBlock, "nothing comes");
                return None;
            }
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; len];
            self.0.read_exact(&mut payload).unwrap();
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match (head[3], head[4]) {
                (SETTINGS, ACK) => {}
                (SETTINGS, _) => self.write(SETTINGS, ACK, 0, b""),
                (kind, flags) => return Some(Frame { kind, flags, stream, payload }),
            }
        }
    }

    /// Reads frames until `count` of them are `wanted`. Returns all frames read.
    pub(crate) fn read_until(&mut self, count: usize, wanted: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let (mut all, mut found) = (Vec::new(), 0);
        while found < count {
            let frame = self.read().unwrap_or_else(|| panic!("the connection ends after {found} of {count}"));
            found += usize::from(wanted(&frame));
            all.push(frame);
        }
        all
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
