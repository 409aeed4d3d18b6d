//! A reader of JSON that holds one text or number at a time. Strings may contain bytes that are not
//! UTF-8 and control characters, as ncdu writes them; lists and objects may be nested without
//! limit.

use std::io::BufRead;

use super::ImportError;
use super::builder::NAME_BYTES_MAX;

/// Most bytes of a string: of a name, in the form with most escapes.
const STRING_BYTES_MAX: usize = NAME_BYTES_MAX;
/// Most digits of a number, with sign, fraction and exponent.
const NUMBER_BYTES_MAX: usize = 64;
/// Most levels of a value that is skipped.
const SKIPPED_LEVELS_MAX: usize = 128;

/// A part of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonToken {
    BeginArray,
    EndArray,
    BeginObject,
    EndObject,
    Comma,
    Colon,
    /// The string is in [`JsonReader::text`].
    String,
    /// The value, if it is a whole number of 128 bits.
    Number(Option<i128>),
    True,
    False,
    Null,
    End,
}

/// A reader of tokens.
pub(super) struct JsonReader<'a> {
    input: &'a mut dyn BufRead,
    /// The number of bytes that were read.
    offset: u64,
    peeked: Option<u8>,
    /// The string that was read last.
    text: Vec<u8>,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, offset: 0, peeked: None, text: Vec::new() }
    }

    /// Returns the string that was read last.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns an error at the current position.
    pub(super) fn malformed(&self, what: &'static str) -> ImportError {
        ImportError::Malformed { offset: self.offset - u64::from(self.peeked.is_some()), what }
    }

    fn next_byte(&mut self) -> Result<Option<u8>, ImportError> {
        if let Some(byte) = self.peeked.take() {
            return Ok(Some(byte));
        }
        let Some(byte) = self.input.fill_buf()?.first().copied() else { return Ok(None) };
        self.input.consume(1);
        self.offset += 1;
        Ok(Some(byte))
    }

    fn some_byte(&mut self) -> Result<u8, ImportError> {
        self.next_byte()?.ok_or_else(|| self.malformed("the input is truncated"))
    }

    /// Reads the next token.
    pub(super) fn token(&mut self) -> Result<JsonToken, ImportError> {
        let byte = loop {
            match self.next_byte()? {
                None => return Ok(JsonToken::End),
                Some(b' ' | b'\t' | b'\n' | b'\r') => {}
                Some(byte) => break byte,
            }
        };
        Ok(match byte {
            b'[' => JsonToken::BeginArray,
            b']' => JsonToken::EndArray,
            b'{' => JsonToken::BeginObject,
            b'}' => JsonToken::EndObject,
            b',' => JsonToken::Comma,
            b':' => JsonToken::Colon,
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number(byte)?,
            b't' => self.word(b"rue", JsonToken::True)?,
            b'f' => self.word(b"alse", JsonToken::False)?,
            b'n' => self.word(b"ull", JsonToken::Null)?,
            _ => return Err(self.malformed("not JSON")),
        })
    }

    /// Reads a token that has to be `expected`.
    pub(super) fn expect(&mut self, expected: JsonToken, what: &'static str) -> Result<(), ImportError> {
        if self.token()? == expected { Ok(()) } else { Err(self.malformed(what)) }
    }

    fn word(&mut self, rest: &[u8], token: JsonToken) -> Result<JsonToken, ImportError> {
        for expected in rest {
            if self.next_byte()? != Some(*expected) {
                return Err(self.malformed("not JSON"));
            }
        }
        Ok(token)
    }

    fn number(&mut self, first: u8) -> Result<JsonToken, ImportError> {
        let mut digits = vec![first];
        while let Some(byte) = self.next_byte()? {
            if !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') {
                self.peeked = Some(byte);
                break;
            }
            digits.push(byte);
            if digits.len() > NUMBER_BYTES_MAX {
                return Err(self.malformed("a number is too long"));
            }
        }
        Ok(JsonToken::Number(std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok())))
    }

    /// Reads a string after its quotation mark.
    fn string(&mut self) -> Result<JsonToken, ImportError> {
        self.text.clear();
        loop {
            self.copy_plain()?;
            match self.some_byte()? {
                b'"' => return Ok(JsonToken::String),
                b'\\' => self.escape()?,
                byte => self.text.push(byte),
            }
            if self.text.len() > STRING_BYTES_MAX {
                return Err(self.malformed("a text is too long"));
            }
        }
    }

    /// Copies the bytes up to the next quotation mark or escape that are in the input's buffer.
    fn copy_plain(&mut self) -> Result<(), ImportError> {
        if self.peeked.is_some() {
            return Ok(());
        }
        let buffered = self.input.fill_buf()?;
        let plain = buffered.iter().take_while(|byte| !matches!(byte, b'"' | b'\\'));
        let count = plain.take(STRING_BYTES_MAX + 1).count();
        self.text.extend_from_slice(&buffered[..count]);
        self.input.consume(count);
        self.offset += count as u64;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), ImportError> {
        let byte = match self.some_byte()? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(),
            _ => return Err(self.malformed("a text has an impossible escape")),
        };
        self.text.push(byte);
        Ok(())
    }

    /// Reads a character that is written as one or two UTF-16 code units.
    fn unicode(&mut self) -> Result<(), ImportError> {
        let mut unit = self.hex4()?;
        if (0xd800..0xdc00).contains(&unit) {
            let is_escape = self.some_byte()? == b'\\' && self.some_byte()? == b'u';
            let low = if is_escape { self.hex4()? } else { 0 };
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.malformed("a text has half a character"));
            }
            unit = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
        let found = char::from_u32(unit).ok_or_else(|| self.malformed("a text has half a character"))?;
        self.text.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, ImportError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = char::from(self.some_byte()?).to_digit(16);
            unit = unit * 16 + digit.ok_or_else(|| self.malformed("a text has an impossible escape"))?;
        }
        Ok(unit)
    }

    /// Skips the rest of a value that begins with `first`.
    pub(super) fn skip(&mut self, first: JsonToken) -> Result<(), ImportError> {
        let mut open = Vec::new();
        let mut token = first;
        loop {
            match token {
                JsonToken::BeginArray => open.push(JsonToken::EndArray),
                JsonToken::BeginObject => open.push(JsonToken::EndObject),
                JsonToken::EndArray | JsonToken::EndObject if open.pop() != Some(token) => {
                    return Err(self.malformed("not JSON"));
                }
                JsonToken::End => return Err(self.malformed("the input is truncated")),
                JsonToken::Comma | JsonToken::Colon if open.is_empty() => {
                    return Err(self.malformed("not JSON"));
                }
                _ => {}
            }
            if open.is_empty() {
                return Ok(());
            }
            if open.len() > SKIPPED_LEVELS_MAX {
                return Err(self.malformed("a value is nested too deeply"));
            }
            token = self.token()?;
        }
    }

    /// Reads the members of an object after its brace. Calls `member` with each name and the first
    /// token of its value; the reader's text is the text of a string value. A member that `member`
    /// does not take (it returns false) is skipped.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8], JsonToken) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let mut token = self.token()?;
        if token == JsonToken::EndObject {
            return Ok(());
        }
        loop {
            if token != JsonToken::String {
                return Err(self.malformed("an object has a member without a name"));
            }
            let name = std::mem::take(&mut self.text);
            self.expect(JsonToken::Colon, "an object has a member without a value")?;
            let value = self.token()?;
            if !member(self, &name, value)? {
                self.skip(value)?;
            }
            match self.token()? {
                JsonToken::EndObject => return Ok(()),
                JsonToken::Comma => token = self.token()?,
                _ => return Err(self.malformed("an object does not end")),
            }
        }
    }
}
