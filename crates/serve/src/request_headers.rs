//! The request headers that the server reads, found in one pass.
//!
//! Owns: the treatment of repeated headers. Does not own: the meaning of values.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::conditional::Preconditions;

/// The value of a single-valued header that is repeated: empty, which no such header allows, so its
/// parser takes it for malformed. A repeated date or range is then ignored (RFC 9110, sections
/// 13.1.3, 13.1.4 and 14.2), a repeated `If-Range` or `Authorization` does not match, and a
/// repeated `Origin` is no origin.
static REPEATED: HeaderValue = HeaderValue::from_static("");

/// The values of the request headers. Repeated list headers are joined (RFC 9110, section 5.3),
/// which is the only allocation.
///
/// ```
/// use fathom_serve::request_headers::RequestHeaders;
/// use http::{HeaderMap, HeaderValue, header};
///
/// let mut headers = HeaderMap::new();
/// headers.append(header::ACCEPT, HeaderValue::from_static("text/html"));
/// headers.append(header::ACCEPT, HeaderValue::from_static("*/*"));
/// let found = RequestHeaders::new(&headers);
/// assert_eq!(found.accept.as_deref(), Some(&b"text/html, */*"[..]));
/// assert!(found.range.is_none() && !found.host_is_ambiguous);
/// ```
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders<'a> {
    /// `Accept`.
    pub accept: Option<Cow<'a, [u8]>>,
    /// `Accept-Encoding`.
    pub accept_encoding: Option<Cow<'a, [u8]>>,
    /// `Access-Control-Request-Headers`.
    pub access_control_request_headers: Option<Cow<'a, [u8]>>,
    /// `Access-Control-Request-Method`.
    pub access_control_request_method: Option<&'a HeaderValue>,
    /// `Authorization`.
    pub authorization: Option<&'a HeaderValue>,
    /// `Host`.
    pub host: Option<&'a HeaderValue>,
    /// Whether `Host` is repeated, which must be answered 400 (RFC 9112, section 3.2).
    pub host_is_ambiguous: bool,
    /// `If-Match`.
    pub if_match: Option<Cow<'a, [u8]>>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a HeaderValue>,
    /// `If-None-Match`.
    pub if_none_match: Option<Cow<'a, [u8]>>,
    /// `If-Range`.
    pub if_range: Option<&'a HeaderValue>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<&'a HeaderValue>,
    /// `Origin`.
    pub origin: Option<&'a HeaderValue>,
    /// `Range`.
    pub range: Option<&'a HeaderValue>,
    /// `Referer`.
    pub referer: Option<&'a HeaderValue>,
    /// `User-Agent`.
    pub user_agent: Option<&'a HeaderValue>,
}

impl<'a> RequestHeaders<'a> {
    /// Collects the headers of a request.
    #[must_use]
    pub fn new(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            found.add(name, value);
        }
        found
    }

    fn add(&mut self, name: &HeaderName, value: &'a HeaderValue) {
        match *name {
            header::ACCEPT => join_list(&mut self.accept, value),
            header::ACCEPT_ENCODING => join_list(&mut self.accept_encoding, value),
            header::ACCESS_CONTROL_REQUEST_HEADERS => {
                join_list(&mut self.access_control_request_headers, value)
            }
            header::ACCESS_CONTROL_REQUEST_METHOD => {
                set_single(&mut self.access_control_request_method, value)
            }
            header::AUTHORIZATION => set_single(&mut self.authorization, value),
            header::HOST => {
                self.host_is_ambiguous = self.host.is_some();
                set_single(&mut self.host, value);
            }
            header::IF_MATCH => join_list(&mut self.if_match, value),
            header::IF_MODIFIED_SINCE => set_single(&mut self.if_modified_since, value),
            header::IF_NONE_MATCH => join_list(&mut self.if_none_match, value),
            header::IF_RANGE => set_single(&mut self.if_range, value),
            header::IF_UNMODIFIED_SINCE => set_single(&mut self.if_unmodified_since, value),
            header::ORIGIN => set_single(&mut self.origin, value),
            header::RANGE => set_single(&mut self.range, value),
            header::REFERER => set_single(&mut self.referer, value),
            header::USER_AGENT => set_single(&mut self.user_agent, value),
            _ => {}
        }
    }

    /// Returns the preconditions of the request.
    #[must_use]
    pub fn conditions(&self) -> Preconditions<'_> {
        Preconditions {
            if_match: self.if_match.as_deref(),
            if_unmodified_since: self.if_unmodified_since.map(HeaderValue::as_bytes),
            if_none_match: self.if_none_match.as_deref(),
            if_modified_since: self.if_modified_since.map(HeaderValue::as_bytes),
            if_range: self.if_range.map(HeaderValue::as_bytes),
        }
    }
}

