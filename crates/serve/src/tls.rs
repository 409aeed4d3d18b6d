//! Encryption of connections: certificate and key from their files to what rustls needs, and that exchanged while the server runs.
//!
//! Does not own: handshakes and their time limits, when to load again, what is done with a warning.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{self, Ticketer};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};

use crate::config;
use crate::error::{Error, Op};

/// What is offered by ALPN, the best first. Who offers nothing of it is refused (RFC 7301, section 3.2).
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];
/// The permission of people who are neither owner nor group to read.
const OTHERS_READ: u32 = 0o004;
/// No certificate chain and no key is longer; a file that is one was named by mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn certificate_error(path: &Path, cause: impl Into<Cause>) -> Error {
    Error::new(Op::LoadCertificate, path.display().to_string(), cause)
}

fn key_error(path: &Path, cause: impl Into<Cause>) -> Error {
    Error::new(Op::LoadKey, path.display().to_string(), cause)
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The configuration of new connections, which can be exchanged.
#[derive(Debug)]
pub struct Holder {
    files: config::Tls,
    current: RwLock<Arc<ServerConfig>>,
}

impl Holder {
    /// Reads the files. Beside it come warnings, each a sentence.
    pub fn load(files: &config::Tls) -> Result<(Self, Vec<String>), Error> {
        let (config, warnings) = load(files)?;
        Ok((Self { files: files.clone(), current: RwLock::new(Arc::new(config)) }, warnings))
    }

    /// For a connection that begins now.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again, for the connections from now on. After an error everything is as it was.
    pub fn reload(&self) -> Result<Vec<String>, Error> {
        let (config, warnings) = load(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(warnings)
    }
}

/// TLS 1.3 and 1.2, both protocols, and tickets, with which a client that comes back is spared half of the handshake.
fn load(files: &config::Tls) -> Result<(ServerConfig, Vec<String>), Error> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate)?;
    let (key, warnings) = private_key(&files.key)?;
    let signing = provider
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|cause| key_error(&files.key, cause))?;
    check_pair(&chain, &signing, files)?;

    let config = build(provider, chain, key).map_err(|cause| certificate_error(&files.certificate, cause))?;
    Ok((config, warnings))
}

fn build(
    provider: Arc<CryptoProvider>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let error = |cause: &str| certificate_error(path, cause);
    let (pem, _) = read(path).map_err(|cause| certificate_error(path, cause))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|cause| error(pem_words(&cause)))?;
    if chain.is_empty() {
        return Err(error("the file has no certificate (PEM)"));
    }
    Ok(chain)
}

