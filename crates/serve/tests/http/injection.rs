//! Data of clients and file names stay data: they cannot inject headers, log lines or markup.

use fathom_serve::server::StartOptions;
use serde_json::Value;

use crate::support::{LONG, MemoryLog, Response, TestServer, Tree, config, request};

#[test]
fn a_client_cannot_inject_headers() {
    let tree = Tree::new(&[("dir/x", b"x"), ("a\r\nX-Injected: 1/x", b"x")]);
    let site = "redirects = [{ from = '/r/**', to = '/$1' }]\ncors = { origins = ['https://a.example'] }";
    let served = TestServer::site(&tree, site);
    for (target, fields) in [
        ("/dir?%0d%0aX-Injected:%201", vec![]),
        ("/r/x%0d%0aX-Injected:%201", vec![]),
        ("/r/x?%0d%0aX-Injected:1", vec![]),
        ("/a%0d%0aX-Injected:%201", vec![]),
        ("/dir", vec![("Origin", "https://a.example%0d%0aX-Injected: 1")]),
        ("/dir", vec![("Host", "a%0d%0aX-Injected:1")]),
        ("/dir/x", vec![("Range", "bytes=0-0\u{e9}")]),
    ] {
        let response = served.ask("GET", target, &fields);
        assert_eq!(response.field("x-injected"), None, "{target}");
        assert!(response.status < 500, "{target}: {response:?}");
    }
    let location = served.get("/a%0d%0aX-Injected:%201");
    assert_eq!(location.field("location"), Some("a%0D%0AX-Injected%3A%201/"));
}

/// Control characters are escaped in every field, so a line stays a line and a terminal displays
/// the text.
#[test]
fn a_client_cannot_inject_log_lines() {
    for format in ["combined", "json"] {
        let (tree, lines) = (Tree::new(&[("a", b"a")]), MemoryLog::default());
        let all = config(&tree, &format!("access-log = {{ format = '{format}' }}\n"), "");
        let served = TestServer::with(
            &all,
            StartOptions { stream: Some(Box::new(lines.clone())), ..Default::default() },
        );
        let hostile = "\" 200 1\t\\\u{e9}\u{202e}\u{9b}31m";
        served.ask("GET", "/a%0a%1b[31m%22", &[("Referer", hostile), ("User-Agent", hostile)]);
        served.ask("GET", "/\"quoted\"\\", &[]);
        served.ask("X-\"-METHOD", "/a", &[]);
        served.ask("GET", "/a", &[("Host", "h'~!$&")]);
        assert!(served.drain(LONG));
        let text = lines.text();
        assert!(text.bytes().all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte)), "{text}");
        for line in text.lines() {
            match format {
                "json" => drop(serde_json::from_str::<Value>(line).unwrap()),
                _ => assert_eq!(line.matches('"').count(), 6, "{line}"),
            }
        }
        assert!(text.lines().count() >= 2 && text.contains("%0a%1b[31m"), "{text}");
    }
}

const HOSTILE: [&str; 9] = [
    "\"><script>alert(1)<",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "a'onmouseover='alert(1)",
    "&lt;b&gt;",
    "new\nline\r\u{1b}[31m",
    "\u{202e}gpj.exe",
    "{{7*7}}${7*7}",
    "</title></script><!--",
];

/// CVE-2024-32966 and similar.
#[test]
fn names_cannot_inject_markup() {
    let tree = Tree::new(&[]);
    // A name cannot contain a slash.
    let names = HOSTILE.map(|name| name.replace('/', "\u{2215}"));
    names.iter().for_each(|name| tree.write(&format!("d/{name}"), b"x"));
    names.iter().for_each(|name| tree.write(&format!("d{name}/x"), b"x"));
    let served = TestServer::site(&tree, "listing = true");
    let page = served.get("/d/");
    harmless(&page);
    let json: Value =
        serde_json::from_slice(&served.get_with("/d/", "Accept", "application/json").body).unwrap();
    let mut shown: Vec<_> = json["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect();
    shown.sort();
    let mut expected = names.to_vec();
    expected.sort();
    assert_eq!(shown, expected);
    for name in &names {
        let encoded: String = format!("d{name}").bytes().map(|byte| format!("%{byte:02x}")).collect();
        harmless(&served.get(&format!("/{encoded}/")));
        harmless(&served.get_with(&format!("/{encoded}/missing"), "Accept", "text/html"));
    }
    harmless(&served.get_with("/<script>alert(1)", "Accept", "text/html"));
    harmless(&served.get("/d/?sort=\"><script>alert(1)&order=<script>"));
}

/// Checks that no element, attribute or address of the page comes from a name, and that the policy
/// would forbid it to act.
#[track_caller]
fn harmless(page: &Response) {
    let text = page.text();
    let lower = text.to_lowercase();
    for word in [
        "<script",
        "<img",
        "<!--",
        "onerror=\"",
        "onmouseover='",
        "href=\"javascript",
        "\u{1b}",
        "\u{202e}",
        "\r",
    ] {
        assert!(!lower.contains(word), "{word:?} in {text}");
    }
    if page.field("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
        let policy = page.field("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
}

#[test]
fn a_listing_under_the_preset_is_as_harmless() {
    let tree = Tree::new(&[("x", b"x")]);
    let served = TestServer::site(&tree, "listing = true\nsecurity-headers = true");
    harmless(&served.get("/"));
    harmless(&served.get_with("/none", "Accept", "text/html"));
    assert_eq!(
        served
            .raw(&request("GET", "/x", &[("Connection", "close")]))
            .windows(4)
            .filter(|bytes| bytes == b"\r\n\r\n")
            .count(),
        1
    );
}
