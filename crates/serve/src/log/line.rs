//! The formats of access log lines. Times are UTC in every format: local time repeats an hour each
//! year, and needs a time zone database that containers seldom have.
//!
//! No byte that a client sends can end a line, end a quoted field, or reach a terminal as a control
//! sequence.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_text::number::{DecimalBuffer, write_decimal};
use jiff::Timestamp;

/// The source of a response's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodySource {
    /// The file cache of the server.
    Cache,
    /// The page cache, read by the worker without waiting.
    Hit,
    /// Partly the page cache, partly a pool thread.
    Partial,
    /// A pool thread.
    Pool,
    /// sendfile(2): from the page cache or the disk; the call does not report which.
    Sendfile,
    /// No file: an error page, a listing, no body.
    Other,
}

impl BodySource {
    /// All sources, in the order of [`BodySource::index`].
    pub const ALL: [Self; 6] =
        [Self::Cache, Self::Hit, Self::Partial, Self::Pool, Self::Sendfile, Self::Other];

    /// Returns the name in log lines.
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

    /// Returns the index in [`BodySource::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// One request with its response.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// The time of the line: the end of the response.
    pub time: SystemTime,
    /// The client; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The authenticated user.
    pub user: Option<&'a str>,
    /// The method as sent.
    pub method: &'a [u8],
    /// The target as sent, not decoded.
    pub target: &'a [u8],
    /// The version, such as `HTTP/1.1`.
    pub version: &'a str,
    /// `Host` or `:authority`.
    pub host: Option<&'a [u8]>,
    /// The status of the response.
    pub status: u16,
    /// The bytes of the body that were sent.
    pub bytes: u64,
    /// The time from the request's first byte to the response's last.
    pub duration: Duration,
    /// `Referer`.
    pub referer: Option<&'a [u8]>,
    /// `User-Agent`.
    pub agent: Option<&'a [u8]>,
    /// The source of the body.
    pub source: BodySource,
    /// Whether the connection was encrypted.
    pub tls: bool,
}

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// Apache's combined format, followed by the duration in microseconds and the source. Bytes
    /// that could break the format are written as `\xHH`, among them quotes and backslashes, so
    /// that every quote is the format's own.
    Combined,
    /// One JSON object a line. A byte above 0x7e is written as the code point of its number (ISO
    /// 8859-1, as in RFC 9110, section 5.5): no byte is lost, whatever encoding the client meant.
    Json,
}

/// A formatter of lines, one for each thread: it caches the text of the last second.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use fathom_serve::log::{AccessRecord, BodySource, LineFormatter, LogFormat};
///
/// let record = AccessRecord {
///     time: SystemTime::UNIX_EPOCH,
///     peer: None,
///     user: None,
///     method: b"GET",
///     target: b"/a",
///     version: "HTTP/1.1",
///     host: None,
///     status: 200,
///     bytes: 5,
///     duration: Duration::from_micros(7),
///     referer: None,
///     agent: None,
///     source: BodySource::Cache,
///     tls: false,
/// };
/// let mut line = Vec::new();
/// LineFormatter::new(LogFormat::Combined).line(&record, &mut line);
/// let line = String::from_utf8_lossy(&line);
/// assert!(line.contains(" [01/Jan/1970:00:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 "));
/// ```
#[derive(Debug)]
pub struct LineFormatter {
    style: LogFormat,
    second: Option<u64>,
    text: String,
}

impl LineFormatter {
    /// Creates a formatter for `style`.
    #[must_use]
    pub fn new(style: LogFormat) -> Self {
        Self { style, second: None, text: String::new() }
    }

    /// Appends the line of `record` to `out`, with its newline.
    pub fn line(&mut self, record: &AccessRecord<'_>, out: &mut Vec<u8>) {
        match self.style {
            LogFormat::Combined => self.combined(record, out),
            LogFormat::Json => self.json(record, out),
        }
        out.push(b'\n');
    }

