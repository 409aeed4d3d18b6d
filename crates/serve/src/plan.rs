//! What a configuration comes to: sites with their directories open and their rules compiled, shared by all workers, exchanged whole on
//! a reload.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fathom_io::Errno;
use fathom_io::beneath::Links;
use http::StatusCode;

use crate::answer::Clean;
use crate::archive::Format;
use crate::auth::Checker;
use crate::config::{self, Config, Limits};
use crate::conn::pulse::Patience as Deadlines;
use crate::error::{Error, Op};
use crate::files::Followed;
use crate::negotiate::Coding;
use crate::path::{Target, encode};
use crate::proxies::Proxies;
use crate::rate::Rate;
use crate::rules::hosts::Hosts;
use crate::rules::mounts::{Mounts, skip};
use crate::rules::{self, Rules};
use crate::types::Types;

/// A page with all that belongs to it may be asked for at once: the requests of this time, unless a
/// configuration says how many.
const BURST_S: f64 = 10.0;

/// The whole configuration, as requests need it.
#[derive(Debug)]
pub(crate) struct Plan {
    sites: Vec<Site>,
    roots: Vec<Arc<Followed>>,
    hosts: Hosts,
    pub(crate) limits: Limits,
    /// The request rate that the clients of one address share; `None` for no limit.
    pub(crate) rate: Option<Rate>,
    pub(crate) deadlines: Deadlines,
    pub(crate) health: Option<String>,
    pub(crate) metrics: Option<String>,
    /// The neighbours that tell whom they speak for.
    pub(crate) proxies: Option<Proxies>,
}

/// A site, or a mount of one.
#[derive(Debug)]
pub(crate) struct Site {
    /// The decoded path of the base, without slashes at its ends.
    base: Vec<u8>,
    /// The decoded path of the mount below the base, with a slash at its beginning and none at its
    /// end; empty for a site.
    pub(crate) at: Vec<u8>,
    mounts: Mounts,
    /// By their numbers in `mounts`; none for a mount.
    mounted: Vec<Self>,
    pub(crate) root: Arc<Followed>,
    /// The name of the one file below the root that is served, if it is one.
    pub(crate) only: Option<Vec<u8>>,
    pub(crate) rules: Rules,
    pub(crate) types: Types,
    pub(crate) auth: Option<Checker>,
    pub(crate) index: Vec<Vec<u8>>,
    pub(crate) clean: Clean,
    pub(crate) listing: bool,
    pub(crate) archives: Vec<Format>,
    pub(crate) dotfiles: bool,
    pub(crate) links: Links,
    /// Below the root.
    pub(crate) fallback: Option<Vec<u8>>,
    error_pages: Vec<(String, Vec<u8>)>,
    pub(crate) precompressed: bool,
    /// Codings that are made while serving, the best first.
    pub(crate) codings: Vec<Coding>,
    pub(crate) compress: config::Compress,
    /// Whether it was said that a file is too large to be compressed: once for each configuration.
    pub(crate) said_too_large: AtomicBool,
    /// Whether entity tags have the inode number.
    pub(crate) etag_has_inode: bool,
}

impl Plan {
    /// Opens and compiles what `config` says.
    ///
    /// # Errors
    /// If a directory cannot be opened, or a value makes no sense.
    pub(crate) fn new(config: &Config) -> Result<Arc<Self>, Error> {
        config.check()?;
        let tls = config.tls.is_some();
        let sites = rules::sites(config).map(|(key, site)| Site::with_mounts(site, &key, tls));
        let sites = sites.collect::<Result<Vec<_>, _>>()?;
        let ms = Duration::from_millis;
        Ok(Arc::new(Self {
            roots: sites.iter().flat_map(Site::roots).collect(),
            sites,
            hosts: Hosts::new(&config.host)?,
            limits: config.limits.clone(),
            rate: rate(&config.limits),
            deadlines: Deadlines {
                headers: ms(config.limits.header_timeout_ms),
                idle: ms(config.limits.idle_timeout_ms),
                write: ms(config.limits.write_timeout_ms),
                stall: ms(config.limits.write_timeout_ms),
            },
            health: config.health.clone(),
            metrics: config.metrics.clone(),
            proxies: Proxies::new(&config.proxies)?,
        }))
    }

