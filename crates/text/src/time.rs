//! Time stamps in output lines: the selected field and the format. The zone is read once.
//! Aggregating the newest stamp of a subtree belongs to the caller.

mod calendar;
mod format;
mod zone;

use self::calendar::CivilTime;
pub use self::format::TimeSink;
use self::format::{Format, Moment};
pub use self::zone::Zone;
use crate::keyword::{self, Ambiguity, Keyword, KeywordError, ValidWords};
use crate::quote::{Charset, quote};

/// The time stamp of an inode that an option selects. The set is closed: the words of `du --time`.
///
/// ```
/// use fathom_text::time::TimeField;
///
/// assert_eq!(TimeField::parse(b"status"), Ok(TimeField::Ctime));
/// assert!(TimeField::parse(b"birth").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeField {
    /// The last change of the contents (`--time` without a word).
    #[default]
    Mtime,
    /// The last read (`atime`, `access`, `use`).
    Atime,
    /// The last change of the inode (`ctime`, `status`).
    Ctime,
}

impl TimeField {
    /// Parses the word of `--time=WORD`.
    pub fn parse(word: &[u8]) -> Result<TimeField, KeywordError> {
        const LINES: ValidWords = ValidWords::Quoted(&[&["atime", "access", "use"], &["ctime", "status"]]);
        keyword::lookup(word, &FIELDS).map_err(|ambiguity| refuse(word, ambiguity, "--time", LINES))
    }
}

const FIELDS: [Keyword<TimeField>; 5] = [
    ("atime", TimeField::Atime),
    ("access", TimeField::Atime),
    ("use", TimeField::Atime),
    ("ctime", TimeField::Ctime),
    ("status", TimeField::Ctime),
];

const LONG_ISO: &str = "%Y-%m-%d %H:%M";

/// The seconds since 1970 in universal time whose years, counted from 1900, fit into 32 bits
/// (`tm_year`).
const CALENDAR_SEC: std::ops::RangeInclusive<i64> = -67_768_040_609_740_800..=67_768_036_191_676_799;

const STYLES: [Keyword<&str>; 3] =
    [("full-iso", "%Y-%m-%d %H:%M:%S.%N %z"), ("long-iso", LONG_ISO), ("iso", "%Y-%m-%d")];

/// The printed form of time stamps: a date(1) format, and the zone of the local times.
///
/// Names of days and months follow the C locale.
///
/// ```
/// use fathom_text::time::{TimeStyle, Zone};
///
/// let zone = Zone::from_env(|name| (name == "TZ").then(|| b"CET-1".to_vec()));
/// let style = TimeStyle::parse(b"+%F %T.%N %Z", zone).unwrap();
/// let mut out = Vec::new();
/// style.write(0, 5, &mut out).unwrap();
/// assert_eq!(out, b"1970-01-01 01:00:00.000000005 CET");
/// assert!(TimeStyle::parse(b"no", Zone::UTC).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct TimeStyle {
    format: Format,
    zone: Zone,
}

impl Default for TimeStyle {
    /// `long-iso`, in universal time.
    fn default() -> TimeStyle {
        TimeStyle::from_format(LONG_ISO.as_bytes(), Zone::UTC)
    }
}

impl TimeStyle {
    /// Parses the argument of `--time-style`: `full-iso`, `long-iso`, `iso` or `+FORMAT`.
    pub fn parse(style: &[u8], zone: Zone) -> Result<TimeStyle, KeywordError> {
        const LINES: ValidWords = ValidWords::Plain(&[
            "full-iso",
            "long-iso",
            "iso",
            "+FORMAT (e.g., +%H:%M) for a 'date'-style format",
        ]);
        if let Some(format) = style.strip_prefix(b"+") {
            return Ok(TimeStyle::from_format(format, zone));
        }
        match keyword::lookup(style, &STYLES) {
            Ok(format) => Ok(TimeStyle::from_format(format.as_bytes(), zone)),
            Err(ambiguity) => Err(refuse(style, ambiguity, "time style", LINES)),
        }
    }

