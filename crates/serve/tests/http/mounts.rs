//! A site below a base path, and other directories mounted at paths of it, each with its own rules.

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fathom_serve::Config;
use fathom_serve::server::{Server, StartOptions};

use crate::archives::names;
use crate::support::{MemoryLog, TestServer, Tree, config, eventually, io, models, noise, request};

fn tree() -> Tree {
    Tree::new(&[
        ("index.html", b"home"),
        ("a.txt", b"site"),
        ("docs/shadowed", b"shadowed"),
        ("docsx", b"docsx"),
        ("sub/b", b"b"),
        ("../docs/index.html", b"docs"),
        ("../docs/a.txt", b"docs a"),
        ("../docs/about.html", b"about"),
        ("../docs/list/z", b"z"),
        ("../docs/api/below", b"not the mount"),
        ("../docs/private/key", b"key"),
        ("../api/a.txt", b"api a"),
    ])
}

/// Returns the table of a mount at `path` of the directory `dir` beside the site, with the lines
/// `settings`.
fn mount(tree: &Tree, path: &str, dir: &str, settings: &str) -> String {
    let root = tree.at("..").join(dir);
    format!("[[site.mounts]]\npath = '{path}'\nroot = '{}'\n{settings}\n", root.display())
}

/// Returns the tables of two mounts, one below the other.
fn both(tree: &Tree, settings: &str) -> String {
    mount(tree, "/docs", "docs", settings) + &mount(tree, "/docs/api/", "api", "")
}

#[track_caller]
fn leads(served: &TestServer, target: &str, status: u16, location: &str) {
    let response = served.get(target);
    assert_eq!((response.status, response.field("location")), (status, Some(location)), "{target}");
}

#[test]
fn the_mount_with_the_longest_path_serves_the_request() {
    for model in models() {
        let tree = tree();
        let served = TestServer::new(&tree, &io(model), &both(&tree, ""));
        let mut client = served.connect();
        for _ in 0..3 {
            for (target, body) in [
                ("/", &b"home"[..]),
                ("/a.txt", b"site"),
                ("/docs/", b"docs"),
                ("/docs/a.txt", b"docs a"),
                ("/%64ocs/%61.txt", b"docs a"),
                ("/docs/api/a.txt", b"api a"),
                ("/docsx", b"docsx"),
                ("/docs/private/key", b"key"),
            ] {
                client.get(target).is(200, body);
            }
            for target in
                ["/docs/shadowed", "/docs/api/below", "/docs/none", "/Docs/a.txt", "/docs/api/index.html"]
            {
                assert_eq!(client.get(target).status, 404, "{model} {target}");
            }
        }
    }
}

#[test]
fn a_path_has_one_form() {
    let tree = tree();
    let served = TestServer::site(&tree, &both(&tree, "deny = ['/private']\n"));
    for target in [
        "//docs/private/key",
        "/docs//private/key",
        "/sub/../docs/private/key",
        "/docs/../docs/private/key",
        "/docs/api/../private/key",
        "/docs/%2e%2e/docs/private/key",
        "/docs%2fprivate%2fkey",
        "/docs/%2e/private/key",
        "/./docs/private/key",
        "/docs/../a.txt",
        "/docs/../../site/a.txt",
        "/docs/%2e%2e/a.txt",
        "/docs/..%2fa.txt",
    ] {
        let response = served.get(target);
        assert_eq!(response.status, 404, "{target}: {response:?}");
    }
    for target in [
        "/docs/private/key",
        "/%64ocs/privat%65/key",
        "/docs/private",
        "/docs/private/",
        "/docs/private/none",
    ] {
        assert_eq!(served.get(target).status, 403, "{target}");
    }
}

