//! Range headers of arbitrary bytes, on files of any size: no range is empty or exceeds the file,
//! all ranges together are no longer than the file, and the length of a multipart body is announced
//! correctly.

#![no_main]

use fathom_serve::multipart::{Multipart, MultipartSegment};
use fathom_serve::range::{Selection, content_range, select};
use libfuzzer_sys::fuzz_target;

// The size of the file and the number of ranges allowed come before the header.
fuzz_target!(|bytes: &[u8]| {
    let Some((size, rest)) = bytes.split_first_chunk::<8>() else { return };
    let Some((&limit, header)) = rest.split_first() else { return };
    let size = u64::from_le_bytes(*size);
    let ranges = match select(header, size, limit.into()) {
        Selection::Whole | Selection::Unsatisfiable => return,
        Selection::One(range) => vec![range],
        Selection::Many(ranges) => {
            assert!(ranges.len() > 1);
            ranges
        }
    };
    assert!(ranges.len() <= limit.into());
    assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size));
    let total: u128 = ranges.iter().map(|range| u128::from(range.end - range.start)).sum();
    assert!(total <= size.into());
    for range in &ranges {
        assert_eq!(content_range(range, size), format!("bytes {}-{}/{size}", range.start, range.end - 1));
    }
    let multipart = Multipart::new(ranges, size, None, size);
    let announced = multipart.remaining_bytes();
    let sent: u128 = multipart
        .map(|piece| match piece {
            MultipartSegment::Head(bytes) | MultipartSegment::End(bytes) => bytes.len() as u128,
            MultipartSegment::Range(range) => u128::from(range.end - range.start),
        })
        .sum();
    assert_eq!(announced, u64::try_from(sent).ok());
});
