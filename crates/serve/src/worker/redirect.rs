//! Redirects of unencrypted requests to the same address with `https`.

use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::answer::Answer;
use crate::rules::hosts::HostTable;

/// Returns the redirect from `uri` and the `Host` in `fields` to the encrypted site on `port`, or
/// 400 if the request names no valid host.
pub(super) fn to_https(uri: &Uri, fields: &HeaderMap, port: u16) -> Answer {
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = authority.or(fields.get(header::HOST).map(HeaderValue::as_bytes));
    let host = host.filter(|host| HostTable::default().find(host).is_some());
    match host.and_then(|host| location(std::str::from_utf8(host).ok()?, uri, port)) {
        Some(location) => {
            let mut answer = Answer::empty(StatusCode::PERMANENT_REDIRECT);
            answer.fields.insert(header::LOCATION, location);
            answer
        }
        None => Answer::empty(StatusCode::BAD_REQUEST),
    }
}

fn location(host: &str, uri: &Uri, port: u16) -> Option<HeaderValue> {
    // A colon of an IPv6 address is inside brackets.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    HeaderValue::try_from(format!("https://{name}{port}{target}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_to(host: &'static str, target: &str, port: u16) -> Option<String> {
        let mut fields = HeaderMap::new();
        fields.insert(header::HOST, HeaderValue::from_static(host));
        let answer = to_https(&target.parse().unwrap(), &fields, port);
        Some(answer.fields.get(header::LOCATION)?.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_address_is_kept_and_the_port_is_not() {
        let cases = [
            ("example.org:80", "/a?b", 443, "https://example.org/a?b"),
            ("example.org", "/", 8443, "https://example.org:8443/"),
            ("[::1]:80", "/", 443, "https://[::1]/"),
            ("[::1]", "//evil.example/x", 443, "https://[::1]//evil.example/x"),
        ];
        for (host, target, port, location) in cases {
            assert_eq!(sent_to(host, target, port).as_deref(), Some(location));
        }
        assert_eq!(sent_to("evil@example.org/", "/", 443), None);
        assert_eq!(to_https(&"/".parse().unwrap(), &HeaderMap::new(), 443).status, StatusCode::BAD_REQUEST);
    }
}
