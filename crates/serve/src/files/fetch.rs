//! Opening a file, and having its first bytes if that takes no call more.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_io::beneath::{Beneath, Patience};
use fathom_io::{Errno, FileType};
use rustix::io::retry_on_intr;
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::opened::Change;
use super::pool::Pool;
use super::{Failure, Files, Model, Opened, Root, Version, on};
use crate::conn::chunk::Buffers;

/// An open on the worker that took longer has waited, whatever the kernel said.
const SLOW_OPEN: Duration = Duration::from_micros(500);
/// After so many of them files are opened by the pool.
const SLOW_OPENS: u32 = 3;

/// A file that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) opened: Opened,
    /// All of a short regular file, if whoever opened it read it, too.
    pub(crate) body: Option<Bytes>,
}

/// A root's number and a path below it.
type Key = (usize, Box<[u8]>);

/// Files that are being opened by the pool, by root and path: who asks for one of them waits for the same call.
#[derive(Debug, Default)]
pub(crate) struct Flights(RefCell<HashMap<Key, Rc<Flight>>>);

/// One call, for whoever waits for it. It belongs to the worker: a thread of the pool never holds a lock that the worker it has just woken wants.
#[derive(Debug, Default)]
struct Flight {
    result: OnceCell<Result<Fetched, Failure>>,
    landed: Notify,
}

