//! Path traversal: no file outside the root is served, in any spelling of the path, and while files
//! are swapped.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Response, TestServer, Tree, io, meanwhile, models, request};

const SECRET: &str = "the outside";

fn tree() -> Tree {
    let tree =
        Tree::new(&[("a/b/inside.html", b"inside"), ("inside.html", b"inside"), ("a/index.html", b"inside")]);
    tree.write("../secret", SECRET.as_bytes());
    tree.write("../secret.html", SECRET.as_bytes());
    tree
}

#[track_caller]
fn tells_nothing(response: &Response, context: &str) {
    let text = String::from_utf8_lossy(&response.body);
    assert!(!text.contains(SECRET) && !text.contains("root:"), "{context}: {response:?}");
    assert_ne!(
        response.field("content-length"),
        Some(SECRET.len().to_string().as_str()),
        "{context}: nor how long it is"
    );
}

/// All spellings of a parent directory that any server has ever accepted.
const UPS: [&str; 19] = [
    "..",
    "%2e%2e",
    ".%2e",
    "%2E.",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "%uff0e%uff0e",
    "..;",
    "..%00",
    "..%20",
    "..%5c",
    "..\\",
    "%2e%2e%5c",
    "..%2f",
    "%2e%2e%2f",
    "..%252f",
    "..%c0%af",
    "..%ef%bc%8f",
];

#[test]
fn no_spelling_leads_up() {
    let tree = tree();
    for policy in ["within", "follow"] {
        let served = TestServer::site(
            &tree,
            &format!("symlinks = '{policy}'\nlisting = true\nprecompressed = true\ndotfiles = true"),
        );
        let mut client = served.connect();
        for up in UPS {
            for target in [
                format!("/{up}/secret"),
                format!("/{up}secret"),
                format!("/{up}/{up}/{up}/{up}/{up}/{up}/etc/passwd"),
                format!("/a/{up}/{up}/secret"),
                format!("/a/b/{up}/{up}/{up}/secret.html"),
                format!("/a/./{up}/../secret"),
                format!("//{up}/secret"),
                format!("/{up}/"),
                format!("/{up}"),
                format!("http://site.example/{up}/secret"),
            ] {
                let response = client.ask("GET", &target, &[]);
                tells_nothing(&response, &target);
                assert!(matches!(response.status, 400 | 404), "{policy} {target}: {response:?}");
            }
        }
    }
}

#[test]
fn impossible_file_names_are_refused() {
    let tree = tree();
    let served = TestServer::site(&tree, "symlinks = 'follow'\nlisting = true");
    let absolute = tree.at("../secret").canonicalize().unwrap().display().to_string();
    let long = "x".repeat(256);
    for (target, status) in [
        ("/%00", 400),
        ("/inside.html%00", 400),
        ("/inside.html%00.jpg", 400),
        ("/%", 400),
        ("/%2", 400),
        ("/%zz", 400),
        ("/a%2fb%2finside.html", 404),
        ("/a%5cb%5cinside.html", 404),
        ("/a\\b\\inside.html", 404),
        ("/a//b/inside.html", 404),
        ("/a/./b/inside.html", 404),
        ("/./inside.html", 404),
        ("/inside.html/", 404),
        ("/inside.html/x", 404),
        ("/inside.html;x", 404),
        ("/inside.html%20", 404),
        ("/INSIDE.HTML", 404),
        ("/%2finside.html", 404),
        ("/%ff%fe", 404),
        ("/c:/inside.html", 404),
        ("/*", 404),
        (&format!("/{long}"), 404),
        (&format!("/{}", "x/".repeat(2100)), 404),
        (&format!("/{absolute}"), 404),
        (&format!("//{absolute}"), 404),
        (&absolute.replace('/', "%2f"), 400),
    ] {
        let response = served.get(target);
        tells_nothing(&response, target);
        assert!(
            response.status == status || (response.status == 400 && target.contains('\\')),
            "{target}: {response:?}"
        );
    }
}

/// The same file under each spelling of its name: decoded exactly once.
#[test]
fn unusual_names_can_be_requested() {
    let names = [
        "a b",
        "100%",
        "%41",
        "a?b",
        "a#b",
        "é",
        "\u{1f600}",
        "a\\b",
        "a:b",
        "..a",
        "a..",
        "...",
        "a;b",
        "a\nb",
        "+",
        "&\"<>'",
    ];
    let tree = Tree::new(&[]);
    names.iter().for_each(|name| tree.write(name, name.as_bytes()));
    let served = TestServer::site(&tree, "listing = true\ndotfiles = true");
    for name in names {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        served.get(&format!("/{encoded}")).is(200, name.as_bytes());
    }
    let json: serde_json::Value =
        serde_json::from_slice(&served.get_with("/", "Accept", "application/json").body).unwrap();
    let entries = json["entries"].as_array().unwrap();
    assert_eq!(entries.len(), names.len());
    for entry in entries {
        let href = entry["href"].as_str().unwrap().strip_prefix('.').unwrap();
        served.get(href).is(200, entry["name"].as_str().unwrap().as_bytes());
    }
}

