//! Cross-origin requests (CORS; Fetch, section 3.2), as a pure function of the request's headers.
//!
//! Does not own: the other headers of a response to `OPTIONS`.

use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::config;
use crate::error::Error;

/// The methods of a file server.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Request headers that scripts may always set: those for ranges and revalidation. Credentials are
/// not among them.
const ALLOWED: [&str; 7] = [
    "Cache-Control",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
];
/// Response headers that scripts may always read, besides those that Fetch names (section 2.2.2,
/// "CORS-safelisted").
const EXPOSED: [&str; 8] = [
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Date",
    "ETag",
    "Retry-After",
];

/// The compiled CORS rules of a site (the Fetch standard, section 3.3).
///
/// ```
/// use fathom_serve::config::CorsConfig;
/// use fathom_serve::rules::cors::CorsRules;
/// use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN, VARY};
/// use http::{HeaderMap, Method};
///
/// let origins = vec!["https://a.example".to_string()];
/// let cors = CorsConfig { origins, ..CorsConfig::default() };
/// let rules = CorsRules::new(&cors, "site")?;
/// let mut request = HeaderMap::new();
/// request.insert(ORIGIN, "https://a.example".parse().unwrap());
/// let mut response = HeaderMap::new();
/// assert!(!rules.evaluate(&Method::GET, &request, &mut response), "no preflight");
/// assert_eq!(response[ACCESS_CONTROL_ALLOW_ORIGIN], "https://a.example");
/// assert_eq!(response[VARY], "origin");
/// // An error names the key.
/// let error = CorsRules::new(&CorsConfig::default(), "site").unwrap_err();
/// assert_eq!(error.thing(), "site.cors.origins");
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CorsRules {
    /// The allowed origins; `None` for all.
    origins: Option<Vec<HeaderValue>>,
    allow_headers: HeaderValue,
    expose_headers: HeaderValue,
    credentials: bool,
    max_age: Option<HeaderValue>,
}

impl CorsRules {
    /// Compiles the rules of a site whose key is `key`.
    ///
    /// # Errors
    /// If an origin or a header name is invalid, there are no origins, or credentials are combined
    /// with `*`.
    pub fn new(cors: &config::CorsConfig, key: &str) -> Result<Self, Error> {
        let key = format!("{key}.cors");
        if cors.origins.is_empty() {
            return Err(Error::incomplete(
                format!("{key}.origins"),
                "the list is empty; use '*' for all origins",
            ));
        }
        let stars = [
            ("origins", &cors.origins),
            ("allow-headers", &cors.allow_headers),
            ("expose-headers", &cors.expose_headers),
        ];
        if let Some((field, _)) = stars.iter().find(|(_, words)| cors.credentials && is_star(words)) {
            return Err(Error::configure(
                format!("{key}.credentials"),
                format!("browsers do not allow '*' in {field} with credentials"),
            ));
        }
        let origin = |(at, text): (usize, &String)| {
            origin(text).map_err(|cause| Error::configure(format!("{key}.origins[{at}]"), cause))
        };
        let origins: Vec<_> = cors
            .origins
            .iter()
            .enumerate()
            .filter(|(_, text)| *text != "*")
            .map(origin)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            origins: (!is_star(&cors.origins)).then_some(origins),
            allow_headers: names(&ALLOWED, &cors.allow_headers, &key, "allow-headers")?,
            expose_headers: names(&EXPOSED, &cors.expose_headers, &key, "expose-headers")?,
            credentials: cors.credentials,
            max_age: cors.max_age_s.map(HeaderValue::from),
        })
    }

    /// Adds the CORS headers of the response to `method` with the headers `request` to `out`.
    /// Returns whether the request is a preflight, which is answered with these headers alone
    /// (204). `Vary` is appended even if the origin is absent or not allowed: a cache must not
    /// reuse that response for another origin.
    pub fn evaluate(&self, method: &Method, request: &HeaderMap, out: &mut HeaderMap) -> bool {
        let wanted = request.get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let preflight = method == Method::OPTIONS && wanted.is_some() && request.contains_key(header::ORIGIN);
        if self.origins.is_some() {
            out.append(header::VARY, HeaderValue::from_name(header::ORIGIN));
        }
        let Some(origin) = self.allowed(request) else { return preflight };
        out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.credentials {
            out.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        match preflight {
            true => self.put_preflight(request, out),
            false => put(out, header::ACCESS_CONTROL_EXPOSE_HEADERS, Some(&self.expose_headers)),
        }
        preflight
    }

    fn put_preflight(&self, request: &HeaderMap, out: &mut HeaderMap) {
        out.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        if request.contains_key(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            put(out, header::ACCESS_CONTROL_ALLOW_HEADERS, Some(&self.allow_headers));
        }
        put(out, header::ACCESS_CONTROL_MAX_AGE, self.max_age.as_ref());
    }

    /// Returns the value of `Access-Control-Allow-Origin`: `*`, or the configured origin that the
    /// request names. Never a string sent by the client.
    fn allowed(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let Some(origins) = &self.origins else { return Some(HeaderValue::from_static("*")) };
        let mut named = request.get_all(header::ORIGIN).iter();
        let origin = named.next().filter(|_| named.next().is_none())?;
        origins.iter().find(|known| *known == origin).cloned()
    }
}

