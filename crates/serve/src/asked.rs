//! The headers of a request that the server looks at, found in one pass.
//!
//! Owns what becomes of a header that is there twice. Does not own: what values mean.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::conditional::Conditions;

/// What a header that must be there once comes to when it is there twice: an empty value, which none of them may have, so
/// that its reader takes it for malformed. A date and a range are not looked at then (RFC 9110, sections 13.1.3, 13.1.4 and
/// 14.2), `If-Range` and credentials do not match, an origin is nobody's.
static TWICE: HeaderValue = HeaderValue::from_static("");

/// Values by header. Lists that are there twice are joined (RFC 9110, section 5.3), which is all that allocates.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
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
    /// Whether `Host` is there twice, which must be answered 400 (RFC 9112, section 3.2).
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

impl<'a> Asked<'a> {
    /// Of a request's headers.
    #[must_use]
    pub fn new(headers: &'a HeaderMap) -> Self {
        let mut asked = Self::default();
        for (name, value) in headers {
            asked.add(name, value);
        }
        asked
    }

    fn add(&mut self, name: &HeaderName, value: &'a HeaderValue) {
        match *name {
            header::ACCEPT => join(&mut self.accept, value),
            header::ACCEPT_ENCODING => join(&mut self.accept_encoding, value),
            header::ACCESS_CONTROL_REQUEST_HEADERS => join(&mut self.access_control_request_headers, value),
            header::ACCESS_CONTROL_REQUEST_METHOD => once(&mut self.access_control_request_method, value),
            header::AUTHORIZATION => once(&mut self.authorization, value),
            header::HOST => {
                self.host_is_ambiguous = self.host.is_some();
                once(&mut self.host, value);
            }
            header::IF_MATCH => join(&mut self.if_match, value),
            header::IF_MODIFIED_SINCE => once(&mut self.if_modified_since, value),
            header::IF_NONE_MATCH => join(&mut self.if_none_match, value),
            header::IF_RANGE => once(&mut self.if_range, value),
            header::IF_UNMODIFIED_SINCE => once(&mut self.if_unmodified_since, value),
            header::ORIGIN => once(&mut self.origin, value),
            header::RANGE => once(&mut self.range, value),
            header::REFERER => once(&mut self.referer, value),
            header::USER_AGENT => once(&mut self.user_agent, value),
            _ => {}
        }
    }

    /// The conditions among them.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions {
            if_match: self.if_match.as_deref(),
            if_unmodified_since: self.if_unmodified_since.map(HeaderValue::as_bytes),
            if_none_match: self.if_none_match.as_deref(),
            if_modified_since: self.if_modified_since.map(HeaderValue::as_bytes),
            if_range: self.if_range.map(HeaderValue::as_bytes),
        }
    }
}

fn once<'a>(slot: &mut Option<&'a HeaderValue>, value: &'a HeaderValue) {
    *slot = Some(if slot.is_some() { &TWICE } else { value });
}

fn join<'a>(slot: &mut Option<Cow<'a, [u8]>>, value: &'a HeaderValue) {
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
    use crate::conditional::{Outcome, Validators, evaluate, ranges_apply};
    use crate::negotiate::{Accepted, Coding};
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
        let asked = Asked::new(&headers);
        let lists = [
            &asked.accept,
            &asked.accept_encoding,
            &asked.access_control_request_headers,
            &asked.if_match,
            &asked.if_none_match,
        ];
        let lists = lists.map(|list| std::str::from_utf8(list.as_deref().unwrap()).unwrap());
        assert_eq!(lists, [names[0], names[1], names[2], names[6], names[8]]);
        let others = [
            asked.access_control_request_method,
            asked.authorization,
            asked.host,
            asked.if_modified_since,
            asked.if_range,
            asked.if_unmodified_since,
            asked.origin,
            asked.range,
            asked.referer,
            asked.user_agent,
        ];
        let others = others.map(|value| value.unwrap().to_str().unwrap());
        assert_eq!(others, [3, 4, 5, 7, 9, 10, 11, 12, 13, 14].map(|index: usize| names[index]));
        assert!(!asked.host_is_ambiguous);
    }

    #[test]
    fn a_list_that_is_there_once_is_not_copied() {
        let headers = map(&[("accept-encoding", "gzip")]);
        assert!(matches!(Asked::new(&headers).accept_encoding, Some(Cow::Borrowed(b"gzip"))));
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
        let asked = Asked::new(&headers);
        assert_eq!(asked.accept_encoding.as_deref(), Some(&b"gzip;q=0.5, br, zstd"[..]));
        assert_eq!(Accepted::parse(asked.accept_encoding.as_deref()).best(&Coding::ALL), Some(Coding::Br));
        assert_eq!(evaluate(&Method::GET, &asked.conditions(), &FILE), Outcome::NotModified);
    }

    #[test]
    fn what_must_be_there_once_counts_for_nothing_when_it_is_there_twice() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for times in 2..4 {
            for (name, value) in
                [("if-modified-since", date), ("if-unmodified-since", "Sun, 06 Nov 1994 08:49:36 GMT")]
            {
                let headers = map(&vec![(name, value); times]);
                assert_eq!(
                    evaluate(&Method::GET, &Asked::new(&headers).conditions(), &FILE),
                    Outcome::Proceed
                );
            }
            let headers =
                map(&[vec![("if-range", "\"a\""); times], vec![("range", "bytes=0-1"); times]].concat());
            let asked = Asked::new(&headers);
            assert!(!ranges_apply(&Method::GET, &asked.conditions(), &FILE));
            assert_eq!(select(asked.range.unwrap().as_bytes(), 10, 4), Selection::Whole);
            let headers =
                map(&[vec![("host", "a"); times], vec![("authorization", "Basic eDp5"); times]].concat());
            let asked = Asked::new(&headers);
            assert!(asked.host_is_ambiguous);
            assert_eq!(asked.authorization.unwrap(), "");
        }
    }
}
