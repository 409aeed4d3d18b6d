//! The order of preconditions, compared with the steps of RFC 9110 on unparsed values.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const EARLIER: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
const DATE: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";
const FILE: Validators<'_> =
    Validators { etag: Some(b"\"a\""), last_modified_s: Some(784_111_777), date_is_strong: true };

fn get(conditions: Preconditions<'_>) -> PreconditionOutcome {
    evaluate(&Method::GET, &conditions, &FILE)
}

fn applies(if_range: &[u8], validators: Validators<'_>) -> bool {
    let conditions = Preconditions { if_range: Some(if_range), ..Preconditions::default() };
    ranges_apply(&Method::GET, &conditions, &validators)
}

#[test]
fn if_match_takes_precedence_over_if_unmodified_since() {
    let conditions = Preconditions { if_unmodified_since: Some(EARLIER), ..Preconditions::default() };
    assert_eq!(get(conditions), PreconditionOutcome::PreconditionFailed);
    assert_eq!(
        get(Preconditions { if_match: Some(b"\"b\", \"a\""), ..conditions }),
        PreconditionOutcome::Proceed
    );
    assert_eq!(get(Preconditions { if_match: Some(b" * "), ..conditions }), PreconditionOutcome::Proceed);
    assert_eq!(
        get(Preconditions { if_match: Some(b"W/\"a\""), ..conditions }),
        PreconditionOutcome::PreconditionFailed
    );
}

#[test]
fn if_none_match_takes_precedence_over_if_modified_since() {
    let conditions = Preconditions { if_modified_since: Some(DATE), ..Preconditions::default() };
    assert_eq!(get(conditions), PreconditionOutcome::NotModified);
    assert_eq!(
        get(Preconditions { if_none_match: Some(b"\"b\""), ..conditions }),
        PreconditionOutcome::Proceed
    );
    assert_eq!(get(Preconditions { if_none_match: Some(b""), ..conditions }), PreconditionOutcome::Proceed);
    assert_eq!(
        get(Preconditions { if_none_match: Some(b"W/\"a\""), ..conditions }),
        PreconditionOutcome::NotModified
    );
}

#[test]
fn a_failed_precondition_goes_before_not_modified() {
    let conditions =
        Preconditions { if_match: Some(b"\"b\""), if_none_match: Some(b"\"a\""), ..Preconditions::default() };
    assert_eq!(get(conditions), PreconditionOutcome::PreconditionFailed);
}

#[test]
fn what_is_no_date_is_not_there() {
    for date in [&b""[..], b"0", b"yesterday", b"Mon, 06 Nov 1994 08:49:36 GMT"] {
        let conditions = Preconditions {
            if_modified_since: Some(date),
            if_unmodified_since: Some(date),
            ..Preconditions::default()
        };
        assert_eq!(get(conditions), PreconditionOutcome::Proceed);
    }
}

#[test]
fn a_file_without_validators_fails_only_what_needs_them() {
    let nothing = Validators::default();
    let evaluate = |conditions| evaluate(&Method::GET, &conditions, &nothing);
    let dates = Preconditions {
        if_unmodified_since: Some(EARLIER),
        if_modified_since: Some(LATER),
        ..Preconditions::default()
    };
    assert_eq!(evaluate(dates), PreconditionOutcome::Proceed);
    assert_eq!(evaluate(Preconditions { if_match: Some(b"*"), ..dates }), PreconditionOutcome::Proceed);
    assert_eq!(
        evaluate(Preconditions { if_match: Some(b"\"a\""), ..dates }),
        PreconditionOutcome::PreconditionFailed
    );
    assert_eq!(
        evaluate(Preconditions { if_none_match: Some(b"*"), ..dates }),
        PreconditionOutcome::NotModified
    );
}

#[test]
fn a_range_needs_exactly_what_would_be_sent() {
    assert!(applies(b"\"a\"", FILE) && applies(DATE, FILE));
    for other in [&b"W/\"a\""[..], b"\"b\"", b"*", b"", b"\"a\", \"b\"", EARLIER, LATER] {
        assert!(!applies(other, FILE), "{}", other.escape_ascii());
    }
    assert!(!applies(b"W/\"a\"", Validators { etag: Some(b"W/\"a\""), ..FILE }));
    assert!(!applies(b"\"a\"", Validators { etag: Some(b"W/\"a\""), ..FILE }));
    assert!(!applies(DATE, Validators { date_is_strong: false, ..FILE }));
}

#[test]
fn ranges_are_for_get_alone() {
    for (method, expected) in [(Method::GET, true), (Method::HEAD, false), (Method::POST, false)] {
        assert_eq!(ranges_apply(&method, &Preconditions::default(), &FILE), expected);
    }
}

