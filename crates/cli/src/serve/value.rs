//! Values of options, from the command line or the environment, and their parsers. Independent of
//! the individual options.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::str::FromStr;

use fathom_serve::config::words::Word;
use fathom_text::quote::{Charset, quote};
use fathom_text::{duration, number};

use super::table::ServeOption;

const YES: [&str; 4] = ["yes", "on", "true", "1"];
const NO: [&str; 4] = ["no", "off", "false", "0"];

/// An option and its value.
#[derive(Clone, Debug)]
pub(crate) struct OptionArg {
    pub(crate) key: ServeOption,
    /// The name for messages: `--port`, or the variable.
    pub(crate) name: String,
    /// The value, if there is one.
    pub(crate) value: Option<Vec<u8>>,
    /// The charset of messages.
    pub(crate) charset: Charset,
}

/// The value of an option that can be turned off.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Switch<'v> {
    Off,
    /// Turned on, without a value.
    On,
    Value(&'v str),
}

impl OptionArg {
    /// Returns the message for a value that is not `expected`, without the program name.
    pub(crate) fn refuse(&self, expected: &str) -> Vec<u8> {
        let quoted = |text: &[u8]| quote(text, self.charset);
        let value = quoted(self.value.as_deref().unwrap_or_default());
        [
            b"invalid argument ",
            &value[..],
            b" for ",
            &quoted(self.name.as_bytes()),
            b": ",
            expected.as_bytes(),
        ]
        .concat()
    }

    pub(crate) fn text(&self) -> Result<&str, Vec<u8>> {
        std::str::from_utf8(self.value.as_deref().unwrap_or_default()).map_err(|_| self.refuse("not UTF-8"))
    }

    pub(crate) fn path(&self) -> Result<PathBuf, Vec<u8>> {
        match self.value.clone().unwrap_or_default() {
            empty if empty.is_empty() => Err(self.refuse("the path is empty")),
            value => Ok(OsString::from_vec(value).into()),
        }
    }

    pub(crate) fn number<T: FromStr>(&self, expected: &str) -> Result<T, Vec<u8>> {
        let text = self.text()?;
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.refuse(expected))
    }

    /// Parses a number of bytes.
    pub(crate) fn size<T: TryFrom<i128>>(&self) -> Result<T, Vec<u8>> {
        let reading = number::read(self.text()?.as_bytes(), 0, i64::MAX.into(), number::SIZE_UNITS);
        let size = reading.error.is_none().then(|| T::try_from(reading.value).ok()).flatten();
        size.ok_or_else(|| self.refuse("expected a number of bytes, or a size like 64K or 16M"))
    }

    /// Parses a duration. Returns milliseconds.
    pub(crate) fn time(&self) -> Result<u64, Vec<u8>> {
        let time = duration::parse_or_seconds(self.text()?.as_bytes()).ok();
        let ms = time.and_then(|time| u64::try_from(time.as_millis()).ok());
        ms.ok_or_else(|| self.refuse(duration::FORMS))
    }

    pub(crate) fn switch(&self) -> Result<Switch<'_>, Vec<u8>> {
        Ok(match self.text()? {
            word if NO.contains(&word) => Switch::Off,
            word if word.is_empty() || YES.contains(&word) => Switch::On,
            value => Switch::Value(value),
        })
    }

    pub(crate) fn yes(&self) -> Result<bool, Vec<u8>> {
        match self.switch()? {
            Switch::On => Ok(true),
            Switch::Off => Ok(false),
            Switch::Value(_) => Err(self.refuse("expected yes or no")),
        }
    }

    pub(crate) fn word<T: Word>(&self) -> Result<T, Vec<u8>> {
        self.value_of(self.text()?)
    }

    /// Parses words separated by commas.
    pub(crate) fn words<T: Word>(&self) -> Result<Vec<T>, Vec<u8>> {
        list(self.text()?).iter().map(|word| self.value_of(word)).collect()
    }

    fn value_of<T: Word>(&self, word: &str) -> Result<T, Vec<u8>> {
        T::from_word(word).ok_or_else(|| self.refuse(&format!("expected one of {}", T::WORDS.join(", "))))
    }

    /// Splits the value at the first `between`.
    pub(crate) fn pair(&self, between: char, expected: &str) -> Result<(String, String), Vec<u8>> {
        let pair = self.text()?.split_once(between).filter(|(before, _)| !before.is_empty());
        pair.map(|(before, behind)| (before.to_owned(), behind.to_owned()))
            .ok_or_else(|| self.refuse(expected))
    }

    /// Splits the value at the first `=` into a text and a path, which may contain any bytes.
    pub(crate) fn path_pair(&self, expected: &str) -> Result<(String, PathBuf), Vec<u8>> {
        let value = self.value.as_deref().unwrap_or_default();
        let mut parts = value.splitn(2, |byte| *byte == b'=');
        let text = parts.next().and_then(|text| std::str::from_utf8(text).ok());
        let path = parts.next().filter(|path| !path.is_empty());
        match text.filter(|text| !text.is_empty()).zip(path) {
            Some((text, path)) => Ok((text.to_owned(), OsString::from_vec(path.to_vec()).into())),
            None => Err(self.refuse(expected)),
        }
    }
}

