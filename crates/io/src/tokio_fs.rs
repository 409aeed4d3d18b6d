//! The file calls of tokio. Each goes to the blocking pool of the runtime, which takes two thread
//! hand-offs. Each worker has a runtime on its own thread.
//!
//! `tokio::fs` takes paths, so every call names its file `/proc/self/fd/N/NAME`: relative to an
//! open directory at any depth, as in the other models. getdents64(2) runs through
//! `spawn_blocking`, with one hand-off for each call of [`MetadataModel::read`].
//! `tokio::fs::read_dir` does the same for every 32 names, but would start each batch at the
//! beginning of the directory.
//!
//! std does not report attributes. For [`Fields::ATTRIBUTES`], statx(2) is called on the pool, with
//! the same number of calls and hand-offs.
//!
//! The differences from the other models come from std: it asks for all fields, does not report
//! mount roots, and mounts an automount point; the link through /proc counts as one of the 40 that
//! a path may have. Dropping a model does not wait for calls in the pool, and drops their results.

use std::ffi::{CStr, CString, OsStr};
use std::fs::Metadata;
use std::future::Future;
use std::io;
use std::mem::take;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::stream::{FuturesUnordered, StreamExt};
use rustix::fs::{CWD, OFlags};
use tokio::fs::OpenOptions;
use tokio::runtime::{Builder, Runtime};

use crate::{Dir, Errno, Fields, FileTime, Follow, Meta, MetadataModel, Names, Unavailable, sys, threads};

/// Maximum number of calls in flight for a range of entries: the default size of tokio's pool.
const IN_FLIGHT_MAX: usize = 512;

/// Directories that a worker of [`AsyncPar`] processes at once. Each holds a descriptor.
const WIDTH: usize = 64;

/// Stack size of a pool thread, which makes one call at a time and has shallow stacks.
const STACK_BYTES: usize = 256 * 1024;

/// Address space for a pool thread, including the results of its calls.
const THREAD_BYTES: usize = 1 << 20;

/// Time after which an idle pool thread ends: never, because a new thread might not be startable.
const IDLE: Duration = Duration::from_secs(u32::MAX as u64);

/// The model that awaits each file call of tokio before the next.
///
/// ```
/// use fathom_io::tokio_fs::AsyncSeq;
/// use fathom_io::{Follow, MetadataModel, Names, sys};
///
/// let model = AsyncSeq::new()?;
/// let mut names = Names::new();
/// let end = model.run(async {
///     let dir = model.open(sys::CWD, c"/", Follow::No).await?;
///     model.read(&dir, &mut names, 10_000).await
/// })?;
/// assert!(!end && !names.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsyncSeq(BlockingRuntime);

/// The model that has the file calls for all entries of a directory in flight at once.
///
/// ```
/// use fathom_io::tokio_fs::AsyncPar;
/// use fathom_io::{Fields, Follow, MetadataModel, sys};
///
/// let model = AsyncPar::new()?;
/// let meta = model.run(async {
///     let dir = model.open(sys::CWD, c"/", Follow::No).await?;
///     model.stat_dir(&dir, Fields::ALL).await
/// })?;
/// assert!(meta.nlink > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsyncPar(BlockingRuntime);

impl AsyncSeq {
    /// With a runtime of its own.
    ///
    /// # Errors
    /// Where /proc is not mounted, or the runtime or its first thread cannot be made.
    pub fn new() -> Result<Self, Unavailable> {
        BlockingRuntime::new().map(Self)
    }
}

impl AsyncPar {
    /// With a runtime of its own.
    ///
    /// # Errors
    /// Where /proc is not mounted, or the runtime or its first thread cannot be made.
    pub fn new() -> Result<Self, Unavailable> {
        BlockingRuntime::new().map(Self)
    }
}

impl MetadataModel for AsyncSeq {
    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        open(at, name, follow).await
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        read(dir, names, limit).await
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        stat_dir(dir, fields).await
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        out.clear();
        for name in names.range(range) {
            out.push(if name.stat { Some(stat(at, name.name, follow, fields).await) } else { None });
        }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.run(future)
    }
}

