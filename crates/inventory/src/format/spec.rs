//! The flags, width and precision of a directive, as C's printf defines them. find prints most
//! numbers as text, so the flags for numbers apply to a few directives alone.

use super::float::general;
use super::problem::FormatError;

/// The largest width and precision.
const LARGEST: usize = 65_535;

/// The part of a directive between `%` and its letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectiveSpec {
    /// `-`: pad on the right.
    pub(super) left: bool,
    /// `+`: always print a sign.
    pub(super) plus: bool,
    /// A blank: print a blank in place of a plus sign.
    pub(super) space: bool,
    /// `#`: octal numbers with a leading 0, floating-point numbers with their point.
    pub(super) alternate: bool,
    /// `0`: pad with zeros.
    pub(super) zero: bool,
    /// The least number of bytes.
    pub(super) width: usize,
    /// The most bytes of a text, the least digits of an integer, the significant digits of a
    /// floating-point number.
    pub(super) precision: Option<usize>,
}

impl DirectiveSpec {
    /// Parses flags, width and precision of the directive that `text` starts with. Returns their
    /// length as well, including the `%`.
    pub(super) fn parse(text: &[u8]) -> Result<(DirectiveSpec, usize), FormatError> {
        let (mut spec, mut at) = (DirectiveSpec::default(), 1);
        while let Some(flag) = text.get(at) {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                _ => break,
            }
            at += 1;
        }
        // find does not read 0 as a flag, but as the beginning of a width.
        spec.zero = text.get(at) == Some(&b'0');
        (spec.width, at) = number(text, at)?;
        if text.get(at) == Some(&b'.') {
            let (precision, end) = number(text, at + 1)?;
            (spec.precision, at) = (Some(precision), end);
        }
        Ok((spec, at))
    }

    /// Cuts the text from `start` on to the precision and pads it to the width.
    pub(super) fn finish_text(&self, start: usize, out: &mut Vec<u8>) {
        if let Some(precision) = self.precision {
            out.truncate(start.saturating_add(precision).min(out.len()));
        }
        let missing = self.width.saturating_sub(out.len() - start);
        out.resize(out.len() + missing, b' ');
        if !self.left {
            out[start..].rotate_right(missing);
        }
    }

    /// Appends a signed integer, given its decimal digits.
    pub(super) fn write_signed(&self, digits: &[u8], out: &mut Vec<u8>) {
        // With a precision of 0, the number 0 has no digits.
        let digits = if self.precision == Some(0) && digits == b"0" { b"" } else { digits };
        self.write_integer(self.sign(), digits, out);
    }

    /// Appends an unsigned integer in octal.
    pub(super) fn write_octal(&self, value: u32, out: &mut Vec<u8>) {
        let digits = format!("{value:o}");
        let led = self.alternate && value != 0 && self.precision.is_none_or(|least| least <= digits.len());
        let digits = match (led, value, self.precision) {
            (true, _, _) => format!("0{digits}"),
            (false, 0, Some(0)) if !self.alternate => String::new(),
            _ => digits,
        };
        self.write_integer(b"", digits.as_bytes(), out);
    }

    fn write_integer(&self, sign: &[u8], digits: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(sign);
        let fill = if self.zero && !self.left { self.width.saturating_sub(sign.len()) } else { 0 };
        let least = self.precision.unwrap_or(fill);
        out.resize(out.len() + least.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(digits);
        DirectiveSpec { precision: None, ..*self }.finish_text(start, out);
    }

    /// Appends a number that is not negative, with six significant digits unless the precision says
    /// otherwise.
    pub(super) fn write_general(&self, value: f64, out: &mut Vec<u8>) {
        let text = general(value, self.precision.unwrap_or(6), self.alternate);
        let (start, sign) = (out.len(), self.sign());
        out.extend_from_slice(sign);
        if self.zero && !self.left && value.is_finite() {
            out.resize(out.len() + self.width.saturating_sub(sign.len() + text.len()), b'0');
        }
        out.extend_from_slice(text.as_bytes());
        DirectiveSpec { precision: None, ..*self }.finish_text(start, out);
    }

    fn sign(&self) -> &'static [u8] {
        match (self.plus, self.space) {
            (true, _) => b"+",
            (false, true) => b" ",
            (false, false) => b"",
        }
    }
}

/// Parses the number at `at`, 0 if there is none. Returns its end as well.
fn number(text: &[u8], at: usize) -> Result<(usize, usize), FormatError> {
    let len = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (read, digits) = (&text[..at + len], &text[at..at + len]);
    let value = digits
        .iter()
        .fold(0usize, |value, digit| value.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
    if value > LARGEST {
        return Err(FormatError::TooWide(read.to_vec()));
    }
    Ok((value, at + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spec: DirectiveSpec) -> String {
        let mut out = b"<".to_vec();
        out.extend_from_slice(b"abc");
        spec.finish_text(1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_cut_and_filled_with_blanks() {
        let spec = DirectiveSpec { width: 5, ..DirectiveSpec::default() };
        assert_eq!(text(spec), "<  abc");
        assert_eq!(text(DirectiveSpec { left: true, ..spec }), "<abc  ");
        assert_eq!(text(DirectiveSpec { zero: true, precision: Some(2), ..spec }), "<   ab");
        assert_eq!(text(DirectiveSpec { width: 2, precision: Some(9), ..spec }), "<abc");
        assert_eq!(text(DirectiveSpec { width: 0, precision: Some(0), ..spec }), "<");
    }

    #[test]
    fn integers_have_signs_zeros_and_digits() {
        let write = |spec: DirectiveSpec, digits: &str| {
            let mut out = Vec::new();
            spec.write_signed(digits.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        let spec = DirectiveSpec { width: 5, ..DirectiveSpec::default() };
        assert_eq!(write(spec, "7"), "    7");
        assert_eq!(write(DirectiveSpec { plus: true, zero: true, ..spec }, "7"), "+0007");
        assert_eq!(write(DirectiveSpec { space: true, zero: true, ..spec }, "7"), " 0007");
        assert_eq!(write(DirectiveSpec { zero: true, precision: Some(2), ..spec }, "7"), "   07");
        assert_eq!(write(DirectiveSpec { precision: Some(0), ..spec }, "0"), "     ");
        assert_eq!(write(DirectiveSpec { left: true, zero: true, ..spec }, "7"), "7    ");
    }

    #[test]
    fn octal_numbers_get_one_zero_in_front() {
        let write = |spec: DirectiveSpec, value| {
            let mut out = Vec::new();
            spec.write_octal(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        let spec = DirectiveSpec { alternate: true, plus: true, ..DirectiveSpec::default() };
        assert_eq!(write(spec, 0o644), "0644");
        assert_eq!(write(spec, 0), "0");
        assert_eq!(write(DirectiveSpec { precision: Some(0), ..spec }, 0), "0");
        assert_eq!(write(DirectiveSpec { precision: Some(5), ..spec }, 0o644), "00644");
        assert_eq!(write(DirectiveSpec { zero: true, width: 3, ..spec }, 0o644), "0644");
    }
}
