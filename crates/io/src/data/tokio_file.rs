//! tokio's own file: each operation seeks, then reads or writes, and every step goes through the runtime's blocking pool.
//!
//! A tokio file has one position and does one thing at a time, so each operation under way has a file of its own, opened again through
//! `/proc/self/fd` (a duplicate would share the position). tokio copies into a buffer of its own, of up to 2 MiB, which is not aligned:
//! `O_DIRECT` is refused with EINVAL.

use std::io::SeekFrom;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{OFlags, fcntl_getfl};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::{CompletedOp, Data, FileId, FileTable, Op, OpKind};
use crate::{Errno, Unavailable};

/// FileTable nobody uses just now, of one that is attached.
type Spare = Arc<Mutex<Vec<File>>>;

/// The tokio model, on a runtime of its own for the thread that made it.
#[derive(Debug)]
pub struct TokioFile {
    /// There until this is dropped.
    runtime: Option<Runtime>,
    files: FileTable,
    spare: Vec<Spare>,
    under_way: JoinSet<CompletedOp>,
    failed: Vec<CompletedOp>,
    depth: usize,
}

impl TokioFile {
    /// With up to `depth` futures under way.
    ///
    /// # Errors
    /// If the runtime cannot be started.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let refused = |error: std::io::Error| Unavailable {
            deed: "start the tokio runtime",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            cause: "threads or descriptors are short".to_owned(),
        };
        let runtime = Builder::new_current_thread().build().map_err(refused)?;
        let (files, spare, under_way, failed) =
            (FileTable::default(), Vec::new(), JoinSet::new(), Vec::new());
        Ok(Self { runtime: Some(runtime), files, spare, under_way, failed, depth: depth.max(1) })
    }
}

/// An operation, on a file taken from `spare` or opened.
async fn perform(mut op: Box<Op>, whole: Arc<OwnedFd>, spare: Spare) -> CompletedOp {
    let taken = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let opened = match taken {
        Some(file) => Ok(file),
        None => reopen(&whole).await,
    };
    let result = match opened {
        Ok(mut file) => {
            let result = on_file(&mut file, &mut op).await.map_err(errno_of);
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            result
        }
        Err(errno) => Err(errno),
    };
    CompletedOp::new(op, result)
}

async fn reopen(file: &OwnedFd) -> Result<File, Errno> {
    let mode = fcntl_getfl(file.as_fd())?;
    let access = mode & OFlags::RWMODE;
    let (read, write) = (access != OFlags::WRONLY, access != OFlags::RDONLY);
    let flags = (mode & OFlags::DIRECT).bits().cast_signed();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(read).write(write).custom_flags(flags).open(path).await.map_err(errno_of)
}

async fn on_file(file: &mut File, op: &mut Op) -> std::io::Result<usize> {
    let offset = op.offset;
    match op.kind {
        OpKind::Read => {
            file.seek(SeekFrom::Start(offset)).await?;
            file.read(op.bytes_mut()).await
        }
        OpKind::Write => {
            file.seek(SeekFrom::Start(offset)).await?;
            let bytes = file.write(op.bytes()).await?;
            // Only then it has been written.
            file.flush().await?;
            Ok(bytes)
        }
        OpKind::SyncData => file.sync_data().await.map(|()| 0),
        OpKind::SyncAll => file.sync_all().await.map(|()| 0),
    }
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Data for TokioFile {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let id = self.files.add(file)?;
        self.spare.resize(self.spare.len().max(id.0 as usize + 1), Spare::default());
        self.spare[id.0 as usize] = Spare::default();
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
        if let Some(spare) = self.spare.get_mut(file.0 as usize) {
            *spare = Spare::default();
        }
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.under_way.len() + self.failed.len()
    }

    fn submit(&mut self, op: Box<Op>) {
        assert!(self.in_flight() < self.depth, "no more operations than the depth");
        match self.files.get(op.file) {
            Ok(file) => {
                let (file, spare) = (file.clone(), self.spare[op.file.0 as usize].clone());
                let runtime = self.runtime.as_ref().expect("there until this is dropped");
                self.under_way.spawn_on(perform(op, file, spare), runtime.handle());
            }
            Err(errno) => self.failed.push(CompletedOp::new(op, Err(errno))),
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let runtime = self.runtime.as_ref().expect("there until this is dropped");
        let ended = runtime.block_on(self.under_way.join_next());
        let more = std::iter::from_fn(|| self.under_way.try_join_next());
        let ended = ended.into_iter().chain(more);
        // Nothing here panics, and nobody aborts a task.
        done.extend(ended.map(|ended| ended.expect("a task comes to its end")));
    }
}

impl Drop for TokioFile {
    fn drop(&mut self) {
        // A call under way keeps tokio's copy of the bytes and its own descriptor; nobody waits for it.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}