/// The first key of the file, and what is wrong with the file though it can be used.
fn private_key(path: &Path) -> Result<(PrivateKeyDer<'static>, Vec<String>), Error> {
    let error = |cause: &str| key_error(path, cause);
    let (pem, mode) = read(path).map_err(|cause| key_error(path, cause))?;
    if [b"BEGIN ENCRYPTED PRIVATE KEY".as_slice(), b"Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| contains(&pem, mark))
    {
        return Err(error(
            "it is encrypted, and nobody is there to type its password ('openssl pkey' decrypts it)",
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|cause| match cause {
        PemError::NoItemsFound => error("the file has no private key (PEM)"),
        cause => error(pem_words(&cause)),
    })?;
    let warning = format!("everybody on this machine may read the key '{}'", path.display());
    let warnings = if mode & OTHERS_READ == 0 { Vec::new() } else { vec![warning] };
    Ok((key, warnings))
}

/// The key has to be that of the first certificate; the order of the others is between the clients and their patience.
fn check_pair(
    chain: &[CertificateDer<'static>],
    key: &Arc<dyn SigningKey>,
    files: &config::Tls,
) -> Result<(), Error> {
    // A key that does not tell its public half is left to the handshake.
    let fits = |certificate: &CertificateDer<'static>| {
        let pair = CertifiedKey::new(vec![certificate.clone()], key.clone());
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(true),
            Err(rustls::Error::InconsistentKeys(_)) => Ok(false),
            Err(cause) => Err(certificate_error(&files.certificate, cause)),
        }
    };
    for (at, certificate) in chain.iter().enumerate() {
        match (fits(certificate)?, at) {
            (false, _) => {}
            (true, 0) => return Ok(()),
            (true, _) => {
                let order = "its order is wrong: the server's own certificate has to be the first, then whoever signed it";
                return Err(certificate_error(&files.certificate, order));
            }
        }
    }
    let cause = format!("it does not belong to the certificate '{}'", files.certificate.display());
    Err(key_error(&files.key, cause))
}

/// What is in the file, and its mode, of the same moment.
fn read(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode();
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((bytes, mode))
}

/// Not the library's words: they repeat bytes of the file, which may be those of a key.
fn pem_words(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "its END line is missing",
        PemError::IllegalSectionStart { .. } => "its BEGIN line is broken",
        PemError::Base64Decode(_) => "it is not base64 between BEGIN and END",
        _ => "it is not PEM",
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
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
    struct Files {
        dir: tempfile::TempDir,
        roots: RootCertStore,
    }

    impl Files {
        fn new() -> Self {
            let mut files = Self { dir: tempfile::tempdir().unwrap(), roots: RootCertStore::empty() };
            files.issue();
            files
        }

        /// New ones; the client of the test trusts all issuers so far.
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

        fn tls(&self, certificate: &str, key: &str) -> config::Tls {
            let path = |name| self.dir.path().join(name);
            config::Tls { certificate: path(certificate), key: path(key), redirect_from: None }
        }

        fn error(&self, certificate: &str, key: &str) -> String {
            let error = Holder::load(&self.tls(certificate, key)).unwrap_err().to_string();
            error.replace(self.dir.path().to_str().unwrap(), "DIR")
        }

        fn client(
            &self,
            version: &'static SupportedProtocolVersion,
            protocols: &[&str],
        ) -> Arc<ClientConfig> {
            let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let builder = builder.with_protocol_versions(&[version]).unwrap();
            let mut config = builder.with_root_certificates(self.roots.clone()).with_no_client_auth();
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            Arc::new(config)
        }
    }

    /// Carries bytes between both ends until neither has any; the client after its handshake.
    fn shake(
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
        let files = Files::new();
        let (holder, warnings) = Holder::load(&files.tls("cert.pem", "key.pem")).unwrap();
        assert!(warnings.is_empty());
        for (version, number) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
            for (offered, agreed) in [
                (["http/1.1", "h2"].as_slice(), Some(b"h2".as_slice())),
                (&["http/1.1"], Some(b"http/1.1")),
                (&["http/1.0"], Some(b"http/1.0")),
                (&[], None),
            ] {
                let client = shake(holder.current(), &files.client(version, offered)).unwrap();
                assert_eq!(client.protocol_version(), Some(number));
                assert_eq!(client.alpn_protocol(), agreed);
            }
        }
        assert!(shake(holder.current(), &files.client(&TLS13, &["spdy/3"])).is_err());
    }

    #[test]
    fn a_client_that_comes_back_resumes() {
        let files = Files::new();
        let (holder, _) = Holder::load(&files.tls("cert.pem", "key.pem")).unwrap();
        assert!(holder.current().ticketer.enabled(), "clients keep their sessions, not the server");
        for version in [&TLS12, &TLS13] {
            let client = files.client(version, &["h2"]);
            let kinds = [(); 2].map(|()| shake(holder.current(), &client).unwrap().handshake_kind().unwrap());
            assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
        }
    }

    #[test]
    fn a_reload_is_for_the_connections_after_it() {
        let mut files = Files::new();
        let (holder, _) = Holder::load(&files.tls("cert.pem", "key.pem")).unwrap();
        let certificate = |files: &Files| {
            let client = shake(holder.current(), &files.client(&TLS13, &["h2"])).unwrap();
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
        let files = Files::new();
        let (holder, _) = Holder::load(&files.tls("cert.pem", "key.pem")).unwrap();
        let before = holder.current();
        files.write("cert.pem", "");
        assert!(holder.reload().unwrap_err().to_string().ends_with("the file has no certificate (PEM)"));
        assert!(Arc::ptr_eq(&before, &holder.current()));
        shake(holder.current(), &files.client(&TLS12, &["h2"])).unwrap();
    }

    #[test]
    fn errors_say_which_file_and_why() {
        let files = Files::new();
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
            ("reversed.pem", "key.pem", "certificate 'DIR/reversed.pem': its order is wrong: "),
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
        let files = Files::new();
        let key = files.dir.path().join("key.pem");
        for (mode, count) in [(0o600, 0), (0o640, 0), (0o644, 1)] {
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
            let (_, warnings) = Holder::load(&files.tls("cert.pem", "key.pem")).unwrap();
            assert_eq!(warnings.len(), count, "{mode:o}");
        }
    }
}