impl MetadataModel for AsyncPar {
    const WIDTH: usize = WIDTH;
    const BATCH: usize = IN_FLIGHT_MAX;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        open(at, name, follow).await
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        read(dir, names, limit).await
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        stat_dir(dir, fields).await
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        out.clear();
        out.resize(range.len(), None);
        let mut queued = names.range(range).enumerate().filter(|(_, name)| name.stat);
        let mut in_flight = FuturesUnordered::new();
        loop {
            let free = IN_FLIGHT_MAX - in_flight.len();
            in_flight.extend(
                queued
                    .by_ref()
                    .take(free)
                    .map(async |(index, name)| (index, stat(at, name.name, follow, fields).await)),
            );
            let Some((index, meta)) = in_flight.next().await else { return };
            out[index] = Some(meta);
        }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.run(future)
    }
}

/// A runtime whose drop does not wait for its threads.
#[derive(Debug)]
struct BlockingRuntime(Option<Runtime>);

impl BlockingRuntime {
    fn new() -> Result<Self, Unavailable> {
        let unavailable = |error: &io::Error, cause: &str| Unavailable {
            operation: "use tokio::fs",
            errno: errno(error),
            cause: cause.to_string(),
        };
        std::fs::metadata("/proc/self/fd").map_err(|error| unavailable(&error, "is /proc mounted?"))?;
        let threads_max = sys::address_space_left()
            .map_or(IN_FLIGHT_MAX, |room| (room / THREAD_BYTES).clamp(1, IN_FLIGHT_MAX));
        let mut builder = Builder::new_current_thread();
        builder.thread_stack_size(STACK_BYTES).thread_keep_alive(IDLE).max_blocking_threads(threads_max);
        let runtime = builder.build();
        let runtime = runtime.map_err(|error| unavailable(&error, "the runtime cannot be made"))?;
        let pool = Self(Some(runtime));
        pool.start_thread().map_err(|error| unavailable(&error, &threads::limit()))?;
        Ok(pool)
    }

    /// Starts the first pool thread. Without any thread, a call would panic. With one, calls wait
    /// for it if no other thread can be started.
    fn start_thread(&self) -> io::Result<()> {
        let _lock = threads::start_lock();
        threads::probe()?;
        self.run(async { tokio::task::spawn_blocking(|| ()).await }).map_err(io::Error::other)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.as_ref().expect("only drop takes the runtime").block_on(future)
    }
}

impl Drop for BlockingRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn open(at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
    let flags = if follow == Follow::Yes { OFlags::DIRECTORY } else { OFlags::DIRECTORY | OFlags::NOFOLLOW };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path(at, name)?).await.map_err(|error| errno(&error))?;
    Ok(Dir::from_fd(OwnedFd::from(file.into_std().await)))
}

async fn stat_dir(dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
    // The path `N/.` would take the permission to search the directory, which `N` does not.
    metadata(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()).into(), Follow::Yes, fields).await
}

async fn stat(at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    match metadata(path(at, name)?, follow, fields).await {
        // The prefix in /proc is a link and adds bytes to the path. Repeat the call without it.
        Err(Errno::LOOP | Errno::NAMETOOLONG) => {
            crate::sys::stat(at, name, follow, Fields::ALL.union(fields))
                .map(|meta| Meta { fields: meta.fields.intersection(fields), ..meta })
        }
        metadata => metadata,
    }
}

async fn metadata(path: PathBuf, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    if fields.contains(Fields::ATTRIBUTES) {
        return statx(path, follow, fields).await;
    }
    loop {
        let metadata = match follow {
            Follow::Yes => tokio::fs::metadata(&path).await,
            Follow::No => tokio::fs::symlink_metadata(&path).await,
        };
        match metadata.map_err(|error| errno(&error)) {
            Err(Errno::INTR) => {}
            metadata => return metadata.map(|metadata| meta(&metadata, fields)),
        }
    }
}