fn put(out: &mut HeaderMap, name: HeaderName, value: Option<&HeaderValue>) {
    if let Some(value) = value {
        out.insert(name, value.clone());
    }
}

fn is_star(words: &[String]) -> bool {
    words.iter().any(|word| word == "*")
}

/// Parses an origin into the form that browsers send: scheme, host in lower case, and a port unless
/// it is the scheme's default.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let text = text.to_ascii_lowercase();
    let (scheme, host) = text.split_once("://").ok_or("an origin is like https://a.example")?;
    let port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let host = host.strip_suffix(port).unwrap_or(host);
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c));
    match is_scheme && is_host {
        true => HeaderValue::from_str(&format!("{scheme}://{host}")).map_err(|error| error.to_string()),
        false => Err("expected an origin: scheme, host and optional port, without a path".to_owned()),
    }
}

/// Returns the header value that lists the names `always` and `also`, each once.
fn names(always: &[&str], also: &[String], key: &str, field: &str) -> Result<HeaderValue, Error> {
    for (at, word) in also.iter().enumerate() {
        let refused = |_| Error::configure(format!("{key}.{field}[{at}]"), "not a valid header name");
        HeaderName::from_bytes(word.as_bytes()).map_err(refused)?;
    }
    let is_new = |word: &&str| !always.iter().any(|known| known.eq_ignore_ascii_case(word));
    let also = also.iter().map(String::as_str).filter(is_new);
    let list = always.iter().copied().chain(also).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&list).map_err(|error| Error::configure(format!("{key}.{field}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn two() -> config::CorsConfig {
        config::CorsConfig {
            origins: words(&["https://A.example:443", "http://b.example:8080"]),
            allow_headers: words(&["X-A", "range"]),
            expose_headers: words(&["ETag", "X-B"]),
            credentials: true,
            max_age_s: Some(600),
        }
    }

    /// Returns whether the request is a preflight, and the resulting headers, one a line.
    fn answer(cors: &config::CorsConfig, method: Method, request: &[(&str, &str)]) -> (bool, String) {
        let mut headers = HeaderMap::new();
        for (name, value) in request {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let mut out = HeaderMap::from_iter([(header::VARY, HeaderValue::from_static("accept-encoding"))]);
        let preflight = CorsRules::new(cors, "site").unwrap().evaluate(&method, &headers, &mut out);
        let mut lines: Vec<_> = out
            .iter()
            .map(|(name, value)| {
                format!(
                    "{}: {}",
                    name.as_str().trim_start_matches("access-control-"),
                    value.to_str().unwrap()
                )
            })
            .collect();
        lines.retain(|line| line != "vary: accept-encoding");
        lines.sort();
        let text =
            lines.join(" | ").replace(&ALLOWED.join(", "), "ALLOWED").replace(&EXPOSED.join(", "), "EXPOSED");
        (preflight, text)
    }

    #[test]
    fn a_simple_request_gets_what_its_origin_may() {
        for (origin, expected) in [
            (
                Some("https://a.example"),
                "allow-credentials: true | allow-origin: https://a.example | expose-headers: EXPOSED, X-B | vary: origin",
            ),
            (
                Some("http://b.example:8080"),
                "allow-credentials: true | allow-origin: http://b.example:8080 | expose-headers: EXPOSED, X-B | vary: origin",
            ),
            (Some("https://a.example.evil"), "vary: origin"),
            (Some("https://a.example, https://a.example"), "vary: origin"),
            (Some("null"), "vary: origin"),
            (None, "vary: origin"),
        ] {
            let request: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
            assert_eq!(answer(&two(), Method::GET, &request), (false, expected.to_owned()), "{origin:?}");
        }
        let twice = [("origin", "https://a.example"), ("origin", "https://a.example")];
        assert_eq!(answer(&two(), Method::GET, &twice), (false, "vary: origin".to_owned()));
    }

    #[test]
    fn a_preflight_is_told_methods_and_headers() {
        let origin = ("origin", "https://a.example");
        let method = ("access-control-request-method", "GET");
        let headers = ("access-control-request-headers", "x-a");
        let expected = "allow-credentials: true | allow-headers: ALLOWED, X-A | allow-methods: GET, HEAD | allow-origin: https://a.example | max-age: 600 | vary: origin";
        assert_eq!(answer(&two(), Method::OPTIONS, &[origin, method, headers]), (true, expected.to_owned()));
        let (preflight, lines) = answer(&two(), Method::OPTIONS, &[origin, method]);
        assert!(preflight && !lines.contains("allow-headers"), "{lines}");
        assert_eq!(
            answer(&two(), Method::OPTIONS, &[("origin", "https://c.example"), method]),
            (true, "vary: origin".to_owned())
        );
        assert!(!answer(&two(), Method::OPTIONS, &[origin]).0, "plain OPTIONS");
        assert!(!answer(&two(), Method::OPTIONS, &[method]).0, "without an origin");
        assert!(!answer(&two(), Method::GET, &[origin, method]).0, "another method");
    }

    #[test]
    fn an_answer_for_all_depends_on_no_origin() {
        let cors = config::CorsConfig { origins: words(&["*"]), ..config::CorsConfig::default() };
        for request in [&[][..], &[("origin", "https://x.example")], &[("origin", "null")]] {
            assert_eq!(
                answer(&cors, Method::GET, request),
                (false, "allow-origin: * | expose-headers: EXPOSED".to_owned())
            );
        }
    }

    /// Header fields that range readers (PMTiles, Parquet, Zarr, video) need from a file server.
    #[test]
    fn readers_of_ranges_need_no_option() {
        for name in ["range", "if-range", "if-match", "if-none-match"] {
            assert!(ALLOWED.iter().any(|known| known.eq_ignore_ascii_case(name)), "{name}");
        }
        for name in ["content-range", "etag", "accept-ranges", "content-length", "content-encoding"] {
            assert!(EXPOSED.iter().any(|known| known.eq_ignore_ascii_case(name)), "{name}");
        }
        assert!(!ALLOWED.contains(&"Authorization"), "only by option");
    }

    #[test]
    fn mistakes_are_refused_with_their_key() {
        let all = || config::CorsConfig { origins: words(&["*"]), ..config::CorsConfig::default() };
        for (cors, expected) in [
            (config::CorsConfig::default(), "site.cors.origins"),
            (config::CorsConfig { credentials: true, ..all() }, "site.cors.credentials"),
            (config::CorsConfig { allow_headers: words(&["*"]), ..two() }, "site.cors.credentials"),
            (
                config::CorsConfig { origins: words(&["*", "https://a.example/"]), ..all() },
                "site.cors.origins[1]",
            ),
            (config::CorsConfig { origins: words(&["a.example"]), ..all() }, "site.cors.origins[0]"),
            (config::CorsConfig { origins: words(&["null"]), ..all() }, "site.cors.origins[0]"),
            (config::CorsConfig { origins: words(&["https://a\r\nb"]), ..all() }, "site.cors.origins[0]"),
            (
                config::CorsConfig { allow_headers: words(&["a", "b c"]), ..all() },
                "site.cors.allow-headers[1]",
            ),
            (config::CorsConfig { expose_headers: words(&["a,b"]), ..all() }, "site.cors.expose-headers[0]"),
        ] {
            assert_eq!(CorsRules::new(&cors, "site").unwrap_err().thing(), expected);
        }
    }
}
