//! One client: asks for one file after another in every manner, and checks what comes.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::content::Proof;
use crate::files::{COUNT, Files, Way, length};

/// A server that says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// A client rests for up to so long between requests.
const REST_MS: u64 = 2000;
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// More than a head has.
const HEAD: usize = 1 << 10;
/// What the kernel keeps for a client that has not read it: little, so that files change while they are sent.
const UNREAD: usize = 32 << 10;
/// How long a slow client rests between two pieces.
const SLOWNESS: Duration = Duration::from_millis(10);
/// Messages that are kept of what is wrong.
const WRONG_MAX: usize = 20;

type Connection = BufReader<TcpStream>;

/// What all clients have seen.
#[derive(Default)]
pub(crate) struct Tally(Mutex<Counts>);

#[derive(Default, Debug)]
struct Counts {
    whole: u64,
    partial: u64,
    unchanged: u64,
    absent: u64,
    unsatisfied: u64,
    busy: u64,
    cut: u64,
    torn: u64,
    hung_up: u64,
    bytes: u64,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&self, note: impl FnOnce(&mut Counts)) {
        note(&mut self.0.lock().unwrap());
    }

    /// That nothing was wrong, and that everything was done.
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
        // What changes while it is sent is refused or cut off; most are not.
        assert!(counts.busy + counts.cut < counts.whole, "{counts:?}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.lock().unwrap())
    }
}

/// How a file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Whole,
    /// The first byte wanted, and how many.
    Range(u64, u64),
    /// If it is not what it was the last time.
    Changed,
    Head,
    /// And not read to the end.
    HangUp,
}

/// A response's head.
struct Head {
    status: u16,
    length: u64,
    /// Where the body has its place in the file.
    offset: u64,
    /// Of the file.
    total: Option<u64>,
    tag: Option<String>,
    retry_after: bool,
    /// When it had come.
    begun: Instant,
}

pub(crate) struct Client {
    model: &'static str,
    address: String,
    files: Arc<Files>,
    tally: Arc<Tally>,
    random: u64,
    connection: Option<Connection>,
    /// When the last request was sent.
    asked: Instant,
    /// The last file, and its tag.
    seen: Option<(u64, String)>,
}

impl Client {
    pub(crate) fn new(
        (model, address): (&'static str, &str),
        files: Arc<Files>,
        tally: Arc<Tally>,
        seed: u64,
    ) -> Client {
        let address = address.to_owned();
        Client {
            model,
            address,
            files,
            tally,
            random: seed + 1,
            connection: None,
            asked: Instant::now(),
            seen: None,
        }
    }

    /// SplitMix64.
    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    /// Asks until `end`.
    pub(crate) fn run(mut self, end: Instant) {
        while Instant::now() < end {
            let rest = Duration::from_millis(self.random(REST_MS));
            sleep(rest.min(end.saturating_duration_since(Instant::now())));
            if let Err(wrong) = self.ask() {
                self.connection = None;
                self.tally.count(|counts| {
                    if counts.wrong.len() < WRONG_MAX {
                        counts.wrong.push(format!("{}: {wrong}", self.model));
                    }
                });
            }
        }
    }

    fn manner(&mut self) -> (u64, Manner) {
        let file = self.random(COUNT);
        let offset = self.random(100_000);
        match self.random(10) {
            0..4 => (file, Manner::Whole),
            4..7 => (file, Manner::Range(offset, 128 + self.random(200_000))),
            7 => (self.seen.as_ref().map_or(file, |seen| seen.0), Manner::Changed),
            8 => (file, Manner::Head),
            _ => (file, Manner::HangUp),
        }
    }

    /// One request; an error says what is wrong with the response.
    fn ask(&mut self) -> Result<(), String> {
        let (file, manner) = self.manner();
        let said = |error: io::Error| format!("file {file}, {manner:?}: {error}");
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().map_err(said)?,
        };
        self.asked = Instant::now();
        connection.get_mut().write_all(self.request(file, manner).as_bytes()).map_err(said)?;
        // A response that fails at its first bytes takes its head with it.
        let Some(head) = read_head(&mut connection).map_err(said)? else {
            return self.cut(file, manner).map(drop);
        };
        self.judge(file, manner, &head)?;
        let has_body = manner != Manner::Head && head.status != 304;
        if !has_body {
            self.connection = Some(connection);
            return Ok(());
        }
        let whole = self.read_body(file, manner, &head, &mut connection)?;
        // A new connection now and then.
        if whole && self.random(20) != 0 {
            self.connection = Some(connection);
        }
        Ok(())
    }