#[test]
fn redirects_are_relative_to_the_mount_and_the_base() {
    let tree = tree();
    for base in ["", "/app", "/a b/c/"] {
        let prefix = base.trim_end_matches('/').replace(' ', "%20");
        let rules = "redirects = [{ from = '/old/*', to = '/new/$1' }, { from = '/out', to = 'https://o.example/' }]\n";
        let site = format!(
            "base = '{base}'\nclean-urls = 'redirect'\nlisting = true\n{rules}{}",
            both(&tree, &format!("index = ['none']\n{rules}"))
        );
        let served = TestServer::site(&tree, &site);
        let at = |path: &str| format!("{prefix}{path}");
        for (target, location) in [
            ("/docs?q=1", "docs/?q=1"),
            ("/docs/api", "api/"),
            ("/docs/list", "list/"),
            ("/docs/about.html", "about"),
            ("/sub", "sub/"),
            ("/index.html", "./"),
        ] {
            leads(&served, &at(target), 301, location);
        }
        leads(&served, &at("/old/x"), 308, &at("/new/x"));
        leads(&served, &at("/docs/old/x"), 308, &at("/docs/new/x"));
        leads(&served, &at("/docs/out"), 308, "https://o.example/");
        served.get(&at("/docs/about")).is(200, b"about");
        let list = served.get(&at("/docs/"));
        for part in ["Index of /docs/<", "href=\"../\"", "href=\"./list/\"", "href=\"./a.txt\""] {
            assert!(list.text().contains(part), "{part}: {}", list.text());
        }
        let json = served.ask("GET", &at("/docs/list/"), &[("Accept", "application/json")]);
        assert!(json.text().starts_with("{\"path\":\"/docs/list/\""), "{}", json.text());
        if !prefix.is_empty() {
            let last = prefix.rsplit('/').next().unwrap();
            leads(&served, &prefix, 301, &format!("{last}/"));
            for target in ["/", "/a.txt", "/docs/", "/app2/", "/appx", "/docs/a.txt"] {
                assert_eq!(served.get(target).status, 404, "{target}");
            }
            served.get(&at("/")).is(200, b"home");
        }
    }
}

/// The listing of a base has no link above it.
#[test]
fn a_listing_of_the_base_has_no_link_out_of_it() {
    let tree = Tree::new(&[("sub/b", b"b")]);
    let served = TestServer::site(&tree, "base = '/app'\nlisting = true");
    let list = served.get("/app/");
    assert!(list.text().contains("Index of /<") && !list.text().contains("href=\"../\""), "{}", list.text());
    let below = served.get("/app/sub/");
    assert!(
        below.text().contains("<a href=\"../\">/</a>") && !below.text().contains("../../"),
        "{}",
        below.text()
    );
}

#[test]
fn the_base_is_for_everything_but_health_and_metrics() {
    let tree = Tree::new(&[("index.html", b"home"), ("404.html", b"none"), ("x.html", b"x")]);
    let site = "base = '/app'\nfallback = '/index.html'\nerror-pages = { 404 = '/404.html' }\n\
                rewrites = [{ from = '/r/*', to = '/$1.html' }]\ndeny = ['/d']\n";
    let served = TestServer::new(&tree, "health = '/health'\nmetrics = '/metrics'\n", site);
    served.get("/app/").is(200, b"home");
    served.get("/app/route").is(200, b"home");
    served.get("/app/r/x").is(200, b"x");
    assert_eq!(served.get("/app/d/x").status, 403);
    for target in ["/", "/route", "/x.html", "/r/x", "/ap", "/apps/", "/d/x"] {
        served.get(target).is(404, b"none");
    }
    assert_eq!((served.get("/health").status, served.get("/metrics").status), (200, 200));
    let mut all = config(&tree, "", site);
    all.listen = vec!["127.0.0.1:0".to_owned()];
    assert!(TestServer::start(&all).server().addresses()[0].ends_with("/app/"));
}

