//! The effective configuration. Sources in ascending precedence: built-in values, the file, the
//! environment, the options.
//!
//! Does not own the check of the result, which is in the server's library.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use fathom_serve::archive::ArchiveFormat;
use fathom_serve::config::words::{AccessLogFormat, CleanUrlMode};
use fathom_serve::config::{
    AuthRule, CacheControlRule, CertificateFiles, Config, HeaderRule, MountConfig, TlsConfig,
};
use fathom_serve::generator::BODY_BYTES_MAX;
use fathom_serve::negotiate::Coding;

use super::table::{ADDRESSES, ANSWERS, ENGINE, FILES, FLAGS, LIMITS, ServeOption, WATCH};
use super::value::{OptionArg, Switch, address, list};

/// The default address.
const ADDRESS: &str = "127.0.0.1";
const PORT: u16 = 8080;
/// The default port for plain requests to redirect.
const PLAIN_PORT: u16 = 80;
const ADDRESS_FORMS: &str =
    "expected an address like 8080, 127.0.0.1:8080, [::1]:80, :80, unix:/run/fathom.sock or systemd";

/// Returns `config`, overridden by `sources` in ascending precedence. Error messages do not contain
/// the program name.
pub(crate) fn merge(config: Config, sources: &[Vec<OptionArg>]) -> Result<Config, Vec<u8>> {
    let tls = config.tls.clone().unwrap_or_default();
    let more = tls.more.iter().map(|pair| (pair.certificate.clone(), pair.key.clone()));
    let (mut certificates, mut keys): (Vec<_>, Vec<_>) = more.unzip();
    certificates.splice(..0, tls.certificate.clone());
    keys.splice(..0, tls.key.clone());
    let (mounted, has_tls_options) = (Vec::new(), false);
    let mut builder = ConfigBuilder { port: PORT, tls, certificates, keys, mounted, has_tls_options, config };
    for source in sources {
        builder.clear(source);
        source.iter().try_for_each(|given| builder.apply(given))?;
    }
    builder.finish()
}

/// The configuration assembled so far.
struct ConfigBuilder {
    config: Config,
    port: u16,
    tls: TlsConfig,
    certificates: Vec<PathBuf>,
    keys: Vec<PathBuf>,
    /// The paths mounted by the current source.
    mounted: Vec<String>,
    /// Whether an option is about TLS. The check reports errors of the file alone.
    has_tls_options: bool,
}

impl ConfigBuilder {
    /// Clears the lists that `source` replaces as a whole. Addresses are replaced together, and so
    /// are certificates and keys: values of a source with lower precedence are not combined with
    /// these.
    fn clear(&mut self, source: &[OptionArg]) {
        self.mounted.clear();
        if source.iter().any(|given| matches!(given.key, ServeOption::Listen | ServeOption::Port)) {
            self.config.listen.clear();
        }
        if source.iter().any(|given| given.key == ServeOption::Certificate) {
            self.certificates.clear();
        }
        if source.iter().any(|given| given.key == ServeOption::CertificateSecret) {
            self.keys.clear();
        }
    }

    fn apply(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let section =
            FLAGS.iter().find(|flag| flag.own_key() == Some(given.key)).map_or("", |flag| flag.section);
        match section {
            ADDRESSES => self.address(given),
            FILES => self.file(given),
            ANSWERS => self.answer(given),
            ENGINE => self.engine(given),
            LIMITS => self.limit(given),
            WATCH => self.watch(given),
            _ => Ok(()),
        }
    }

