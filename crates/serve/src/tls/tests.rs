//! Handshakes with the server's configuration, and files that cannot be loaded.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, ServerConnection,
    SupportedProtocolVersion,
};

use super::*;

/// A directory with `cert.pem` (the server's, then its issuer's) and `key.pem`.
struct TestCertificates {
    dir: tempfile::TempDir,
    roots: RootCertStore,
}

impl TestCertificates {
    fn new() -> Self {
        let mut files = Self { dir: tempfile::tempdir().unwrap(), roots: RootCertStore::empty() };
        files.issue();
        files
    }

    /// Issues a new certificate; the client of the test trusts all issuers so far.
    fn issue(&mut self) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        self.write("cert.pem", &format!("{}{}", certificate.pem(), issuer.pem()));
        self.write("reversed.pem", &format!("{}{}", issuer.pem(), certificate.pem()));
        self.write("key.pem", &key.serialize_pem());
        self.roots.add(issuer.der().clone()).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn tls(&self, certificate: &str, key: &str) -> config::TlsConfig {
        let path = |name| self.dir.path().join(name);
        config::TlsConfig {
            certificate: Some(path(certificate)),
            key: Some(path(key)),
            ..config::TlsConfig::default()
        }
    }

    fn error(&self, certificate: &str, key: &str) -> String {
        let error = ReloadableTls::load(&self.tls(certificate, key)).unwrap_err().to_string();
        error.replace(self.dir.path().to_str().unwrap(), "DIR")
    }

