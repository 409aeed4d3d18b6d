//! Tries the system calls of the server on a site's filesystem.
//!
//! Owns: the calls and their results. Does not own: what a result means for a model.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use fathom_files::OpenFile;
use fathom_io::beneath::{Beneath, LookupMode};
use fathom_io::data::{NowaitRead, read_nowait};
use fathom_io::sys::{cached, send_file};
use fathom_io::uring::FileRing;
use fathom_io::{Errno, FileType};

use super::{CallStatus, CallStatuses};
use crate::server::RING_DEPTH;

/// The maximum names that are examined to find a file for the calls.
const NAMES_MAX: usize = 1000;

/// The file that calls are tried on.
pub(super) struct SampleFile {
    /// The path below the root.
    pub(super) path: PathBuf,
    opened: OpenFile,
}

/// Tries all calls below `root`, which is open as `beneath`. Returns the results, and the file that
/// was used if there is one.
pub(super) fn calls(root: &Path, beneath: &Beneath) -> Result<(CallStatuses, Option<SampleFile>), Errno> {
    let sample = sample(root, beneath)?;
    let file = sample.as_ref().and_then(|sample| sample.opened.fd().ok());
    let tried = |call: fn(BorrowedFd<'_>) -> CallStatus| file.map_or(CallStatus::Untested, call);
    let path = sample.as_ref().map_or(&b"."[..], |sample| sample.path.as_os_str().as_bytes());
    let calls = CallStatuses {
        openat2: CallStatus::Works,
        resolve_cached: resolve_cached(beneath, path),
        nowait: tried(nowait),
        cachestat: tried(cachestat),
        sendfile: tried(sendfile),
        uring: uring(),
    };
    Ok((calls, sample))
}

/// Returns the first regular file with content, on the same filesystem as the root.
fn sample(root: &Path, beneath: &Beneath) -> Result<Option<SampleFile>, Errno> {
    let dev = beneath.stat(b".", LookupMode::Blocking)?.ok_or(Errno::AGAIN)?.dev;
    let mut dirs = VecDeque::from([PathBuf::new()]);
    let mut left = NAMES_MAX;
    while let Some(dir) = dirs.pop_front() {
        let Ok(entries) = fs::read_dir(root.join(&dir)) else { continue };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else { return Ok(None) };
            left = fewer;
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push_back(path),
                Ok(kind) if kind.is_file() => {
                    if let Some(opened) = open(beneath, &path).filter(|opened| opened.meta.dev == dev) {
                        return Ok(Some(SampleFile { path, opened }));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(None)
}

fn open(beneath: &Beneath, path: &Path) -> Option<OpenFile> {
    let file = beneath.open(path.as_os_str().as_bytes(), LookupMode::Blocking).ok()??;
    let opened = OpenFile::new(file).ok()?;
    (opened.kind() == FileType::Regular && !opened.is_empty()).then_some(opened)
}

/// Checks that a path that was just looked up is found without waiting.
fn resolve_cached(beneath: &Beneath, path: &[u8]) -> CallStatus {
    let again = beneath.open(path, LookupMode::Blocking).and_then(|_| beneath.open(path, LookupMode::Cached));
    match again {
        Ok(Some(_)) => CallStatus::Works,
        Ok(None) => CallStatus::Fails("a path just looked up is not in the cache".to_owned()),
        Err(errno) => CallStatus::failed(errno),
    }
}

/// Reads the first byte of `file`, so that it is in memory if the filesystem keeps it there.
fn touch(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut [0_u8; 1][..], 0)).map(drop)
}

/// Checks that a nowait read returns cached data.
fn nowait(file: BorrowedFd<'_>) -> CallStatus {
    match touch(file).and_then(|()| read_nowait(file, &mut [0], 0)) {
        Ok(NowaitRead::Bytes(1..)) => CallStatus::Works,
        Ok(NowaitRead::Bytes(0) | NowaitRead::WouldBlock) => {
            CallStatus::Fails("data just read is not in the cache".to_owned())
        }
        Ok(NowaitRead::Unsupported) => CallStatus::Fails("the file system does not support it".to_owned()),
        Err(errno) => CallStatus::failed(errno),
    }
}

/// Checks that cachestat(2) sees cached data.
fn cachestat(file: BorrowedFd<'_>) -> CallStatus {
    match touch(file).and_then(|()| cached(file, 0, 1)) {
        Ok(cached) if cached.pages > 0 => CallStatus::Works,
        Ok(_) => CallStatus::Fails("data just read is not shown".to_owned()),
        Err(Errno::NOSYS) => CallStatus::Fails("needs Linux 6.5".to_owned()),
        Err(errno) => CallStatus::failed(errno),
    }
}

/// Checks that sendfile(2) sends from the file to a socket.
fn sendfile(file: BorrowedFd<'_>) -> CallStatus {
    let pair = UnixStream::pair().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    match pair.and_then(|(to, _from)| send_file(to.as_fd(), file, 0, 1)) {
        Ok(_) => CallStatus::Works,
        Err(errno) => CallStatus::failed(errno),
    }
}

/// Checks that a worker can set up its ring.
fn uring() -> CallStatus {
    match FileRing::new(RING_DEPTH) {
        Ok(_) => CallStatus::Works,
        Err(unavailable) => CallStatus::Fails(unavailable.to_string()),
    }
}
