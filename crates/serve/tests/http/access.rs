//! Access control: hidden and denied paths, client addresses, users by path, request rates.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::support::{Client, TestServer, Tree, config};

fn tree() -> Tree {
    Tree::new(&[
        ("index.html", b"index"),
        ("a.txt", b"a"),
        ("a.bak", b"old"),
        ("sub/node_modules/x/y", b"y"),
        ("sub/z", b"z"),
        ("admin/index.html", b"admin"),
        ("admin/log", b"log"),
        ("secret.html", b"secret"),
        ("404.html", b"none"),
    ])
}

#[test]
fn hidden_paths_are_not_found() {
    let tree = tree();
    let site = "hide = ['*.bak', 'node_modules', '/admin/index.html']\nlisting = true\nerror-pages = { 404 = '/404.html' }\n\
                rewrites = [{ from = '/old/*', to = '/$1.bak' }]\ntry = ['.bak']\n";
    let served = TestServer::site(&tree, site);
    for target in [
        "/a.bak",
        "/sub/node_modules",
        "/sub/node_modules/",
        "/sub/node_modules/x/y",
        "/old/a",
        "/a",
        "/A.bak",
        "/a%2ebak",
    ] {
        served.get(target).is(404, b"none");
    }
    served.get("/a.txt").is(200, b"a");
    // A hidden index file is not the index of its directory.
    let listing = served.get("/admin/");
    assert!(listing.text().contains("log") && !listing.text().contains("index.html"), "{listing:?}");
    let sub = served.get("/sub/");
    assert!(sub.text().contains("./z") && !sub.text().contains("node_modules"), "{sub:?}");
}

#[test]
fn denied_paths_are_forbidden_by_every_route() {
    let tree = tree();
    let site = "deny = ['/admin/**', '/secret.html']\ntry = ['.html']\n\
                rewrites = [{ from = '/r/**', to = '/$1' }]\nredirects = [{ from = '/admin/old', to = '/a.txt' }]";
    let served = TestServer::site(&tree, site);
    for target in [
        "/admin",
        "/admin/",
        "/admin/log",
        "/admin/none",
        "/admin/old",
        "/%61dmin/log",
        "/r/admin/log",
        "/r/admin/",
        "/secret.html",
        "/secret",
    ] {
        assert_eq!(served.get(target).status, 403, "{target}");
    }
    served.get("/r/a.txt").is(200, b"a");
    served.get("/").is(200, b"index");
}

#[test]
fn addresses_are_admitted_or_not() {
    let tree = tree();
    for (site, status) in [
        ("allow-from = ['127.0.0.0/8']", 200),
        ("allow-from = ['::1', '10.0.0.0/8']", 403),
        ("deny-from = ['127.0.0.1']", 403),
        ("deny-from = ['10.0.0.0/8']", 200),
        ("allow-from = ['127.0.0.0/8']\ndeny-from = ['127.0.0.0/30']", 403),
        ("allow-from = ['unix']", 403),
    ] {
        let served = TestServer::new(&tree, "health = '/health'\nmetrics = '/metrics'\n", site);
        for (method, target) in [("GET", "/a.txt"), ("HEAD", "/a.txt"), ("GET", "/metrics")] {
            assert_eq!(served.ask(method, target, &[]).status, status, "{site} {target}");
        }
        assert_eq!(served.get("/none").status, if status == 403 { 403 } else { 404 }, "{site}");
        assert_eq!(served.get("/health").status, 200, "a load balancer has its own network");
    }
    let socket = tree.at("../socket");
    let mut all = config(&tree, "", "allow-from = ['unix']");
    all.listen.push(format!("unix:{}", socket.display()));
    let _served = TestServer::start(&all);
    Client::connect_unix(&socket).get("/a.txt").is(200, b"a");
}

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:secret")))
}

#[test]
fn users_have_their_paths() {
    let tree = tree();
    let hash = bcrypt::hash_with_salt("secret", 4, *b"0123456789abcdef").unwrap().to_string();
    let site = format!(
        "rewrites = [{{ from = '/r/**', to = '/$1' }}]\ntry = ['.html']\n[site.auth]\nusers = {{ anna = '{hash}', bob = '{hash}' }}\n\
         paths = [{{ path = '/**', public = true }}, {{ path = '/admin', users = ['anna'] }}, {{ path = '/sub', users = ['*'] }},\n\
         {{ path = '/secret.html', users = ['anna'] }}]"
    );
    let served = TestServer::new(&tree, "metrics = '/metrics'\n", &site);
    for (target, without, anna, bob) in [
        ("/a.txt", 200, 200, 200),
        ("/", 200, 200, 200),
        ("/admin/", 401, 200, 403),
        ("/admin", 401, 301, 403),
        ("/admin/log", 401, 200, 403),
        ("/%61dmin/log", 401, 200, 403),
        ("/admin/none", 401, 404, 403),
        ("/sub/z", 401, 200, 200),
        // A rewrite or a suffix that leads to a path does not grant access to it.
        ("/r/admin/log", 401, 200, 403),
        ("/secret", 401, 200, 403),
        ("/r/secret", 401, 200, 403),
        // Metrics cover all sites and need a user, whatever paths are public.
        ("/metrics", 401, 200, 200),
    ] {
        let statuses = [None, Some("anna"), Some("bob")].map(|user| {
            let authorization = user.map(basic);
            let fields: Vec<_> =
                authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
            served.ask("GET", target, &fields).status
        });
        assert_eq!(statuses, [without, anna, bob], "{target}");
    }
    let refused = served.ask("GET", "/admin/log", &[("Authorization", "Basic YW5uYTp3cm9uZw==")]);
    assert_eq!((refused.status, refused.field("www-authenticate").is_some()), (401, true));
}

#[test]
fn a_client_that_asks_too_fast_is_told_when_to_come_back() {
    let tree = tree();
    // No token is refilled during this test.
    let served =
        TestServer::new(&tree, "health = '/health'\nlimits.requests-per-s = 0.001\nlimits.burst = 3\n", "");
    let mut client = served.connect();
    (0..2).for_each(|_| client.get("/a.txt").is(200, b"a"));
    // All connections of an address share the limit, and every response counts.
    assert_eq!(served.get("/none").status, 404);
    for _ in 0..2 {
        let refused = client.get("/a.txt");
        assert_eq!(refused.status, 429);
        let after: u64 = refused.field("retry-after").unwrap().parse().unwrap();
        assert!((1..=1000).contains(&after), "{after}");
        assert_eq!(client.get("/health").status, 200);
    }
    let unlimited = TestServer::site(&tree, "");
    (0..50).for_each(|_| unlimited.get("/a.txt").is(200, b"a"));
}
