//! JSON for a `script` element, in ASCII but for printable characters of names.

use std::fmt::{Display, Write};

/// JSON text that is being written. Commas are set where they belong.
#[derive(Debug, Default)]
pub(crate) struct JsonText(String);

impl JsonText {
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Begins a value or a name.
    fn begin(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(',');
        }
    }

    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.begin();
        self.0.push('{');
        members(self);
        self.0.push('}');
    }

    /// Writes the name of a member. A value has to follow.
    pub(crate) fn key(&mut self, name: &str) -> &mut Self {
        self.text(name.as_bytes());
        self.0.push(':');
        self
    }

    pub(crate) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.begin();
        self.0.push('[');
        items.into_iter().for_each(|item| each(self, item));
        self.0.push(']');
    }

    /// Writes a number, or a truth value.
    pub(crate) fn number(&mut self, number: impl Display) {
        self.begin();
        write!(self.0, "{number}").expect("writing to a string does not fail");
    }

    pub(crate) fn numbers<T: Display>(&mut self, numbers: impl IntoIterator<Item = T>) {
        self.array(numbers, |json, number| json.number(number));
    }

    pub(crate) fn null(&mut self) {
        self.begin();
        self.0.push_str("null");
    }

    /// Writes a text. A byte that is not part of a UTF-8 character becomes a lone surrogate from
    /// U+DC80 on, as in Python.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.begin();
        self.0.push('"');
        each_unit(bytes, |unit| unit.write(&mut self.0));
        self.0.push('"');
    }

    /// Writes a text of at most `bytes_max` bytes of JSON, without quotation marks. The rest of a
    /// longer one is replaced by an ellipsis.
    pub(crate) fn short_text(&mut self, bytes: &[u8], bytes_max: usize) {
        if text_bytes(bytes) <= bytes_max + 2 {
            return self.text(bytes);
        }
        self.begin();
        self.0.push('"');
        let mut left = bytes_max.saturating_sub('…'.len_utf8());
        each_unit(bytes, |unit| {
            left = left.saturating_sub(unit.len());
            if left > 0 {
                unit.write(&mut self.0);
            }
        });
        self.0.push_str("…\"");
    }
}

/// Returns the length of a text in JSON, with its quotation marks.
pub(crate) fn text_bytes(bytes: &[u8]) -> usize {
    let mut all = 2;
    each_unit(bytes, |unit| all += unit.len());
    all
}

/// A character, or a byte that is no part of one.
enum Unit {
    Char(char),
    Byte(u8),
}

fn each_unit(bytes: &[u8], mut each: impl FnMut(Unit)) {
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| each(Unit::Char(c)));
        chunk.invalid().iter().for_each(|byte| each(Unit::Byte(*byte)));
    }
}

impl Unit {
    fn write(&self, out: &mut String) {
        let written = match self {
            Self::Char('"') => out.write_str("\\\""),
            Self::Char('\\') => out.write_str("\\\\"),
            Self::Char(c) if is_escaped(*c) => write!(out, "\\u{:04x}", u32::from(*c)),
            Self::Char(c) => out.write_char(*c),
            Self::Byte(byte) => write!(out, "\\udc{byte:02x}"),
        };
        written.expect("writing to a string does not fail");
    }

    fn len(&self) -> usize {
        match self {
            Self::Char('"' | '\\') => 2,
            Self::Char(c) if is_escaped(*c) => 6,
            Self::Char(c) => c.len_utf8(),
            Self::Byte(_) => 6,
        }
    }
}

/// Returns whether a character is written as an escape. `<` could end the element or begin a
/// comment in it. The others are controls and marks of direction, which would confuse a reader of
/// the page's source. All of them have four digits.
fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '<' | '>' | '&' | '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut json = JsonText::default();
        json.text(bytes);
        json.into_string()
    }

    #[test]
    fn no_text_ends_the_element() {
        let hostile = "</script><!--<script>]]>\u{2028}\u{202e}\"\\\n\u{1b}é";
        let json = text(hostile.as_bytes());
        assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{202e}', '\n', '\u{1b}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn bytes_that_are_no_characters_are_kept() {
        assert_eq!(text(b"a\xff\xe2\x82b"), r#""a\udcff\udce2\udc82b""#);
    }

    #[test]
    fn lengths_are_those_of_what_is_written() {
        for bytes in [&b"plain"[..], b"\xff\"<\\\n", "é\u{2028}\u{1f600}".as_bytes(), b""] {
            assert_eq!(text_bytes(bytes), text(bytes).len());
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        for bytes in ["é".repeat(100).as_bytes(), &b"\xff".repeat(100), &b"<".repeat(100)] {
            let mut json = JsonText::default();
            json.short_text(bytes, 40);
            let json = json.into_string();
            assert!((30..=42).contains(&json.len()) && json.ends_with("…\""), "{json}");
        }
        let mut json = JsonText::default();
        json.short_text(b"0123456789", 10);
        assert_eq!(json.into_string(), "\"0123456789\"");
    }

    #[test]
    fn commas_are_between_values() {
        let mut json = JsonText::default();
        json.object(|json| {
            json.key("a").numbers([1, 2]);
            json.key("b").array([1], |json, _| json.null());
            json.key("c").text(b"[");
            json.key("d").number(true);
        });
        assert_eq!(json.into_string(), r#"{"a":[1,2],"b":[null],"c":"[","d":true}"#);
    }
}
