//! Names quoted as GNU's programs quote them: in messages, for a shell or in the locale's quotation
//! marks; in output, as ls(1) writes them to a terminal or to a pipe. A name is any sequence of
//! bytes; characters that the locale cannot print become octal escapes.

mod printable;

use std::borrow::Cow;

pub use self::printable::is_invisible;
use self::printable::is_joiner;
pub(crate) use self::printable::is_printable;

/// The character encoding of names and messages, from the locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Charset {
    /// The C and POSIX locales, in which every byte above 0x7f is unprintable.
    #[default]
    Ascii,
    /// Any locale with UTF-8.
    Utf8,
}

/// The form of a name in the output.
///
/// ```
/// use fathom_text::quote::{Charset, NameStyle};
///
/// let mut out = Vec::new();
/// NameStyle::of(true, false, Charset::Utf8).write(b"a\x1bb", &mut out);
/// assert_eq!(out, br"'a'$'\033''b'");
/// // A pipe gets the bytes.
/// assert_eq!(NameStyle::of(false, false, Charset::Utf8), NameStyle::Literal);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NameStyle {
    /// Raw bytes, for programs.
    #[default]
    Literal,
    /// The form of ls(1) on a terminal: [`shell_escape`].
    Shell(Charset),
    /// The form of [`escape_controls`], for a terminal with NUL-terminated names.
    Escaped,
}

impl NameStyle {
    /// Returns the style for standard output. `terminal` tells whether it is a terminal,
    /// `ends_in_nul` whether names end in NUL bytes instead of line ends.
    #[must_use]
    pub fn of(terminal: bool, ends_in_nul: bool, charset: Charset) -> Self {
        match (terminal, ends_in_nul) {
            (false, _) => Self::Literal,
            (true, false) => Self::Shell(charset),
            (true, true) => Self::Escaped,
        }
    }

    /// Appends `name` in this style.
    pub fn write(self, name: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Literal => out.extend_from_slice(name),
            Self::Shell(charset) => out.extend_from_slice(&shell_escape(name, charset)),
            Self::Escaped => out.extend_from_slice(&escape_controls(name)),
        }
    }

    /// Rewrites the name at the end of `out`, from `start` on, in this style.
    pub fn finish(self, start: usize, out: &mut Vec<u8>) {
        if self != Self::Literal {
            let name = out.split_off(start);
            self.write(&name, out);
        }
    }
}

/// The characters that quoted text has as escapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escaped {
    /// Those that the locale cannot print, as GNU's programs do.
    Unprintable,
    /// Also those that show nothing or change the direction of text, for a terminal. Joiners
    /// between two characters beyond ASCII stay.
    Invisible,
}

/// Escapes `text` for a terminal. Control characters other than line ends, tabs and NUL bytes,
/// including C1 (ECMA-48), characters that show nothing or change the direction of text, and bytes
/// that are not UTF-8 become the escapes of [`quote`].
///
/// ```
/// use fathom_text::quote::escape_controls;
///
/// assert_eq!(&escape_controls(b"a\x1b[31m\n")[..], b"a\\033[31m\n");
/// assert_eq!(&escape_controls("a\u{202e}b".as_bytes())[..], b"a\\342\\200\\256b");
/// ```
#[must_use]
pub fn escape_controls(text: &[u8]) -> Cow<'_, [u8]> {
    let is_harmless = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | 0);
    if text.iter().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    for piece in chars_or_bytes(text, Charset::Utf8, Escaped::Invisible) {
        let is_harmful = match std::str::from_utf8(piece.bytes) {
            Ok(text) => text.contains(|c: char| c.is_control() || is_invisible(c)),
            Err(_) => true,
        };
        match piece.escape().filter(|_| is_harmful && !piece.bytes.iter().all(is_harmless)) {
            Some(escape) => write_escape(escape, piece.bytes, &mut out),
            None => out.extend_from_slice(piece.bytes),
        }
    }
    Cow::Owned(out)
}

