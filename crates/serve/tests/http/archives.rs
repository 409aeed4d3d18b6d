//! Directories as archives: only where the site allows them, limited in number, with the files that
//! requests could get.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;

use crate::support::{Client, TestServer, Tree, eventually, noise, request};

const SITE: &str = "listing = true\narchives = ['tar.gz', 'zip']\nheaders = [{ path = 'f', set = { Content-Disposition = 'attachment' } }]";

fn tree() -> Tree {
    let files: [(&str, &[u8]); 6] = [
        ("d/a", b"aa"),
        ("d/index.html", b"index"),
        ("d/.hidden", b"secret"),
        ("d/sub/x", b"x"),
        ("../out", b"secret"),
        ("f", b"f"),
    ];
    let tree = Tree::new(&files);
    tree.link("../../out", "d/leads-out");
    tree.link("../f", "d/leads-in");
    tree
}

/// Returns the names in the archive at `target`, requested with HTTP/1.0, where the end of the
/// connection ends the body.
pub(crate) fn names(served: &TestServer, target: &str) -> BTreeSet<String> {
    let mut client = served.connect();
    client.send(format!("GET {target} HTTP/1.0\r\nHost: site.example\r\n\r\n"));
    let head = client.head();
    assert_eq!((head.status, head.field("content-length")), (200, None));
    let body = client.rest();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&body[..]));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        assert!(!content.contains("secret"));
        String::from_utf8(entry.path_bytes().into_owned()).unwrap()
    });
    entries.collect()
}

#[test]
fn a_directory_comes_as_one_file() {
    let tree = tree();
    let served = TestServer::site(&tree, SITE);
    let expected = ["d/", "d/a", "d/index.html", "d/leads-in", "d/sub/", "d/sub/x"];
    assert_eq!(names(&served, "/d/?archive=tar.gz"), expected.map(str::to_owned).into());
    let below_root = names(&served, "/?archive=tar.gz");
    assert!(below_root.contains("files/d/sub/x") && below_root.contains("files/f"), "{below_root:?}");

    let head = served.ask("HEAD", "/d/?archive=zip", &[]);
    assert_eq!((head.status, head.field("content-length")), (200, None));
    assert_eq!(head.field("content-type"), Some("application/zip"));
    assert_eq!(
        head.field("content-disposition"),
        Some("attachment; filename=\"d.zip\"; filename*=UTF-8''d.zip")
    );
    assert_eq!(
        served.ask("HEAD", "/f", &[]).field("content-length"),
        Some("1"),
        "a file has one, whatever is done with it"
    );
    assert!(served.get("/d/sub/").text().contains("href=\"?archive=tar.gz\""), "the list offers it");
    served.get("/d/?archive=rar").is(200, b"index");
    served.get("/d/?archive=tar.zst").is(200, b"index");
    served.get("/f?archive=zip").is(200, b"f");
    for target in ["/none/?archive=zip", "/d/.hidden/?archive=zip", "/d/leads-out/?archive=zip"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }

    let off = TestServer::site(&tree, "listing = true");
    off.get("/d/?archive=zip").is(200, b"index");
    assert!(!off.get("/d/sub/").text().contains("archive="));
}

#[test]
fn there_are_only_so_many_at_once_and_one_that_is_left_makes_room() {
    let tree = tree();
    fs::create_dir(tree.at("large")).unwrap();
    tree.write("large/x", &noise(24 << 20, 1));
    let top = "metrics = '/metrics'\nlimits = { archives = 1 }";
    let served = TestServer::new(&tree, top, SITE);
    let mut slow = Client::connect_narrow(served.address());
    slow.send(request("GET", "/large/?archive=tar.gz", &[]));
    let head = slow.head();
    assert_eq!((head.status, head.field("transfer-encoding")), (200, Some("chunked")));
    let refused = served.get("/d/?archive=zip");
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    served.get("/f").is(200, b"f");
    drop(slow);
    eventually("the one that was left has ended", || {
        let mut client = served.connect();
        client.send(b"GET /d/?archive=tar.gz HTTP/1.0\r\nHost: a\r\n\r\n");
        client.head().status == 200
    });
}

/// An archive that cannot be completed ends with the connection, without the last chunk.
#[test]
fn an_archive_that_cannot_be_finished_is_not_ended() {
    let tree = tree();
    fs::create_dir(tree.at("large")).unwrap();
    tree.write("large/x", &noise(24 << 20, 1));
    let served = TestServer::site(&tree, SITE);
    let mut client = Client::connect_narrow(served.address());
    client.send(request("GET", "/large/?archive=tar.gz", &[]));
    client.head();
    fs::File::options().write(true).open(tree.at("large/x")).unwrap().set_len(1).unwrap();
    assert!(!client.rest().ends_with(b"0\r\n\r\n"));
}

/// An archive contains the files that its client could request, and the listing of a directory
/// names no hidden file.
#[test]
fn an_archive_has_only_files_that_its_client_may_access() {
    let files: [(&str, &[u8]); 5] = [
        ("d/a", b"a"),
        ("d/x.bak", b"secret"),
        ("d/deny/b", b"secret"),
        ("d/users/c", b"secret"),
        ("d/sub/x.bak/y", b"secret"),
    ];
    let tree = Tree::new(&files);
    let hash = bcrypt::hash_with_salt("password", 4, *b"0123456789abcdef").unwrap().to_string();
    let rules = format!(
        "hide = ['*.bak']\ndeny = ['/d/deny/**']\nauth = {{ users = {{ anna = '{hash}' }}, paths = \
         [{{ path = '/**', public = true }}, {{ path = '/d/users', users = ['anna'] }}] }}"
    );
    let served = TestServer::site(&tree, &format!("listing = true\narchives = ['tar.gz']\n{rules}"));
    assert_eq!(names(&served, "/d/?archive=tar.gz"), ["d/", "d/a", "d/sub/"].map(str::to_owned).into());
    let list = served.get("/d/");
    assert!(list.text().contains("./a") && !list.text().contains("x.bak"), "{list:?}");
    assert_eq!(served.get("/d/users/?archive=tar.gz").status, 401);
}
