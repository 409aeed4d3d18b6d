//! Parses the `Range` header and selects the byte ranges of a response (RFC 9110, sections 14.1 and
//! 14.2).
//!
//! A header that is malformed, has another unit or asks for too much is ignored, and the response
//! is the whole file, which costs less than the requested ranges. Ranges keep their order.
//! Overlapping or adjacent ranges are not merged, as their sum is limited to the size of the file.
//! Does not own: whether ranges apply (`conditional::ranges_apply`), and the body of several ranges
//! (`multipart`).

use std::ops::Range;

use http::HeaderValue;

/// The ranges to send. No range is empty or ends after the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// 200: the whole file.
    Whole,
    /// 416: no requested range overlaps the file.
    Unsatisfiable,
    /// 206: one range.
    One(Range<u64>),
    /// 206: two or more ranges, as `multipart/byteranges`.
    Many(Vec<Range<u64>>),
}

/// Selects the ranges that `header` requests of a file of `size` bytes. Returns the whole file if
/// there are more than `limit` ranges, satisfiable or not, or if their sum exceeds the size. Any
/// range of an empty file selects the whole file: programs that request the first bytes of every
/// file would otherwise get an error.
///
/// ```
/// use fathom_serve::range::{Selection, content_range, select, unsatisfied};
///
/// assert_eq!(select(b"bytes=0-499", 1000, 8), Selection::One(0..500));
/// assert_eq!(select(b"bytes=-1", 1000, 8), Selection::One(999..1000));
/// assert_eq!(select(b"bytes=0-1, 8-9", 1000, 8), Selection::Many(vec![0..2, 8..10]));
/// assert_eq!(select(b"bytes=1000-", 1000, 8), Selection::Unsatisfiable);
/// assert_eq!(select(b"lines=1-2", 1000, 8), Selection::Whole);
/// assert_eq!(content_range(&(0..500), 1000), "bytes 0-499/1000");
/// assert_eq!(unsatisfied(1000), "bytes */1000");
/// ```
#[must_use]
pub fn select(header: &[u8], size: u64, limit: usize) -> Selection {
    if size == 0 {
        return Selection::Whole;
    }
    byte_set(header).and_then(|set| within(set, size, limit)).unwrap_or(Selection::Whole)
}

/// Returns the value of `Content-Range` for a range of a file of `size` bytes.
#[must_use]
pub fn content_range(range: &Range<u64>, size: u64) -> HeaderValue {
    let last = range.end.saturating_sub(1);
    value(format!("bytes {}-{last}/{size}", range.start))
}

/// Returns the value of `Content-Range` for [`Selection::Unsatisfiable`].
#[must_use]
pub fn unsatisfied(size: u64) -> HeaderValue {
    value(format!("bytes */{size}"))
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits are a header's value")
}

/// Returns the range set, if the unit is bytes.
fn byte_set(header: &[u8]) -> Option<&[u8]> {
    let (unit, set) = header.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

fn within(set: &[u8], size: u64, limit: usize) -> Option<Selection> {
    let (mut count, mut total) = (0usize, 0u64);
    let mut selection = Selection::Unsatisfiable;
    let specs = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    for spec in specs.filter(|spec| !spec.is_empty()) {
        count += 1;
        if count > limit {
            return None;
        }
        let Some(range) = RangeSpec::parse(spec)?.within(size) else { continue };
        total = total.checked_add(range.end - range.start).filter(|total| *total <= size)?;
        selection = selection.with(range);
    }
    (count > 0).then_some(selection)
}

impl Selection {
    fn with(self, range: Range<u64>) -> Self {
        match self {
            Self::Whole | Self::Unsatisfiable => Self::One(range),
            Self::One(first) => Self::Many(vec![first, range]),
            Self::Many(mut ranges) => {
                ranges.push(range);
                Self::Many(ranges)
            }
        }
    }
}

/// One `range-spec` of the set. A number above `u64::MAX` saturates: no file has that many bytes.
enum RangeSpec {
    /// From an offset to the end.
    From(u64),
    /// From the first to the last offset.
    FromTo(u64, u64),
    /// The last bytes.
    Last(u64),
}

impl RangeSpec {
    fn parse(spec: &[u8]) -> Option<Self> {
        let dash = spec.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (spec.get(..dash)?, spec.get(dash + 1..)?);
        match (first, last) {
            ([], last) => Some(Self::Last(number(last)?)),
            (first, []) => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::FromTo(first, last))
            }
        }
    }

    /// Returns the selected bytes of a file of `size` bytes; `None` if there are none.
    fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..size,
            Self::FromTo(first, last) => first..last.saturating_add(1).min(size),
            Self::Last(length) => size.saturating_sub(length)..size,
        };
        (!range.is_empty()).then_some(range)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests;