    /// All directories that are served.
    pub(crate) fn roots(&self) -> &[Arc<Followed>] {
        &self.roots
    }

    /// The site that goes by the name `host`; `None` if that is no name.
    pub(crate) fn site(&self, host: &[u8]) -> Option<&Site> {
        self.hosts.find(host).and_then(|number| self.sites.get(number))
    }

    /// The site of requests that name none.
    pub(crate) fn default_site(&self) -> Option<&Site> {
        self.sites.first()
    }
}

impl Site {
    fn with_mounts(site: &config::Site, key: &str, tls: bool) -> Result<Self, Error> {
        let load =
            |auth: Option<&config::Auth>, key: &str| auth.map(|auth| Checker::load(auth, key)).transpose();
        let mut own = Self::new(site, key, tls, load(site.auth.as_ref(), key)?)?;
        for (mount, (key, as_site)) in site.mounts.iter().zip(site.mounted(key)) {
            let auth = match (&mount.auth, &own.auth) {
                (None, Some(inherited)) => Some(inherited.mounted(mount.at())),
                _ => load(as_site.auth.as_ref(), &key)?.map(|auth| auth.mounted(mount.at())),
            };
            own.mounted.push(Self::new(&as_site, &key, tls, auth)?);
        }
        own.mounts = Mounts::new(&site.mounts);
        Ok(own)
    }

    fn new(site: &config::Site, key: &str, tls: bool, auth: Option<Checker>) -> Result<Self, Error> {
        let (dir, only) = place(&site.root);
        // A root that names a file names the target of a link as well: follow the link even if it
        // leads out of the directory.
        let links = match (links(site), &only) {
            (Links::Within, Some(_)) => Links::Follow,
            (links, _) => links,
        };
        let below = |path: &String| path.trim_start_matches('/').as_bytes().to_vec();
        Ok(Self {
            base: site.base().trim_start_matches('/').as_bytes().to_vec(),
            at: site.at.clone().into_bytes(),
            mounts: Mounts::default(),
            mounted: Vec::new(),
            root: root(&dir, links)?,
            only,
            rules: Rules::new(site, key, tls)?,
            types: Types::new(site).map_err(|error| Error::configure(key, error))?,
            auth,
            index: site.index.iter().map(|name| name.as_bytes().to_vec()).collect(),
            clean: clean(site),
            listing: site.listing,
            archives: site.archives.iter().filter_map(|word| Format::parse(word)).collect(),
            dotfiles: site.dotfiles,
            links,
            fallback: site.fallback.as_ref().map(below),
            error_pages: site
                .error_pages
                .iter()
                .map(|(status, path)| (status.clone(), below(path)))
                .collect(),
            precompressed: site.precompressed,
            codings: site.compress.codings.iter().filter_map(|word| Coding::parse(word.as_bytes())).collect(),
            compress: site.compress.clone(),
            said_too_large: AtomicBool::new(false),
            etag_has_inode: site.etag.as_deref() == Some("inode"),
        })
    }

    /// Its directory and those of its mounts.
    fn roots(&self) -> impl Iterator<Item = Arc<Followed>> {
        std::iter::once(self).chain(&self.mounted).map(|site| Arc::clone(&site.root))
    }

