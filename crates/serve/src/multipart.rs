//! The framing of `multipart/byteranges` (RFC 9110, section 14.6; RFC 2046, section 5.1): the bytes
//! between the ranges of a file, and the length of the body.
//!
//! Does not own: the selection of ranges (`range`), and the file's bytes, which the caller inserts
//! where a segment says so. Not for a file in a content coding, which would apply to the framing as
//! well.

use std::ops::Range;

use bytes::Bytes;
use http::HeaderValue;

use crate::range::content_range;

/// One segment of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartSegment {
    /// The header of a body part, after the end of the part before it.
    Head(Bytes),
    /// A range of the file.
    Range(Range<u64>),
    /// The closing delimiter.
    End(Bytes),
}

/// A body, as an iterator of its segments: for each range its header and the range, then the
/// closing delimiter.
///
/// ```
/// use fathom_serve::multipart::{Multipart, MultipartSegment};
///
/// let body = Multipart::new(vec![0..2, 8..10], 10, None, 7);
/// assert_eq!(body.content_type(), "multipart/byteranges; boundary=0000000000000007");
/// let ranges = body.filter(|segment| matches!(segment, MultipartSegment::Range(_)));
/// assert_eq!(ranges.count(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Multipart {
    ranges: Vec<Range<u64>>,
    size: u64,
    media_type: Option<HeaderValue>,
    boundary: String,
    next: usize,
}

impl Multipart {
    /// Creates the body for ranges of a file of `size` bytes and, if it is known, its
    /// `Content-Type`.
    ///
    /// `random` is the boundary. It must be drawn for each response and be unpredictable. Otherwise
    /// an uploaded file could contain the boundary, and clients would take its bytes for further
    /// parts. `RandomState::hash_one` of a counter is such a number.
    #[must_use]
    pub fn new(ranges: Vec<Range<u64>>, size: u64, media_type: Option<HeaderValue>, random: u64) -> Self {
        Self { ranges, size, media_type, boundary: format!("{random:016x}"), next: 0 }
    }

    /// Returns the response's `Content-Type`.
    #[must_use]
    pub fn content_type(&self) -> HeaderValue {
        let text = format!("multipart/byteranges; boundary={}", self.boundary);
        HeaderValue::try_from(text).expect("hexadecimal digits are a header's value")
    }

    /// Returns the bytes of the remaining segments: of the whole body before the first is taken.
    /// `None` if the sum overflows.
    #[must_use]
    pub fn remaining_bytes(&self) -> Option<u64> {
        self.clone().try_fold(0u64, |total, piece| total.checked_add(piece.bytes()?))
    }

