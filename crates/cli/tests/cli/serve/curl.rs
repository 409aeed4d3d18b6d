//! curl: bodies, content codings, ranges, conditional requests, users, CORS.

use std::fs;
use std::process::Command;

use crate::serve::server::{ServeDirectory, Server, bytes, finish, until};
use crate::support::{needs_tool, skip};

/// A password hash of another implementation: crypt_blowfish's test vector for `U*U`.
pub(crate) const USER: &str = "ann:$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";

/// The last response that curl received, and curl's exit status.
#[derive(Debug)]
pub(crate) struct CurlResponse {
    /// curl's exit status.
    pub(crate) end: Option<i32>,
    /// Status of the last response.
    pub(crate) status: u16,
    pub(crate) version: String,
    /// Header lines of the last response.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) err: String,
}

impl CurlResponse {
    /// Returns the value of the header `name`.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.iter().filter_map(|line| line.split_once(':'));
        fields.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// Runs curl with `words` in the directory `home`.
pub(crate) fn get(home: &ServeDirectory, words: &[&str]) -> CurlResponse {
    let dir = tempfile::tempdir_in(home.at("")).unwrap();
    let (head, body) = (dir.path().join("head"), dir.path().join("body"));
    let mut command = Command::new("curl");
    command.args(["--disable", "--silent", "--show-error", "--globoff", "--path-as-is", "--noproxy", "*"]);
    command
        .args(["--max-time", "60", "--write-out", "%{http_code} %{http_version}", "--dump-header"])
        .arg(&head);
    if !words.contains(&"-o") {
        command.arg("-o").arg(&body);
    }
    let (end, content_range, err) = finish(command.args(words).current_dir(home.at("")));
    let head = fs::read(&head).unwrap_or_default();
    let head = String::from_utf8_lossy(&head).trim_end().replace("\r\n", "\n");
    let last = head.rsplit("\n\n").next().unwrap_or_default();
    let (status, version) = content_range.split_once(' ').unwrap_or_default();
    CurlResponse {
        end,
        status: status.parse().unwrap_or(0),
        version: version.to_owned(),
        head: last.lines().map(str::to_owned).collect(),
        body: fs::read(&body).unwrap_or_default(),
        err,
    }
}

/// Whether curl is installed, with `feature` if it is not empty.
pub(crate) fn needs_curl(feature: &str) -> bool {
    if !needs_tool("curl") {
        return false;
    }
    let (_, about, _) = finish(Command::new("curl").arg("--version"));
    let has = feature.is_empty() || about.split_whitespace().any(|word| word == feature);
    if !has {
        skip(format_args!("needs curl with {feature}"));
    }
    has
}

fn at(server: &Server, path: &str) -> String {
    format!("{}{path}", server.url)
}

#[test]
fn bodies_arrive_byte_for_byte_under_every_model() {
    if !needs_curl("") {
        return;
    }
    let sizes = [0, 1, 4095, 4096, 65_536, 65_537, 5_000_000];
    let contents: Vec<(String, Vec<u8>)> =
        sizes.iter().map(|size| (format!("{size}.bin"), bytes(*size))).collect();
    let home = ServeDirectory::new();
    contents.iter().for_each(|(name, content)| home.file(name, content));
    for model in ["auto", "sync", "nowait", "pool", "tokio", "sendfile", "uring"] {
        if model == "uring"
            && home.run("-l 127.0.0.1:0 --io=uring --access-log=no/such/log www").2.contains("io_uring")
        {
            skip("io_uring is forbidden here; the other models were asked");
            continue;
        }
        let server = home.serve(&format!("--io={model}"));
        // The second request of a file is answered from memory by models that cache bodies.
        for (name, content) in contents.iter().chain(&contents) {
            let reply = get(&home, &[&at(&server, &format!("/{name}"))]);
            assert_eq!((reply.end, reply.status), (Some(0), 200), "{model} {name}: {}", reply.err);
            assert_eq!(reply.header("content-length"), Some(&*content.len().to_string()), "{model} {name}");
            assert!(reply.body == *content, "{model} {name}");
        }
    }
}

#[test]
fn texts_are_compressed_as_the_client_can_read_them() {
    if !needs_curl("") {
        return;
    }
    let text = "All work and no play makes a server dull. ".repeat(2000);
    let home = ServeDirectory::with(&[
        ("a.txt", text.as_bytes()),
        ("a.bin", text.as_bytes()),
        ("small.txt", b"tiny"),
    ]);
    let server = home.serve("--compress");
    for (coding, feature) in [("gzip", "libz"), ("br", "brotli"), ("zstd", "zstd")] {
        if !needs_curl(feature) {
            continue;
        }
        let accept = format!("Accept-Encoding: {coding}");
        let url = at(&server, "/a.txt");
        let coded = get(&home, &["-H", &accept, &url]);
        assert_eq!((coded.status, coded.header("content-encoding")), (200, Some(coding)), "{:?}", coded.head);
        assert_eq!(coded.header("content-length"), Some(&*coded.body.len().to_string()), "{coding}");
        assert!(coded.body.len() < text.len() / 10, "{coding}");
        assert!(
            coded.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")),
            "{:?}",
            coded.head
        );
        let read = get(&home, &["--compressed", "-H", &accept, &url]);
        assert!(read.end == Some(0) && read.body == text.as_bytes(), "{coding}: {}", read.err);
        let plain = get(&home, &[&url]);
        assert!(plain.body == text.as_bytes() && plain.header("content-encoding").is_none(), "{coding}");
        assert_ne!(plain.header("etag"), coded.header("etag"), "{coding}");
        for untouched in ["/a.bin", "/small.txt"] {
            let reply = get(&home, &["-H", &accept, &at(&server, untouched)]);
            assert_eq!(reply.header("content-encoding"), None, "{untouched}");
        }
    }
}

#[test]
fn precompressed_files_are_sent_to_clients_that_accept_them() {
    if !needs_curl("libz") || !needs_tool("gzip") {
        return;
    }
    let text = "All work and no play makes a server dull. ".repeat(2000);
    let home = ServeDirectory::with(&[("a.txt", text.as_bytes())]);
    let (status, ..) = finish(Command::new("gzip").args(["--keep", "--best"]).arg(home.at("www/a.txt")));
    assert_eq!(status, Some(0));
    let server = home.serve("--precompressed");
    let url = at(&server, "/a.txt");
    let coded = get(&home, &["-H", "Accept-Encoding: gzip", &url]);
    assert_eq!(coded.body, fs::read(home.at("www/a.txt.gz")).unwrap());
    assert_eq!(coded.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(get(&home, &["--compressed", &url]).body == text.as_bytes());
    assert!(get(&home, &[&url]).body == text.as_bytes());
}

#[test]
fn ranges_have_the_requested_bytes() {
    if !needs_curl("") {
        return;
    }
    let content = bytes(1_000_000);
    let home = ServeDirectory::with(&[("a.bin", &content)]);
    let server = home.serve("");
    let url = at(&server, "/a.bin");
    for (range, expected) in [
        ("0-0", 0..1),
        ("10-19", 10..20),
        ("-5", 999_995..1_000_000),
        ("999990-", 999_990..1_000_000),
        ("500000-9999999", 500_000..1_000_000),
    ] {
        let reply = get(&home, &["-r", range, &url]);
        let content_range = format!("bytes {}-{}/1000000", expected.start, expected.end - 1);
        assert_eq!((reply.status, reply.header("content-range")), (206, Some(&*content_range)), "{range}");
        assert!(reply.body == content[expected], "{range}");
    }
    let beyond = get(&home, &["-r", "1000000-", &url]);
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */1000000")));
    let several = get(&home, &["-r", "0-9,500000-500009", &url]);
    assert_eq!(several.status, 206);
    assert!(
        several
            .header("content-type")
            .is_some_and(|value| value.starts_with("multipart/byteranges; boundary="))
    );
    for part in [&content[0..10], &content[500_000..500_010]] {
        assert!(several.body.windows(10).any(|window| window == part));
    }
}

/// Starts a download of `url`, kills the server meanwhile, and returns the number of bytes
/// received.
fn cut_off(home: &ServeDirectory, server: Server, url: &str) -> u64 {
    let words = ["--disable", "--silent", "--noproxy", "*", "--limit-rate", "1M", "-o", "part", url];
    let mut curl = Command::new("curl").args(words).current_dir(home.at("")).spawn().unwrap();
    let length = || Some(fs::metadata(home.at("part")).ok()?.len());
    until("there is a part", || length().filter(|length| *length > 0));
    drop(server);
    assert!(!curl.wait().unwrap().success());
    length().unwrap()
}

#[test]
fn a_download_that_was_cut_off_is_resumed() {
    if !needs_curl("") {
        return;
    }
    let content = bytes(32 << 20);
    let home = ServeDirectory::with(&[("a.bin", &content)]);
    let server = home.serve("");
    let url = at(&server, "/a.bin");
    let had = cut_off(&home, server, &url);
    let server = home.serve("");
    let url = at(&server, "/a.bin");
    let rest = get(&home, &["-o", "part", "-C", "-", &url]);
    assert_eq!((rest.end, rest.status), (Some(0), 206), "{}", rest.err);
    assert_eq!(
        rest.header("content-range"),
        Some(&*format!("bytes {had}-{}/{}", content.len() - 1, content.len()))
    );
    assert!(fs::read(home.at("part")).unwrap() == content);
    let done = get(&home, &["-o", "part", "-C", "-", &url]);
    assert_eq!(done.status, 416);
    assert!(fs::read(home.at("part")).unwrap() == content);
}

#[test]
fn a_head_response_has_the_headers_of_get() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.html", &bytes(100_000))]);
    home.age("a.html");
    let server = home.serve("");
    let url = at(&server, "/a.html");
    let (head, full) = (get(&home, &["--head", &url]), get(&home, &[&url]));
    let fields = |reply: &CurlResponse| -> Vec<String> {
        let is_date = |line: &str| line.to_ascii_lowercase().starts_with("date:");
        let mut fields: Vec<String> = reply.head.iter().filter(|line| !is_date(line)).cloned().collect();
        fields.sort();
        fields
    };
    assert_eq!((head.status, head.header("content-length")), (200, Some("100000")));
    assert_eq!(fields(&head), fields(&full));
}

#[test]
fn conditional_requests_get_304() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"first")]);
    let server = home.serve("--etag=inode");
    let url = at(&server, "/a.txt");
    let day = |day: &str| {
        let (status, _, err) = finish(Command::new("touch").args(["-d", day]).arg(home.at("www/a.txt")));
        assert_eq!(status, Some(0), "{err}");
    };
    day("2020-02-02T00:00:00Z");
    let first = get(&home, &["-o", "copy", "-R", "--etag-save", "etag", &url]);
    assert_eq!((first.status, first.header("last-modified")), (200, Some("Sun, 02 Feb 2020 00:00:00 GMT")));
    assert_eq!(get(&home, &["-z", "copy", &url]).status, 304);
    assert_eq!(get(&home, &["-z", "Sun, 02 Feb 2020 00:00:00 GMT", &url]).status, 304);
    assert_eq!(get(&home, &["-z", "Sat, 01 Feb 2020 23:59:59 GMT", &url]).status, 200);
    assert_eq!(get(&home, &["-z", "-Sat, 01 Feb 2020 00:00:00 GMT", &url]).status, 412);
    let unchanged = get(&home, &["--etag-compare", "etag", &url]);
    assert_eq!((unchanged.status, unchanged.body.as_slice()), (304, &b""[..]));
    assert_eq!(unchanged.header("etag"), first.header("etag"));
    // Builds produce another file with the same length and mtime. The entity tag contains the inode
    // number, so it differs.
    fs::write(home.at("other"), b"other").unwrap();
    fs::rename(home.at("other"), home.at("www/a.txt")).unwrap();
    day("2020-02-02T00:00:00Z");
    until("the other content is seen", || {
        let changed = get(&home, &["--etag-compare", "etag", &url]);
        (changed.status == 200).then(|| assert_eq!(changed.body, b"other"))
    });
}

