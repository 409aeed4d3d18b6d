//! Conditions of a request (RFC 9110, section 13): whether it goes on, and whether its ranges count.
//!
//! Only for what would be answered 2xx: a failure or a redirect goes before all conditions (section 13.2.1), so also
//! `If-Match: *` for a file that does not exist is 404. Does not own: making validators (`etag`, `date`), reading ranges.

use http::Method;

use crate::date;
use crate::etag::{Tag, Tags};

/// The values of the headers, as they came. Of a singleton that is there twice the value is empty, which is none of its
/// forms; see `asked`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// `*` or a list of tags.
    pub if_match: Option<&'a [u8]>,
    /// A date.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// `*` or a list of tags.
    pub if_none_match: Option<&'a [u8]>,
    /// A date.
    pub if_modified_since: Option<&'a [u8]>,
    /// A tag or a date.
    pub if_range: Option<&'a [u8]>,
}

/// What is known of the representation that would be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// The value of `ETag`.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`, seconds since the epoch.
    pub last_modified_s: Option<u64>,
    /// Whether nothing else can have had this date (section 8.8.2.2). Not before the file has settled
    /// ([`crate::etag::Stamp::settled`]), and not where the file has several codings: they may all be of the same second.
    pub date_is_strong: bool,
}

/// What conditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request goes on.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// Evaluates all conditions but `If-Range`, in the order of section 13.2.2. A date that is none is as if the header were not
/// there (sections 13.1.3 and 13.1.4).
#[must_use]
pub fn evaluate(method: &Method, conditions: &Conditions<'_>, validators: &Validators<'_>) -> Outcome {
    if matches!(*method, Method::OPTIONS | Method::TRACE | Method::CONNECT) {
        return Outcome::Proceed;
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !still_same(conditions, validators) {
        Outcome::PreconditionFailed
    } else if is_other(conditions, validators, reads) {
        Outcome::Proceed
    } else if reads {
        Outcome::NotModified
    } else {
        Outcome::PreconditionFailed
    }
}

/// Whether `Range` counts: with GET alone (section 14.2), and if `If-Range` names exactly what would be sent (section 13.1.5).
#[must_use]
pub fn ranges_apply(method: &Method, conditions: &Conditions<'_>, validators: &Validators<'_>) -> bool {
    let same = |value| match (Tag::parse(value), date::parse(value)) {
        (Some(tag), _) => current(validators).is_some_and(|current| current.is(tag)),
        (None, Some(date)) => validators.date_is_strong && validators.last_modified_s == Some(date),
        (None, None) => false,
    };
    *method == Method::GET && conditions.if_range.is_none_or(same)
}

/// Steps 1 and 2.
fn still_same(conditions: &Conditions<'_>, validators: &Validators<'_>) -> bool {
    match conditions.if_match {
        Some(list) => lists(list, validators, |ours, theirs| ours.is(theirs)),
        None => is_since(conditions.if_unmodified_since, validators).unwrap_or(true),
    }
}

/// Steps 3 and 4.
fn is_other(conditions: &Conditions<'_>, validators: &Validators<'_>, reads: bool) -> bool {
    match conditions.if_none_match {
        Some(list) => !lists(list, validators, |ours, theirs| ours.is_like(theirs)),
        None if reads => !is_since(conditions.if_modified_since, validators).unwrap_or(false),
        None => true,
    }
}

/// Whether the representation is not younger than a date, if both have one.
fn is_since(value: Option<&[u8]>, validators: &Validators<'_>) -> Option<bool> {
    Some(validators.last_modified_s? <= date::parse(value?)?)
}

fn lists(list: &[u8], validators: &Validators<'_>, same: fn(Tag<'_>, Tag<'_>) -> bool) -> bool {
    list.trim_ascii() == b"*"
        || current(validators).is_some_and(|current| Tags::new(list).any(|tag| same(current, tag)))
}

fn current<'a>(validators: &Validators<'a>) -> Option<Tag<'a>> {
    validators.etag.and_then(Tag::parse)
}

#[cfg(test)]
mod tests;
