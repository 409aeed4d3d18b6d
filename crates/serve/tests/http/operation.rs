//! The operator's view of a server: health, metrics, logs, maintenance, sockets, reloads, shutdown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use fathom_serve::config::words::AccessLogFormat;
use fathom_serve::server::StartOptions;
use serde_json::Value;

use crate::support::{
    Client, LONG, MemoryLog, TestServer, Tree, config, eventually, io, models, noise, request,
};

fn tree() -> Tree {
    Tree::new(&[("a", b"one"), ("b", b"two"), ("../other/a", b"three")])
}

/// Returns the value of a sample, 0 if it is absent.
fn sample(metrics: &str, name: &str) -> f64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

#[test]
fn a_running_server_reports_health() {
    let tree = tree();
    let served = TestServer::new(&tree, "health = '/health'\n", "maintenance = { enabled = true }");
    let response = served.get("/health");
    response.is(200, b"OK\n");
    assert_eq!(response.field("cache-control"), Some("no-store"));
    assert_eq!(served.get("/a").status, 503);
}

#[test]
fn metrics_count_responses() {
    let tree = tree();
    let served = TestServer::new(&tree, "metrics = '/metrics'\n", "");
    let mut client = served.connect();
    (0..3).for_each(|_| client.get("/a").is(200, b"one"));
    client.get("/none");
    client.ask("HEAD", "/a", &[]);
    client.ask("BREW", "/a", &[]);
    let response = client.get("/metrics");
    assert_eq!(response.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let metrics = response.text();
    for (name, value) in [
        ("fathom_requests_total{method=\"GET\",status=\"200\"}", 3.0),
        ("fathom_requests_total{method=\"GET\",status=\"404\"}", 1.0),
        ("fathom_requests_total{method=\"HEAD\",status=\"200\"}", 1.0),
        ("fathom_requests_total{method=\"other\",status=\"405\"}", 1.0),
        ("fathom_connections", 1.0),
        ("fathom_connections_total", 1.0),
        ("fathom_request_duration_seconds_count", 6.0),
    ] {
        assert_eq!(sample(metrics, name), value, "{name}\n{metrics}");
    }
    let bytes = 3 * 3 + "404 Not Found\n".len() + "Method Not Allowed\n".len();
    assert_eq!(sample(metrics, "fathom_response_bytes_total"), bytes as f64);
}

/// A client cannot create labels: unknown methods and statuses are counted under fixed ones.
#[test]
fn clients_cannot_add_metrics() {
    let tree = tree();
    let served = TestServer::new(&tree, "metrics = '/metrics'\n", "");
    let mut client = served.connect();
    let before = client.get("/metrics").text().lines().count();
    for number in 0..300 {
        client.ask(&format!("M{number}"), &format!("/{number}"), &[("Host", &format!("h{number}.example"))]);
    }
    let after = client.get("/metrics").text().lines().count();
    assert!(after <= before + 3, "{before} lines, and then {after}");
}

fn logged(format: &str, ask: impl Fn(&TestServer)) -> Vec<String> {
    let (tree, lines) = (tree(), MemoryLog::default());
    tree.write("large", &noise(200_000, 4));
    let all = config(&tree, &format!("access-log = {{ format = '{format}' }}\n"), "");
    let served =
        TestServer::with(&all, StartOptions { stream: Some(Box::new(lines.clone())), ..Default::default() });
    ask(&served);
    assert!(served.drain(LONG));
    lines.text().lines().map(str::to_owned).collect()
}

#[test]
fn the_combined_log_has_a_line_for_each_request() {
    let lines = logged("combined", |served| {
        let mut client = served.connect();
        client.ask("GET", "/a?q=1", &[("Referer", "http://r.example/"), ("User-Agent", "test \"1\"")]);
        client.get("/none");
        client.ask("HEAD", "/large", &[]);
        client.ask("GET", "/large", &[("Range", "bytes=0-99")]);
        client.get("/large");
    });
    let expected = [
        (
            "\"GET /a?q=1 HTTP/1.1\" 200 3 \"http://r.example/\" \"test \\x221\\x22\"",
            &["hit", "pool", "cache"][..],
        ),
        ("\"GET /none HTTP/1.1\" 404 14 \"-\" \"-\"", &["-"]),
        ("\"HEAD /large HTTP/1.1\" 200 0 \"-\" \"-\"", &["-"]),
        ("\"GET /large HTTP/1.1\" 206 100 \"-\" \"-\"", &["hit", "pool"]),
        ("\"GET /large HTTP/1.1\" 200 200000 \"-\" \"-\"", &["hit", "pool", "partial", "sendfile"]),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (middle, sources)) in lines.iter().zip(expected) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.contains(middle), "{line}\nwants {middle}");
        let mut last = line.rsplit(' ');
        let source = last.next().unwrap();
        assert!(sources.contains(&source), "{line}: {source}");
        assert!(last.next().unwrap().parse::<u64>().is_ok(), "{line}: microseconds");
    }
}