    fn connect(&self) -> io::Result<Connection> {
        let connection = TcpStream::connect(&self.address)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&connection, UNREAD)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(BufReader::with_capacity(HEAD, connection))
    }

    fn request(&self, file: u64, manner: Manner) -> String {
        let method = if manner == Manner::Head { "HEAD" } else { "GET" };
        let field = match (manner, &self.seen) {
            (Manner::Range(from, len), _) => format!("Range: bytes={from}-{}\r\n", from + len),
            (Manner::Changed, Some((_, tag))) => format!("If-None-Match: {tag}\r\n"),
            _ => String::new(),
        };
        format!("{method} /{file} HTTP/1.1\r\nHost: soak\r\n{field}\r\n")
    }

    /// Whether there may be such a response.
    fn judge(&mut self, file: u64, manner: Manner, head: &Head) -> Result<(), String> {
        let ranged = matches!(manner, Manner::Range(..));
        let right = match head.status {
            200 => true,
            206 | 416 => ranged,
            304 => manner == Manner::Changed && self.seen.is_some(),
            404 => Way::of(file) == Way::Removed,
            503 => head.retry_after,
            _ => false,
        };
        self.tally.count(|counts| match head.status {
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
        right.then_some(()).ok_or_else(|| format!("file {file}, {manner:?}: status {}", head.status))
    }

    /// Reads a body and checks it; whether it came to its end. One that does not proves nothing: its reader knows that it is not all.
    fn read_body(
        &mut self,
        file: u64,
        manner: Manner,
        head: &Head,
        connection: &mut Connection,
    ) -> Result<bool, String> {
        let (mut left, mut piece) = (head.length, vec![0; PIECE]);
        let mut proof = matches!(head.status, 200 | 206).then(|| Proof::new(file, head.offset));
        let slow = self.random(3) == 0;
        while left > 0 {
            if slow {
                sleep(SLOWNESS);
            }
            if manner == Manner::HangUp && self.random(4) == 0 {
                let _gone = connection.get_ref().shutdown(Shutdown::Both);
                self.tally.count(|counts| counts.hung_up += 1);
                return Ok(false);
            }
            let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match connection.read(&mut piece[..most]) {
                Ok(read) if read > 0 => {
                    left -= read as u64;
                    self.tally.count(|counts| counts.bytes += read as u64);
                    proof.iter_mut().for_each(|proof| proof.take(&piece[..read]));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(format!("file {file}, {manner:?}: nothing came, {left} bytes were left"));
                }
                Ok(_) | Err(_) => return self.cut(file, manner),
            }
        }
        let said = |error| format!("{manner:?}: {error}");
        proof.map_or(Ok(true), |proof| self.judge_content(file, proof, head).map_err(said))
    }

    fn judge_content(&self, file: u64, proof: Proof, head: &Head) -> Result<bool, String> {
        match proof.end(self.files.latest(file)) {
            Ok(version) => self.judge_length(file, version, head).map(|()| true),
            Err(_) if self.may_be_torn(file, head.begun) => {
                self.tally.count(|counts| counts.torn += 1);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Handles a connection that ended before the body did: the file must have been written to. A
    /// file that is replaced or removed keeps all of its bytes for the processes that have it open.
    fn cut(&self, file: u64, manner: Manner) -> Result<bool, String> {
        self.tally.count(|counts| counts.cut += 1);
        match Way::of(file) {
            way @ (Way::Never | Way::Replaced | Way::Removed) => {
                Err(format!("file {file}, {manner:?}: cut off, though its bytes never change ({way:?})"))
            }
            _ => Ok(false),
        }
    }

    /// Whether a response to what was asked and begun then may be of two versions, or have zeros where the file was cut.
    ///
    /// A write(2) that is under way when a file is opened has changed its times already, and not yet all its bytes: nobody can tell.
    /// And sendfile(2) sends what is in memory when a packet leaves, which nobody can look at before: the model of that name.
    fn may_be_torn(&self, file: u64, begun: Instant) -> bool {
        let in_place = matches!(Way::of(file), Way::Overwritten | Way::Truncated | Way::Rewritten);
        in_place && (self.model == "sendfile" || self.files.was_written(file, self.asked, begun))
    }

    fn judge_length(&self, file: u64, version: Option<u64>, head: &Head) -> Result<(), String> {
        let total = head.total.unwrap_or(head.length);
        let right = match version {
            Some(version) if Way::of(file).has_lengths() => total == length(file, version),
            _ => true,
        };
        right.then_some(()).ok_or_else(|| format!("file {file}, version {version:?}: {total} bytes"))
    }
}

/// The head of a response, if one comes.
fn read_head(connection: &mut Connection) -> io::Result<Option<Head>> {
    let mut bytes = Vec::with_capacity(HEAD);
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

fn parse_head(text: &str) -> Option<Head> {
    let field = |name: &str| -> Option<&str> {
        let fields = text.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let range = field("content-range").and_then(|range| range.strip_prefix("bytes "));
    Some(Head {
        status: text.get(9..12)?.parse().ok()?,
        length: field("content-length").and_then(number).unwrap_or(0),
        offset: range.and_then(|range| number(range.split('-').next()?)).unwrap_or(0),
        total: range.and_then(|range| number(range.rsplit('/').next()?)),
        tag: field("etag").map(str::to_owned),
        retry_after: field("retry-after").is_some(),
        begun: Instant::now(),
    })
}