/// Makes the call that std makes, and also returns the attributes.
async fn statx(path: PathBuf, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    let path = CString::new(path.into_os_string().into_vec()).map_err(|_| Errno::INVAL)?;
    // std does not set AT_STATX_DONT_SYNC, and asks for all fields.
    let all = Fields::ALL.union(Fields::FRESH).union(fields);
    let call = move || crate::sys::stat(CWD, &path, follow, all);
    let meta = tokio::task::spawn_blocking(call).await.map_err(|_| Errno::IO)??;
    Ok(Meta { mount_root: None, fields: meta.fields.intersection(fields), ..meta })
}

/// Reads names on the pool, through a duplicate of the descriptor. Makes the call on this thread if
/// no descriptor is left, or if the duplicate would not share the position (the stream of readdir).
async fn read(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    let copy = if cfg!(feature = "posix") { None } else { dir.as_fd().try_clone_to_owned().ok() };
    let Some(copy) = copy.map(Dir::from_fd) else { return crate::sys::read_names(dir, names, limit) };
    let mut batch = take(names);
    let read = tokio::task::spawn_blocking(move || {
        let more = crate::sys::read_names(&copy, &mut batch, limit);
        (batch, more)
    });
    let (batch, more) = read.await.map_err(|_| Errno::IO)?;
    *names = batch;
    more
}

/// Returns a path for `name` in `at`.
fn path(at: BorrowedFd<'_>, name: &CStr) -> Result<PathBuf, Errno> {
    let name = name.to_bytes();
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    if name.starts_with(b"/") || at.as_raw_fd() == CWD.as_raw_fd() {
        return Ok(Path::new(OsStr::from_bytes(name)).to_path_buf());
    }
    let mut path = format!("/proc/self/fd/{}/", at.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    Ok(std::ffi::OsString::from_vec(path).into())
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn stamp_of(time: SystemTime) -> FileTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => FileTime { sec: after.as_secs().cast_signed(), nsec: after.subsec_nanos() },
        Err(error) => {
            let before = error.duration();
            let (sec, nsec) = (-before.as_secs().cast_signed(), before.subsec_nanos());
            if nsec == 0 {
                FileTime { sec, nsec }
            } else {
                FileTime { sec: sec - 1, nsec: 1_000_000_000 - nsec }
            }
        }
    }
}

fn meta(metadata: &Metadata, fields: Fields) -> Meta {
    let created = if fields.contains(Fields::BIRTH) { metadata.created().ok() } else { None };
    let stamp = |sec, nsec: i64| FileTime { sec, nsec: u32::try_from(nsec).unwrap_or(0) };
    let reported = if created.is_some() { Fields::ALL.union(Fields::BIRTH) } else { Fields::ALL };
    Meta {
        dev: metadata.dev(),
        ino: metadata.ino(),
        size: metadata.size().cast_signed(),
        blocks: metadata.blocks(),
        mode: metadata.mode(),
        nlink: metadata.nlink(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        atime: stamp(metadata.atime(), metadata.atime_nsec()),
        mtime: stamp(metadata.mtime(), metadata.mtime_nsec()),
        ctime: stamp(metadata.ctime(), metadata.ctime_nsec()),
        btime: created.map(stamp_of),
        mount_root: None,
        attributes: None,
        fields: fields.intersection(reported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_get_the_path_of_their_directory() {
        let proc = std::fs::File::open("/proc").unwrap();
        let fd = proc.as_raw_fd();
        assert_eq!(path(proc.as_fd(), c"a b"), Ok(format!("/proc/self/fd/{fd}/a b").into()));
        assert_eq!(path(proc.as_fd(), c"/etc"), Ok("/etc".into()));
        assert_eq!(path(CWD, c"x/y"), Ok("x/y".into()));
        assert_eq!(path(CWD, c""), Err(Errno::NOENT));
    }
}