#[test]
fn http_1_0_is_served() {
    if !needs_curl("") {
        return;
    }
    let content = bytes(300_000);
    let home = ServeDirectory::with(&[("a.bin", &content)]);
    let server = home.serve("");
    let reply = get(&home, &["--http1.0", &at(&server, "/a.bin")]);
    assert_eq!((reply.end, reply.status), (Some(0), 200), "{}", reply.err);
    assert!(reply.body == content && reply.header("transfer-encoding").is_none());
}

#[test]
fn users_must_authenticate() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"secret")]);
    fs::write(home.at("users"), format!("{USER}\n")).unwrap();
    let server = home.serve("--auth-file users --metrics --health --access-log=log");
    for (path, user, status) in [
        ("/a.txt", None, 401),
        ("/a.txt", Some("ann:U*U"), 200),
        ("/a.txt", Some("ann:U*V"), 401),
        ("/a.txt", Some("bob:U*U"), 401),
        ("/a.txt", Some("ann:"), 401),
        ("/nosuch", None, 401),
        ("/metrics", None, 401),
        ("/metrics", Some("ann:U*U"), 200),
        ("/health", None, 200),
    ] {
        let url = at(&server, path);
        let words: Vec<&str> = user.iter().flat_map(|user| ["-u", user]).chain([&*url]).collect();
        let reply = get(&home, &words);
        assert_eq!(reply.status, status, "{path} {user:?}");
        let challenge = reply.header("www-authenticate");
        assert_eq!(
            challenge.is_some_and(|value| value.starts_with("Basic realm=")),
            status == 401,
            "{path}: {challenge:?}"
        );
        assert_eq!(path == "/a.txt" && status == 200, reply.body == b"secret");
    }
}

