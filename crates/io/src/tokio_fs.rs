//! tokio's file calls: each goes to the runtime's blocking pool, a thread hand-off there and back. One runtime a worker,
//! on the worker's own thread.
//!
//! `tokio::fs` takes paths, so every call names its file `/proc/self/fd/N/NAME`: relative to an open directory at any
//! depth, as with the other models. Names are read by `getdents64` through `spawn_blocking`, one hand-off for each call of
//! [`MetadataModel::read`]: `tokio::fs::read_dir` does the same for every 32 names, but would start each batch at the
//! directory's first.
//!
//! std does not report attributes: where they are wanted ([`Fields::ATTRIBUTES`]), statx(2) is called on
//! the pool, as often and with as many hand-offs.
//!
//! What differs from the other models is what std does below: every field is asked for, mount roots are not told,
//! an automount point is mounted by looking at it, and the link through /proc counts as one of the 40 that may follow one
//! another. Dropping a model does not wait for calls still in the pool; what they return is dropped.

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

/// Calls one range of entries has under way at once: as many threads as tokio's blocking pool may have.
const IN_FLIGHT_MAX: usize = 512;

/// Directories a worker of [`AsyncPar`] keeps under way: each holds a descriptor.
const WIDTH: usize = 64;

/// A thread of the pool makes one call at a time and keeps little on its stack.
const STACK_BYTES: usize = 256 * 1024;

/// Address space that a thread of the pool may need, with what its calls return.
const THREAD_BYTES: usize = 1 << 20;

/// How long a thread without calls stays: for good, as the next one might not be to be had.
const IDLE: Duration = Duration::from_secs(u32::MAX as u64);

/// tokio's file calls, each awaited before the next is made.
#[derive(Debug)]
pub struct AsyncSeq(Pool);

/// tokio's file calls, those of a directory's entries all at once.
#[derive(Debug)]
pub struct AsyncPar(Pool);

impl AsyncSeq {
    /// With a runtime of its own.
    ///
    /// # Errors
    /// Where /proc is not mounted, or the runtime or its first thread cannot be made.
    pub fn new() -> Result<Self, Unavailable> {
        Pool::new().map(Self)
    }
}

impl AsyncPar {
    /// With a runtime of its own.
    ///
    /// # Errors
    /// Where /proc is not mounted, or the runtime or its first thread cannot be made.
    pub fn new() -> Result<Self, Unavailable> {
        Pool::new().map(Self)
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
            let room = IN_FLIGHT_MAX - in_flight.len();
            in_flight.extend(
                queued
                    .by_ref()
                    .take(room)
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

/// A runtime that leaves without waiting for its threads.
#[derive(Debug)]
struct Pool(Option<Runtime>);

impl Pool {
    fn new() -> Result<Self, Unavailable> {
        let unavailable = |error: &io::Error, cause: &str| Unavailable {
            deed: "use tokio::fs",
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

    /// Starts the first thread for calls. With none, a call would panic; with one, calls wait for
    /// it where no more can be started.
    fn start_thread(&self) -> io::Result<()> {
        let _turn = threads::start_lock();
        threads::probe()?;
        self.run(async { tokio::task::spawn_blocking(|| ()).await }).map_err(io::Error::other)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.as_ref().expect("taken by drop only").block_on(future)
    }
}

impl Drop for Pool {
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
    // Not `N/.`: that takes the right to search the directory, which having it open does not.
    metadata(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()).into(), Follow::Yes, fields).await
}

async fn stat(at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    match metadata(path(at, name)?, follow, fields).await {
        // The way through /proc is a link itself, and a few bytes of path: what only just fits is asked for without it.
        Err(Errno::LOOP | Errno::NAMETOOLONG) => {
            crate::sys::stat(at, name, follow, Fields::ALL.union(fields))
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

/// The call that std makes, with the attributes that std leaves out.
async fn statx(path: PathBuf, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
    let path = CString::new(path.into_os_string().into_vec()).map_err(|_| Errno::INVAL)?;
    // std does not spare the server, and asks for all fields.
    let fields = Fields::ALL.union(Fields::FRESH).union(fields);
    let call = move || crate::sys::stat(CWD, &path, follow, fields);
    let meta = tokio::task::spawn_blocking(call).await.map_err(|_| Errno::IO)??;
    Ok(Meta { mount_root: None, ..meta })
}

/// Where no descriptor is left to lend to another thread, or what is lent would not keep the position (readdir's
/// stream), the call is made here.
async fn read(dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
    let lent = if cfg!(feature = "posix") { None } else { dir.as_fd().try_clone_to_owned().ok() };
    let Some(lent) = lent.map(Dir::from_fd) else { return crate::sys::read_names(dir, names, limit) };
    let mut batch = take(names);
    let read = tokio::task::spawn_blocking(move || {
        let more = crate::sys::read_names(&lent, &mut batch, limit);
        (batch, more)
    });
    let (batch, more) = read.await.map_err(|_| Errno::IO)?;
    *names = batch;
    more
}

/// A path for `name` in `at`.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_in_its_directory() {
        let proc = std::fs::File::open("/proc").unwrap();
        let fd = proc.as_raw_fd();
        assert_eq!(path(proc.as_fd(), c"a b"), Ok(format!("/proc/self/fd/{fd}/a b").into()));
        assert_eq!(path(proc.as_fd(), c"/etc"), Ok("/etc".into()));
        assert_eq!(path(CWD, c"x/y"), Ok("x/y".into()));
        assert_eq!(path(CWD, c""), Err(Errno::NOENT));
    }
}