    fn client(&self, version: &'static SupportedProtocolVersion, protocols: &[&str]) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap();
        let mut config = builder.with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Runs the handshake in memory. Returns the client.
fn handshake(
    server: Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
) -> Result<ClientConnection, rustls::Error> {
    let mut server = ServerConnection::new(server)?;
    let mut client = ClientConnection::new(client.clone(), ServerName::try_from("localhost").unwrap())?;
    while client.wants_write() || server.wants_write() {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        client.write_tls(&mut up).unwrap();
        server.read_tls(&mut up.as_slice()).unwrap();
        server.process_new_packets()?;
        while server.wants_write() {
            server.write_tls(&mut down).unwrap();
        }
        let mut down = down.as_slice();
        while !down.is_empty() {
            client.read_tls(&mut down).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(client)
}

#[test]
fn both_versions_and_both_protocols_are_spoken() {
    let files = TestCertificates::new();
    let (holder, warnings) = ReloadableTls::load(&files.tls("cert.pem", "key.pem")).unwrap();
    assert!(warnings.is_empty());
    for (version, number) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        for (offered, agreed) in [
            (["http/1.1", "h2"].as_slice(), Some(b"h2".as_slice())),
            (&["http/1.1"], Some(b"http/1.1")),
            (&["http/1.0"], Some(b"http/1.0")),
            (&[], None),
        ] {
            let client = handshake(holder.current(), &files.client(version, offered)).unwrap();
            assert_eq!(client.protocol_version(), Some(number));
            assert_eq!(client.alpn_protocol(), agreed);
        }
    }
    assert!(handshake(holder.current(), &files.client(&TLS13, &["spdy/3"])).is_err());
}

#[test]
fn a_client_that_comes_back_resumes() {
    let files = TestCertificates::new();
    let (holder, _) = ReloadableTls::load(&files.tls("cert.pem", "key.pem")).unwrap();
    assert!(holder.current().ticketer.enabled(), "clients keep their sessions, not the server");
    for version in [&TLS12, &TLS13] {
        let client = files.client(version, &["h2"]);
        let kinds = [(); 2].map(|()| handshake(holder.current(), &client).unwrap().handshake_kind().unwrap());
        assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
    }
}

#[test]
fn a_reload_is_for_the_connections_after_it() {
    let mut files = TestCertificates::new();
    let (holder, _) = ReloadableTls::load(&files.tls("cert.pem", "key.pem")).unwrap();
    let certificate = |files: &TestCertificates| {
        let client = handshake(holder.current(), &files.client(&TLS13, &["h2"])).unwrap();
        client.peer_certificates().unwrap()[0].to_vec()
    };
    let old = certificate(&files);
    files.issue();
    assert_eq!(certificate(&files), old);
    holder.reload().unwrap();
    assert_ne!(certificate(&files), old);
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let files = TestCertificates::new();
    let (holder, _) = ReloadableTls::load(&files.tls("cert.pem", "key.pem")).unwrap();
    let before = holder.current();
    files.write("cert.pem", "");
    assert!(holder.reload().unwrap_err().to_string().ends_with("the file has no certificate (PEM)"));
    assert!(Arc::ptr_eq(&before, &holder.current()));
    handshake(holder.current(), &files.client(&TLS12, &["h2"])).unwrap();
}

#[test]
fn errors_say_which_file_and_why() {
    let files = TestCertificates::new();
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
    files.write("encrypted.pem", &pem("ENCRYPTED PRIVATE KEY"));
    files.write("legacy.pem", &pem("RSA PRIVATE KEY").replace("AAAA", "Proc-Type: 4,ENCRYPTED\n\nAAAA"));
    files.write("other.pem", &KeyPair::generate().unwrap().serialize_pem());
    files.write("torn.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n");
    files.write("nonsense.pem", &pem("CERTIFICATE"));
    files.write("base64.pem", &pem("PRIVATE KEY").replace("AAAA", "hunter2!"));
    files.write("huge.pem", &" ".repeat(1 + FILE_BYTES_MAX as usize));
    for (certificate, key, expected) in [
        ("none.pem", "key.pem", "certificate 'DIR/none.pem': No such file or directory"),
        ("key.pem", "key.pem", "certificate 'DIR/key.pem': the file has no certificate (PEM)"),
        ("reversed.pem", "key.pem", "certificate 'DIR/reversed.pem': the order is wrong: "),
        ("nonsense.pem", "key.pem", "certificate 'DIR/nonsense.pem': invalid peer certificate: "),
        ("huge.pem", "key.pem", "certificate 'DIR/huge.pem': file too large"),
        ("cert.pem", "none.pem", "key 'DIR/none.pem': No such file or directory"),
        ("cert.pem", "cert.pem", "key 'DIR/cert.pem': the file has no private key (PEM)"),
        ("cert.pem", "encrypted.pem", "key 'DIR/encrypted.pem': it is encrypted"),
        ("cert.pem", "legacy.pem", "key 'DIR/legacy.pem': it is encrypted"),
        (
            "cert.pem",
            "other.pem",
            "key 'DIR/other.pem': it does not belong to the certificate 'DIR/cert.pem'",
        ),
        ("cert.pem", "torn.pem", "key 'DIR/torn.pem': its END line is missing"),
        ("cert.pem", "base64.pem", "key 'DIR/base64.pem': it is not base64"),
    ] {
        let error = files.error(certificate, key);
        assert!(error.starts_with(&format!("cannot use {expected}")), "{error}");
        assert!(!error.contains("hunter2"));
    }
}

#[test]
fn a_key_for_everybodys_eyes_is_warned_of() {
    let files = TestCertificates::new();
    let key = files.dir.path().join("key.pem");
    for (mode, count) in [(0o600, 0), (0o640, 0), (0o644, 1)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let (_, warnings) = ReloadableTls::load(&files.tls("cert.pem", "key.pem")).unwrap();
        assert_eq!(warnings.len(), count, "{mode:o}");
    }
}

/// Issues a certificate for `names`, signed by an authority of its own, in `NAME.pem` and
/// `NAME.key`; the authority's certificate is in `NAME-ca.pem`. Returns a root store with the
/// authority.
fn issue(files: &TestCertificates, name: &str, names: &[&str], common_name: &str) -> RootCertStore {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
    let certificate = params.signed_by(&key, &issuer).unwrap();
    files.write(&format!("{name}.pem"), &certificate.pem());
    files.write(&format!("{name}.key"), &key.serialize_pem());
    files.write(&format!("{name}-ca.pem"), &issuer.pem());
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone()).unwrap();
    roots
}

fn client_of(roots: &RootCertStore) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots.clone())
}

/// Runs the handshake in memory with a client that asks for the host `name`. Returns the server.
fn handshake_as(
    server: Arc<ServerConfig>,
    client: ClientConfig,
    name: &str,
) -> Result<ServerConnection, rustls::Error> {
    let mut server = ServerConnection::new(server)?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name)?;
    while client.wants_write() || server.wants_write() {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut up).unwrap();
        }
        let mut up = up.as_slice();
        while !up.is_empty() {
            server.read_tls(&mut up).unwrap();
            server.process_new_packets()?;
        }
        while server.wants_write() {
            server.write_tls(&mut down).unwrap();
        }
        let mut down = down.as_slice();
        while !down.is_empty() {
            client.read_tls(&mut down).unwrap();
            client.process_new_packets()?;
        }
    }
    Ok(server)
}

