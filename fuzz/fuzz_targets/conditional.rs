//! Conditional requests whose headers are lines of arbitrary bytes: the outcome follows from the
//! entity tags and dates, and a condition that names the current entity tag holds.

#![no_main]

use fathom_serve::conditional::{PreconditionOutcome, Preconditions, Validators, evaluate, ranges_apply};
use fathom_serve::date;
use fathom_serve::etag::{EntityTag, EntityTags};
use http::Method;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| Some(line).filter(|line| !line.is_empty()));
    let mut line = || lines.next().flatten();
    let conditions = Preconditions {
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
    let writes =
        evaluate(&Method::PUT, &Preconditions { if_modified_since: None, ..conditions }, &validators);
    assert_ne!(writes, PreconditionOutcome::NotModified);
    assert_eq!(evaluate(&Method::HEAD, &conditions, &validators), outcome);
    let only_read = Preconditions { if_match: None, if_unmodified_since: None, ..conditions };
    assert_ne!(evaluate(&Method::GET, &only_read, &validators), PreconditionOutcome::PreconditionFailed);

    // A list that begins with the current entity tag matches, regardless of the rest.
    if let (Some(etag), Some(rest)) = (etag, conditions.if_none_match)
        && let Some(tag) = EntityTag::parse(etag)
    {
        let list = [etag, b",", rest].concat();
        assert!(EntityTags::new(&list).next() == Some(tag));
        let same =
            Preconditions { if_match: Some(&list), if_none_match: Some(&list), ..Preconditions::default() };
        let expected =
            if tag.weak { PreconditionOutcome::PreconditionFailed } else { PreconditionOutcome::NotModified };
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
