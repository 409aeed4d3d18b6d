//! Strict parser and formatter of the row that a program prints (`playground/README.md`).

use std::fmt;
use std::str::{self, Split};

use super::program::printable;
use crate::LatencyHistogram;

/// Characters of a malformed row that an error quotes.
const QUOTED_CHARS_MAX: usize = 300;

/// The result that a program reports for its one run. Times start with the first operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    /// To the end of the last operation.
    pub seconds: f64,
    /// To the end of the fdatasync that follows; for reads, equal to `seconds`.
    pub sync_s: f64,
    /// To the end of the close that follows the fdatasync.
    pub close_s: f64,
    /// System calls or ring operations that moved data.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Pages that were read with a correct stamp; 0 for writes.
    pub pages_ok: u64,
    /// Highest number of operations in flight, over all threads.
    pub in_flight_max: u64,
    /// User CPU time up to `seconds`.
    pub cpu_user_s: f64,
    /// System CPU time up to `seconds`.
    pub cpu_sys_s: f64,
    /// Voluntary context switches up to `seconds`; `None` if the language cannot report them.
    pub switches: Option<u64>,
    /// Involuntary context switches; `None` if the language cannot report them.
    pub switches_forced: Option<u64>,
    /// Median latency of the timed operations.
    pub p50_us: f64,
    /// 95th percentile of the latency.
    pub p95_us: f64,
    /// 99th percentile of the latency.
    pub p99_us: f64,
    /// Maximum latency.
    pub max_us: f64,
    /// Peak resident memory, which only samples of a server report.
    pub memory_bytes: Option<u64>,
    /// 99.9th percentile of the latency, of samples in Rust with enough timed operations.
    pub p999_us: Option<f64>,
    /// The latencies of the timed operations, of samples in Rust with enough of them.
    pub histogram: Option<LatencyHistogram>,
    /// Mean latency of requests at a given rate, each from the time at which it was due.
    pub mean_us: Option<f64>,
}

impl Measurement {
    /// Parses the whole standard output of a program.
    ///
    /// # Errors
    /// The problem, with the beginning of the output.
    pub fn parse(stdout: &[u8]) -> Result<Self, String> {
        Self::parse_row(stdout).map_err(|problem| format!("{problem} in the row '{}'", quoted(stdout)))
    }

    fn parse_row(stdout: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(stdout).map_err(|_| "a byte that is no text".to_owned())?;
        let line = text.strip_suffix('\n').ok_or("no end of line")?;
        let mut row = RowFields(line.split('\t'));
        let measurement = Self {
            seconds: row.decimal("seconds", 9)?,
            sync_s: row.decimal("sync_s", 9)?,
            close_s: row.decimal("close_s", 9)?,
            ops: row.number("ops")?,
            bytes: row.number("bytes")?,
            pages_ok: row.number("pages_ok")?,
            in_flight_max: row.number("in_flight_max")?,
            cpu_user_s: row.decimal("cpu_user_s", 6)?,
            cpu_sys_s: row.decimal("cpu_sys_s", 6)?,
            switches: row.count("switches")?,
            switches_forced: row.count("switches_forced")?,
            p50_us: row.decimal("p50_us", 3)?,
            p95_us: row.decimal("p95_us", 3)?,
            p99_us: row.decimal("p99_us", 3)?,
            max_us: row.decimal("max_us", 3)?,
            memory_bytes: row.optional("memory_bytes", |row, key| row.number(key))?,
            p999_us: row.optional("p999_us", |row, key| row.decimal(key, 3))?,
            histogram: row.optional("histogram", |row, key| {
                LatencyHistogram::parse(row.value(key)?).ok_or_else(|| format!("no counts for '{key}'"))
            })?,
            mean_us: row.optional("mean_us", |row, key| row.decimal(key, 3))?,
        };
        if row.0.next().is_some() {
            return Err("more fields than there should be".to_owned());
        }
        measurement.in_order()
    }