/// Quotes `name` in a form that a shell can read back: `'a b'`, `"it's"`, `'a'$'\n''b'`.
///
/// ```
/// use fathom_text::quote::{Charset, quote, quoteaf, quotef, shell_escape};
///
/// assert_eq!(quoteaf(b"it's", Charset::Utf8), br#""it's""#);
/// assert_eq!(shell_escape(b"plain", Charset::Utf8), b"plain");
/// assert_eq!(quotef(b"a:b", Charset::Utf8), b"'a:b'");
/// assert_eq!(quote(b"a\nb", Charset::Ascii), br"'a\nb'");
/// ```
pub fn quoteaf(name: &[u8], charset: Charset) -> Vec<u8> {
    quoted(name, charset, Escaped::Unprintable)
}

fn quoted(name: &[u8], charset: Charset, escaped: Escaped) -> Vec<u8> {
    if name.contains(&b'\'')
        && chars_or_bytes(name, charset, escaped).all(|piece| piece.fits_double_quotes(name.len()))
    {
        return [b"\"", name, b"\""].concat();
    }
    let mut out = Vec::with_capacity(name.len() + 2);
    out.push(b'\'');
    let mut escaping = false;
    for piece in chars_or_bytes(name, charset, escaped) {
        match piece.escape() {
            Some(escape) => {
                out.extend_from_slice(if escaping { b"" } else { b"'$'" });
                escaping = true;
                write_escape(escape, piece.bytes, &mut out);
            }
            None if piece.bytes == b"'" => {
                out.extend_from_slice(b"'\\''");
                escaping = false;
            }
            None => {
                out.extend_from_slice(if escaping { b"''" } else { b"" });
                escaping = false;
                out.extend_from_slice(piece.bytes);
            }
        }
    }
    out.push(b'\'');
    out
}

/// Returns `name` for a terminal: unchanged if a shell takes it as one word, else quoted.
/// Characters that show nothing or change the direction of text are escaped, which ls(1) does not
/// do.
pub fn shell_escape(name: &[u8], charset: Charset) -> Vec<u8> {
    word(name, charset, Escaped::Invisible)
}

/// Quotes `name` with [`quoteaf`] unless a shell takes it as one word without a colon: for
/// `NAME: CAUSE`.
pub fn quotef(name: &[u8], charset: Charset) -> Vec<u8> {
    if name.contains(&b':') { quoteaf(name, charset) } else { word(name, charset, Escaped::Unprintable) }
}

fn word(name: &[u8], charset: Charset, escaped: Escaped) -> Vec<u8> {
    let mut pieces = chars_or_bytes(name, charset, escaped);
    let needs_quotes = name.is_empty() || pieces.any(|piece| piece.is_special_to_shells(name.len()));
    if needs_quotes { quoted(name, charset, escaped) } else { name.to_vec() }
}

/// Quotes `text` in the locale's quotation marks with C escapes: `‘a\nb’`, or `'a\nb'` where the
/// charset lacks those marks.
pub fn quote(text: &[u8], charset: Charset) -> Vec<u8> {
    let (left, right): (&[u8], &[u8]) = match charset {
        Charset::Ascii => (b"'", b"'"),
        Charset::Utf8 => ("‘".as_bytes(), "’".as_bytes()),
    };
    let mut out = Vec::with_capacity(text.len() + left.len() + right.len());
    out.extend_from_slice(left);
    for piece in chars_or_bytes(text, charset, Escaped::Unprintable) {
        match piece.escape() {
            Some(escape) => write_escape(escape, piece.bytes, &mut out),
            None => {
                let marked = piece.bytes == b"\\" || piece.bytes == right;
                out.extend_from_slice(if marked { b"\\" } else { b"" });
                out.extend_from_slice(piece.bytes);
            }
        }
    }
    out.extend_from_slice(right);
    out
}

/// A character, or a byte that is not part of a valid character.
#[derive(Clone, Copy)]
struct CharOrByte<'a> {
    bytes: &'a [u8],
    start: usize,
    printable: bool,
}

/// The escape of an unprintable character.
enum Escape {
    Letter(u8),
    Octal,
}