/// Splits a list at commas and line ends.
pub(crate) fn list(text: &str) -> Vec<String> {
    text.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Completes an address to the form that the server takes. `port` is the default port. `None` for
/// an invalid address.
pub(crate) fn address(text: &str, port: u16) -> Option<String> {
    if text == "systemd" || text.strip_prefix("unix:").is_some_and(|path| !path.is_empty()) {
        return Some(text.to_owned());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.to_string());
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, port).to_string());
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), text.parse().ok()?).to_string());
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, port),
    };
    // The server resolves `localhost` and the wildcard to the addresses of this machine.
    match host {
        "localhost" => Some(format!("localhost:{port}")),
        "" | "*" if !text.is_empty() => Some(format!(":{port}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &str) -> OptionArg {
        OptionArg {
            key: ServeOption::Port,
            name: "--port".to_owned(),
            value: Some(value.into()),
            charset: Charset::Ascii,
        }
    }

    #[test]
    fn times_have_units() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("7", Some(7_000)),
            ("0", Some(0)),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("+1s", None),
            ("1.5s", Some(1_500)),
            ("1h30m", Some(5_400_000)),
            ("1x", None),
            ("99999999999999999h", None),
        ] {
            assert_eq!(given(text).time().ok(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_and_numbers_are_whole() {
        assert_eq!(given("64K").size::<usize>(), Ok(65_536));
        assert_eq!(given("1MB").size::<u64>(), Ok(1_000_000));
        assert!(
            given("-1").size::<u64>().is_err()
                && given("1x").size::<u64>().is_err()
                && given("").size::<u64>().is_err()
        );
        assert_eq!(given("007").number::<u16>(""), Ok(7));
        for text in ["", "-1", "+1", "65536", "1x"] {
            let message = String::from_utf8(given(text).number::<u16>("a port").unwrap_err()).unwrap();
            assert_eq!(message, format!("invalid argument '{text}' for '--port': a port"));
        }
    }

    #[test]
    fn switches_know_yes_and_no() {
        for word in YES {
            assert_eq!((given(word).switch(), given(word).yes()), (Ok(Switch::On), Ok(true)));
        }
        for word in NO {
            assert_eq!((given(word).switch(), given(word).yes()), (Ok(Switch::Off), Ok(false)));
        }
        assert_eq!(given("/x").switch(), Ok(Switch::Value("/x")));
        assert!(given("/x").yes().is_err());
        assert_eq!(OptionArg { value: None, ..given("") }.yes(), Ok(true));
        assert!(OptionArg { value: Some(vec![0xff]), ..given("") }.text().is_err());
    }

    #[test]
    fn addresses_are_completed() {
        for (text, expected) in [
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("127.0.0.1", Some("127.0.0.1:9")),
            ("::1", Some("[::1]:9")),
            ("[::1]", Some("[::1]:9")),
            ("[::1]:80", Some("[::1]:80")),
            (":80", Some(":80")),
            ("*:80", Some(":80")),
            ("*", Some(":9")),
            ("localhost", Some("localhost:9")),
            ("localhost:80", Some("localhost:80")),
            ("unix:/run/a", Some("unix:/run/a")),
            ("systemd", Some("systemd")),
            ("", None),
            ("unix:", None),
            (":x", None),
            (":65536", None),
            ("a.example:80", None),
            ("8080", Some("127.0.0.1:8080")),
            ("0", Some("127.0.0.1:0")),
            ("65536", None),
            ("-1", None),
        ] {
            assert_eq!(address(text, 9).as_deref(), expected, "{text}");
        }
    }
}
