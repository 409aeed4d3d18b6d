//! Request targets of arbitrary bytes: the target is rejected, or its path names a file below the
//! root and has exactly one encoding.

#![no_main]

use fathom_serve::path::{NAME_BYTES, RequestTarget, encode, is_hidden, location};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(RequestTarget { path, is_dir }) = RequestTarget::parse(bytes) else { return };
    let mut names = path.split(|byte| *byte == b'/');
    assert!(!path.contains(&0));
    assert!(
        path.is_empty() || names.all(|name| !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_BYTES),
        "{}",
        path.escape_ascii()
    );
    if bytes.starts_with(b"/") {
        // Percent signs are decoded once: each one in the path was encoded as `%25`.
        let encoded = bytes.windows(3).filter(|window| *window == b"%25").count();
        assert_eq!(path.iter().filter(|byte| **byte == b'%').count(), encoded);
    }
    let slash = if is_dir && !path.is_empty() { "/" } else { "" };
    let url = encode(&path) + slash;
    assert!(!url.starts_with("//"));
    // A redirect location contains neither a host nor a scheme (RFC 3986, section 4.2).
    let way = location(&path, &[&path, &b"/"[..]].concat(), None);
    let first = way.split('/').next().unwrap_or_default();
    assert!(!first.is_empty() && !first.contains(':'), "{way}");
    assert_eq!(RequestTarget::parse(url.as_bytes()), Ok(RequestTarget { path: path.clone(), is_dir }));
    assert_eq!(
        is_hidden(&path),
        path.split(|byte| *byte == b'/')
            .enumerate()
            .any(|(index, name)| { name.first() == Some(&b'.') && (index > 0 || name != b".well-known") })
    );
});
