//! One client: requests one file after another in every way, and checks each response.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::content::ContentChecker;
use crate::files::{ChangeKind, ChangingFiles, FILES, length};

/// Read and write timeout of a connection. A server that exceeds it has failed.
const IO_TIMEOUT: Duration = Duration::from_secs(60);
/// Upper bound of the pause between two requests.
const PAUSE_MS_MAX: u64 = 2000;
/// Number of bytes that one read(2) asks for.
const READ_BYTES: usize = 16 << 10;
/// Upper bound of the size of a response's header section.
const HEAD_BYTES_MAX: usize = 1 << 10;
/// Size of the socket's receive buffer: small, so that files change while they are being sent.
const RECV_BUFFER_BYTES: usize = 32 << 10;
/// Pause of a slow client between two reads.
const SLOW_READ_PAUSE: Duration = Duration::from_millis(10);
/// Number of error messages that are kept.
const WRONG_MAX: usize = 20;

type Connection = BufReader<TcpStream>;

/// Counts of the responses to all clients.
#[derive(Default)]
pub(crate) struct ResponseCounters(Mutex<ResponseCounts>);

#[derive(Default, Debug)]
struct ResponseCounts {
    whole: u64,
    partial: u64,
    unchanged: u64,
    absent: u64,
    unsatisfied: u64,
    busy: u64,
    closed_early: u64,
    torn: u64,
    hung_up: u64,
    bytes: u64,
    wrong: Vec<String>,
}

impl ResponseCounters {
    fn count(&self, note: impl FnOnce(&mut ResponseCounts)) {
        note(&mut self.0.lock().unwrap());
    }

    /// Asserts that no response was wrong and that every kind of response occurred.
    pub(crate) fn check(&self) {
        let counts = self.0.lock().unwrap();
        assert!(counts.wrong.is_empty(), "{}", counts.wrong.join("\n"));
        let done = [
            counts.whole,
            counts.partial,
            counts.unchanged,
            counts.absent,
            counts.unsatisfied,
            counts.hung_up,
            counts.bytes,
        ];
        assert!(done.iter().all(|count| *count > 0), "{counts:?}");
        // A file that changes while it is sent is refused (503) or cut off. Most responses are
        // complete.
        assert!(counts.busy + counts.closed_early < counts.whole, "{counts:?}");
    }
}

impl fmt::Display for ResponseCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.lock().unwrap())
    }
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Whole,
    /// The first byte of the range, and its length.
    Range(u64, u64),
    /// A conditional request: `If-None-Match` with the last entity tag.
    Changed,
    Head,
    /// A request whose connection the client closes before it has read the whole body.
    HangUp,
}

/// The parsed header section of a response.
struct ResponseHead {
    status: u16,
    length: u64,
    /// Offset of the body in the file.
    offset: u64,
    /// Length of the file.
    total: Option<u64>,
    tag: Option<String>,
    retry_after: bool,
    /// Time at which the header section was complete.
    received_at: Instant,
}

pub(crate) struct Client {
    model: &'static str,
    address: String,
    files: Arc<ChangingFiles>,
    counters: Arc<ResponseCounters>,
    random: u64,
    connection: Option<Connection>,
    /// Time at which the last request was sent.
    sent_at: Instant,
    /// The last file, and its entity tag.
    seen: Option<(u64, String)>,
}