    fn address(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        self.has_tls_options |= !matches!(
            given.key,
            ServeOption::Listen | ServeOption::Port | ServeOption::TrustedProxies | ServeOption::ClientFrom
        );
        match given.key {
            ServeOption::Listen => {
                let all = list(given.text()?);
                if all.is_empty() || all.iter().any(|text| address(text, PORT).is_none()) {
                    return Err(given.refuse(ADDRESS_FORMS));
                }
                self.config.listen.extend(all);
            }
            ServeOption::Port => self.port = given.number("expected a port, a number up to 65535")?,
            ServeOption::Certificate => self.certificates.push(given.path()?),
            ServeOption::CertificateSecret => self.keys.push(given.path()?),
            ServeOption::SelfSigned => self.tls.self_signed = given.yes()?,
            ServeOption::Http3 => self.tls.http3 = given.yes()?,
            ServeOption::ClientCa => self.tls.client_ca = Some(given.path()?),
            ServeOption::ClientAuth => self.tls.client_auth = Some(given.word()?),
            ServeOption::TrustedProxies => self.config.proxies.addresses = list(given.text()?),
            ServeOption::ClientFrom => self.config.proxies.source = Some(given.word()?),
            _ => {
                let from = address(given.text()?, PLAIN_PORT);
                self.tls.redirect_from = Some(from.ok_or_else(|| given.refuse(ADDRESS_FORMS))?);
            }
        }
        Ok(())
    }

    /// Mounts a directory. If a source with lower precedence has mounted the path, replaces the
    /// directory and keeps the other settings. Rejecting a duplicate within one source is up to the
    /// check.
    fn mount(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let (path, root) = given.path_pair("expected PATH=DIR, like /docs=/srv/docs")?;
        let mount = MountConfig { path, root, ..MountConfig::default() };
        let at = mount.at().to_owned();
        let mounts = &mut self.config.site.mounts;
        match mounts.iter_mut().find(|known| known.at() == at).filter(|_| !self.mounted.contains(&at)) {
            Some(known) => known.root = mount.root,
            None => mounts.push(mount),
        }
        self.mounted.push(at);
        Ok(())
    }

