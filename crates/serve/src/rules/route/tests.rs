//! Redirects and rewrites, also of hostile paths.

use proptest::prelude::*;

use super::*;

fn rule(from: &str, to: &str) -> config::RedirectRule {
    let [from, to] = [from, to].map(|text| Some(text.to_owned()));
    config::RedirectRule { from, to, ..config::RedirectRule::default() }
}

fn redirects(rules: &[(&str, &str)]) -> Redirects {
    let rules: Vec<_> = rules.iter().map(|(from, to)| rule(from, to)).collect();
    Redirects::new(&rules, "site").unwrap()
}

fn location(from: &str, to: &str, path: &[u8], query: Option<&str>) -> String {
    let (_, value) = redirects(&[(from, to)]).find(path, query).unwrap();
    value.unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_first_rule_that_fits_counts() {
    let rules = redirects(&[("/old/*", "/new/$1"), ("/old/**", "/deep/$1"), ("*.htm", "/$1.html")]);
    let found = |path: &str| {
        rules.find(path.as_bytes(), None).map(|(_, value)| value.unwrap().to_str().unwrap().to_owned())
    };
    assert_eq!(found("/old/a").as_deref(), Some("/new/a"));
    assert_eq!(found("/old/a/b").as_deref(), Some("/deep/a/b"));
    assert_eq!(found("/x/a.htm").as_deref(), Some("/a.html"));
    assert_eq!(found("/x/a.html"), None);
    assert!(redirects(&[]).is_empty() && redirects(&[]).find(b"/", None).is_none());
}

#[test]
fn queries_go_on_and_texts_are_encoded() {
    for (to, query, expected) in [
        ("/b", Some("a=1"), "/b?a=1"),
        ("/b", Some(""), "/b"),
        ("/b?x", Some("a=1"), "/b?x&a=1"),
        ("/b#top", Some("a=1"), "/b?a=1#top"),
        ("/b", Some("a=\"<é>#"), "/b?a=%22%3C%C3%A9%3E%23"),
        ("/ü b%20$$1", None, "/%C3%BC%20b%20$1"),
        ("https://[::1]:80/?q=$1", Some("a"), "https://[::1]:80/?q=x&a"),
        ("https://a.example", None, "https://a.example"),
        ("//a.example/$1", None, "//a.example/x"),
        ("/$1$1", None, "/xx"),
    ] {
        assert_eq!(location("/*", to, b"/x", query), expected, "{to}");
    }
}

/// `&`, `=`, `+` and `%` of a path are data: unencoded they would be syntax in a query.
#[test]
fn a_wildcard_in_a_query_stays_one_value() {
    for (to, path, expected) in [
        ("/find?q=$1", &b"/a&b=c+d%20;e?#"[..], "/find?q=a%26b%3Dc%2Bd%2520%3Be%3F%23"),
        ("https://a.example/?x=1&q=$1&r=$1#f", b"/a&b", "https://a.example/?x=1&q=a%26b&r=a%26b#f"),
        ("/find/$1?q=$1", b"/a&b", "/find/a&b?q=a%26b"),
        ("/find?a=%26&q=$1", b"/\xc3\xa9", "/find?a=%26&q=%C3%A9"),
    ] {
        assert_eq!(location("/*", to, path, None), expected, "{to}");
    }
}

#[test]
fn a_path_cannot_choose_the_host_or_end_the_header() {
    for (path, expected) in [
        (&b"/go//evil.example"[..], "/evil.example"),
        (b"/go///evil.example", "/evil.example"),
        (b"/go/\\evil.example", "/%5Cevil.example"),
        (b"/go/a\r\nSet-Cookie: x", "/a%0D%0ASet-Cookie:%20x"),
        (b"/go/\xff\x00?#%", "/%FF%00%3F%23%25"),
    ] {
        assert_eq!(location("/go/**", "/$1", path, None), expected);
    }
}

#[test]
fn each_status_is_its_own() {
    for (number, expected) in [
        (None, 308),
        (Some(301), 301),
        (Some(302), 302),
        (Some(303), 303),
        (Some(307), 307),
        (Some(308), 308),
    ] {
        let rule = config::RedirectRule { status: number, ..rule("/a", "/b") };
        let (status, _) = Redirects::new(&[rule], "site").unwrap().find(b"/a", None).unwrap();
        assert_eq!(status.as_u16(), expected);
    }
}

#[test]
fn mistakes_are_refused_with_their_key() {
    for (from, to, status, expected) in [
        ("/[", "/", None, "'site.redirects[0].from': unclosed '['"),
        ("/a", "/b\r\nX: y", None, "'site.redirects[0].to': a target has no control characters"),
        ("/a", "b", None, "'site.redirects[0].to': a target begins with '/', 'http://' or 'https://'"),
        ("/**", "$1", None, "'site.redirects[0].to': a target begins with '/', 'http://' or 'https://'"),
        ("/*", "https://$1.example/", None, "'site.redirects[0].to': a wildcard must not choose the host"),
        ("/*", "//$1", None, "'site.redirects[0].to': a wildcard must not choose the host"),
        ("/*", "https://a.example$1", None, "'site.redirects[0].to': a wildcard must not choose the host"),
        ("/*", "http:///$1", None, "'site.redirects[0].to': the target has no host"),
        ("/*", "/$2", None, "'site.redirects[0].to': $2 is asked for, of 1 wildcards"),
        ("/*", "/$", None, "'site.redirects[0].to': '$' stands for itself only as '$$'"),
        ("/*", "/$x", None, "'site.redirects[0].to': '$' stands for itself only as '$$'"),
        ("/*", "/$0", None, "'site.redirects[0].to': '$' stands for itself only as '$$'"),
        (
            "/a",
            "/b",
            Some(300),
            "'site.redirects[0].status': 300 is not one of 301, 302, 303, 307, 308 and 410",
        ),
    ] {
        let rule = config::RedirectRule { status, ..rule(from, to) };
        assert_eq!(
            Redirects::new(&[rule], "site").unwrap_err().to_string(),
            format!("cannot use {expected}")
        );
    }
}

#[test]
fn a_rewrite_gives_bytes_as_they_are() {
    let rule = |from: &str, to: &str| config::RewriteRule { from: from.to_owned(), to: to.to_owned() };
    let rules = Rewrites::new(
        &[rule("/v*/**", "/$2"), rule("/app/**", "/app.html"), rule("/app.html", "/no")],
        "site",
    )
    .unwrap();
    assert_eq!(rules.find(b"/v1/a b\xff"), Some(b"/a b\xff".to_vec()));
    assert_eq!(rules.find(b"/app/x"), Some(b"/app.html".to_vec()), "and not on to /no");
    assert_eq!(rules.find(b"/other"), None);
    for (to, cause) in
        [("x", "begins with '/'"), ("/a?b", "has no '?'"), ("/$3", "$3 is asked for"), ("/\0", "control")]
    {
        let error = Rewrites::new(&[rule("/*", to)], "host[0]").unwrap_err();
        assert!(error.thing() == "host[0].rewrites[0].to" && error.cause().contains(cause), "{error}");
    }
}

proptest! {
    #![proptest_config(fathom_cases::property(1000))]

    #[test]
    fn a_location_is_always_a_path_of_the_same_host(path in prop::collection::vec(any::<u8>(), 0..12), slashes in 0..4usize, query in any::<Option<String>>()) {
        let path = [b"/go/".to_vec(), vec![b'/'; slashes], path].concat();
        let location = location("/go/**", "/$1", &path, query.as_deref());
        prop_assert!(location.starts_with('/') && !location.starts_with("//"), "{}", location);
        prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'), "{}", location);
    }

    #[test]
    fn a_foreign_target_keeps_its_host(path in prop::collection::vec(any::<u8>(), 0..12)) {
        let path = [b"/".to_vec(), path].concat();
        let location = location("/**", "https://a.example/$1", &path, None);
        prop_assert!(location.starts_with("https://a.example/"), "{}", location);
    }
}

#[test]
fn regular_expressions_choose_by_path_and_query_and_410_has_no_target() {
    let text = |text: &str| Some(text.to_owned());
    let by_regex = |from: &str, query: Option<&str>, to: &str| config::RedirectRule {
        from_regex: text(from),
        query_regex: query.and_then(text),
        to: text(to),
        ..config::RedirectRule::default()
    };
    let gone = config::RedirectRule { from: text("/gone/**"), status: Some(410), ..Default::default() };
    let rules = [
        gone,
        by_regex("^/post/([0-9]+)/([a-z]+)$", None, "/blog/$2-$1"),
        by_regex("^/item$", Some("(?:^|&)id=([^&]+)"), "/items/$1?of=$1"),
        by_regex("caf\u{e9}", None, "/coffee"),
    ];
    let redirects = Redirects::new(&rules, "site").unwrap();
    let found = |path: &str, query: Option<&str>| {
        let (status, location) = redirects.find(path.as_bytes(), query)?;
        Some((status.as_u16(), location.map(|location| location.to_str().unwrap().to_owned())))
    };
    assert_eq!(found("/gone/a/b", None), Some((410, None)));
    assert_eq!(found("/post/12/cats", Some("a=1")), Some((308, text("/blog/cats-12?a=1"))));
    assert_eq!((found("/post/x/cats", None), found("/a/post/1/b", None)), (None, None));
    // The query of the request is used up, and its text stays in its place.
    assert_eq!(found("/item", Some("x=2&id=a%20b%26c")), Some((308, text("/items/a%20b?of=a%20b"))));
    assert_eq!((found("/item", Some("ids=3")), found("/item", None)), (None, None));
    assert_eq!(found("/le café", None), Some((308, text("/coffee"))));
    // The rule of a mount is about the paths below it.
    let mounted = config::RedirectRule { below: "/m".to_owned(), ..by_regex("^/(a)$", None, "/m/b/$1") };
    let mounted = Redirects::new(&[mounted], "site").unwrap();
    assert!(mounted.find(b"/m/a", None).is_some() && mounted.find(b"/a", None).is_none());
    let refused = |rule: config::RedirectRule| Redirects::new(&[rule], "site").unwrap_err().to_string();
    for (rule, expected) in [
        (by_regex("(", None, "/"), ".from-regex': invalid regular expression: unclosed group"),
        (
            by_regex("/", Some("["), "/"),
            ".query-regex': invalid regular expression: unclosed character class",
        ),
        (by_regex("(?:a{1000}){1000}", None, "/"), ".from-regex': invalid regular expression: "),
        (by_regex("/(a)", Some("b"), "/$2"), ".to': $2 is asked for, of 1 wildcards"),
        (
            config::RedirectRule { from: text("/"), ..by_regex("/", None, "/") },
            ".from-regex': a redirect has either this or 'from'",
        ),
        (config::RedirectRule { to: text("/"), ..Default::default() }, "': missing: 'from' or 'from-regex'"),
        (config::RedirectRule { from: text("/"), ..Default::default() }, "': missing: to = \"/new\""),
        (config::RedirectRule { status: Some(410), ..rule("/", "/") }, ".to': status 410 has no target"),
    ] {
        let message = refused(rule);
        assert!(message.starts_with(&format!("cannot use 'site.redirects[0]{expected}")), "{message}");
    }
}
