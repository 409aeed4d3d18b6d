//! Selected ranges, compared with sets of byte positions.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Selection::{Many, One, Unsatisfiable, Whole};
use super::*;

const LIMIT: usize = 4;

fn ten(header: &str) -> Selection {
    select(header.as_bytes(), 10, LIMIT)
}

#[test]
fn one_range_is_one() {
    assert_eq!(ten("bytes=0-0"), One(0..1));
    assert_eq!(ten("bytes=2-5"), One(2..6));
    assert_eq!(ten("bytes=2-"), One(2..10));
    assert_eq!(ten("bytes=-3"), One(7..10));
    assert_eq!(ten("bytes=-30"), One(0..10));
    assert_eq!(ten("bytes=9-100"), One(9..10));
    assert_eq!(ten("BYTES=0000-00009"), One(0..10));
    assert_eq!(ten("bytes= ,\t2-5 , "), One(2..6));
}

#[test]
fn several_ranges_come_in_the_order_they_were_asked_for() {
    assert_eq!(ten("bytes=5-6, 0-1"), Many(vec![5..7, 0..2]));
    assert_eq!(ten("bytes=0-2,2-4,5-6"), Many(vec![0..3, 2..5, 5..7]));
    assert_eq!(ten("bytes=10-, 0-1, -0"), One(0..2));
}

#[test]
fn what_is_not_there_cannot_be_satisfied() {
    for header in ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=-0,10-", "bytes=18446744073709551615-"] {
        assert_eq!(ten(header), Unsatisfiable, "{header}");
    }
}

#[test]
fn malformed_headers_are_ignored() {
    let headers = [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=--5",
        "bytes=5-2",
        "bytes=a-b",
        "bytes=1 - 2",
        "bytes =0-1",
        "bytes=0-1;2-3",
        "bytes=+1-2",
        "bytes=0x1-",
        "bytes=1-2-3",
        "bytes=0-1,x",
        "lines=0-1",
        "0-1",
        "bytes:0-1",
        "bytes=-18446744073709551616-",
    ];
    for header in headers {
        assert_eq!(ten(header), Whole, "{header}");
    }
}

#[test]
fn numbers_do_not_overflow() {
    let many = "9".repeat(40);
    assert_eq!(ten(&format!("bytes=1-{many}")), One(1..10));
    assert_eq!(ten(&format!("bytes=-{many}")), One(0..10));
    assert_eq!(ten(&format!("bytes={many}-{many}")), Unsatisfiable);
    assert_eq!(select(b"bytes=0-18446744073709551615", u64::MAX, LIMIT), One(0..u64::MAX));
    assert_eq!(select(b"bytes=0-,-18446744073709551615", u64::MAX, LIMIT), Whole);
    assert_eq!(
        select(b"bytes=-9223372036854775808,0-1", u64::MAX, LIMIT),
        Many(vec![(1 << 63) - 1..u64::MAX, 0..2])
    );
}

#[test]
fn too_much_is_the_whole_file() {
    assert_eq!(ten("bytes=0-0,1-1,2-2,3-3"), Many(vec![0..1, 1..2, 2..3, 3..4]));
    assert_eq!(ten("bytes=0-0,1-1,2-2,3-3,4-4"), Whole);
    assert_eq!(ten("bytes=20-,20-,20-,20-,20-"), Whole);
    assert_eq!(ten("bytes=0-4,5-9"), Many(vec![0..5, 5..10]));
    assert_eq!(ten("bytes=0-5,5-9"), Whole);
    assert_eq!(ten(&format!("bytes={}", "0-,".repeat(10_000))), Whole);
    assert_eq!(select(b"bytes=0-0", 10, 0), Whole);
}

#[test]
fn an_empty_file_is_always_whole() {
    for header in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-"] {
        assert_eq!(select(header.as_bytes(), 0, LIMIT), Whole, "{header}");
    }
}

#[test]
fn content_range_names_the_last_byte() {
    assert_eq!(content_range(&(0..1), 10), "bytes 0-0/10");
    assert_eq!(content_range(&(0..u64::MAX), u64::MAX), "bytes 0-18446744073709551614/18446744073709551615");
    assert_eq!(unsatisfied(10), "bytes */10");
}

/// The first and the last number of a `range-spec`.
type Bounds = (Option<u128>, Option<u128>);

fn asked() -> impl Strategy<Value = Vec<Bounds>> {
    let number = || {
        prop::option::of(prop_oneof![8 => 0..12u128, 1 => u128::from(u64::MAX) - 2..u128::from(u64::MAX) + 3])
    };
    prop::collection::vec((number(), number()), 1..6)
}

/// Returns the positions that one range selects of a file of `size` bytes; `None` for a malformed
/// range.
fn positions((first, last): Bounds, size: u128) -> Option<BTreeSet<u128>> {
    let has = |position: &u128| match (first, last) {
        (Some(first), Some(last)) => first <= *position && *position <= last,
        (Some(first), None) => first <= *position,
        (None, Some(length)) => position + length >= size,
        (None, None) => false,
    };
    let is_range = match (first, last) {
        // Numbers above `u64::MAX` saturate, so they compare as equal.
        (Some(first), Some(last)) => first.min(u64::MAX.into()) <= last,
        (first, last) => first.or(last).is_some(),
    };
    is_range.then(|| (0..size).filter(has).collect())
}

fn model(asked: &[Bounds], size: u64) -> Vec<BTreeSet<u128>> {
    let whole = vec![(0..u128::from(size)).collect()];
    let sets: Option<Vec<_>> = asked.iter().map(|asked| positions(*asked, size.into())).collect();
    let Some(sets) = sets else { return whole };
    let sets: Vec<_> = sets.into_iter().filter(|set| !set.is_empty()).collect();
    let total: usize = sets.iter().map(BTreeSet::len).sum();
    if size == 0 || asked.len() > LIMIT || total as u64 > size { whole } else { sets }
}

proptest! {
    #![proptest_config(fathom_cases::property(8000))]

    #[test]
    fn ranges_are_sets_of_positions(asked in asked(), size in 0..12u64) {
        let number = |number: Option<u128>| number.map(|number| number.to_string()).unwrap_or_default();
        let specs: Vec<String> = asked.iter().map(|(first, last)| format!("{}-{}", number(*first), number(*last))).collect();
        let ranges = match select(format!("bytes={}", specs.join(", ")).as_bytes(), size, LIMIT) {
            Whole => std::iter::once(0..size).collect(),
            Unsatisfiable => vec![],
            One(range) => vec![range],
            Many(ranges) => {
                prop_assert!(ranges.len() > 1);
                ranges
            }
        };
        let sets: Vec<BTreeSet<u128>> =
            ranges.into_iter().map(|range| (range.start.into()..range.end.into()).collect()).collect();
        prop_assert_eq!(sets, model(&asked, size));
    }

    #[test]
    fn any_bytes_are_no_more_than_the_file(
        header in prop_oneof![any::<Vec<u8>>(), "bytes=[-0-9, ]{0,60}".prop_map(String::into_bytes)], size: u64,
    ) {
        if let Many(ranges) = select(&header, size, LIMIT) {
            prop_assert!(ranges.len() <= LIMIT);
            prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size));
            prop_assert!(ranges.iter().map(|range| u128::from(range.end - range.start)).sum::<u128>() <= size.into());
        }
    }
}
