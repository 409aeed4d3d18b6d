//! Flags, width and precision of a directive, as C's printf understands them. find prints most numbers as texts, so that
//! flags of numbers hold for a few directives alone.

use super::float::general;
use super::problem::FormatError;

/// The largest width and precision.
const LARGEST: usize = 65_535;

/// What stands between `%` and the letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    /// `-`: fill up on the right.
    pub(super) left: bool,
    /// `+`: a sign always.
    pub(super) plus: bool,
    /// A blank where a sign would be.
    pub(super) space: bool,
    /// `#`: octal with a leading 0, floats with their point.
    pub(super) alternate: bool,
    /// `0`: fill up with zeros.
    pub(super) zero: bool,
    /// In bytes.
    pub(super) width: usize,
    /// Bytes of a text at most, digits of an integer at least, significant digits of a float.
    pub(super) precision: Option<usize>,
}

impl Spec {
    /// Flags, width and precision of the directive that `text` starts with, and their length with the `%`.
    pub(super) fn parse(text: &[u8]) -> Result<(Spec, usize), FormatError> {
        let (mut spec, mut at) = (Spec::default(), 1);
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
        // The flag for zeros is none to find, but the beginning of a width.
        spec.zero = text.get(at) == Some(&b'0');
        (spec.width, at) = number(text, at)?;
        if text.get(at) == Some(&b'.') {
            let (precision, end) = number(text, at + 1)?;
            (spec.precision, at) = (Some(precision), end);
        }
        Ok((spec, at))
    }

    /// Makes the text from `start` on as long as it has to be.
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

    /// Appends an integer that could have a sign, given its decimal digits.
    pub(super) fn write_signed(&self, digits: &[u8], out: &mut Vec<u8>) {
        // Zero in no digits at all is nothing.
        let digits = if self.precision == Some(0) && digits == b"0" { b"" } else { digits };
        self.write_integer(self.sign(), digits, out);
    }

    /// Appends an integer without a sign in octal.
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
        Spec { precision: None, ..*self }.finish_text(start, out);
    }

    /// Appends a number that is not negative, with six significant digits unless the precision says otherwise.
    pub(super) fn write_general(&self, value: f64, out: &mut Vec<u8>) {
        let text = general(value, self.precision.unwrap_or(6), self.alternate);
        let (start, sign) = (out.len(), self.sign());
        out.extend_from_slice(sign);
        if self.zero && !self.left && value.is_finite() {
            out.resize(out.len() + self.width.saturating_sub(sign.len() + text.len()), b'0');
        }
        out.extend_from_slice(text.as_bytes());
        Spec { precision: None, ..*self }.finish_text(start, out);
    }

    fn sign(&self) -> &'static [u8] {
        match (self.plus, self.space) {
            (true, _) => b"+",
            (false, true) => b" ",
            (false, false) => b"",
        }
    }
}

/// The number at `at`, 0 if there is none, and where it ends.
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

    fn text(spec: Spec) -> String {
        let mut out = b"<".to_vec();
        out.extend_from_slice(b"abc");
        spec.finish_text(1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_cut_and_filled_with_blanks() {
        let spec = Spec { width: 5, ..Spec::default() };
        assert_eq!(text(spec), "<  abc");
        assert_eq!(text(Spec { left: true, ..spec }), "<abc  ");
        assert_eq!(text(Spec { zero: true, precision: Some(2), ..spec }), "<   ab");
        assert_eq!(text(Spec { width: 2, precision: Some(9), ..spec }), "<abc");
        assert_eq!(text(Spec { width: 0, precision: Some(0), ..spec }), "<");
    }

    #[test]
    fn integers_have_signs_zeros_and_digits() {
        let write = |spec: Spec, digits: &str| {
            let mut out = Vec::new();
            spec.write_signed(digits.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        let spec = Spec { width: 5, ..Spec::default() };
        assert_eq!(write(spec, "7"), "    7");
        assert_eq!(write(Spec { plus: true, zero: true, ..spec }, "7"), "+0007");
        assert_eq!(write(Spec { space: true, zero: true, ..spec }, "7"), " 0007");
        assert_eq!(write(Spec { zero: true, precision: Some(2), ..spec }, "7"), "   07");
        assert_eq!(write(Spec { precision: Some(0), ..spec }, "0"), "     ");
        assert_eq!(write(Spec { left: true, zero: true, ..spec }, "7"), "7    ");
    }

    #[test]
    fn octal_numbers_get_one_zero_in_front() {
        let write = |spec: Spec, value| {
            let mut out = Vec::new();
            spec.write_octal(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        let spec = Spec { alternate: true, plus: true, ..Spec::default() };
        assert_eq!(write(spec, 0o644), "0644");
        assert_eq!(write(spec, 0), "0");
        assert_eq!(write(Spec { precision: Some(0), ..spec }, 0), "0");
        assert_eq!(write(Spec { precision: Some(5), ..spec }, 0o644), "00644");
        assert_eq!(write(Spec { zero: true, width: 3, ..spec }, 0o644), "0644");
    }
}
