//! A worker: one thread with a runtime of its own, its listeners, its connections, its files.
//!
//! Owns: what all requests of a thread share. Does not own: what is answered, what the threads share ([`crate::server`]).

mod accept;
mod connection;
mod flags;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod introduction;
mod load;
mod redirect;
mod refused;
mod roots;
mod tally;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::answer::Made;
use crate::conn::chunk::Parts;
use crate::conn::outbox::Outbox;
use crate::conn::pulse::Pulses;
use crate::conn::turns::Turns;
use crate::date::Clock;
use crate::files::cache::{Cache, Entry};
use crate::files::{Failure, Files};
use crate::log::{Logger, Trouble};
use crate::metrics::Counters;
use crate::plan::{Plan, Site};
use crate::server::Shared;
use flags::Flags;
use load::Load;
use roots::Roots;

pub(crate) use accept::{Start, run};
pub(crate) use tally::Tally;

/// What all requests of a thread share.
pub(crate) struct Worker {
    number: usize,
    pub(crate) shared: Arc<Shared>,
    plan: RefCell<Rc<Current>>,
    pub(crate) files: Rc<Files>,
    pub(crate) turns: Turns,
    pub(crate) cache: Cache<Made>,
    pub(crate) flags: Flags,
    roots: Roots,
    pulses: Pulses,
    connections: Cell<usize>,
    load: Load,
    logger: RefCell<Option<Logger>>,
    /// It has given notice, or ends.
    leaving: Cell<bool>,
    /// It accepts no more, and ends.
    drains: Cell<bool>,
    /// The header `Date`, where hyper does not write it.
    clock: Clock,
    /// A connection has ended.
    room: Notify,
}

/// The plan of all threads, counted by this one alone: they would fight for one counter, request by request.
struct Current(Arc<Plan>);

impl Deref for Current {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// None on a Unix socket.
    pub(crate) address: Option<SocketAddr>,
    /// In whose turn the pool does things: the same for all connections from one address.
    pub(crate) client: u64,
    pub(crate) tls: bool,
    /// The name in the client's certificate.
    pub(crate) name: Option<Rc<str>>,
    /// Where the connection sends parts of files and of bodies itself.
    pub(crate) parts: Option<Parts>,
    /// The count of unsent bytes of the connection.
    pub(crate) outbox: Outbox,
    /// Whether `parts` may hold parts of files, whose unsent bytes change with the file.
    pub(crate) may_share: bool,
    /// Whether its requests tell whom they are sent for.
    is_proxy: bool,
    /// Where only the way to the encrypted site is told: its port.
    redirect: Option<u16>,
    /// The value of `Alt-Svc` (RFC 7838) in responses, if HTTP/3 is served.
    #[cfg(feature = "http3")]
    alt_svc: Option<http::HeaderValue>,
}

impl Worker {
    /// What is known of `path` below the root of `site`.
    pub(crate) async fn look_up(
        &self,
        site: &Site,
        path: &[u8],
        client: u64,
    ) -> Result<Rc<Entry<Made>>, Failure> {
        let now = Instant::now();
        let root = self.root(&site.root, client, now).await?;
        self.cache.look_up(&self.files, &root, path, client, now).await
    }

    /// The same, whatever is known.
    pub(crate) async fn look_up_anew(
        &self,
        site: &Site,
        path: &[u8],
        client: u64,
    ) -> Result<Rc<Entry<Made>>, Failure> {
        let now = Instant::now();
        let root = self.root(&site.root, client, now).await?;
        self.cache.remove(root.number, path);
        self.cache.look_up(&self.files, &root, path, client, now).await
    }

    /// Whether the server is about to end, or ends.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.get()
    }

    /// The metrics of all workers, as Prometheus reads them.
    pub(crate) fn metrics(&self) -> Bytes {
        self.shared.render_metrics(self.files.mute_devices()).into()
    }

    /// Tells the error log of `trouble`.
    pub(crate) fn report(&self, trouble: Trouble, message: impl FnOnce() -> String) {
        self.shared.errors.report(trouble, message);
    }

    fn plan(&self) -> Rc<Current> {
        Rc::clone(&self.plan.borrow())
    }

    fn counters(&self) -> Option<&Counters> {
        self.shared.metrics.worker(self.number)
    }
}
