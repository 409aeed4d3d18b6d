//! Names as columns have them: UTF-8 that any reader takes, and the bytes themselves where a name is something else.

use std::borrow::Cow;
use std::fmt::Write;

/// Longest extension that counts as one, in bytes.
const EXTENSION_BYTES: usize = 16;

/// `name` for a column of texts. What is not UTF-8 has its bytes beyond it as `\xNN`, and a backslash twice, so that two names
/// stay two; such a name goes into the column of bytes as well.
pub(crate) fn readable(name: &[u8]) -> (Cow<'_, str>, Option<&[u8]>) {
    match std::str::from_utf8(name) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(_) => (Cow::Owned(escaped(name)), Some(name)),
    }
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for part in name.utf8_chunks() {
        text.push_str(&part.valid().replace('\\', "\\\\"));
        for byte in part.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes what it is given");
        }
    }
    text
}

/// What follows the last dot of a name, in lower case: a whole suffix of a name that does not begin with that dot, of letters,
/// digits and the like.
pub(crate) fn extension<'b>(name: &str, buffer: &'b mut [u8; EXTENSION_BYTES]) -> Option<&'b [u8]> {
    let dot = name.bytes().rposition(|byte| byte == b'.').filter(|dot| *dot > 0)?;
    let suffix = &name.as_bytes()[dot + 1..];
    if suffix.is_empty() || suffix.len() > EXTENSION_BYTES {
        return None;
    }
    let buffer = &mut buffer[..suffix.len()];
    buffer.copy_from_slice(suffix);
    buffer.make_ascii_lowercase();
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf8_stays_readable_and_apart() {
        assert_eq!(readable("a\\ü".as_bytes()), (Cow::Borrowed("a\\ü"), None));
        assert_eq!(readable(b"a\\\xff"), (Cow::Owned("a\\\\\\xff".to_owned()), Some(&b"a\\\xff"[..])));
    }

    #[test]
    fn extensions_are_short_suffixes() {
        let ext = |name: &str| extension(name, &mut [0; EXTENSION_BYTES]).map(<[u8]>::to_vec);
        assert_eq!(ext("a.TXT"), Some(b"txt".to_vec()));
        assert_eq!(ext("a.tar.gz"), Some(b"gz".to_vec()));
        for none in ["a", ".bashrc", "a.", "", "a.12345678901234567"] {
            assert_eq!(ext(none), None, "{none}");
        }
    }
}
