//! The syntax of JSON Lines: an object on a line of its own.

use fathom_text::quote::is_invisible;

/// A writer of one JSON object on a line of its own.
#[derive(Debug)]
pub(crate) struct JsonObject<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> JsonObject<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Writes the closing brace and ends the line.
    pub(crate) fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }

    /// Begins a member. `name` is written unescaped.
    fn member(&mut self, name: &str) {
        let comma = if std::mem::take(&mut self.is_empty) { "\"" } else { ",\"" };
        for part in [comma, name, "\":"] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    /// Writes a text. Bytes that are not UTF-8 are replaced; then a member `NAME_bytes` holds all
    /// bytes in hexadecimal.
    pub(crate) fn text(&mut self, name: &str, value: &[u8]) {
        self.member(name);
        write_string(&String::from_utf8_lossy(value), self.out);
        if std::str::from_utf8(value).is_err() {
            self.member(&format!("{name}_bytes"));
            write_hex(value, self.out);
        }
    }

    /// Writes an unsigned integer.
    pub(crate) fn number(&mut self, name: &str, value: u64) {
        self.member(name);
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    /// Writes a signed integer.
    pub(crate) fn signed(&mut self, name: &str, value: i64) {
        self.member(name);
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    /// Writes a list of words, unescaped.
    pub(crate) fn words(&mut self, name: &str, words: &[&str]) {
        self.member(name);
        let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        self.out.extend_from_slice(format!("[{}]", quoted.join(",")).as_bytes());
    }

    /// Writes a list of texts. Bytes that are not UTF-8 are replaced; then a member `NAME_bytes`
    /// holds all bytes of each text in hexadecimal.
    pub(crate) fn texts(&mut self, name: &str, values: &[Vec<u8>]) {
        self.member(name);
        write_list(values, self.out, &|value, out| write_string(&String::from_utf8_lossy(value), out));
        if values.iter().any(|value| std::str::from_utf8(value).is_err()) {
            self.member(&format!("{name}_bytes"));
            write_list(values, self.out, &write_hex);
        }
    }

    /// Writes a number given in thousandths.
    pub(crate) fn per_mille(&mut self, name: &str, value: u64) {
        self.member(name);
        self.out.extend_from_slice(format!("{}.{:03}", value / 1000, value % 1000).as_bytes());
    }

    /// Writes true or false.
    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        self.member(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes null.
    pub(crate) fn null(&mut self, name: &str) {
        self.member(name);
        self.out.extend_from_slice(b"null");
    }

    /// Writes an object.
    pub(crate) fn nested(&mut self, name: &str, write: impl FnOnce(&mut JsonObject<'_>)) {
        self.member(name);
        self.out.push(b'{');
        write(&mut JsonObject { out: self.out, is_empty: true });
        self.out.push(b'}');
    }
}

fn write_list(values: &[Vec<u8>], out: &mut Vec<u8>, write: &dyn Fn(&[u8], &mut Vec<u8>)) {
    out.push(b'[');
    for (at, value) in values.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b"," } else { b"" });
        write(value, out);
    }
    out.push(b']');
}

/// Writes bytes as a string of hexadecimal digits.
fn write_hex(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let digits = value.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    out.push(b'"');
}

/// Writes a string. In addition to what JSON requires, escapes DEL and the C1 controls, which some
/// terminals obey, and characters that show nothing or turn the text after them.
fn write_string(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    serde_json::to_writer(&mut *out, text).expect("a vector takes every write");
    let is_harmful = |c: char| ('\u{7f}'..='\u{9f}').contains(&c) || is_invisible(c);
    if text.contains(is_harmful) {
        let written = String::from_utf8(out.split_off(start)).expect("JSON is UTF-8");
        for c in written.chars() {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            let escaped = units.map(|unit| format!("\\u{unit:04x}"));
            out.extend(if is_harmful(c) { escaped.collect() } else { c.to_string() }.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut JsonObject<'_>)) -> String {
        let mut out = Vec::new();
        let mut object = JsonObject::new(&mut out);
        write(&mut object);
        object.end();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_are_separated_and_objects_end_a_line() {
        assert_eq!(written(|_| ()), "{}\n");
        let text = written(|object| {
            object.number("a", u64::MAX);
            object.signed("s", i64::MIN);
            object.words("w", &["x", "y"]);
            object.flag("b", true);
            object.nested("c", |inner| inner.null("d"));
            object.per_mille("e", 7);
            object.per_mille("f", 1000);
        });
        assert_eq!(
            text,
            "{\"a\":18446744073709551615,\"s\":-9223372036854775808,\"w\":[\"x\",\"y\"],\"b\":true,\"c\":{\"d\":null},\"e\":0.007,\"f\":1.000}\n"
        );
    }

    #[test]
    fn text_comes_back_and_holds_no_control_characters() {
        let hostile = "a\"\\\n\x1b[31m\x7f\u{9b}2J\u{e9}\u{202e}\u{e0041}";
        let text = written(|object| object.text("path", hostile.as_bytes()));
        assert!(!text.trim_end().contains(|c: char| c.is_control() || is_invisible(c)), "{text:?}");
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed, serde_json::json!({ "path": hostile }));
    }

    #[test]
    fn bytes_that_are_no_text_are_in_a_member_of_their_own() {
        let text = written(|object| object.text("path", b"a\xff\0"));
        let expected = "{\"path\":\"a\u{fffd}\\u0000\",\"path_bytes\":\"61ff00\"}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn lists_of_texts_are_escaped_like_texts() {
        let text = written(|object| object.texts("paths", &[b"a\"\x1b".to_vec(), b"b".to_vec()]));
        assert_eq!(text, "{\"paths\":[\"a\\\"\\u001b\",\"b\"]}\n");
        let text = written(|object| object.texts("paths", &[b"\xff".to_vec(), b"b".to_vec()]));
        assert_eq!(text, "{\"paths\":[\"\u{fffd}\",\"b\"],\"paths_bytes\":[\"ff\",\"62\"]}\n");
    }
}
