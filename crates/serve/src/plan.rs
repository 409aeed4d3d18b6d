//! The compiled configuration: sites with their directories open and their rules compiled. All
//! workers share it, and a reload replaces it as a whole.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fathom_io::Errno;
use fathom_io::beneath::Links;
use http::StatusCode;

use crate::archive::format::ArchiveFormat;
use crate::auth::{Authenticator, CheckLimits};
use crate::config::words::{CleanUrlMode, Etag, Symlinks};
use crate::config::{self, Config, Limits};
use crate::conn::deadlines::Timeouts;
use crate::error::{Error, Op};
use crate::negotiate::Coding;
use crate::path::{RequestTarget, encode};
use crate::proxies::TrustedProxies;
use crate::rate::RequestRate;
use crate::rules::clean_urls::CleanUrls;
use crate::rules::entry_filter::EntryFilter;
use crate::rules::hosts::HostTable;
use crate::rules::mounts::{MountTable, skip};
use crate::rules::{self, Rules};
use crate::site_root::SiteRoot;
use crate::types::MediaTypes;

/// The default burst in seconds of the request rate: a page and its resources may be requested at
/// once.
const BURST_S: f64 = 10.0;
/// How long a client that sends no more may wait for an answer, or for more of it: perhaps it only
/// has nothing more to ask.
const GONE: Duration = Duration::from_secs(2);

/// The compiled configuration.
#[derive(Debug)]
pub(crate) struct Plan {
    sites: Vec<SitePlan>,
    roots: Vec<Arc<SiteRoot>>,
    hosts: HostTable,
    pub(crate) limits: Limits,
    /// The request rate that the clients of one address share; `None` for no limit.
    pub(crate) rate: Option<RequestRate>,
    pub(crate) password_checks: CheckLimits,
    pub(crate) deadlines: Timeouts,
    pub(crate) health: Option<String>,
    pub(crate) metrics: Option<String>,
    /// The proxies that are trusted to name their client.
    pub(crate) proxies: Option<TrustedProxies>,
}

/// A compiled site, or a mount of a site.
#[derive(Debug)]
pub(crate) struct SitePlan {
    /// The decoded path of the base, without slashes at its ends.
    base: Vec<u8>,
    /// The decoded path of the mount below the base, with a slash at its beginning and none at its
    /// end; empty for a site.
    pub(crate) mount_path: Vec<u8>,
    mounts: MountTable,
    /// The compiled mounts, by their numbers in `mounts`; empty for a mount.
    compiled_mounts: Vec<Self>,
    pub(crate) root: Arc<SiteRoot>,
    /// Whether the site has a directory. Without one, requests are refused.
    pub(crate) has_root: bool,
    /// The only names that the site answers; `None` for all. Other sites are chosen by their names.
    names: Option<HostTable>,
    /// The file name, if the root is a single file instead of a directory.
    pub(crate) single_file: Option<Vec<u8>>,
    pub(crate) rules: Rules,
    pub(crate) types: MediaTypes,
    pub(crate) auth: Option<Authenticator>,
    pub(crate) index: Vec<Vec<u8>>,
    pub(crate) clean: CleanUrls,
    pub(crate) listing: bool,
    /// The path of the root, if the program generates the answers in place of its files.
    pub(crate) explored: Option<PathBuf>,
    pub(crate) archives: Vec<ArchiveFormat>,
    pub(crate) dotfiles: bool,
    pub(crate) links: Links,
    /// The path of the fallback file below the root.
    pub(crate) fallback: Option<Vec<u8>>,
    error_pages: Vec<(String, Vec<u8>)>,
    pub(crate) precompressed: bool,
    /// The codings that bodies are compressed to while serving, in order of preference.
    pub(crate) codings: Vec<Coding>,
    pub(crate) compress: config::CompressionConfig,
    /// Whether a file that is too large to be compressed was reported, once for each configuration.
    pub(crate) reported_too_large: AtomicBool,
    /// Whether entity tags include the inode number.
    pub(crate) etag_has_inode: bool,
}

impl Plan {
    /// Compiles `config` and opens its directories.
    ///
    /// # Errors
    /// If a directory cannot be opened, or a value is invalid.
    pub(crate) fn new(config: &Config) -> Result<Arc<Self>, Error> {
        config.check()?;
        let tls = config.tls.is_some();
        let sites = rules::sites(config).map(|(key, site)| SitePlan::with_mounts(site, &key, tls));
        let mut sites = sites.collect::<Result<Vec<_>, _>>()?;
        if let Some(default) = sites.first_mut() {
            default.names = own_names(&config.site)?;
        }
        let ms = Duration::from_millis;
        Ok(Arc::new(Self {
            roots: sites.iter().flat_map(SitePlan::roots).collect(),
            sites,
            hosts: HostTable::new(&config.host)?,
            limits: config.limits.clone(),
            rate: rate(&config.limits),
            password_checks: password_checks(&config.limits),
            deadlines: Timeouts {
                headers: ms(config.limits.header_timeout_ms),
                idle: ms(config.limits.idle_timeout_ms),
                write: ms(config.limits.write_timeout_ms),
                stall: ms(config.limits.write_timeout_ms),
                gone: GONE,
            },
            health: config.health.clone(),
            metrics: config.metrics.clone(),
            proxies: TrustedProxies::new(&config.proxies)?,
        }))
    }