impl Client {
    pub(crate) fn new(
        (model, address): (&'static str, &str),
        files: Arc<ChangingFiles>,
        counters: Arc<ResponseCounters>,
        seed: u64,
    ) -> Client {
        let address = address.to_owned();
        Client {
            model,
            address,
            files,
            counters,
            random: seed + 1,
            connection: None,
            sent_at: Instant::now(),
            seen: None,
        }
    }

    /// Returns a number below `below` (SplitMix64).
    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    /// Sends requests until `end`.
    pub(crate) fn run(mut self, end: Instant) {
        while Instant::now() < end {
            let rest = Duration::from_millis(self.random(PAUSE_MS_MAX));
            sleep(rest.min(end.saturating_duration_since(Instant::now())));
            if let Err(wrong) = self.exchange() {
                self.connection = None;
                self.counters.count(|counts| {
                    if counts.wrong.len() < WRONG_MAX {
                        counts.wrong.push(format!("{}: {wrong}", self.model));
                    }
                });
            }
        }
    }

    fn kind(&mut self) -> (u64, RequestKind) {
        let file = self.random(FILES);
        let offset = self.random(100_000);
        match self.random(10) {
            0..4 => (file, RequestKind::Whole),
            4..7 => (file, RequestKind::Range(offset, 128 + self.random(200_000))),
            7 => (self.seen.as_ref().map_or(file, |seen| seen.0), RequestKind::Changed),
            8 => (file, RequestKind::Head),
            _ => (file, RequestKind::HangUp),
        }
    }

    /// Sends one request and checks the response. An error describes a wrong response.
    fn exchange(&mut self) -> Result<(), String> {
        let (file, kind) = self.kind();
        let describe = |error: io::Error| format!("file {file}, {kind:?}: {error}");
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().map_err(describe)?,
        };
        self.sent_at = Instant::now();
        connection.get_mut().write_all(self.request(file, kind).as_bytes()).map_err(describe)?;
        // If reading the file fails at its first bytes, the server closes the connection without a
        // header section.
        let Some(head) = read_head(&mut connection).map_err(describe)? else {
            return self.closed_early(file, kind).map(drop);
        };
        self.check_status(file, kind, &head)?;
        let has_body = kind != RequestKind::Head && head.status != 304;
        if !has_body {
            self.connection = Some(connection);
            return Ok(());
        }
        let whole = self.read_body(file, kind, &head, &mut connection)?;
        // Open a new connection for one request in 20.
        if whole && self.random(20) != 0 {
            self.connection = Some(connection);
        }
        Ok(())
    }

