//! Opens files, and reads small ones in the same pool call.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_io::beneath::{Beneath, LookupMode};
use fathom_io::{Errno, FileType, Model};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::pool::{Resource, ThreadPool};
use crate::worker_buffers::WorkerBuffer;
use crate::{FileError, FileIo, FileVersion, OpenFile, Root};

/// An open on the worker that took longer has waited, whatever the kernel promised.
const SLOW_OPEN: Duration = Duration::from_micros(500);
/// After this many consecutive slow opens the pool opens all files.
const SLOW_OPENS: u32 = 3;

/// A file that was opened, perhaps with its content.
#[derive(Clone, Debug)]
pub struct FetchedFile {
    /// The file.
    pub opened: OpenFile,
    /// The content of a small regular file, if the opening call read it as well. Then `opened` may
    /// have no descriptor.
    pub body: Option<Bytes>,
}

/// The root's number, and the path below the root.
type OpenKey = (usize, Box<[u8]>);

/// Opens that are in progress in the pool. Concurrent requests for one file share a call.
#[derive(Debug, Default)]
pub(crate) struct PendingOpens(RefCell<HashMap<OpenKey, Rc<PendingOpen>>>);

/// One open in progress. It belongs to the worker: a pool thread never holds a lock that the worker
/// it has just woken needs.
#[derive(Debug, Default)]
struct PendingOpen {
    result: OnceCell<Result<FetchedFile, FileError>>,
    done: Notify,
}

