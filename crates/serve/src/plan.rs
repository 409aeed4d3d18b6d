//! What a configuration comes to: sites with their directories open and their rules compiled, shared by all workers, exchanged whole on
//! a reload.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fathom_io::Errno;
use fathom_io::beneath::{Beneath, Links, Patience};
use fathom_io::offer::is_local;
use fathom_io::sys::fs_magic;
use http::StatusCode;

use crate::auth::Checker;
use crate::config::{self, Config, Limits};
use crate::conn::pulse::Patience as Deadlines;
use crate::error::{Error, Op};
use crate::files::Root;
use crate::negotiate::Coding;
use crate::rules::hosts::Hosts;
use crate::rules::{self, Rules};
use crate::types::Types;

/// linux/magic.h. Its files are on other filesystems, most of them local; one that makes opens wait is found out.
const OVERLAY: i64 = 0x794C_7630;

/// The whole configuration, as requests need it.
#[derive(Debug)]
pub(crate) struct Plan {
    sites: Vec<Site>,
    hosts: Hosts,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Deadlines,
    pub(crate) health: Option<String>,
    pub(crate) metrics: Option<String>,
}

/// A site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) root: Root,
    pub(crate) rules: Rules,
    pub(crate) types: Types,
    pub(crate) auth: Option<Checker>,
    pub(crate) index: Vec<Vec<u8>>,
    pub(crate) listing: bool,
    pub(crate) dotfiles: bool,
    pub(crate) links: Links,
    /// Below the root.
    pub(crate) fallback: Option<Vec<u8>>,
    error_pages: Vec<(String, Vec<u8>)>,
    pub(crate) precompressed: bool,
    /// Codings that are made while serving, the best first.
    pub(crate) codings: Vec<Coding>,
    pub(crate) compress: config::Compress,
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
        let ms = Duration::from_millis;
        Ok(Arc::new(Self {
            sites: sites.collect::<Result<_, _>>()?,
            hosts: Hosts::new(&config.host)?,
            limits: config.limits.clone(),
            deadlines: Deadlines {
                headers: ms(config.limits.header_timeout_ms),
                idle: ms(config.limits.idle_timeout_ms),
                write: ms(config.limits.write_timeout_ms),
            },
            health: config.health.clone(),
            metrics: config.metrics.clone(),
        }))
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
        let links = links(site);
        let auth = site.auth.as_ref().map(Checker::load).transpose();
        let below = |path: &String| path.trim_start_matches('/').as_bytes().to_vec();
        Ok(Self {
            root: root(site, links)?,
            rules: Rules::new(site, key, tls)?,
            types: Types::new(site).map_err(|error| Error::configure(key, error))?,
            auth: auth?,
            index: site.index.iter().map(|name| name.as_bytes().to_vec()).collect(),
            listing: site.listing,
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

fn root(site: &config::Site, links: Links) -> Result<Root, Error> {
    static ROOTS: AtomicUsize = AtomicUsize::new(0);
    let thing = site.root.display().to_string();
    let failed = |errno: Errno| Error::new(Op::Open, thing.clone(), cause(errno));
    let beneath = Beneath::new(&site.root, links).map_err(failed)?;
    let meta = beneath.stat(b".", Patience::Wait).map_err(failed)?.ok_or_else(|| failed(Errno::AGAIN))?;
    let magic = fs_magic(beneath.dir().as_fd()).unwrap_or_default();
    let number = ROOTS.fetch_add(1, Ordering::Relaxed);
    let is_local = is_local(magic) || magic == OVERLAY;
    Ok(Root { beneath: Arc::new(beneath), dev: meta.dev, number, is_local })
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
