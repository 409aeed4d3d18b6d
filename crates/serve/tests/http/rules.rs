//! The rules of a site: headers, CORS, redirects and rewrites, virtual hosts.

use crate::support::{Response, TestServer, Tree, config};

#[test]
fn headers_follow_the_rules_for_their_path() {
    let tree = Tree::new(&[("a.html", b"<p>"), ("assets/a.js", b"js"), ("assets/sub/b.js", b"js")]);
    let site = "cache-control = [{ path = '/**', value = 'no-cache' }, { path = '/assets/**', value = 'max-age=31536000, immutable' }]\n\
                headers = [{ path = '*.js', set = { X-A = 'one', ETag = '' } }, { path = '/assets/sub/*', set = { X-A = 'two', X-B = 'b' } }]\n\
                redirects = [{ from = '/assets/old', to = '/assets/a.js' }]";
    let served = TestServer::site(&tree, site);
    for (target, cache, a, b, has_etag) in [
        ("/a.html", "no-cache", None, None, true),
        ("/assets/a.js", "max-age=31536000, immutable", Some("one"), None, false),
        ("/assets/sub/b.js", "max-age=31536000, immutable", Some("two"), Some("b"), false),
        ("/assets/none.js", "no-store", None, None, false),
        ("/assets/old", "max-age=31536000, immutable", None, None, false),
        ("/assets/sub", "max-age=31536000, immutable", None, None, false),
    ] {
        let response = served.get(target);
        assert_eq!(response.field("cache-control"), Some(cache), "{target}");
        assert_eq!((response.field("x-a"), response.field("x-b")), (a, b), "{target}");
        assert_eq!(response.field("etag").is_some(), has_etag, "{target}");
    }
    let part = served.get_with("/a.html", "Range", "bytes=0-0");
    assert_eq!((part.status, part.field("cache-control")), (206, Some("no-cache")));
    let since = [("If-Modified-Since", "Fri, 01 Jan 2038 00:00:00 GMT")];
    let same = served.ask("GET", "/a.html", &since);
    assert_eq!((same.status, same.field("cache-control")), (304, Some("no-cache")));
    for (name, value, status) in [("If-Match", "\"x\"", 412), ("Range", "bytes=99-", 416)] {
        let failed = served.get_with("/assets/a.js", name, value);
        assert_eq!((failed.status, failed.field("cache-control")), (status, Some("no-store")));
    }
}

#[test]
fn the_preset_of_security_headers_is_on_all_pages() {
    let tree = Tree::new(&[("a.html", b"<p>")]);
    let served = TestServer::site(
        &tree,
        "security-headers = true\nlisting = true\nheaders = [{ path = '*', set = { Referrer-Policy = 'no-referrer' } }]",
    );
    for (target, policy) in
        [("/a.html", "no-referrer"), ("/", "no-referrer"), ("/none", "strict-origin-when-cross-origin")]
    {
        let response = served.get(target);
        assert_eq!(response.field("x-content-type-options"), Some("nosniff"), "{target}");
        assert_eq!(response.field("x-frame-options"), Some("SAMEORIGIN"), "{target}");
        assert_eq!(response.field("referrer-policy"), Some(policy), "a rule goes before the preset");
        assert!(response.field("content-security-policy").is_some(), "{target}");
        assert_eq!(response.field("strict-transport-security"), None, "not without encryption");
    }
    assert_eq!(TestServer::site(&tree, "").get("/a.html").field("x-frame-options"), None);
}

fn from(served: &TestServer, method: &str, origin: &str, fields: &[(&str, &str)]) -> Response {
    served.ask(method, "/a", &[&[("Origin", origin)], fields].concat())
}