    /// Returns the style for a run without the option: the value of `TIME_STYLE`, else `long-iso`.
    /// The variable is shared with ls(1), so `locale` and `posix-` prefixes are ignored, and only
    /// the first line of a format counts.
    pub fn from_env(variable: Option<&[u8]>, zone: Zone) -> Result<TimeStyle, KeywordError> {
        match variable {
            None | Some(b"locale") => Ok(TimeStyle::from_format(LONG_ISO.as_bytes(), zone)),
            Some(style) if style.starts_with(b"+") => {
                TimeStyle::parse(style.split(|&b| b == b'\n').next().unwrap_or(style), zone)
            }
            Some(mut style) => {
                while let Some(rest) = style.strip_prefix(b"posix-") {
                    style = rest;
                }
                TimeStyle::parse(style, zone)
            }
        }
    }

    fn from_format(format: &[u8], zone: Zone) -> TimeStyle {
        TimeStyle { format: Format::parse(format), zone }
    }

    /// Appends the time `sec` seconds and `nsec` nanoseconds after the epoch.
    ///
    /// # Errors
    /// If the year does not fit `tm_year`, appends the seconds as a bare number and returns the
    /// error for the caller to report.
    pub fn write(&self, sec: i64, nsec: u32, out: &mut impl TimeSink) -> Result<(), OutOfRange> {
        let local = self.zone.at(sec);
        // The C library also requires the universal time to be in the calendar's range.
        let shown = sec.checked_add(local.offset_sec.into()).filter(|_| CALENDAR_SEC.contains(&sec));
        let Some(civil) = shown.and_then(CivilTime::new) else {
            out.text(sec.to_string().as_bytes());
            return Err(OutOfRange { sec });
        };
        self.format.write(&Moment { civil, sec, nsec, local }, out);
        Ok(())
    }
}

fn refuse(word: &[u8], ambiguity: Ambiguity, context: &'static str, valid: ValidWords) -> KeywordError {
    KeywordError { word: word.to_vec(), ambiguity, context, valid }
}

/// The error for a time whose year does not fit into 32 bits. The run still succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    sec: i64,
}

