//! The built-in HTML pages: error pages, and the frame and style that listings share with them. The
//! pages have no script and no other resource, and a policy that allows neither.
//!
//! Does not own: a site's error pages, which are files, and whether the client accepts HTML.

use http::StatusCode;

/// The `Content-Security-Policy` of every built-in page: its own style sheet, and no other resource
/// (CSP Level 3, section 8.4 for the hash).
pub const CSP: &str = "default-src 'none'; style-src 'sha256-IH6dBOnswoN0gdJ/7b03oCnE0Bd3IBn6Vgvqf6e2Krk='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The `Content-Security-Policy` of pages with a form, which may be submitted to the page's own
/// server.
pub const CSP_FORM: &str = "default-src 'none'; style-src 'sha256-IH6dBOnswoN0gdJ/7b03oCnE0Bd3IBn6Vgvqf6e2Krk='; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The style sheet. Rows are 24 pixels high, so that 24 of them fit a laptop's screen, and 44 on
/// touch screens. Long names break anywhere rather than widen the page. Narrow screens show only
/// the day of a time. Icons are clip paths selected by the end of the link: they need no file, no
/// markup and no script.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--line:#d8dee4;--paper:#fff;--link:#0550ae;--pad:0}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--line:#30363d;--paper:#0d1117;--link:#79b8ff}}
@media(pointer:coarse){:root{--pad:.625rem}}
body{margin:0 auto;max-width:60rem;padding:.25rem 1rem;font:1rem/1.4375rem system-ui,sans-serif;color:var(--ink);background:var(--paper)}
a{color:var(--link)}
header{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:0 1rem}
h1{margin:.25rem 0;font-size:1.125rem;overflow-wrap:anywhere;white-space:pre-wrap}
form{display:flex;gap:.25rem;padding:.125rem 0}
input,button{min-width:0;box-sizing:border-box;height:calc(1.5rem + 2*var(--pad));font:inherit;font-size:.875rem}
nav p{display:flex;flex-wrap:wrap;gap:0 1rem;margin:.25rem 0}
nav p a{padding:var(--pad) 0}
table{width:100%;border-collapse:collapse}
th,td{padding:0 0 0 1rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
td{line-height:calc(1.4375rem + 2*var(--pad));color:var(--dim);font-variant-numeric:tabular-nums}
th:first-child,td:first-child{width:100%;padding:0}
th:nth-child(2),td:nth-child(2){text-align:right}
th a,td:first-child a,td:first-child span{display:block;padding:var(--pad) 0;line-height:1.4375rem}
td:first-child a,td:first-child span{position:relative;padding-left:1.5rem;overflow-wrap:anywhere;white-space:pre-wrap;unicode-bidi:plaintext;text-align:left}
td:first-child a::before,td:first-child span::before{content:'';position:absolute;left:0;top:calc(var(--pad) + .25rem);width:1rem;height:1rem;background:var(--dim);clip-path:path(evenodd,'M3 1h7l3 3v11H3zM5 6v1h6V6zM5 9v1h6V9zM5 12v1h4v-1z')}
td a[href$='/']::before{background:var(--link);clip-path:path('M1 3h5l2 2h7v9H1z')}
td a[href='../']::before{clip-path:path('M8 2l6 6h-4v6H6V8H2z')}
td a:is([href$='.png' i],[href$='.jpg' i],[href$='.jpeg' i],[href$='.gif' i],[href$='.webp' i],[href$='.avif' i],[href$='.svg' i])::before{clip-path:path(evenodd,'M1 2h14v12H1zM3 4v8l3-4 2 2 3-4 2 4V4z')}
td a:is([href$='.mp3' i],[href$='.ogg' i],[href$='.flac' i],[href$='.wav' i],[href$='.mp4' i],[href$='.mkv' i],[href$='.webm' i],[href$='.mov' i])::before{clip-path:path(evenodd,'M1 2h14v12H1zM6 5v6l5-3z')}
td a:is([href$='.zip' i],[href$='.gz' i],[href$='.tgz' i],[href$='.tar' i],[href$='.zst' i],[href$='.xz' i],[href$='.bz2' i],[href$='.7z' i])::before{clip-path:path(evenodd,'M2 1h12v14H2zM7 2v2h2V2zM7 6v2h2V6zM7 10v3h2v-3z')}
th[aria-sort=ascending] a::after{content:' \\2191'}
th[aria-sort=descending] a::after{content:' \\2193'}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
@media(max-width:36rem){
time span,th span{display:none}
th,td{padding-left:.5rem}
td+td{font-size:.8125rem}
}
";

/// The end of a page that [`open`] began.
pub(crate) const CLOSE: &str = "</body>\n</html>\n";

/// Appends the start of a page, up to its contents.
pub(crate) fn open(title: &[u8], out: &mut String) {
    out.push_str(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
    );
    escape(title, out);
    out.push_str("</title>\n<style>");
    out.push_str(STYLE);
    out.push_str("</style>\n</head>\n<body>\n");
}

/// Appends text, escaped for HTML text and quoted attributes. Invisible characters, and those that
/// change how the following text is displayed, are made visible; invalid UTF-8 becomes U+FFFD.
pub(crate) fn escape(text: &[u8], out: &mut String) {
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|symbol| push(symbol, out));
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends text of several lines, escaped as by [`escape`], but with line ends and tabs.
pub(crate) fn escape_lines(text: &[u8], out: &mut String) {
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = line.strip_suffix(b"\n").map_or((line, ""), |line| (line, "\n"));
        for (at, part) in line.strip_suffix(b"\r").unwrap_or(line).split(|byte| *byte == b'\t').enumerate() {
            out.push_str(if at > 0 { "\t" } else { "" });
            escape(part, out);
        }
        out.push_str(end);
    }
}

