//! Accept and Accept-Encoding headers of arbitrary bytes: the chosen coding is available, and
//! additional elements for other types do not change the choice.

#![no_main]

use fathom_serve::negotiate::{AcceptedCodings, Coding, prefers_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|header: &[u8]| {
    let accepted = AcceptedCodings::parse(Some(header));
    let best = accepted.best(&Coding::ALL);
    for coding in Coding::ALL {
        let alone = accepted.best(&[coding]);
        assert!(alone.is_none() || alone == Some(coding));
        assert!(best.is_some() || alone.is_none());
        if best == Some(coding) {
            assert_eq!(alone, best);
        }
    }
    // Prepended, because the header may end within a quoted string.
    let more = [b"deflate;q=0.7, image/png,", header].concat();
    assert_eq!(AcceptedCodings::parse(Some(&more)), accepted);
    assert_eq!(prefers_json(Some(&more)), prefers_json(Some(header)));
    let names = |name: &[u8]| header.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name));
    assert!(best != Some(Coding::Br) || names(b"br") || names(b"*"));
    assert!(!prefers_json(Some(header)) || names(b"application/") || names(b"*/*"));
});