#[test]
fn cors_headers_are_sent_to_other_origins() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("--cors=https://a.example");
    let url = at(&server, "/a.txt");
    let preflight = |origin: &str| {
        let origin = format!("Origin: {origin}");
        get(&home, &["-X", "OPTIONS", "-H", &origin, "-H", "Access-Control-Request-Method: GET", &url])
    };
    let allowed = preflight("https://a.example");
    assert_eq!(
        (allowed.status, allowed.header("access-control-allow-origin")),
        (204, Some("https://a.example"))
    );
    assert!(
        allowed.header("access-control-allow-methods").is_some_and(|methods| methods.contains("GET")),
        "{allowed:?}"
    );
    assert_eq!(preflight("https://b.example").header("access-control-allow-origin"), None);
    let simple = get(&home, &["-H", "Origin: https://a.example", &url]);
    assert_eq!(
        (simple.body.as_slice(), simple.header("access-control-allow-origin")),
        (&b"here"[..], Some("https://a.example"))
    );
}

#[test]
fn other_methods_are_refused() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("");
    let url = at(&server, "/a.txt");
    for words in [&["-X", "DELETE"][..], &["-d", "x=1"], &["-T", "www/a.txt"], &["-X", "TRACE"]] {
        let reply = get(&home, &[words, &[&*url]].concat());
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, OPTIONS")), "{words:?}");
    }
    fs::write(home.at("much"), bytes(1_000_000)).unwrap();
    let much = get(&home, &["-T", "much", &url]);
    assert_eq!(much.status, 413, "{much:?}");
    assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
}

