//! TLS: loads certificates and keys into a rustls configuration, which can be replaced while the
//! server runs.
//!
//! Does not own: handshakes and their time limits, when to reload, and the display of warnings.

mod names;
mod self_signed;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{self, Ticketer};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{RootCertStore, ServerConfig};

use self::names::CertificateResolver;
pub(crate) use self::names::client_name;
use self::self_signed::SelfSigned;
use crate::config;
use crate::config::words::ClientAuth;
use crate::error::{Error, Op};

/// The ALPN protocols, in order of preference. A client that offers only others is refused (RFC
/// 7301, section 3.2).
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];
/// The mode bit that lets users other than owner and group read a file.
const OTHERS_READ: u32 = 0o004;
/// The maximum size of a certificate or key file; a larger file was named by mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn certificate_error(path: &Path, cause: impl Into<BoxedCause>) -> Error {
    Error::new(Op::LoadCertificate, path.display().to_string(), cause)
}

fn key_error(path: &Path, cause: impl Into<BoxedCause>) -> Error {
    Error::new(Op::LoadKey, path.display().to_string(), cause)
}

type BoxedCause = Box<dyn std::error::Error + Send + Sync>;

/// The TLS configuration of new connections, which a reload replaces.
///
/// ```
/// use fathom_serve::config::TlsConfig;
/// use fathom_serve::tls::ReloadableTls;
///
/// let files = TlsConfig { self_signed: true, ..TlsConfig::default() };
/// let (tls, warnings) = ReloadableTls::load(&files)?;
/// assert_eq!(warnings.len(), 1, "no client knows the certificate");
/// assert_eq!(tls.current().alpn_protocols, [&b"h2"[..], b"http/1.1", b"http/1.0"]);
/// tls.reload()?;
/// # Ok::<(), fathom_serve::Error>(())
/// ```
#[derive(Debug)]
pub struct ReloadableTls {
    files: config::TlsConfig,
    self_signed: Option<SelfSigned>,
    current: RwLock<Arc<ServerConfig>>,
}

impl ReloadableTls {
    /// Reads the files, or generates a certificate. Returns warnings as well, each a sentence.
    pub fn load(files: &config::TlsConfig) -> Result<(Self, Vec<String>), Error> {
        let self_signed =
            files.self_signed.then(|| SelfSigned::generate(&ring::default_provider())).transpose()?;
        let (config, mut warnings) = load(files, self_signed.as_ref())?;
        warnings.extend(self_signed.as_ref().map(|self_signed| self_signed.note.clone()));
        Ok((Self { files: files.clone(), self_signed, current: RwLock::new(Arc::new(config)) }, warnings))
    }

    /// Returns the configuration for a new connection.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again, for connections from now on. After an error the configuration is
    /// unchanged.
    pub fn reload(&self) -> Result<Vec<String>, Error> {
        let (config, warnings) = load(&self.files, self.self_signed.as_ref())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(warnings)
    }
}

/// Builds a configuration with TLS 1.3 and 1.2, both HTTP versions, and session tickets, which
/// spare a returning client half of the handshake.
fn load(
    files: &config::TlsConfig,
    self_signed: Option<&SelfSigned>,
) -> Result<(ServerConfig, Vec<String>), Error> {
    let provider = Arc::new(ring::default_provider());
    let mut warnings = Vec::new();
    let mut keys = Vec::new();
    let first = files.certificate.as_ref().zip(files.key.as_ref());
    let more = files.more.iter().map(|pair| (&pair.certificate, &pair.key));
    for (certificate, key) in first.into_iter().chain(more) {
        keys.push(pair(&provider, certificate, key, &mut warnings)?);
    }
    keys.extend(self_signed.map(|self_signed| Arc::clone(&self_signed.key)));
    let Some((first, others)) = keys.split_first() else {
        return Err(Error::configure("tls", "it has no certificate"));
    };
    let names = CertificateResolver::new(Arc::clone(first), others).map_err(|at| {
        let path = files.more.get(at).map(|pair| pair.certificate.as_path()).unwrap_or(Path::new(""));
        certificate_error(path, "it has no DNS name (subjectAltName)")
    })?;
    let verifier = verifier(files, &provider)?;
    let failed = |cause| Error::new(Op::Start, "TLS", BoxedCause::from(cause));
    Ok((build(provider, names, verifier).map_err(failed)?, warnings))
}

/// Loads a certificate chain and its key.
fn pair(
    provider: &CryptoProvider,
    certificate: &Path,
    key: &Path,
    warnings: &mut Vec<String>,
) -> Result<Arc<CertifiedKey>, Error> {
    let chain = certificates(certificate)?;
    let (private, warning) = private_key(key)?;
    warnings.extend(warning);
    let signing = provider.key_provider.load_private_key(private).map_err(|cause| key_error(key, cause))?;
    check_pair(&chain, &signing, certificate, key)?;
    Ok(Arc::new(CertifiedKey::new(chain, signing)))
}

/// Returns a verifier for client certificates, if they are configured.
fn verifier(
    files: &config::TlsConfig,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Error> {
    let Some(path) = &files.client_ca else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|cause| certificate_error(path, cause))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match files.client_auth {
        Some(ClientAuth::Optional) => builder.allow_unauthenticated(),
        Some(ClientAuth::Require) | None => builder,
    };
    builder.build().map(Some).map_err(|cause| certificate_error(path, cause))
}

fn build(
    provider: Arc<CryptoProvider>,
    names: CertificateResolver,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(names));
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

/// Reads the first key of a file. Returns a warning if the file is usable but unsafe.
fn private_key(path: &Path) -> Result<(PrivateKeyDer<'static>, Option<String>), Error> {
    let error = |cause: &str| key_error(path, cause);
    let (pem, mode) = read(path).map_err(|cause| key_error(path, cause))?;
    if [b"BEGIN ENCRYPTED PRIVATE KEY".as_slice(), b"Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| contains(&pem, mark))
    {
        return Err(error("it is encrypted: decrypt it with 'openssl pkey'"));
    }
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|cause| match cause {
        PemError::NoItemsFound => error("the file has no private key (PEM)"),
        cause => error(pem_words(&cause)),
    })?;
    let warning = format!("all users of this machine can read the key '{}'", path.display());
    Ok((key, (mode & OTHERS_READ != 0).then_some(warning)))
}

/// Checks that the key belongs to the first certificate. The order of the others is not checked.
fn check_pair(
    chain: &[CertificateDer<'static>],
    key: &Arc<dyn SigningKey>,
    certificate_path: &Path,
    key_path: &Path,
) -> Result<(), Error> {
    // A key without a public half is left to the handshake.
    let fits = |certificate: &CertificateDer<'static>| {
        let pair = CertifiedKey::new(vec![certificate.clone()], key.clone());
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(true),
            Err(rustls::Error::InconsistentKeys(_)) => Ok(false),
            Err(cause) => Err(certificate_error(certificate_path, cause)),
        }
    };
    for (at, certificate) in chain.iter().enumerate() {
        match (fits(certificate)?, at) {
            (false, _) => {}
            (true, 0) => return Ok(()),
            (true, _) => {
                let order =
                    "the order is wrong: the server's own certificate must come first, then its issuer's";
                return Err(certificate_error(certificate_path, order));
            }
        }
    }
    let cause = format!("it does not belong to the certificate '{}'", certificate_path.display());
    Err(key_error(key_path, cause))
}

/// Reads a file and its mode from the same descriptor.
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

/// Describes a PEM error. The library's message would repeat bytes of the file, which may be a key.
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
mod tests;