    fn connect(&self) -> io::Result<Connection> {
        let connection = TcpStream::connect(&self.address)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&connection, RECV_BUFFER_BYTES)?;
        connection.set_read_timeout(Some(IO_TIMEOUT))?;
        connection.set_write_timeout(Some(IO_TIMEOUT))?;
        Ok(BufReader::with_capacity(HEAD_BYTES_MAX, connection))
    }

    fn request(&self, file: u64, kind: RequestKind) -> String {
        let method = if kind == RequestKind::Head { "HEAD" } else { "GET" };
        let field = match (kind, &self.seen) {
            (RequestKind::Range(from, len), _) => format!("Range: bytes={from}-{}\r\n", from + len),
            (RequestKind::Changed, Some((_, tag))) => format!("If-None-Match: {tag}\r\n"),
            _ => String::new(),
        };
        format!("{method} /{file} HTTP/1.1\r\nHost: soak\r\n{field}\r\n")
    }

    /// Checks that the status is possible for this request and this file.
    fn check_status(&mut self, file: u64, kind: RequestKind, head: &ResponseHead) -> Result<(), String> {
        let ranged = matches!(kind, RequestKind::Range(..));
        let right = match head.status {
            200 => true,
            206 | 416 => ranged,
            304 => kind == RequestKind::Changed && self.seen.is_some(),
            404 => ChangeKind::of(file) == ChangeKind::Removed,
            503 => head.retry_after,
            _ => false,
        };
        self.counters.count(|counts| match head.status {
            200 => counts.whole += 1,
            206 => counts.partial += 1,
            304 => counts.unchanged += 1,
            404 => counts.absent += 1,
            416 => counts.unsatisfied += 1,
            503 => counts.busy += 1,
            _ => {}
        });
        if let Some(tag) = head.tag.clone().filter(|_| head.status == 200) {
            self.seen = Some((file, tag));
        }
        right.then_some(()).ok_or_else(|| format!("file {file}, {kind:?}: status {}", head.status))
    }

    /// Reads and checks a body. Returns whether it was complete. An incomplete body proves nothing:
    /// the client knows from `Content-Length` that it is incomplete.
    fn read_body(
        &mut self,
        file: u64,
        kind: RequestKind,
        head: &ResponseHead,
        connection: &mut Connection,
    ) -> Result<bool, String> {
        let (mut left, mut buffer) = (head.length, vec![0; READ_BYTES]);
        let mut checker = matches!(head.status, 200 | 206).then(|| ContentChecker::new(file, head.offset));
        let slow = self.random(3) == 0;
        while left > 0 {
            if slow {
                sleep(SLOW_READ_PAUSE);
            }
            if kind == RequestKind::HangUp && self.random(4) == 0 {
                let _gone = connection.get_ref().shutdown(Shutdown::Both);
                self.counters.count(|counts| counts.hung_up += 1);
                return Ok(false);
            }
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match connection.read(&mut buffer[..most]) {
                Ok(read) if read > 0 => {
                    left -= read as u64;
                    self.counters.count(|counts| counts.bytes += read as u64);
                    checker.iter_mut().for_each(|checker| checker.take(&buffer[..read]));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(format!("file {file}, {kind:?}: nothing came, {left} bytes were left"));
                }
                Ok(_) | Err(_) => return self.closed_early(file, kind),
            }
        }
        let describe = |error| format!("{kind:?}: {error}");
        checker.map_or(Ok(true), |checker| self.check_content(file, checker, head).map_err(describe))
    }

    fn check_content(&self, file: u64, checker: ContentChecker, head: &ResponseHead) -> Result<bool, String> {
        match checker.end(self.files.latest(file)) {
            Ok(version) => self.check_length(file, version, head).map(|()| true),
            Err(_) if self.may_be_torn(file, head.received_at) => {
                self.counters.count(|counts| counts.torn += 1);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Handles a connection that ended before the body did: the file must have been written to. A
    /// file that is replaced or removed keeps all of its bytes for the processes that have it open.
    fn closed_early(&self, file: u64, kind: RequestKind) -> Result<bool, String> {
        self.counters.count(|counts| counts.closed_early += 1);
        match ChangeKind::of(file) {
            change @ (ChangeKind::Never | ChangeKind::Replaced | ChangeKind::Removed) => {
                Err(format!("file {file}, {kind:?}: cut off, though its bytes never change ({change:?})"))
            }
            _ => Ok(false),
        }
    }

    /// Whether a response whose header section arrived at `received_at` may mix two versions of the
    /// file, or contain zeros where the file was truncated.
    ///
    /// A write(2) that is in progress when the server opens the file has already changed the file's
    /// times but not all its bytes, so the server cannot detect it. The `sendfile` model sends the
    /// contents of the page cache at the time a packet leaves, so the server cannot check them
    /// beforehand.
    fn may_be_torn(&self, file: u64, received_at: Instant) -> bool {
        let in_place = matches!(
            ChangeKind::of(file),
            ChangeKind::Overwritten | ChangeKind::Truncated | ChangeKind::Rewritten
        );
        in_place && (self.model == "sendfile" || self.files.was_written(file, self.sent_at, received_at))
    }

    fn check_length(&self, file: u64, version: Option<u64>, head: &ResponseHead) -> Result<(), String> {
        let total = head.total.unwrap_or(head.length);
        let right = match version {
            Some(version) if ChangeKind::of(file).has_lengths() => total == length(file, version),
            _ => true,
        };
        right.then_some(()).ok_or_else(|| format!("file {file}, version {version:?}: {total} bytes"))
    }
}

/// Reads the header section of a response. Returns `None` if the connection was closed before it.
fn read_head(connection: &mut Connection) -> io::Result<Option<ResponseHead>> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES_MAX);
    while !bytes.ends_with(b"\r\n\r\n") {
        match connection.read_until(b'\n', &mut bytes) {
            Ok(0) if bytes.is_empty() => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let head = parse_head(&String::from_utf8_lossy(&bytes));
    head.map(Some).ok_or_else(|| io::Error::other(format!("no head: '{}'", bytes.escape_ascii())))
}

fn parse_head(text: &str) -> Option<ResponseHead> {
    let field = |name: &str| -> Option<&str> {
        let fields = text.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let range = field("content-range").and_then(|range| range.strip_prefix("bytes "));
    Some(ResponseHead {
        status: text.get(9..12)?.parse().ok()?,
        length: field("content-length").and_then(number).unwrap_or(0),
        offset: range.and_then(|range| number(range.split('-').next()?)).unwrap_or(0),
        total: range.and_then(|range| number(range.rsplit('/').next()?)),
        tag: field("etag").map(str::to_owned),
        retry_after: field("retry-after").is_some(),
        received_at: Instant::now(),
    })
}