impl CharOrByte<'_> {
    fn escape(&self) -> Option<Escape> {
        let letter = match self.bytes {
            [0x07] => b'a',
            [0x08] => b'b',
            [b'\t'] => b't',
            [b'\n'] => b'n',
            [0x0b] => b'v',
            [0x0c] => b'f',
            [b'\r'] => b'r',
            _ if self.printable => return None,
            _ => return Some(Escape::Octal),
        };
        Some(Escape::Letter(letter))
    }

    /// Returns whether a shell takes the character literally both inside and outside `"`, as
    /// approximated by GNU's programs.
    fn fits_double_quotes(&self, name_len: usize) -> bool {
        match self.bytes {
            b"#" | b"~" => self.start == 0,
            b"{" | b"}" => name_len == 1,
            [b'!' | b'"' | b'$' | b'&' | b'(' | b')' | b'*' | b';' | b'<' | b'=' | b'>' | b'?'] => false,
            [b'[' | b'\\' | b'^' | b'`' | b'|'] => false,
            _ => self.printable,
        }
    }

    fn is_special_to_shells(&self, name_len: usize) -> bool {
        match self.bytes {
            b"#" | b"~" => self.start == 0,
            b"{" | b"}" => name_len == 1,
            b" " | b"'" => true,
            _ => !self.fits_double_quotes(name_len),
        }
    }
}

fn write_escape(escape: Escape, bytes: &[u8], out: &mut Vec<u8>) {
    match escape {
        Escape::Letter(letter) => out.extend_from_slice(&[b'\\', letter]),
        Escape::Octal => {
            for byte in bytes {
                let digit = |shift: u8| b'0' + (byte >> shift & 7);
                out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
            }
        }
    }
}

fn chars_or_bytes(name: &[u8], charset: Charset, escaped: Escaped) -> impl Iterator<Item = CharOrByte<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = name.get(start..).filter(|rest| !rest.is_empty())?;
        let (len, printable) = match charset {
            Charset::Utf8 => first_char(rest).map_or((1, false), |c| {
                let joins = || joins(&name[..start], &rest[c.len_utf8()..]);
                let is_hidden =
                    escaped == Escaped::Invisible && is_invisible(c) && !(is_joiner(c) && joins());
                (c.len_utf8(), is_printable(c) && !is_hidden)
            }),
            Charset::Ascii => (1, (b' '..=b'~').contains(&rest[0])),
        };
        let piece = CharOrByte { bytes: &rest[..len], start, printable };
        start += len;
        Some(piece)
    })
}