#[test]
fn the_json_log_says_what_each_model_does() {
    for (model, source) in [("sync", "hit"), ("pool", "pool"), ("sendfile", "sendfile")] {
        let (tree, lines) = (tree(), MemoryLog::default());
        tree.write("large", &noise(200_000, 4));
        let all = config(&tree, &format!("io = '{model}'\naccess-log = {{ format = 'json' }}\n"), "");
        let served = TestServer::with(
            &all,
            StartOptions { stream: Some(Box::new(lines.clone())), ..Default::default() },
        );
        served.get_with("/large", "Host", "A.example");
        assert!(served.drain(LONG));
        let line: Value = serde_json::from_str(&lines.text()).unwrap();
        assert_eq!(
            (&line["status"], &line["bytes"], &line["source"]),
            (&200.into(), &200_000.into(), &source.into()),
            "{line}"
        );
        assert_eq!(
            (&line["host"], &line["tls"], &line["peer"]),
            (&"A.example".into(), &false.into(), &"127.0.0.1".into())
        );
        assert!(line["duration_us"].as_u64().is_some_and(|us| us > 0), "{line}");
    }
}

/// A client that disconnects in the middle is logged with the bytes it received.
#[test]
fn the_log_says_how_much_was_sent() {
    let lines = logged("json", |served| {
        let mut client = served.connect();
        let all = 200_000;
        client.send(request("GET", "/large", &[]));
        client.head();
        drop(client);
        served.get("/large").is(200, &noise(all, 4));
    });
    let bytes: Vec<_> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["bytes"].as_u64().unwrap())
        .collect();
    assert!(
        bytes.len() == 2 && bytes.contains(&200_000) && bytes.iter().all(|bytes| *bytes <= 200_000),
        "{bytes:?}"
    );
}

#[test]
fn maintenance_is_on_while_its_file_is_there() {
    let tree = tree();
    tree.write("sorry.html", b"<h1>soon</h1>");
    let flag = tree.at("../flag");
    let site = format!(
        "maintenance = {{ flag-file = '{}', page = '/sorry.html', retry-after-s = 120 }}",
        flag.display()
    );
    let served = TestServer::site(&tree, &site);
    served.get("/a").is(200, b"one");
    fs::write(&flag, b"").unwrap();
    eventually("it is not on", || served.get("/a").status == 503);
    let response = served.get("/a");
    response.is(503, b"<h1>soon</h1>");
    assert_eq!(
        (response.field("retry-after"), response.field("content-type")),
        (Some("120"), Some("text/html; charset=utf-8"))
    );
    assert_eq!(response.field("etag"), None);
    assert_eq!(served.ask("OPTIONS", "/a", &[]).status, 204);
    fs::remove_file(&flag).unwrap();
    eventually("it is not off", || served.get("/a").status == 200);
    let plain = TestServer::site(&tree, "maintenance = { enabled = true }");
    plain.get("/a").is(503, b"503 Service Unavailable\n");
}

#[test]
fn a_unix_socket_serves_like_any_other() {
    let tree = tree();
    let socket = tree.at("../socket");
    let mut all = config(&tree, "socket-mode = '600'\n", "");
    all.listen.push(format!("unix:{}", socket.display()));
    for model in models() {
        let (large, lines) = (noise(3 << 20, 5), MemoryLog::default());
        tree.write("large", &large);
        all.io = Some(model);
        all.access_log.format = Some(AccessLogFormat::Combined);
        let served = TestServer::with(
            &all,
            StartOptions { stream: Some(Box::new(lines.clone())), ..Default::default() },
        );
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let mut client = Client::connect_unix(&socket);
        client.get("/a").is(200, b"one");
        client.get("/large").is(200, &large);
        served.get("/a").is(200, b"one");
        drop(client);
        assert!(served.drain(LONG));
        assert!(!socket.exists());
        assert_eq!(
            lines.text().lines().filter(|line| line.starts_with("unix - - ")).count(),
            2,
            "{}",
            lines.text()
        );
    }
}

#[test]
fn a_new_configuration_counts_for_the_next_request() {
    let tree = tree();
    let mut served = TestServer::site(&tree, "headers = [{ path = '*', set = { X-A = 'old' } }]");
    let mut client = served.connect();
    client.get("/a").is(200, b"one");
    let mut all = config(&tree, "", "headers = [{ path = '*', set = { X-A = 'new' } }]");
    all.site.root = tree.at("../other");
    assert_eq!(served.server().reload(&all).unwrap(), Vec::<String>::new());
    eventually("the old root is still served", || client.get("/a").body == b"three");
    assert_eq!(client.get("/a").field("x-a"), Some("new"));
    assert_eq!(client.get("/b").status, 404);

    let mut wrong = all.clone();
    wrong.site.root = tree.at("../missing");
    assert!(served.server().reload(&wrong).is_err());
    client.get("/a").is(200, b"three");

    let mut fixed = all.clone();
    fixed.workers = std::num::NonZeroUsize::new(3);
    assert_eq!(served.server().reload(&fixed).unwrap(), ["'workers' has changed, which needs a restart"]);
}

