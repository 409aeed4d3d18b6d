//! Which bytes of a file a `Range` header asks for (RFC 9110, sections 14.1 and 14.2).
//!
//! A header that is malformed, of another unit, or asks for too much is ignored: the whole file is the answer, which costs
//! less than what was asked for. Ranges come out in the order they were asked for; those that overlap or touch are not
//! merged, as all of them together are no longer than the file. Does not own: whether ranges count at all
//! (`conditional::ranges_apply`), nor how several are sent (`multipart`).

use std::ops::Range;

use http::HeaderValue;

/// What is to be sent. No range is empty or ends after the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// 200: the whole file.
    Whole,
    /// 416: nothing that is asked for is there.
    Unsatisfiable,
    /// 206: one range.
    One(Range<u64>),
    /// 206: two or more ranges, as `multipart/byteranges`.
    Many(Vec<Range<u64>>),
}

/// What `header` asks for of `size` bytes. With more than `limit` ranges, satisfiable or not, or when those to be sent add up
/// to more than the file, it is the whole file. Any range of an empty file is the whole of it, since programs that ask for
/// the first bytes of everything would otherwise see an error where there is none.
#[must_use]
pub fn select(header: &[u8], size: u64, limit: usize) -> Selection {
    if size == 0 {
        return Selection::Whole;
    }
    byte_set(header).and_then(|set| within(set, size, limit)).unwrap_or(Selection::Whole)
}

/// The value of `Content-Range` for a range of a file.
#[must_use]
pub fn content_range(range: &Range<u64>, size: u64) -> HeaderValue {
    let last = range.end.saturating_sub(1);
    value(format!("bytes {}-{last}/{size}", range.start))
}

/// The value of `Content-Range` for [`Selection::Unsatisfiable`].
#[must_use]
pub fn unsatisfied(size: u64) -> HeaderValue {
    value(format!("bytes */{size}"))
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits are a header's value")
}

/// What is behind the unit, if that is bytes.
fn byte_set(header: &[u8]) -> Option<&[u8]> {
    let (unit, set) = header.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

fn within(set: &[u8], size: u64, limit: usize) -> Option<Selection> {
    let (mut asked, mut total) = (0usize, 0u64);
    let mut selection = Selection::Unsatisfiable;
    let specs = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    for spec in specs.filter(|spec| !spec.is_empty()) {
        asked += 1;
        if asked > limit {
            return None;
        }
        let Some(range) = Spec::parse(spec)?.within(size) else { continue };
        total = total.checked_add(range.end - range.start).filter(|total| *total <= size)?;
        selection = selection.with(range);
    }
    (asked > 0).then_some(selection)
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

/// One element of the set. Numbers that are too large are the largest: no file has that many bytes.
enum Spec {
    From(u64),
    FromTo(u64, u64),
    Last(u64),
}

impl Spec {
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

    /// The bytes of a file that is not empty; `None` for none of them.
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
