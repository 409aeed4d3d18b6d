//! Directories as archives: only where the site allows them, limited in number, with the files that
//! requests could get.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use fathom_io::Clock;
use fathom_serve::server::StartOptions;

use crate::support::{Client, MemoryLog, TestServer, Tree, config, eventually, noise, request};

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
    assert_eq!(served.get("/d/sub/?archive=rar").status, 404, "the list is no archive");
    assert_eq!(served.get("/d/sub/?other=rar").status, 200);
    served.get("/f?archive=zip").is(200, b"f");
    for target in ["/none/?archive=zip", "/d/.hidden/?archive=zip", "/d/leads-out/?archive=zip"] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }

    let off = TestServer::site(&tree, "listing = true");
    off.get("/d/?archive=zip").is(200, b"index");
    assert!(!off.get("/d/sub/").text().contains("archive="));
}

/// Returns a tree with a directory `large`, whose archive is more than buffers hold.
fn tree_with_large() -> Tree {
    let tree = tree();
    fs::create_dir(tree.at("large")).unwrap();
    tree.write("large/x", &noise(24 << 20, 1));
    tree
}

/// Returns a server whose clock stands still: no client becomes slow.
fn held(tree: &Tree, top: &str) -> TestServer {
    let options = StartOptions { clock: Clock::held(), ..StartOptions::default() };
    TestServer::with(&config(tree, top, SITE), options)
}

/// Returns a client that has got the head of an archive and takes nothing more.
fn stalled(served: &TestServer) -> Client {
    let mut client = Client::connect_narrow(served.address());
    client.send(request("GET", "/large/?archive=tar.gz", &[]));
    let head = client.head();
    assert_eq!((head.status, head.field("transfer-encoding")), (200, Some("chunked")));
    client
}

#[test]
fn there_are_only_so_many_at_once_and_one_that_is_left_makes_room() {
    let tree = tree_with_large();
    let served = held(&tree, "metrics = '/metrics'\nlimits = { archives = 1 }\n");
    let slow = stalled(&served);
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

/// Once, four readers at two kilobytes a second kept everybody else from archives.
#[test]
fn one_address_has_half_of_the_places() {
    let tree = tree_with_large();
    let served = held(&tree, "");
    let slow = [stalled(&served), stalled(&served)];
    let refused = served.get("/d/?archive=zip");
    assert_eq!((refused.status, refused.field("retry-after")), (429, Some("1")));
    served.get("/f").is(200, b"f");
    drop(slow);
}

/// An archive that cannot be completed ends with the connection, without the last chunk.
#[test]
fn an_archive_that_cannot_be_finished_is_not_ended() {
    let tree = tree_with_large();
    let served = TestServer::site(&tree, SITE);
    let mut client = stalled(&served);
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

/// Once, an archive that failed before its first piece was an empty one, with 200.
#[test]
fn an_archive_that_cannot_begin_is_no_empty_one() {
    let Some(tree) = Tree::in_memory(&[("many/sub/0", b"a"), ("large/a", b"a")]) else {
        return eprintln!("skipped: needs a filesystem in memory at /dev/shm");
    };
    for number in 1..=100_000 {
        fs::hard_link(tree.at("many/sub/0"), tree.at(&format!("many/sub/{number}"))).unwrap();
    }
    for number in 0..2000 {
        fs::hard_link(tree.at("large/a"), tree.at(&format!("large/{number:0>200}"))).unwrap();
    }
    let errors = MemoryLog::default();
    let top = "limits.listing-bytes = 16777216\n";
    let options = StartOptions { errors: Some(Box::new(errors.clone())), ..StartOptions::default() };
    let served = TestServer::with(&config(&tree, top, SITE), options);
    for target in ["/many/sub/?archive=zip", "/many/?archive=zip", "/many/?archive=tar.gz"] {
        let refused = served.get(target);
        assert_eq!((refused.status, refused.field("retry-after")), (501, None), "{target}");
        assert!(refused.text().starts_with("The directory is too large: "), "{}", refused.text());
    }
    let reported = "cannot read 'many/sub': too large: it has more than 100,000 entries";
    eventually("it is not reported", || errors.text().contains(reported));
    let mut client = served.connect();
    client.send(request("GET", "/large/?archive=zip", &[]));
    assert_eq!(client.head().status, 200);
    // The encoder alone takes 4 MiB.
    let served = TestServer::new(&tree, "limits.listing-bytes = 4259840\n", SITE);
    assert_eq!(served.get("/large/?archive=zip").status, 501);
}

/// The library refuses a name that an archive has already. Names that are no text were alike.
#[test]
fn names_of_any_bytes_are_in_a_zip() {
    let tree = Tree::new(&[("d/a%FF", b"3"), ("d/b\\c", b"4")]);
    for (name, content) in [(b"d/a\xff", "1"), (b"d/a\xfe", "2")] {
        fs::write(tree.root().join(OsStr::from_bytes(name)), content).unwrap();
    }
    let served = TestServer::site(&tree, SITE);
    let mut client = served.connect();
    client.send(b"GET /d/?archive=zip HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(client.rest())).unwrap();
    let mut names: Vec<_> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
    names.sort_unstable();
    assert_eq!(names, ["d/", "d/a%25FF", "d/a%FE", "d/a%FF", "d/b%5Cc"]);
    let mut content = String::new();
    zip.by_name("d/a%FE").unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "2");
}