    fn head(&self, range: &Range<u64>) -> Bytes {
        let before = if self.next == 0 { "" } else { "\r\n" };
        let mut head = format!("{before}--{}\r\n", self.boundary).into_bytes();
        if let Some(media_type) = &self.media_type {
            head.extend_from_slice(b"Content-Type: ");
            head.extend_from_slice(media_type.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"Content-Range: ");
        head.extend_from_slice(content_range(range, self.size).as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
        head.into()
    }
}

impl Iterator for Multipart {
    type Item = MultipartSegment;

    fn next(&mut self) -> Option<MultipartSegment> {
        let piece = match self.ranges.get(self.next / 2) {
            Some(range) if self.next.is_multiple_of(2) => MultipartSegment::Head(self.head(range)),
            Some(range) => MultipartSegment::Range(range.clone()),
            None if self.next == 2 * self.ranges.len() => {
                MultipartSegment::End(format!("\r\n--{}--\r\n", self.boundary).into())
            }
            None => return None,
        };
        self.next += 1;
        Some(piece)
    }
}

impl MultipartSegment {
    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Head(bytes) | Self::End(bytes) => u64::try_from(bytes.len()).ok(),
            Self::Range(range) => range.end.checked_sub(range.start),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html() -> HeaderValue {
        HeaderValue::from_static("text/html; charset=utf-8")
    }

    fn body(multipart: Multipart, file: &[u8]) -> Vec<u8> {
        let at = |position: u64| usize::try_from(position).unwrap();
        let mut body = Vec::new();
        for piece in multipart {
            match piece {
                MultipartSegment::Head(bytes) | MultipartSegment::End(bytes) => {
                    body.extend_from_slice(&bytes)
                }
                MultipartSegment::Range(range) => {
                    body.extend_from_slice(&file[at(range.start)..at(range.end)])
                }
            }
        }
        body
    }

    #[test]
    fn a_body_is_to_the_byte_what_the_rfc_shows() {
        let multipart = Multipart::new(vec![0..3, 8..10], 10, Some(html()), 0xfa7);
        assert_eq!(multipart.content_type(), "multipart/byteranges; boundary=0000000000000fa7");
        assert_eq!(
            String::from_utf8(body(multipart, b"0123456789")).unwrap(),
            "--0000000000000fa7\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes 0-2/10\r\n\r\n012\r\n\
             --0000000000000fa7\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n\
             --0000000000000fa7--\r\n"
        );
    }

    #[test]
    fn a_part_without_a_type_has_none() {
        let text = body(Multipart::new(vec![0..1, 1..2], 2, None, 1), b"ab");
        assert!(text.starts_with(b"--0000000000000001\r\nContent-Range: bytes 0-0/2\r\n\r\na\r\n--"));
    }

    #[test]
    fn a_length_that_no_number_can_say_is_none() {
        let half = u64::MAX / 2;
        assert_eq!(
            Multipart::new(vec![0..half, 0..half, 0..half], u64::MAX, None, 1).remaining_bytes(),
            None
        );
        assert_eq!(Multipart::new(vec![0..1, 1..u64::MAX], u64::MAX, None, 1).remaining_bytes(), None);
    }

    /// Splits a body at its boundary as clients do, into `Content-Range` and bytes of each part.
    fn parts(body: &[u8], boundary: &str) -> Vec<(String, Vec<u8>)> {
        let text: String = body.iter().copied().map(char::from).collect();
        let text = format!("\r\n{text}");
        let mut parts: Vec<&str> = text.split(&format!("\r\n--{boundary}")).collect();
        assert_eq!((parts.first(), parts.last()), (Some(&""), Some(&"--\r\n")));
        parts.pop();
        let part = |part: &&str| {
            let (head, bytes) = part.split_once("\r\n\r\n").unwrap();
            let range = head.lines().find_map(|line| line.strip_prefix("Content-Range: ")).unwrap();
            (range.to_owned(), bytes.chars().map(|char| u8::try_from(char).unwrap()).collect())
        };
        parts[1..].iter().map(part).collect()
    }

    proptest! {
        #![proptest_config(fathom_cases::property(1000))]

        #[test]
        fn a_client_finds_the_ranges(
            file in prop::collection::vec(any::<u8>(), 1..200), cuts in prop::collection::vec(any::<[u8; 2]>(), 1..6),
            random: u64, typed: bool,
        ) {
            let range = |[a, b]: &[u8; 2]| {
                let (a, b) = (usize::from(*a) % file.len(), usize::from(*b) % file.len());
                a.min(b)..a.max(b) + 1
            };
            let ranges: Vec<_> = cuts.iter().map(range).collect();
            let wide = ranges.iter().map(|range| range.start as u64..range.end as u64).collect();
            let multipart = Multipart::new(wide, file.len() as u64, typed.then(html), random);
            let announced = multipart.remaining_bytes();
            let boundary = multipart.boundary.clone();
            let body = body(multipart, &file);
            prop_assert_eq!(announced, Some(body.len() as u64));
            let expected: Vec<_> = ranges
                .into_iter()
                .map(|range| (format!("bytes {}-{}/{}", range.start, range.end - 1, file.len()), file[range].to_vec()))
                .collect();
            prop_assert_eq!(parts(&body, &boundary), expected);
        }
    }
}