#[test]
fn settings_are_inherited_unless_a_mount_has_its_own() {
    let tree = tree();
    let site = format!(
        "listing = true\nhide = ['/docs/list', '*.bak']\nfallback = '/index.html'\nerror-pages = {{ 404 = '/a.txt' }}\n\
         headers = [{{ path = '/docs/**', set = {{ X-A = 'site' }} }}]\ncache-control = [{{ path = '*.txt', value = 'no-store' }}]\n\
         cors = {{ origins = ['*'] }}\n{}{}",
        mount(&tree, "/docs", "docs", ""),
        mount(
            &tree,
            "/own",
            "docs",
            "listing = false\nindex = []\nhide = ['/private/**']\nfallback = '/about.html'\n\
             headers = [{ path = '/a.*', set = { X-A = 'own' } }]\ncache-control = []\ncors = { origins = ['https://a.example'] }"
        )
    );
    let served = TestServer::site(&tree, &site);
    let fields = |target: &str| {
        let response = served.get_with(target, "Origin", "https://b.example");
        let field = |name: &str| response.field(name).map(str::to_owned);
        (response.status, field("x-a"), field("cache-control"), field("access-control-allow-origin"))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(fields("/docs/a.txt"), (200, some("site"), some("no-store"), some("*")));
    assert_eq!(fields("/own/a.txt"), (200, some("own"), None, None));
    assert_eq!(fields("/a.txt"), (200, None, some("no-store"), some("*")));
    // Globs of the site match paths of the site, globs of a mount paths of the mount.
    assert_eq!(served.get("/docs/list/z").status, 404);
    served.get("/own/list/z").is(200, b"z");
    served.get("/docs/private/key").is(200, b"key");
    // Pages are files below the root of the site or mount that names them.
    served.get("/none").is(200, b"home");
    served.get("/own/none").is(200, b"about");
    served.get("/own/private/key").is(200, b"about");
    let none = served.get("/docs/none");
    assert!(none.status == 404 && none.text().contains("404 Not Found"), "{none:?}");
    assert_eq!(served.get("/docs/api/").status, 200, "a list");
}

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:secret")))
}

fn users(names: &[&str]) -> String {
    let hash = |name: &&str| {
        format!("{name} = '{}'", bcrypt::hash_with_salt("secret", 4, *b"0123456789abcdef").unwrap())
    };
    format!("users = {{ {} }}", names.iter().map(hash).collect::<Vec<_>>().join(", "))
}

/// Returns the statuses without a user, and for anna, bob and carl.
fn statuses(served: &TestServer, target: &str) -> [u16; 4] {
    [None, Some("anna"), Some("bob"), Some("carl")].map(|user| {
        let authorization = user.map(basic);
        let fields: Vec<_> = authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
        let mut client = served.connect();
        client.send(request("GET", target, &fields));
        client.head().status
    })
}

#[test]
fn a_mount_requires_its_users_by_every_route() {
    let tree = tree();
    tree.link(tree.at("../docs"), "link");
    let rewrites = "rewrites = [{ from = '/r/**', to = '/$1' }, { from = '/team/r/**', to = '/docs/$1' }]\n\
                    redirects = [{ from = '/to/**', to = '/$1' }]\n";
    let own =
        format!("auth = {{ {}, paths = [{{ path = '/list', users = ['bob'] }}] }}", users(&["bob", "anna"]));
    let site = format!(
        "{rewrites}archives = ['zip']\nlisting = true\nauth = {{ {}, paths = [{{ path = '/**', public = true }}, {{ path = '/team', users = ['*'] }}] }}\n{}",
        users(&["anna", "carl"]),
        mount(&tree, "/docs", "docs", &own)
    );
    let served = TestServer::new(&tree, "limits.wrong-passwords-per-min = 0\n", &site);
    for (target, expected) in [
        ("/a.txt", [200; 4]),
        ("/docs/a.txt", [401, 200, 200, 401]),
        ("/docs", [401, 301, 301, 401]),
        ("/docs/list/z", [401, 403, 200, 401]),
        ("/docs/list/", [401, 403, 200, 401]),
        ("/docs/list/?archive=zip", [401, 403, 200, 401]),
        ("/r/docs/a.txt", [401, 200, 200, 401]),
        ("/r/docs/list/z", [401, 403, 200, 401]),
        ("/r/docs", [401, 301, 301, 401]),
        ("/to/docs/a.txt", [308; 4]),
        // Users of the site: a user of the mount with the same name is another user.
        ("/team/x", [401, 404, 401, 404]),
        ("/team/r/a.txt", [401, 200, 401, 401]),
        ("/team/r/list/z", [401, 403, 401, 401]),
        // A symbolic link out of the root is not followed.
        ("/link/a.txt", [404; 4]),
    ] {
        assert_eq!(statuses(&served, target), expected, "{target}");
    }
}