    fn file(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let site = &mut self.config.site;
        match given.key {
            ServeOption::Root => site.root = given.path()?,
            ServeOption::Base => site.base = Some(given.text()?.to_owned()),
            ServeOption::Mount => self.mount(given)?,
            ServeOption::Index => site.index = list(given.text()?),
            ServeOption::Listing => site.listing = given.yes()?,
            ServeOption::Explore => site.explore = given.yes()?,
            ServeOption::Names => site.names = some(given, "host names")?,
            ServeOption::Archive => {
                site.archives = match given.switch()? {
                    Switch::Off => Vec::new(),
                    Switch::On => ArchiveFormat::ALL.to_vec(),
                    Switch::Value(_) => given.words()?,
                }
            }
            ServeOption::Spa => site.fallback = optional_path(given, "/index.html")?,
            ServeOption::ErrorPage => {
                let (status, path) = given.pair('=', "expected STATUS=PATH, like 404=/404.html")?;
                site.error_pages.insert(status, path);
            }
            ServeOption::CleanUrls => {
                site.clean_urls = Some(match given.switch()? {
                    Switch::Off => CleanUrlMode::No,
                    Switch::On => CleanUrlMode::Yes,
                    Switch::Value(_) => given.word()?,
                })
            }
            ServeOption::Try => site.suffixes = list(given.text()?),
            ServeOption::Hide => site.hide.push(given.text()?.to_owned()),
            ServeOption::Deny => site.deny.push(given.text()?.to_owned()),
            ServeOption::Dotfiles => site.dotfiles = given.yes()?,
            ServeOption::Symlinks => site.symlinks = Some(given.word()?),
            ServeOption::Precompressed => site.precompressed = given.yes()?,
            ServeOption::CompressMax => site.compress.max_bytes = given.size()?,
            _ => {
                site.compress.codings = match given.switch()? {
                    Switch::Off => Vec::new(),
                    Switch::On => Coding::ALL.to_vec(),
                    Switch::Value(_) => given.words()?,
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let site = &mut self.config.site;
        match given.key {
            ServeOption::Etag => site.etag = Some(given.word()?),
            ServeOption::CacheControl => {
                let (path, value) = given.pair('=', "expected GLOB=VALUE, like '*.js=max-age=3600'")?;
                site.cache_control.push(CacheControlRule { path, value, always: false });
            }
            ServeOption::Header => site.headers.push(header(given)?),
            ServeOption::SecurityHeaders => site.security_headers = given.yes()?,
            ServeOption::Cors => match given.switch()? {
                Switch::Off => site.cors = None,
                Switch::On => site.cors.get_or_insert_default().origins = vec!["*".to_owned()],
                Switch::Value(text) => site.cors.get_or_insert_default().origins = list(text),
            },
            // This option does not set origins. The check reports their absence.
            ServeOption::CorsHeaders => site.cors.get_or_insert_default().allow_headers = list(given.text()?),
            ServeOption::Auth => {
                let (user, hash) = given.pair(':', "expected USER:HASH, like 'alice:$2b$...'")?;
                site.auth.get_or_insert_default().users.insert(user, hash);
            }
            ServeOption::AuthFile => site.auth.get_or_insert_default().file = Some(given.path()?),
            ServeOption::AuthPath => site.auth.get_or_insert_default().paths.push(auth_rule(given)?),
            ServeOption::AllowFrom => site.allow_from.extend(some(given, "addresses or networks")?),
            ServeOption::DenyFrom => site.deny_from.extend(some(given, "addresses or networks")?),
            ServeOption::Maintenance => site.maintenance.enabled = given.yes()?,
            _ => site.maintenance.flag_file = Some(given.path()?),
        }
        Ok(())
    }

    fn engine(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let config = &mut self.config;
        match given.key {
            ServeOption::Sendfile => config.sendfile = Some(given.word()?),
            ServeOption::Io => config.io = Some(given.word()?),
            ServeOption::Workers => {
                config.workers = Some(given.number::<NonZeroUsize>("expected a number of at least 1")?)
            }
            ServeOption::PoolThreads => {
                config.pool.get_or_insert_default().threads =
                    given.number::<NonZeroUsize>("expected a number of at least 1")?.get()
            }
            ServeOption::CacheFiles => config.cache.files = given.number("expected a number")?,
            ServeOption::CacheAge => config.cache.age_ms = given.time()?,
            _ => config.cache.bytes = given.size()?,
        }
        Ok(())
    }

    fn limit(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        let limits = &mut self.config.limits;
        match given.key {
            ServeOption::MaxConnections => {
                limits.connections = given.number::<NonZeroUsize>("expected a number of at least 1")?.get()
            }
            ServeOption::MaxHeaderBytes => limits.header_bytes = given.size()?,
            ServeOption::MaxHeaders => limits.headers = given.number("expected a number")?,
            ServeOption::MaxTarget => limits.target_bytes = given.size()?,
            ServeOption::MaxBody => limits.body_bytes = given.size()?,
            ServeOption::MaxRanges => limits.ranges = given.number("expected a number")?,
            ServeOption::MaxStreams => limits.streams = given.number("expected a number")?,
            ServeOption::MaxListingBytes => limits.listing_bytes = given.size()?,
            ServeOption::MaxArchives => limits.archives = given.number("expected a number")?,
            ServeOption::MaxRate => limits.requests_per_s = rate(given)?,
            ServeOption::MaxBurst => {
                limits.burst = Some(given.number::<NonZeroU32>("expected a number of at least 1")?.get())
            }
            ServeOption::MaxPasswordChecks => limits.password_checks = given.number("expected a number")?,
            ServeOption::MaxWrongPasswords => {
                limits.wrong_passwords_per_min = given.number("expected a number")?
            }
            ServeOption::MaxBuffers => limits.buffer_bytes = given.size()?,
            ServeOption::HeaderTimeout => limits.header_timeout_ms = given.time()?,
            ServeOption::IdleTimeout => limits.idle_timeout_ms = given.time()?,
            ServeOption::WriteTimeout => limits.write_timeout_ms = given.time()?,
            ServeOption::DrainNotice => limits.drain_notice_ms = given.time()?,
            _ => limits.drain_timeout_ms = given.time()?,
        }
        Ok(())
    }

    fn watch(&mut self, given: &OptionArg) -> Result<(), Vec<u8>> {
        match given.key {
            ServeOption::Health => self.config.health = optional_path(given, "/health")?,
            ServeOption::Metrics => self.config.metrics = optional_path(given, "/metrics")?,
            ServeOption::ErrorLog => {
                let on_error = given.value.as_deref() == Some(b"-");
                self.config.error_log.file = if on_error { None } else { Some(given.path()?) };
            }
            ServeOption::LogFormat => self.config.access_log.format = Some(given.word()?),
            _ if given.switch().is_ok_and(|switch| switch == Switch::Off) => {
                self.config.access_log.format = Some(AccessLogFormat::Off)
            }
            _ => {
                let on_output = given.value.as_deref() == Some(b"-")
                    || given.switch().is_ok_and(|switch| switch == Switch::On);
                let log = &mut self.config.access_log;
                log.file = if on_output { None } else { Some(given.path()?) };
                let format = log.format.filter(|format| *format != AccessLogFormat::Off);
                log.format = format.or(Some(AccessLogFormat::Combined));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Config, Vec<u8>> {
        if self.config.listen.is_empty() {
            self.config.listen.push(ADDRESS.to_owned());
        }
        // Invalid addresses are left for the check, which reports their position.
        self.config.listen.iter_mut().for_each(|text| {
            if let Some(whole) = address(text, self.port) {
                *text = whole;
            }
        });
        if self.has_tls_options {
            self.config.tls = tls(self.tls, self.certificates, self.keys)?;
        }
        if self.config.site.explore && self.config.limits.listing_bytes < BODY_BYTES_MAX {
            return Err(
                format!("--explore requires --max-listing-bytes={BODY_BYTES_MAX} or more").into_bytes()
            );
        }
        Ok(self.config)
    }
}

/// Returns the settings of TLS; `None` if it is off.
fn tls(
    mut tls: TlsConfig,
    certificates: Vec<PathBuf>,
    keys: Vec<PathBuf>,
) -> Result<Option<TlsConfig>, Vec<u8>> {
    if certificates.len() != keys.len() {
        return Err(b"--tls-cert and --tls-key must be given equally often".to_vec());
    }
    let mut pairs = certificates.into_iter().zip(keys);
    (tls.certificate, tls.key) = pairs.next().unzip();
    tls.more = pairs.map(|(certificate, key)| CertificateFiles { certificate, key }).collect();
    let is_off = tls.certificate.is_none() && !tls.self_signed;
    if is_off && tls != TlsConfig::default() {
        return Err(b"TLS requires --tls-cert and --tls-key, or --tls-self-signed".to_vec());
    }
    Ok((!is_off).then_some(tls))
}

/// Returns the path of an optional endpoint; `None` if it is turned off.
fn optional_path(given: &OptionArg, usual: &str) -> Result<Option<String>, Vec<u8>> {
    Ok(match given.switch()? {
        Switch::Off => None,
        Switch::On => Some(usual.to_owned()),
        Switch::Value(path) => Some(path.to_owned()),
    })
}

/// Parses a list that has to have an element: an empty one, of a variable that is not set, would
/// admit everybody.
fn some(given: &OptionArg, elements: &str) -> Result<Vec<String>, Vec<u8>> {
    let found = list(given.text()?);
    if found.is_empty() {
        Err(given.refuse(&format!("expected {elements}, separated by commas")))
    } else {
        Ok(found)
    }
}

/// Parses a number of requests per second, which may have a fraction.
fn rate(given: &OptionArg) -> Result<f64, Vec<u8>> {
    let text = given.text()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| given.refuse("expected a number of requests, like 20 or 0.5"))
}

fn auth_rule(given: &OptionArg) -> Result<AuthRule, Vec<u8>> {
    let (path, users) =
        given.pair('=', "expected GLOB=USERS, like '/private=alice,bob', '/staff=*' or '/public=-'")?;
    Ok(match users.as_str() {
        "-" => AuthRule { path, public: true, ..AuthRule::default() },
        users => AuthRule { path, users: list(users), ..AuthRule::default() },
    })
}

fn header(given: &OptionArg) -> Result<HeaderRule, Vec<u8>> {
    let expected = "expected GLOB=NAME:VALUE, like '*.pdf=X-Robots-Tag:noindex'";
    let (path, header) = given.pair('=', expected)?;
    let (name, value) = header.split_once(':').ok_or_else(|| given.refuse(expected))?;
    Ok(HeaderRule { path, set: [(name.trim().to_owned(), value.trim().to_owned())].into(), always: false })
}

#[cfg(test)]
mod tests;
