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
use crate::proxies::Proxies;
use crate::rate::Rate;
use crate::rules::hosts::Hosts;
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

/// A site.
#[derive(Debug)]
pub(crate) struct Site {
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
        let sites = rules::sites(config).map(|(key, site)| Site::new(site, &key, tls));
        let sites = sites.collect::<Result<Vec<_>, _>>()?;
        let ms = Duration::from_millis;
        Ok(Arc::new(Self {
            roots: sites.iter().map(|site| Arc::clone(&site.root)).collect(),
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
    fn new(site: &config::Site, key: &str, tls: bool) -> Result<Self, Error> {
        let (dir, only) = place(&site.root);
        // A root that names a file names the target of a link as well: follow the link even if it
        // leads out of the directory.
        let links = match (links(site), &only) {
            (Links::Within, Some(_)) => Links::Follow,
            (links, _) => links,
        };
        let auth = site.auth.as_ref().map(|auth| Checker::load(auth, key)).transpose();
        let below = |path: &String| path.trim_start_matches('/').as_bytes().to_vec();
        Ok(Self {
            root: root(&dir, links)?,
            only,
            rules: Rules::new(site, key, tls)?,
            types: Types::new(site).map_err(|error| Error::configure(key, error))?,
            auth: auth?,
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