/// Two users with one name and different passwords.
#[test]
fn a_user_of_the_site_is_no_user_of_a_mount_by_name() {
    let tree = tree();
    let hash =
        |password: &str| bcrypt::hash_with_salt(password, 4, *b"0123456789abcdef").unwrap().to_string();
    let site = format!(
        "rewrites = [{{ from = '/r/**', to = '/docs/$1' }}]\nauth = {{ users = {{ anna = '{}' }} }}\n{}",
        hash("secret"),
        mount(&tree, "/docs", "docs", &format!("auth = {{ users = {{ anna = '{}' }} }}", hash("other")))
    );
    let served = TestServer::site(&tree, &site);
    let status = |target: &str, password: &str| {
        let authorization = format!("Basic {}", BASE64_STANDARD.encode(format!("anna:{password}")));
        served.get_with(target, "Authorization", &authorization).status
    };
    for (target, secret, other) in [("/a.txt", 200, 401), ("/docs/a.txt", 401, 200), ("/r/a.txt", 401, 401)] {
        assert_eq!((status(target, "secret"), status(target, "other")), (secret, other), "{target}");
    }
}

#[test]
fn inherited_users_and_their_paths_are_those_of_the_site() {
    let tree = tree();
    let site = format!(
        "rewrites = [{{ from = '/r/**', to = '/$1' }}]\n\
         auth = {{ {}, paths = [{{ path = '/docs/list', users = ['anna'] }}, {{ path = '/docs/a.txt', public = true }}] }}\n{}",
        users(&["anna", "bob"]),
        both(&tree, "")
    );
    let served = TestServer::site(&tree, &site);
    for (target, expected) in [
        ("/", [401, 200, 200, 401]),
        ("/docs/", [401, 200, 200, 401]),
        ("/docs/a.txt", [200; 4]),
        ("/docs/list/z", [401, 200, 403, 401]),
        ("/r/docs/list/z", [401, 200, 403, 401]),
        ("/docs/api/a.txt", [401, 200, 200, 401]),
    ] {
        assert_eq!(statuses(&served, target), expected, "{target}");
    }
}

#[test]
fn a_mount_has_its_addresses_and_its_maintenance() {
    let tree = tree();
    let rewrites = "rewrites = [{ from = '/r/*/**', to = '/$1/$2' }]\n";
    for (settings, status) in [
        ("deny-from = ['127.0.0.1']", 403),
        ("allow-from = ['10.0.0.0/8']", 403),
        ("maintenance = { enabled = true, page = '/about.html' }", 503),
    ] {
        let site = format!("{rewrites}{}", both(&tree, settings));
        let served = TestServer::site(&tree, &site);
        for target in ["/docs/a.txt", "/docs/none", "/docs", "/r/docs/a.txt"] {
            let response = served.get(target);
            assert_eq!(response.status, status, "{settings} {target}");
            assert!(status != 503 || response.body == b"about", "{response:?}");
        }
        served.get("/a.txt").is(200, b"site");
        served.get("/docs/api/a.txt").is(200, b"api a");
        served.get("/r/docs/api/a.txt").is(200, b"api a");
    }
    // Conversely, a mount may admit a client that the site does not.
    let site = format!("deny-from = ['127.0.0.1']\n{}", mount(&tree, "/docs", "docs", "deny-from = []"));
    let served = TestServer::site(&tree, &site);
    assert_eq!((served.get("/a.txt").status, served.get("/docs/a.txt").status), (403, 200));
}