#[test]
fn other_origins_are_told_what_they_may_do() {
    let tree = Tree::new(&[("a", b"a")]);
    let cors = "[site.cors]\norigins = ['https://a.example', 'https://b.example:444']\nallow-headers = ['X-Token', 'Range']\n\
                expose-headers = ['X-Served']\ncredentials = true\nmax-age-s = 600";
    let served = TestServer::site(&tree, cors);
    let allowed = from(&served, "GET", "https://a.example", &[]);
    allowed.is(200, b"a");
    assert_eq!(allowed.field("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(allowed.field("access-control-allow-credentials"), Some("true"));
    let exposed = allowed.list("access-control-expose-headers");
    for name in ["content-range", "etag", "accept-ranges", "content-length", "x-served"] {
        assert!(exposed.iter().any(|known| known == name), "{name}: {exposed:?}");
    }
    assert_eq!(allowed.list("vary"), ["origin"]);

    for origin in ["https://evil.example", "https://a.example.evil.example", "http://a.example", "null", ""] {
        let other = from(&served, "GET", origin, &[]);
        assert_eq!((other.status, other.field("access-control-allow-origin")), (200, None), "{origin}");
        assert_eq!(other.list("vary"), ["origin"]);
    }

    let asks = [("Access-Control-Request-Method", "GET"), ("Access-Control-Request-Headers", "x-token")];
    let preflight = from(&served, "OPTIONS", "https://b.example:444", &asks);
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.field("access-control-allow-origin"), Some("https://b.example:444"));
    assert_eq!(preflight.list("access-control-allow-methods"), ["get", "head"]);
    let allowed = preflight.list("access-control-allow-headers");
    assert!(["range", "if-range", "x-token"].iter().all(|name| allowed.iter().any(|known| known == name)));
    assert!(!allowed.iter().any(|name| name == "authorization"), "{allowed:?}");
    assert_eq!(preflight.field("access-control-max-age"), Some("600"));
    assert_eq!(
        from(&served, "OPTIONS", "https://evil.example", &asks).field("access-control-allow-methods"),
        None
    );

    let open = TestServer::site(&tree, "cors = { origins = ['*'] }");
    let response = from(&open, "GET", "https://any.example", &[]);
    assert_eq!((response.field("access-control-allow-origin"), response.list("vary").len()), (Some("*"), 0));
    assert_eq!(from(&open, "GET", "https://any.example", &[("Range", "bytes=0-0")]).status, 206);
    let missing = open.ask("GET", "/none", &[("Origin", "https://any.example")]);
    assert_eq!((missing.status, missing.field("access-control-allow-origin")), (404, Some("*")));
}

/// Errors, too, have the headers of rules that always apply, and others are not only on files.
#[test]
fn headers_that_always_apply_are_on_every_response() {
    let tree = Tree::new(&[("a", b"a")]);
    let site = "security-headers = true\nheaders = [{ path = '/**', set = { X-Site = 'one' }, always = true }]\n\
                cache-control = [{ path = '/**', value = 'max-age=60', always = true }]\ncors = { origins = ['*'] }";
    let served =
        TestServer::new(&tree, "health = '/health'\nmetrics = '/metrics'\nlimits.target-bytes = 100\n", site);
    let preflight = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")];
    let long = format!("/{}", "x".repeat(200));
    for (method, target, fields, status) in [
        ("OPTIONS", "/a", &preflight[..], 204),
        ("OPTIONS", "/a", &[], 204),
        ("BREW", "/a", &[], 405),
        ("POST", "/a", &[("Content-Length", "99999999")], 413),
        ("GET", &long, &[], 414),
        ("GET", "/health", &[], 200),
        ("GET", "/metrics", &[], 200),
        ("GET", "/a", &[], 200),
    ] {
        let response = served.ask(method, target, fields);
        assert_eq!((response.status, response.field("x-site")), (status, Some("one")), "{method} {target}");
        assert_eq!(response.field("x-content-type-options"), Some("nosniff"), "{method} {target}");
        let cache = if target == "/health" { "no-store" } else { "max-age=60" };
        assert_eq!(response.field("cache-control"), Some(cache), "{method} {target}");
    }
}

#[test]
fn redirects_keep_to_their_host_and_rewrites_to_the_root() {
    let tree = Tree::new(&[("new/a", b"moved"), ("b.html", b"page"), ("../secret", b"secret")]);
    let rules = "redirects = [{ from = '/old/**', to = '/new/$1', status = 301 }, { from = '/go/*', to = 'https://b.example/$1' },\n\
                 { from = '/raw**', to = '/$1' }]\n\
                 rewrites = [{ from = '/page/*', to = '/$1.html' }, { from = '/any**', to = '/$1' }, { from = '/dot**', to = '/.$1' }]\n\
                 dotfiles = true\n";
    let served = TestServer::site(&tree, rules);
    for (target, status, location) in [
        ("/old/a", 301, "/new/a"),
        ("/old/a?x=1", 301, "/new/a?x=1"),
        ("/old/%C3%A9%20%3F", 301, "/new/%C3%A9%20%3F"),
        ("/old/%0d%0aSet-Cookie:%20a=b", 301, "/new/%0D%0ASet-Cookie:%20a=b"),
        ("/go/x", 308, "https://b.example/x"),
        ("/raw/evil.example", 308, "/evil.example"),
        ("/raw%5Cevil.example", 308, "/%5Cevil.example"),
    ] {
        let response = served.get(target);
        assert_eq!((response.status, response.field("location")), (status, Some(location)), "{target}");
        assert_eq!(response.field("set-cookie"), None);
    }
    served.get("/page/b").is(200, b"page");
    assert_eq!(served.get("/page/b").field("content-type"), Some("text/html; charset=utf-8"));
    served.get("/anynew/a").is(200, b"moved");
    // A rewritten path is checked like a request path, whatever the policy for symbolic links.
    let outside = tree.at("../secret").canonicalize().unwrap().display().to_string();
    for policy in ["within", "never", "follow"] {
        let served = TestServer::site(&tree, &format!("symlinks = '{policy}'\n{rules}"));
        for target in [
            format!("/any{outside}"),
            "/dot./secret".to_owned(),
            "/dot./../secret".to_owned(),
            "/any/".to_owned(),
        ] {
            let response = served.get(&target);
            assert!(matches!(response.status, 400 | 404), "{policy} {target}: {response:?}");
        }
    }
}

#[test]
fn redirects_by_expression_and_query_and_pages_that_are_gone() {
    let tree = Tree::new(&[("gone/a", b"still a file"), ("410.html", b"gone for good"), ("m/x", b"x")]);
    let rules = format!(
        "redirects = [{{ from = '/gone/**', status = 410 }}, {{ from-regex = '^/post/([0-9]+)$', to = '/blog/$1' }},\n\
                 {{ from = '/index.php', query-regex = '^page=([^&]+)$', to = '/$1', status = 301 }}]\n\
                 error-pages = {{ 410 = '/410.html' }}\n\
                 mounts = [{{ path = '/m', root = '{}', redirects = [{{ from-regex = '^/(old)$', to = '/x?$1' }}] }}]\n",
        tree.at("m").display()
    );
    let served = TestServer::site(&tree, &rules);
    for (target, status, location) in [
        ("/post/12", 308, "/blog/12"),
        ("/post/12?a=1", 308, "/blog/12?a=1"),
        ("/index.php?page=contact", 301, "/contact"),
        // The text of a query ends no part of the address.
        ("/index.php?page=%2Fevil.example", 301, "/evil.example"),
        ("/index.php?page=a%0d%0ab%3Fc%23d", 301, "/a%0D%0Ab%3Fc%23d"),
        ("/m/old", 308, "/m/x?old"),
    ] {
        let response = served.get(target);
        assert_eq!((response.status, response.field("location")), (status, Some(location)), "{target}");
    }
    for target in ["/post/x", "/index.php", "/index.php?page=a&b", "/old"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }
    let gone = served.get("/gone/a");
    assert_eq!((gone.field("location"), gone.field("cache-control")), (None, Some("no-store")));
    gone.is(410, b"gone for good");
}

#[test]
fn each_name_has_its_site() {
    let tree = Tree::new(&[("x", b"default"), ("../a/x", b"a"), ("../b/x", b"b"), ("../a/only", b"a")]);
    let mut all = config(&tree, "", "");
    for (names, root) in [(&["a.example", "[::1]"][..], "../a"), (&["*.example"], "../b")] {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        all.host.push(fathom_serve::config::SiteConfig { names, root: tree.at(root), ..Default::default() });
    }
    let served = TestServer::start(&all);
    for (host, body) in [
        ("a.example", "a"),
        ("A.Example:8080", "a"),
        ("a.example.", "a"),
        ("[::1]:80", "a"),
        ("b.example", "b"),
        ("c.b.example", "b"),
        ("example", "default"),
        ("a.example.evil", "default"),
        ("127.0.0.1", "default"),
    ] {
        served.get_with("/x", "Host", host).is(200, body.as_bytes());
    }
    assert_eq!(served.get_with("/only", "Host", "b.example").status, 404);
    assert!(served.raw(b"GET /x HTTP/1.0\r\n\r\n").ends_with(b"default"));
    // The host in the target has priority over the header (RFC 9112, section 3.2.2).
    served.ask("GET", "http://a.example/x", &[("Host", "b.example")]).is(200, b"a");
    // One connection may request several sites.
    let mut client = served.connect();
    for (host, body) in [("a.example", "a"), ("b.example", "b"), ("other", "default")] {
        client.ask("GET", "/x", &[("Host", host)]).is(200, body.as_bytes());
    }
}
