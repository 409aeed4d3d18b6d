//! Byte ranges: one, several, none, and too many.

use crate::support::{DATE, Response, TestServer, Tree, noise};

const LEN: usize = 100_000;

fn served() -> (Tree, TestServer, Vec<u8>) {
    let bytes = noise(LEN, 7);
    let tree = Tree::new(&[("a.bin", &bytes), ("empty.bin", b""), ("one.bin", b"x")]);
    let served = TestServer::site(&tree, "");
    (tree, served, bytes)
}

#[test]
fn one_range_is_a_part_with_its_place() {
    let (_tree, served, bytes) = served();
    let mut client = served.connect();
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=0-99999", 0, 99_999),
        ("bytes=0-100000", 0, 99_999),
        ("bytes=5-", 5, 99_999),
        ("bytes=-1", 99_999, 99_999),
        ("bytes=-100000", 0, 99_999),
        ("bytes=-100001", 0, 99_999),
        ("bytes=99999-", 99_999, 99_999),
        ("Bytes= 10-19", 10, 19),
        ("bytes=10-19,", 10, 19),
        ("bytes=10-19,200000-", 10, 19),
        ("bytes=4095-69632", 4095, 69_632),
        ("bytes=0-18446744073709551615", 0, 99_999),
        ("bytes=0-99999999999999999999999999", 0, 99_999),
        ("bytes=-18446744073709551616", 0, 99_999),
    ] {
        let response = client.ask("GET", "/a.bin", &[("Range", range)]);
        response.is(206, &bytes[first..=last]);
        let place = format!("bytes {first}-{last}/{LEN}");
        assert_eq!(response.field("content-range"), Some(place.as_str()), "{range}");
        assert_eq!(response.field("content-type"), Some("application/octet-stream"));
    }
}

#[test]
fn a_malformed_range_selects_the_whole_file() {
    let (_tree, served, bytes) = served();
    let mut client = served.connect();
    for range in [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-4",
        "bytes=1",
        "bytes=--1",
        "bytes=1-2-3",
        "bytes=0x1-2",
        "bytes=+1-2",
        "bytes=1 -2",
        "bytes=0-0;1-1",
        "lines=0-1",
        "bytes:0-1",
        "bytes=,",
        "bytes=-18446744073709551616x",
        "bytes=18446744073709551615-18446744073709551614",
        "none",
    ] {
        let response = client.ask("GET", "/a.bin", &[("Range", range)]);
        response.is(200, &bytes);
        assert_eq!(response.field("content-range"), None, "{range}");
    }
    let twice = client.ask("GET", "/a.bin", &[("Range", "bytes=0-0"), ("Range", "bytes=1-1")]);
    twice.is(200, &bytes);
    assert_eq!(twice.field("accept-ranges"), Some("bytes"));
}

#[test]
fn an_unsatisfiable_range_is_416_with_the_length() {
    let (_tree, served, _) = served();
    let mut client = served.connect();
    for (target, range, len) in [
        ("/a.bin", "bytes=100000-", LEN),
        ("/a.bin", "bytes=-0", LEN),
        ("/a.bin", "bytes=100000-100000,200000-", LEN),
        ("/a.bin", "bytes=18446744073709551615-", LEN),
        ("/a.bin", "bytes=18446744073709551616-18446744073709551617", LEN),
        ("/a.bin", "bytes=99999999999999999999999999-", LEN),
        ("/one.bin", "bytes=1-", 1),
    ] {
        let response = client.ask("GET", target, &[("Range", range)]);
        assert_eq!(response.status, 416, "{range}");
        assert_eq!(response.field("content-range"), Some(format!("bytes */{len}").as_str()));
        assert_eq!(response.field("etag"), None);
    }
}

#[test]
fn an_empty_file_has_no_parts() {
    let (_tree, served, _) = served();
    for range in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=0-0,1-1"] {
        served.get_with("/empty.bin", "Range", range).is(200, b"");
    }
}

