//! The case of header names in HTTP/1.1 responses: the customary one, for clients that compare
//! names case-sensitively although they must not (RFC 9110, section 5.1).

use fathom_serve::config::TlsConfig;

use crate::support::{TestServer, Tree, config, request};

/// Parses the status and the header names of `response`, which is one response.
fn names(response: &[u8]) -> (u16, Vec<String>) {
    let text = String::from_utf8_lossy(response);
    let (head, _) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let names = fields.split("\r\n").filter_map(|field| Some(field.split_once(':')?.0.to_owned()));
    (status.unwrap_or_else(|| panic!("no status: {line:?}")), names.collect())
}

/// Returns `name` with a capital letter at the beginning and after each hyphen, and others in lower
/// case.
fn usual(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

#[track_caller]
fn check(response: &[u8], expected: u16, some: &[&str]) {
    let (status, names) = names(response);
    assert_eq!(status, expected, "{}", String::from_utf8_lossy(response));
    for name in &names {
        assert_eq!(*name, usual(name), "of {expected}");
    }
    for name in some {
        assert!(names.iter().any(|known| known == name), "{name} is not among {names:?}");
    }
}

#[test]
fn names_of_headers_begin_with_capital_letters() {
    let tree = Tree::new(&[("a.txt", b"0123456789"), ("sub/x", b"x")]);
    let hash = bcrypt::hash_with_salt("secret", 4, *b"0123456789abcdef").unwrap();
    let site = format!(
        "security-headers = true\ncors = {{ origins = ['*'] }}\nheaders = [{{ path = '/**', set = {{ X-XSS-Protection = '0' }} }}]\n\
         auth = {{ users = {{ anna = '{hash}' }}, paths = [{{ path = '/**', public = true }}, {{ path = '/team', users = ['*'] }}] }}"
    );
    let served = TestServer::site(&tree, &site);
    let etag = served.get("/a.txt").etag().to_owned();
    let ask = |target: &str, fields: &[(&str, &str)]| {
        served.raw(&request(
            "GET",
            target,
            &[fields, &[("Connection", "close"), ("Origin", "https://o.example")]].concat(),
        ))
    };
    let of_file = ["Etag", "Last-Modified", "Date", "X-Xss-Protection", "Access-Control-Allow-Origin"];
    check(
        &ask("/a.txt", &[]),
        200,
        &[&of_file[..], &["Content-Type", "Content-Length", "Accept-Ranges"]].concat(),
    );
    check(&ask("/a.txt", &[("Range", "bytes=1-2")]), 206, &[&of_file[..], &["Content-Range"]].concat());
    check(&ask("/a.txt", &[("If-None-Match", &etag)]), 304, &of_file);
    check(&ask("/team", &[]), 401, &["Www-Authenticate", "Content-Security-Policy"]);
    check(&ask("/none", &[]), 404, &["Content-Type", "Vary"]);
    check(&ask("/sub", &[]), 301, &["Location"]);
    check(&served.raw(b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), 400, &["Content-Length", "Date"]);
    check(&served.raw(b"GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n"), 400, &["Content-Length"]);
}

/// A plain request on an encrypted port is answered without the parser.
#[test]
fn so_do_those_of_a_plain_request_on_an_encrypted_port() {
    let tree = Tree::new(&[("a.txt", b"a")]);
    let mut all = config(&tree, "", "");
    all.tls = Some(TlsConfig { self_signed: true, ..TlsConfig::default() });
    let response = TestServer::start(&all).raw(&request("GET", "/a.txt", &[]));
    check(&response, 400, &["Content-Type", "Content-Length", "Connection"]);
}
