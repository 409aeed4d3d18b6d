//! What a request's line looks like. Times are UTC in every format: local time repeats an hour a year, and asks for a zone database
//! that a container seldom has.
//!
//! Nothing a client sends can end a line, end a quoted field or reach a terminal as a control sequence.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_text::number::decimal;
use jiff::Timestamp;

/// Where a response's bytes came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The server's own memory.
    Cache,
    /// The page cache: the worker read them without waiting.
    Hit,
    /// In part the page cache, and the rest a thread of the pool.
    Partial,
    /// A thread of the pool.
    Pool,
    /// sendfile(2): from the page cache or the disk, nobody knows.
    Sendfile,
    /// No file: an error's page, a listing, no body at all.
    Other,
}

impl Source {
    /// All of them, in the order of [`Source::index`].
    pub const ALL: [Self; 6] =
        [Self::Cache, Self::Hit, Self::Partial, Self::Pool, Self::Sendfile, Self::Other];

    /// As it is written in lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Hit => "hit",
            Self::Partial => "partial",
            Self::Pool => "pool",
            Self::Sendfile => "sendfile",
            Self::Other => "-",
        }
    }

    /// Its place in [`Source::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A request and its response.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When the request began.
    pub time: SystemTime,
    /// The client; none on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Who proved to be who they are.
    pub user: Option<&'a str>,
    /// As it was sent.
    pub method: &'a [u8],
    /// As it was sent, before anything was decoded.
    pub target: &'a [u8],
    /// `HTTP/1.1`.
    pub version: &'a str,
    /// `Host` or `:authority`.
    pub host: Option<&'a [u8]>,
    /// Of the response.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// From the request's first byte to the response's last one.
    pub duration: Duration,
    /// `Referer`.
    pub referer: Option<&'a [u8]>,
    /// `User-Agent`.
    pub agent: Option<&'a [u8]>,
    /// Where the body came from.
    pub source: Source,
    /// Whether the connection was encrypted.
    pub tls: bool,
}

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Apache's combined format, then the duration in microseconds and the source. Bytes that could break it are `\xHH`, quotes and
    /// backslashes too, so that every quote is the format's own.
    Combined,
    /// One object a line. A byte above 0x7e is the code point of its number (ISO 8859-1, as RFC 9110 section 5.5 has it of old): no
    /// byte is lost, whatever encoding the client meant.
    Json,
}

/// Writes lines. One for each thread: it remembers the second it last formatted.
#[derive(Debug)]
pub struct Formatter {
    style: Style,
    second: Option<u64>,
    text: String,
}