impl Files {
    /// Opens `path` below `root` in the turn of `client`. Short files may come with their bytes.
    pub(crate) async fn fetch(
        self: &Rc<Self>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<Fetched, Failure> {
        match self.model {
            Model::Sync | Model::Sendfile => fetched(open(&root.beneath, path, Patience::Wait, None)?),
            Model::Tokio => open_by_tokio(root, path).await,
            Model::Pool => self.fetch_by_pool(root, path, client).await,
            Model::Uring => self.open_by_ring(root, path, client).await,
            Model::Nowait | Model::Auto => match self.open_at_once(root, path)? {
                Some(opened) => fetched(Some(opened)),
                None => self.fetch_in_flight(root, path, client).await,
            },
        }
    }

    async fn open_by_ring(&self, root: &Root, path: &[u8], client: u64) -> Result<Fetched, Failure> {
        match &self.ring {
            Some(ring) => match ring.open(&root.beneath, path).await {
                // The ring has openat2(2) alone, which follows no absolute link.
                Err(Errno::XDEV) => self.fetch_by_pool(root, path, client).await,
                file => fetched(Some(Opened::new(file?, self.closer(root))?)),
            },
            None => self.fetch_by_pool(root, path, client).await,
        }
    }

    /// The file, if that needs nobody to wait.
    fn open_at_once(&self, root: &Root, path: &[u8]) -> Result<Option<Opened>, Errno> {
        if !root.is_local || self.slow_opens.get() >= SLOW_OPENS {
            return Ok(None);
        }
        let start = Instant::now();
        let opened = open(&root.beneath, path, Patience::AtOnce, None)?;
        let slow = start.elapsed() > SLOW_OPEN;
        self.slow_opens.set(if slow { self.slow_opens.get() + 1 } else { 0 });
        Ok(opened)
    }

    /// Who closes files below `root`, where that may wait.
    fn closer(&self, root: &Root) -> Option<Pool> {
        (!root.is_local).then(|| self.pool.clone())
    }

    async fn fetch_in_flight(
        self: &Rc<Self>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<Fetched, Failure> {
        let key = (root.number, Box::from(path));
        let known = self.flights.0.borrow().get(&key).cloned();
        let flight = known.unwrap_or_else(|| self.take_off(key, root.clone(), client));
        loop {
            if let Some(result) = flight.result.get() {
                return result.clone();
            }
            flight.landed.notified().await;
        }
    }

    /// It lands also if whoever asked first is gone: others may wait for it.
    fn take_off(self: &Rc<Self>, key: Key, root: Root, client: u64) -> Rc<Flight> {
        let flight = Rc::<Flight>::default();
        self.flights.0.borrow_mut().insert(key.clone(), Rc::clone(&flight));
        let (files, lands) = (Rc::clone(self), Rc::clone(&flight));
        spawn_local(async move {
            let result = files.fetch_by_pool(&root, &key.1, client).await;
            files.flights.0.borrow_mut().remove(&key);
            // Nobody else sets it.
            let _first = lands.result.set(result);
            lands.landed.notify_waiters();
        });
        flight
    }

    /// The version of what `path` below `root` is now.
    pub(crate) async fn version(&self, root: &Root, path: &[u8], client: u64) -> Result<Version, Failure> {
        if root.is_local
            && let Some(meta) = root.beneath.stat(path, Patience::AtOnce)?
        {
            return Ok(Version::of(&meta));
        }
        let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
        let stat = move || beneath.stat(&path, Patience::Wait);
        let meta = self.pool.run(client, on(root.dev), stat).await??.ok_or(Errno::AGAIN)?;
        Ok(Version::of(&meta))
    }

    async fn fetch_by_pool(&self, root: &Root, path: &[u8], client: u64) -> Result<Fetched, Failure> {
        let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
        let closer = self.closer(root);
        self.pool.run(client, on(root.dev), move || open_and_read(&beneath, &path, closer)).await?
    }
}

fn fetched(opened: Option<Opened>) -> Result<Fetched, Failure> {
    let opened = opened.ok_or(Errno::AGAIN)?;
    Ok(Fetched { opened, body: None })
}

fn open(
    beneath: &Beneath,
    path: &[u8],
    patience: Patience,
    closer: Option<Pool>,
) -> Result<Option<Opened>, Errno> {
    beneath.open(path, patience)?.map(|file| Opened::new(file, closer)).transpose()
}

/// What a thread of the pool does for a file: all that one request is likely to need.
fn open_and_read(beneath: &Beneath, path: &[u8], closer: Option<Pool>) -> Result<Fetched, Failure> {
    match attempt(beneath, path, closer.clone()) {
        // What is there now is as good an answer.
        Err(Failure::Changed) => attempt(beneath, path, closer),
        fetched => fetched,
    }
}

fn attempt(beneath: &Beneath, path: &[u8], closer: Option<Pool>) -> Result<Fetched, Failure> {
    let fetched = fetched(open(beneath, path, Patience::Wait, closer)?)?;
    let opened = &fetched.opened;
    if opened.kind() == FileType::Regular && opened.len() <= Buffers::BYTES as u64 {
        let body = Some(read_whole(opened)?);
        // Closing may wait, too, and this is the thread that may.
        return Ok(Fetched { opened: fetched.opened.closed(), body });
    }
    Ok(fetched)
}

/// All bytes of a short file.
pub(super) fn read_whole(opened: &Opened) -> Result<Bytes, Failure> {
    let mut bytes = vec![0; usize::try_from(opened.len()).unwrap_or(usize::MAX)];
    read_exactly(opened, 0, &mut bytes)?;
    if opened.is_still()? { Ok(bytes.into()) } else { Err(Failure::Changed) }
}

/// `len` bytes from `offset` on.
pub(super) fn read_all(opened: &Opened, offset: u64, len: usize) -> Result<Bytes, Failure> {
    let mut bytes = vec![0; len];
    fill(opened, offset, &mut bytes)?;
    Ok(bytes.into())
}

/// The bytes from `offset` on, as many as there is room.
pub(super) fn fill(opened: &Opened, offset: u64, bytes: &mut [u8]) -> Result<(), Failure> {
    read_exactly(opened, offset, bytes)?;
    if opened.change()? == Change::Bytes { Err(Failure::Changed) } else { Ok(()) }
}

fn read_exactly(opened: &Opened, offset: u64, bytes: &mut [u8]) -> Result<(), Failure> {
    let (fd, mut filled) = (opened.fd()?, 0);
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match retry_on_intr(|| rustix::io::pread(fd, &mut *room, offset + filled as u64))? {
            0 => return Err(Failure::Changed),
            read => filled += read,
        }
    }
    Ok(())
}

/// As `tokio::fs` does it: one hand-off to open, one for the metadata. It knows no openat2(2), so its pool is handed ours.
async fn open_by_tokio(root: &Root, path: &[u8]) -> Result<Fetched, Failure> {
    let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
    let file = in_tokio(move || beneath.open(&path, Patience::Wait)).await?.ok_or(Errno::AGAIN)?;
    let opened = in_tokio(move || Opened::new(file, None)).await?;
    Ok(Fetched { opened, body: None })
}

async fn in_tokio<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Errno> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(call).await.map_err(|_panicked| Failure::Busy)??)
}