/// Larger than the socket buffers of both sides.
const MANY: usize = 16 << 20;

#[test]
fn a_response_in_progress_survives_a_reload() {
    let tree = tree();
    let large = noise(MANY, 6);
    tree.write("large", &large);
    let mut served = TestServer::site(&tree, "");
    let mut client = served.connect();
    client.send(request("GET", "/large", &[]));
    client.more().unwrap();
    let mut all = config(&tree, "", "");
    all.site.root = tree.at("../other");
    served.server().reload(&all).unwrap();
    eventually("the old root is still served", || served.get("/a").body == b"three");
    client.receive("GET").is(200, &large);
    client.get("/a").is(200, b"three");
}

#[test]
fn a_stopping_server_completes_its_responses() {
    let tree = tree();
    let large = noise(MANY, 6);
    tree.write("large", &large);
    for model in models() {
        let served = TestServer::new(&tree, &io(model), "");
        let (mut busy, mut idle, mut new) = (served.connect(), served.connect(), served.connect());
        idle.get("/a").is(200, b"one");
        busy.send(request("GET", "/large", &[]));
        busy.more().unwrap();
        new.get("/a").is(200, b"one");
        let address = served.address().to_owned();
        let ending = std::thread::spawn(move || served.drain(LONG));
        assert_eq!(idle.rest(), b"", "who has nothing under way is left");
        eventually("new connections are still taken", || Client::try_connect(&address).is_err());
        assert!(!ending.is_finished(), "{model}");
        busy.receive("GET").is(200, &large);
        assert_eq!(busy.rest(), b"");
        assert!(ending.join().unwrap(), "{model}: all had ended");
    }
}

#[test]
fn a_stopping_server_announces_it() {
    let tree = tree();
    let served = TestServer::new(&tree, "health = '/health'\nlimits = { drain-notice-ms = 5000 }\n", "");
    let address = served.address().to_owned();
    let mut old = served.connect();
    assert_eq!(old.get("/health").status, 200);
    let ending = std::thread::spawn(move || served.drain(LONG));
    let status = || Client::try_connect(&address).map(|mut new| new.get("/health").status).ok();
    eventually("the health endpoint says nothing", || status() == Some(503));
    Client::try_connect(&address).unwrap().get("/a").is(200, b"one");
    old.get("/a").is(200, b"one");
    assert!(!ending.is_finished());
    eventually("new connections are still taken", || Client::try_connect(&address).is_err());
    assert!(ending.join().unwrap(), "all had ended");
}

#[test]
fn a_client_that_reads_nothing_does_not_delay_the_stop() {
    let tree = tree();
    tree.write("large", &noise(MANY, 6));
    let served = TestServer::site(&tree, "");
    let mut client = served.connect();
    client.send(request("GET", "/large", &[]));
    client.more().unwrap();
    assert!(!served.drain(Duration::from_millis(200)), "not all had ended");
    assert!(client.rest().len() < MANY);
}

/// Requests that the parser rejects appear in the access log like all other requests.
#[test]
fn malformed_requests_are_logged_and_counted() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(200_000));
    let lines = logged("combined", |served| {
        for bytes in [
            b"GET /a HTTP/1.2\r\n\r\n",
            &b"G\x1b \"/b\" HTTP/1.1\r\n\r\n"[..],
            b"\0\r\n\r\n",
            long.as_bytes(),
        ] {
            let _answer = served.raw(bytes);
        }
    });
    let expected = [
        "\"GET /a HTTP/1.2\" 400 0 ",
        "\"G\\x1b \\x22/b\\x22 HTTP/1.1\" 400 0 ",
        "\"\\x00 - -\" 400 0 ",
        "\"GET /xxxxxx",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{line}\nwants {expected}");
    }
    assert!(lines[3].contains("xx - 431 0 ") || lines[3].contains("xx -\" 431 0 "), "{}", lines[3]);
    assert!(lines[3].len() < 1500, "a word is shortened");

    let tree = tree();
    let served = TestServer::new(&tree, "metrics = '/metrics'\n", "");
    served.raw(b"GET /a HTTP/1.2\r\n\r\n");
    let metrics = served.get("/metrics");
    assert_eq!(sample(metrics.text(), "fathom_requests_total{method=\"GET\",status=\"400\"}"), 1.0);
}