/// A symbolic link at each position of a path, at the index, at a sibling, and at pages of the
/// configuration.
#[test]
fn no_link_leads_out() {
    let tree = tree();
    tree.write("../out/inside.html", SECRET.as_bytes());
    tree.write("../out/index.html", SECRET.as_bytes());
    tree.write("page.html", b"plain");
    tree.write("sub/x", b"x");
    let out = tree.at("../out");
    tree.link(&out, "first");
    tree.link("../../out", "a/middle");
    tree.link(out.join("inside.html"), "last.html");
    tree.link("first", "nested");
    tree.link("nested/inside.html", "nested.html");
    tree.link("/", "slash");
    tree.link("/proc/self/root", "magic");
    tree.link("/proc/self/cwd", "cwd");
    tree.link("..", "up");
    tree.link(out.join("inside.html"), "page.html.gz");
    tree.link("../out/inside.html", "page.html.br");
    tree.link("../../out/index.html", "sub/index.html");
    tree.link("../secret", "404.html");
    for model in models() {
        let site = "listing = true\nprecompressed = true\nfallback = '/404.html'\nerror-pages = { 4xx = '/404.html' }\nmaintenance = { page = '/404.html' }";
        let served = TestServer::new(&tree, &io(model), site);
        let mut client = served.connect();
        for target in [
            "/first/inside.html",
            "/first/",
            "/first",
            "/a/middle/inside.html",
            "/a/middle/",
            "/last.html",
            "/nested/inside.html",
            "/nested.html",
            "/slash/etc/passwd",
            "/magic/etc/passwd",
            "/cwd/Cargo.toml",
            "/up/secret",
            "/up/",
            "/404.html",
            "/missing",
        ] {
            let response = client.get(target);
            tells_nothing(&response, target);
            assert_eq!(response.status, 404, "{model} {target}");
        }
        let response = client.ask("GET", "/page.html", &[("Accept-Encoding", "br, gzip")]);
        response.is(200, b"plain");
        assert_eq!(response.field("content-encoding"), None);
        tells_nothing(&client.get("/sub/"), "an index that leads out");
    }
}

/// A listing discloses neither that a link leads out of the root nor its target.
#[test]
fn a_listing_does_not_show_where_links_lead_out() {
    let tree = tree();
    tree.write("../big", &[b'x'; 54_321]);
    tree.link("../big", "leads-out");
    tree.link("a", "leads-in");
    tree.link("../..", "leads-up");
    tree.link("missing", "broken");
    let served = TestServer::site(&tree, "listing = true");
    for accept in ["text/html", "application/json"] {
        let text = String::from_utf8(served.get_with("/", "Accept", accept).body).unwrap();
        assert!(text.contains("leads-in") && text.contains("inside.html"));
        for word in ["leads-out", "leads-up", "broken", "54321", "53K"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    let never = TestServer::site(&tree, "listing = true\nsymlinks = 'never'");
    assert!(!never.get("/").text().contains("leads"));
}

/// Exchanges two names repeatedly while `act` runs, which gets the number of exchanges so far.
/// Returns the result and the number of exchanges.
fn swap_while<T>(a: &Path, b: &Path, act: impl FnOnce(&AtomicUsize) -> T) -> (T, usize) {
    let swaps = AtomicUsize::new(0);
    let swap = |times| {
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
        swaps.store(times, Ordering::Relaxed);
    };
    meanwhile(swap, || act(&swaps))
}

/// A check before the open would leave a race; the open itself is the check.
#[test]
fn swaps_disclose_no_file() {
    let tree = tree();
    tree.write("../out/inside.html", SECRET.as_bytes());
    tree.write("../out/index.html", SECRET.as_bytes());
    tree.write("../out/secret-name", SECRET.as_bytes());
    tree.write("real/inside.html", b"inside");
    tree.write("real/index.html", b"inside");
    tree.write("file", b"inside");
    tree.write("packed.html", b"inside");
    tree.write("packed.html.gz", b"inside");
    fs::create_dir(tree.at("../links")).unwrap();
    tree.link(tree.at("../out"), "../links/dir");
    tree.link("../secret", "file-link");
    tree.link("../../out/inside.html", "../links/gz");
    let swaps = [("real", "../links/dir"), ("file", "file-link"), ("packed.html.gz", "../links/gz")];
    for model in models() {
        let served = TestServer::new(
            &tree,
            &format!("{}cache = {{ age-ms = 1 }}\n", io(model)),
            "listing = true\nprecompressed = true",
        );
        for (inside, link) in swaps {
            let ((seen, refused), swapped) =
                swap_while(&tree.at(inside), &tree.at(link), |swaps| ask_while_swapped(&served, swaps));
            assert!(swapped > 50 && seen > 0, "{model}: {swapped} swaps, {seen} seen, {refused} refused");
            if swapped % 2 == 1 {
                fs::rename(tree.at(link), tree.at("../aside")).unwrap();
                fs::rename(tree.at(inside), tree.at(link)).unwrap();
                fs::rename(tree.at("../aside"), tree.at(inside)).unwrap();
            }
        }
    }
}

/// Asks until there were many exchanges. Returns the number of responses with the file, and of
/// those without.
fn ask_while_swapped(served: &TestServer, swaps: &AtomicUsize) -> (u32, u32) {
    let mut client = served.connect();
    let (start, mut seen, mut refused) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_millis(150) || seen == 0 || swaps.load(Ordering::Relaxed) <= 50 {
        for target in ["/real/inside.html", "/real/", "/file", "/packed.html", "/"] {
            client.send(request("GET", target, &[("Accept-Encoding", "gzip")]));
            // A file that is renamed while it is sent counts as changed.
            let Ok(response) = client.try_receive() else {
                client = served.connect();
                refused += 1;
                continue;
            };
            tells_nothing(&response, target);
            assert!(
                !String::from_utf8_lossy(&response.body).contains("secret-name"),
                "a listing of the outside"
            );
            match response.status {
                200 => seen += 1,
                404 | 503 => refused += 1,
                other => panic!("{other}: {response:?}"),
            }
        }
    }
    (seen, refused)
}
