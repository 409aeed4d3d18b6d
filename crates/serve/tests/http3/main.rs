//! HTTP/3, as clients have it that keep to it and clients that do not. Built by `make http3-test`.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]
#![allow(dead_code, unused_imports, reason = "this binary uses its own part of the support")]

mod answers;
mod browser;
mod client;
mod hostile;
mod life;
mod starved;
#[path = "../http/support/mod.rs"]
mod support;

use fathom_serve::config::Config;
use fathom_serve::server::Outfit;

use client::{Authority, Client, Dial, run};
use support::{Lines, Served, Tree, config};

/// A server of HTTP/3, and who has signed its certificate.
struct Site {
    tree: Tree,
    served: Served,
    config: Config,
    authority: Authority,
    lines: Lines,
}

impl Site {
    /// Serves `tree` with the lines `top` and those of the site.
    fn new(tree: Tree, top: &str, site: &str) -> Self {
        Self::with(tree, top, site, |_, _| {})
    }

    fn with(tree: Tree, top: &str, site: &str, change: impl FnOnce(&mut Config, &Authority)) -> Self {
        let (authority, lines) = (Authority::new(), Lines::default());
        let top = format!("access-log = {{ format = 'combined' }}\nmetrics = '/metrics'\n{top}");
        let mut config = config(&tree, &top, site);
        config.tls = Some(authority.certify(&tree, "localhost").0);
        change(&mut config, &authority);
        let start = || {
            let outfit = Outfit { stream: Some(Box::new(lines.clone())), ..Outfit::default() };
            Served::try_with(&config, outfit)
        };
        // The port that the kernel chose for TCP may be another program's for UDP: then another.
        let served = (0..8).find_map(|_| start().ok()).unwrap_or_else(|| start().unwrap());
        Self { tree, served, config, authority, lines }
    }

    fn dial(&self) -> Dial {
        Dial::new(&self.authority)
    }

    fn connect(&self) -> Client {
        run(self.dial().connect(self.served.address())).unwrap()
    }
}