/// A precondition on tags, before it is formatted as a header.
#[derive(Clone, Debug)]
enum Wanted {
    Any,
    Tags(Vec<(bool, char)>),
}

/// A request and a file, before they are formatted as headers.
#[derive(Clone, Debug)]
struct Case {
    if_match: Option<Wanted>,
    if_none_match: Option<Wanted>,
    unmodified_since: Option<u64>,
    modified_since: Option<u64>,
    etag: Option<(bool, char)>,
    date: Option<u64>,
    reads: bool,
}

impl Case {
    /// The outcome by the steps of section 13.2.2.
    fn model(&self) -> PreconditionOutcome {
        let mut step = 1;
        loop {
            step = match step {
                1 if self.if_match.is_none() => 2,
                1 if self.names(&self.if_match, true) => 3,
                1 => return PreconditionOutcome::PreconditionFailed,
                2 if matches!((self.date, self.unmodified_since), (Some(date), Some(since)) if date > since) =>
                {
                    return PreconditionOutcome::PreconditionFailed;
                }
                2 => 3,
                3 if self.if_none_match.is_none() => 4,
                3 if !self.names(&self.if_none_match, false) => 5,
                3 if self.reads => return PreconditionOutcome::NotModified,
                3 => return PreconditionOutcome::PreconditionFailed,
                4 if !self.reads => 5,
                4 if matches!((self.date, self.modified_since), (Some(date), Some(since)) if date <= since) =>
                {
                    return PreconditionOutcome::NotModified;
                }
                4 => 5,
                _ => return PreconditionOutcome::Proceed,
            };
        }
    }

    fn names(&self, wanted: &Option<Wanted>, strong: bool) -> bool {
        match (wanted, self.etag) {
            (Some(Wanted::Any), _) => true,
            (Some(Wanted::Tags(tags)), Some((weak, name))) if strong => {
                !weak && tags.contains(&(false, name))
            }
            (Some(Wanted::Tags(tags)), Some((_, name))) => tags.iter().any(|tag| tag.1 == name),
            _ => false,
        }
    }

    fn outcome(&self, method: &Method) -> PreconditionOutcome {
        let lists = [&self.if_match, &self.if_none_match].map(|wanted| wanted.as_ref().map(list_text));
        let dates = [self.unmodified_since, self.modified_since].map(|date| date.and_then(date::value));
        let etag = self.etag.as_ref().map(tag_text);
        let conditions = Preconditions {
            if_match: lists[0].as_deref().map(str::as_bytes),
            if_unmodified_since: dates[0].as_ref().map(HeaderValue::as_bytes),
            if_none_match: lists[1].as_deref().map(str::as_bytes),
            if_modified_since: dates[1].as_ref().map(HeaderValue::as_bytes),
            if_range: None,
        };
        let etag = etag.as_deref().map(str::as_bytes);
        evaluate(method, &conditions, &Validators { etag, last_modified_s: self.date, date_is_strong: true })
    }
}

fn tag_text((weak, name): &(bool, char)) -> String {
    format!("{}\"{name}\"", if *weak { "W/" } else { "" })
}

fn list_text(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Any => "*".to_owned(),
        Wanted::Tags(tags) => tags.iter().map(tag_text).collect::<Vec<_>>().join(" ,"),
    }
}

fn wanted() -> impl Strategy<Value = Option<Wanted>> {
    let tags = prop::collection::vec((any::<bool>(), prop::char::range('a', 'c')), 0..3);
    prop::option::of(prop_oneof![Just(Wanted::Any), tags.prop_map(Wanted::Tags)])
}

prop_compose! {
    fn cases()(
        if_match in wanted(), if_none_match in wanted(),
        unmodified_since in prop::option::of(0..3u64), modified_since in prop::option::of(0..3u64),
        etag in prop::option::of((any::<bool>(), prop::char::range('a', 'b'))), date in prop::option::of(0..3u64),
        reads: bool,
    ) -> Case {
        Case { if_match, if_none_match, unmodified_since, modified_since, etag, date, reads }
    }
}

proptest! {
    #![proptest_config(fathom_cases::property(8000))]

    #[test]
    fn the_order_is_that_of_the_rfc(case in cases()) {
        for method in if case.reads { [Method::GET, Method::HEAD] } else { [Method::PUT, Method::DELETE] } {
            prop_assert_eq!(case.outcome(&method), case.model());
        }
        prop_assert_eq!(case.outcome(&Method::OPTIONS), PreconditionOutcome::Proceed);
    }
}