#[test]
fn a_directory_below_a_mount_is_reached_through_the_mount_only() {
    let tree = tree();
    tree.write("docs/index.html", b"shadowed index");
    let site = format!(
        "archives = ['tar.gz']\nlisting = true\ntry = ['/index.html', '.txt']\nrewrites = [{{ from = '/r/**', to = '/$1' }}]\n{}",
        mount(&tree, "/docs", "api", "deny = ['/**']") + &mount(&tree, "/sub/b.txt", "api", "")
    );
    tree.write("sub/b.txt", b"shadowed b");
    fs::remove_file(tree.at("sub/b")).unwrap();
    let served = TestServer::site(&tree, &site);
    for target in ["/docs", "/docs/", "/docs/shadowed", "/docs/index.html", "/r/docs/", "/r/docs/shadowed"] {
        assert_eq!(served.get(target).status, 403, "{target}");
    }
    assert_eq!(served.get("/sub/b").status, 404);
    let listed = served.get("/sub/");
    assert!(listed.text().contains("./b.txt"), "its link leads to the mount: {}", listed.text());
    let names = names(&served, "/?archive=tar.gz");
    assert!(names.contains("files/a.txt"), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("docs/") || name.contains("b.txt")), "{names:?}");
}

/// One directory at two paths, with and without compression, and under different rules.
#[test]
fn cached_files_of_one_mount_are_not_used_for_another() {
    let tree = tree();
    let text = b"a text that is long enough to be worth a coding, or it would be sent as it is".repeat(40);
    tree.write("../docs/long.txt", &text);
    let settings = |number: usize, rest: &str| {
        mount(
            &tree,
            &format!("/{number}"),
            "docs",
            &format!(
                "headers = [{{ path = '/**', set = {{ X-N = '{number}' }} }}]\nlisting = true\nindex = []\n{rest}"
            ),
        )
    };
    let site = settings(1, "compress = { codings = ['gzip'] }\nhide = ['list']")
        + &settings(2, "deny = ['/private']");
    for model in models() {
        let served = TestServer::new(&tree, &io(model), &site);
        let mut client = served.connect();
        for _ in 0..4 {
            for number in ["1", "2"] {
                let fields = [("Accept-Encoding", "gzip"), ("Accept", "text/html")];
                let response = client.ask("GET", &format!("/{number}/long.txt"), &fields);
                assert_eq!((response.status, response.field("x-n")), (200, Some(number)), "{model}");
                assert_eq!(response.field("content-encoding").is_some(), number == "1", "{model}");
                assert_eq!(response.body == text, number == "2");
                let list = client.ask("GET", &format!("/{number}/"), &[]);
                assert_eq!(list.field("x-n"), Some(number));
                assert!(list.text().contains(&format!("Index of /{number}/<")), "{}", list.text());
                assert_eq!(list.text().contains("./list/"), number == "2", "{}", list.text());
                let private = client.get(&format!("/{number}/private/key"));
                assert_eq!(private.status, if number == "1" { 200 } else { 403 });
            }
        }
    }
}

#[test]
fn a_mount_can_be_one_file() {
    let tree = tree();
    let served = TestServer::site(&tree, &mount(&tree, "/one", "docs/a.txt", ""));
    leads(&served, "/one", 307, "one/a.txt");
    leads(&served, "/one/", 307, "a.txt");
    served.get("/one/a.txt").is(200, b"docs a");
    assert_eq!(served.get("/one/about.html").status, 404);
}

#[test]
fn a_rewrite_of_a_mount_stays_in_it() {
    let tree = tree();
    let rules = "rewrites = [{ from = '/x/**', to = '/$1' }, { from = '/s', to = '/a.txt' }]\n";
    let served = TestServer::site(&tree, &mount(&tree, "/docs", "docs", rules));
    served.get("/docs/x/a.txt").is(200, b"docs a");
    served.get("/docs/s").is(200, b"docs a");
    for target in ["/docs/x/../a.txt", "/x/a.txt", "/docs/x/%2e%2e/a.txt", "/docs/x//a.txt"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }
}