/// A reverse proxy uses HTTP/2 without TLS if the server has no certificate.
#[test]
fn http_2_without_tls_answers_like_http_1() {
    if !needs_curl("HTTP2") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("b.bin", &bytes(300_000))]);
    ["a.txt", "b.bin"].iter().for_each(|name| home.age(name));
    let server = home.serve("");
    for (path, words) in [
        ("/a.txt", &[][..]),
        ("/b.bin", &["-r", "1000-250000"]),
        ("/b.bin", &["-r", "0-9,100-109"]),
        ("/none", &[]),
        ("/a.txt", &["-X", "POST", "-d", "body"]),
        ("/a.txt", &["-I"]),
    ] {
        let url = at(&server, path);
        let ask = |version: &str| get(&home, &[words, &[version, &url][..]].concat());
        let (first, second) = (ask("--http1.1"), ask("--http2-prior-knowledge"));
        assert_eq!((first.version.as_str(), second.version.as_str()), ("1.1", "2"), "{path}: {}", second.err);
        assert_eq!((first.status, first.end), (second.status, second.end), "{path} {words:?}");
        for name in ["content-type", "content-length", "etag", "last-modified", "accept-ranges", "allow"] {
            if !words.contains(&"0-9,100-109") {
                assert_eq!(first.header(name), second.header(name), "{path} {words:?}: {name}");
            }
        }
        assert!(first.header("date").is_some() && second.header("date").is_some());
        assert_eq!(second.header("connection"), None);
        // With -I, curl prints the header section as the body.
        if !words.contains(&"-I") {
            assert_eq!(first.body.len(), second.body.len(), "{path} {words:?}");
        }
    }
}
