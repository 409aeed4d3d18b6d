//! Preconditions of a request (RFC 9110, section 13): whether the request proceeds, and whether its
//! ranges apply.
//!
//! Only for requests that would be answered 2xx: a failure or a redirect takes precedence over all
//! preconditions (section 13.2.1), so `If-Match: *` for a missing file is 404 as well. Does not
//! own: making validators (`etag`, `date`), parsing ranges.

use http::Method;

use crate::date;
use crate::etag::{EntityTag, EntityTags};

/// The raw values of the headers. A repeated single-valued header has an empty value, which matches
/// none of its forms; see [`crate::request_headers`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Preconditions<'a> {
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

/// The validators of the selected representation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// The value of `ETag`.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`, seconds since the epoch.
    pub last_modified_s: Option<u64>,
    /// Whether no other state of the file can have had this date (section 8.8.2.2). That is not so
    /// before the file has settled ([`crate::etag::FileStamp::settled`]), nor if the file has
    /// several codings, which may all have been made in the same second.
    pub date_is_strong: bool,
}

/// The result of the preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreconditionOutcome {
    /// Proceed with the request.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// Evaluates all preconditions except `If-Range`, in the order of section 13.2.2. A malformed date
/// is ignored (sections 13.1.3 and 13.1.4).
///
/// ```
/// use fathom_serve::conditional::{
///     PreconditionOutcome, Preconditions, Validators, evaluate, ranges_apply,
/// };
/// use http::Method;
///
/// let current = Validators { etag: Some(b"\"a\""), ..Validators::default() };
/// let cached = Preconditions { if_none_match: Some(b"\"a\", \"b\""), ..Preconditions::default() };
/// assert_eq!(evaluate(&Method::GET, &cached, &current), PreconditionOutcome::NotModified);
/// let update = Preconditions { if_match: Some(b"\"old\""), ..Preconditions::default() };
/// assert_eq!(evaluate(&Method::GET, &update, &current), PreconditionOutcome::PreconditionFailed);
/// let resumed = Preconditions { if_range: Some(b"\"a\""), ..Preconditions::default() };
/// assert!(ranges_apply(&Method::GET, &resumed, &current));
/// ```
#[must_use]
pub fn evaluate(
    method: &Method,
    conditions: &Preconditions<'_>,
    validators: &Validators<'_>,
) -> PreconditionOutcome {
    if matches!(*method, Method::OPTIONS | Method::TRACE | Method::CONNECT) {
        return PreconditionOutcome::Proceed;
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !is_unmodified(conditions, validators) {
        PreconditionOutcome::PreconditionFailed
    } else if is_modified(conditions, validators, reads) {
        PreconditionOutcome::Proceed
    } else if reads {
        PreconditionOutcome::NotModified
    } else {
        PreconditionOutcome::PreconditionFailed
    }
}

/// Returns whether `Range` applies: only with GET (section 14.2), and only if `If-Range` names
/// exactly the selected representation (section 13.1.5).
#[must_use]
pub fn ranges_apply(method: &Method, conditions: &Preconditions<'_>, validators: &Validators<'_>) -> bool {
    let same = |value| match (EntityTag::parse(value), date::parse(value)) {
        (Some(tag), _) => current_tag(validators).is_some_and(|current| current.matches_strongly(tag)),
        (None, Some(date)) => validators.date_is_strong && validators.last_modified_s == Some(date),
        (None, None) => false,
    };
    *method == Method::GET && conditions.if_range.is_none_or(same)
}

/// Steps 1 and 2 of section 13.2.2.
fn is_unmodified(conditions: &Preconditions<'_>, validators: &Validators<'_>) -> bool {
    match conditions.if_match {
        Some(list) => any_tag_matches(list, validators, |ours, theirs| ours.matches_strongly(theirs)),
        None => is_not_newer(conditions.if_unmodified_since, validators).unwrap_or(true),
    }
}

/// Steps 3 and 4 of section 13.2.2.
fn is_modified(conditions: &Preconditions<'_>, validators: &Validators<'_>, reads: bool) -> bool {
    match conditions.if_none_match {
        Some(list) => !any_tag_matches(list, validators, |ours, theirs| ours.matches_weakly(theirs)),
        None if reads => !is_not_newer(conditions.if_modified_since, validators).unwrap_or(false),
        None => true,
    }
}

/// Returns whether the representation is not newer than a date, if both dates are known.
fn is_not_newer(value: Option<&[u8]>, validators: &Validators<'_>) -> Option<bool> {
    Some(validators.last_modified_s? <= date::parse(value?)?)
}

fn any_tag_matches(
    list: &[u8],
    validators: &Validators<'_>,
    same: fn(EntityTag<'_>, EntityTag<'_>) -> bool,
) -> bool {
    list.trim_ascii() == b"*"
        || current_tag(validators).is_some_and(|current| EntityTags::new(list).any(|tag| same(current, tag)))
}

fn current_tag<'a>(validators: &Validators<'a>) -> Option<EntityTag<'a>> {
    validators.etag.and_then(EntityTag::parse)
}

#[cfg(test)]
mod tests;
