//! One configuration from all sources: what is built in, the file, the environment, the options; the later wins.
//!
//! Does not own: whether the result makes sense as a whole, which the server's library says.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use fathom_serve::config::check::{
    ARCHIVES, CLEAN_URLS, CLIENT_AUTH, CODINGS, ETAGS, LOG_FORMATS, MODELS, SENDFILE, SYMLINKS,
};
use fathom_serve::config::{AuthRule, CacheRule, Config, HeaderRule, Mount, Pair, Tls};
use fathom_serve::proxies::SOURCES;

use super::table::{ADDRESSES, ANSWERS, ENGINE, FILES, FLAGS, Key, LIMITS, WATCH};
use super::value::{Given, Switch, address, list};

/// The address where none is given.
const ADDRESS: &str = "127.0.0.1";
const PORT: u16 = 8080;
/// Where plain requests are expected.
const PLAIN_PORT: u16 = 80;
const ADDRESS_FORMS: &str =
    "an address is like 8080, 127.0.0.1:8080, [::1]:80, :80, unix:/run/fathom.sock or systemd";

/// `config`, overruled by what each of `sources` gives, the last most. A message is without the program's name.
pub(crate) fn merge(config: Config, sources: &[Vec<Given>]) -> Result<Config, Vec<u8>> {
    let tls = config.tls.clone().unwrap_or_default();
    let more = tls.more.iter().map(|pair| (pair.certificate.clone(), pair.key.clone()));
    let (mut certificates, mut keys): (Vec<_>, Vec<_>) = more.unzip();
    certificates.splice(..0, tls.certificate.clone());
    keys.splice(..0, tls.key.clone());
    let mut merge = Merge { port: PORT, tls, certificates, keys, mounted: Vec::new(), config };
    for source in sources {
        merge.clear(source);
        source.iter().try_for_each(|given| merge.take(given))?;
    }
    merge.finish()
}

/// What is known so far.
struct Merge {
    config: Config,
    port: u16,
    tls: Tls,
    certificates: Vec<PathBuf>,
    keys: Vec<PathBuf>,
    /// The paths that the source at hand has mounted.
    mounted: Vec<String>,
}

impl Merge {
    /// Addresses are replaced together, and so are certificates and keys: those of a lesser source
    /// do not stay beside these, or keep their port.
    fn clear(&mut self, source: &[Given]) {
        self.mounted.clear();
        if source.iter().any(|given| matches!(given.key, Key::Listen | Key::Port)) {
            self.config.listen.clear();
        }
        if source.iter().any(|given| given.key == Key::Certificate) {
            self.certificates.clear();
        }
        if source.iter().any(|given| given.key == Key::CertificateSecret) {
            self.keys.clear();
        }
    }