    /// Returns the root directories of all sites and mounts.
    pub(crate) fn roots(&self) -> &[Arc<SiteRoot>] {
        &self.roots
    }

    /// Returns the site with the name `host`; `None` if `host` is malformed.
    pub(crate) fn site(&self, host: &[u8]) -> Option<&SitePlan> {
        self.hosts.find(host).and_then(|number| self.sites.get(number))
    }

    /// Returns the site of requests without a host name.
    pub(crate) fn default_site(&self) -> Option<&SitePlan> {
        self.sites.first()
    }
}

/// Returns the names that the default site answers alone. One that is explored answers no name that
/// was not listed.
fn own_names(site: &config::SiteConfig) -> Result<Option<HostTable>, Error> {
    let is_explored = site.explore || site.mounts.iter().any(|mount| mount.as_site(site).explore);
    let has_names = is_explored || !site.names.is_empty();
    has_names.then(|| HostTable::of_names(&site.names)).transpose()
}

impl SitePlan {
    /// Returns the filter of entries for an authenticated `user`, or for clients in general.
    pub(crate) fn entry_filter(&self, user: Option<&str>) -> EntryFilter {
        let paths = self.auth.as_ref().map(Authenticator::audience_rules);
        EntryFilter::new(Arc::clone(&self.rules.access), paths, user)
    }

    /// Returns whether the site answers requests for `host`.
    pub(crate) fn answers(&self, host: &[u8]) -> bool {
        self.names.as_ref().is_none_or(|names| names.has(host))
    }

    fn with_mounts(site: &config::SiteConfig, key: &str, tls: bool) -> Result<Self, Error> {
        let load = |auth: Option<&config::AuthConfig>, key: &str| {
            auth.map(|auth| Authenticator::load(auth, key)).transpose()
        };
        let mut own = Self::new(site, key, tls, load(site.auth.as_ref(), key)?)?;
        for (mount, (key, as_site)) in site.mounts.iter().zip(site.mounted(key)) {
            let auth = match (&mount.auth, &own.auth) {
                (None, Some(inherited)) => Some(inherited.mounted(mount.at())),
                _ => load(as_site.auth.as_ref(), &key)?.map(|auth| auth.mounted(mount.at())),
            };
            own.compiled_mounts.push(Self::new(&as_site, &key, tls, auth)?);
        }
        own.mounts = MountTable::new(&site.mounts);
        Ok(own)
    }

    fn new(
        site: &config::SiteConfig,
        key: &str,
        tls: bool,
        auth: Option<Authenticator>,
    ) -> Result<Self, Error> {
        let (dir, single_file) = split_root(&site.root);
        if site.explore && single_file.is_some() {
            return Err(Error::configure(format!("{key}.root"), "a file, not a directory with inventories"));
        }
        // A root that names a file names the target of a link as well: follow the link even if it
        // leads out of the directory.
        let links = match (links(site), &single_file) {
            (Links::Within, Some(_)) => Links::Follow,
            (links, _) => links,
        };
        let below = |path: &String| path.trim_start_matches('/').as_bytes().to_vec();
        Ok(Self {
            base: site.base().trim_start_matches('/').as_bytes().to_vec(),
            mount_path: site.at.clone().into_bytes(),
            mounts: MountTable::default(),
            compiled_mounts: Vec::new(),
            root: if site.has_root() { root(&dir, links)? } else { Arc::new(SiteRoot::absent()) },
            has_root: site.has_root(),
            names: None,
            single_file,
            rules: Rules::new(site, key, tls)?,
            types: MediaTypes::new(site).map_err(|error| Error::configure(key, error))?,
            auth,
            index: site.index.iter().map(|name| name.as_bytes().to_vec()).collect(),
            clean: clean(site),
            listing: site.listing,
            explored: site.explore.then(|| site.root.clone()),
            archives: site.archives.clone(),
            dotfiles: site.dotfiles,
            links,
            fallback: site.fallback.as_ref().map(below),
            error_pages: site
                .error_pages
                .iter()
                .map(|(status, path)| (status.clone(), below(path)))
                .collect(),
            precompressed: site.precompressed,
            codings: site.compress.codings.clone(),
            compress: site.compress.clone(),
            reported_too_large: AtomicBool::new(false),
            etag_has_inode: site.etag == Some(Etag::Inode),
        })
    }

    /// Returns the root directories of the site and its mounts.
    fn roots(&self) -> impl Iterator<Item = Arc<SiteRoot>> {
        std::iter::once(self).chain(&self.compiled_mounts).map(|site| Arc::clone(&site.root))
    }

    /// Returns whether every request path is below the root of the site itself.
    pub(crate) fn has_single_root(&self) -> bool {
        self.base.is_empty() && self.mounts.is_empty()
    }

