//! The text form of names: UTF-8 for every reader, and the bytes themselves where a name is not
//! UTF-8.

use std::borrow::Cow;
use std::fmt::Write;

/// Longest extension of a name, in bytes.
pub const EXTENSION_BYTES: usize = 16;

/// Returns `name` as text, and its bytes if the text differs from them. In a name that is not
/// UTF-8, invalid bytes are written as `\xNN` and a backslash is doubled. A UTF-8 name that
/// contains such a `\xNN` is escaped in the same way, so that no two names have the same text:
/// every text with `\xNN` in it is escaped, and the escapes can be undone.
pub fn to_text(name: &[u8]) -> (Cow<'_, str>, Option<&[u8]>) {
    match std::str::from_utf8(name) {
        Ok(text) if !looks_escaped(name) => (Cow::Borrowed(text), None),
        _ => (Cow::Owned(escape(name)), Some(name)),
    }
}

/// Returns whether `name` contains `\xNN` for a byte beyond ASCII, as [`escape`] writes it.
fn looks_escaped(name: &[u8]) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_high = |byte: u8| matches!(byte, b'8' | b'9' | b'a'..=b'f');
    name.contains(&b'\\')
        && name.windows(4).any(|part| part.starts_with(b"\\x") && is_high(part[2]) && is_hex(part[3]))
}

fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for part in name.utf8_chunks() {
        text.push_str(&part.valid().replace('\\', "\\\\"));
        for byte in part.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes what it is given");
        }
    }
    text
}

/// Returns the suffix after the last dot of a name, in lower case; `None` if it is empty or too
/// long, or if the dot is the first character.
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

/// Returns the extension of a file name as the column `ext` has it: the suffix after the last dot,
/// in lower case; `None` if it is empty or too long, or if the dot is the first character.
///
/// ```
/// use fathom_inventory::store::{EXTENSION_BYTES, name_extension};
///
/// let mut buffer = [0; EXTENSION_BYTES];
/// assert_eq!(name_extension(b"Photo.JPG", &mut buffer), Some(&b"jpg"[..]));
/// assert_eq!(name_extension(b".bashrc", &mut buffer), None);
/// ```
pub fn name_extension<'b>(name: &[u8], buffer: &'b mut [u8; EXTENSION_BYTES]) -> Option<&'b [u8]> {
    extension(&to_text(name).0, buffer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_are_not_utf8_have_a_text_of_their_own() {
        assert_eq!(to_text("a\\ü".as_bytes()), (Cow::Borrowed("a\\ü"), None));
        assert_eq!(to_text(b"a\\\xff"), (Cow::Owned("a\\\\\\xff".to_owned()), Some(&b"a\\\xff"[..])));
    }

    #[test]
    fn a_name_that_reads_like_an_escaped_one_is_escaped_as_well() {
        let text = |name: &[u8]| to_text(name).0.into_owned();
        assert_eq!(text(b"a\xffb"), "a\\xffb");
        assert_eq!(text(br"a\xffb"), r"a\\xffb");
        assert_eq!(to_text(br"a\xffb").1, Some(&br"a\xffb"[..]));
        for plain in [r"a\b", r"\x41", r"\xf", r"\xFF", r"x\\"] {
            assert_eq!(to_text(plain.as_bytes()), (Cow::Borrowed(plain), None));
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4000))]

        #[test]
        fn two_names_have_two_texts(one in name(), other in name()) {
            prop_assert_eq!(one == other, to_text(&one).0 == to_text(&other).0);
        }
    }

    /// Names of few bytes, so that two of them are often the same.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let parts = prop::sample::select(vec![&b"\\"[..], b"x", b"f", b"ff", b"\xff", b"\\xff", b"\\\\xff"]);
        prop::collection::vec(parts, 0..4).prop_map(|parts| parts.concat())
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