    fn take(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let section = FLAGS.iter().find(|flag| flag.key == given.key).map_or("", |flag| flag.section);
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

    fn address(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        match given.key {
            Key::Listen => {
                let all = list(given.text()?);
                if all.is_empty() || all.iter().any(|text| address(text, PORT).is_none()) {
                    return Err(given.refuse(ADDRESS_FORMS));
                }
                self.config.listen.extend(all);
            }
            Key::Port => self.port = given.number("a port is a number up to 65535")?,
            Key::Certificate => self.certificates.push(given.path()?),
            Key::CertificateSecret => self.keys.push(given.path()?),
            Key::SelfSigned => self.tls.self_signed = given.yes()?,
            Key::Http3 => self.tls.http3 = given.yes()?,
            Key::ClientCa => self.tls.client_ca = Some(given.path()?),
            Key::ClientAuth => self.tls.client_auth = Some(given.one_of(CLIENT_AUTH)?),
            Key::TrustedProxies => self.config.proxies.addresses = list(given.text()?),
            Key::ClientFrom => self.config.proxies.source = Some(given.one_of(SOURCES)?),
            _ => {
                let from = address(given.text()?, PLAIN_PORT);
                self.tls.redirect_from = Some(from.ok_or_else(|| given.refuse(ADDRESS_FORMS))?);
            }
        }
        Ok(())
    }

    /// Mounts a directory. At a path that a lesser source has mounted, it takes the directory's place
    /// and keeps the settings; twice in one source is for the check to refuse.
    fn mount(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let (path, root) = given.path_pair("a path, '=' and a directory, like /docs=/srv/docs")?;
        let mount = Mount { path, root, ..Mount::default() };
        let at = mount.at().to_owned();
        let mounts = &mut self.config.site.mounts;
        match mounts.iter_mut().find(|known| known.at() == at).filter(|_| !self.mounted.contains(&at)) {
            Some(known) => known.root = mount.root,
            None => mounts.push(mount),
        }
        self.mounted.push(at);
        Ok(())
    }

    fn file(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let site = &mut self.config.site;
        match given.key {
            Key::Root => site.root = given.path()?,
            Key::Base => site.base = Some(given.text()?.to_owned()),
            Key::Mount => self.mount(given)?,
            Key::Index => site.index = list(given.text()?),
            Key::Listing => site.listing = given.yes()?,
            Key::Archive => {
                site.archives = match given.switch()? {
                    Switch::Off => Vec::new(),
                    Switch::On => ARCHIVES.iter().map(|format| (*format).to_owned()).collect(),
                    Switch::Value(text) => list(text),
                }
            }
            Key::Spa => site.fallback = place(given, "/index.html")?,
            Key::ErrorPage => {
                let (status, path) = given.pair('=', "a status, '=' and a path")?;
                site.error_pages.insert(status, path);
            }
            Key::CleanUrls => {
                site.clean_urls = Some(match given.switch()? {
                    Switch::Off => "no".to_owned(),
                    Switch::On => "yes".to_owned(),
                    Switch::Value(_) => given.one_of(CLEAN_URLS)?,
                })
            }
            Key::Try => site.suffixes = list(given.text()?),
            Key::Hide => site.hide.push(given.text()?.to_owned()),
            Key::Deny => site.deny.push(given.text()?.to_owned()),
            Key::Dotfiles => site.dotfiles = given.yes()?,
            Key::Symlinks => site.symlinks = Some(given.one_of(SYMLINKS)?),
            Key::Precompressed => site.precompressed = given.yes()?,
            Key::CompressMax => site.compress.max_bytes = given.size()?,
            _ => {
                site.compress.codings = match given.switch()? {
                    Switch::Off => Vec::new(),
                    Switch::On => CODINGS.iter().map(|coding| (*coding).to_owned()).collect(),
                    Switch::Value(text) => list(text),
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let site = &mut self.config.site;
        match given.key {
            Key::Etag => site.etag = Some(given.one_of(ETAGS)?),
            Key::CacheControl => {
                let (path, value) = given.pair('=', "a glob, '=' and a value")?;
                site.cache_control.push(CacheRule { path, value });
            }
            Key::Header => site.headers.push(header(given)?),
            Key::SecurityHeaders => site.security_headers = given.yes()?,
            Key::Cors => match given.switch()? {
                Switch::Off => site.cors = None,
                Switch::On => site.cors.get_or_insert_default().origins = vec!["*".to_owned()],
                Switch::Value(text) => site.cors.get_or_insert_default().origins = list(text),
            },
            // Origins are the option's that turns it on; without them the check says so.
            Key::CorsHeaders => site.cors.get_or_insert_default().allow_headers = list(given.text()?),
            Key::Auth => {
                let (user, hash) = given.pair(':', "a name, ':' and a hash")?;
                site.auth.get_or_insert_default().users.insert(user, hash);
            }
            Key::AuthFile => site.auth.get_or_insert_default().file = Some(given.path()?),
            Key::AuthPath => site.auth.get_or_insert_default().paths.push(auth_rule(given)?),
            Key::AllowFrom => site.allow_from.extend(list(given.text()?)),
            Key::DenyFrom => site.deny_from.extend(list(given.text()?)),
            Key::Maintenance => site.maintenance.enabled = given.yes()?,
            _ => site.maintenance.flag_file = Some(given.path()?),
        }
        Ok(())
    }

    fn engine(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let config = &mut self.config;
        match given.key {
            Key::Sendfile => config.sendfile = Some(given.one_of(SENDFILE)?),
            Key::Io => config.io = Some(given.one_of(MODELS)?),
            Key::Workers => config.workers = Some(given.number::<NonZeroUsize>("a number, at least 1")?),
            Key::PoolThreads => {
                config.pool.get_or_insert_default().threads =
                    given.number::<NonZeroUsize>("a number, at least 1")?.get()
            }
            Key::CacheFiles => config.cache.files = given.number("a number")?,
            Key::CacheAge => config.cache.age_ms = given.time()?,
            _ => config.cache.bytes = given.size()?,
        }
        Ok(())
    }

    fn limit(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        let limits = &mut self.config.limits;
        match given.key {
            Key::MaxConnections => {
                limits.connections = given.number::<NonZeroUsize>("a number, at least 1")?.get()
            }
            Key::MaxHeaderBytes => limits.header_bytes = given.size()?,
            Key::MaxHeaders => limits.headers = given.number("a number")?,
            Key::MaxTarget => limits.target_bytes = given.size()?,
            Key::MaxBody => limits.body_bytes = given.size()?,
            Key::MaxRanges => limits.ranges = given.number("a number")?,
            Key::MaxStreams => limits.streams = given.number("a number")?,
            Key::MaxListingBytes => limits.listing_bytes = given.size()?,
            Key::MaxArchives => limits.archives = given.number("a number")?,
            Key::MaxRate => limits.requests_per_s = rate(given)?,
            Key::MaxBurst => limits.burst = Some(given.number::<NonZeroU32>("a number, at least 1")?.get()),
            Key::MaxBuffers => limits.buffer_bytes = given.size()?,
            Key::HeaderTimeout => limits.header_timeout_ms = given.time()?,
            Key::IdleTimeout => limits.idle_timeout_ms = given.time()?,
            Key::WriteTimeout => limits.write_timeout_ms = given.time()?,
            Key::DrainNotice => limits.drain_notice_ms = given.time()?,
            _ => limits.drain_timeout_ms = given.time()?,
        }
        Ok(())
    }

    fn watch(&mut self, given: &Given) -> Result<(), Vec<u8>> {
        match given.key {
            Key::Health => self.config.health = place(given, "/health")?,
            Key::Metrics => self.config.metrics = place(given, "/metrics")?,
            Key::ErrorLog => {
                let on_error = given.value.as_deref() == Some(b"-");
                self.config.error_log.file = if on_error { None } else { Some(given.path()?) };
            }
            Key::LogFormat => self.config.access_log.format = Some(given.one_of(LOG_FORMATS)?),
            _ if given.switch().is_ok_and(|switch| switch == Switch::Off) => {
                self.config.access_log.format = Some("off".to_owned())
            }
            _ => {
                let on_output = given.value.as_deref() == Some(b"-")
                    || given.switch().is_ok_and(|switch| switch == Switch::On);
                let log = &mut self.config.access_log;
                log.file = if on_output { None } else { Some(given.path()?) };
                log.format =
                    log.format.take().filter(|format| format != "off").or(Some("combined".to_owned()));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Config, Vec<u8>> {
        if self.config.listen.is_empty() {
            self.config.listen.push(ADDRESS.to_owned());
        }
        // What cannot be completed is left for the check, which says where it stands.
        self.config.listen.iter_mut().for_each(|text| {
            if let Some(whole) = address(text, self.port) {
                *text = whole;
            }
        });
        let Self { mut tls, certificates, keys, .. } = self;
        if certificates.len() != keys.len() {
            return Err(b"encryption takes both --tls-cert and --tls-key, as many of each".to_vec());
        }
        let mut pairs = certificates.into_iter().zip(keys);
        (tls.certificate, tls.key) = pairs.next().unzip();
        tls.more = pairs.map(|(certificate, key)| Pair { certificate, key }).collect();
        let is_off = tls.certificate.is_none() && !tls.self_signed;
        if is_off && tls != Tls::default() {
            return Err(b"encryption takes --tls-cert and --tls-key, or --tls-self-signed".to_vec());
        }
        self.config.tls = (!is_off).then_some(tls);
        Ok(self.config)
    }
}

/// The path where something is found, if it is on.
fn place(given: &Given, usual: &str) -> Result<Option<String>, Vec<u8>> {
    Ok(match given.switch()? {
        Switch::Off => None,
        Switch::On => Some(usual.to_owned()),
        Switch::Value(path) => Some(path.to_owned()),
    })
}

/// A number of requests a second, perhaps with a fraction.
fn rate(given: &Given) -> Result<f64, Vec<u8>> {
    let text = given.text()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| given.refuse("a number of requests, like 20 or 0.5"))
}

fn auth_rule(given: &Given) -> Result<AuthRule, Vec<u8>> {
    let (path, users) = given.pair('=', "a glob, '=' and names of users, '*' or '-'")?;
    Ok(match users.as_str() {
        "-" => AuthRule { path, public: true, ..AuthRule::default() },
        users => AuthRule { path, users: list(users), ..AuthRule::default() },
    })
}

fn header(given: &Given) -> Result<HeaderRule, Vec<u8>> {
    let expected = "a glob, '=', a name, ':' and a value";
    let (path, header) = given.pair('=', expected)?;
    let (name, value) = header.split_once(':').ok_or_else(|| given.refuse(expected))?;
    Ok(HeaderRule { path, set: [(name.trim().to_owned(), value.trim().to_owned())].into() })
}

#[cfg(test)]
mod tests;
