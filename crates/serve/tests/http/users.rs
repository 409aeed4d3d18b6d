//! Basic authentication: valid and invalid credentials, and the paths that need none.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::support::{MemoryLog, TestServer, Tree, config};

/// Returns a bcrypt hash of `password` at the lowest cost.
pub(crate) fn hash(password: &str) -> String {
    bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef").unwrap().to_string()
}

pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

fn tree() -> Tree {
    Tree::new(&[("a", b"private"), ("401.html", b"who?"), ("../open/a", b"public")])
}

fn auth() -> String {
    format!(
        "error-pages = {{ 401 = '/401.html' }}\nauth = {{ realm = 'a \"b\"', users = {{ anna = '{}' }} }}",
        hash("secret")
    )
}

#[test]
fn valid_credentials_are_accepted() {
    let tree = tree();
    let served = TestServer::site(&tree, &auth());
    let mut client = served.connect();
    for (authorization, status) in [
        (basic("anna", "secret"), 200),
        (basic("anna", "secret").replace("Basic", "bASIC"), 200),
        (basic("anna", "Secret"), 401),
        (basic("anna", "secret "), 401),
        (basic("anna", ""), 401),
        (basic("Anna", "secret"), 401),
        (basic("nobody", "secret"), 401),
        (basic("", ""), 401),
        ("Basic".to_owned(), 401),
        ("Basic !!!".to_owned(), 401),
        ("Basic YW5uYQ==".to_owned(), 401),
        ("Bearer YW5uYTpzZWNyZXQ=".to_owned(), 401),
        (String::new(), 401),
        (basic("anna", "secret"), 200),
    ] {
        let response = client.ask("GET", "/a", &[("Authorization", &authorization)]);
        assert_eq!(response.status, status, "{authorization}");
        let challenge = response.field("www-authenticate");
        if status == 401 {
            response.is(401, b"who?");
            assert_eq!(challenge, Some("Basic realm=\"a \\\"b\\\"\", charset=\"UTF-8\""));
        } else {
            assert_eq!(challenge, None);
        }
    }
    assert_eq!(client.get("/a").status, 401);
    let right = basic("anna", "secret");
    let twice = [("Authorization", right.as_str()), ("Authorization", right.as_str())];
    assert_eq!(client.ask("GET", "/a", &twice).status, 401);
}

/// bcrypt uses only 72 bytes: a longer password must not match by its beginning.
#[test]
fn a_password_is_compared_to_its_end() {
    let tree = tree();
    let (full, long) = ("x".repeat(72), "x".repeat(73));
    let served = TestServer::site(&tree, &format!("auth = {{ users = {{ anna = '{}' }} }}", hash(&full)));
    assert_eq!(served.get_with("/a", "Authorization", &basic("anna", &full)).status, 200);
    assert_eq!(served.get_with("/a", "Authorization", &basic("anna", &long)).status, 401);
}

/// The paths that are accessible with and without a password, at a site that requires one and one
/// that does not.
#[test]
fn only_the_health_check_and_options_are_public() {
    let tree = tree();
    for (default_auth, host_auth) in [(true, false), (false, true), (true, true)] {
        let mut all = config(
            &tree,
            "health = '/health'\nmetrics = '/metrics'\n",
            if default_auth { auth() } else { String::new() }.as_str(),
        );
        let mut host = config(&tree, "", if host_auth { auth() } else { String::new() }.as_str()).site;
        host.names = vec!["b.example".to_owned()];
        host.root = tree.at("../open");
        all.host.push(host);
        let served = TestServer::start(&all);
        let right = basic("anna", "secret");
        for (host, target, closed) in [
            ("a.example", "/a", default_auth),
            ("a.example", "/none", default_auth),
            ("a.example", "/%", default_auth),
            ("a.example", "/metrics", default_auth),
            ("a.example", "/health", false),
            ("b.example", "/a", host_auth),
            ("b.example", "/metrics", default_auth),
            ("b.example", "/health", false),
            ("c.example", "/metrics", default_auth),
        ] {
            let context = format!("{default_auth} {host_auth} {host}{target}");
            for method in ["GET", "HEAD"] {
                let without = served.ask(method, target, &[("Host", host)]);
                assert_eq!(without.status == 401, closed, "{context}");
                assert!(!closed || !without.text().contains("fathom"), "{context}");
                let with = served.ask(method, target, &[("Host", host), ("Authorization", &right)]);
                assert_ne!(with.status, 401, "{context}");
            }
            assert_eq!(served.ask("OPTIONS", target, &[("Host", host)]).status, 204);
        }
        // A target that names the other site selects that site, whatever the header says.
        let crossed = served.ask("GET", "http://b.example/metrics", &[("Host", "c.example")]);
        assert_eq!(crossed.status == 401, default_auth);
    }
}

#[test]
fn the_log_has_the_user_and_never_the_password() {
    let tree = tree();
    let lines = MemoryLog::default();
    let all = config(&tree, "access-log = { format = 'json' }\n", &auth());
    let served = TestServer::with(
        &all,
        fathom_serve::server::StartOptions { stream: Some(Box::new(lines.clone())), ..Default::default() },
    );
    served.get_with("/a", "Authorization", &basic("anna", "secret")).is(200, b"private");
    served.get_with("/a", "Authorization", &basic("anna", "wrong-one"));
    assert!(served.drain(crate::support::LONG));
    let text = lines.text();
    let users: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["user"].clone())
        .collect();
    assert_eq!(users, [serde_json::Value::from("anna"), serde_json::Value::Null]);
    for word in ["secret", "wrong-one", "YW5uYT"] {
        assert!(!text.contains(word), "{word}");
    }
}