#[test]
fn a_missing_root_affects_its_mount_alone() {
    for model in models() {
        let tree = tree();
        let lines = MemoryLog::default();
        let config = config(&tree, &format!("cache = {{ age-ms = 0 }}\n{}", io(model)), &both(&tree, ""));
        let outfit = StartOptions { errors: Some(Box::new(lines.clone())), ..StartOptions::default() };
        let served = TestServer::with(&config, outfit);
        let mut client = served.connect();
        (0..3).for_each(|_| client.get("/docs/a.txt").is(200, b"docs a"));
        fs::rename(tree.at("../docs"), tree.at("../away")).unwrap();
        let gone = client.get("/docs/a.txt");
        assert_eq!((gone.status, gone.field("retry-after")), (503, Some("1")), "{model}");
        client.get("/a.txt").is(200, b"site");
        client.get("/docs/api/a.txt").is(200, b"api a");
        eventually("it is not said that it is gone", || lines.text().contains("answering 503"));
        tree.write("../docs/a.txt", b"new");
        client.get("/docs/a.txt").is(200, b"new");
    }
}

#[test]
fn a_reload_changes_mounts() {
    let tree = tree();
    let mut served = TestServer::site(&tree, &both(&tree, ""));
    let mut client = served.connect();
    (0..3).for_each(|_| client.get("/docs/a.txt").is(200, b"docs a"));
    let other = config(&tree, "", &mount(&tree, "/docs", "api", "deny = ['/private']"));
    served.server().reload(&other).unwrap();
    client.get("/docs/a.txt").is(200, b"api a");
    assert_eq!((client.get("/docs/private").status, client.get("/docs/api/a.txt").status), (403, 404));
    let mut wrong = other.clone();
    wrong.site.mounts[0].root = tree.at("none");
    assert!(served.server().reload(&wrong).is_err());
    client.get("/docs/a.txt").is(200, b"api a");
    served.server().reload(&config(&tree, "", "")).unwrap();
    client.get("/docs/shadowed").is(200, b"shadowed");
}

#[test]
fn a_download_from_a_mount_has_all_its_bytes() {
    let large = noise(3 << 20, 7);
    for model in models() {
        let tree = tree();
        tree.write("../docs/large", &large);
        let served = TestServer::new(&tree, &io(model), &both(&tree, ""));
        served.get("/docs/large").is(200, &large);
        let part = served.get_with("/docs/large", "Range", "bytes=1000000-1000099");
        assert!(part.status == 206 && part.body == large[1_000_000..1_000_100], "{model}");
    }
}

#[test]
fn invalid_mounts_are_refused() {
    let tree = tree();
    for (path, dir, settings, said) in [
        ("docs", "docs", "", "'site.mounts[0].path': a path begins with '/'"),
        ("/", "docs", "", "'site.mounts[0].path': a path begins with '/' and has at least one name"),
        ("/a/..", "docs", "", "'site.mounts[0].path': each part"),
        ("/a%41", "docs", "", "'site.mounts[0].path': it is written as it is"),
        ("/a", "none", "", "none': No such file or directory"),
        ("/a", "docs", "auth = { file = '/nonexistent/users' }", "/nonexistent/users': No such file"),
        ("/a", "docs", "auth = { users = { u = 'x' } }", "neither argon2 nor bcrypt"),
        ("/a", "docs", "deny = ['[']", "'site.mounts[0].deny[0]'"),
        ("/a", "docs", "types = { a = 'x' }", "site.mounts[0]"),
    ] {
        let config: Config = config(&tree, "", &mount(&tree, path, dir, settings));
        let refused = Server::check(&config).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
        let started = Server::start(&config, StartOptions::default()).err().map(|error| error.to_string());
        assert_eq!(started, Some(refused));
    }
    let twice = mount(&tree, "/a", "docs", "") + &mount(&tree, "/a/", "api", "");
    let refused = Server::check(&config(&tree, "", &twice)).unwrap_err().to_string();
    assert_eq!(refused, "cannot use 'site.mounts[1].path': '/a' is also the path of site.mounts[0]");
}
