//! `fathom serve --explore`: the page of the newest inventory, directories on demand, and nothing
//! else; behind the server's users, limits and headers.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::serve::curl::{USER, needs_curl};
use crate::serve::server::{ServeDirectory, Server, finish, script, until};
use crate::support::selenium_python;

/// Scans `tree` into the directory of inventories `www`.
fn scan(home: &ServeDirectory, name: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["scan", "-o"]).arg(home.at("www").join(name)).arg("tree").current_dir(home.at(""));
    let (status, _, err) = finish(&mut command);
    assert_eq!(status, Some(0), "{err}");
}

/// Returns a directory with `tree` of these files, and an inventory of it.
fn inventory(files: &[(&str, usize)]) -> ServeDirectory {
    let home = ServeDirectory::new();
    for (name, size) in files {
        let path = home.at("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; *size]).unwrap();
    }
    scan(&home, "first.inv");
    home
}

/// Returns the data of the page.
#[track_caller]
fn page(server: &Server) -> Value {
    let (status, body) = server.get("/");
    assert_eq!(status, 200);
    let text = String::from_utf8(body).unwrap();
    let (_, rest) = text.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Returns the answer with the entries of a directory behind `after`.
#[track_caller]
fn entries(server: &Server, id: &Value, dir: i64, after: &str) -> (Value, usize) {
    let after = if after.is_empty() { String::new() } else { format!("&after={after}") };
    let (status, body) = server.get(&format!("/?inventory={}&dir={dir}{after}", id.as_str().unwrap()));
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    (serde_json::from_slice(&body).unwrap(), body.len())
}

/// Returns the number of the directory with this name.
fn number(data: &Value, name: &str) -> i64 {
    let names = data["nodes"]["name"].as_array().unwrap();
    let at = names.iter().position(|found| found == name).unwrap();
    data["nodes"]["id"][at].as_i64().unwrap()
}

#[test]
fn the_page_is_that_of_the_newest_inventory() {
    let home = inventory(&[("a/f", 5000)]);
    let server = home.serve("--explore");
    assert_eq!(page(&server)["total"][2], 3);
    fs::write(home.at("tree/a/more"), "x").unwrap();
    scan(&home, "second.inv");
    fs::create_dir(home.at("www/begun.inv.part")).unwrap();
    fs::create_dir(home.at("www/broken.inv")).unwrap();
    fs::write(home.at("www/broken.inv/manifest.json"), "{").unwrap();
    // Its manifest is whole, and a file of it is missing.
    copy(&home.at("www/second.inv"), &home.at("copied"));
    let manifest = fs::read_to_string(home.at("copied/manifest.json")).unwrap();
    let mut later: Value = serde_json::from_str(&manifest).unwrap();
    later["end"] = (later["end"].as_i64().unwrap() + 9).into();
    fs::write(home.at("copied/manifest.json"), later.to_string()).unwrap();
    fs::remove_file(home.at("copied/entries-00000.parquet")).unwrap();
    fs::rename(home.at("copied"), home.at("www/half.inv")).unwrap();
    let newer = until("the newer one is shown", || Some(page(&server)).filter(|data| data["total"][2] == 4));
    assert_ne!(newer["fetches"], Value::Null);
    // An inventory itself is shown as well, and so is one that takes its place.
    let single = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --explore www/first.inv"));
    assert_eq!(page(&single)["total"][2], 3);
    for file in fs::read_dir(home.at("www/second.inv")).unwrap().map(Result::unwrap) {
        let place = home.at("www/first.inv").join(file.file_name());
        fs::copy(file.path(), place.with_extension("new")).unwrap();
        fs::rename(place.with_extension("new"), place).unwrap();
    }
    until("the files are read again", || Some(single.get("/")).filter(|(status, _)| *status == 200));
    until("the other one is shown", || Some(page(&single)).filter(|data| data["total"][2] == 4));
}

#[test]
fn growth_is_that_since_the_inventory_before() {
    let home = inventory(&[("a/f", 5000)]);
    let (server, alone) = (home.serve("--explore"), home.serve("--explore"));
    assert_eq!(page(&server)["growth"], Value::Null, "there is none before");
    fs::write(home.at("tree/a/more"), vec![b'x'; 70_000]).unwrap();
    // The inventory in between has other trees, so it tells no growth.
    let mut other = Command::new(env!("CARGO_BIN_EXE_fathom"));
    other.args(["scan", "-o", "www/other.inv", "tree/a"]).current_dir(home.at(""));
    assert_eq!(finish(&mut other).0, Some(0));
    scan(&home, "second.inv");
    let until_shown = |server: &Server| {
        until("the newest is shown", || Some(page(server)).filter(|data| data["total"][2] == 4))
    };
    let grown = until_shown(&server)["growth"].clone();
    assert_eq!(grown["total"][1], 70_000, "{grown}");
    // Without a whole one before, the page has no growth.
    fs::remove_file(home.at("www/first.inv/dirs-00000.parquet")).unwrap();
    assert_eq!(until_shown(&alone)["growth"], Value::Null);
}

#[test]
fn nothing_else_is_served() {
    let home = inventory(&[("a/f", 5000)]);
    let server = home.serve("--explore --listing --archive");
    let id = page(&server)["fetches"].as_str().unwrap().to_owned();
    for path in [
        "/first.inv",
        "/first.inv/",
        "/first.inv/manifest.json",
        "/first.inv/entries-00000.parquet",
        "/../www/first.inv/manifest.json",
        "/%2e%2e/tree/a/f",
        "/index.html",
        "/tree/a/f",
    ] {
        let (status, body) = server.get(path);
        assert!(matches!(status, 400 | 404), "{path}: {status}");
        assert!(!body.windows(5).any(|five| five == b"xxxxx"), "{path}");
    }
    for (query, expected) in [
        ("x".to_owned(), 400),
        ("archive=zip".to_owned(), 400),
        ("dir=1".to_owned(), 400),
        (format!("inventory={id}"), 400),
        (format!("inventory={id}&dir=../../etc/passwd"), 400),
        (format!("inventory={id}&dir=%31"), 400),
        (format!("inventory={id}&dir=1&dir=2"), 400),
        (format!("inventory={id}&dir=1&after=%00"), 400),
        (format!("inventory={id}&dir=1&after=1.1.f.99999999999999999999"), 400),
        (format!("inventory={id}&dir={}", "9".repeat(400)), 400),
        (format!("inventory={id}&dir=0"), 404),
        (format!("inventory={id}&dir=-1"), 404),
        (format!("inventory={id}&dir=77"), 404),
        (format!("inventory={id}&dir=9223372036854775807"), 404),
        ("inventory=another&dir=1".to_owned(), 409),
        (format!("inventory={id}&dir=1&after=0.0.f.18446744073709551615"), 200),
        (format!("inventory={id}&dir=1"), 200),
    ] {
        assert_eq!(server.get(&format!("/?{query}")).0, expected, "{query}");
    }
}

#[test]
fn a_head_has_the_headers_of_the_page() {
    let home = inventory(&[("a/f", 5000)]);
    let server = home.serve("--explore --security-headers --header /**=X-Own:1");
    let head = crate::serve::curl::get(&home, &["--head", &format!("{}/", server.url)]);
    assert_eq!((head.end, head.status), (Some(0), 200), "{head:?}");
    let got = crate::serve::curl::get(&home, &[&format!("{}/", server.url)]);
    for name in [
        "content-type",
        "content-security-policy",
        "cache-control",
        "x-content-type-options",
        "content-length",
    ] {
        assert!(head.header(name).is_some() && head.header(name) == got.header(name), "{name}: {head:?}");
    }
    assert_eq!(
        (got.header("content-type"), got.header("cache-control")),
        (Some("text/html; charset=utf-8"), Some("no-store"))
    );
    let policy = got.header("content-security-policy").unwrap();
    let of_page = policy.strip_suffix("; frame-ancestors 'none'").unwrap();
    assert!(of_page.starts_with("default-src 'none';"));
    let page = String::from_utf8(got.body.clone()).unwrap();
    assert!(page.contains(&format!("content=\"{of_page}\"")));
    let posted = crate::serve::curl::get(&home, &["--data", "x", &format!("{}/", server.url)]);
    assert_eq!(posted.status, 405);
}

#[test]
fn users_guard_the_page_and_its_data() {
    let home = inventory(&[("a/f", 5000)]);
    let server = home.serve(&format!("--explore --auth {USER} --access-log=log"));
    for path in ["/", "/?inventory=x&dir=1", "/?x"] {
        assert_eq!(server.get(path).0, 401, "{path}");
    }
    let got = crate::serve::curl::get(&home, &["--user", "ann:U*U", &format!("{}/", server.url)]);
    assert_eq!(got.status, 200);
    let wrong = crate::serve::curl::get(
        &home,
        &["--user", "ann:wrong", &format!("{}/?inventory=x&dir=1", server.url)],
    );
    assert_eq!(wrong.status, 401);
    until("the requests are logged", || {
        let log = fs::read_to_string(home.at("log")).ok()?;
        (log.contains(" ann [") && log.contains("\"GET /?inventory=x&dir=1 HTTP/1.1\" 401 ")).then_some(())
    });
}

#[test]
fn a_wide_directory_comes_in_bounded_parts() {
    let home = ServeDirectory::new();
    let wide = home.at("tree/wide");
    fs::create_dir_all(&wide).unwrap();
    for number in 0..25_000 {
        fs::File::create(wide.join(format!("file-{number:05}"))).unwrap();
    }
    scan(&home, "first.inv");
    let server = home.serve("--explore");
    let data = page(&server);
    assert_eq!(data["nodes"]["name"].as_array().unwrap().len(), 20_000);
    let dir = number(&data, "wide");
    let (mut names, mut after, mut parts) = (Vec::new(), String::new(), 0);
    loop {
        let (part, bytes) = entries(&server, &data["fetches"], dir, &after);
        assert!(bytes < 500_000, "{bytes}");
        names.extend(
            part["entries"].as_array().unwrap().iter().map(|entry| entry[0].as_str().unwrap().to_owned()),
        );
        parts += 1;
        match part["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!((parts, names.len()), (25, 25_000));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 25_000);
}

#[test]
fn a_limit_below_a_page_is_refused_at_the_start() {
    let home = inventory(&[("file", 1)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["serve", "--explore", "--max-listing-bytes=1M", "www"]).current_dir(home.at(""));
    let (status, _, err) = finish(&mut command);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("--explore requires --max-listing-bytes=2000000 or more"), "{err}");
}

#[test]
fn a_file_and_names_that_no_host_has_are_refused_at_the_start() {
    let home = inventory(&[("a/f", 5000)]);
    let (empty, invalid) =
        ("host names, separated by commas", "not a host name: leave out scheme, port and path");
    for (words, expected, why) in [
        ("--explore tree/a/f", 1, "cannot use 'site.root': a file, not a directory with inventories"),
        ("--explore --names= www", 2, empty),
        ("--explore --names=, www", 2, empty),
        ("--allow-from= www", 2, "addresses or networks, separated by commas"),
        ("--deny-from= www", 2, "addresses or networks, separated by commas"),
        ("--explore --names=* www", 1, invalid),
        ("--listing --names=a.org,http://b.org www", 1, "cannot use 'site.names[1]': "),
    ] {
        let (status, _, err) = finish(&mut home.command(&format!("--check -l 127.0.0.1:0 {words}")));
        assert_eq!(status, Some(expected), "{words}: {err}");
        assert!(err.contains(why), "{words}: {err}");
    }
}

#[test]
fn a_directory_without_inventories_is_an_error_until_it_has_one() {
    let home = inventory(&[("a/f", 5000)]);
    fs::rename(home.at("www/first.inv"), home.at("kept.inv")).unwrap();
    let server = home.serve("--explore");
    assert_eq!(server.get("/").0, 404);
    until("it is logged", || server.err().contains("no inventory in 'www'").then_some(()));
    fs::rename(home.at("kept.inv"), home.at("www/first.inv")).unwrap();
    until("it is shown", || Some(server.get("/")).filter(|(status, _)| *status == 200));
    assert_eq!(page(&server)["total"][2], 3);
    // An inventory that was removed is not shown any more.
    copy(&home.at("www/first.inv"), &home.at("kept.inv"));
    fs::remove_dir_all(home.at("www/first.inv")).unwrap();
    until("it is gone", || Some(server.get("/")).filter(|(status, _)| *status == 404));
    fs::rename(home.at("kept.inv"), home.at("www/first.inv")).unwrap();
    // A damaged file is noticed, and the server goes on.
    let mut damaged = fs::read(home.at("www/first.inv/entries-00000.parquet")).unwrap();
    damaged[40] ^= 1;
    fs::create_dir(home.at("other")).unwrap();
    copy(&home.at("www/first.inv"), &home.at("other/damaged.inv"));
    fs::write(home.at("other/damaged.inv/entries-00000.parquet"), damaged).unwrap();
    let broken = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --explore other"));
    assert_eq!((broken.get("/").0, broken.get("/x").0), (500, 404));
}

/// A page of another site could have its own name lead to this server.
#[test]
fn only_names_of_this_machine_and_those_that_are_listed_are_answered() {
    if !needs_curl("HTTP2") {
        return;
    }
    let home = inventory(&[("a/f", 5000)]);
    let status = |server: &Server, host: &str, words: &[&str]| {
        let host = format!("Host: {host}");
        crate::serve::curl::get(&home, &[words, &["-H", &host, &format!("{}/", server.url)]].concat()).status
    };
    let alone = home.serve("--explore");
    let named = home.serve("--explore --names files.org,*.b.org");
    let files = home.serve("--listing");
    for words in [&["--http1.1"][..], &["--http2-prior-knowledge"]] {
        for host in ["localhost", "127.0.0.1:80", "[::1]", "x.localhost:8080"] {
            assert_eq!([&alone, &named].map(|server| status(server, host, words)), [200, 200], "{host}");
        }
        for host in ["files.org", "FILES.org:8080", "x.b.org"] {
            assert_eq!([&alone, &named].map(|server| status(server, host, words)), [421, 200], "{host}");
        }
        for host in ["evil.org", "127.0.0.1.evil.org"] {
            let all = [&alone, &named, &files].map(|server| status(server, host, words));
            assert_eq!(all, [421, 421, 200], "{host}");
        }
    }
    let some = home.serve("--listing --names files.org");
    assert_eq!([status(&some, "files.org", &[]), status(&some, "evil.org", &[])], [200, 421]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn chromium_fetches_a_directory_that_the_page_leaves_out() {
    let Some(python) = selenium_python() else { return };
    let home = ServeDirectory::new();
    // The large files take the nodes, so the page has neither `small` nor the names in it.
    for number in 0..20_500 {
        let path = home.at("tree/large").join(format!("file-{number:05}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "xxxx").unwrap();
    }
    let small = home.at("tree/small/<img src=x onerror=alert(1)>");
    fs::create_dir_all(&small).unwrap();
    fs::write(small.join("deep <b>"), "").unwrap();
    scan(&home, "first.inv");
    let server = home.serve("--explore");
    let scratch = home.at("browser");
    fs::create_dir(&scratch).unwrap();
    let mut command = Command::new(python);
    command.arg("-B").arg(script("explore.py")).arg(&server.url).arg(&scratch);
    let (status, out, err) = finish(&mut command);
    assert_eq!(status, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["console"], &report["violations"]),
        (&Value::Array(vec![]), &Value::Array(vec![])),
        "{report}"
    );
    let before = report["before"].as_u64().unwrap();
    assert!(before < 20_500 && report["after"].as_u64().unwrap() > before, "{report}");
    assert_eq!(report["refused"], 2, "503 and 429 are asked again");
    assert_eq!(report["all"], 20_500, "each entry has one row");
    assert_eq!(report["path"], serde_json::json!(["tree", "small", "<img src=x onerror=alert(1)>"]));
    assert_eq!(report["deep"], serde_json::json!(["deep <b>"]));
}
