//! `Server::check` refuses every configuration that `Server::start` refuses, with the same message,
//! and leaves no file behind.

use std::fs;

use fathom_serve::Config;
use fathom_serve::server::{Server, StartOptions};
use rcgen::{CertificateParams, KeyPair};

use crate::support::{Tree, config};

/// Writes `cert.pem` and `key.pem`, which belong together, and `other.pem`, the key of another
/// certificate.
fn write_certificate(tree: &Tree) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(tree.at("cert.pem"), certificate.pem()).unwrap();
    fs::write(tree.at("key.pem"), key.serialize_pem()).unwrap();
    fs::write(tree.at("other.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
}

fn refusals(config: &Config) -> [Option<String>; 2] {
    let checked = Server::check(config).err();
    let started = Server::start(config, StartOptions::default()).err();
    [checked, started].map(|refusal| refusal.map(|error| error.to_string()))
}

#[test]
#[cfg(not(feature = "http3"))]
fn a_program_without_http_3_says_how_to_get_one_with_it() {
    let config = config(&Tree::new(&[]), "tls = { self-signed = true, http3 = true }", "");
    for refusal in refusals(&config).map(Option::unwrap) {
        assert!(refusal.contains("'tls.http3'") && refusal.contains("--features http3"), "{refusal}");
    }
}

#[test]
fn a_configuration_that_cannot_start_fails_the_check() {
    let tree = Tree::new(&[("users", b"anna:hunter2\n"), ("a", b"a")]);
    write_certificate(&tree);
    let tls = |certificate: &str, key: &str| {
        let path = |name| tree.at(name).display().to_string();
        format!("[tls]\ncertificate = '{}'\nkey = '{}'", path(certificate), path(key))
    };
    let at = |name: &str| tree.at(name).display().to_string();
    for (top, site, said) in [
        ("", "[site.auth]\nusers = { anna = 'hunter2' }".to_owned(), "neither argon2 nor bcrypt"),
        ("", "[site.auth]\nusers = { anna = '$2b$05$short' }".to_owned(), "a broken bcrypt hash"),
        ("", "[site.auth]".to_owned(), "it has no users"),
        ("", format!("[site.auth]\nfile = '{}'", at("users")), "line 1: "),
        ("", format!("[site.auth]\nfile = '{}'", at("none")), "No such file"),
        ("", tls("none.pem", "key.pem"), "No such file"),
        ("", tls("cert.pem", "none.pem"), "No such file"),
        ("", tls("key.pem", "cert.pem"), "no certificate"),
        ("", tls("cert.pem", "cert.pem"), "no private key"),
        ("", tls("cert.pem", "other.pem"), "does not belong to the certificate"),
        ("", format!("[access-log]\nfile = '{}'", at("none/log")), "No such file"),
        ("", format!("[error-log]\nfile = '{}'", at("none/log")), "No such file"),
        ("", format!("[[host]]\nnames = ['a.example']\nroot = '{}'", at("none")), "No such file"),
        ("socket-mode = '888'\n", String::new(), "000 to 777"),
        ("limits.connections = 0\n", String::new(), "limits.connections"),
        ("limits.header-bytes = 0\n", String::new(), "limits.header-bytes"),
        ("limits.streams = 0\n", String::new(), "limits.streams"),
        ("pool.threads = 0\n", String::new(), "pool.threads"),
    ] {
        let [checked, started] = refusals(&config(&tree, top, &site));
        let refusal = checked.unwrap_or_else(|| panic!("passes: {top}{site}"));
        assert!(refusal.contains(said), "{refusal}");
        assert_eq!(Some(refusal), started, "{top}{site}");
    }
}

#[test]
fn a_check_leaves_nothing_behind() {
    let tree = Tree::new(&[("a", b"a")]);
    write_certificate(&tree);
    let at = |name: &str| tree.at(name).display().to_string();
    fs::write(tree.at("kept.log"), "line\n").unwrap();
    let check = |log: &str| {
        let site = format!(
            "[tls]\ncertificate = '{}'\nkey = '{}'\n[access-log]\nfile = '{}'",
            at("cert.pem"),
            at("key.pem"),
            at(log)
        );
        Server::check(&config(&tree, "", &site)).unwrap()
    };
    assert_eq!(check("kept.log").len(), 1, "that everybody may read the key");
    assert_eq!(fs::read(tree.at("kept.log")).unwrap(), b"line\n");
    check("new.log");
    assert!(!tree.at("new.log").exists());
}
