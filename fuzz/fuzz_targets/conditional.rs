//! Conditions as any bytes, each line a header: what they come to is what their tags and dates say, and one that names what is there holds.

#![no_main]

use fathom_serve::conditional::{Conditions, Outcome, Validators, evaluate, ranges_apply};
use fathom_serve::date;
use fathom_serve::etag::{Tag, Tags};
use http::Method;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| Some(line).filter(|line| !line.is_empty()));
    let mut line = || lines.next().flatten();
    let conditions = Conditions {
        if_match: line(),
        if_unmodified_since: line(),
        if_none_match: line(),
        if_modified_since: line(),
        if_range: line(),
    };
    let etag = line();
    let last_modified_s = line().and_then(date::parse);
    let validators = Validators { etag, last_modified_s, date_is_strong: true };

    let outcome = evaluate(&Method::GET, &conditions, &validators);
    let writes = evaluate(&Method::PUT, &Conditions { if_modified_since: None, ..conditions }, &validators);
    assert_ne!(writes, Outcome::NotModified);
    assert_eq!(evaluate(&Method::HEAD, &conditions, &validators), outcome);
    let only_read = Conditions { if_match: None, if_unmodified_since: None, ..conditions };
    assert_ne!(evaluate(&Method::GET, &only_read, &validators), Outcome::PreconditionFailed);

    // A list that begins with what is there holds, whatever comes after it.
    if let (Some(etag), Some(rest)) = (etag, conditions.if_none_match)
        && let Some(tag) = Tag::parse(etag)
    {
        let list = [etag, b",", rest].concat();
        assert!(Tags::new(&list).next() == Some(tag));
        let same = Conditions { if_match: Some(&list), if_none_match: Some(&list), ..Conditions::default() };
        let expected = if tag.weak { Outcome::PreconditionFailed } else { Outcome::NotModified };
        assert_eq!(evaluate(&Method::GET, &same, &validators), expected);
    }
    if ranges_apply(&Method::GET, &conditions, &validators)
        && let Some(value) = conditions.if_range
    {
        assert!(Some(value) == etag || (last_modified_s.is_some() && date::parse(value) == last_modified_s));
    }
    for seconds in
        [conditions.if_modified_since, conditions.if_range].into_iter().flatten().filter_map(date::parse)
    {
        assert_eq!(date::value(seconds).and_then(|value| date::parse(value.as_bytes())), Some(seconds));
    }
});