fn set_single<'a>(slot: &mut Option<&'a HeaderValue>, value: &'a HeaderValue) {
    *slot = Some(if slot.is_some() { &REPEATED } else { value });
}

fn join_list<'a>(slot: &mut Option<Cow<'a, [u8]>>, value: &'a HeaderValue) {
    match slot {
        None => *slot = Some(Cow::Borrowed(value.as_bytes())),
        Some(list) => {
            let list = list.to_mut();
            list.extend_from_slice(b", ");
            list.extend_from_slice(value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::conditional::{PreconditionOutcome, Validators, evaluate, ranges_apply};
    use crate::negotiate::{AcceptedCodings, Coding};
    use crate::range::{Selection, select};

    fn map(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    const FILE: Validators<'_> =
        Validators { etag: Some(b"\"a\""), last_modified_s: Some(784_111_777), date_is_strong: true };

    #[test]
    fn each_header_has_its_place() {
        let names = [
            "accept",
            "accept-encoding",
            "access-control-request-headers",
            "access-control-request-method",
            "authorization",
            "host",
            "if-match",
            "if-modified-since",
            "if-none-match",
            "if-range",
            "if-unmodified-since",
            "origin",
            "range",
            "referer",
            "user-agent",
        ];
        let mut headers = map(&names.map(|name| (name, name)));
        headers.insert("cookie", HeaderValue::from_static("cookie"));
        let found = RequestHeaders::new(&headers);
        let lists = [
            &found.accept,
            &found.accept_encoding,
            &found.access_control_request_headers,
            &found.if_match,
            &found.if_none_match,
        ];
        let lists = lists.map(|list| std::str::from_utf8(list.as_deref().unwrap()).unwrap());
        assert_eq!(lists, [names[0], names[1], names[2], names[6], names[8]]);
        let others = [
            found.access_control_request_method,
            found.authorization,
            found.host,
            found.if_modified_since,
            found.if_range,
            found.if_unmodified_since,
            found.origin,
            found.range,
            found.referer,
            found.user_agent,
        ];
        let others = others.map(|value| value.unwrap().to_str().unwrap());
        assert_eq!(others, [3, 4, 5, 7, 9, 10, 11, 12, 13, 14].map(|index: usize| names[index]));
        assert!(!found.host_is_ambiguous);
    }

    #[test]
    fn a_single_list_header_is_not_copied() {
        let headers = map(&[("accept-encoding", "gzip")]);
        assert!(matches!(RequestHeaders::new(&headers).accept_encoding, Some(Cow::Borrowed(b"gzip"))));
    }

    #[test]
    fn lists_are_joined() {
        let headers = map(&[
            ("accept-encoding", "gzip;q=0.5"),
            ("if-none-match", "\"b\""),
            ("accept-encoding", "br"),
            ("if-none-match", "W/\"a\""),
            ("accept-encoding", "zstd"),
        ]);
        let found = RequestHeaders::new(&headers);
        assert_eq!(found.accept_encoding.as_deref(), Some(&b"gzip;q=0.5, br, zstd"[..]));
        assert_eq!(
            AcceptedCodings::parse(found.accept_encoding.as_deref()).best(&Coding::ALL),
            Some(Coding::Br)
        );
        assert_eq!(evaluate(&Method::GET, &found.conditions(), &FILE), PreconditionOutcome::NotModified);
    }

    #[test]
    fn repeated_single_headers_are_ignored() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for times in 2..4 {
            for (name, value) in
                [("if-modified-since", date), ("if-unmodified-since", "Sun, 06 Nov 1994 08:49:36 GMT")]
            {
                let headers = map(&vec![(name, value); times]);
                assert_eq!(
                    evaluate(&Method::GET, &RequestHeaders::new(&headers).conditions(), &FILE),
                    PreconditionOutcome::Proceed
                );
            }
            let headers =
                map(&[vec![("if-range", "\"a\""); times], vec![("range", "bytes=0-1"); times]].concat());
            let found = RequestHeaders::new(&headers);
            assert!(!ranges_apply(&Method::GET, &found.conditions(), &FILE));
            assert_eq!(select(found.range.unwrap().as_bytes(), 10, 4), Selection::Whole);
            let headers =
                map(&[vec![("host", "a"); times], vec![("authorization", "Basic eDp5"); times]].concat());
            let found = RequestHeaders::new(&headers);
            assert!(found.host_is_ambiguous);
            assert_eq!(found.authorization.unwrap(), "");
        }
    }
}