/// Splits a `multipart/byteranges` body at its boundary (RFC 2046, section 5.1) into
/// `Content-Range` and bytes.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    let boundary =
        response.field("content-type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    let text: String = response.body.iter().copied().map(char::from).collect();
    let text = format!("\r\n{text}");
    let delimiter = format!("\r\n--{boundary}");
    let mut parts: Vec<&str> = text.split(&delimiter).collect();
    assert_eq!((parts.first(), parts.last()), (Some(&""), Some(&"--\r\n")));
    parts.pop();
    let part = |part: &&str| {
        let (head, bytes) = part.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Type: application/octet-stream"), "{head}");
        let place = head.lines().find_map(|line| line.strip_prefix("Content-Range: ")).unwrap();
        (place.to_owned(), bytes.chars().map(|char| u8::try_from(char).unwrap()).collect())
    };
    parts[1..].iter().map(part).collect()
}

#[test]
fn several_ranges_come_in_the_order_they_were_asked_for() {
    let (_tree, served, bytes) = served();
    let mut client = served.connect();
    for (range, expected) in [
        ("bytes=0-9,20-29", vec![0..10, 20..30]),
        ("bytes=50000-69999,0-0,-5", vec![50_000..70_000, 0..1, 99_995..100_000]),
        ("bytes=0-9 , 5-14,, 0-9", vec![0..10, 5..15, 0..10]),
        ("bytes=1-1,200000-,2-2", vec![1..2, 2..3]),
        ("bytes=0-49999,50000-", vec![0..50_000, 50_000..LEN]),
    ] {
        let response = client.ask("GET", "/a.bin", &[("Range", range)]);
        assert_eq!((response.status, response.field("content-range")), (206, None), "{range}");
        let expected: Vec<_> = expected
            .into_iter()
            .map(|range| (format!("bytes {}-{}/{LEN}", range.start, range.end - 1), bytes[range].to_vec()))
            .collect();
        assert!(parts(&response) == expected, "{range}");
    }
}

#[test]
fn each_response_has_a_new_boundary() {
    let (_tree, served, _) = served();
    let boundary =
        || served.get_with("/a.bin", "Range", "bytes=0-0,2-2").field("content-type").unwrap().to_owned();
    assert_ne!(boundary(), boundary());
}

/// CVE-2011-3192: overlapping ranges must not multiply the response.
#[test]
fn ranges_never_add_up_to_more_than_the_file() {
    let (_tree, served, bytes) = served();
    let mut client = served.connect();
    let many = |range: &str, times: usize| format!("bytes={}", vec![range; times].join(","));
    for range in [many("0-", 2), many("0-", 1000), many("0-50000", 2), many("0-0", 17), many("-1", 3000)] {
        client.ask("GET", "/a.bin", &[("Range", &range)]).is(200, &bytes);
    }
    assert_eq!(client.ask("GET", "/a.bin", &[("Range", &many("0-0", 16))]).status, 206);
    let few = TestServer::new(&_tree, "limits = { ranges = 2 }\n", "");
    assert_eq!(few.get_with("/a.bin", "Range", &many("0-0", 2)).status, 206);
    few.get_with("/a.bin", "Range", &many("0-0", 3)).is(200, &bytes);
}

#[test]
fn if_range_needs_an_exact_match() {
    let (_tree, served, bytes) = served();
    let mut client = served.connect();
    let etag = client.get("/a.bin").etag().to_owned();
    let weak = format!("W/{etag}");
    for (value, applies) in [
        (etag.as_str(), true),
        (DATE, true),
        (weak.as_str(), false),
        ("\"other\"", false),
        ("*", false),
        ("", false),
        ("Fri, 13 Feb 2009 23:31:31 GMT", false),
        ("Fri, 13 Feb 2009 23:31:29 GMT", false),
        (&format!("{etag}, {etag}"), false),
    ] {
        let response = client.ask("GET", "/a.bin", &[("Range", "bytes=3-5"), ("If-Range", value)]);
        match applies {
            true => response.is(206, &bytes[3..6]),
            false => response.is(200, &bytes),
        }
        // Unsatisfiable ranges are handled like others under this condition.
        let response = client.ask("GET", "/a.bin", &[("Range", "bytes=100000-"), ("If-Range", value)]);
        assert_eq!(response.status, if applies { 416 } else { 200 }, "{value}");
    }
}