impl Formatter {
    /// For lines of `style`.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Self { style, second: None, text: String::new() }
    }

    /// Appends the line of `record` to `out`, with its newline.
    pub fn line(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match self.style {
            Style::Combined => self.combined(record, out),
            Style::Json => self.json(record, out),
        }
        out.push(b'\n');
    }

    /// Appends a line of the same style that says that `count` lines are missing before it.
    pub fn dropped(&mut self, time: SystemTime, count: u64, out: &mut Vec<u8>) {
        let micros = self.at(time);
        match self.style {
            Style::Combined => {
                put(out, &[b"- - - [", self.text.as_bytes(), b"] \""]);
                number(out, count);
                out.extend_from_slice(b" log lines dropped\" 0 0 \"-\" \"-\" 0 -\n");
            }
            Style::Json => {
                self.json_time(micros, out);
                out.extend_from_slice(b",\"dropped\":");
                number(out, count);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    fn combined(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.at(record.time);
        peer(record.peer, out);
        out.extend_from_slice(b" - ");
        field(record.user.map(str::as_bytes), word, out);
        put(out, &[b" [", self.text.as_bytes(), b"] \""]);
        word(record.method, out);
        out.push(b' ');
        word(record.target, out);
        out.push(b' ');
        word(record.version.as_bytes(), out);
        out.extend_from_slice(b"\" ");
        number(out, u64::from(record.status));
        out.push(b' ');
        number(out, record.bytes);
        out.extend_from_slice(b" \"");
        field(record.referer, text, out);
        out.extend_from_slice(b"\" \"");
        field(record.agent, text, out);
        out.extend_from_slice(b"\" ");
        number(out, micros(record.duration));
        put(out, &[b" ", record.source.word().as_bytes()]);
    }

    fn json(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let fraction = self.at(record.time);
        self.json_time(fraction, out);
        out.extend_from_slice(b",\"peer\":\"");
        peer(record.peer, out);
        out.push(b'"');
        member(out, "user", record.user.map(str::as_bytes));
        member(out, "method", Some(record.method));
        member(out, "target", Some(record.target));
        member(out, "version", Some(record.version.as_bytes()));
        member(out, "host", record.host);
        out.extend_from_slice(b",\"status\":");
        number(out, u64::from(record.status));
        out.extend_from_slice(b",\"bytes\":");
        number(out, record.bytes);
        out.extend_from_slice(b",\"duration_us\":");
        number(out, micros(record.duration));
        member(out, "referer", record.referer);
        member(out, "user_agent", record.agent);
        member(out, "source", Some(record.source.word().as_bytes()));
        put(out, &[b",\"tls\":", if record.tls { b"true}" } else { b"false}" }]);
    }

    fn json_time(&self, micros: u32, out: &mut Vec<u8>) {
        put(out, &[b"{\"time\":\"", self.text.as_bytes(), b"."]);
        let (digits, start) = decimal(u64::from(micros) + 1_000_000);
        out.extend(digits.iter().skip(start + 1));
        out.extend_from_slice(b"Z\"");
    }

    /// Has `text` name the second of `time`; the microseconds into it.
    fn at(&mut self, time: SystemTime) -> u32 {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(since.as_secs()) {
            self.second = Some(since.as_secs());
            let second =
                i64::try_from(since.as_secs()).ok().and_then(|second| Timestamp::from_second(second).ok());
            let pattern = match self.style {
                Style::Combined => "%d/%b/%Y:%H:%M:%S +0000",
                Style::Json => "%Y-%m-%dT%H:%M:%S",
            };
            self.text = second.unwrap_or(Timestamp::MAX).strftime(pattern).to_string();
        }
        since.subsec_micros()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn number(out: &mut Vec<u8>, value: u64) {
    let (digits, start) = decimal(value);
    out.extend(digits.iter().skip(start));
}

fn peer(peer: Option<SocketAddr>, out: &mut Vec<u8>) {
    match peer {
        Some(address) => out.extend_from_slice(address.ip().to_canonical().to_string().as_bytes()),
        None => out.extend_from_slice(b"unix"),
    }
}

/// A field of the combined format, where `-` stands for none.
fn field(bytes: Option<&[u8]>, write: impl Fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) if !bytes.is_empty() => write(bytes, out),
        _ => out.push(b'-'),
    }
}

/// A field that ends at a space.
fn word(bytes: &[u8], out: &mut Vec<u8>) {
    escape(bytes, out, |byte| harmful(byte) || byte == b' ', b"\\x");
}

/// A field that ends at a quote.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    escape(bytes, out, harmful, b"\\x");
}

fn member(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    put(out, &[b",\"", name.as_bytes(), b"\":"]);
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    out.push(b'"');
    escape(value, out, harmful, b"\\u00");
    out.push(b'"');
}

/// What could end a line or a quoted field, or is more than a printable character of ASCII.
fn harmful(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}

/// Copies runs of harmless bytes whole: most fields are one.
fn escape(bytes: &[u8], out: &mut Vec<u8>, is_harmful: impl Fn(u8) -> bool, prefix: &[u8]) {
    let mut rest = bytes;
    while let Some(run) = rest.iter().position(|&byte| is_harmful(byte)) {
        let (clean, tail) = rest.split_at(run);
        let Some((&byte, tail)) = tail.split_first() else { return };
        put(out, &[clean, prefix, &hex(byte)]);
        rest = tail;
    }
    out.extend_from_slice(rest);
}

fn hex(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble };
    [digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> Record<'static> {
        Record {
            time: UNIX_EPOCH + Duration::new(971_211_336, 42_000),
            peer: Some("[::ffff:192.0.2.7]:4711".parse().unwrap()),
            user: Some("frank"),
            method: b"GET",
            target: b"/apache_pb.gif",
            version: "HTTP/1.1",
            host: Some(b"example.org"),
            status: 200,
            bytes: 2326,
            duration: Duration::from_micros(180),
            referer: Some(b"http://www.example.com/start.html"),
            agent: Some(b"Mozilla/4.08 [en] (Win98; I ;Nav)"),
            source: Source::Hit,
            tls: true,
        }
    }

    fn line(style: Style, record: &Record<'_>) -> String {
        let mut out = Vec::new();
        Formatter::new(style).line(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn combined_is_apaches_with_two_fields_more() {
        assert_eq!(
            line(Style::Combined, &record()),
            "192.0.2.7 - frank [10/Oct/2000:20:55:36 +0000] \"GET /apache_pb.gif HTTP/1.1\" 200 2326 \
             \"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\" 180 hit\n"
        );
    }

    #[test]
    fn json_has_every_field() {
        assert_eq!(
            line(Style::Json, &record()),
            "{\"time\":\"2000-10-10T20:55:36.000042Z\",\"peer\":\"192.0.2.7\",\"user\":\"frank\",\"method\":\"GET\",\
             \"target\":\"/apache_pb.gif\",\"version\":\"HTTP/1.1\",\"host\":\"example.org\",\"status\":200,\"bytes\":2326,\
             \"duration_us\":180,\"referer\":\"http://www.example.com/start.html\",\
             \"user_agent\":\"Mozilla/4.08 [en] (Win98; I ;Nav)\",\"source\":\"hit\",\"tls\":true}\n"
        );
    }

    #[test]
    fn what_is_missing_is_a_hyphen_or_null() {
        let bare = Record {
            peer: None,
            user: None,
            host: None,
            referer: None,
            agent: Some(b""),
            tls: false,
            ..record()
        };
        let combined = line(Style::Combined, &bare);
        assert!(combined.starts_with("unix - - ["), "{combined}");
        assert!(combined.ends_with(" 200 2326 \"-\" \"-\" 180 hit\n"), "{combined}");
        let json: serde_json::Value = serde_json::from_str(&line(Style::Json, &bare)).unwrap();
        assert!(json["user"].is_null() && json["host"].is_null() && json["user_agent"] == "");
    }

    #[test]
    fn an_injected_line_stays_in_its_field() {
        let target = b"/\r\n\x1b[31m\"x\\\xc3\xa9";
        let hostile = Record { target, ..record() };
        assert!(
            line(Style::Combined, &hostile)
                .contains("\"GET /\\x0d\\x0a\\x1b[31m\\x22x\\x5c\\xc3\\xa9 HTTP/1.1\"")
        );
        assert!(
            line(Style::Json, &hostile)
                .contains("\"/\\u000d\\u000a\\u001b[31m\\u0022x\\u005c\\u00c3\\u00a9\"")
        );
    }

    #[test]
    fn times_of_any_clock_are_written() {
        for time in [UNIX_EPOCH - Duration::from_secs(9), UNIX_EPOCH + Duration::from_secs(1 << 40)] {
            assert!(line(Style::Combined, &Record { time, ..record() }).contains(" +0000] \""));
        }
    }

    #[test]
    fn a_second_is_formatted_anew_when_it_is_another() {
        let mut formatter = Formatter::new(Style::Json);
        let mut out = Vec::new();
        for second in [0, 0, 61] {
            formatter.line(&Record { time: UNIX_EPOCH + Duration::from_secs(second), ..record() }, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let times: Vec<_> = text.lines().map(|line| &line[9..28]).collect();
        assert_eq!(times, ["1970-01-01T00:00:00", "1970-01-01T00:00:00", "1970-01-01T00:01:01"]);
    }

    #[test]
    fn missing_lines_are_told_in_the_same_format() {
        let mut out = Vec::new();
        Formatter::new(Style::Json).dropped(UNIX_EPOCH, 3, &mut out);
        Formatter::new(Style::Combined).dropped(UNIX_EPOCH, 3, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"dropped\":3}\n\
             - - - [01/Jan/1970:00:00:00 +0000] \"3 log lines dropped\" 0 0 \"-\" \"-\" 0 -\n"
        );
    }

    /// The bytes a JSON string stands for: one code point each.
    fn bytes(value: &serde_json::Value) -> Vec<u8> {
        value.as_str().unwrap().chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn any_record_is_one_line_and_comes_back(
            fields in proptest::array::uniform5(proptest::collection::vec(any::<u8>(), 0..40)),
            user in proptest::option::of(".{0,20}"),
            (status, sent, tls, source) in (any::<u16>(), any::<u64>(), any::<bool>(), 0_usize..6),
        ) {
            let [method, target, host, referer, agent] = &fields;
            let record = Record {
                user: user.as_deref(), method, target, host: Some(host), referer: Some(referer), agent: Some(agent),
                status, bytes: sent, tls, source: Source::ALL[source], ..record()
            };
            for style in [Style::Combined, Style::Json] {
                let line = line(style, &record);
                prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
                prop_assert!(line.trim_end().bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
            let combined = line(Style::Combined, &record);
            prop_assert_eq!(combined.matches('"').count(), 6);
            let quoted: Vec<_> = combined.split('"').collect();
            prop_assert_eq!(quoted[0].matches(' ').count(), 5);
            prop_assert_eq!(quoted[1].matches(' ').count(), 2);

            let json: serde_json::Value = serde_json::from_str(&line(Style::Json, &record)).unwrap();
            for (name, value) in [("method", method), ("target", target), ("host", host), ("referer", referer), ("user_agent", agent)] {
                prop_assert_eq!(&bytes(&json[name]), value);
            }
            let user_back = json["user"].as_str().map(|_| bytes(&json["user"]));
            prop_assert_eq!(user_back, user.map(String::into_bytes));
            prop_assert_eq!(json["bytes"].as_u64(), Some(sent));
            prop_assert_eq!(json["source"].as_str(), Some(Source::ALL[source].word()));
        }
    }
}
