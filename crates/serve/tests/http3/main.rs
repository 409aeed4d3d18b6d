//! HTTP/3 with conforming and hostile clients. Built with the feature http3-test alone, as by
//! `make test`.

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
use fathom_serve::server::StartOptions;

use client::{Authority, Client, Connector, run};
use support::{MemoryLog, TestServer, Tree, config};

/// An HTTP/3 server, and the authority that has signed its certificate.
struct Http3Site {
    tree: Tree,
    served: TestServer,
    config: Config,
    authority: Authority,
    lines: MemoryLog,
}

impl Http3Site {
    /// Serves `tree` with the lines `top`, and the lines `site` in the table of the site.
    fn new(tree: Tree, top: &str, site: &str) -> Self {
        Self::with(tree, top, site, |_, _| {})
    }

    fn with(tree: Tree, top: &str, site: &str, change: impl FnOnce(&mut Config, &Authority)) -> Self {
        let (authority, lines) = (Authority::new(), MemoryLog::default());
        let top = format!("access-log = {{ format = 'combined' }}\nmetrics = '/metrics'\n{top}");
        let mut config = config(&tree, &top, site);
        config.tls = Some(authority.certify(&tree, "localhost").0);
        change(&mut config, &authority);
        let start = || {
            let outfit = StartOptions { stream: Some(Box::new(lines.clone())), ..StartOptions::default() };
            TestServer::try_with(&config, outfit)
        };
        // Another program may use the same UDP port as the TCP port that the kernel chose: then try
        // again.
        let served = (0..8).find_map(|_| start().ok()).unwrap_or_else(|| start().unwrap());
        Self { tree, served, config, authority, lines }
    }

    fn connector(&self) -> Connector {
        Connector::new(&self.authority)
    }

    fn connect(&self) -> Client {
        run(self.connector().connect(self.served.address())).unwrap()
    }
}