fn push(symbol: char, out: &mut String) {
    match symbol {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        // Unicode has a symbol for each control character (U+2400 and on).
        '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(symbol))),
        '\x7f' => out.push('\u{2421}'),
        _ if is_deceptive(symbol) => out.extend(symbol.escape_unicode()),
        _ => out.push(symbol),
    }
}

/// Returns whether a character is a control, ends a line, or changes the direction of text: with it
/// `gpj.exe` can be displayed as `exe.jpg` (UAX #9, section 2).
fn is_deceptive(symbol: char) -> bool {
    let turns = matches!(symbol, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || symbol.is_control()
}

/// Returns the error page of `status`. It contains no part of the request.
///
/// ```
/// use fathom_serve::pages::{html, text};
/// use http::StatusCode;
///
/// assert!(html(StatusCode::NOT_FOUND).contains("404 Not Found"));
/// assert_eq!(text(StatusCode::NOT_FOUND), "404 Not Found\n");
/// ```
#[must_use]
pub fn html(status: StatusCode) -> String {
    let title = title(status);
    let mut out = String::with_capacity(STYLE.len() + 512);
    open(title.as_bytes(), &mut out);
    out.push_str("<main>\n<h1>");
    escape(title.as_bytes(), &mut out);
    out.push_str("</h1>\n");
    if let Some(sentence) = sentence(status) {
        out.push_str("<p>");
        escape(sentence.as_bytes(), &mut out);
        out.push_str("</p>\n");
    }
    out.push_str("</main>\n");
    out.push_str(CLOSE);
    out
}

/// Returns the error text of `status` for clients that do not accept HTML: one line such as `404
/// Not Found`.
#[must_use]
pub fn text(status: StatusCode) -> String {
    title(status) + "\n"
}

/// Returns the 404 page of a directory without one of the files `index` while listings are off. It
/// says how to turn them on.
#[must_use]
pub fn unlisted(index: &[Vec<u8>]) -> String {
    let mut out = String::with_capacity(STYLE.len() + 1024);
    open(b"404 No index", &mut out);
    out.push_str("<main>\n<h1>404 No index</h1>\n<p>This directory ");
    match index {
        [] => out.push_str("has no index file"),
        names => {
            out.push_str("has no ");
            escape(&names.join(&b" or "[..]), &mut out);
        }
    }
    out.push_str(
        ", and lists of directories are off. The server's operator can turn them on:</p>\n\
         <pre>fathom serve --listing</pre>\n</main>\n",
    );
    out.push_str(CLOSE);
    out
}

fn title(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_str()),
        None => status.as_str().to_owned(),
    }
}