#[test]
fn each_name_gets_its_certificate() {
    let files = TestCertificates::new();
    let one = issue(&files, "one", &["one.example", "*.one.example"], "one");
    let two = issue(&files, "two", &["two.example"], "two");
    let path = |name: &str| files.dir.path().join(name);
    let pair = |name: &str| config::CertificateFiles {
        certificate: path(&format!("{name}.pem")),
        key: path(&format!("{name}.key")),
    };
    let tls = config::TlsConfig { more: vec![pair("one"), pair("two")], ..files.tls("cert.pem", "key.pem") };
    let (holder, _) = ReloadableTls::load(&tls).unwrap();
    let is_shown = |roots: &RootCertStore, name: &str| {
        handshake_as(holder.current(), client_of(roots).with_no_client_auth(), name).is_ok()
    };
    for (roots, name) in [
        (&one, "one.example"),
        (&one, "ONE.example"),
        (&one, "a.one.example"),
        (&two, "two.example"),
        (&files.roots, "localhost"),
    ] {
        assert!(is_shown(roots, name), "{name}");
    }
    assert!(!is_shown(&one, "a.b.one.example") && !is_shown(&one, "two.example"));
    // A reload reads all files again.
    let new = issue(&files, "two", &["two.example"], "two");
    assert!(!is_shown(&new, "two.example"));
    holder.reload().unwrap();
    assert!(is_shown(&new, "two.example") && is_shown(&one, "one.example"));
    issue(&files, "none", &["192.0.2.1"], "none");
    let tls = config::TlsConfig { more: vec![pair("none")], ..files.tls("cert.pem", "key.pem") };
    let error = ReloadableTls::load(&tls).unwrap_err().to_string();
    assert!(error.contains("none.pem") && error.contains("no DNS name"), "{error}");
}

#[test]
fn a_client_shows_a_certificate_of_the_authority() {
    let files = TestCertificates::new();
    issue(&files, "alice", &[], "alice");
    issue(&files, "mallory", &[], "mallory");
    let path = |name: &str| files.dir.path().join(name);
    let identity = |name: &str| {
        let chain = certificates(&path(&format!("{name}.pem"))).unwrap();
        (chain, private_key(&path(&format!("{name}.key"))).unwrap().0)
    };
    for (mode, without) in
        [(None, false), (Some(ClientAuth::Require), false), (Some(ClientAuth::Optional), true)]
    {
        let tls = config::TlsConfig {
            client_ca: Some(path("alice-ca.pem")),
            client_auth: mode,
            ..files.tls("cert.pem", "key.pem")
        };
        let (holder, _) = ReloadableTls::load(&tls).unwrap();
        let with = |name: &str| {
            let (chain, key) = identity(name);
            let client = client_of(&files.roots).with_client_auth_cert(chain, key).unwrap();
            handshake_as(holder.current(), client, "localhost")
        };
        let alice = with("alice").unwrap();
        assert_eq!(client_name(alice.peer_certificates().unwrap()).as_deref(), Some("alice"));
        assert!(with("mallory").is_err(), "{mode:?}");
        let nobody =
            handshake_as(holder.current(), client_of(&files.roots).with_no_client_auth(), "localhost");
        assert_eq!(nobody.is_ok(), without, "{mode:?}");
    }
    let tls = config::TlsConfig { client_ca: Some(path("alice.key")), ..files.tls("cert.pem", "key.pem") };
    assert!(
        ReloadableTls::load(&tls)
            .unwrap_err()
            .to_string()
            .contains("alice.key': the file has no certificate")
    );
}

#[test]
fn a_certificate_of_its_own_is_for_this_machine_and_stays() {
    let tls = config::TlsConfig { self_signed: true, ..config::TlsConfig::default() };
    let (holder, notes) = ReloadableTls::load(&tls).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("self-signed certificate for localhost, "), "{notes:?}");
    let mut roots = RootCertStore::empty();
    roots.add(holder.self_signed.as_ref().unwrap().key.cert[0].clone()).unwrap();
    assert!(holder.reload().unwrap().is_empty());
    for name in ["localhost", "127.0.0.1", "::1"] {
        handshake_as(holder.current(), client_of(&roots).with_no_client_auth(), name).unwrap();
    }
    assert!(handshake_as(holder.current(), client_of(&roots).with_no_client_auth(), "a.example").is_err());
}