    /// Rejects clocks and percentiles that are not ascending.
    fn in_order(self) -> Result<Self, String> {
        let clocks = [self.seconds, self.sync_s, self.close_s];
        let ranks = [self.p50_us, self.p95_us, self.p99_us, self.p999_us.unwrap_or(self.max_us), self.max_us];
        if clocks.is_sorted() && ranks.is_sorted() { Ok(self) } else { Err("times out of order".to_owned()) }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: Option<u64>| count.map_or_else(|| "-1".to_owned(), |count| count.to_string());
        let Self { seconds, sync_s, close_s, ops, bytes, pages_ok, in_flight_max, .. } = self;
        write!(
            f,
            "seconds={seconds:.9}\tsync_s={sync_s:.9}\tclose_s={close_s:.9}\tops={ops}\tbytes={bytes}"
        )?;
        write!(f, "\tpages_ok={pages_ok}\tin_flight_max={in_flight_max}")?;
        write!(f, "\tcpu_user_s={:.6}\tcpu_sys_s={:.6}", self.cpu_user_s, self.cpu_sys_s)?;
        write!(f, "\tswitches={}\tswitches_forced={}", count(self.switches), count(self.switches_forced))?;
        let Self { p50_us, p95_us, p99_us, max_us, .. } = self;
        write!(f, "\tp50_us={p50_us:.3}\tp95_us={p95_us:.3}\tp99_us={p99_us:.3}\tmax_us={max_us:.3}")?;
        self.memory_bytes.map_or(Ok(()), |bytes| write!(f, "\tmemory_bytes={bytes}"))?;
        self.p999_us.map_or(Ok(()), |latency| write!(f, "\tp999_us={latency:.3}"))?;
        self.histogram.map_or(Ok(()), |histogram| write!(f, "\thistogram={histogram}"))?;
        self.mean_us.map_or(Ok(()), |latency| write!(f, "\tmean_us={latency:.3}"))
    }
}

/// The remaining fields of a row.
struct RowFields<'a>(Split<'a, char>);

impl<'a> RowFields<'a> {
    fn value(&mut self, key: &str) -> Result<&'a str, String> {
        let field = self.0.next().and_then(|field| field.split_once('='));
        field
            .filter(|&(found, _)| found == key)
            .map(|(_, value)| value)
            .ok_or(format!("no '{key}' at its place"))
    }

    fn number(&mut self, key: &str) -> Result<u64, String> {
        let value = self.value(key)?;
        number(value).ok_or_else(|| format!("no number for '{key}'"))
    }

    fn count(&mut self, key: &str) -> Result<Option<u64>, String> {
        match self.value(key)? {
            "-1" => Ok(None),
            value => number(value).map(Some).ok_or_else(|| format!("no number for '{key}'")),
        }
    }

    /// Parses the next field with `read` if its key is `key`.
    fn optional<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let next = self.0.clone().next().and_then(|field| field.split_once('='));
        if next.is_some_and(|(found, _)| found == key) { read(self, key).map(Some) } else { Ok(None) }
    }

    fn decimal(&mut self, key: &str, digits: usize) -> Result<f64, String> {
        let value = self.value(key)?;
        let of_digits = |(whole, part): &(&str, &str)| {
            is_number(whole) && part.len() == digits && part.bytes().all(|b| b.is_ascii_digit())
        };
        let parsed = value.split_once('.').filter(of_digits).and_then(|_| value.parse().ok());
        parsed
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| format!("no number with {digits} digits after the point for '{key}'"))
    }
}

/// Parses a decimal number. `u64::from_str` alone would accept a sign and leading zeros.
fn number(text: &str) -> Option<u64> {
    is_number(text).then(|| text.parse().ok()).flatten()
}

fn is_number(text: &str) -> bool {
    let has_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    has_digits && (text == "0" || !text.starts_with('0'))
}

fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    printable(&line.chars().take(QUOTED_CHARS_MAX).collect::<String>().replace('\t', " "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROW: &str = "seconds=0.100000000\tsync_s=0.200000000\tclose_s=0.200000001\tops=3\tbytes=9000\tpages_ok=0\tin_flight_max=2\t\
                       cpu_user_s=0.010000\tcpu_sys_s=0.020000\tswitches=5\tswitches_forced=-1\tp50_us=1.500\tp95_us=2.000\t\
                       p99_us=2.000\tmax_us=9.125\n";

    fn text(measurement: &Measurement) -> String {
        format!("{measurement}\n")
    }

    #[test]
    fn a_row_is_read() {
        let measurement = Measurement::parse(ROW.as_bytes()).expect("a row");
        assert_eq!(
            (measurement.seconds, measurement.close_s, measurement.max_us),
            (0.1, 0.200_000_001, 9.125)
        );
        assert_eq!((measurement.ops, measurement.bytes, measurement.in_flight_max), (3, 9000, 2));
        assert_eq!((measurement.switches, measurement.switches_forced), (Some(5), None));
        assert_eq!((text(&measurement).as_str(), measurement.memory_bytes), (ROW, None));
        let with_memory = ROW.replace('\n', "\tmemory_bytes=4096\n");
        let measurement = Measurement::parse(with_memory.as_bytes()).expect("a row");
        assert_eq!((text(&measurement), measurement.memory_bytes), (with_memory, Some(4096)));
        let with_tail = ROW.replace('\n', "\tp999_us=5.250\thistogram=9:3,11:40\n");
        let measurement = Measurement::parse(with_tail.as_bytes()).expect("a row");
        assert_eq!((text(&measurement), measurement.p999_us), (with_tail, Some(5.25)));
    }

    #[test]
    fn a_malformed_row_is_an_error_that_quotes_it() {
        let wrong = [
            ("", "no end of line in the row ''"),
            ("\n", "no 'seconds' at its place in the row ''"),
            ("a=\u{1b}[2J\n", "no 'seconds' at its place in the row 'a=\\u{1b}[2J'"),
        ];
        for (row, problem) in wrong {
            assert_eq!(Measurement::parse(row.as_bytes()), Err(problem.to_owned()));
        }
        let changes = [
            ("ops=3", "ops=+3", "no number for 'ops'"),
            ("ops=3", "ops=-1", "no number for 'ops'"),
            ("ops=3", "ops=03", "no number for 'ops'"),
            ("ops=3", "ops=", "no number for 'ops'"),
            ("ops=3", "ops=18446744073709551616", "no number for 'ops'"),
            ("ops=3\tbytes=9000", "bytes=9000\tops=3", "no 'ops' at its place"),
            ("seconds=0.1", "seconds=.1", "no number with 9 digits after the point for 'seconds'"),
            ("seconds=0.1", "seconds=1e5.1", "no number with 9 digits after the point for 'seconds'"),
            ("=0.100000000", "=inf", "no number with 9 digits after the point for 'seconds'"),
            ("=0.010000", "=0.01", "no number with 6 digits after the point for 'cpu_user_s'"),
            ("switches=5", "switches=-2", "no number for 'switches'"),
            ("seconds=0.1", "seconds=0.3", "times out of order"),
            ("p50_us=1.500", "p50_us=3.000", "times out of order"),
            ("max_us=9.125", "max_us=9.125\tmore=1", "more fields than there should be"),
            ("max_us=9.125", "max_us=9.125\tmemory_bytes=-1", "no number for 'memory_bytes'"),
            ("max_us=9.125", "max_us=9.125\tp999_us=9.126", "times out of order"),
            (
                "max_us=9.125",
                "max_us=9.125\thistogram=1:2\tp999_us=3.000",
                "more fields than there should be",
            ),
            ("max_us=9.125", "max_us=9.125\thistogram=1:0", "no counts for 'histogram'"),
            ("max_us=9.125", "max_us=9.125\tmemory_bytes=1\tmore=1", "more fields than there should be"),
            ("max_us=9.125\n", "max_us=9.125\r\n", "no number with 3 digits after the point for 'max_us'"),
            ("max_us=9.125\n", "max_us=9.125\n\n", "no number with 3 digits after the point for 'max_us'"),
        ];
        for (from, to, problem) in changes {
            let error = Measurement::parse(ROW.replacen(from, to, 1).as_bytes()).expect_err(to);
            assert!(error.starts_with(&format!("{problem} in the row 'seconds=")), "{to}: {error}");
        }
    }

    /// Formatting may produce more digits before the decimal point than the parsed text had.
    #[test]
    fn a_time_of_any_length_is_printed_as_it_is_read() {
        let read = |time: &str| Measurement::parse(ROW.replace("=9.125", &format!("={time}")).as_bytes());
        for time in ["18446744073709551615.000", &("9".repeat(308) + ".999")] {
            let measurement = read(time).expect(time);
            assert_eq!(Measurement::parse(text(&measurement).as_bytes()), Ok(measurement));
        }
        for time in ["9".repeat(400) + ".000", ".000".to_owned()] {
            assert!(read(&time).is_err_and(|error| error.starts_with("no number with 3 digits")), "{time}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn random_bytes_are_no_row(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Measurement::parse(&bytes).is_err());
        }

        #[test]
        fn a_row_with_another_byte_is_wrong_or_another_row(at in 0..ROW.len(), byte in any::<u8>()) {
            let mut bytes = ROW.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(measurement) = Measurement::parse(&bytes) {
                prop_assert_eq!(text(&measurement).into_bytes(), bytes);
            }
        }

        #[test]
        fn a_formatted_measurement_is_parsed_back(ns in 0..10_u64.pow(15), more in 0..10_u64.pow(9), counts in any::<[u64; 4]>()) {
            let seconds = ns as f64 / 1e9;
            let late = (ns + more) as f64 / 1e9;
            let row = text(&Measurement {
                seconds, sync_s: seconds, close_s: late, ops: counts[0], bytes: counts[1], pages_ok: counts[2],
                in_flight_max: counts[3], switches: Some(counts[0]), p50_us: seconds, p95_us: late, p99_us: late,
                max_us: late, ..Measurement::default()
            });
            let measurement = Measurement::parse(row.as_bytes()).expect("its own text");
            prop_assert_eq!(text(&measurement), row);
        }
    }
}