    /// Whether all paths of requests are below the root of the site itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.base.is_empty() && self.mounts.is_empty()
    }

    /// Returns the site or the mount of it that has the path of a request, which is percent-encoded,
    /// and where the path below its root begins in the decoded one; `None` for a path that is not
    /// below the base. What is no path is left to the site.
    pub(crate) fn of_request(&self, path: &[u8]) -> (&Self, Option<usize>) {
        let Ok(target) = Target::parse(path) else { return (self, Some(0)) };
        let Some(base) = skip(&target.path, &self.base) else { return (self, None) };
        let (site, skip) = self.of_path(target.path.get(base..).unwrap_or_default());
        (site, Some(base + skip))
    }

    /// Returns the site or the mount of it that has the decoded `path` below the base, and where the
    /// path below its root begins in that.
    pub(crate) fn of_path(&self, path: &[u8]) -> (&Self, usize) {
        let found = self.mounts.find(path);
        found.and_then(|(number, skip)| Some((self.mounted.get(number)?, skip))).unwrap_or((self, 0))
    }

    /// The decoded `path` below the root as one below the base, with a slash at its beginning, which
    /// is what rules are about.
    pub(crate) fn below_base(&self, path: &[u8]) -> Vec<u8> {
        [&self.at[..], b"/", path].concat()
    }

    /// The decoded `path` below the root as that of a request, without a slash at its beginning.
    pub(crate) fn requested(&self, path: &[u8]) -> Vec<u8> {
        let all = [&self.base[..], &self.at[..], b"/", path].concat();
        let start = usize::from(all.starts_with(b"/"));
        all.get(start..).unwrap_or_default().to_vec()
    }

    /// The path of `Server::addresses`, percent-encoded, without a slash at its beginning.
    pub(crate) fn address(&self) -> String {
        let path = self.requested(self.only.as_deref().unwrap_or_default());
        encode(&path).trim_start_matches('/').to_owned()
    }

    /// The file that is shown with `status`, below the root: that of the very status before that of its class.
    pub(crate) fn error_page(&self, status: StatusCode) -> Option<&[u8]> {
        let class = if status.is_server_error() { "5xx" } else { "4xx" };
        let page = |word: &str| self.error_pages.iter().find(|(known, _)| known == word);
        page(status.as_str()).or_else(|| page(class)).map(|(_, path)| path.as_slice())
    }

    /// Whether a file may come in codings of its own.
    pub(crate) fn has_codings(&self) -> bool {
        self.precompressed || !self.codings.is_empty()
    }
}

fn rate(limits: &Limits) -> Option<Rate> {
    let burst = (limits.requests_per_s * BURST_S).ceil().clamp(1.0, f64::from(u32::MAX));
    Rate::new(limits.requests_per_s, limits.burst.unwrap_or(burst as u32))
}

fn clean(site: &config::Site) -> Clean {
    let mode = site.clean_urls.as_deref().unwrap_or("no");
    let mut suffixes: Vec<_> = site.suffixes.iter().map(|suffix| suffix.as_bytes().to_vec()).collect();
    if suffixes.is_empty() && mode != "no" {
        suffixes.push(b".html".to_vec());
        suffixes.extend(site.index.iter().map(|name| [b"/", name.as_bytes()].concat()));
    }
    Clean { suffixes, redirects: mode == "redirect" }
}

/// The directory that is opened for the root `path`, and the name in it if `path` is a regular
/// file's.
pub(crate) fn place(path: &Path) -> (PathBuf, Option<Vec<u8>>) {
    match path.file_name() {
        Some(name) if std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (dir.to_owned(), Some(name.as_bytes().to_vec()))
        }
        _ => (path.to_owned(), None),
    }
}

fn root(dir: &Path, links: Links) -> Result<Arc<Followed>, Error> {
    let failed = |errno| Error::new(Op::Open, dir.display().to_string(), cause(errno));
    Followed::open(dir, links).map(Arc::new).map_err(failed)
}

/// What links below the root of `site` may do.
pub(crate) fn links(site: &config::Site) -> Links {
    match site.symlinks.as_deref() {
        Some("never") => Links::Never,
        Some("follow") => Links::Follow,
        _ => Links::Within,
    }
}

/// Why a directory cannot be opened.
pub(crate) fn cause(errno: Errno) -> Box<dyn std::error::Error + Send + Sync> {
    match errno {
        Errno::NOSYS => "openat2(2), which Linux has since 5.6, is missing or forbidden here".into(),
        errno => std::io::Error::from(errno).into(),
    }
}
