//! Headers in which proxies name their clients, from any bytes: headers are as long as they say and
//! need all of their bytes, and lists have an address for each element at most.

#![no_main]

use fathom_serve::proxies::{HEADER_BYTES_MAX, ProxyHeader, forwarded, parse, x_forwarded_for};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse(bytes) {
        ProxyHeader::Complete { len, client } => {
            assert!(len <= bytes.len() && len <= HEADER_BYTES_MAX);
            assert_eq!(parse(&bytes[..len]), ProxyHeader::Complete { len, client });
            assert_eq!(parse(&bytes[..len - 1]), ProxyHeader::Incomplete);
        }
        ProxyHeader::Incomplete => assert!(bytes.len() < HEADER_BYTES_MAX),
        // More bytes do not turn a malformed header into a valid one.
        ProxyHeader::Malformed => assert_eq!(parse(&[bytes, b"\r\n"].concat()), ProxyHeader::Malformed),
    }
    let commas = bytes.iter().filter(|byte| **byte == b',').count();
    assert_eq!(x_forwarded_for(bytes).len(), commas + 1);
    let elements = forwarded(bytes);
    assert!((1..=commas + 1).contains(&elements.len()));
    // Each proxy appends; what it says is not changed by what stood there, if that was well formed.
    if elements.iter().any(Option::is_some) {
        let appended = forwarded(&[bytes, b", for=192.0.2.1"].concat());
        assert_eq!(appended.last().copied().flatten(), "192.0.2.1".parse().ok());
    }
});
