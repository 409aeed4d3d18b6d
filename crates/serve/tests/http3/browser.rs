//! A headless Chromium, the most widely used implementation, which `tools/setup-test.sh` installs.

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::PublicKeyData;
use ring::digest::{SHA256, digest};

use crate::Http3Site;
use crate::support::{LONG, Tree};

const CHROMIUM: &str = "/usr/bin/chromium";
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--dump-dom",
];

#[test]
fn a_browser_gets_pages_over_it() {
    if !Path::new(CHROMIUM).exists() {
        println!("skipped: needs {CHROMIUM}: tools/setup-test.sh");
        return;
    }
    let script = b"document.body.append('written by a script')";
    let page = b"<!doctype html><title>t</title><body><script src=s.js></script>".as_slice();
    let tree = Tree::new(&[("index.html", page), ("s.js", script)]);
    let mut known = String::new();
    let site = Http3Site::with(tree, "", "", |config, _| {
        let key = config.tls.as_ref().unwrap().key.as_ref().unwrap();
        let key = rcgen::KeyPair::from_pem(&std::fs::read_to_string(key).unwrap()).unwrap();
        known = BASE64_STANDARD.encode(digest(&SHA256, &key.subject_public_key_info()));
    });
    let port = site.served.address().rsplit(':').next().unwrap().to_owned();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([&LONG.as_secs().to_string(), CHROMIUM])
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--origin-to-force-quic-on=localhost:{port}"))
        .arg(format!("--ignore-certificate-errors-spki-list={known}"))
        .arg("--host-resolver-rules=MAP localhost 127.0.0.1")
        .arg(format!("https://localhost:{port}/"))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("written by a script"), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(site.served.drain(LONG));
    let log = site.lines.text();
    for path in ["/", "/s.js"] {
        assert!(log.contains(&format!("\"GET {path} HTTP/3.0\" 200 ")), "{log}");
    }
}