    /// Appends a line of the same format that says that `count` lines before it are missing.
    pub fn dropped(&mut self, time: SystemTime, count: u64, out: &mut Vec<u8>) {
        let micros = self.at(time);
        match self.style {
            LogFormat::Combined => {
                put(out, &[b"- - - [", self.text.as_bytes(), b"] \""]);
                write_decimal(count, out);
                out.extend_from_slice(b" log lines dropped\" 0 0 \"-\" \"-\" 0 -\n");
            }
            LogFormat::Json => {
                self.json_time(micros, out);
                out.extend_from_slice(b",\"dropped\":");
                write_decimal(count, out);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    fn combined(&mut self, record: &AccessRecord<'_>, out: &mut Vec<u8>) {
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
        write_decimal(record.status, out);
        out.push(b' ');
        write_decimal(record.bytes, out);
        out.extend_from_slice(b" \"");
        field(record.referer, text, out);
        out.extend_from_slice(b"\" \"");
        field(record.agent, text, out);
        out.extend_from_slice(b"\" ");
        write_decimal(micros(record.duration), out);
        put(out, &[b" ", record.source.word().as_bytes()]);
    }

    fn json(&mut self, record: &AccessRecord<'_>, out: &mut Vec<u8>) {
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
        write_decimal(record.status, out);
        out.extend_from_slice(b",\"bytes\":");
        write_decimal(record.bytes, out);
        out.extend_from_slice(b",\"duration_us\":");
        write_decimal(micros(record.duration), out);
        member(out, "referer", record.referer);
        member(out, "user_agent", record.agent);
        member(out, "source", Some(record.source.word().as_bytes()));
        put(out, &[b",\"tls\":", if record.tls { b"true}" } else { b"false}" }]);
    }

    fn json_time(&self, micros: u32, out: &mut Vec<u8>) {
        put(out, &[b"{\"time\":\"", self.text.as_bytes(), b"."]);
        // The leading 1 keeps the zeros of the six digits after it.
        let mut digits = DecimalBuffer::new();
        out.extend_from_slice(&digits.format(micros + 1_000_000).as_bytes()[1..]);
        out.extend_from_slice(b"Z\"");
    }

    /// Sets `text` to the second of `time`. Returns the microseconds within it.
    fn at(&mut self, time: SystemTime) -> u32 {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(since.as_secs()) {
            self.second = Some(since.as_secs());
            let second =
                i64::try_from(since.as_secs()).ok().and_then(|second| Timestamp::from_second(second).ok());
            let pattern = match self.style {
                LogFormat::Combined => "%d/%b/%Y:%H:%M:%S +0000",
                LogFormat::Json => "%Y-%m-%dT%H:%M:%S",
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

fn peer(peer: Option<SocketAddr>, out: &mut Vec<u8>) {
    match peer {
        Some(address) => out.extend_from_slice(address.ip().to_canonical().to_string().as_bytes()),
        None => out.extend_from_slice(b"unix"),
    }
}

/// Appends a field of the combined format, `-` if it is absent.
fn field(bytes: Option<&[u8]>, write: impl Fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) if !bytes.is_empty() => write(bytes, out),
        _ => out.push(b'-'),
    }
}

/// Appends a field that ends at a space.
fn word(bytes: &[u8], out: &mut Vec<u8>) {
    escape(bytes, out, |byte| harmful(byte) || byte == b' ', b"\\x");
}

/// Appends a field that ends at a quote.
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

/// Returns whether a byte could end a line or a quoted field, or is not printable ASCII.
fn harmful(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}

/// Appends `bytes` with harmful ones escaped. Runs of others are copied whole, as most fields have
/// no harmful byte.
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

    fn record() -> AccessRecord<'static> {
        AccessRecord {
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
            source: BodySource::Hit,
            tls: true,
        }
    }

    fn line(style: LogFormat, record: &AccessRecord<'_>) -> String {
        let mut out = Vec::new();
        LineFormatter::new(style).line(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn combined_is_apaches_with_two_fields_more() {
        assert_eq!(
            line(LogFormat::Combined, &record()),
            "192.0.2.7 - frank [10/Oct/2000:20:55:36 +0000] \"GET /apache_pb.gif HTTP/1.1\" 200 2326 \
             \"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\" 180 hit\n"
        );
    }

    #[test]
    fn json_has_every_field() {
        assert_eq!(
            line(LogFormat::Json, &record()),
            "{\"time\":\"2000-10-10T20:55:36.000042Z\",\"peer\":\"192.0.2.7\",\"user\":\"frank\",\"method\":\"GET\",\
             \"target\":\"/apache_pb.gif\",\"version\":\"HTTP/1.1\",\"host\":\"example.org\",\"status\":200,\"bytes\":2326,\
             \"duration_us\":180,\"referer\":\"http://www.example.com/start.html\",\
             \"user_agent\":\"Mozilla/4.08 [en] (Win98; I ;Nav)\",\"source\":\"hit\",\"tls\":true}\n"
        );
    }

    #[test]
    fn absent_fields_are_a_hyphen_or_null() {
        let bare = AccessRecord {
            peer: None,
            user: None,
            host: None,
            referer: None,
            agent: Some(b""),
            tls: false,
            ..record()
        };
        let combined = line(LogFormat::Combined, &bare);
        assert!(combined.starts_with("unix - - ["), "{combined}");
        assert!(combined.ends_with(" 200 2326 \"-\" \"-\" 180 hit\n"), "{combined}");
        let json: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &bare)).unwrap();
        assert!(json["user"].is_null() && json["host"].is_null() && json["user_agent"] == "");
    }

    #[test]
    fn an_injected_line_stays_in_its_field() {
        let target = b"/\r\n\x1b[31m\"x\\\xc3\xa9";
        let hostile = AccessRecord { target, ..record() };
        assert!(
            line(LogFormat::Combined, &hostile)
                .contains("\"GET /\\x0d\\x0a\\x1b[31m\\x22x\\x5c\\xc3\\xa9 HTTP/1.1\"")
        );
        assert!(
            line(LogFormat::Json, &hostile)
                .contains("\"/\\u000d\\u000a\\u001b[31m\\u0022x\\u005c\\u00c3\\u00a9\"")
        );
    }

    #[test]
    fn times_of_any_clock_are_written() {
        for time in [UNIX_EPOCH - Duration::from_secs(9), UNIX_EPOCH + Duration::from_secs(1 << 40)] {
            assert!(line(LogFormat::Combined, &AccessRecord { time, ..record() }).contains(" +0000] \""));
        }
    }

    #[test]
    fn the_text_of_a_second_is_cached() {
        let mut formatter = LineFormatter::new(LogFormat::Json);
        let mut out = Vec::new();
        for second in [0, 0, 61] {
            formatter
                .line(&AccessRecord { time: UNIX_EPOCH + Duration::from_secs(second), ..record() }, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let times: Vec<_> = text.lines().map(|line| &line[9..28]).collect();
        assert_eq!(times, ["1970-01-01T00:00:00", "1970-01-01T00:00:00", "1970-01-01T00:01:01"]);
    }

    #[test]
    fn missing_lines_are_told_in_the_same_format() {
        let mut out = Vec::new();
        LineFormatter::new(LogFormat::Json).dropped(UNIX_EPOCH, 3, &mut out);
        LineFormatter::new(LogFormat::Combined).dropped(UNIX_EPOCH, 3, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"dropped\":3}\n\
             - - - [01/Jan/1970:00:00:00 +0000] \"3 log lines dropped\" 0 0 \"-\" \"-\" 0 -\n"
        );
    }

    /// Returns the bytes of a JSON string, one for each code point.
    fn bytes(value: &serde_json::Value) -> Vec<u8> {
        value.as_str().unwrap().chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_record_is_one_line_and_comes_back(
            fields in proptest::array::uniform5(proptest::collection::vec(any::<u8>(), 0..40)),
            user in proptest::option::of(".{0,20}"),
            (status, sent, tls, source) in (any::<u16>(), any::<u64>(), any::<bool>(), 0_usize..6),
        ) {
            let [method, target, host, referer, agent] = &fields;
            let record = AccessRecord {
                user: user.as_deref(), method, target, host: Some(host), referer: Some(referer), agent: Some(agent),
                status, bytes: sent, tls, source: BodySource::ALL[source], ..record()
            };
            for style in [LogFormat::Combined, LogFormat::Json] {
                let line = line(style, &record);
                prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
                prop_assert!(line.trim_end().bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
            let combined = line(LogFormat::Combined, &record);
            prop_assert_eq!(combined.matches('"').count(), 6);
            let quoted: Vec<_> = combined.split('"').collect();
            prop_assert_eq!(quoted[0].matches(' ').count(), 5);
            prop_assert_eq!(quoted[1].matches(' ').count(), 2);

            let json: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &record)).unwrap();
            for (name, value) in [("method", method), ("target", target), ("host", host), ("referer", referer), ("user_agent", agent)] {
                prop_assert_eq!(&bytes(&json[name]), value);
            }
            let user_back = json["user"].as_str().map(|_| bytes(&json["user"]));
            prop_assert_eq!(user_back, user.map(String::into_bytes));
            prop_assert_eq!(json["bytes"].as_u64(), Some(sent));
            prop_assert_eq!(json["source"].as_str(), Some(BodySource::ALL[source].word()));
        }
    }
}