/// Returns whether a joiner between two texts is part of a word or an emoji.
fn joins(before: &[u8], after: &[u8]) -> bool {
    let is_joined = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_invisible(c));
    // A character is whole in the last bytes if it is in the last chunk of them.
    let last = before[before.len().saturating_sub(4)..].utf8_chunks().last();
    let last = last.filter(|chunk| chunk.invalid().is_empty());
    is_joined(last.and_then(|chunk| chunk.valid().chars().next_back())) && is_joined(first_char(after))
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = longest.utf8_chunks().next()?.valid();
    valid.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const LOCALES: [(&str, Charset); 2] = [("C", Charset::Ascii), ("C.UTF-8", Charset::Utf8)];

    #[test]
    fn words_a_shell_takes_as_they_are_stay_bare_only_where_allowed() {
        for charset in [Charset::Ascii, Charset::Utf8] {
            assert_eq!(quoteaf(b"a", charset), b"'a'");
            assert_eq!(shell_escape(b"a:b", charset), b"a:b");
            assert_eq!(quotef(b"a:b", charset), b"'a:b'");
            assert_eq!(quotef(b"a", charset), b"a");
            assert_eq!(quotef(b"", charset), b"''");
        }
    }

    #[test]
    fn single_quotes_take_the_shorter_form() {
        assert_eq!(quoteaf(b"it's", Charset::Utf8), b"\"it's\"");
        assert_eq!(quoteaf(b"it's $1", Charset::Utf8), b"'it'\\''s $1'");
        assert_eq!(quoteaf(b"'\n'", Charset::Utf8), b"''\\'''$'\\n'\\'''");
        assert_eq!(quoteaf(b"\n'\n", Charset::Utf8), b"''$'\\n'\\'''$'\\n'");
    }

    #[test]
    fn the_locale_decides_about_marks_and_high_bytes() {
        assert_eq!(quote("a\\é’\n".as_bytes(), Charset::Utf8), "‘a\\\\é\\’\\n’".as_bytes());
        assert_eq!(quote("é'".as_bytes(), Charset::Ascii), b"'\\303\\251\\''");
        assert_eq!(quoteaf(b"a\xffb", Charset::Utf8), b"'a'$'\\377''b'");
    }

    #[test]
    fn escaped_text_has_no_control_characters_but_line_ends_tabs_and_nuls() {
        let escaped = |text: &[u8]| escape_controls(text).into_owned();
        assert_eq!(escaped(b"a b\n\tc\0"), b"a b\n\tc\0");
        assert_eq!(escaped(b"\x1b[31m\x07\r\x7f"), b"\\033[31m\\a\\r\\177");
        assert_eq!(
            escaped("\u{9b}2J\u{e9}\u{2028}\u{378}".as_bytes()),
            "\\302\\2332J\u{e9}\u{2028}\u{378}".as_bytes()
        );
        assert_eq!(escaped(b"a\x9b\xffb\xe2\x82"), b"a\\233\\377b\\342\\202");
        for name in names() {
            for style in
                [NameStyle::Shell(Charset::Utf8), NameStyle::Shell(Charset::Ascii), NameStyle::Escaped]
            {
                let mut out = b"before".to_vec();
                out.extend_from_slice(&name);
                style.finish(6, &mut out);
                let text = String::from_utf8(out).unwrap();
                assert!(!text.contains(|c: char| c.is_control() && !"\n\t".contains(c)), "{text:?}");
                assert!(style == NameStyle::Escaped || !text.contains(['\n', '\t']), "{text:?}");
            }
        }
    }

    /// Once, `annexe<U+202E>gpj.exe` was shown as a picture.
    #[test]
    fn a_terminal_gets_no_character_that_hides_or_turns_others() {
        let name = "annexe\u{202e}gpj.exe".as_bytes();
        assert_eq!(shell_escape(name, Charset::Utf8), br"'annexe'$'\342\200\256''gpj.exe'");
        assert_eq!(&escape_controls(name)[..], br"annexe\342\200\256gpj.exe");
        // As GNU's programs have it in messages.
        assert_eq!(quotef(name, Charset::Utf8), name);
        for c in ['\u{ad}', '\u{200b}', '\u{200d}', '\u{2066}', '\u{2069}', '\u{feff}', '\u{e0041}'] {
            let name = format!("a{c}b");
            assert_ne!(shell_escape(name.as_bytes(), Charset::Utf8), name.as_bytes(), "{name:?}");
            assert!(escape_controls(name.as_bytes()).is_ascii(), "{name:?}");
        }
        for name in ["می\u{200c}خواهم", "👩\u{200d}💻", "é", "\u{600}1"] {
            assert_eq!(shell_escape(name.as_bytes(), Charset::Utf8), name.as_bytes());
            assert_eq!(&escape_controls(name.as_bytes())[..], name.as_bytes());
        }
        for name in ["é\u{200d}", "é\u{200d}\u{200d}é", "\u{200c}é", "a\u{200c}é"] {
            assert_ne!(shell_escape(name.as_bytes(), Charset::Utf8), name.as_bytes(), "{name:?}");
        }
    }

    /// Bytes and characters that some rule distinguishes, and all short strings of them.
    fn names() -> BTreeSet<Vec<u8>> {
        let single = (1..=255).map(|byte| vec![byte]);
        let partners = b"a'\n{\xc3\xa9#~";
        let pairs = (1..=255).flat_map(|a| partners.map(|b| (a, b)));
        let pairs = pairs.flat_map(|(a, b)| [vec![a, b], vec![b, a], vec![b'x', a, b]]);
        let parts: [&[u8]; 16] = [
            b"'",
            b"a",
            b" ",
            b"\n",
            b"\x7f",
            b"\\",
            b"$",
            b"\xff",
            b"\xc3",
            b"\xa9",
            "é".as_bytes(),
            "’".as_bytes(),
            "\u{2028}".as_bytes(),
            "\u{378}".as_bytes(),
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
        ];
        let triples = (0..16 * 16 * 16).map(|n| [parts[n / 256], parts[n / 16 % 16], parts[n % 16]].concat());
        single.chain(pairs).chain(triples).filter(|name| !name.contains(&b'/')).collect()
    }

    /// GNU du up to at least 9.1 drops a `$` in names that contain a single quote and end in an
    /// escape.
    fn is_misprinted_by_old_versions(name: &[u8], charset: Charset) -> bool {
        name.contains(&b'\'')
            && chars_or_bytes(name, charset, Escaped::Unprintable)
                .last()
                .is_some_and(|piece| piece.escape().is_some())
    }

    fn oracle(locale: &str) -> Option<Command> {
        let exists = std::path::Path::new("/usr/bin/du").exists();
        exists.then(|| {
            let mut du = Command::new("/usr/bin/du");
            du.arg0("du").env_clear().env("LC_ALL", locale);
            du
        })
    }

    fn stderr_lines(mut du: Command) -> Vec<Vec<u8>> {
        let output = du.output().expect("du was found above");
        output.stderr.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn operands_that_are_missing_read_as_in_gnu_du() {
        let empty = tempfile::tempdir().unwrap();
        let names: Vec<Vec<u8>> = names().into_iter().filter(|name| name != b".").collect();
        for (locale, charset) in LOCALES {
            for batch in names.chunks(2000) {
                let Some(mut du) = oracle(locale) else { return println!("skipped: no /usr/bin/du") };
                du.current_dir(empty.path()).arg("--").args(batch.iter().map(|name| OsStr::from_bytes(name)));
                let lines = stderr_lines(du);
                assert_eq!(lines.len(), batch.len() + 1, "one line a name");
                let lines = lines.iter().zip(batch);
                for (line, name) in lines.filter(|(_, name)| !is_misprinted_by_old_versions(name, charset)) {
                    let ours =
                        [b"du: cannot access ", &quoteaf(name, charset)[..], b": No such file or directory"];
                    assert_eq!(
                        line.escape_ascii().to_string(),
                        ours.concat().escape_ascii().to_string(),
                        "{locale}"
                    );
                }
            }
        }
    }

    #[test]
    fn files_that_cannot_be_opened_read_as_in_gnu_du() {
        let empty = tempfile::tempdir().unwrap();
        let names: Vec<Vec<u8>> = names().into_iter().filter(|name| name != b"." && name != b"-").collect();
        for (locale, charset) in LOCALES {
            for batch in names.chunks(2000) {
                let Some(mut du) = oracle(locale) else { return println!("skipped: no /usr/bin/du") };
                du.current_dir(empty.path());
                du.args(
                    batch.iter().map(|name| OsStr::from_bytes(&[b"-X", &name[..]].concat()).to_os_string()),
                );
                let lines = stderr_lines(du);
                let lines = lines.iter().zip(batch);
                for (line, name) in lines.filter(|(_, name)| !is_misprinted_by_old_versions(name, charset)) {
                    let ours = [b"du: ", &quotef(name, charset)[..], b": No such file or directory"].concat();
                    assert_eq!(line.escape_ascii().to_string(), ours.escape_ascii().to_string(), "{locale}");
                }
            }
        }
    }

    #[test]
    fn bad_arguments_read_as_in_gnu_du() {
        for (locale, charset) in LOCALES {
            for name in names().iter().step_by(23) {
                let Some(mut du) = oracle(locale) else { return println!("skipped: no /usr/bin/du") };
                du.args([OsStr::new("-d"), OsStr::from_bytes(&[b"x", &name[..]].concat())]);
                let ours = [b"du: invalid maximum depth ", &quote(&[b"x", &name[..]].concat(), charset)[..]]
                    .concat();
                let line = &stderr_lines(du)[0];
                assert_eq!(line.escape_ascii().to_string(), ours.escape_ascii().to_string(), "{locale}");
            }
        }
    }
}