    /// Returns the site or mount that serves a percent-encoded request path, and the offset in the
    /// decoded path at which the path below its root begins. The offset is `None` for a path that
    /// is not below the base. A malformed path is left to the site.
    pub(crate) fn resolve_request(&self, path: &[u8]) -> (&Self, Option<usize>) {
        let Ok(target) = RequestTarget::parse(path) else { return (self, Some(0)) };
        let Some(base) = skip(&target.path, &self.base) else { return (self, None) };
        let (site, skip) = self.resolve_path(target.path.get(base..).unwrap_or_default());
        (site, Some(base + skip))
    }

    /// Returns the site or mount that serves the decoded `path` below the base, and the offset in
    /// it at which the path below its root begins.
    pub(crate) fn resolve_path(&self, path: &[u8]) -> (&Self, usize) {
        let found = self.mounts.find(path);
        found.and_then(|(number, skip)| Some((self.compiled_mounts.get(number)?, skip))).unwrap_or((self, 0))
    }

    /// Returns the decoded `path` below the root as a path below the base, with a slash at its
    /// beginning: the form that rules match.
    pub(crate) fn below_base(&self, path: &[u8]) -> Vec<u8> {
        [&self.mount_path[..], b"/", path].concat()
    }

    /// Returns the decoded `path` below the root as a request path, without a slash at its
    /// beginning.
    pub(crate) fn request_path(&self, path: &[u8]) -> Vec<u8> {
        let all = [&self.base[..], &self.mount_path[..], b"/", path].concat();
        let start = usize::from(all.starts_with(b"/"));
        all.get(start..).unwrap_or_default().to_vec()
    }

    /// Returns the percent-encoded path of `Server::addresses`, without a slash at its beginning.
    pub(crate) fn address(&self) -> String {
        let path = self.request_path(self.single_file.as_deref().unwrap_or_default());
        encode(&path).trim_start_matches('/').to_owned()
    }

    /// Returns the path below the root of the error page of `status`: the page of the exact status
    /// before the page of its class.
    pub(crate) fn error_page(&self, status: StatusCode) -> Option<&[u8]> {
        let class = if status.is_server_error() { "5xx" } else { "4xx" };
        let page = |word: &str| self.error_pages.iter().find(|(known, _)| known == word);
        page(status.as_str()).or_else(|| page(class)).map(|(_, path)| path.as_slice())
    }

    /// Returns whether responses may have a content coding.
    pub(crate) fn has_codings(&self) -> bool {
        self.precompressed || !self.codings.is_empty()
    }
}

fn rate(limits: &Limits) -> Option<RequestRate> {
    let burst = (limits.requests_per_s * BURST_S).ceil().clamp(1.0, f64::from(u32::MAX));
    RequestRate::new(limits.requests_per_s, limits.burst.unwrap_or(burst as u32))
}

fn password_checks(limits: &Limits) -> CheckLimits {
    let most = limits.wrong_passwords_per_min;
    CheckLimits { checks: limits.password_checks, wrong: RequestRate::new(f64::from(most) / 60.0, most) }
}

fn clean(site: &config::SiteConfig) -> CleanUrls {
    let mode = site.clean_urls.unwrap_or(CleanUrlMode::No);
    let mut suffixes: Vec<_> = site.suffixes.iter().map(|suffix| suffix.as_bytes().to_vec()).collect();
    if suffixes.is_empty() && mode != CleanUrlMode::No {
        suffixes.push(b".html".to_vec());
        suffixes.extend(site.index.iter().map(|name| [b"/", name.as_bytes()].concat()));
    }
    CleanUrls { suffixes, redirects: mode == CleanUrlMode::Redirect }
}

/// Returns the directory to open for the root `path`, and the file name in it if `path` is a
/// regular file.
pub(crate) fn split_root(path: &Path) -> (PathBuf, Option<Vec<u8>>) {
    match path.file_name() {
        Some(name) if std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (dir.to_owned(), Some(name.as_bytes().to_vec()))
        }
        _ => (path.to_owned(), None),
    }
}

fn root(dir: &Path, links: Links) -> Result<Arc<SiteRoot>, Error> {
    let failed = |errno| Error::new(Op::Open, dir.display().to_string(), open_cause(errno));
    SiteRoot::open(dir, links).map(Arc::new).map_err(failed)
}

/// Returns the policy for symbolic links below the root of `site`.
pub(crate) fn links(site: &config::SiteConfig) -> Links {
    match site.symlinks {
        Some(Symlinks::Never) => Links::Never,
        Some(Symlinks::Follow) => Links::Follow,
        Some(Symlinks::Within) | None => Links::Within,
    }
}

/// Returns the cause of an error of opening a directory.
pub(crate) fn open_cause(errno: Errno) -> Box<dyn std::error::Error + Send + Sync> {
    match errno {
        Errno::NOSYS => "openat2(2) is missing (Linux 5.6 or newer has it) or forbidden".into(),
        errno => std::io::Error::from(errno).into(),
    }
}