impl FileIo {
    /// Opens `path` below `root`, queued as a job of `client` if the pool opens it. Small files may
    /// come with their content. Concurrent calls for one path share an open.
    ///
    /// # Errors
    /// [`FileError::System`] as [`Beneath::open`]; [`FileError::Busy`] if the queue of the pool is
    /// full.
    ///
    /// # Panics
    /// With [`Model::Auto`] and [`Model::Nowait`] outside of a runtime with local tasks.
    pub async fn fetch(
        self: &Rc<Self>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<FetchedFile, FileError> {
        match self.model() {
            Model::Sync | Model::Sendfile => fetched(open(&root.beneath, path, LookupMode::Blocking, None)?),
            Model::Tokio => open_by_tokio(self.pool(), root, path).await,
            Model::Pool => self.fetch_by_pool(root, path, client).await,
            Model::Uring(_) => self.open_by_ring(root, path, client).await,
            _ => match self.open_nowait(root, path)? {
                Some(opened) => fetched(Some(opened)),
                None => self.fetch_coalesced(root, path, client).await,
            },
        }
    }

    async fn open_by_ring(&self, root: &Root, path: &[u8], client: u64) -> Result<FetchedFile, FileError> {
        match &self.ring {
            Some(ring) => match ring.open(&root.beneath, path).await {
                // The ring only has openat2(2), which cannot follow an absolute link below a root.
                Err(Errno::XDEV) => self.fetch_by_pool(root, path, client).await,
                file => fetched(Some(OpenFile::with_closing_pool(file?, self.closing_pool(root))?)),
            },
            None => self.fetch_by_pool(root, path, client).await,
        }
    }

    /// Opens the file if no call has to wait; `None` otherwise.
    fn open_nowait(&self, root: &Root, path: &[u8]) -> Result<Option<OpenFile>, Errno> {
        if !root.is_local || self.slow_opens.get() >= SLOW_OPENS {
            return Ok(None);
        }
        let start = Instant::now();
        let opened = open(&root.beneath, path, LookupMode::Cached, None)?;
        let slow = start.elapsed() > SLOW_OPEN;
        self.slow_opens.set(if slow { self.slow_opens.get() + 1 } else { 0 });
        Ok(opened)
    }

    /// Returns the pool that closes files below `root`, where close(2) may wait.
    fn closing_pool(&self, root: &Root) -> Option<ThreadPool> {
        (!root.is_local).then(|| self.pool().clone())
    }

    async fn fetch_coalesced(
        self: &Rc<Self>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<FetchedFile, FileError> {
        let key = (root.number, Box::from(path));
        let known = self.pending_opens.0.borrow().get(&key).cloned();
        let pending = known.unwrap_or_else(|| self.start_open(key, root.clone(), client));
        loop {
            if let Some(result) = pending.result.get() {
                return result.clone();
            }
            pending.done.notified().await;
        }
    }

    /// Starts an open. It completes even if the first request is cancelled, as other requests may
    /// wait for it.
    fn start_open(self: &Rc<Self>, key: OpenKey, root: Root, client: u64) -> Rc<PendingOpen> {
        let pending = Rc::<PendingOpen>::default();
        self.pending_opens.0.borrow_mut().insert(key.clone(), Rc::clone(&pending));
        let (files, completing) = (Rc::clone(self), Rc::clone(&pending));
        spawn_local(async move {
            // Also a panic completes the open: other requests wait for it.
            let result = files.pool().contain(files.fetch_by_pool(&root, &key.1, client)).await;
            files.pending_opens.0.borrow_mut().remove(&key);
            // Only this task sets the result.
            let _first = completing.result.set(result);
            completing.done.notify_waiters();
        });
        pending
    }

    /// Returns the version of the file that `path` below `root` resolves to now.
    ///
    /// # Errors
    /// [`FileError::System`] as [`Beneath::stat`]; [`FileError::Busy`] if the queue of the pool is
    /// full.
    pub async fn version(&self, root: &Root, path: &[u8], client: u64) -> Result<FileVersion, FileError> {
        if root.is_local
            && let Some(meta) = root.beneath.stat(path, LookupMode::Cached)?
        {
            return Ok(FileVersion::of(&meta));
        }
        let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
        let stat = move || beneath.stat(&path, LookupMode::Blocking);
        let meta = self.pool().run(client, Resource::Device(root.dev), stat).await??.ok_or(Errno::AGAIN)?;
        Ok(FileVersion::of(&meta))
    }

    async fn fetch_by_pool(&self, root: &Root, path: &[u8], client: u64) -> Result<FetchedFile, FileError> {
        let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
        let closing_pool = self.closing_pool(root);
        self.pool()
            .run(client, Resource::Device(root.dev), move || open_and_read(&beneath, &path, closing_pool))
            .await?
    }
}

fn fetched(opened: Option<OpenFile>) -> Result<FetchedFile, FileError> {
    let opened = opened.ok_or(Errno::AGAIN)?;
    Ok(FetchedFile { opened, body: None })
}

fn open(
    beneath: &Beneath,
    path: &[u8],
    mode: LookupMode,
    closing_pool: Option<ThreadPool>,
) -> Result<Option<OpenFile>, Errno> {
    beneath.open(path, mode)?.map(|file| OpenFile::with_closing_pool(file, closing_pool)).transpose()
}

/// Opens a file on a pool thread and reads a small one: all calls that one request is likely to
/// need.
fn open_and_read(
    beneath: &Beneath,
    path: &[u8],
    closing_pool: Option<ThreadPool>,
) -> Result<FetchedFile, FileError> {
    match try_open_and_read(beneath, path, closing_pool.clone()) {
        // The file changed meanwhile: its new content is as good a response.
        Err(FileError::Changed) => try_open_and_read(beneath, path, closing_pool),
        fetched => fetched,
    }
}

fn try_open_and_read(
    beneath: &Beneath,
    path: &[u8],
    closing_pool: Option<ThreadPool>,
) -> Result<FetchedFile, FileError> {
    let fetched = fetched(open(beneath, path, LookupMode::Blocking, closing_pool)?)?;
    let opened = &fetched.opened;
    if opened.kind() == FileType::Regular && opened.len() <= WorkerBuffer::BYTES as u64 {
        let body = Some(opened.read_whole()?);
        // close(2) may wait as well, and this thread may wait.
        return Ok(FetchedFile { opened: fetched.opened.without_fd(), body });
    }
    Ok(fetched)
}

/// Opens a file as `tokio::fs` does: one hand-off to open, one for the metadata. `tokio::fs` has no
/// openat2(2), so its blocking pool runs the call of [`Beneath`].
async fn open_by_tokio(pool: &ThreadPool, root: &Root, path: &[u8]) -> Result<FetchedFile, FileError> {
    let (beneath, path) = (Arc::clone(&root.beneath), path.to_vec());
    let open = move || beneath.open(&path, LookupMode::Blocking);
    let file = spawn_blocking_call(pool, open).await?.ok_or(Errno::AGAIN)?;
    let opened = spawn_blocking_call(pool, move || OpenFile::with_closing_pool(file, None)).await?;
    Ok(FetchedFile { opened, body: None })
}

async fn spawn_blocking_call<T: Send + 'static>(
    pool: &ThreadPool,
    call: impl FnOnce() -> Result<T, Errno> + Send + 'static,
) -> Result<T, FileError> {
    let pool = pool.clone();
    let call = move || pool.catch(call);
    // Without a result, the runtime ends.
    Ok(tokio::task::spawn_blocking(call).await.map_err(|_ended| FileError::Busy)???)
}
