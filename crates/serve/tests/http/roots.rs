//! The served directory is the one that its path resolves to now: deployments remove it and make it
//! again, or point a symbolic link elsewhere.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use fathom_serve::Config;
use fathom_serve::server::StartOptions;

use crate::support::{Client, MemoryLog, TestServer, Tree, config, eventually, io, models, noise, request};

/// Points the symbolic link at `path` to `target`, atomically.
fn point(path: &Path, target: impl AsRef<Path>) {
    let new = path.with_extension("new");
    symlink(target, &new).unwrap();
    fs::rename(new, path).unwrap();
}

/// Serves `dist` without a cache, and returns the error log as well.
fn served(tree: &Tree, dist: &Path, top: &str) -> (TestServer, MemoryLog) {
    let lines = MemoryLog::default();
    let mut config = config(tree, &format!("cache = {{ age-ms = 0 }}\n{top}"), "listing = true");
    config.site.root = dist.to_owned();
    let outfit = StartOptions { errors: Some(Box::new(lines.clone())), ..StartOptions::default() };
    (TestServer::with(&config, outfit), lines)
}

#[test]
fn a_directory_that_is_made_again_is_served() {
    for model in models() {
        let tree = Tree::new(&[("dist/a", b"old"), ("dist/only-old", b"old")]);
        let (served, _) = served(&tree, &tree.at("dist"), &io(model));
        let mut client = served.connect();
        (0..3).for_each(|_| client.get("/a").is(200, b"old"));
        fs::remove_dir_all(tree.at("dist")).unwrap();
        let gone = client.get("/a");
        assert_eq!((gone.status, gone.field("retry-after")), (503, Some("1")), "{model}");
        assert_eq!(client.get("/").status, 503, "{model}");
        tree.write("dist/a", b"new");
        client.get("/a").is(200, b"new");
        assert_eq!(client.get("/only-old").status, 404, "{model}");
        assert!(!client.get("/").text().contains("only-old"), "{model}");
        // The directory is replaced atomically.
        fs::rename(tree.at("dist"), tree.at("old")).unwrap();
        tree.write("dist/a", b"newer");
        client.get("/a").is(200, b"newer");
    }
}

#[test]
fn a_link_that_leads_elsewhere_is_followed() {
    let large = [noise(2 << 20, 1), noise(2 << 20, 2)];
    for model in models() {
        let tree =
            Tree::new(&[("1/a", b"one"), ("2/a", b"two"), ("1/large", &large[0]), ("2/large", &large[1])]);
        symlink("1", tree.at("current")).unwrap();
        let (served, lines) = served(&tree, &tree.at("current"), &io(model));
        let mut client = served.connect();
        for round in 0..6 {
            let (name, body) = [("1", b"one"), ("2", b"two")][round % 2];
            point(&tree.at("current"), name);
            (0..3).for_each(|_| client.get("/a").is(200, body));
            client.get("/large").is(200, &large[round % 2]);
            let json = client.ask("GET", "/", &[("Accept", "application/json")]);
            assert!(json.text().contains("\"large\""), "{model}");
        }
        assert_eq!(lines.text(), "", "nothing went wrong");
    }
}

/// A response in progress is read from the directory in which it began.
#[test]
fn a_download_goes_on_when_its_directory_goes() {
    let large = noise(3 << 20, 1);
    let tree = Tree::new(&[("dist/large", &large)]);
    let (served, _) = served(&tree, &tree.at("dist"), "");
    let mut client = Client::connect_narrow(served.address());
    client.send(request("GET", "/large", &[("Connection", "close")]));
    assert_eq!(client.head().status, 200);
    fs::remove_dir_all(tree.at("dist")).unwrap();
    assert_eq!(served.get("/large").status, 503);
    assert!(client.rest() == large);
}

#[test]
fn cached_files_outlive_their_directory_by_at_most_the_maximum_age() {
    const AGE: Duration = Duration::from_millis(50);
    let tree = Tree::new(&[("1/a", b"one"), ("2/a", b"two"), ("1/gone", b"one")]);
    symlink("1", tree.at("current")).unwrap();
    let mut config = config(&tree, "cache = { age-ms = 50 }\n", "");
    (config.site.root, config.workers) = (tree.at("current"), NonZeroUsize::new(2));
    let served = TestServer::held_with(&config);
    let mut clients: Vec<_> = (0..8).map(|_| served.connect()).collect();
    for client in &mut clients {
        (0..3).for_each(|_| client.get("/a").is(200, b"one"));
        (0..3).for_each(|_| client.get("/gone").is(200, b"one"));
    }
    point(&tree.at("current"), "2");
    served.advance(AGE - Duration::from_millis(1));
    clients.iter_mut().for_each(|client| client.get("/a").is(200, b"one"));
    served.advance(Duration::from_millis(1));
    for client in &mut clients {
        client.get("/a").is(200, b"two");
        assert_eq!(client.get("/gone").status, 404);
    }
}

/// The error log reports it for each site, even without requests.
#[test]
fn a_directory_that_is_gone_and_back_is_reported() {
    let tree = Tree::new(&[("dist/a", b"a"), ("other/a", b"a")]);
    let text = format!(
        "listen = ['127.0.0.1:0']\nworkers = 2\n[site]\nroot = '{}'\n[[host]]\nnames = ['other.example']\nroot = '{}'\n",
        tree.at("dist").display(),
        tree.at("other").display()
    );
    let lines = MemoryLog::default();
    let outfit = StartOptions { errors: Some(Box::new(lines.clone())), ..StartOptions::default() };
    let served = TestServer::with(&Config::from_toml(&text).unwrap(), outfit);
    for name in ["dist", "other"] {
        let said = |what: &str| {
            let path = tree.at(name).display().to_string();
            lines.text().lines().filter(|line| line.contains(&path) && line.contains(what)).count()
        };
        fs::rename(tree.at(name), tree.at("away")).unwrap();
        eventually("it is not said that it is gone", || said("No such file or directory") == 1);
        fs::rename(tree.at("away"), tree.at(name)).unwrap();
        eventually("it is not said that it is back", || said("exists again") == 1);
    }
    assert_eq!(lines.text().lines().count(), 4, "{}", lines.text());
    served.get("/a").is(200, b"a");
}

#[test]
fn a_file_in_the_place_of_the_directory_is_no_directory() {
    let tree = Tree::new(&[("dist/a", b"a")]);
    let (served, lines) = served(&tree, &tree.at("dist"), "");
    served.get("/a").is(200, b"a");
    fs::remove_dir_all(tree.at("dist")).unwrap();
    fs::write(tree.at("dist"), "x").unwrap();
    assert_eq!(served.get("/a").status, 503);
    eventually("it is not said", || lines.text().contains("Not a directory"));
}