/// Returns a sentence about the status for readers in a browser, unless its name says enough.
fn sentence(status: StatusCode) -> Option<&'static str> {
    Some(match status {
        StatusCode::UNAUTHORIZED => "This needs a name and a password.",
        StatusCode::FORBIDDEN => "This is here, but not for you.",
        StatusCode::NOT_FOUND => "There is nothing at this address.",
        StatusCode::METHOD_NOT_ALLOWED => "Files can be read here, and nothing else.",
        StatusCode::RANGE_NOT_SATISFIABLE => "The file has no such part.",
        StatusCode::INTERNAL_SERVER_ERROR => "The file could not be read.",
        StatusCode::SERVICE_UNAVAILABLE => "Please try again later.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &[u8]) -> String {
        let mut out = String::new();
        escape(text, &mut out);
        out
    }

    #[test]
    fn the_policy_allows_the_style_sheet_that_pages_have() {
        let page = html(StatusCode::NOT_FOUND);
        let (_, rest) = page.split_once("<style>").unwrap();
        let (style, rest) = rest.split_once("</style>").unwrap();
        assert!(!rest.contains("style"), "one style sheet, and no attributes");
        let rustls::SupportedCipherSuite::Tls13(suite) =
            rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256
        else {
            panic!("a suite of TLS 1.3");
        };
        let hash = suite.common.hash_provider.hash(style.as_bytes());
        let source = format!("style-src 'sha256-{}';", BASE64_STANDARD.encode(hash.as_ref()));
        for policy in [CSP, CSP_FORM] {
            assert!(policy.contains(&source), "{source}");
            assert!(http::HeaderValue::from_str(policy).is_ok());
        }
        assert_eq!(CSP_FORM.replace("form-action 'self'", "form-action 'none'"), CSP);
    }

    #[test]
    fn an_error_as_a_page() {
        let expected = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>404 Not Found</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <main>\n<h1>404 Not Found</h1>\n<p>There is nothing at this address.</p>\n</main>\n</body>\n</html>\n"
        );
        assert_eq!(html(StatusCode::NOT_FOUND), expected);
        assert!(html(StatusCode::IM_A_TEAPOT).contains("<h1>418 I&#39;m a teapot</h1>\n</main>"));
        assert!(html(StatusCode::from_u16(599).unwrap()).contains("<title>599</title>"));
    }

    #[test]
    fn a_directory_without_an_index_says_how_to_list_it() {
        let page = unlisted(&[b"index.html".to_vec(), b"<a>".to_vec()]);
        assert!(
            page.contains("This directory has no index.html or &lt;a&gt;, and") && page.contains("--listing")
        );
        assert!(unlisted(&[]).contains("has no index file, and"));
    }

    #[test]
    fn an_error_as_text() {
        assert_eq!(text(StatusCode::NOT_FOUND), "404 Not Found\n");
        assert_eq!(text(StatusCode::from_u16(599).unwrap()), "599\n");
    }

    #[test]
    fn invisible_characters_are_made_visible() {
        let table: [(&[u8], &str); 6] = [
            (b"<a href=\"'&", "&lt;a href=&quot;&#39;&amp;"),
            (b"a\tb\nc\x1b[31m\x7f", "a\u{2409}b\u{240a}c\u{241b}[31m\u{2421}"),
            ("\u{202e}gpj.exe\u{2066}".as_bytes(), "\\u{202e}gpj.exe\\u{2066}"),
            ("\u{85}\u{2028}".as_bytes(), "\\u{85}\\u{2028}"),
            (b"\xffa\xf0\x9f", "\u{fffd}a\u{fffd}"),
            ("\u{1f469}\u{200d}\u{1f52c} \u{5d0}".as_bytes(), "\u{1f469}\u{200d}\u{1f52c} \u{5d0}"),
        ];
        for (text, expected) in table {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn a_text_keeps_its_lines() {
        let mut out = String::new();
        escape_lines(b"# <a>\r\n\tb\x1b[0m\n\nend\r", &mut out);
        assert_eq!(out, "# &lt;a&gt;\n\tb\u{241b}[0m\n\nend");
    }

    proptest! {
        #![proptest_config(fathom_cases::property(2000))]

        #[test]
        fn escaped_text_has_no_markup(text: Vec<u8>) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']) && !escaped.contains(char::is_control), "{}", escaped);
            for entity in escaped.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| entity.starts_with(known));
                prop_assert!(known, "{}", entity);
            }
        }
    }
}