impl OutOfRange {
    /// Returns the message without the program name.
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        [b"time ", &quote(self.sec.to_string().as_bytes(), charset)[..], b" is out of range"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    fn zone(tz: &str) -> Zone {
        Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()))
    }

    fn show(format: &[u8], tz: &str, sec: i64, nsec: u32) -> String {
        let style = TimeStyle::parse(&[b"+", format].concat(), zone(tz)).unwrap();
        let mut out = Vec::new();
        style.write(sec, nsec, &mut out).unwrap();
        out.escape_ascii().to_string()
    }

    #[test]
    fn words_for_time_stamps_may_be_shortened() {
        let field = |word: &str| TimeField::parse(word.as_bytes()).map_err(|error| error.ambiguity);
        for word in ["atime", "access", "use", "a", "at", "ac", "u"] {
            assert_eq!(field(word), Ok(TimeField::Atime), "{word}");
        }
        for word in ["ctime", "status", "c", "s"] {
            assert_eq!(field(word), Ok(TimeField::Ctime), "{word}");
        }
        assert_eq!(field("mtime"), Err(Ambiguity::None));
        assert_eq!(field(""), Err(Ambiguity::Several));
    }

    #[test]
    fn refused_words_are_answered_with_the_list() {
        let message = TimeField::parse(b"m").unwrap_err().message(Charset::Utf8);
        let text = "invalid argument ‘m’ for ‘--time’\nValid arguments are:\n  - ‘atime’, ‘access’, ‘use’\n  - ‘ctime’, ‘status’";
        assert_eq!(String::from_utf8(message).unwrap(), text);
        let message = TimeStyle::parse(b"", Zone::UTC).unwrap_err().message(Charset::Ascii);
        let text = "ambiguous argument '' for 'time style'\nValid arguments are:\n  - full-iso\n  - long-iso\n  - iso\n  \
                    - +FORMAT (e.g., +%H:%M) for a 'date'-style format";
        assert_eq!(String::from_utf8(message).unwrap(), text);
    }

    fn styled(style: Result<TimeStyle, KeywordError>) -> String {
        let mut out = Vec::new();
        match style {
            Ok(style) => style.write(1_709_650_805, 12_000_000, &mut out).unwrap(),
            Err(error) => out.extend([b"refused: ", &error.word[..]].concat()),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn styles_by_option() {
        let table = [
            ("full-iso", "2024-03-05 15:00:05.012000000 +0000"),
            ("long-iso", "2024-03-05 15:00"),
            ("iso", "2024-03-05"),
            ("i", "2024-03-05"),
            ("+%d\n%m", "05\n03"),
            ("+", ""),
            ("locale", "refused: locale"),
            ("posix-iso", "refused: posix-iso"),
        ];
        for (style, text) in table {
            assert_eq!(styled(TimeStyle::parse(style.as_bytes(), Zone::UTC)), text, "{style}");
        }
        assert_eq!(styled(Ok(TimeStyle::default())), "2024-03-05 15:00");
    }

    #[test]
    fn styles_by_variable_are_those_of_ls() {
        let table = [
            ("locale", "2024-03-05 15:00"),
            ("posix-posix-iso", "2024-03-05"),
            ("+%d\n%m", "05"),
            ("posix-locale", "refused: locale"),
            ("", "refused: "),
        ];
        for (style, text) in table {
            assert_eq!(styled(TimeStyle::from_env(Some(style.as_bytes()), Zone::UTC)), text);
        }
        assert_eq!(styled(TimeStyle::from_env(None, Zone::UTC)), "2024-03-05 15:00");
    }

    #[test]
    fn a_year_beyond_32_bits_comes_out_as_seconds() {
        let mut out = b"x".to_vec();
        let error = TimeStyle::default().write(i64::MAX, 0, &mut out).unwrap_err();
        assert_eq!(out, b"x9223372036854775807");
        assert_eq!(error.message(Charset::Ascii), b"time '9223372036854775807' is out of range");
        assert_eq!(show(b"%F", "UTC0", 67_768_036_191_676_799, 0), "+2147485547-12-31");
    }

    #[test]
    fn flags_and_widths() {
        let table = [
            ("%10d|%-d|%_d|%010e|%e|%1d", "0000000005|5| 5|0000000005| 5|5"),
            ("%Y|%6Y|%+6Y|%-6Y|%_6Y|%+Y", "2024|002024|+02024|2024|  2024|2024"),
            (
                "%F|%12F|%_12F|%+12F|%-12F|%7F",
                "2024-03-05|002024-03-05|  2024-03-05|+02024-03-05|2024-03-05|2024-03-05",
            ),
            ("%a|%^a|%#A|%10a|%010a|%-10a", "Tue|TUE|TUESDAY|       Tue|0000000Tue|Tue"),
            ("%p|%#p|%P|%^P|%Z|%#Z", "AM|am|am|am|EST|est"),
            ("%z|%:z|%::z|%:::z|%::::z|%_10z|%-:z", "-0500|-05:00|-05:00:00|-05|%::::z|      -500|-5:00"),
            ("%N|%3N|%_N|%-N|%12N|%_5N", "012300000|012|0123     |0123|012300000000|0123 "),
            (
                "%c|%^c|%25x|%r|%025r",
                "Tue Mar  5 10:00:05 2024|TUE MAR  5 10:00:05 2024|                 03/05/24|10:00:05 AM|0000000000000010:00:05 AM",
            ),
            ("%s|%15s|%_15s|%q|%j|%k", "1709650805|000001709650805|     1709650805|1|065|10"),
        ];
        for (format, text) in table {
            assert_eq!(
                show(format.as_bytes(), "EST5EDT,M3.2.0,M11.1.0", 1_709_650_805, 12_300_000),
                text,
                "{format}"
            );
        }
    }

    #[test]
    fn text_that_is_not_a_directive_is_copied() {
        let table = [
            ("%Q|%|%5%d|%E%|%-", "%Q|%|   %505|%E%|%-"),
            ("%Ed|%OA|%OF|%EN|%:d|%i", "%Ed|%OA|%OF|%EN|%:d|%i"),
            ("%Od|%EY|%Ec|%OB|%Es|%10Ed", "05|2024|Tue Mar  5 15:00:05 2024|March|1709650805|     %10Ed"),
            ("a%%b%n%t%3n%", "a%b\\n\\t  \\n%"),
        ];
        for (format, text) in table {
            assert_eq!(show(format.as_bytes(), "UTC0", 1_709_650_805, 0), text, "{format}");
        }
        assert_eq!(show(b"\xff%\xfe", "UTC0", 0, 0), "\\xff%\\xfe");
    }

    #[test]
    fn years_before_christ_and_far_ahead() {
        let table = [
            (-62_135_596_801, "0000-12-31|0000|00|00|0|12/31/00|12/31/00"),
            (-63_745_056_000, "-050-01-01|-050|-0|50|-50|01/01/50|01/01/50"),
            (-99_999_999_999, "-1199-02-15|-1199|-11|99|-1199|02/15/99|02/15/01"),
            (253_402_300_800, "+10000-01-01|10000|100|00|10000|01/01/00|01/01/00"),
        ];
        for (sec, text) in table {
            assert_eq!(show(b"%F|%Y|%C|%y|%EY|%D|%x", "UTC0", sec, 0), text, "{sec}");
        }
    }

    /// A directive whose meaning is the same in all releases of date(1), and that does not end in a
    /// line break.
    fn directive() -> impl Strategy<Value = Vec<u8>> {
        let flag = proptest::sample::select(vec!["", "", "_", "0", "+", "^", "#"]);
        let width = proptest::sample::select(vec!["", "", "", "1", "3", "5", "12", "20"]);
        let letters = "aAbBcCdDeFgGhHIjklmMNpPqrRsSTuUVwWxXyYzZ";
        let conversions = letters
            .chars()
            .map(String::from)
            .chain(["Ey", "EC", "Ec", ":z", "::z", ":::z", "Q"].map(String::from));
        let conversion = proptest::sample::select(conversions.collect::<Vec<_>>());
        let after = proptest::sample::select(vec!["", "|", " x"]);
        (flag, width, conversion, after).prop_map(|(flag, width, conversion, after)| {
            ["%", flag, width, &conversion, after].concat().into_bytes()
        })
    }

    fn shown_by_date(format: &[u8], tz: &str, times: &[(i64, u32)]) -> Vec<String> {
        use std::os::unix::ffi::OsStringExt;
        let mut date = Command::new("/usr/bin/date");
        date.env_clear().env("LC_ALL", "C").env("TZ", tz).arg("-f-");
        date.arg(std::ffi::OsString::from_vec([b"+", format].concat()));
        let mut child =
            date.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the caller found it");
        let input: String = times.iter().map(|(sec, nsec)| format!("@{sec}.{nsec:09}\n")).collect();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        output.stdout.split(|&b| b == b'\n').map(|line| line.escape_ascii().to_string()).collect()
    }

    const ZONES: [&str; 9] = [
        "UTC0",
        "",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Africa/Monrovia",
        "Europe/Dublin",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "NZST-12NZDT,M9.5.0,M4.1.0/3",
    ];

    proptest! {
        #![proptest_config(fathom_cases::property(200))]

        #[test]
        fn equals_gnu_date(
            directives in proptest::collection::vec(directive(), 1..6),
            tz in proptest::sample::select(ZONES.to_vec()),
            // date(1) interprets a fraction as its distance from the whole second towards zero.
            recent in proptest::collection::vec((0i64..5_000_000_000, 0u32..1_000_000_000), 20),
            wide in proptest::collection::vec((-100_000_000_000i64..400_000_000_000, Just(0u32)), 20),
        ) {
            if !Path::new("/usr/bin/date").exists() {
                println!("skipped: no /usr/bin/date");
                return Ok(());
            }
            let (format, times) = (directives.concat(), [recent, wide].concat());
            let theirs = shown_by_date(&format, tz, &times);
            for ((sec, nsec), theirs) in times.into_iter().zip(theirs) {
                prop_assert_eq!(show(&format, tz, sec, nsec), theirs, "{} {} {}", format.escape_ascii(), tz, sec);
            }
        }
    }
}
