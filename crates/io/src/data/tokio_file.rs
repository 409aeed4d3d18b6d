//! Files of tokio: each operation seeks, then reads or writes, and each step goes through the
//! blocking pool of the runtime.
//!
//! A tokio file has one position and makes one call at a time. So each operation in flight has a
//! file of its own, opened again through `/proc/self/fd` (a duplicate would share the position).
//! tokio copies through a buffer of up to 2 MiB that is not aligned, so `O_DIRECT` is refused with
//! EINVAL.

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

/// The idle tokio files of an attached file.
type IdleFiles = Arc<Mutex<Vec<File>>>;

/// The tokio model, with a runtime on the thread that created it.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Buffer, Data, Op, OpKind, TokioFile};
///
/// let mut model = TokioFile::new(8)?;
/// let file = model.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// model.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// model.complete(&mut done);
/// assert_eq!(done.remove(0).into_op().bytes(), b"[package]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokioFile {
    /// The runtime. Only drop takes it.
    runtime: Option<Runtime>,
    files: FileTable,
    idle: Vec<IdleFiles>,
    in_flight_tasks: JoinSet<CompletedOp>,
    failed: Vec<CompletedOp>,
    depth: usize,
}

impl TokioFile {
    /// Creates a model with up to `depth` futures in flight.
    ///
    /// # Errors
    /// If the runtime cannot be created.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let refused = |error: std::io::Error| Unavailable {
            operation: "start the tokio runtime",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            cause: "threads or descriptors are short".to_owned(),
        };
        let runtime = Builder::new_current_thread().build().map_err(refused)?;
        let (files, idle, in_flight_tasks, failed) =
            (FileTable::default(), Vec::new(), JoinSet::new(), Vec::new());
        Ok(Self { runtime: Some(runtime), files, idle, in_flight_tasks, failed, depth: depth.max(1) })
    }
}

/// Performs an operation on a file from `idle`, or on a newly opened one.
async fn perform(mut op: Box<Op>, whole: Arc<OwnedFd>, idle: IdleFiles) -> CompletedOp {
    let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let opened = match taken {
        Some(file) => Ok(file),
        None => reopen(&whole).await,
    };
    let result = match opened {
        Ok(mut file) => {
            let result = on_file(&mut file, &mut op).await.map_err(errno_of);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(file);
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
            // The write has ended only after the flush.
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
        self.idle.resize(self.idle.len().max(id.0 as usize + 1), IdleFiles::default());
        self.idle[id.0 as usize] = IdleFiles::default();
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
        if let Some(idle) = self.idle.get_mut(file.0 as usize) {
            *idle = IdleFiles::default();
        }
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight_tasks.len() + self.failed.len()
    }

    fn submit(&mut self, op: Box<Op>) {
        assert!(self.in_flight() < self.depth, "the number of operations in flight is at most the depth");
        match self.files.get(op.file) {
            Ok(file) => {
                let (file, idle) = (file.clone(), self.idle[op.file.0 as usize].clone());
                let runtime = self.runtime.as_ref().expect("only drop takes the runtime");
                self.in_flight_tasks.spawn_on(perform(op, file, idle), runtime.handle());
            }
            Err(errno) => self.failed.push(CompletedOp::new(op, Err(errno))),
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let runtime = self.runtime.as_ref().expect("only drop takes the runtime");
        let ended = runtime.block_on(self.in_flight_tasks.join_next());
        let more = std::iter::from_fn(|| self.in_flight_tasks.try_join_next());
        let ended = ended.into_iter().chain(more);
        // These tasks do not panic, and no code aborts them.
        done.extend(ended.map(|ended| ended.expect("a task neither panics nor is aborted")));
    }
}

impl Drop for TokioFile {
    fn drop(&mut self) {
        // A call in flight keeps the copy of the bytes and its descriptor, so the drop need not
        // wait.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}
