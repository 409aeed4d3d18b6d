//! The FUSE filesystem: each request becomes one delayed job that calls [`Source`] and replies.
//! Owns node numbers and open handles.
//!
//! Every request with a reply is delayed, including those that fail. `forget` has no reply, and
//! `init` is not an operation on the tree.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, Request,
};
use rustix::fs::{AtFlags, OFlags, Stat};

use crate::delay_queue::DelayQueue;
use crate::nodes::{Nodes, ROOT};
use crate::source::{self, DirEntry, Source};

const LOCK_HELD: &str = "no code panics while it holds this lock";

/// The filesystem of the mount.
pub(crate) struct SlowFilesystem {
    delay: DelayQueue,
    state: Arc<FilesystemState>,
}

/// State that the delayed jobs share.
struct FilesystemState {
    source: Source,
    ttl: Duration,
    nodes: Mutex<Nodes>,
    handles: Mutex<HashMap<u64, Arc<OpenHandle>>>,
    next_handle: AtomicU64,
}

struct OpenHandle {
    fd: OwnedFd,
    /// Entries of a directory, read again when a client rewinds.
    entries: Mutex<Vec<DirEntry>>,
}

impl SlowFilesystem {
    /// Mounts `source`. The kernel may cache names and attributes for `ttl`.
    pub(crate) fn new(source: Source, delay: DelayQueue, ttl: Duration) -> SlowFilesystem {
        let (nodes, handles) = (Mutex::default(), Mutex::default());
        let state = FilesystemState { source, ttl, nodes, handles, next_handle: AtomicU64::new(1) };
        SlowFilesystem { delay, state: Arc::new(state) }
    }

    fn run_delayed(&self, job: impl FnOnce(&FilesystemState) + Send + 'static) {
        let state = Arc::clone(&self.state);
        self.delay.run(move || job(&state));
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, flags: AtFlags, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.run_delayed(move |state| match state.remove(parent.0, &name, flags) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        });
    }
}

impl Filesystem for SlowFilesystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this capability the kernel serialises lookups and readdirs of a directory, which
        // no walker could make up for.
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.run_delayed(move |state| match state.lookup(parent.0, &name) {
            Ok(attr) => reply.entry(&state.ttl, &attr, Generation(0)),
            Err(error) => reply.error(error.into()),
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.state.nodes().forget(ino.0, lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.run_delayed(move |state| match state.stat(ino.0) {
            Ok(stat) => reply.attr(&state.ttl, &attributes(&stat)),
            Err(error) => reply.error(error.into()),
        });
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.run_delayed(move |state| match state.with_names(ino.0, |names| state.source.read_link(names)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error.into()),
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, AtFlags::empty(), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, AtFlags::REMOVEDIR, reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.run_delayed(move |state| reply_open(state.open(ino.0, OFlags::empty()), reply));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.run_delayed(move |state| match state.read(fh.0, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error.into()),
        });
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.run_delayed(move |state| state.close(fh.0, reply));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.run_delayed(move |state| reply_open(state.open(ino.0, OFlags::DIRECTORY), reply));
    }

    fn readdir(&self, _: &Request, _: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.run_delayed(move |state| match state.list(fh.0, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        });
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.run_delayed(move |state| state.close(fh.0, reply));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.run_delayed(move |state| match state.source.statvfs() {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                s.f_bsize as u32,
                s.f_namemax as u32,
                s.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        });
    }
}

fn reply_open(opened: io::Result<u64>, reply: ReplyOpen) {
    match opened {
        Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
        Err(error) => reply.error(error.into()),
    }
}

impl FilesystemState {
    fn lookup(&self, parent: u64, name: &OsStr) -> io::Result<FileAttr> {
        let stat = self.with_names(parent, |names| self.source.stat(&[names, &[name]].concat()))?;
        // Node numbers are the source's inode numbers, and number 1 is FUSE's root.
        if stat.st_ino == ROOT {
            return Err(io::Error::from_raw_os_error(Errno::EIO.code()));
        }
        // Record the lookup before the reply: the kernel may send `forget` as soon as it has the
        // reply.
        self.nodes().add_lookup(stat.st_ino, parent, name);
        Ok(attributes(&stat))
    }

    fn remove(&self, parent: u64, name: &OsStr, flags: AtFlags) -> io::Result<()> {
        self.with_names(parent, |names| self.source.remove(&[names, &[name]].concat(), flags))
    }

    fn stat(&self, number: u64) -> io::Result<Stat> {
        let stat = self.with_names(number, |names| self.source.stat(names))?;
        if number != ROOT && stat.st_ino != number {
            return Err(stale());
        }
        Ok(stat)
    }

    fn open(&self, number: u64, kind: OFlags) -> io::Result<u64> {
        let fd = self.with_names(number, |names| self.source.open_at(names, kind))?;
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.handles().insert(handle, Arc::new(OpenHandle { fd, entries: Mutex::default() }));
        Ok(handle)
    }

    fn read(&self, handle: u64, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        source::read(&self.handle(handle)?.fd, offset, size as usize)
    }

    /// Adds entries to the reply, from index `offset`, until it is full.
    fn list(&self, handle: u64, offset: u64, reply: &mut ReplyDirectory) -> io::Result<()> {
        let handle = self.handle(handle)?;
        // Held across the system calls: concurrent requests on one handle share one listing.
        let mut entries = handle.entries.lock().expect(LOCK_HELD);
        if offset == 0 {
            *entries = source::list(&handle.fd)?;
        }
        for (index, entry) in entries.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(entry.ino), index as u64 + 1, fuse_type(entry.kind), &entry.name) {
                break;
            }
        }
        Ok(())
    }

    fn close(&self, handle: u64, reply: ReplyEmpty) {
        let closed = self.handles().remove(&handle);
        drop(closed);
        reply.ok();
    }

    /// Calls `call` with the names that lead to `number`, without holding the lock.
    fn with_names<T>(&self, number: u64, call: impl FnOnce(&[&OsStr]) -> io::Result<T>) -> io::Result<T> {
        let names: Vec<_> = {
            let nodes = self.nodes();
            let names = nodes.names(number).ok_or_else(stale)?;
            names.into_iter().map(OsStr::to_owned).collect()
        };
        call(&names.iter().map(|name| name.as_os_str()).collect::<Vec<_>>())
    }

    fn handle(&self, handle: u64) -> io::Result<Arc<OpenHandle>> {
        let found = self.handles().get(&handle).cloned();
        found.ok_or_else(|| io::Error::from_raw_os_error(Errno::EBADF.code()))
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().expect(LOCK_HELD)
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<u64, Arc<OpenHandle>>> {
        self.handles.lock().expect(LOCK_HELD)
    }
}

fn stale() -> io::Error {
    io::Error::from_raw_os_error(Errno::ESTALE.code())
}

fn attributes(stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec as u32),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec as u32),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        crtime: UNIX_EPOCH,
        kind: fuse_type(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

fn time(seconds: i64, nanos: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    second + Duration::from_nanos(u64::from(nanos))
}

fn fuse_type(kind: rustix::fs::FileType) -> FileType {
    use rustix::fs::FileType as Kind;
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::RegularFile | Kind::Unknown => FileType::RegularFile,
    }
}
